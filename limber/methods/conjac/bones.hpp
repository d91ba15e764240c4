// ConJac with links: attached nodes move with their bones, and the quasistatic nodes follow them as they
// follow dynamic nodes.
#pragma once

#include <limber/methods/common/link_coupling.hpp>
#include <limber/methods/conjac/dynamic_nodes.hpp>
#include <limber/methods/conjac/reduced_step.hpp>

#include <vector>

namespace limber {

// Makes the attached nodes representatives, after the chosen ones. Returns how many there are.
Index add_attached_nodes(const LinkCoupling& links, DynamicNodes& nodes);

// Line 6, Eq. 11 with bones (link_coupling.hpp): what is left of the flesh are its dynamic and attached
// degrees of freedom `dofs` and modes, and the attached ones are B u. `mass`: of all degrees of freedom
// [kg]. Steps the joints of `state`.
ReducedMotion step_with_bones(const ReducedSystem& reduced, const std::vector<Index>& dofs, double beta,
                              const VecX& mass, const StepInput& in, LinkCoupling& links, State& state);

}  // namespace limber
