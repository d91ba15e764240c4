#include <limber/methods/conjac/conjac.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/common/link_coupling.hpp>
#include <limber/methods/common/link_report.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/common/touching.hpp>
#include <limber/methods/conjac/adaptive.hpp>
#include <limber/methods/conjac/condensation.hpp>
#include <limber/methods/conjac/dynamic_nodes.hpp>
#include <limber/methods/conjac/memory.hpp>
#include <limber/methods/conjac/options.hpp>
#include <limber/methods/conjac/reduced_step.hpp>
#include <limber/methods/conjac/rigid_motion.hpp>
#include <limber/sim/contact_state.hpp>
#include <limber/sim/model.hpp>
#include <limber/sim/static_solve.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace limber {
namespace {

// The paper writes K = df/dx; ours is K = d2E/dx2 = -df/dx. Where it has -K we have +K, and b_q = +(1/h)
// K_qq^-1 f_q.
class ConJac final : public Stepper {
 public:
  ConJac(const Model& model, const ConJacOptions& options)
      : beta_(options.beta),
        gamma_(options.gamma),
        rule_(options.rule),
        newton_steps_(options.newton_steps),
        static_start_(options.static_start),
        solver_options_{model.scene->solver, model.scene->ordering},
        adaptive_options_(options.adaptive) {
    prepare(model);
  }

  // Algorithm 1; lines 4 to 8 may be tried more than once by the guarded rule. With adaptivity Algorithm 3.
  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    clock_.reset();
    held_ = in.fixed;
    if (links_) {
      links_->begin(state, in);
      held_ = links_->held(in.fixed);
    }
    if (adaptivity_) adaptivity_->calm(memory(state));
    bool switched = choose_active(model, state, in);
    if (static_start_ && state.step == 0 && !start_quasistatic(model, state, in, report))
      return report;  // line 1

    const std::vector<Anchor> anchors = anchors_of(state);
    const Start start = measure_start(model, state, in);
    const bool stays = settled(model, state, in, start);
    if (stays) {
      state.v.setZero();
      report.iterations = 0;
      report.extra["drift"] = 0;
    } else if (!touch_and_step(model, state, in, start, anchors, switched, report)) {
      return report;
    }
    if (!stays && rouse(model, state, in, start)) {
      switched |= choose_active(model, state, in);
      ++report.iterations;
      if (!touch_and_step(model, state, in, start, anchors, switched, report, true)) return report;
    }
    if (!model.contact.empty()) {
      auto phase = clock_.phase("contact");
      filter_velocities(model, state, in);
      finish_contacts(model, contact_, in.h, state, report);
    }

    report.dofs = stays ? 0 : static_cast<Index>(condensation_->dofs.size());
    if (links_) {
      report_links(*model.articulation, links_->outcome(), in.h, report);
      report.dofs += model.articulation->mechanism.velocities - static_cast<Index>(links_->dofs().size());
    }
    report.symbolic_analyses = condensation_->analyses();
    report.extra["dynamic_nodes"] = static_cast<double>(
        std::count(memory(state).dynamic.begin(), memory(state).dynamic.end(), std::uint8_t{1}) - attached_);
    if (adaptivity_) report_liveliness(model, state, in, start, report);
    report.phases = clock_.phases();
    return report;
  }

  MethodFields fields(const Model& model, const State& state) const override {
    MethodFields f;
    if (links_) f = link_fields(*model.articulation, links_->outcome());
    static const ConJacMemory none;
    const ConJacMemory* held = memory_of<ConJacMemory>(state);
    const ConJacMemory& memory = held ? *held : none;  // before the first step
    auto& dynamic = f.node["dynamic"];
    dynamic.assign(static_cast<std::size_t>(model.nodes()), 0.0);
    for (std::size_t i = 0; i < nodes_.nodes.size() && i < memory.dynamic.size(); ++i)
      dynamic[nodes_.nodes[i]] = memory.dynamic[i];
    if (memory.dynamic.empty() && !adaptivity_)
      for (std::size_t i = 0; i < static_cast<std::size_t>(nodes_.chosen); ++i) dynamic[nodes_.nodes[i]] = 1;
    if (links_)
      for (const Index i : links_->nodes()) dynamic[i] = 0;
    if (adaptivity_) {
      auto& candidate = f.node["candidate"];
      candidate.assign(dynamic.size(), 0.0);
      for (Index i : nodes_.nodes) candidate[i] = 1;
      f.constant.insert("candidate");
      f.units["liveliness"] = "1/s";
      f.regions = adaptivity_->regions().names;
      const std::vector<double> mean = adaptivity_->means(memory);
      auto &region = f.element["region"], &lively = f.element["liveliness"];
      for (Index r : adaptivity_->regions().of_element) {
        region.push_back(r + 1);
        lively.push_back(r < 0 ? 0.0 : mean[r]);
      }
    }
    if (!model.contact.empty()) f.node["contact"] = contact_pressure(model, state);
    return f;
  }

