#include <limber/core/parallel.hpp>

namespace limber {
namespace {
int requested_threads = 0;
}

void set_threads(int n) { requested_threads = std::max(0, n); }

int threads() { return requested_threads > 0 ? requested_threads : omp_get_num_procs(); }

}  // namespace limber
