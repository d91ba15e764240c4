// The element kernels for every machine of this architecture.
#include <limber/fem/kernels_simd.hpp>

namespace limber::fem::base {

extern const Kernels table;
constexpr Kernels table = kKernels;

}  // namespace limber::fem::base