  std::string misfit(const Model&, const State& state) const override {
    const ConJacMemory* m = memory_of<ConJacMemory>(state);
    if (!m) return {};
    const auto size = [](const auto& list) { return static_cast<std::ptrdiff_t>(list.size()); };
    if (!m->dynamic.empty() && m->dynamic.size() != nodes_.nodes.size())
      return wrong_size("dynamic", size(m->dynamic), size(nodes_.nodes));
    if (std::any_of(m->dynamic.begin(), m->dynamic.end(), [](std::uint8_t d) { return d > 1; }))
      return "\"dynamic\" has a number other than 0 and 1";
    if (!std::isfinite(m->energy_excess) || m->energy_excess < 0)
      return fmt::format("\"energy_excess\" is {}, expected a number from 0 on", m->energy_excess);
    return adaptivity_ ? adaptivity_->misfit(*m) : std::string();
  }

  // Regions outlive a cut: copies of a node share its region. Which nodes are dynamic is chosen again.
  void carry(const Model&, const TopologyChange&, State& state) const override {
    state.memory.set_epoch(state.epoch);
  }

 private:
  static ConJacMemory& memory(State& state) { return memory_of<ConJacMemory>(state); }

  // The start of the step, to which a step that is refused goes back, and its energies.
  struct Start {
    VecX x, v;
    double elastic = 0, kinetic = 0, contact = 0;  // [J]
    double energy_excess = 0;
  };

  // Without dynamic nodes nothing but stabilisation moves the body, and nothing at all when its forces are in
  // balance already: such a step needs no matrix.
  bool settled(const Model& model, State& state, const StepInput& in, const Start& start) {
    if (!adaptivity_ || !model.contact.empty() || !in.fixed_velocity.isZero(0)) return false;
    const std::vector<std::uint8_t>& dynamic = memory(state).dynamic;
    if (std::count(dynamic.begin(), dynamic.end(), std::uint8_t{1}) > 0) return false;
    auto phase = clock_.phase("guard");
    if (rule_ != TimeRule::kGuarded) fem::assemble_force(*model.elements, start.x, in.activation, trial_);
    const VecX outer = external_force(model, in);
    double residual = 0;
    for (Eigen::Index d = 0; d < outer.size(); ++d)
      if (!in.fixed[static_cast<std::size_t>(d)])
        residual = std::max(residual, std::abs(trial_.f[d] + outer[d]));
    return residual < kBalanced * outer.cwiseAbs().maxCoeff();
  }

  // Lines 4 to 8, again if the step shows that other nodes touch than was expected.
  bool touch_and_step(const Model& model, State& state, const StepInput& in, const Start& start,
                      const std::vector<Anchor>& anchors, bool switched, StepReport& report,
                      bool roused = false) {
    begin_contacts(model, anchors, state, in, contact_, clock_);
    // K is the same whichever nodes are dynamic, unless contacts have been revised.
    bool same_matrix = roused && model.contact.empty();
    for (bool again = false;; again = true, same_matrix = false, ++report.iterations) {
      if (!try_step(model, state, in, start, switched, again, same_matrix, report)) {
        fail(report, condensation_->why());
        return false;
      }
      auto phase = clock_.phase("contact");
      if (!contact_.revise(state.x)) return true;
      go_back(start, state);
    }
  }

  static void go_back(const Start& start, State& state) {
    state.x = start.x;
    state.v = start.v;
  }

  // Algorithm 3, lines 4 to 8, for nodes that wake up. They do so before the step that shows that they
  // should.
  bool rouse(const Model& model, State& state, const StepInput& in, const Start& start) {
    if (!adaptivity_) return false;
    auto phase = clock_.phase("liveliness");
    if (!adaptivity_->rouse(model, start.x, in.h, state.x, memory(state))) return false;
    go_back(start, state);
    return true;
  }

