// ConJac with links: attached nodes move with their bones, and the quasistatic nodes follow them as they
// follow dynamic nodes.
#pragma once

#include <limber/methods/common/link_coupling.hpp>
#include <limber/methods/conjac/dynamic_nodes.hpp>
#include <limber/methods/conjac/linearisation.hpp>

#include <vector>

namespace limber {

// Makes the attached nodes representatives that are always dynamic, after the chosen ones. Returns how many
// there are.
Index add_attached_nodes(const LinkCoupling& links, DynamicNodes& nodes);

// Line 6, Eq. 11 or the theta rule with bones (link_coupling.hpp): what is left of the flesh are its dynamic
// and attached degrees of freedom `dofs` and modes, and the attached ones are B u; and the twists of links
// that are touched, against those that were predicted: J u - phi_p.
struct BoneStep {
  const ReducedSystem& reduced;
  const std::vector<Index>& dofs;
  const VecX& mass;  // of all degrees of freedom [kg]
  const StepStart& start;
  const StepInput& in;
  const LinkTouches& touches;
};
struct BoneMotion {
  ReducedMotion motion;  // attached nodes go where their links went
  VecX bones;            // velocities of the attached nodes among them, zero elsewhere [m/s]
  VecX twists;           // what takes links that are touched out of Condensation::w
  double work = 0;       // that the links do on the flesh, attached or touched [J]
};
// Steps the joints of `state` from where they were at links.begin().
BoneMotion step_with_bones(const BoneStep& step, const Advance& how, LinkCoupling& links, State& state);

}  // namespace limber
