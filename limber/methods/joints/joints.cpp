#include <limber/methods/joints/joints.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/common/link_report.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/rigid/sp.hpp>
#include <limber/sim/model.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace limber {
namespace {

// clang-format off
constexpr Entry kJointsEntries[] = {
    {.path = "/method[joints]/friction", .type = Type::kEnum, .fallback = "\"bisp\"", .values = "bisp sp", .text = "bisp: joint velocities are the unknowns (Algorithm 3.2); sp: every link floats and its pins are contacts (Algorithm 3.1), the baseline."},
    {.path = "/method[joints]/mu", .type = Type::kNumber, .range = ranges::at_least(0), .text = "Friction coefficient of all joints and loops that have a bearing, instead of their own."},
    {.path = "/method[joints]/tolerance", .type = Type::kNumber, .fallback = "1e-6", .range = ranges::inside(0, 1), .text = "Squared relative change of the reactions at which contact and friction agree."},
    {.path = "/method[joints]/max_iterations", .type = Type::kInteger, .fallback = "100", .range = ranges::within(1, 100000), .text = "Contact solves per step."},
    {.path = "/method[joints]/unknowns", .type = Type::kEnum, .fallback = "\"joints\"", .values = "joints tangents", .text = "Of friction: one per pin or slider, or one per contact point inside a joint (Eq. 3.2)."},
    {.path = "/method[joints]/equations", .type = Type::kEnum, .fallback = "\"exact\"", .values = "exact published", .text = "published: Eqs. 3.5 to 3.8 as printed, whose reactions lack part of the centripetal force."},
    {.path = "/method[joints]/loops", .type = Type::kEnum, .fallback = "\"project\"", .values = "project baumgarte", .text = "How loop closures stay closed: positions are projected after each step, or velocities pull gaps together."},
    {.path = "/method[joints]/loop_rate", .type = Type::kNumber, .unit = "1/s", .fallback = "5", .range = ranges::at_least(0), .text = "Rate at which baumgarte closes gaps."},
    {.path = "/method[joints]/stabilisation", .type = Type::kNumber, .fallback = "0.2", .range = ranges::within(0, 1), .text = "Share of the gap in a joint that one step of sp closes."},
};
// clang-format on

struct JointsOptions {
  bool maximal = false;        // sp instead of bisp
  double tolerance = 1e-6;     // squared relative change of the reactions
  int max_iterations = 100;    // contact solves per step
  bool tangents = false;       // unknowns of friction: contact points instead of joints
  bool published = false;      // Eqs. 3.5 to 3.8 as printed
  bool project = true;         // loops: positions are projected; else baumgarte
  double loop_rate = 5;        // [1/s]
  double stabilisation = 0.2;  // share of a gap that sp closes per step

  static JointsOptions read(const nlohmann::json& o) {
    return {o.at("friction") == "sp",
            o.at("tolerance"),
            o.at("max_iterations"),
            o.at("unknowns") == "tangents",
            o.at("equations") == "published",
            o.at("loops") == "project",
            o.at("loop_rate"),
            o.at("stabilisation")};
  }
};

// The links as sp moves them: each on its own.
struct JointsMemory {
  VecX link_x, link_phi;  // poses and velocities

  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("link_x", m.link_x);
    visitor("link_phi", m.link_phi);
  }
};

constexpr double kNoticeable = 1e-3;  // squared relative change of the reactions

