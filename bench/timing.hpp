// The clock of benches.
#pragma once

#include <limber/core/parallel.hpp>

#include <chrono>
#include <ctime>

namespace limber {

// [s]. With one thread the time that it ran, which other programs on the machine change little.
inline double now() {
  if (threads() == 1) {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace limber
