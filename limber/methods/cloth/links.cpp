#include <limber/methods/cloth/links.hpp>

#include <limber/rigid/link_obstacles.hpp>

namespace limber::cloth {

ClothLinks::ClothLinks(const Model& model, double friction)
    : model_(model),
      obstacles_(model.contact.obstacles),
      link_of_(model.contact.obstacles.size(), -1),
      shape_(model.contact.obstacles.size()) {
  settings_.gravity = model.scene->gravity;
  for (rigid::LinkObstacle& o : rigid::link_obstacles(model.articulation->mechanism, friction)) {
    obstacles_.push_back(std::move(o.obstacle));
    link_of_.push_back(o.link);
    shape_.push_back(o.pose);
  }
}

rigid::StepOutcome ClothLinks::advance(const VecX& force, rigid::JointState& joints) const {
  const rigid::Articulation& a = *model_.articulation;
  const std::vector<rigid::Contact> contacts =
      model_.contact.obstacles.empty()
          ? std::vector<rigid::Contact>()
          : rigid::find_contacts(a, model_.contact.obstacles, now_, t_, settings_.h);
  return rigid::step_bisp(a.mechanism, a.surfaces, contacts, {force, {}}, t_, settings_, joints);
}

void ClothLinks::predict(const State& state, double h) {
  const rigid::Mechanism& m = model_.articulation->mechanism;
  settings_.h = h;
  t_ = state.t;
  start_ = {state.joint_q, state.joint_v, state.joint_friction};
  rigid::update_motion(m, start_.q, start_.v, now_);
  rigid::JointState joints = start_;
  advance({}, joints);
  rigid::update_motion(m, joints.q, joints.v, then_);
  for (std::size_t k = 0; k < obstacles_.size(); ++k) {
    if (link_of_[k] < 0) continue;
    rigid::set_motion(now_.links[at(link_of_[k])].pose * shape_[k],
                      then_.links[at(link_of_[k])].pose * shape_[k], t_, h, obstacles_[k]);
  }
}

void ClothLinks::hold_attached(const std::vector<Vec3>& x, StepInput& in) {
  const auto& attachments = model_.articulation->attachments;
  attached_.clear();
  for (std::size_t k = 0; k < attachments.size(); ++k) {
    const rigid::Attachment& a = attachments[k];
    if (in.fixed[at(3 * a.node)] || in.fixed[at(3 * a.node + 1)] || in.fixed[at(3 * a.node + 2)]) continue;
    attached_.push_back(static_cast<Index>(k));
    const Vec3 to = then_.links[at(a.link)].pose * a.x;
    for (Index d = 0; d < 3; ++d) {
      in.fixed[at(3 * a.node + d)] = 1;
      in.fixed_velocity[3 * a.node + d] = (to[d] - x[at(a.node)][d]) / settings_.h;
    }
  }
}

void ClothLinks::step(const VecX& impulse, const std::vector<Touch>& touches, const std::vector<Vec3>& x,
                      State& state) {
  VecX force = VecX::Zero(6 * model_.articulation->mechanism.size());
  const auto press = [&](Index link, Index vertex, const Vec3& on_cloth) {
    const Vec3 r = x[at(vertex)] - now_.links[at(link)].com;
    force.segment<6>(6 * link) += rigid::point_wrench(r, -on_cloth / settings_.h);
  };
  for (const Index k : attached_) {
    const rigid::Attachment& a = model_.articulation->attachments[at(k)];
    press(a.link, a.node, node(impulse, a.node));
  }
  // A vertex that touches several things at once shares its impulse by what it has along their normals.
  for (std::size_t i = 0, next = 0; i < touches.size(); i = next) {
    const Vec3 all = node(impulse, touches[i].vertex);
    double sum = 0;
    for (next = i; next < touches.size() && touches[next].vertex == touches[i].vertex; ++next)
      sum += std::max(0.0, touches[next].n.dot(all));
    const double count = static_cast<double>(next - i);
    for (std::size_t k = i; k < next; ++k)
      if (const Index link = link_of_[at(touches[k].obstacle)]; link >= 0)
        press(link, touches[k].vertex,
              (sum > 0 ? std::max(0.0, touches[k].n.dot(all)) / sum : 1 / count) * all);
  }
  rigid::JointState joints = start_;
  outcome_ = advance(force, joints);
  state.joint_q = joints.q;
  state.joint_v = joints.v;
  state.joint_friction = joints.friction;
}

}  // namespace limber::cloth
