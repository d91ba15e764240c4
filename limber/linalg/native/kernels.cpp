#include <limber/linalg/native/kernels.hpp>

namespace limber::sparse {

namespace base {
extern const Kernels table;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#endif

const std::vector<const Kernels*>& all_kernels() {
  static const std::vector<const Kernels*> all = [] {
    std::vector<const Kernels*> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd"))
      found.push_back(&avx512::table);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
      found.push_back(&avx2::table);
#endif
    found.push_back(&base::table);
    return found;
  }();
  return all;
}

namespace {

const Kernels*& chosen() {
  static const Kernels* kernels = all_kernels().front();
  return kernels;
}

}  // namespace

const Kernels& kernels() { return *chosen(); }
void choose_kernels(const Kernels& kernels) { chosen() = &kernels; }

}  // namespace limber::sparse