  void report_liveliness(const Model& model, State& state, const StepInput& in, const Start& start,
                         StepReport& report) {
    {
      auto phase = clock_.phase("liveliness");
      adaptivity_->record(model, start.x, in.h, state.x, memory(state));
    }
    report.extra["switches"] = adaptivity_->switches(memory(state));
    const auto storage = std::exchange(storage_, condensation_->storage());
    report.extra["allocations"] = storage.first != nullptr && storage != storage_ ? 1 : 0;
    const std::vector<double> mean = adaptivity_->means(memory(state));
    for (std::size_t r = 0; r < mean.size(); ++r) {
      const std::string& name = adaptivity_->regions().names[r];
      report.extra["liveliness/" + name] = mean[r];
      report.extra["dynamic/" + name] = adaptivity_->dynamic(memory(state), static_cast<Index>(r)) ? 1 : 0;
    }
  }

  // Lines 4 to 8 with the present contacts. False: no factorisation.
  bool try_step(const Model& model, State& state, const StepInput& in, const Start& start, bool switched,
                bool again, bool same_matrix, StepReport& report) {
    memory(state).energy_excess = start.energy_excess;
    // A node that comes down hard stops at the surface, which the velocities at the start know nothing of:
    // such a step is linearised where it begins.
    const bool from_middle =
        (rule_ == TimeRule::kGuarded || rule_ == TimeRule::kMidpoint) && !contact_.closes(start.x);
    const double fraction = from_middle ? 0.5 : 0.0;
    const bool same_place = fraction == fraction_;
    if (!linearise(model, state, in, fraction, again && same_place, same_matrix && same_place, report))
      return false;
    if (!advance(model, state, in, start, report)) {
      ++report.fallbacks["start_linearisation"];
      if (!linearise(model, state, in, 0.0, false, false, report)) return false;
      advance(model, state, in, start, report);
    }
    stabilise(model, state, in, report);
    if (links_) links_->place(state);
    if (rule_ == TimeRule::kGuarded) {
      settle_energy(model, state, in, start, switched);
      trial_x_ = state.x;
      trial_activation_ = in.activation;
    }
    return true;
  }

  void prepare(const Model& model) {
    nodes_ = choose_dynamic_nodes(model, !adaptive_options_.is_null());
    if (!adaptive_options_.is_null()) adaptivity_.emplace(model, nodes_, adaptive_options_);
    if (model.articulation) {
      // Attached nodes move the quasistatic ones as dynamic nodes do.
      links_.emplace(model);
      const std::vector<Index> attached = links_->nodes();
      const auto is_attached = [&](Index i) {
        return std::binary_search(attached.begin(), attached.end(), i);
      };
      const auto chosen = nodes_.nodes.begin() + nodes_.chosen;
      std::vector<Index> all;
      std::copy_if(nodes_.nodes.begin(), chosen, std::back_inserter(all), std::not_fn(is_attached));
      all.insert(all.end(), attached.begin(), attached.end());
      const auto count = static_cast<Index>(all.size());
      std::copy_if(chosen, nodes_.nodes.end(), std::back_inserter(all), std::not_fn(is_attached));
      nodes_.nodes = all;
      nodes_.chosen = count;
      attached_ = static_cast<std::ptrdiff_t>(attached.size());
    }
    condensation_.emplace(model, nodes_.nodes, solver_options_, links_.has_value());
  }

