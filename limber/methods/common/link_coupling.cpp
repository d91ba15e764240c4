#include <limber/methods/common/link_coupling.hpp>

#include <limber/methods/common/link_report.hpp>

#include <algorithm>

namespace limber {
LinkCoupling::LinkCoupling(const Model& model) : model_(model), settings_(link_settings(*model.scene)) {
  settings_.staggered.tolerance = 1e-6;
}

void LinkCoupling::begin(const State& state, const StepInput& in) {
  const rigid::Articulation& a = articulation();
  start_ = {state.joint_q, state.joint_v, state.joint_friction};
  rigid::update_motion(a.mechanism, state.joint_q, state.joint_v, motion_);
  const auto attachments = static_cast<Index>(a.attachments.size());
  std::vector<std::vector<Index>> on_link(at(a.mechanism.size()));
  VecX x(3 * static_cast<Eigen::Index>(attachments));
  std::vector<std::uint8_t> held(static_cast<std::size_t>(x.size()), 0);
  dofs_.clear();
  place_.clear();
  for (Index i = 0; i < attachments; ++i) {
    const rigid::Attachment& p = a.attachments[at(i)];
    on_link[at(p.link)].push_back(i);
    node(x, i) = motion_.links[at(p.link)].pose * p.x;
    for (Index k = 0; k < 3; ++k) {
      if (in.fixed[at(3 * p.node + k)]) {
        held[at(3 * i + k)] = 1;
        continue;
      }
      dofs_.push_back(3 * p.node + k);
      place_.push_back(3 * i + k);
    }
  }
  attached_ = VelocityMap(attachments);
  links_.clear();
  for (Index l = 0; l < a.mechanism.size(); ++l)
    if (!on_link[at(l)].empty()) {
      attached_.add_rigid_body(on_link[at(l)], x, motion_.links[at(l)].com);
      links_.push_back(l);
    }
  attached_.hold(held);

  const MatX J = rigid::dense_J(a.mechanism, motion_);
  B_.resize(static_cast<Eigen::Index>(dofs_.size()), a.mechanism.velocities);
  VecX twists(attached_.unknowns()), v;
  for (Eigen::Index j = 0; j < B_.cols(); ++j) {
    for (std::size_t l = 0; l < links_.size(); ++l) {
      const auto phi =
          J.col(j).segment<6>(6 * links_[l]);  // angular velocity, then that of the centre of mass
      twists.segment<6>(6 * static_cast<Eigen::Index>(l)) << phi.tail<3>(), phi.head<3>();
    }
    attached_.multiply(twists, v);
    B_.col(j) = v(place_);
  }
  bias_.resize(B_.rows());
  for (std::size_t d = 0; d < dofs_.size(); ++d) {
    const rigid::Attachment& p = a.attachments[at(place_[d] / 3)];
    const rigid::LinkMotion& l = motion_.links[at(p.link)];
    const Vec3 r = l.pose * p.x - l.com, axis = Vec3::Unit(dofs_[d] % 3), omega = l.phi.head<3>();
    bias_[static_cast<Eigen::Index>(d)] =
        rigid::point_wrench(r, axis).dot(l.bias) + axis.dot(omega.cross(omega.cross(r)));
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

VecX LinkCoupling::step(const VecX& g, const MatX& G, const StepInput& in, State& state,
                        const Pushed& pushed) {
  const rigid::Articulation& a = articulation();
  // Impulses on attached nodes are wrenches on links.
  VecX load = VecX::Zero(3 * static_cast<Eigen::Index>(attached_.nodes())), wrench;
  const auto on_links = [&](const VecX& impulse, auto&& out) {
    load(place_) = impulse;
    attached_.multiply_transpose(load, wrench);
    for (std::size_t l = 0; l < links_.size(); ++l) {
      const auto w = wrench.segment<6>(6 * static_cast<Eigen::Index>(l));
      out.template segment<6>(6 * links_[l]) << w.tail<3>(), w.head<3>();
    }
  };
  rigid::External flesh;
  flesh.force = VecX::Zero(6 * a.mechanism.size());
  flesh.response = MatX::Zero(6 * a.mechanism.size(), a.mechanism.velocities);
  on_links(g / in.h, flesh.force);
  for (Eigen::Index j = 0; j < G.cols(); ++j) on_links(G.col(j), flesh.response.col(j));
  for (std::size_t l = 0; l < pushed.links.size(); ++l) {
    const auto row = 6 * static_cast<Eigen::Index>(l);
    flesh.force.segment<6>(6 * pushed.links[l]) += pushed.g.segment<6>(row) / in.h;
    flesh.response.middleRows<6>(6 * pushed.links[l]) += pushed.G.middleRows<6>(row);
  }
  const std::vector<rigid::Contact> contacts =
      model_.contact.obstacles.empty()
          ? std::vector<rigid::Contact>()
          : rigid::find_contacts(a, model_.contact.obstacles, motion_, in.t, in.h);
  settings_.h = in.h;
  rigid::JointState joints = start_;
  outcome_ = rigid::step_bisp(a.mechanism, a.surfaces, contacts, flesh, in.t, settings_, joints);
  state.joint_q = joints.q;
  state.joint_v = joints.v;
  state.joint_friction = joints.friction;
  return joints.v;
}

void LinkCoupling::place(const State& joints, VecX& x, VecX& v) const {
  const rigid::Articulation& a = articulation();
  rigid::Motion motion;
  rigid::update_motion(a.mechanism, joints.joint_q, joints.joint_v, motion);
  for (std::size_t d = 0; d < dofs_.size(); ++d) {
    const rigid::Attachment& p = a.attachments[at(place_[d] / 3)];
    const rigid::LinkMotion& l = motion.links[at(p.link)];
    const Vec3 point = l.pose * p.x;
    x[dofs_[d]] = point[dofs_[d] % 3];
    v[dofs_[d]] = rigid::point_velocity(l.phi, point - l.com)[dofs_[d] % 3];
  }
}

}  // namespace limber
