#include <limber/sim/simulation.hpp>

#include <limber/core/error.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/rigid/link_obstacles.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/contact_state.hpp>
#include <limber/sim/model_parts.hpp>
#include <limber/sim/overlap.hpp>
#include <limber/sim/topology.hpp>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {
namespace {

// Adds the links to what was measured of bodies of the given mass.
void add_links(const Model& model, const State& state, double mass, Diagnostics& d) {
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
  d.center_of_mass *= mass;
  for (std::size_t i = 0; i < m.links.size(); ++i) {
    mass += m.links[i].inertia.mass;
    d.center_of_mass += m.links[i].inertia.mass * motion.links[i].com;
    d.max_speed = std::max(d.max_speed, motion.links[i].phi.tail<3>().norm());
    d.max_displacement = std::max(d.max_displacement, (motion.links[i].com - start.links[i].com).norm());
  }
  if (mass > 0) d.center_of_mass /= mass;
}

bool asks_for_reactions(const Scene& scene) {
  const auto is = [](const std::string& name) { return name == "reaction"; };
  return std::any_of(scene.output.fields.begin(), scene.output.fields.end(), is) ||
         std::any_of(scene.probes.begin(), scene.probes.end(),
                     [&](const ProbeSpec& p) { return is(p.value); });
}

// What only the meshes tell; the rest has been checked when the scene was read.
void check_method_fits(const Model& model, const MethodSpec& method) {
  for (const Body& body : model.bodies) {
    if (moves_in_plane(body.kind) && !method.can.plane)
      throw Error(
          ErrorKind::kInput,
          fmt::format("/method/type: \"{}\" does not move plane bodies of triangles, and \"{}\" is one",
                      method.name, body.name));
    if (is_sheet(body.kind) && !method.can.cloth)
      throw Error(ErrorKind::kInput,
                  fmt::format("/method/type: \"{}\" does not move cloth, and \"{}\" is some", method.name,
                              body.name));
  }
  for (const BodySpec& body : model.scene->bodies)
    if (body.material.energy && !method.can.own_energies)
      throw Error(
          ErrorKind::kInput,
          fmt::format(
              "/method/type: \"{}\" knows the built-in materials only, and \"{}\" has an energy of its own",
              method.name, body.name));
  for (const BodySpec& body : model.scene->bodies)
    if (body.bending > 0 && !method.can.bending)
      throw Error(
          ErrorKind::kInput,
          fmt::format("/method/type: \"{}\" has no bending stiffness, and \"{}\" has {} N m; take the "
                      "method cloth, or leave \"bending\" out",
                      method.name, body.name, body.bending));
  for (const Obstacle& o : model.contact.obstacles)
    if ((o.shape == ObstacleShape::kWire || o.shape == ObstacleShape::kPoints) && !method.can.wires)
      throw Error(ErrorKind::kInput,
                  fmt::format("/method/type: \"{}\" does not see obstacles without thickness, and \"{}\" is "
                              "one; take a thin capsule, or the method cloth",
                              method.name, o.name));
}

// Every number of a scene that steps look at anew each time: nothing is made from it beforehand, unless the
// method says so.
bool keeps_model(const EventSpec& event) {
  return event.path == "/gravity" || event.path.starts_with("/gravity/") || event.path == "/damping" ||
         event.path.starts_with("/damping/");
}

void drop_guidance(Guidance& guidance, std::vector<std::string>& notices) {
  if (guidance.force.size() == 0 && guidance.fixed.empty()) return;
  guidance = {};
  notices.push_back(
      "the topology has changed, and nodes have other numbers: forces and held nodes that the program "
      "has set are dropped");
}

std::string event_name(const Scene& scene, std::size_t event) {
  const std::string& name = scene.events[event].name;
  return name.empty() ? fmt::format("event {}", event) : fmt::format("event {} ({})", event, name);
}

// What in a state from a file does not fit the model of its topology; empty: all fits.
std::string state_misfit(const Model& model, const State& state) {
  const auto differs = [](const char* what, auto found, auto expected) {
    return fmt::format("it has {} {}, the scene {}: it belongs to another scene", found, what, expected);
  };
  if (state.step < 0 || !(state.t >= 0 && std::isfinite(state.t)))
    return fmt::format("it is of step {}, t = {} s", state.step, state.t);
  if (state.x.size() != 3 * model.nodes() || state.v.size() != 3 * model.nodes())
    return differs("nodes", static_cast<double>(state.x.size()) / 3, model.nodes());
  const Eigen::Index q = model.articulation ? model.articulation->q.size() : 0,
                     v = model.articulation ? model.articulation->v.size() : 0;
  if (state.joint_q.size() != q) return differs("joint positions", state.joint_q.size(), q);
  if (state.joint_v.size() != v) return differs("joint velocities", state.joint_v.size(), v);
  if (!state.x.allFinite() || !state.v.allFinite()) return "a position or velocity is not finite";
  if (!state.joint_q.allFinite() || !state.joint_v.allFinite() || !state.joint_friction.allFinite())
    return "a number of the joints is not finite";
  if (!model.articulation && state.joint_friction.size() > 0)
    return "it has friction inside joints, but there are none";
  const std::size_t anchors = state.contact_pairs.size() / 2;
  if (state.contact_pairs.size() % 2 != 0 || state.contact_anchors.size() != 3 * anchors)
    return fmt::format(
        "\"contact_pairs\" has {} numbers and \"contact_anchors\" {}, expected two and three for "
        "each anchor",
        state.contact_pairs.size(), state.contact_anchors.size());
  const std::size_t obstacles =
      model.contact.obstacles.size() +
      (model.articulation
           ? static_cast<std::size_t>(rigid::count_link_obstacles(model.articulation->mechanism))
           : 0);
  for (std::size_t k = 0; k < anchors; ++k) {
    const std::int64_t node = state.contact_pairs[2 * k], obstacle = state.contact_pairs[2 * k + 1];
    if (node < 0 || node >= model.nodes() || obstacle < 0 || obstacle >= static_cast<std::int64_t>(obstacles))
      return fmt::format("\"contact_pairs\" names node {} and obstacle {}; there are {} and {}", node,
                         obstacle, model.nodes(), obstacles);
  }
  for (const double value : state.contact_anchors)
    if (!std::isfinite(value)) return "\"contact_anchors\" has a number that is not finite";
  return {};
}

}  // namespace