  // The scene's nodes are dynamic, with adaptivity those of lively regions; reserve nodes of a piece only
  // while nothing else fixes its rigid motions. True: somebody switched.
  bool choose_active(const Model& model, State& state, const StepInput& in) {
    std::vector<std::uint8_t>& dynamic = memory(state).dynamic;
    const std::vector<std::uint8_t> before =
        std::exchange(dynamic, std::vector<std::uint8_t>(nodes_.nodes.size(), 0));
    for (std::size_t i = 0; i < static_cast<std::size_t>(nodes_.chosen); ++i)
      dynamic[i] = !adaptivity_ || adaptivity_->dynamic(memory(state), nodes_.region[i]);
    std::vector<std::uint8_t> held = in.fixed;
    for (std::size_t i = 0; i < nodes_.nodes.size(); ++i)
      if (dynamic[i]) std::fill_n(held.begin() + 3 * nodes_.nodes[i], 3, std::uint8_t{1});
    std::vector<std::uint8_t> short_of_nodes(model.pieces.size(), 0);
    Vec3 center;
    for (std::size_t p = 0; p < model.pieces.size(); ++p)
      short_of_nodes[p] = free_rigid_motions(model, model.pieces[p], state.x, held, center).cols() > 0;
    for (std::size_t i = nodes_.chosen; i < nodes_.nodes.size(); ++i)
      dynamic[i] = short_of_nodes[model.piece_of_node[nodes_.nodes[i]]];
    return before != dynamic;
  }

  // Line 1: the quasistatic nodes at rest around the dynamic ones, which stay where they are.
  bool start_quasistatic(const Model& model, State& state, const StepInput& in, StepReport& report) {
    auto phase = clock_.phase("static_start");
    StepInput held = in;
    for (std::size_t i = 0; i < nodes_.nodes.size(); ++i)
      if (memory(state).dynamic[i]) std::fill_n(held.fixed.begin() + 3 * nodes_.nodes[i], 3, std::uint8_t{1});
    const StaticResult result = solve_static(model, held, state.x, 1e-8, 200, solver_options_);
    report.iterations += result.iterations;
    if (!result.converged) fail(report, "the initial static solve failed: " + result.why);
    return result.converged;
  }

  Start measure_start(const Model& model, State& state, const StepInput& in) {
    Start s{state.x, state.v, 0, 0, 0, memory(state).energy_excess};
    restore_fixed(in, s.v);  // what held nodes did before does not belong to the body's energy
    if (rule_ != TimeRule::kGuarded) return s;
    auto phase = clock_.phase("guard");
    // Mostly where the last step ended, and then known. Else by the same sums as there, so that a run that is
    // resumed goes on with the same bits.
    if (trial_x_.size() != s.x.size() || trial_x_ != s.x || trial_activation_ != in.activation) {
      fem::assemble_force(*model.elements, s.x, in.activation, trial_);
      trial_x_ = s.x;
      trial_activation_ = in.activation;
    }
    s.elastic = trial_.energy;
    s.kinetic = kinetic_energy(model, s.v);
    s.contact = contact_energy(model, state);
    return s;
  }

  static double kinetic_energy(const Model& model, const VecX& v) {
    return 0.5 * v.dot(model.mass.cwiseProduct(v));
  }

  // Lines 4 and 5: f, K, J, b at x0 + fraction h v0.
  // `again`: only the contacts have changed since the last call; `same_matrix`: only the dynamic nodes.
  bool linearise(const Model& model, State& state, const StepInput& in, double fraction, bool again,
                 bool same_matrix, StepReport& report) {
    VecX predictor = state.v;
    restore_fixed(in, predictor);
    Condensation& c = *condensation_;
    const VecX x = state.x + fraction * in.h * predictor;
    fraction_ = fraction;
    if (!same_matrix && !c.assemble(x, in, contact_, clock_, again)) return false;
    report.inverted = c.system.inverted;
    outer_ = external_force(model, in);
    force_ = c.system.f + outer_;
    closing_.setZero(x.size());
    contact_.add_force(x, (1 - fraction) * in.h, force_, closing_);
    correction_ = force_;
    relieve_inertia(model, state.x, state.v, held_, correction_);
    force_ += closing_;
    const bool condensed = c.condense(memory(state).dynamic, force_, state.v, correction_, clock_,
                                      same_matrix);  // h b_q of Eq. 12
    if (c.shifts > 0) report.fallbacks["shifted_stiffness"] += c.shifts;
    if (!condensed) return false;
    report.extra["drift"] = correction_.size() ? correction_.cwiseAbs().maxCoeff() : 0.0;  // [m]
    // Nodes that will touch go all the way to the surface.
    if (!closing_.isZero(0)) {
      auto phase = clock_.phase("solve");
      c.solve_quasistatic(closing_);
    }
    auto phase = clock_.phase("reduced");
    reduced_.pieces.clear();
    const VecX predicted = predictor(c.dofs);
    for (const CondensedPiece& piece : c.pieces()) {
      ReducedSystem& reduced = reduced_.pieces.emplace_back();
      reduced.h = in.h;
      reduced.M = piece.M_r;
      reduced.S = piece.S;
      if (contact_.active() > 0) reduced.S_contact = piece.S_contact;
      reduced.damping_mass = model.scene->damping_mass;
      reduced.damping_stiffness = model.scene->damping_stiffness;
      reduced.force = piece.f_r;
      reduced.k_w = piece.k_w;
      reduced.m_w = piece.m_w;
      reduced.momentum = piece.p_r;
      reduced.predictor = predicted.segment(piece.begin, piece.J.cols());
      reduced.fraction = fraction;
      reduced.prepare();
    }
    return true;
  }