class Joints final : public Stepper {
 public:
  Joints(const Scene& scene, const JointsOptions& o)
      : maximal_(o.maximal), share_(o.stabilisation), settings_(link_settings(scene)) {
    settings_.staggered.tolerance = o.tolerance;
    settings_.staggered.max_iterations = o.max_iterations;
    settings_.published = o.published;
    if (o.tangents) settings_.space = rigid::FrictionSpace::kMaximal;
    settings_.stabilisation.project = o.project;
    settings_.stabilisation.rate = o.project ? 0.0 : o.loop_rate;
  }

  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    clock_.reset();
    try {
      outcome_ = maximal_ ? step_links(model, state, in) : step_joints(model, state, in);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kSimulation) throw;
      return fail(report, e.what());
    }
    const rigid::Articulation& a = *model.articulation;
    report_links(a, outcome_, in.h, report);
    rigid::update_motion(a.mechanism, state.joint_q, state.joint_v, motion_);
    const rigid::Energy e = rigid::measure_energy(a.mechanism, motion_, state.joint_q, settings_.gravity);
    report.energy = {{"kinetic", e.kinetic}, {"elastic", e.springs}, {"gravity", e.gravity}};
    warn(in, report);
    report.dofs = maximal_ ? 6 * a.mechanism.size() : a.mechanism.velocities;
    report.phases = clock_.phases();
    return report;
  }

  MethodFields fields(const Model& model, const State&) const override {
    return link_fields(*model.articulation, outcome_);
  }

  std::string misfit(const Model& model, const State& state) const override {
    const JointsMemory* memory = memory_of<JointsMemory>(state);
    if (!memory || (memory->link_x.size() == 0 && memory->link_phi.size() == 0)) return {};
    const rigid::MaximalState links =
        rigid::to_maximal(model.articulation->mechanism, {model.articulation->q, model.articulation->v, {}});
    if (memory->link_x.size() != links.x.size())
      return wrong_size("link_x", memory->link_x.size(), links.x.size());
    if (memory->link_phi.size() != links.phi.size())
      return wrong_size("link_phi", memory->link_phi.size(), links.phi.size());
    if (!memory->link_x.allFinite() || !memory->link_phi.allFinite())
      return "the poses of the links are not finite";
    return {};
  }

 private:
  // A run in which no step settles looks like a calm mechanism: say so at the first such step, and at the
  // 10th, the 100th, ...
  void warn(const StepInput& in, StepReport& report) {
    const auto due = [](long& count, bool trouble) {
      if (!trouble) return false;
      long n = ++count;
      while (n % 10 == 0) n /= 10;
      return n == 1;
    };
    // Four corners that share a load in many ways can swing a little for ever; that moves nothing.
    if (due(unsettled_, !outcome_.converged && outcome_.change > kNoticeable))
      report.warnings.push_back(fmt::format(
          "friction did not settle in {} contact solves (change {:.2g}, {} step{} so far): its forces are "
          "not "
          "reliable; a smaller time step, a larger method/tolerance or method/max_iterations help",
          outcome_.iterations, outcome_.change, unsettled_, unsettled_ == 1 ? "" : "s"));
    if (due(unspun_, !outcome_.inertia_settled))
      report.warnings.push_back(fmt::format(
          "links turn too far in one step of {:.3g} s for their inertia to be solved ({} step{} so far): "
          "a smaller time step helps",
          in.h, unspun_, unspun_ == 1 ? "" : "s"));
  }

  std::vector<rigid::Contact> contacts(const Model& model, const rigid::JointState& joints,
                                       const StepInput& in) {
    auto phase = clock_.phase("contact");
    if (model.contact.obstacles.empty()) return {};
    const rigid::Articulation& a = *model.articulation;
    rigid::update_motion(a.mechanism, joints.q, joints.v, motion_);
    return rigid::find_contacts(a, model.contact.obstacles, motion_, in.t, in.h);
  }

  // Algorithm 3.2.
  rigid::StepOutcome step_joints(const Model& model, State& state, const StepInput& in) {
    const rigid::Articulation& a = *model.articulation;
    rigid::JointState joints{state.joint_q, state.joint_v, state.joint_friction};
    const std::vector<rigid::Contact> touching = contacts(model, joints, in);
    auto phase = clock_.phase("solve");
    settings_.h = in.h;
    rigid::StepOutcome out = rigid::step_bisp(a.mechanism, a.surfaces, touching, {}, in.t, settings_, joints);
    state.joint_q = joints.q;
    state.joint_v = joints.v;
    state.joint_friction = joints.friction;
    return out;
  }

  // Algorithm 3.1. The links are the state; the joints are read off them.
  rigid::StepOutcome step_links(const Model& model, State& state, const StepInput& in) {
    const rigid::Articulation& a = *model.articulation;
    rigid::JointState joints{state.joint_q, state.joint_v, {}};
    JointsMemory& memory = memory_of<JointsMemory>(state);
    rigid::MaximalState links{memory.link_x, memory.link_phi, state.joint_friction};
    if (links.x.size() == 0) links = rigid::to_maximal(a.mechanism, joints);
    const std::vector<rigid::Contact> touching = contacts(model, joints, in);
    auto phase = clock_.phase("solve");
    rigid::SpSettings settings;
    settings.h = in.h;
    settings.gravity = settings_.gravity;
    settings.staggered = settings_.staggered;
    settings.stabilisation = share_;
    rigid::StepOutcome out = rigid::step_sp(a.mechanism, a.surfaces, touching, in.t, settings, links);
    rigid::to_reduced(a.mechanism, links, joints);
    out.loop_error = rigid::joint_gap(a.mechanism, links);
    state.joint_q = joints.q;
    state.joint_v = joints.v;
    memory.link_x = links.x;
    memory.link_phi = links.phi;
    state.joint_friction = links.friction;
    return out;
  }

  const bool maximal_;  // sp instead of bisp
  const double share_;  // of a gap that sp closes per step
  rigid::StepSettings settings_;
  rigid::Motion motion_;
  rigid::StepOutcome outcome_;       // of the last step, for pictures
  long unsettled_ = 0, unspun_ = 0;  // steps, for the pace of warnings
  PhaseClock clock_;
};

}  // namespace

constinit const Method joints_method{
    .spec = {.name = "joints",
             .summary = "articulated links with friction inside their joints, and no soft bodies",
             .entries = kJointsEntries,
             .can = {.bodies = false, .links = true, .obstacles = true, .plane = false, .cuts = false}},
    .make = [](const Model& model, const nlohmann::json& options,
               const Preparation&) -> std::unique_ptr<Stepper> {
      const JointsOptions o = JointsOptions::read(options);
      const rigid::Mechanism& m = model.articulation->mechanism;
      if (o.maximal && !(m.springs.empty() && m.gears.empty()))
        throw Error(ErrorKind::kInput,
                    "/method/friction: \"sp\" knows neither springs between links nor gears (mimic joints); "
                    "use \"bisp\"");
      return std::make_unique<Joints>(*model.scene, o);
    },
    .memory = [] { return MethodMemory::of(JointsMemory{}, 0); },
    .prepared_with_loads = true};

}  // namespace limber
