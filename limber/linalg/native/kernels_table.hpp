// All kernels for the instruction set that the including file is compiled for, as one table; each
// kernels_*.cpp includes this inside a namespace of its own.

namespace in_double {
typedef double Real;
#include <limber/linalg/native/kernels_simd.hpp>
}  // namespace in_double
namespace in_single {
typedef float Real;
#include <limber/linalg/native/kernels_simd.hpp>
}  // namespace in_single
#include <limber/linalg/native/kernels_simd_solve.hpp>

extern const Kernels table;
constexpr Kernels table{in_double::factor_kernels(), in_single::factor_kernels(), kLanes,
                        sweep_kernels<ConstPanel>(), sweep_kernels<RoundedPanel>()};
