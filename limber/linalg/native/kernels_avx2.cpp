// The kernels for AVX2 and FMA; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/linalg/native/kernels.hpp>

namespace limber::sparse::avx2 {

#include <limber/linalg/native/kernels_simd.hpp>
#include <limber/linalg/native/kernels_simd_solve.hpp>

extern const Kernels table;
constexpr Kernels table = kernel_table();

}  // namespace limber::sparse::avx2
#endif
