// The kernels for AVX2 and FMA; limber/CMakeLists.txt has the options.
#if defined(__x86_64__)
#include <limber/linalg/native/kernels.hpp>

namespace limber::sparse::avx2 {

#include <limber/linalg/native/kernels_simd.hpp>
#include <limber/linalg/native/kernels_simd_solve.hpp>

extern const Kernels table;
const Kernels table{"avx2",
                    multiply,
                    factor,
                    solve_rows,
                    add_update,
                    forward,
                    backward,
                    one_side<ConstPanel>(),
                    one_side<RoundedPanel>()};

}  // namespace limber::sparse::avx2
#endif
