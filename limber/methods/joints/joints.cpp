#include <limber/methods/joints/joints.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/common/link_report.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/rigid/sp.hpp>
#include <limber/sim/model.hpp>

namespace limber {
namespace {

class Joints final : public Stepper {
 public:
  explicit Joints(const Scene& scene) {
    const nlohmann::json& o = scene.method_options;
    maximal_ = o.at("friction") == "sp";
    settings_.gravity = scene.gravity;
    settings_.staggered.tolerance = o.at("tolerance");
    settings_.staggered.max_iterations = o.at("max_iterations");
    settings_.published = o.at("equations") == "published";
    if (o.at("unknowns") == "tangents") settings_.space = rigid::FrictionSpace::kMaximal;
    settings_.stabilisation.project = o.at("loops") == "project";
    settings_.stabilisation.rate = settings_.stabilisation.project ? 0.0 : o.at("loop_rate").get<double>();
    share_ = o.at("stabilisation");
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
    report.dofs = maximal_ ? 6 * a.mechanism.size() : a.mechanism.velocities;
    report.phases = clock_.phases();
    return report;
  }

  MethodFields fields(const Model& model, const State&) const override {
    return link_fields(*model.articulation, outcome_);
  }

 private:
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
    rigid::MaximalState links{state.link_x, state.link_phi, state.joint_friction};
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
    state.link_x = links.x;
    state.link_phi = links.phi;
    state.joint_friction = links.friction;
    return out;
  }

  bool maximal_ = false;  // sp instead of bisp
  double share_ = 0.2;    // of a gap that sp closes per step
  rigid::StepSettings settings_;
  rigid::Motion motion_;
  rigid::StepOutcome outcome_;  // of the last step, for pictures
  PhaseClock clock_;
};

}  // namespace

std::unique_ptr<Stepper> make_joints(const Scene& scene) { return std::make_unique<Joints>(scene); }

}  // namespace limber
