// The kernels for AVX2 and FMA; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/linalg/native/kernels.hpp>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace limber::sparse::avx2 {

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

}  // namespace limber::sparse::avx2
#endif
