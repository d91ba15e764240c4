// The kernels for AVX2 and FMA; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/linalg/tall/kernels.hpp>

namespace limber::tall::avx2 {

#include <limber/linalg/tall/kernels_simd.hpp>

extern const Kernels table;
constexpr Kernels table = {transposed_product, product};

}  // namespace limber::tall::avx2
#endif