namespace {

Diagnostics measure_bodies(const Model& model, const State& state, const std::vector<double>& activation,
                           double& mass) {
  Diagnostics d;
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
  if (mass > 0) d.center_of_mass /= mass;
  d.elastic = fem::elastic_energy(*model.elements, state.x, activation);
  d.contact = contact_energy(model, state);
  return d;
}

}  // namespace

Diagnostics measure(const Model& model, const State& state, const std::vector<double>& activation) {
  double mass = 0;
  Diagnostics d = measure_bodies(model, state, activation, mass);
  if (model.articulation) add_links(model, state, mass, d);
  return d;
}

Diagnostics Simulation::measured(const std::vector<double>& activation) const {
  double mass = 0;
  Diagnostics d = measure_bodies(*model_, state(), activation, mass);
  stepper_->measure(*model_, state_, d);
  if (model_->articulation) add_links(*model_, state_, mass, d);
  return d;
}

Simulation::Simulation(std::shared_ptr<const Scene> scene, Preparation preparation)
    : scene_(std::make_shared<Scene>(*scene)),
      start_(std::make_shared<Scene>(*scene)),
      method_(&method_named(scene_->method)),
      preparation_(std::move(preparation)),
      base_(std::make_shared<Model>(build_model(scene_))),
      wants_reactions_(asks_for_reactions(*scene_)) {
  check_method_fits(*base_, method_->spec);
  state_ = initial_state(*base_);
  notices_ = base_->notices;
  for (std::string& notice : check_start(*base_, state_.x)) notices_.push_back(std::move(notice));
  use(base_, make_stepper(*base_));
}

