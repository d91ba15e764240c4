// Bodies that are moved by bones: weights by diffusion of heat, dual-quaternion and linear blend skinning of
// the whole volume, and the rotation that skinning gives each node.
#pragma once

#include <limber/fem/elements.hpp>

#include <memory>
#include <span>
#include <vector>

namespace limber {

// Where a bone has put what was at X: R X + t.
struct BonePose {
  Mat3 R = Mat3::Identity();
  Vec3 t = Vec3::Zero();  // [m]
};

// One column per bone: the temperature of the nodes, in equilibrium, when those that are fixed to the bone
// are kept at 1 and those of all others at 0 (volumetric heat diffusion; Baran and Popovic 2007 have it on
// the surface). `bone_of_node`: -1 where a node is fixed to none. Rows are in [0, 1] and sum to one. Throws
// Error(kInput) when some piece of the mesh has no node that is fixed to a bone.
MatX heat_weights(const fem::ElementInput& mesh, const std::shared_ptr<const BlockPattern>& pattern,
                  std::span<const Index> bone_of_node, Index bones);

enum class Blend { kDualQuaternion, kLinear };

// The skinned body: node i of the rest shape goes to x_i, and its surroundings are turned by R_i.
struct SkinnedBody {
  VecX x;               // 3n [m]
  std::vector<Mat3> R;  // pure rotations, of both kinds of blending
};

class BoneSkinning {
 public:
  // Weights below a millionth are left out.
  BoneSkinning(std::span<const Vec3> rest, const MatX& weights, Blend blend);

  // The same bits for any number of threads.
  void pose(std::span<const BonePose> bones, SkinnedBody& out) const;

  Index nodes() const { return static_cast<Index>(rest_.size()); }
  Index bones() const { return bones_; }
  // Of a node: the bones that move it, the heaviest first, and their weights.
  std::span<const Index> bones_of(Index i) const { return {bone_.data() + begin_[at(i)], entries(i)}; }
  std::span<const double> weights_of(Index i) const { return {weight_.data() + begin_[at(i)], entries(i)}; }

 private:
  std::size_t entries(Index i) const { return at(begin_[at(i) + 1] - begin_[at(i)]); }

  std::vector<Vec3> rest_;
  Blend blend_;
  Index bones_ = 0;
  std::vector<Index> begin_, bone_;  // of node i: entries begin_[i] to begin_[i + 1], the heaviest first
  std::vector<double> weight_;
};

}  // namespace limber