  // Lines 6 to 8. False: whatever the damping, the step would gain energy, and another linearisation should
  // be tried.
  bool advance(const Model& model, State& state, const StepInput& in, const Start& start,
               StepReport& report) {
    if (links_) return move(state, in, start, with_links(in, state));
    switch (rule_) {
      case TimeRule::kLinearImplicit:
        return move(state, in, start, reduced_.linear_implicit(beta_));
      case TimeRule::kModal:
        return move(state, in, start, reduced_.modal());
      case TimeRule::kTrapezoidal:
      case TimeRule::kMidpoint:
        return move(state, in, start, reduced_.theta(0.5));
      case TimeRule::kGuarded:
        break;
    }
    // A gain is tolerated while the sum of gains not lost again stays small: errors of both signs pass,
    // growth does not. Bodies that touch lose energy anyway and need no such room; it would only keep small
    // motions alive, forward in one step and back in the next.
    const bool touches = contact_.active() > 0;
    const double tolerated =
        (touches ? kTouchingTolerance : kEnergyTolerance) * (start.elastic + start.kinetic) -
        memory(state).energy_excess;
    // The midpoint rule turns the velocity of a very stiff mode around in every step and never lets it die
    // out. A dynamic node that is pressed against an obstacle is such a mode: bodies that touch get a little
    // damping.
    const double least = touches ? kTouchingTheta : 0.5;
    for (double theta : kThetas) {
      if (theta < least) continue;
      move(state, in, start, reduced_.theta(theta));
      if (energy_gain(model, state, in, start) > std::max(0.0, tolerated)) continue;
      if (theta > least) ++report.fallbacks["damped_step"];
      return true;
    }
    if (fraction_ > 0) {
      go_back(start, state);
      return false;
    }
    // Implicit Euler gained energy all the same: take ever less of the motion, of the stabilisation, and of
    // what closes contacts. In the limit the body stays where it is.
    ++report.fallbacks["overdamped_step"];
    const VecX correction = correction_, closing = closing_;
    double beta = 1;
    for (int halvings = 1; halvings <= 12; ++halvings) {
      beta *= 4;
      correction_ = std::ldexp(1.0, -halvings) * correction;
      closing_ = std::ldexp(1.0, -halvings) * closing;
      move(state, in, start, reduced_.linear_implicit(beta));
      if (energy_gain(model, state, in, start) <= std::max(0.0, tolerated)) break;
    }
    return true;
  }

  // Eq. 11 with bones (link_coupling.hpp): what is left of the flesh are its dynamic and attached degrees of
  // freedom, and the attached ones are B u.
  ReducedMotion with_links(const StepInput& in, State& state) {
    const std::vector<Index>& dofs = condensation_->dofs;
    const std::vector<Index>& attached = links_->dofs();
    const MatX& B = links_->B();
    std::vector<Eigen::Index> a, d;  // places of attached and dynamic ones in the reduced system
    for (const Index dof : attached) a.push_back(std::find(dofs.begin(), dofs.end(), dof) - dofs.begin());
    for (Eigen::Index i = 0; i < static_cast<Eigen::Index>(dofs.size()); ++i)
      if (std::find(a.begin(), a.end(), i) == a.end()) d.push_back(i);
    MatX A;
    VecX r;
    const ReducedSystem& reduced = reduced_.pieces.front();
    reduced.linear_implicit_system(beta_, A, r);
    const MatX M_a = reduced.M(Eigen::all, a);
    r.noalias() -= in.h * (M_a * links_->bias());
    const MatX A_dd = A(d, d), A_ad = A(a, d), A_aa = A(a, a);
    const Eigen::LLT<MatX> llt(A_dd);
    const VecX r_d = r(d), r_a = r(a);
    const VecX at_rest = llt.solve(r_d);
    const MatX follow = -llt.solve(MatX(A_ad.transpose() * B));
    const VecX u = links_->step(r_a - A_ad * at_rest, A_aa * B + A_ad * follow, in, state);
    ReducedMotion m;
    m.velocity.resize(r.size());
    m.velocity(d) = at_rest + follow * u;
    m.velocity(a) = B * u;
    m.displacement = in.h * m.velocity;
    return m;
  }

