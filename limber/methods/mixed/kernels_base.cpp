// The kernels of points for every machine of this architecture; limber/CMakeLists.txt has the options.
#include <limber/methods/mixed/kernels_simd.hpp>

namespace limber::mixed::base {

extern const PointKernels table;
constexpr PointKernels table = point_kernel_table("base");

}  // namespace limber::mixed::base
