#include <limber/methods/condense/skeleton.hpp>

#include <limber/scene/hold_motion.hpp>

namespace limber::condense {
namespace {

BonePose bone_pose(const KeyPose& pose, const Vec3& center) {
  return {pose.R, center + pose.translation - pose.R * center};
}

// From where a hold began: keys may begin elsewhere than in the rest shape.
BonePose since_start(const BonePose& now, const BonePose& start) {
  const Mat3 R = now.R * start.R.transpose();
  return {R, now.t - R * start.t};
}

}  // namespace

Skeleton read_skeleton(const Model& model) {
  Skeleton out;
  out.bone_of_node.assign(at(model.nodes()), -1);
  for (const Hold& hold : model.holds) {
    for (const Index i : hold.nodes) out.bone_of_node[at(i)] = out.bones();  // later holds win
    out.constraint.push_back(hold.constraint);
  }
  return out;
}

std::vector<BonePose> bone_poses(const Scene& scene, const Skeleton& skeleton, double t) {
  std::vector<BonePose> out;
  for (const std::size_t c : skeleton.constraint)
    out.push_back(since_start(bone_pose(hold_pose(scene, c, t), scene.constraints[c].center),
                              bone_pose(hold_pose(scene, c, 0), scene.constraints[c].center)));
  return out;
}

std::vector<BonePose> bone_poses(const Scene& scene, const Skeleton& skeleton, double t, Index alone) {
  const std::size_t moved = skeleton.constraint[at(alone)];
  const ConstraintSpec& spec = scene.constraints[moved];
  const BonePose pose = since_start(bone_pose(key_pose(spec.motion, spec.interpolation, t), spec.center),
                                    bone_pose(key_pose(spec.motion, spec.interpolation, 0), spec.center));
  std::vector<BonePose> out(skeleton.constraint.size());
  for (std::size_t b = 0; b < out.size(); ++b)
    for (auto c = static_cast<Index>(skeleton.constraint[b]); c >= 0; c = scene.constraints[at(c)].parent)
      if (at(c) == moved) out[b] = pose;
  return out;
}

}  // namespace limber::condense
