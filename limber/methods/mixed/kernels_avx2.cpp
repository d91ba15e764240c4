// The kernels of points for AVX2 and FMA; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/methods/mixed/kernels_simd.hpp>

namespace limber::mixed::avx2 {

extern const PointKernels table;
constexpr PointKernels table = point_kernel_table("avx2");

}  // namespace limber::mixed::avx2
#endif
