// The kernels for any machine of the family that the compiler targets; limber/CMakeLists.txt has the options.
#include <limber/linalg/native/kernels.hpp>

namespace limber::sparse::base {

#include <limber/linalg/native/kernels_simd.hpp>
#include <limber/linalg/native/kernels_simd_solve.hpp>

extern const Kernels table;
const Kernels table{"base",
                    multiply,
                    factor,
                    solve_rows,
                    add_update,
                    forward,
                    backward,
                    one_side<ConstPanel>(),
                    one_side<RoundedPanel>()};

}  // namespace limber::sparse::base
