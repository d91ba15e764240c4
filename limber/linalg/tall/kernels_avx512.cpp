// The kernels for AVX-512; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/linalg/tall/kernels.hpp>

namespace limber::tall::avx512 {

#include <limber/linalg/tall/kernels_simd.hpp>

extern const Kernels table;
constexpr Kernels table = {transposed_product, product};

}  // namespace limber::tall::avx512
#endif