  // Eq. 13, with the held nodes' share w and what closes contacts: x = x0 + J y + h w + gamma h b + c,
  // v = J v_d + w.
  bool move(State& state, const StepInput& in, const Start& start, const ReducedMotion& motion) {
    auto phase = clock_.phase("reduced");
    const Condensation& c = *condensation_;
    MatX y(motion.velocity.size(), 2);
    y << motion.velocity, motion.displacement;
    const MatX moved = c.extend(y);
    state.v = c.w + moved.col(0);
    state.x = start.x + in.h * c.w + gamma_ * correction_ + closing_ + moved.col(1);
    dissipated_ = reduced_.dissipation(motion);
    return true;
  }

  // How much more energy the body has than at the start of the step, less the work that loads and held nodes
  // did on it and plus what Rayleigh damping took. Held nodes work through w, the motion that they impose:
  // wᵀ(M dv - h f).
  double energy_gain(const Model& model, const State& state, const StepInput& in, const Start& start) {
    auto phase = clock_.phase("guard");
    fem::assemble_force(*model.elements, state.x, in.activation, trial_);
    if (!trial_.finite) return std::numeric_limits<double>::infinity();
    return energy_gain_here(model, state, in, start);
  }

  // The same, with trial_ already at state.x.
  double energy_gain_here(const Model& model, const State& state, const StepInput& in,
                          const Start& start) const {
    const VecX& w = condensation_->w;
    double work = outer_.dot(state.x - start.x) - dissipated_;
    if (!w.isZero(0)) {
      const VecX mean_force = fraction_ > 0 ? force_ : VecX(0.5 * (force_ + trial_.f + outer_));
      work += w.dot(model.mass.cwiseProduct(state.v - start.v)) - in.h * w.dot(mean_force);
    }
    double contact = 0;
    if (!model.contact.empty()) {
      contact = contact_energy(model.contact, contact_.anchors(), state.x, in.t + in.h) - start.contact;
      for (const ContactLaw& law : contact_.laws())
        if (law.active) work += in.h * law.contact.velocity.dot(law.force(node(state.x, law.contact.node)));
    }
    return trial_.energy + kinetic_energy(model, state.v) + contact - start.elastic - start.kinetic - work;
  }

  // Section 5.1: further quasi-Newton steps of the quasistatic nodes with the same factor. A step that would
  // raise the potential energy is not taken.
  void stabilise(const Model& model, State& state, const StepInput& in, StepReport& report) {
    if (newton_steps_ == 0) return;
    auto phase = clock_.phase("stabilise");
    fem::assemble_force(*model.elements, state.x, in.activation, trial_);
    for (int k = 0; k < newton_steps_; ++k) {
      VecX step = trial_.f + outer_;
      contact_.add_force(state.x, step);
      VecX inertia = step;
      relieve_inertia(model, state.x, state.v, held_, step);
      inertia -= step;  // M a: a load like any other while the body accelerates as a whole
      condensation_->solve_quasistatic(step);
      const VecX x = state.x + step;
      fem::assemble_force(*model.elements, x, in.activation, next_);
      const double contact = contact_.potential(x) - contact_.potential(state.x);
      if (!(next_.energy - trial_.energy + contact <= (outer_ - inertia).dot(step))) {
        ++report.fallbacks["stabilisation_refused"];
        return;
      }
      std::swap(trial_, next_);
      state.x = x;
    }
  }

