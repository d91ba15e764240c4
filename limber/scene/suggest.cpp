#include <limber/scene/suggest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace limber {
namespace {

std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 100))
    if (c != '-' && c != '_' && c != ' ') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace

int edit_distance(std::string_view first, std::string_view second) {
  const std::string a = plain(first), b = plain(second);
  const std::size_t n = b.size();
  std::vector<int> before(n + 1), last(n + 1), now(n + 1);
  for (std::size_t j = 0; j <= n; ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= n; ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[n];
}

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  const std::string* best = nullptr;
  int least = 0;
  for (const std::string& k : known) {
    const int d = edit_distance(name, k);
    if (!best || d < least) {
      best = &k;
      least = d;
    }
  }
  const int shortest = best ? static_cast<int>(std::min(name.size(), best->size())) : 0;
  // One slip in a short name, two or three in a long one; a known name that begins the given one also counts.
  const bool begins = best && shortest >= 3 && plain(name).starts_with(plain(*best));
  return best && (least <= (shortest <= 3 ? 1 : shortest <= 7 ? 2 : 3) || begins) ? *best : "";
}

std::string joined(std::span<const std::string> names, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += separator;
    out += names[i];
  }
  return out;
}

std::string did_you_mean_one_of(std::string_view name, std::span<const std::string> known) {
  if (known.empty()) return "; there are none";
  const std::string near = nearest_name(name, known);
  if (!near.empty()) return fmt::format(", did you mean \"{}\"?", near);
  constexpr std::size_t kShown = 12;
  return "; known: " + joined(known.first(std::min(kShown, known.size()))) +
         (known.size() > kShown ? ", ..." : "");
}

}  // namespace limber
