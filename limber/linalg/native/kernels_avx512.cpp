// The kernels for AVX-512; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/linalg/native/kernels.hpp>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace limber::sparse::avx512 {

#include <limber/linalg/native/kernels_table.hpp>

}  // namespace limber::sparse::avx512
#endif
