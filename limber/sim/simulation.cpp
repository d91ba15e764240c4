#include <limber/sim/simulation.hpp>

#include <limber/core/error.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/sim/contact_state.hpp>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {
namespace {

// Adds the links, and returns their mass; the centre of mass is not yet divided by it.
double measure_links(const Model& model, const State& state, Diagnostics& d) {
  const rigid::Mechanism& m = model.articulation->mechanism;
  rigid::Motion motion;
  rigid::update_motion(m, state.joint_q, state.joint_v, motion);
  const rigid::Energy e = rigid::measure_energy(m, motion, state.joint_q, model.scene->gravity);
  d.kinetic += e.kinetic;
  d.gravity += e.gravity;
  d.elastic += e.springs;
  d.momentum += rigid::momentum(m, motion);
  d.angular_momentum += rigid::angular_momentum(m, motion);
  rigid::Motion start;
  rigid::update_motion(m, model.articulation->q, state.joint_v, start);
  double mass = 0;
  for (std::size_t i = 0; i < m.links.size(); ++i) {
    mass += m.links[i].inertia.mass;
    d.center_of_mass += m.links[i].inertia.mass * motion.links[i].com;
    d.max_speed = std::max(d.max_speed, motion.links[i].phi.tail<3>().norm());
    d.max_displacement = std::max(d.max_displacement, (motion.links[i].com - start.links[i].com).norm());
  }
  return mass;
}

}  // namespace

Diagnostics measure(const Model& model, const State& state, const std::vector<double>& activation) {
  Diagnostics d;
  double mass = 0;
  for (Index i = 0; i < model.nodes(); ++i) {
    const double m = model.mass[3 * i];
    const Vec3 x = node(state.x, i), v = node(state.v, i);
    mass += m;
    d.kinetic += 0.5 * m * v.squaredNorm();
    d.gravity -= m * model.scene->gravity.dot(x);
    d.momentum += m * v;
    d.angular_momentum += m * x.cross(v);
    d.center_of_mass += m * x;
    d.max_displacement = std::max(d.max_displacement, (x - model.mesh.rest[i]).norm());
    d.max_speed = std::max(d.max_speed, v.norm());
  }
  if (model.articulation) mass += measure_links(model, state, d);
  if (mass > 0) d.center_of_mass /= mass;
  d.elastic = fem::elastic_energy(*model.elements, state.x, activation);
  d.contact = contact_energy(model, state);
  return d;
}

Simulation::Simulation(std::shared_ptr<const Scene> scene, MakeStepper make)
    : scene_(std::move(scene)),
      model_(std::make_unique<Model>(build_model(scene_))),
      make_(make),
      stepper_(make(*scene_)) {
  state_ = initial_state(*model_);
  notices_ = model_->notices;
}

void Simulation::restore(const State& state) {
  model_ = std::make_unique<Model>(build_model(scene_));
  state_ = initial_state(*model_);
  for (std::int64_t event : state.events_done) {
    if (event < 0 || event >= static_cast<std::int64_t>(scene_->events.size()))
      throw Error(ErrorKind::kInput,
                  fmt::format("the checkpoint names event {}, but the scene has {} events: it belongs to "
                              "another scene",
                              event, scene_->events.size()));
    apply_event(static_cast<std::size_t>(event), true);
  }
  if (state.x.size() != state_.x.size() || state.v.size() != state_.v.size())
    throw Error(ErrorKind::kInput,
                fmt::format("the checkpoint has {} nodes, the scene {}: it belongs to another scene",
                            state.x.size() / 3, state_.x.size() / 3));
  if (state.joint_q.size() != state_.joint_q.size() || state.joint_v.size() != state_.joint_v.size())
    throw Error(
        ErrorKind::kInput,
        fmt::format("the checkpoint has {} joint velocities, the scene {}: it belongs to another scene",
                    state.joint_v.size(), state_.joint_v.size()));
  state_ = state;
  stepper_ = make_(*scene_);
}

std::int64_t Simulation::total_steps() const {
  return static_cast<std::int64_t>(std::llround(std::ceil(scene_->end / scene_->h - 1e-6)));
}

