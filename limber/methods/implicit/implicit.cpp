#include <limber/methods/implicit/implicit.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/implicit/implicit_stage.hpp>
#include <limber/methods/implicit/newton_solvers.hpp>
#include <limber/methods/implicit/options.hpp>
#include <limber/sim/contact_state.hpp>
#include <limber/sim/model.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {
namespace {

constexpr int kContactRevisions = 2, kFrictionRevisions = 4;
const double kAlpha = 1 - std::sqrt(0.5);  // of SDIRK2, (2 - sqrt 2)/2

class Implicit final : public Stepper {
 public:
  Implicit(const Model& model, const ImplicitOptions& options)
      : integrator_(options.integrator),
        max_halvings_(options.max_halvings),
        nearest_(options.stage.nearest),
        solver_(options.solver, {model.scene->solver, model.scene->ordering}),
        stage_(model, options.stage) {}

  MethodFields fields(const Model& model, const State& state) const override {
    MethodFields f;
    if (!model.contact.empty()) f.node["contact"] = contact_pressure(model, state);
    return f;
  }

  // Those of the stage that ended the last step; before one there is none.
  StepForces forces(const Model&, const State& state) const override {
    return {integrator_ != Integrator::kQuasistatic, true,
            posed_ ? stage_.contact_forces(state.x) : std::vector<ContactForce>()};
  }

  std::string misfit(const Model& model, const State& state) const override {
    const ImplicitMemory* memory = memory_of<ImplicitMemory>(state);
    return memory ? implicit_misfit(*memory, model.nodes(), model.activations.size()) : std::string();
  }

  // What was learnt about factors stays good, and node numbers that contacts coupled do where nodes keep
  // theirs (a cut adds to them).
  void carry(const Model&, const TopologyChange& change, State& state) const override {
    ImplicitMemory* memory = state.memory.get<ImplicitMemory>();
    if (!memory) return;
    memory->x_prev.resize(0);
    memory->v_prev.resize(0);
    const auto stays = [&](std::int64_t i) {
      return i < 0 || (i < change.nodes.rows() && change.nodes.stays(static_cast<Index>(i)));
    };
    if (!std::all_of(memory->coupled_nodes.begin(), memory->coupled_nodes.end(), stays))
      memory->coupled_nodes.clear();
    memory->factor = without_factor(memory->factor);
    state.memory.set_epoch(state.epoch);
  }

  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    clock_.reset();
    ImplicitMemory& kept = memory(state);
    stage_.set_coupled(kept.coupled_nodes);
    tunnelled_.clear();
    friction_revisions_ = 0;
    followed_ = stage_.followed();
    total_ = {};
    solver_.begin_step();
    const VecX x = state.x, v = state.v;
    const bool ok = try_step(state, in, 0);
    report.dofs = stage_.free_dofs();
    report.iterations = total_.newton + total_.quasi;
    report.residual = total_.residual;
    report.inverted = total_.inverted;
    report.symbolic_analyses = solver_.analyses();
    report.fallbacks = total_.fallbacks;
    report.extra = {{"newton_iterations", total_.newton},
                    {"quasi_iterations", total_.quasi},
                    {"pcg_iterations", total_.pcg},
                    {"factorizations", total_.factorizations},
                    {"force_evaluations", total_.evaluations}};
    if (!ok) return fail(report, total_.why);
    report_contacts(model, state, in, report);
    if (std::isfinite(total_.elastic)) report_energy(model, state, total_.elastic, report);
    if (integrator_ == Integrator::kBdf2) {
      kept.x_prev = x;
      kept.v_prev = v;
    }
    kept.coupled_nodes = stage_.coupled();
    solver_.end_step(kept.factor);
    report.phases = clock_.phases();
    return report;
  }

 private:
  static ImplicitMemory& memory(State& state) { return memory_of<ImplicitMemory>(state); }

  // A step of in.h; when it fails, two of half the length, and so on. Held nodes move at constant velocity
  // within a step, so that the parts of a step end where the step would have.
  bool try_step(State& state, const StepInput& in, int halvings) {
    const VecX x = state.x, v = state.v;
    if (plain_step(state, in, halvings)) return true;
    state.x = x;
    state.v = v;
    if (integrator_ == Integrator::kBaraff || halvings == max_halvings_) {
      if (halvings > 0)
        total_.why += fmt::format("; the step had been halved {} time{}, to {:.3g} s", halvings,
                                  halvings == 1 ? "" : "s", in.h);
      return false;
    }
    ++total_.fallbacks["halved_step"];
    StepInput half = in;
    half.h = 0.5 * in.h;
    if (!try_step(state, half, halvings + 1)) return false;
    half.t = in.t + half.h;
    return try_step(state, half, halvings + 1);
  }

