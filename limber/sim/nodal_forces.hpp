// Which forces hold bodies: reactions of pins, scripted sets and links, and contact, from the balance of
// forces at every node,
//
//   reaction = M (v1 - v0)/h + a M v1 + b K v1 - f(x1) - f_ext - M g - contact      on what is held [N],
//
// with elastic forces f, Rayleigh damping and contact of the end of the step. The same for every method; a
// body at rest is held by what it weighs, exactly. The sum over free nodes of the same terms (`unbalanced`)
// is zero where a method solves for every node at the end of the step, and says what is missing where it does
// not (reduced unknowns, quasistatic nodes, one linear solve a step).
#pragma once

#include <limber/sim/model.hpp>

#include <string>
#include <vector>

namespace limber {

struct NodalForces {
  VecX reaction;  // on degrees of freedom that are held, zero elsewhere, 3n [N]
  VecX contact;   // of obstacles and other bodies, 3n [N]
  Vec3 unbalanced = Vec3::Zero();
  // Sums [N], and moments about the hold's centre, where it is now [N m].
  struct Sum {
    Vec3 force = Vec3::Zero(), moment = Vec3::Zero();
  };
  std::vector<Sum> holds;   // of each of Model::holds; a node that several hold counts for the last of them
  std::vector<Vec3> links;  // of each link, on the nodes that hang on it
  std::vector<Vec3> obstacles;  // of each obstacle, on all bodies
};

// `before`: velocities at the start of the step that `in` is of. `known`: what only the method knows.
NodalForces nodal_forces(const Model& model, const State& state, const VecX& before, const StepInput& in,
                         const StepForces& known);

// Columns of steps.csv for `reaction` (holds, links, unbalanced) or `contact_force`, and their values.
std::vector<std::string> reaction_columns(const Model& model);
std::vector<double> reaction_values(const Model& model, const NodalForces& forces);
std::vector<std::string> contact_columns(const Model& model);
std::vector<double> contact_values(const NodalForces& forces);

}  // namespace limber
