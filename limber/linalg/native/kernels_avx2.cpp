// The kernels for AVX2 and FMA; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/linalg/native/kernels.hpp>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace limber::sparse::avx2 {

#include <limber/linalg/native/kernels_table.hpp>

}  // namespace limber::sparse::avx2
#endif
