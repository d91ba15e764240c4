// The element kernels for AVX-512; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/fem/kernels_simd.hpp>

namespace limber::fem::avx512 {

extern const Kernels table;
constexpr Kernels table = kKernels;

}  // namespace limber::fem::avx512
#endif