std::unique_ptr<Stepper> Simulation::make_stepper(const Model& model) const {
  return method_->make(model, *scene_->method_options, preparation_);
}

// Steppers and scripts refer to the model, so that they go with it.
void Simulation::use(std::shared_ptr<Model> model, std::unique_ptr<Stepper> stepper) {
  script_ = std::make_unique<Script>(*model);
  used_guidance_ = false;
  stepper_ = std::move(stepper);
  model_ = std::move(model);
}

void Simulation::restore(const State& state) {
  std::string why;
  if (state.epoch < 0 || (state.epoch > 0) != (state.topology != nullptr))
    why = fmt::format("its topology has changed {} times, but it {} the topology", state.epoch,
                      state.topology ? "has a change of" : "lacks");
  for (const std::int64_t event : state.events_done)
    if (why.empty() && (event < 0 || event >= static_cast<std::int64_t>(scene_->events.size())))
      why = fmt::format("it names event {}, but the scene has {} events: it belongs to another scene", event,
                        scene_->events.size());
  // What events have set, here and there.
  auto scene = scene_;
  auto base = base_;
  std::int64_t remade = 0;
  const auto sets = [&](const State& s) {
    std::vector<std::int64_t> out;
    for (const std::int64_t e : s.events_done)
      if (start_->events[static_cast<std::size_t>(e)].type == "set") out.push_back(e);
    return out;
  };
  if (why.empty()) {
    for (const std::int64_t e : sets(state))
      remade += !keeps_model(start_->events[static_cast<std::size_t>(e)]);
    if (sets(state) != sets(state_)) {
      scene = std::make_shared<Scene>(*start_);
      for (const std::int64_t e : sets(state)) {
        const EventSpec& event = start_->events[static_cast<std::size_t>(e)];
        *scene = set_value(*scene, event.path, event.value);
      }
      base = std::make_shared<Model>(build_model(scene));
    }
    if (state.topology) why = misfit(*base, *state.topology);
  }
  auto model = base;
  if (why.empty() && state.topology) model = std::make_shared<Model>(with_topology(*base, *state.topology));
  if (why.empty()) why = state_misfit(*model, state);
  const Method& method = method_named(scene->method);
  std::unique_ptr<Stepper> stepper;
  if (why.empty()) {
    check_method_fits(*base, method.spec);
    stepper = method.make(*model, *scene->method_options, preparation_);
    why = stepper->misfit(*model, state);
  }
  if (!why.empty())
    throw Error(ErrorKind::kInput, fmt::format("the checkpoint does not fit the scene: {}", why));
  if (state.epoch != state_.epoch) guidance_ = {};
  // What uses the old model goes before it does.
  use(model, std::move(stepper));
  scene_ = std::move(scene);
  base_ = std::move(base);
  method_ = &method;
  remade_ = remade;
  state_ = state;
  before_.v.resize(0);
  behind_ = false;
}

std::int64_t Simulation::total_steps() const {
  return static_cast<std::int64_t>(std::llround(std::ceil(scene_->end / scene_->h - 1e-6)));
}

const State& Simulation::state() const {
  if (behind_) stepper_->expand(*model_, state_);
  behind_ = false;
  return state_;
}

void Simulation::set_motion(const VecX& x, const VecX& v) {
  if (stepper_->reduced())
    throw Error(
        ErrorKind::kUsage,
        fmt::format("the method \"{}\" moves unknowns of its own, from which the nodes follow: positions and "
                    "velocities of nodes cannot be set",
                    method_->spec.name));
  for (const VecX* of_nodes : {&x, &v}) {
    if (of_nodes->size() != state_.x.size())
      throw Error(ErrorKind::kUsage,
                  fmt::format("positions and velocities have {} and {} numbers, expected {} (three for "
                              "each node)",
                              x.size(), v.size(), state_.x.size()));
    if (!of_nodes->allFinite()) throw Error(ErrorKind::kUsage, "a position or velocity is not finite");
  }
  state_.x = x;
  state_.v = v;
  before_.v.resize(0);
  state_.memory = {};
  state_.contact_pairs.clear();
  state_.contact_anchors.clear();
}

