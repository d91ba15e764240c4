// The only place that starts threads. Work is cut into pieces that do not depend on the thread count and each
// piece writes its own output, so that results are the same bits for any number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <mutex>

namespace limber {

// Threads that parallel loops use from now on; 0 means all cores. Process-wide.
void set_threads(int n);
int threads();
// Of the thread that runs the current piece: 0 (the caller) to threads() - 1, for scratch that is not part of
// a result.
int thread_index();

namespace detail {
// Calls piece(context, p) for p in [0, pieces) on up to threads() threads, the calling one among them, and
// returns when all are done. Inside a running call it simply loops.
void run_pieces(std::ptrdiff_t pieces, void (*piece)(void*, std::ptrdiff_t), void* context);
}  // namespace detail

// Calls body(begin, end) for consecutive ranges of `grain` items that cover [0, n). An exception from `body`
// is rethrown on the calling thread (the first one, in range order).
template <class Body>
void parallel_ranges(std::ptrdiff_t n, std::ptrdiff_t grain, Body&& body) {
  if (n <= 0) return;
  struct Context {
    Body& body;
    std::ptrdiff_t n, grain, error_piece;
    std::exception_ptr error;
    std::mutex mutex;
  } context{body, n, grain, n, nullptr, {}};
  detail::run_pieces((n + grain - 1) / grain,
                     [](void* c, std::ptrdiff_t p) {
                       Context& k = *static_cast<Context*>(c);
                       try {
                         k.body(p * k.grain, std::min(k.n, (p + 1) * k.grain));
                       } catch (...) {
                         const std::lock_guard lock(k.mutex);
                         if (p < k.error_piece) {
                           k.error_piece = p;
                           k.error = std::current_exception();
                         }
                       }
                     },
                     &context);
  if (context.error) std::rethrow_exception(context.error);
}

// Calls body(i) for i in [0, n).
template <class Body>
void parallel_for(std::ptrdiff_t n, std::ptrdiff_t grain, Body&& body) {
  parallel_ranges(n, grain, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    for (std::ptrdiff_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace limber
