#include <limber/core/error.hpp>
#include <limber/io/cursor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace limber::io {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool is_blank(char c) { return c != '\n' && is_space(c); }

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 40)) out += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  return out + (text.size() > 40 ? "...\"" : "\"");
}

double to_number(const Cursor& cursor, std::string_view text, const char* what) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  // Numbers too small for a double are zero; too large ones are not finite, like "inf".
  if (error == std::errc::result_out_of_range && end == digits.data() + digits.size() &&
      digits.find("e-") == std::string_view::npos && digits.find("E-") == std::string_view::npos)
    cursor.fail(fmt::format("found {} as {}, expected a finite number", in_quotes(text), what));
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size())
    cursor.fail(fmt::format("found {} as {}, expected a number", in_quotes(text), what));
  if (!std::isfinite(value))
    cursor.fail(fmt::format("found {} as {}, expected a finite number", in_quotes(text), what));
  return value;
}

std::int64_t to_integer(const Cursor& cursor, std::string_view text, const char* what) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size())
    cursor.fail(fmt::format("found {} as {}, expected a whole number", in_quotes(text), what));
  return value;
}

void Cursor::skip_comment() {
  while (at_ < data_.size() && data_[at_] != '\n') ++at_;
}

bool Cursor::skip_space() {
  while (at_ < data_.size()) {
    if (comment_ && data_[at_] == comment_)
      skip_comment();
    else if (is_space(data_[at_]))
      ++at_;
    else
      return true;
  }
  return false;
}

bool Cursor::more_in_line() {
  while (at_ < data_.size() && is_blank(data_[at_])) ++at_;
  if (comment_ && at_ < data_.size() && data_[at_] == comment_) skip_comment();
  return at_ < data_.size() && data_[at_] != '\n';
}

std::string_view Cursor::token() {
  skip_space();
  start_ = at_;
  while (at_ < data_.size() && !is_space(data_[at_]) && !(comment_ && data_[at_] == comment_)) ++at_;
  return data_.substr(start_, at_ - start_);
}

std::string_view Cursor::token(const char* expected) {
  const std::string_view t = token();
  if (t.empty()) fail(fmt::format("the file ends here, expected {}", expected));
  return t;
}

std::string_view Cursor::line() {
  start_ = at_;
  skip_comment();
  std::string_view text = data_.substr(start_, at_ - start_);
  if (at_ < data_.size()) ++at_;
  if (comment_) text = text.substr(0, text.find(comment_));
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

double Cursor::number(const char* what) { return to_number(*this, token(what), what); }

std::int64_t Cursor::integer(const char* what, std::int64_t least, std::int64_t most) {
  const std::int64_t value = to_integer(*this, token(what), what);
  if (value < least || value > most) {
    if (most == std::numeric_limits<std::int64_t>::max())
      fail(fmt::format("found {} as {}, expected at least {}", value, what, least));
    if (least == most) fail(fmt::format("found {} as {}, expected {}", value, what, least));
    fail(fmt::format("found {} as {}, expected {} to {}", value, what, least, most));
  }
  return value;
}

Vec3 Cursor::point(const char* what) {
  Vec3 p;
  for (int a = 0; a < 3; ++a) p[a] = number(what);
  return p;
}

void Cursor::expect(std::string_view word) {
  const std::string_view found = token();
  if (found != word)
    fail(fmt::format("found {}, expected \"{}\"", found.empty() ? "the end of the file" : in_quotes(found),
                     word));
}

std::string_view Cursor::bytes(std::size_t n, const char* what) {
  start_ = at_;
  if (n > remaining())
    fail(fmt::format("the file ends after {} bytes, expected {} bytes of {}", remaining(), n, what));
  at_ += n;
  return data_.substr(start_, n);
}

std::size_t Cursor::count(std::int64_t n, std::size_t least_bytes, const char* what) const {
  if (n < 0) fail(fmt::format("found {} as the number of {}, expected 0 or more", n, what));
  if (n > std::numeric_limits<Index>::max())
    fail(fmt::format("found {} as the number of {}, expected at most {}", n, what,
                     std::numeric_limits<Index>::max()));
  // The last item of a text may lack its separator.
  if (least_bytes > 0 && static_cast<std::size_t>(n) > (remaining() + 1) / least_bytes)
    fail(fmt::format(
        "found {} as the number of {}, but only {} bytes are left: a wrong count, or the file is cut off", n,
        what, remaining()));
  return static_cast<std::size_t>(n);
}

void Cursor::check_finite(double value, const char* what) const {
  if (!std::isfinite(value)) fail(fmt::format("found {} as {}, expected a finite number", value, what));
}

void Cursor::fail(const std::string& message) const {
  if (binary_) throw Error(ErrorKind::kInput, fmt::format("{}, byte {}: {}", name_, start_, message));
  const std::string_view before = data_.substr(0, start_);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  throw Error(ErrorKind::kInput, fmt::format("{}:{}: {}", name_, line, message));
}

}  // namespace limber::io
