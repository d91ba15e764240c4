#include <limber/methods/condense/skeleton.hpp>

#include <limber/methods/common/link_coupling.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/scene/hold_motion.hpp>
#include <limber/sim/script.hpp>

#include <algorithm>
#include <cmath>

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

// Of all links, from where they began.
std::vector<BonePose> link_poses(const rigid::Articulation& a, const VecX& joints) {
  rigid::Motion now, start;
  const VecX still = VecX::Zero(a.v.size());
  rigid::update_motion(a.mechanism, joints, still, now);
  rigid::update_motion(a.mechanism, a.q, still, start);
  std::vector<BonePose> out;
  for (std::size_t l = 0; l < now.links.size(); ++l) {
    const rigid::Pose &p = now.links[l].pose, &s = start.links[l].pose;
    out.push_back(since_start({p.R, p.p}, {s.R, s.p}));
  }
  return out;
}

}  // namespace

Skeleton read_skeleton(const Model& model) {
  Skeleton out;
  out.bone_of_node.assign(at(model.nodes()), -1);
  for (const Hold& hold : model.holds) {
    for (const Index i : hold.nodes) out.bone_of_node[at(i)] = out.bones();  // later holds win
    out.constraint.push_back(hold.constraint);
  }
  if (!model.articulation) return out;
  for (const rigid::Attachment& a : model.articulation->attachments) {
    const auto known = std::find(out.link.begin(), out.link.end(), a.link);
    const auto bone =
        static_cast<Index>(out.constraint.size()) + static_cast<Index>(known - out.link.begin());
    if (known == out.link.end()) out.link.push_back(a.link);
    if (out.bone_of_node[at(a.node)] < 0) out.bone_of_node[at(a.node)] = bone;
  }
  return out;
}

std::vector<BonePose> bone_poses(const Model& model, const Skeleton& skeleton, double t, const VecX& joints) {
  const Scene& scene = *model.scene;
  std::vector<BonePose> out;
  for (const std::size_t c : skeleton.constraint)
    out.push_back(since_start(bone_pose(hold_pose(scene, c, t), scene.constraints[c].center),
                              bone_pose(hold_pose(scene, c, 0), scene.constraints[c].center)));
  if (skeleton.link.empty()) return out;
  const std::vector<BonePose> links = link_poses(*model.articulation, joints);
  for (const Index l : skeleton.link) out.push_back(links[at(l)]);
  return out;
}

std::vector<BonePose> bone_poses(const Model& model, const Skeleton& skeleton, double t, const VecX& joints,
                                 Index alone) {
  const Scene& scene = *model.scene;
  std::vector<BonePose> out(at(skeleton.bones()));
  const std::size_t keyed = skeleton.constraint.size();
  if (at(alone) < keyed) {
    const std::size_t moved = skeleton.constraint[at(alone)];
    const ConstraintSpec& spec = scene.constraints[moved];
    const BonePose pose = since_start(bone_pose(key_pose(spec.motion, spec.interpolation, t), spec.center),
                                      bone_pose(key_pose(spec.motion, spec.interpolation, 0), spec.center));
    for (std::size_t b = 0; b < keyed; ++b)
      for (auto c = static_cast<Index>(skeleton.constraint[b]); c >= 0; c = scene.constraints[at(c)].parent)
        if (at(c) == moved) out[b] = pose;
    return out;
  }
  // Against its parent: T_p^-1 T, in the coordinates of the rest shape.
  const std::vector<rigid::Joint>& tree = model.articulation->mechanism.joints;
  const std::vector<BonePose> links = link_poses(*model.articulation, joints);
  const Index moved = skeleton.link[at(alone) - keyed], parent = tree[at(moved)].parent_link;
  BonePose pose = links[at(moved)];
  if (parent >= 0) {
    const BonePose& p = links[at(parent)];
    pose = {p.R.transpose() * pose.R, p.R.transpose() * (pose.t - p.t)};
  }
  for (std::size_t b = 0; b < skeleton.link.size(); ++b)
    for (Index l = skeleton.link[b]; l >= 0; l = tree[at(l)].parent_link)
      if (l == moved) out[keyed + b] = pose;
  return out;
}

std::vector<VecX> joints_at(const Model& model, const std::vector<double>& times) {
  if (!model.articulation) return std::vector<VecX>(times.size());
  std::vector<VecX> out;
  LinkCoupling links(model);
  Script script(model);
  State state = initial_state(model);
  const double h = model.scene->h;
  for (const double t : times) {
    for (; state.t + 0.5 * h < t; state.t = static_cast<double>(state.step) * h) {
      const StepInput& in = script.at(state, h);
      links.begin(state, in);
      links.step(VecX::Zero(links.B().rows()), MatX::Zero(links.B().rows(), links.B().cols()), in, state);
      ++state.step;
    }
    out.push_back(state.joint_q);
  }
  return out;
}

}  // namespace limber::condense
