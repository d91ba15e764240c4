// The kernels of points for AVX-512; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/methods/mixed/kernels_simd.hpp>

namespace limber::mixed::avx512 {

extern const PointKernels table;
constexpr PointKernels table = point_kernel_table("avx512");

}  // namespace limber::mixed::avx512
#endif
