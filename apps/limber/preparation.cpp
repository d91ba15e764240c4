#include "preparation.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <memory>

namespace limber {
namespace {

std::filesystem::path cache_folder() {
  if (const char* own = std::getenv("LIMBER_CACHE")) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg)
    return std::filesystem::path(xdg) / "limber";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache" / "limber";
  return {};
}

}  // namespace

Preparation user_preparation(bool shown) {
  Preparation out;
  out.cache = cache_folder();
  if (!shown) return out;
  using Clock = std::chrono::steady_clock;
  out.progress = [last = std::make_shared<Clock::time_point>(Clock::now())](std::string_view what,
                                                                            double share) {
    if (Clock::now() - *last < std::chrono::seconds(1)) return;
    *last = Clock::now();
    fmt::print(stderr, "preparing: {}, {:.0f} %\n", what, 100 * share);
  };
  return out;
}

}  // namespace limber
