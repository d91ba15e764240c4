// The bones of a model: what its scene holds for the whole run, and links that nodes are attached to.
#pragma once

#include <limber/reduction/bone_skinning.hpp>
#include <limber/sim/model.hpp>

namespace limber::condense {

struct Skeleton {
  std::vector<std::size_t> constraint;  // of each bone that keys move: in Scene::constraints
  std::vector<Index> link;              // of each further bone: in the model's mechanism
  std::vector<Index> bone_of_node;      // -1: fixed to none, free

  Index bones() const { return static_cast<Index>(constraint.size() + link.size()); }
};

// A node that is held and attached as well is held.
Skeleton read_skeleton(const Model& model);

// Where the bones are at time t, with joints at these positions (empty where there are no links).
std::vector<BonePose> bone_poses(const Model& model, const Skeleton& skeleton, double t, const VecX& joints);
// The same when this bone alone moves, against what carries it; those that it carries come along.
std::vector<BonePose> bone_poses(const Model& model, const Skeleton& skeleton, double t, const VecX& joints,
                                 Index alone);

// Positions of the joints at these times, ascending: at the end of the step that is nearest to each. Links
// drive the flesh and do not feel it, so that they can be moved beforehand. Empty where there are no links.
std::vector<VecX> joints_at(const Model& model, const std::vector<double>& times);

}  // namespace limber::condense