void Simulation::set_guidance(Guidance guidance) {
  const Eigen::Index dofs = state_.x.size();
  const auto wrong = [](const std::string& why) { throw Error(ErrorKind::kUsage, why); };
  if (guidance.force.size() != 0 && guidance.force.size() != dofs)
    wrong(fmt::format("forces have {} numbers, expected {} (three for each node)", guidance.force.size(),
                      dofs));
  if (!guidance.force.allFinite()) wrong("a force is not finite");
  if (guidance.force.size() != 0 && !stepper_->nodal_input())
    wrong(fmt::format("the method \"{}\" does not look at nodes: pull at them by \"forces\" of the scene",
                      method_->spec.name));
  if (!guidance.fixed.empty()) {
    if (static_cast<Eigen::Index>(guidance.fixed.size()) != dofs || guidance.fixed_velocity.size() != dofs)
      wrong(fmt::format("held nodes have {} marks and {} velocities, expected {} (three for each node)",
                        guidance.fixed.size(), guidance.fixed_velocity.size(), dofs));
    if (!guidance.fixed_velocity.allFinite()) wrong("the velocity of a held node is not finite");
    if (stepper_->reduced())
      wrong(
          fmt::format("the method \"{}\" has chosen its unknowns for what the scene holds: hold nodes by "
                      "\"constraints\" of the scene",
                      method_->spec.name));
    for (Index i = 0; i < model_->nodes(); ++i)
      if (guidance.fixed[3 * at(i) + 2] && guidance.fixed_velocity[3 * i + 2] != 0 &&
          moves_in_plane(model_->bodies[at(model_->body_of_node[at(i)])].kind))
        wrong(fmt::format("node {} of a plane body cannot move along z", i));
    if (model_->articulation)
      for (const rigid::Attachment& a : model_->articulation->attachments)
        for (int k = 0; k < 3; ++k)
          if (guidance.fixed[3 * at(a.node) + static_cast<std::size_t>(k)])
            wrong(fmt::format("node {} is attached to a link, and cannot be held", a.node));
  }
  guidance_ = std::move(guidance);
}

const StepInput& Simulation::guide(const StepInput& script) {
  guided_input_ = script;  // into memory that is there already
  if (guidance_.force.size() > 0) guided_input_.force += guidance_.force;
  for (std::size_t d = 0; d < guidance_.fixed.size(); ++d) {
    if (!guidance_.fixed[d]) continue;
    guided_input_.fixed[d] = 1;
    guided_input_.fixed_velocity[static_cast<Eigen::Index>(d)] =
        guidance_.fixed_velocity[static_cast<Eigen::Index>(d)];
  }
  return guided_input_;
}

// For a step that fails after something has changed the state, as events do.
void Simulation::keep_start() {
  if (kept_) return;
  kept_ = copied_ ? std::move(before_) : state();
  copied_ = false;
}

void Simulation::take_back() {
  keep_start();
  const State start = std::move(*kept_);
  kept_.reset();
  if (start.epoch != state_.epoch || start.events_done != state_.events_done) return restore(start);
  state_ = start;
  before_.v.resize(0);
  behind_ = false;
}

void Simulation::apply(const TopologyChange& change) {
  keep_start();
  drop_guidance(guidance_, notices_);
  State next = state();
  carry_state(*model_, change, next);
  auto model = std::make_shared<Model>(with_topology(*base_, *next.topology));
  std::unique_ptr<Stepper> stepper = make_stepper(*model);
  if (change.memory.empty() && !next.memory.empty()) stepper->carry(*model, change, next);
  use(std::move(model), std::move(stepper));
  state_ = std::move(next);
}

