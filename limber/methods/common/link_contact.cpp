#include <limber/methods/common/link_contact.hpp>

#include <limber/core/error.hpp>
#include <limber/mesh/box_tree.hpp>
#include <limber/scene/scene.hpp>
#include <limber/sim/contact_model.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace limber {
namespace {

constexpr double kAllowedInLink = 0.1;  // of the size of the piece, as for obstacles

}  // namespace

std::optional<LinkContact> LinkContact::make(const Model& model) {
  if (!model.articulation || model.nodes() == 0) return std::nullopt;
  const rigid::Mechanism& m = model.articulation->mechanism;
  if (rigid::count_link_obstacles(m) == 0) return std::nullopt;
  LinkContact out;
  out.articulation_ = model.articulation;
  out.contact_ = model.contact;
  out.first_ = model.contact.obstacles.size();
  for (rigid::LinkObstacle& o : rigid::link_obstacles(m, model.scene->contact.friction)) {
    out.contact_.obstacles.push_back(std::move(o.obstacle));
    out.link_of_.push_back(o.link);
    out.shape_.push_back(o.pose);
  }
  set_touching_nodes(model.scene->contact, model.mesh, out.contact_);
  if (out.contact_.rule == FrictionRule::kFilter)
    throw Error(ErrorKind::kInput,
                "/contact/rule: \"filter\" changes the velocities of nodes after the step, and links that "
                "bodies touch would not know; expected \"anchored\", or links whose shapes have no "
                "\"contact\"");
  const std::size_t obstacles = out.contact_.obstacles.size();
  std::vector<std::uint8_t> hangs(model.pieces.size() * static_cast<std::size_t>(m.size()), 0);
  const auto place = [&](Index piece, Index link) -> std::uint8_t& {
    return hangs[at(piece) * static_cast<std::size_t>(m.size()) + at(link)];
  };
  for (const rigid::Attachment& a : model.articulation->attachments)
    place(model.piece_of_node[at(a.node)], a.link) = 1;
  out.apart_.assign(static_cast<std::size_t>(model.nodes()) * obstacles, 0);
  for (Index i = 0; i < model.nodes(); ++i)
    for (std::size_t k = 0; k < out.link_of_.size(); ++k)
      out.apart_[at(i) * obstacles + out.first_ + k] = place(model.piece_of_node[at(i)], out.link_of_[k]);
  if (std::all_of(hangs.begin(), hangs.end(), [](std::uint8_t flag) { return flag != 0; }))
    return std::nullopt;
  return out;
}

void LinkContact::move_shapes(const rigid::Motion& to) {
  for (std::size_t k = 0; k < link_of_.size(); ++k)
    rigid::set_motion(start_.links[at(link_of_[k])].pose * shape_[k],
                      to.links[at(link_of_[k])].pose * shape_[k], t_, h_, contact_.obstacles[first_ + k]);
}

void LinkContact::place(const State& state, double h) {
  const rigid::Mechanism& m = articulation_->mechanism;
  h_ = h;
  t_ = state.t;
  rigid::update_motion(m, state.joint_q, state.joint_v, start_);
  v_start_ = v_ = state.joint_v;
  VecX q = state.joint_q;
  rigid::integrate(m, v_, h, q);
  rigid::Motion end;
  rigid::update_motion(m, q, v_, end);
  move_shapes(end);
}

void LinkContact::begin(const Model& model, const State& state, double h) {
  place(state, h);
  if (state.step == 0) check_start(model, state);
}

