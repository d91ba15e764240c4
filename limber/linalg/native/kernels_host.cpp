// The kernels for the instruction set that the whole library is compiled for.
#include <limber/linalg/native/kernels.hpp>

namespace limber::sparse {
namespace host {
#include <limber/linalg/native/kernels_simd.hpp>
#include <limber/linalg/native/kernels_simd_solve.hpp>
const Kernels table{"host",   multiply,       factor,       solve_rows,    add_update,     forward,
                    backward, forward_pivots, forward_rows, backward_rows, backward_pivots};
}  // namespace host

const Kernels& kernels() { return host::table; }

}  // namespace limber::sparse
