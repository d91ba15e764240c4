#include "preparation.hpp"

#include <limber/core/cache.hpp>

#include <fmt/format.h>

#include <chrono>
#include <memory>

namespace limber {

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