void LinkContact::check_start(const Model& model, const State& state) const {
  const nlohmann::ordered_json::json_pointer option("/contact/overlap");
  const nlohmann::ordered_json& scene = *model.scene->resolved;
  if (scene.contains(option) && scene.at(option) == "accept") return;
  ContactStep contact;
  keep_apart(contact);
  contact.begin(contact_, {}, state.x, state.v, Vec3::Zero(), h_, t_);
  for (const Contact& c : contact.inside(state.x, t_)) {
    if (at(c.obstacle) < first_) continue;
    Box box;
    for (const Index i : model.pieces[at(model.piece_of_node[at(c.node)])].nodes) box.add(node(state.x, i));
    if (c.depth <= kAllowedInLink * box.size().norm()) continue;
    throw Error(ErrorKind::kInput,
                fmt::format("body \"{}\" begins inside the link \"{}\": node {} is {:.3g} m deep; move them "
                            "apart, attach it, or set /contact/overlap to \"accept\": contact then pushes it "
                            "out as it can",
                            model.bodies[at(model.body_of_node[at(c.node)])].name,
                            contact_.obstacles[at(c.obstacle)].name, c.node, c.depth));
  }
}

void LinkContact::moved(const State& state) {
  v_ = state.joint_v;
  rigid::Motion end;
  rigid::update_motion(articulation_->mechanism, state.joint_q, state.joint_v, end);
  move_shapes(end);
}

LinkTouches LinkContact::touches(const ContactStep& contact, const VecX& x, double remaining) const {
  LinkTouches out;
  const auto link_of = [&](const ContactLaw& law) {
    const auto o = static_cast<std::size_t>(law.contact.obstacle);
    return law.active && o >= first_ ? link_of_[o - first_] : -1;
  };
  for (const ContactLaw& law : contact.laws())
    if (const Index link = link_of(law); link >= 0) out.links.push_back(link);
  if (out.links.empty()) return out;
  std::sort(out.links.begin(), out.links.end());
  out.links.erase(std::unique(out.links.begin(), out.links.end()), out.links.end());
  const MatX J = rigid::dense_J(articulation_->mechanism, start_);
  out.J.resize(6 * static_cast<Eigen::Index>(out.links.size()), J.cols());
  for (std::size_t l = 0; l < out.links.size(); ++l)
    out.J.middleRows<6>(6 * static_cast<Eigen::Index>(l)) = J.middleRows<6>(6 * out.links[l]);
  out.predicted = out.J * v_;
  out.start = out.J * v_start_;
  for (const ContactLaw& law : contact.laws()) {
    const Index link = link_of(law);
    if (link < 0) continue;
    LinkTouch touch;
    touch.node = law.contact.node;
    touch.column = 6 * (std::lower_bound(out.links.begin(), out.links.end(), link) - out.links.begin());
    touch.stiffness = law.stiffness();
    // Action and reaction have the same line where the node is.
    const Vec3 r = Vec3(node(x, touch.node)) - start_.links[at(link)].com;
    touch.P << -rigid::skew(r), Mat3::Identity();
    touch.velocity = law.contact.velocity;
    touch.force = law.force(node(x, touch.node) + remaining * touch.velocity);
    out.touches.push_back(touch);
  }
  return out;
}

void LinkContact::report(const ContactStep& contact, const State& state, double h, StepReport& report) const {
  double count = 0, energy = 0;
  for (const Contact& c : contact.inside(state.x, state.t + h)) {
    if (static_cast<std::size_t>(c.obstacle) < first_) continue;
    ++count;
    energy += 0.5 * c.stiffness * c.depth * c.depth;
  }
  report.extra["link_contacts"] = count;
  report.extra["link_contact_energy"] = energy;  // of what presses [J]
}

std::vector<double> LinkContact::pressure(const Model& model, const State& state) const {
  LinkContact now = *this;
  now.place(state, 0);
  ContactStep contact;
  keep_apart(contact);
  contact.begin(now.contact_, {}, state.x, VecX::Zero(state.x.size()), Vec3::Zero(), 0, state.t);
  std::vector<double> force(static_cast<std::size_t>(model.nodes()), 0.0);
  for (const Contact& c : contact.inside(state.x, state.t)) force[at(c.node)] += c.stiffness * c.depth;
  return force;
}

}  // namespace limber