  bool plain_step(State& state, const StepInput& in, int halvings) {
    switch (integrator_) {
      case Integrator::kBaraff:
        return baraff(state, in);
      case Integrator::kSdirk2:
        return sdirk2(state, in);
      case Integrator::kBdf2:
        // The history is one whole step back: parts of a step, and steps without it, are SDIRK2's.
        if (halvings > 0 || memory(state).x_prev.size() != state.x.size()) return sdirk2(state, in);
        return one_stage(state, in, {2.0 / 3 * in.h, 4.0 / 3, -1.0 / 3, false});
      case Integrator::kBdf1:
        return one_stage(state, in, {in.h, 1, 0, false});
      case Integrator::kQuasistatic:
        return one_stage(state, in, {in.h, 1, 0, true});
    }
    return false;
  }

  // Positions of held nodes at `t` after the start of the step.
  static void move_held(const StepInput& in, const VecX& start, double t, VecX& x) {
    for (Eigen::Index d = 0; d < x.size(); ++d)
      if (in.fixed[static_cast<std::size_t>(d)]) x[d] = start[d] + t * in.fixed_velocity[d];
  }

  // Solves the posed stage from the better of two guesses: the motion going on, or standing still.
  bool solve_stage(State& state, const StepInput& in, const VecX& start, double offset, bool first,
                   const VecX& guess_velocity, double guess_time, VecX& x) {
    VecX guess = start + guess_time * guess_velocity;
    x = start;
    move_held(in, start, offset, guess);
    move_held(in, start, offset, x);
    pose_contact(state, start, in.t, guess, in.t + offset);
    {
      auto phase = clock_.phase("force");
      stage_.evaluate(guess, moving_);
      stage_.evaluate(x, standing_);
      total_.evaluations += 2;
    }
    const bool move = moving_.finite && !(standing_.finite && standing_.energy < moving_.energy);
    if (move) x = guess;
    VecX v = state.v;
    restore_fixed(in, v);
    const StageContext context{in.t + offset, in.t, &start, &v, in.h, first};
    SolverReport r =
        solver_.solve(stage_, context, memory(state).factor, x, move ? moving_ : standing_, clock_);
    add(r);
    // Bodies may have gone into each other where nobody looked, or round an edge: again, with these contacts.
    for (int k = 0; r.converged && revise_contact(state, x); ++k) {
      if (k == kContactRevisions) {
        ++total_.fallbacks["contact_unsettled"];
        break;
      }
      ++total_.fallbacks["contact_revision"];
      r = solve_again(state, context, x);
    }
    // Coulomb's law holds between the forces of this stage, not between friction and an older normal force:
    // where contacts tremble the two are far apart.
    for (int k = 0; r.converged && revise_friction(x); ++k) {
      if (k == kFrictionRevisions) {
        ++total_.fallbacks["friction_unsettled"];
        break;
      }
      ++friction_revisions_;
      r = solve_again(state, context, x);
    }
    if (const int n = stage_.uncoupled(x)) total_.fallbacks["uncoupled_contact"] += n;
    return r.converged;
  }

  SolverReport solve_again(State& state, const StageContext& context, VecX& x) {
    {
      auto phase = clock_.phase("force");
      stage_.evaluate(x, standing_);
      ++total_.evaluations;
    }
    SolverReport r = solver_.solve(stage_, context, memory(state).factor, x, standing_, clock_);
    add(r);
    return r;
  }

  void pose_contact(State& state, const VecX& x0, double t0, const VecX& guess, double t) {
    auto phase = clock_.phase("contact");
    const int before = stage_.pattern_changes();
    stage_.pose_contact(x0, t0, guess, t);
    if (stage_.pattern_changes() != before) solver_.forget(memory(state).factor);
  }
  bool revise_contact(State& state, const VecX& x) {
    auto phase = clock_.phase("contact");
    const int before = stage_.pattern_changes();
    const bool changed = stage_.revise_contact(x);
    if (stage_.pattern_changes() != before) solver_.forget(memory(state).factor);
    return changed;
  }

  bool revise_friction(const VecX& x) {
    auto phase = clock_.phase("contact");
    return stage_.revise_friction(x);
  }

  void note_tunnelled() {
    if (const BodyContact* bodies = stage_.bodies())
      tunnelled_.insert(tunnelled_.end(), bodies->tunnelled().begin(), bodies->tunnelled().end());
  }

  bool one_stage(State& state, const StepInput& in, const StageRule& rule) {
    const VecX x0 = state.x;
    pose(in, rule, {&state.x, &state.v}, {&memory(state).x_prev, &memory(state).v_prev});
    VecX x;
    if (!solve_stage(state, in, x0, in.h, true, state.v, in.h, x)) return false;
    note_tunnelled();
    state.v = rule.quasistatic ? VecX((x - x0) / in.h) : stage_.velocity(x);
    state.x = x;
    return true;
  }