bool Simulation::done() const { return state_.step >= total_steps(); }

void Simulation::apply_event(std::size_t event, bool quiet) {
  CutSummary cut;
  std::vector<Index> copy_of;
  auto next = std::make_unique<Model>(cut_model(*model_, event, cut, copy_of));
  const EventSpec& spec = scene_->events[event];
  const std::string what =
      spec.name.empty() ? fmt::format("event {}", event) : fmt::format("event {} ({})", event, spec.name);
  if (!quiet) {
    if (cut.faces == 0)
      notices_.push_back(fmt::format("{}: the cut separates nothing: no inner face lies along it", what));
    else
      notices_.push_back(fmt::format("{}: separated {} faces, {} new nodes, {} -> {} pieces", what, cut.faces,
                                     cut.new_nodes, cut.pieces_before, cut.pieces_after));
  }
  state_.events_done.push_back(static_cast<std::int64_t>(event));
  if (cut.faces == 0) return;
  State s = state_;
  s.epoch += 1;
  const Index n = next->nodes();
  s.x.resize(3 * n);
  s.v.resize(3 * n);
  for (Index i = 0; i < n; ++i) {
    node(s.x, i) = node(state_.x, copy_of[i]);
    node(s.v, i) = node(state_.v, copy_of[i]);
  }
  // Both copies of a node that held on to an obstacle hold on to it.
  const std::vector<Anchor> before = anchors_of(state_);
  std::vector<Anchor> anchors;
  for (Index i = 0; i < n && !before.empty(); ++i)
    for (std::size_t o = 0; o < model_->contact.obstacles.size(); ++o)
      if (const Anchor* a = find_anchor(before, copy_of[i], static_cast<Index>(o)))
        anchors.push_back({i, a->obstacle, a->point});
  store_anchors(anchors, s);
  state_ = std::move(s);
  model_ = std::move(next);
  stepper_ = make_(*scene_);
}

void Simulation::apply_due_events() {
  for (std::size_t e = 0; e < scene_->events.size(); ++e) {
    const auto& done = state_.events_done;
    if (std::find(done.begin(), done.end(), static_cast<std::int64_t>(e)) != done.end()) continue;
    if (scene_->events[e].time <= state_.t + 1e-6 * scene_->h) apply_event(e, false);
  }
}

StepReport Simulation::step() {
  apply_due_events();
  script_input(*model_, state_, scene_->h, input_);
  State next = state_;
  StepReport report = stepper_->step(*model_, next, input_);
  if (report.status == StepStatus::kOk) {
    for (Index i = 0; i < model_->nodes(); ++i) {
      if (node(next.x, i).allFinite() && node(next.v, i).allFinite()) {
        // A body does not travel a thousand times its size in one step unless the simulation has blown up.
        if ((node(next.x, i) - node(state_.x, i)).norm() < 1e3 * model_->size) continue;
        report.why = fmt::format("node {} moved {:.3g} m in one step: the simulation has blown up", i,
                                 (node(next.x, i) - node(state_.x, i)).norm());
      } else {
        report.why = fmt::format("node {} has a position or velocity that is not finite", i);
      }
      report.status = StepStatus::kFailed;
      break;
    }
  }
  if (report.status == StepStatus::kFailed)
    throw Error(ErrorKind::kSimulation,
                fmt::format("step {} (t = {:.6g} s) failed: {}; try a smaller time step (time/step), or more "
                            "damping ({})",
                            state_.step, state_.t, report.why,
                            scene_->method_options.contains("beta") ? "method/beta" : "damping/stiffness"));
  for (std::size_t c = 0; c < model_->activations.size(); ++c)
    report.extra["activation/" + model_->activations[c]] = input_.activation[c];
  for (const std::string& warning : report.warnings)
    notices_.push_back(fmt::format("step {} (t = {:.6g} s): {}", state_.step, state_.t, warning));
  next.step = state_.step + 1;
  next.t = static_cast<double>(next.step) * scene_->h;
  state_ = std::move(next);
  return report;
}

std::vector<std::string> Simulation::take_notices() { return std::exchange(notices_, {}); }

}  // namespace limber
