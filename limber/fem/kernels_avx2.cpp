// The element kernels for AVX2 and FMA; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/fem/kernels_simd.hpp>

namespace limber::fem::avx2 {

extern const Kernels table;
constexpr Kernels table = kKernels;

}  // namespace limber::fem::avx2
#endif