  bool sdirk2(State& state, const StepInput& in) {
    const VecX x0 = state.x, v0 = state.v;
    const double ratio = (1 - kAlpha) / kAlpha;
    pose(in, {kAlpha * in.h, 1, 0, false}, {&x0, &v0}, {});
    VecX x1, x2;
    if (!solve_stage(state, in, x0, kAlpha * in.h, true, v0, kAlpha * in.h, x1)) return false;
    const VecX v1 = stage_.velocity(x1);
    pose(in, {kAlpha * in.h, 1 - ratio, ratio, false}, {&x0, &v0}, {&x1, &v1});
    if (!solve_stage(state, in, x0, in.h, false, v1, in.h, x2)) return false;
    note_tunnelled();
    state.v = stage_.velocity(x2);
    state.x = x2;
    return true;
  }

  // One Newton iteration of BDF1 from x_k, where held nodes have not moved yet: their motion goes to the
  // right-hand side.
  bool baraff(State& state, const StepInput& in) {
    pose(in, {in.h, 1, 0, false}, {&state.x, &state.v}, {});
    pose_contact(state, state.x, in.t, state.x + in.h * state.v, in.t + in.h);
    stage_.evaluate(state.x, moving_);
    ++total_.evaluations;
    if (!moving_.finite) {
      total_.why = fmt::format("element {} gave a force that is not finite", moving_.first_bad);
      return false;
    }
    VecX held = VecX::Zero(state.x.size()), known, d;
    move_held(in, held, in.h, held);
    {
      auto phase = clock_.phase("assemble");
      stage_.matrix(state.x, stage_.key(), held, A_, known);
    }
    VecX rhs = -moving_.r - known;
    for (Eigen::Index k = 0; k < rhs.size(); ++k)
      if (in.fixed[static_cast<std::size_t>(k)]) rhs[k] = 0;
    VecX v = state.v;
    restore_fixed(in, v);
    const StageContext context{in.t + in.h, in.t, &state.x, &v, in.h, true};
    const SolverReport r = solver_.solve_linear(stage_, context, A_, rhs, memory(state).factor, d, clock_);
    add(r);
    if (!r.converged) return false;
    d += held;
    state.v = d / in.h;
    state.x += d;
    return true;
  }

  void report_contacts(const Model& model, const State& state, const StepInput& in, StepReport& report) {
    if (const BodyContact* bodies = stage_.bodies()) {
      auto phase = clock_.phase("contact");
      const BodyContact::Summary now = bodies->summary(state.x);
      report.extra["body_pairs"] = static_cast<double>(bodies->pairs().size());
      report.extra["body_contacts"] = static_cast<double>(now.active);
      report.extra["body_depth"] = now.depth;  // [m]
      if (nearest_) report.extra["faces_found_again"] = stage_.followed() - followed_;
      report.extra["body_tunnelled"] = static_cast<double>(tunnelled_.size());
      if (!tunnelled_.empty())
        report.warnings.push_back(fmt::format(
            "{} node{} went through a body, the first is node {}: a smaller time step or a finer mesh helps",
            tunnelled_.size(), tunnelled_.size() == 1 ? "" : "s", tunnelled_.front()));
    }
    if (stage_.bodies() || !model.contact.empty()) report.extra["friction_revisions"] = friction_revisions_;
    if (model.contact.empty()) return;
    auto phase = clock_.phase("contact");
    double deepest = 0;
    for (const Contact& c : touching(model.contact, state.x, in.t + in.h)) {
      ++report.contacts;
      deepest = std::max(deepest, c.depth);
    }
    report.extra["contact_depth"] = deepest;  // [m]
  }

  void pose(const StepInput& in, const StageRule& rule, const KnownState& s0, const KnownState& s1) {
    auto phase = clock_.phase("force");
    stage_.pose(in, rule, s0, s1);
    posed_ = true;
  }

  void add(const SolverReport& r) {
    total_.newton += r.newton;
    total_.quasi += r.quasi;
    total_.pcg += r.pcg;
    total_.factorizations += r.factorizations;
    total_.evaluations += r.evaluations;
    total_.residual = r.residual;
    total_.why = r.why;
    for (const auto& [name, count] : r.fallbacks) total_.fallbacks[name] += count;
    total_.inverted = r.inverted;
    total_.elastic = r.elastic;
  }

  const Integrator integrator_;
  const int max_halvings_;
  const bool nearest_;
  NewtonSolver solver_;
  ImplicitStage stage_;
  ImplicitStage::Point moving_, standing_;
  SolverReport total_;
  int friction_revisions_ = 0;    // solves of this step with new normal forces for friction
  int followed_ = 0;              // of the stage, before this step
  std::vector<Index> tunnelled_;  // nodes that went through a body in this step
  BlockMatrix A_;
  bool posed_ = false;  // the stage belongs to a step
  PhaseClock clock_;
};

}  // namespace

std::unique_ptr<Stepper> make_implicit(const Model& model, const nlohmann::json& options,
                                       const Preparation&) {
  return std::make_unique<Implicit>(model, ImplicitOptions::read(options));
}

}  // namespace limber
