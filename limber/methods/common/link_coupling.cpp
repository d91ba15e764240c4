#include <limber/methods/common/link_coupling.hpp>

#include <algorithm>

namespace limber {
LinkCoupling::LinkCoupling(const Model& model) : model_(model) {
  settings_.gravity = model.scene->gravity;
  settings_.staggered.tolerance = 1e-6;
}

void LinkCoupling::begin(const State& state, const StepInput& in) {
  const rigid::Articulation& a = articulation();
  rigid::update_motion(a.mechanism, state.joint_q, state.joint_v, motion_);
  dofs_.clear();
  attachment_.clear();
  for (std::size_t i = 0; i < a.attachments.size(); ++i)
    for (Index k = 0; k < 3; ++k)
      if (const Index d = 3 * a.attachments[i].node + k; !in.fixed[at(d)]) {
        dofs_.push_back(d);
        attachment_.push_back(static_cast<Index>(i));
      }
  const MatX J = rigid::dense_J(a.mechanism, motion_);
  B_.resize(static_cast<Eigen::Index>(dofs_.size()), a.mechanism.velocities);
  bias_.resize(B_.rows());
  for (std::size_t d = 0; d < dofs_.size(); ++d) {
    const rigid::Attachment& p = a.attachments[at(attachment_[d])];
    const rigid::LinkMotion& l = motion_.links[at(p.link)];
    const Vec3 r = l.pose * p.x - l.com, axis = Vec3::Unit(dofs_[d] % 3);
    const rigid::Vec6 row = rigid::point_wrench(r, axis);  // measures the point's velocity along the axis
    const auto i = static_cast<Eigen::Index>(d);
    B_.row(i) = row.transpose() * J.middleRows<6>(6 * p.link);
    const Vec3 omega = l.phi.head<3>();
    bias_[i] = row.dot(l.bias) + axis.dot(omega.cross(omega.cross(r)));
  }
}

std::vector<Index> LinkCoupling::nodes() const {
  std::vector<Index> out;
  for (const rigid::Attachment& a : articulation().attachments) out.push_back(a.node);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::uint8_t> LinkCoupling::held(const std::vector<std::uint8_t>& fixed) const {
  std::vector<std::uint8_t> out = fixed;
  for (const Index d : dofs_) out[at(d)] = 1;
  return out;
}

VecX LinkCoupling::step(const VecX& g, const MatX& G, const StepInput& in, State& state) {
  const rigid::Articulation& a = articulation();
  rigid::External flesh;
  flesh.force = VecX::Zero(6 * a.mechanism.size());
  flesh.response = MatX::Zero(6 * a.mechanism.size(), a.mechanism.velocities);
  for (std::size_t d = 0; d < dofs_.size(); ++d) {
    const rigid::Attachment& p = a.attachments[at(attachment_[d])];
    const rigid::LinkMotion& l = motion_.links[at(p.link)];
    const rigid::Vec6 row = rigid::point_wrench(l.pose * p.x - l.com, Vec3::Unit(dofs_[d] % 3));
    const auto i = static_cast<Eigen::Index>(d);
    flesh.force.segment<6>(6 * p.link) += g[i] / in.h * row;
    flesh.response.middleRows<6>(6 * p.link) += row * G.row(i);
  }
  const std::vector<rigid::Contact> contacts =
      model_.contact.obstacles.empty()
          ? std::vector<rigid::Contact>()
          : rigid::find_contacts(a, model_.contact.obstacles, motion_, in.t, in.h);
  settings_.h = in.h;
  rigid::JointState joints{state.joint_q, state.joint_v, state.joint_friction};
  outcome_ = rigid::step_bisp(a.mechanism, a.surfaces, contacts, flesh, in.t, settings_, joints);
  state.joint_q = joints.q;
  state.joint_v = joints.v;
  state.joint_friction = joints.friction;
  return joints.v;
}

void LinkCoupling::place(State& state) const {
  const rigid::Articulation& a = articulation();
  rigid::Motion motion;
  rigid::update_motion(a.mechanism, state.joint_q, state.joint_v, motion);
  for (std::size_t d = 0; d < dofs_.size(); ++d) {
    const rigid::Attachment& p = a.attachments[at(attachment_[d])];
    const rigid::LinkMotion& l = motion.links[at(p.link)];
    const Vec3 x = l.pose * p.x;
    state.x[dofs_[d]] = x[dofs_[d] % 3];
    state.v[dofs_[d]] = rigid::point_velocity(l.phi, x - l.com)[dofs_[d] % 3];
  }
}

}  // namespace limber