void Simulation::apply_event(std::size_t event) {
  keep_start();
  state_.events_done.push_back(static_cast<std::int64_t>(event));
  try {
    if (scene_->events[event].type == "set")
      apply_setting(event);
    else
      cut(event);
  } catch (...) {
    state_.events_done.pop_back();
    throw;
  }
}

// A value of the scene becomes another one. The model is made anew where it depends on it, and the motion
// goes on in it; what the method remembers belongs to the old one.
void Simulation::apply_setting(std::size_t event) {
  const EventSpec& spec = scene_->events[event];
  Scene next = set_value(*scene_, spec.path, spec.value);
  const std::string what =
      event_name(*scene_, event) + ": " +
      (next.bodies.size() > scene_->bodies.size()
           ? fmt::format("the body \"{}\" comes", next.bodies.back().name)
           : fmt::format("{} is {}", spec.path, spec.value.size() < 60 ? spec.value : "another one"));
  if (keeps_model(spec)) {
    scene_->gravity = next.gravity;
    scene_->damping_mass = next.damping_mass;
    scene_->damping_stiffness = next.damping_stiffness;
    scene_->resolved = std::move(next.resolved);
    const bool guided_last = used_guidance_;
    script_ = std::make_unique<Script>(*model_);
    if (method_->prepared_with_loads || model_->articulation) {
      stepper_ = make_stepper(*model_);
      if (!stepper_->misfit(*model_, state()).empty()) state_.memory = {};
    }
    used_guidance_ = guided_last;
  } else {
    State state = this->state();
    auto scene = std::make_shared<Scene>(std::move(next));
    auto base = std::make_shared<Model>(build_model(scene));
    const Method& method = method_named(scene->method);
    check_method_fits(*base, method.spec);
    const bool more = base->nodes() > base_->nodes();
    if (more) add_bodies(*base_, *base, state);
    auto model = state.topology ? std::make_shared<Model>(with_topology(*base, *state.topology)) : base;
    if (more)
      for (std::string& notice :
           check_start(*model, state.x, state.t, static_cast<Index>(base_->bodies.size())))
        notices_.push_back(std::move(notice));
    std::unique_ptr<Stepper> stepper = method.make(*model, *scene->method_options, preparation_);
    state.memory = {};
    if (more) drop_guidance(guidance_, notices_);
    use(std::move(model), std::move(stepper));
    scene_ = std::move(scene);
    base_ = std::move(base);
    method_ = &method;
    state_ = std::move(state);
    ++remade_;
  }
  notices_.push_back(what);
}

void Simulation::cut(std::size_t event) {
  CutSummary cut;
  const std::size_t pieces = model_->pieces.size();
  const TopologyChange change = cut_of_event(*model_, event, cut);
  const std::string what = event_name(*scene_, event);
  if (cut.faces == 0) {
    notices_.push_back(fmt::format("{}: the cut separates nothing: no inner face lies along it", what));
    return;
  }
  apply(change);
  notices_.push_back(fmt::format("{}: separated {} faces, {} new nodes, {} -> {} pieces", what, cut.faces,
                                 cut.new_nodes, pieces, model_->pieces.size()));
}

// Those of the scene, then what the method asks for.
void Simulation::apply_due_changes() {
  for (std::size_t e = 0; e < scene_->events.size(); ++e) {
    const auto& done = state_.events_done;
    if (std::find(done.begin(), done.end(), static_cast<std::int64_t>(e)) != done.end()) continue;
    if (scene_->events[e].time <= state_.t + 1e-6 * scene_->h) apply_event(e);
  }
  if (const std::optional<TopologyChange> change = stepper_->change(*model_, state_)) {
    if (const std::string why = misfit(*model_, *change); !why.empty())
      fail("the method asks for a topology that is not one: " + why);
    apply(*change);
    if (!change->what.empty()) notices_.push_back(change->what);
  }
}

