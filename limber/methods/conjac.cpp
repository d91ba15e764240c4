#include <limber/methods/conjac.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/condensation.hpp>
#include <limber/methods/dynamic_nodes.hpp>
#include <limber/methods/reduced_step.hpp>
#include <limber/methods/rigid_motion.hpp>
#include <limber/methods/system.hpp>
#include <limber/sim/model.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace limber {
namespace {

// The paper writes K = df/dx; ours is K = d2E/dx2 = -df/dx. Where it has -K we have +K, and b_q = +(1/h)
// K_qq^-1 f_q.
class ConJac final : public Stepper {
 public:
  explicit ConJac(const Scene& scene)
      : beta_(scene.method_options.at("beta")),
        gamma_(scene.method_options.at("gamma")),
        rule_(time_rule(scene.method_options.at("time_rule"))),
        newton_steps_(scene.method_options.at("newton_steps")),
        solver_options_{scene.solver, scene.ordering} {}

  // Algorithm 1. The guarded rule tries the step with more and more damping until it does not gain energy.
  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    clock_.reset();
    if (!condensation_) prepare(model);
    choose_active(model, state, in);

    const Start start = measure_start(model, state, in);
    bool accepted = false;
    if (rule_ == TimeRule::kGuarded || rule_ == TimeRule::kMidpoint) {
      if (!linearise(model, state, in, 0.5, report)) return fail(report, condensation_->why());
      accepted = advance(model, state, in, start, 0.5, report);
      if (!accepted) ++report.fallbacks["start_linearisation"];
    }
    if (!accepted) {
      if (!linearise(model, state, in, 0.0, report)) return fail(report, condensation_->why());
      advance(model, state, in, start, 0.0, report);
    }
    stabilise(model, state, in, report);

    report.dofs = static_cast<Index>(condensation_->dofs.size());
    report.symbolic_analyses = condensation_->stats().analyses;
    report.extra["dynamic_nodes"] =
        static_cast<double>(std::count(state.dynamic.begin(), state.dynamic.end(), std::uint8_t{1}));
    report.phases = clock_.phases();
    return report;
  }

  MethodFields fields(const Model& model, const State& state) const override {
    MethodFields f;
    auto& dynamic = f.node["dynamic"];
    dynamic.assign(static_cast<std::size_t>(model.nodes()), 0.0);
    for (std::size_t i = 0; i < nodes_.nodes.size() && i < state.dynamic.size(); ++i)
      dynamic[nodes_.nodes[i]] = state.dynamic[i];
    return f;
  }

 private:
  // Energies at the start of the step, for the guard.
  struct Start {
    VecX x, v;
    double elastic = 0, kinetic = 0;  // [J]
  };

  void prepare(const Model& model) {
    auto phase = clock_.phase("analyze");
    nodes_ = choose_dynamic_nodes(model);
    condensation_.emplace(model, nodes_.nodes, solver_options_);
  }

  // The scene's nodes are dynamic; reserve nodes of a piece only while nothing else fixes its rigid motions.
  void choose_active(const Model& model, State& state, const StepInput& in) {
    state.dynamic.assign(nodes_.nodes.size(), 0);
    std::fill_n(state.dynamic.begin(), nodes_.chosen, std::uint8_t{1});
    std::vector<std::uint8_t> held = in.fixed;
    for (std::size_t i = 0; i < nodes_.nodes.size(); ++i)
      if (state.dynamic[i]) std::fill_n(held.begin() + 3 * nodes_.nodes[i], 3, std::uint8_t{1});
    std::vector<std::uint8_t> short_of_nodes(model.pieces.size(), 0);
    Vec3 center;
    for (std::size_t p = 0; p < model.pieces.size(); ++p)
      short_of_nodes[p] = free_rigid_motions(model, model.pieces[p], state.x, held, center).cols() > 0;
    for (std::size_t i = nodes_.chosen; i < nodes_.nodes.size(); ++i)
      state.dynamic[i] = short_of_nodes[model.piece_of_node[nodes_.nodes[i]]];
  }

  Start measure_start(const Model& model, const State& state, const StepInput& in) {
    auto phase = clock_.phase("guard");
    Start s{state.x, state.v, 0, 0};
    restore_fixed(in, s.v);  // what held nodes did before does not belong to the body's energy
    s.elastic = fem::elastic_energy(*model.elements, s.x, in.activation);
    s.kinetic = 0.5 * s.v.dot(model.mass.cwiseProduct(s.v));
    return s;
  }

  // Lines 4 and 5: f, K, J, b at x0 + fraction h v0.
  bool linearise(const Model& model, const State& state, const StepInput& in, double fraction,
                 StepReport& report) {
    predictor_ = state.v;
    restore_fixed(in, predictor_);
    if (!condensation_->compute(state.x + fraction * in.h * predictor_, state.dynamic, in, clock_))
      return false;
    report.inverted = condensation_->system.inverted;
    if (condensation_->shifts > 0) report.fallbacks["shifted_stiffness"] += condensation_->shifts;
    force_ = condensation_->system.f + external_force(model, in);
    {
      auto phase = clock_.phase("solve");
      correction_ = force_;  // h b_q of Eq. 12
      relieve_inertia(model, state.x, state.v, in.fixed, correction_);
      condensation_->solve_quasistatic(correction_);
    }
    auto phase = clock_.phase("reduced");
    const Condensation& c = *condensation_;
    reduced_ = {};
    reduced_.h = in.h;
    reduced_.M = c.M_r;
    reduced_.S = c.S;
    reduced_.damping_mass = model.scene->damping_mass;
    reduced_.damping_stiffness = model.scene->damping_stiffness;
    reduced_.force = c.J.transpose() * force_;
    reduced_.k_w = c.k_w;
    reduced_.m_w = c.J.transpose() * model.mass.cwiseProduct(c.w);
    reduced_.momentum = c.J.transpose() * model.mass.cwiseProduct(state.v - c.w);
    reduced_.predictor = predictor_(c.dofs);
    reduced_.fraction = fraction;
    reduced_.prepare();
    return true;
  }

