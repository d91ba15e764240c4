// The bones of a model: what its scene holds for the whole run.
#pragma once

#include <limber/reduction/bone_skinning.hpp>
#include <limber/sim/model.hpp>

namespace limber::condense {

struct Skeleton {
  std::vector<std::size_t> constraint;  // of each bone: in Scene::constraints
  std::vector<Index> bone_of_node;      // -1: fixed to none, free

  Index bones() const { return static_cast<Index>(constraint.size()); }
};

Skeleton read_skeleton(const Model& model);

// Where the bones are at time t.
std::vector<BonePose> bone_poses(const Scene& scene, const Skeleton& skeleton, double t);
// The same when this bone alone follows its keys; those that it carries come along.
std::vector<BonePose> bone_poses(const Scene& scene, const Skeleton& skeleton, double t, Index alone);

}  // namespace limber::condense
