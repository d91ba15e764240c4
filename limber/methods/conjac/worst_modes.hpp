// {"auto": n}: nodes where the slowest motion moves most that the nodes before them leave. Each of them lifts
// the lowest frequency that is missed; on a body that nothing holds the first few fix its rigid motions,
// which have the frequency zero.
#pragma once

#include <limber/linalg/cholesky.hpp>
#include <limber/sim/model.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace limber {

// As many of the `candidates` as `spread` has, of the uncut body at rest; or `spread` itself, well-spread
// nodes, where these miss less. `fixed`: 3n, 1 where a degree of freedom is held or dynamic already. The same
// for the same input, and for any number of threads; `spread` where factorisation or eigenvalues fail.
std::vector<Index> worst_mode_nodes(const Model& model, const std::vector<std::uint8_t>& fixed,
                                    std::span<const Index> candidates, const std::vector<Index>& spread,
                                    const CholeskyOptions& options);

}  // namespace limber