// Nodes that are not finite or went far beyond anything that makes sense.
void Simulation::watch_nodes(StepReport& report) const {
  // Mostly all is well, which three passes without branches tell; a sum is not finite if one of its terms is
  // not.
  if (model_->nodes() == 0) return;
  const double far = (state_.x - before_.x).lpNorm<Eigen::Infinity>();
  if (far < 0.5e3 * model_->size && std::isfinite(state_.x.sum()) && std::isfinite(state_.v.sum())) return;
  for (Index i = 0; i < model_->nodes(); ++i) {
    if (node(state_.x, i).allFinite() && node(state_.v, i).allFinite()) {
      // A body does not travel a thousand times its size in one step unless the simulation has blown up.
      const double way = (node(state_.x, i) - node(before_.x, i)).norm();
      if (way < 1e3 * model_->size) continue;
      report.why = fmt::format("node {} moved {:.3g} m in one step: the simulation has blown up", i, way);
    } else {
      report.why = fmt::format("node {} has a position or velocity that is not finite", i);
    }
    report.status = StepStatus::kFailed;
    return;
  }
}

StepFailure::StepFailure(std::int64_t at_step, double at_t, std::string what, std::string try_this)
    : Error(ErrorKind::kSimulation,
            fmt::format("step {} (t = {:.6g} s) failed: {}; {}", at_step, at_t, what, try_this)),
      step(at_step),
      t(at_t),
      why(std::move(what)),
      remedy(std::move(try_this)) {}

void Simulation::fail(const std::string& why) const {
  throw StepFailure(state_.step, state_.t, why, std::string(method_->spec.remedy));
}

StepReport Simulation::step_part(double h) {
  apply_due_changes();
  const bool nodal = stepper_->nodal_input();
  if (behind_ && nodal && script_->needs_positions(state_.t, h)) state();
  const StepInput& script = script_->at(state_, h, nodal);
  used_guidance_ = guided();
  const StepInput& input = used_guidance_ ? guide(script) : script;
  const bool reduced = stepper_->reduced();
  if (!reduced && !std::exchange(copied_, false)) before_ = state_;  // into memory that is there already
  if (reduced && wants_reactions_) before_.v = state().v;
  StepReport report;
  try {
    report = stepper_->step(*model_, state_, input);
  } catch (...) {
    if (!reduced) std::swap(state_, before_);
    before_.v.resize(0);
    throw;
  }
  if (!reduced && report.status == StepStatus::kOk) watch_nodes(report);
  if (report.status == StepStatus::kFailed) {
    if (!reduced) std::swap(state_, before_);
    before_.v.resize(0);
    fail(report.why);
  }
  behind_ = reduced;
  return report;
}

namespace {

// The report of a step from those of its parts: counts and times add up, the rest is that of the last one.
void add_part(const StepReport& part, StepReport& sum) {
  StepReport next = part;
  next.iterations += sum.iterations;
  next.inverted = std::max(part.inverted, sum.inverted);
  for (const auto& [name, count] : sum.fallbacks) next.fallbacks[name] += count;
  next.warnings.insert(next.warnings.begin(), sum.warnings.begin(), sum.warnings.end());
  for (const auto& [name, seconds] : sum.phases) {
    const auto same = std::find_if(next.phases.begin(), next.phases.end(),
                                   [&, &phase = name](const auto& p) { return p.first == phase; });
    if (same != next.phases.end())
      same->second += seconds;
    else
      next.phases.emplace_back(name, seconds);
  }
  sum = std::move(next);
}

}  // namespace

