// Assembly over a part of a mesh: some of its elements, with weights, on nodes of their own; and from there
// to the unknowns of a velocity map. For methods whose unknowns change from step to step (rigid bodies,
// regions of full resolution) and for those that never look at the whole mesh (cubature).
#pragma once

#include <limber/fem/assemble.hpp>
#include <limber/linalg/velocity_map.hpp>

#include <memory>
#include <span>
#include <vector>

namespace limber::fem {

struct Plan {
  // The plan's elements, numbered as in the list, on the nodes that they use: everything that takes Elements
  // (assemble, assemble_force, multiply_stiffness, green_strains, pattern, ...) takes these.
  std::shared_ptr<const Elements> elements;
  std::vector<Index> nodes;  // of the mesh, ascending: the plan's node k is the mesh's nodes[k]

  // Positions or velocities of the plan's nodes from those of the mesh; and the other way, f += .
  VecX gather(const VecX& whole) const;
  void scatter_add(const VecX& own, VecX& whole) const;
};

// `list`: elements of `all`, ascending. `weights`: one for each of them, by which its energy, force,
// stiffness, mass and rest volume are multiplied; none: 1. Linear in the size of the list but for marks on
// the mesh's elements, nodes and blocks; nothing is sorted. A plan of all elements gives the bits of `all`.
Plan make_plan(const Elements& all, std::span<const Index> list, std::span<const double> weights = {});

// Energy, Gᵀf and GᵀKG of a plan's elements; G is a map of the plan's nodes.
struct ReducedAssembly {
  Assembled own;  // on the plan's nodes
  VecX f;
  ReducedMatrix K;
};
// `x`: of the whole mesh. `out.K` keeps its pattern between calls with the same plan and map; start with a
// new object when one of them changes.
void assemble(const Plan& plan, const VelocityMap& G, const VecX& x, std::span<const double> activation,
              ReducedAssembly& out, Projection projection = Projection::kPsd);

}  // namespace limber::fem
