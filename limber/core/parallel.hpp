// The only place that starts threads. Work is cut into pieces that do not depend on the thread count and each
// piece writes its own output, so that results are the same bits for any number of threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <exception>

namespace limber {

// Threads that parallel loops use from now on; 0 means all cores. Process-wide.
void set_threads(int n);
int threads();

// Calls body(begin, end) for consecutive ranges of `grain` items that cover [0, n). An exception from `body`
// is rethrown on the calling thread (the first one, in range order).
template <class Body>
void parallel_ranges(std::ptrdiff_t n, std::ptrdiff_t grain, Body&& body) {
  if (n <= 0) return;
  const std::ptrdiff_t pieces = (n + grain - 1) / grain;
  if (pieces == 1 || threads() == 1) {
    for (std::ptrdiff_t p = 0; p < pieces; ++p) body(p * grain, std::min(n, (p + 1) * grain));
    return;
  }
  std::exception_ptr error;
  std::ptrdiff_t error_piece = pieces;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads())
  for (std::ptrdiff_t p = 0; p < pieces; ++p) {
    try {
      body(p * grain, std::min(n, (p + 1) * grain));
    } catch (...) {
#pragma omp critical(limber_parallel_error)
      if (p < error_piece) {
        error_piece = p;
        error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

// Calls body(i) for i in [0, n).
template <class Body>
void parallel_for(std::ptrdiff_t n, std::ptrdiff_t grain, Body&& body) {
  parallel_ranges(n, grain, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    for (std::ptrdiff_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace limber