  // The condensed motion of an undamped body keeps its energy; the step loses some where J turns and where
  // quasistatic nodes are pulled back to their equilibrium. What it lost is given back to the motion of the
  // dynamic nodes, up to a share of their kinetic energy, so that a real loss (a sudden release, a grab)
  // stays lost.
  void settle_energy(const Model& model, State& state, const StepInput& in, const Start& start,
                     bool switched) {
    auto phase = clock_.phase("guard");
    const double balance = memory(state).energy_excess + energy_gain_here(model, state, in, start);
    memory(state).energy_excess = std::max(0.0, balance);
    // Impact and friction lose energy for good.
    if (switched || (adaptivity_ && adaptivity_->relaxing(memory(state)))) return;
    if (contact_.active() > 0 || !(balance < 0)) return;
    // Only what the body does beyond following its held nodes and moving as a rigid body may grow, so that
    // momentum is kept.
    const VecX base = condensation_->w + rigid_velocity(model, state.x, state.v - condensation_->w, in.fixed);
    const VecX own = state.v - base;
    const double own_own = own.dot(model.mass.cwiseProduct(own)),
                 own_base = own.dot(model.mass.cwiseProduct(base));
    if (own_own == 0) return;
    // kinetic(s own + base) = kinetic(own + base) - balance
    const double s =
        (-own_base +
         std::sqrt(std::max(0.0, own_base * own_base + own_own * (own_own + 2 * own_base - 2 * balance)))) /
        own_own;
    state.v = base + std::clamp(s, 1.0, std::sqrt(1 + kReturnedShare)) * own;
  }

  // The paper's friction: filtered velocities of all nodes, then the dynamic velocities nearest to them in
  // the norm of M + beta h^2 K. With v_f = J v_d + d that is (M_r + beta h^2 S) dv_d = Jᵀ M d + beta h^2 S
  // d_d, because Jᵀ K is S on the dynamic nodes and zero elsewhere.
  void filter_velocities(const Model& model, State& state, const StepInput& in) {
    const VecX v = state.v;
    if (!filter_friction(model, contact_, in, state)) return;
    const Condensation& c = *condensation_;
    const VecX d = state.v - v;
    const double s = beta_ * in.h * in.h;
    VecX dv = c.restrict_to_dynamic(model.mass.cwiseProduct(d));
    const VecX d_d = d(c.dofs);
    for (const CondensedPiece& piece : c.pieces()) {
      const Eigen::Index r = piece.S.rows();
      const MatX A = piece.M_r + s * piece.S;
      const VecX rhs = dv.segment(piece.begin, r) + s * (piece.S * d_d.segment(piece.begin, r));
      dv.segment(piece.begin, r) = A.llt().solve(rhs);
    }
    const VecX change = c.extend(dv);
    state.v = v + change;
    state.x += in.h * change;
  }

  static constexpr std::array kThetas{0.5, 0.55, 0.65, 0.8, 1.0};
  static constexpr double kTouchingTheta = 0.55;
  static constexpr double kEnergyTolerance = 1e-3;  // of elastic plus kinetic energy
  static constexpr double kTouchingTolerance = 1e-9;
  static constexpr double kBalanced = 1e-10;      // of the largest load on a node
  static constexpr double kReturnedShare = 0.25;  // of the kinetic energy, per step

  const double beta_;
  const double gamma_;
  const TimeRule rule_;
  const int newton_steps_;
  const bool static_start_;
  const CholeskyOptions solver_options_;
  const nlohmann::json adaptive_options_;  // null: not adaptive

  DynamicNodes nodes_;
  std::optional<Adaptivity> adaptivity_;
  std::optional<Condensation> condensation_;
  std::optional<LinkCoupling> links_;
  std::ptrdiff_t attached_ = 0;     // nodes that move with links
  std::vector<std::uint8_t> held_;  // by script or by links
  ReducedSystems reduced_;
  fem::Assembled trial_, next_;
  VecX trial_x_;  // where trial_ was assembled at the start of this step or the end of the last
  std::vector<double> trial_activation_;
  ContactStep contact_;
  std::pair<const void*, const void*> storage_{};  // of K and its factor in the last step
  double fraction_ = 0;                            // where in the step it was linearised
  VecX outer_, force_, correction_, closing_;
  double dissipated_ = 0;  // by Rayleigh damping in this step [J]
  PhaseClock clock_;
};

}  // namespace

std::unique_ptr<Stepper> make_conjac(const Model& model, const nlohmann::json& options, const Preparation&) {
  return std::make_unique<ConJac>(model, ConJacOptions::read(options));
}

}  // namespace limber