StepReport Simulation::step() {
  copied_ = !stepper_->reduced();
  if (copied_) before_ = state_;
  const double start = state_.t;
  StepReport report;
  try {
    const int parts = stepper_->parts(*model_, state_);
    if (parts > 1) keep_start();
    for (int p = 0; p < parts; ++p) {
      StepReport part = step_part(scene_->h / parts);
      if (p == 0)
        report = std::move(part);
      else
        add_part(part, report);
      if (p + 1 < parts) state_.t = start + (p + 1) * scene_->h / parts;
    }
  } catch (...) {
    take_back();
    throw;
  }
  kept_.reset();
  const StepInput& input = used_guidance_ ? guided_input_ : script_->input();
  for (std::size_t c = 0; c < model_->activations.size(); ++c)
    report.extra["activation/" + model_->activations[c]] = input.activation[c];
  if (report.inverted > 0 && !std::exchange(inverted_, true))
    notices_.push_back(fmt::format(
        "step {} (t = {:.6g} s): {} element{} turned inside out; steps.csv counts them (inverted)",
        state_.step, state_.t, report.inverted, report.inverted == 1 ? " is" : "s are"));
  for (const std::string& warning : report.warnings)
    notices_.push_back(fmt::format("step {} (t = {:.6g} s): {}", state_.step, state_.t, warning));
  ++state_.step;
  state_.t = static_cast<double>(state_.step) * scene_->h;
  return report;
}

std::size_t Simulation::add_force(ForceSpec force) {
  if (force.from < state_.t - 1e-6 * scene_->h)
    throw Error(ErrorKind::kUsage,
                fmt::format("a force that begins at {} s comes too late at {} s", force.from, state_.t));
  if (!force.force_per_node.value.isZero(0) || force.force_per_node.varies() || force.acceleration.varies())
    throw Error(ErrorKind::kUsage, "a force that comes during a run is one for all its nodes, or a spring");
  Load load{scene_->forces.size(), select_nodes(*base_, force.nodes, force.body), 0.0, {}};
  const auto add = [&](Model& model, Load own) {
    for (const Index i : own.nodes) own.mass += model.mass[3 * i];
    model.loads.push_back(std::move(own));
  };
  if (model_ != base_) {
    Load here = load;
    here.nodes = state_.topology->nodes.apply(load.nodes, base_->nodes());
    add(*model_, std::move(here));
  }
  add(*base_, std::move(load));
  scene_->forces.push_back(force);
  start_->forces.push_back(std::move(force));
  script_ = std::make_unique<Script>(*model_);
  return scene_->forces.size() - 1;
}

void Simulation::add_event(EventSpec event) {
  if (event.time < state_.t - 1e-6 * scene_->h)
    throw Error(ErrorKind::kUsage,
                fmt::format("an event of {} s comes too late at {} s", event.time, state_.t));
  if (event.type == "set") set_value(*scene_, event.path, event.value);  // throws
  start_->events.push_back(event);
  scene_->events.push_back(std::move(event));
}

std::size_t Simulation::withdraw_events(std::size_t first) {
  std::size_t count = 0;
  const auto& done = state_.events_done;
  while (scene_->events.size() > first &&
         std::find(done.begin(), done.end(), static_cast<std::int64_t>(scene_->events.size()) - 1) ==
             done.end()) {
    scene_->events.pop_back();
    start_->events.pop_back();
    ++count;
  }
  return count;
}

void Simulation::pull(std::size_t force, double t, const Vec3& point) {
  if (force >= scene_->forces.size() || !scene_->forces[force].spring)
    throw Error(ErrorKind::kUsage, fmt::format("force {} has no spring", force));
  if (!point.allFinite()) throw Error(ErrorKind::kUsage, "a spring is to pull to a point that is not finite");
  for (Scene* scene : {scene_.get(), start_.get()}) {
    auto& keys = scene->forces[force].spring->keys;
    if (!keys.empty() && t <= keys.back().first)
      throw Error(ErrorKind::kUsage, fmt::format("the spring has a key of {} s already", keys.back().first));
    // A point that stays needs its first and last key only.
    const std::size_t n = keys.size();
    if (n >= 2 && keys[n - 1].second == point && keys[n - 2].second == point)
      keys.back().first = t;
    else
      keys.emplace_back(t, point);
  }
}

void Simulation::release(std::size_t force) {
  if (force >= scene_->forces.size())
    throw Error(ErrorKind::kUsage, fmt::format("there is no force {}", force));
  scene_->forces[force].until = start_->forces[force].until = state_.t;
}

std::vector<std::string> Simulation::take_notices() { return std::exchange(notices_, {}); }

}  // namespace limber
