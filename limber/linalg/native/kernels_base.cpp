// The kernels for any machine of the family that the compiler targets; limber/CMakeLists.txt has the options.
#include <limber/linalg/native/kernels.hpp>

namespace limber::sparse::base {

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
constexpr Kernels table = kernel_table();

}  // namespace limber::sparse::base