  // Lines 6 to 8. False: no damping kept the energy from growing, and another linearisation should be tried.
  bool advance(const Model& model, State& state, const StepInput& in, const Start& start, double fraction,
               StepReport& report) {
    switch (rule_) {
      case TimeRule::kLinearImplicit:
        return move(model, state, in, start, reduced_.linear_implicit(beta_));
      case TimeRule::kModal:
        return move(model, state, in, start, reduced_.modal());
      case TimeRule::kTrapezoidal:
      case TimeRule::kMidpoint:
        return move(model, state, in, start, reduced_.theta(0.5));
      case TimeRule::kGuarded:
        break;
    }
    constexpr std::array kThetas{0.5, 0.55, 0.65, 0.8, 1.0};
    const double scale = start.elastic + start.kinetic;
    for (double theta : kThetas) {
      move(model, state, in, start, reduced_.theta(theta));
      const double gain = energy_gain(model, state, in, start, fraction);
      if (std::max(0.0, state.energy_excess + gain) <= kEnergyTolerance * scale) {
        state.energy_excess = std::max(0.0, state.energy_excess + gain);
        if (theta > 0.5) ++report.fallbacks["damped_step"];
        return true;
      }
    }
    if (fraction > 0) {
      state.x = start.x;
      return false;
    }
    // Implicit Euler gained energy all the same: take ever less of the motion.
    ++report.fallbacks["overdamped_step"];
    double gain = 0;
    for (double beta = 2; beta < 1e4; beta *= 4) {
      move(model, state, in, start, reduced_.linear_implicit(beta));
      gain = energy_gain(model, state, in, start, fraction);
      if (state.energy_excess + gain <= kEnergyTolerance * scale) break;
    }
    state.energy_excess = std::max(0.0, state.energy_excess + gain);
    return true;
  }

  // Eq. 13, with the held nodes' share w: x = x0 + J y + h w + gamma h b, v = J v_d + w.
  bool move(const Model&, State& state, const StepInput& in, const Start& start,
            const ReducedMotion& motion) {
    auto phase = clock_.phase("reduced");
    const Condensation& c = *condensation_;
    state.v = c.w;
    state.v.noalias() += c.J * motion.velocity;
    state.x = start.x + in.h * c.w + gamma_ * correction_;
    state.x.noalias() += c.J * motion.displacement;
    return true;
  }

  // How much more energy the body has than at the start of the step, less the work that loads and held nodes
  // did on it. Held nodes work through w, the motion that they impose: wᵀ(M dv - h f).
  double energy_gain(const Model& model, const State& state, const StepInput& in, const Start& start,
                     double fraction) {
    auto phase = clock_.phase("guard");
    const Condensation& c = *condensation_;
    fem::assemble_force(*model.elements, state.x, in.activation, trial_);
    if (!trial_.finite) return std::numeric_limits<double>::infinity();
    const VecX outer = external_force(model, in);
    const double kinetic = 0.5 * state.v.dot(model.mass.cwiseProduct(state.v));
    double work = outer.dot(state.x - start.x);
    if (!c.w.isZero(0)) {
      const VecX mean_force = fraction > 0 ? force_ : VecX(0.5 * (force_ + trial_.f + outer));
      work += c.w.dot(model.mass.cwiseProduct(state.v - start.v)) - in.h * c.w.dot(mean_force);
    }
    return trial_.energy + kinetic - start.elastic - start.kinetic - work;
  }

  // Section 5.1: further quasi-Newton steps of the quasistatic nodes with the same factor. A step that would
  // raise the potential energy is not taken.
  void stabilise(const Model& model, State& state, const StepInput& in, StepReport& report) {
    if (newton_steps_ == 0) return;
    const VecX outer = external_force(model, in);
    fem::assemble_force(*model.elements, state.x, in.activation, trial_);
    for (int k = 0; k < newton_steps_; ++k) {
      VecX step;
      {
        auto phase = clock_.phase("stabilise");
        step = trial_.f + outer;
        relieve_inertia(model, state.x, state.v, in.fixed, step);
        const VecX load = step;
        condensation_->solve_quasistatic(step);
        const VecX x = state.x + step;
        const double before = trial_.energy, gain = outer.dot(step);
        fem::assemble_force(*model.elements, x, in.activation, trial_);
        if (!(trial_.energy - before <= gain)) {
          ++report.fallbacks["stabilisation_refused"];
          break;
        }
        state.x = x;
      }
    }
  }

  static constexpr double kEnergyTolerance = 1e-3;

  const double beta_;   // numerical damping of the paper's rule, Eq. 11
  const double gamma_;  // stabilisation, Eq. 13
  const TimeRule rule_;
  const int newton_steps_;
  const CholeskyOptions solver_options_;

  DynamicNodes nodes_;
  std::optional<Condensation> condensation_;
  ReducedSystem reduced_;
  fem::Assembled trial_;
  VecX predictor_, force_, correction_;
  PhaseClock clock_;
};

}  // namespace

std::unique_ptr<Stepper> make_conjac(const Scene& scene) { return std::make_unique<ConJac>(scene); }

}  // namespace limber
