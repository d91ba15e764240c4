#include <limber/methods/conjac/conjac.hpp>

#include <limber/core/error.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/methods/common/link_report.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/common/touching.hpp>
#include <limber/methods/conjac/adaptive.hpp>
#include <limber/methods/conjac/adaptive_modes.hpp>
#include <limber/methods/conjac/bones.hpp>
#include <limber/methods/conjac/condensation.hpp>
#include <limber/methods/conjac/dynamic_nodes.hpp>
#include <limber/methods/conjac/energy_guard.hpp>
#include <limber/methods/conjac/free_spin.hpp>
#include <limber/methods/conjac/memory.hpp>
#include <limber/methods/conjac/options.hpp>
#include <limber/methods/conjac/report.hpp>
#include <limber/methods/conjac/rigid_motion.hpp>
#include <limber/methods/conjac/sliding.hpp>
#include <limber/sim/contact_state.hpp>
#include <limber/sim/model.hpp>
#include <limber/sim/static_solve.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace limber {
namespace {

constexpr double kBalanced = 1e-10;  // of the largest load on a node

// The paper writes K = df/dx; ours is K = d2E/dx2 = -df/dx. Where it has -K we have +K, and b_q = +(1/h)
// K_qq^-1 f_q.
class ConJac final : public Stepper {
 public:
  ConJac(const Model& model, ConJacOptions options)
      : options_(std::move(options)),
        solver_options_{model.scene->solver, model.scene->ordering},
        nodes_(choose_dynamic_nodes(model, options_.dynamic, options_.adaptive.has_value())) {
    if (options_.adaptive) adaptivity_.emplace(model, nodes_, *options_.adaptive);
    if (model.articulation) attached_ = add_attached_nodes(links_.emplace(model), nodes_);
    link_contact_ = LinkContact::make(model);
    if (link_contact_) {
      if (!guarded() && !paper())
        throw Error(ErrorKind::kInput,
                    "/method/time_rule: bodies touch links by the rules \"guarded\" and \"linear-implicit\" "
                    "only; take one of these, or links whose shapes have no \"contact\"");
      link_contact_->keep_apart(contact_);
    }
    if (options_.body_contact)
      bodies_.emplace(model.mesh,
                      BodyContactOptions{model.scene->contact.stiffness, model.scene->contact.friction, 0, 0},
                      model.scene->contact.alpha, model.size);
    CholeskyOptions factors = solver_options_;
    factors.single = options_.single;
    condensation_.emplace(model, nodes_.nodes, choose_modes(model, options_.dynamic), factors,
                          links_.has_value() || bodies_.has_value());
    if (options_.adaptive && condensation_->has_modes()) mode_adaptivity_.emplace(options_, *condensation_);
  }

  // Algorithm 1; with adaptivity Algorithm 3, whose lines 5 to 8 come before (regions that calm down) and
  // after (regions that wake up: the step is then taken again).
  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    clock_.reset();
    Now now{.model = model, .in = in, .report = report};
    now.held = begin_links(state, in);
    if (adaptivity_) adaptivity_->calm(memory(state));
    now.switched = choose_active(model, state, in);
    if (options_.static_start && state.step == 0 && !start_quasistatic(now, state)) return report;  // line 1
    const std::vector<Anchor> anchors = anchors_of(state);
    if (mode_adaptivity_) now.switched |= mode_adaptivity_->calm(state.step, memory(state));
    condensation_->recall(memory(state).modes);
    measure_start(now, state);

    const bool stays = settled(now, state);
    if (stays) stay(now, state);
    if (stays && mode_adaptivity_) mode_adaptivity_->rest(model, in.h, memory(state));
    for (bool again = !stays; again; again = rouse(now, state)) {
      begin_touching(now, anchors, state);
      begin_body_contacts(now, state);
      if (!paper()) now.slides = find_sliding(model, in, now.start, now.held, contact_);
      do {
        Linearisation at;
        std::optional<Moved> moved;
        for (double fraction = place_to_linearise(now); !moved; fraction = 0) {
          if (!linearise(now, state, fraction, at)) return fail(report, condensation_->why());  // lines 4, 5
          moved = advance(now, at, state);  // lines 6 to 8
        }
        stabilise(now, at, *moved);
        finish(now, at, *moved, state);
      } while (touches_otherwise(now, state));
    }
    if (!stays && !contact_.empty()) {
      auto phase = clock_.phase("contact");
      filter_velocities(model, state, in);
      finish_contacts(contact_, in.h, state, report);
      if (link_contact_) link_contact_->report(contact_, state, in.h, report);
    }
    if (bodies_) finish_body_contacts(now, state);
    if (condensation_->has_modes()) {
      condensation_->keep(memory(state).modes);
      turn_shapes(model, now.spins, now.turns, memory(state).modes.shapes);
    }
    if (state.step == 0 && !stays && (!adaptivity_ || mode_adaptivity_)) {
      auto phase = clock_.phase("modes");
      missed_ = tell_missed(model, state, memory(state).dynamic, in.h, options_.static_start, *condensation_,
                            report);
    }
    tell(now, state, stays);
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
    if (adaptivity_ && !adaptivity_->regions().names.empty()) {
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
    if (link_contact_)
      f.node["contact"] = link_contact_->pressure(model, state);
    else if (!model.contact.empty())
      f.node["contact"] = contact_pressure(model, state);
    name_shapes(model, memory.modes, *condensation_, missed_, f);
    return f;
  }

  std::string misfit(const Model& model, const State& state) const override {
    const ConJacMemory* m = memory_of<ConJacMemory>(state);
    if (!m) return {};
    const auto size = [](const auto& list) { return static_cast<std::ptrdiff_t>(list.size()); };
    if (!m->dynamic.empty() && m->dynamic.size() != nodes_.nodes.size())
      return wrong_size("dynamic", size(m->dynamic), size(nodes_.nodes));
    if (std::any_of(m->dynamic.begin(), m->dynamic.end(), [](std::uint8_t d) { return d > 1; }))
      return "\"dynamic\" has a number other than 0 and 1";
    if (!std::isfinite(m->energy_excess) || m->energy_excess < 0)
      return fmt::format("\"energy_excess\" is {}, expected a number from 0 on", m->energy_excess);
    if (std::string why = condensation_->misfit(m->modes); !why.empty()) return why;
    if (std::string why = m->bodies.misfit(model.nodes()); !why.empty()) return why;
    if (mode_adaptivity_)
      if (std::string why = mode_adaptivity_->misfit(*m); !why.empty()) return why;
    return adaptivity_ ? adaptivity_->misfit(*m) : std::string();
  }

  // Regions outlive a cut: copies of a node share its region. Which nodes are dynamic is chosen again. Modes,
  // which a cut changes, are found again, from the old ones: copies of a node share its motion.
  void carry(const Model&, const TopologyChange& change, State& state) const override {
    if (ConJacMemory* m = state.memory.get<ConJacMemory>()) {
      const ModeMemory old = std::exchange(m->modes, {});
      const Eigen::Index columns =
          old.vectors.empty() ? 0 : *std::max_element(old.vectors.begin(), old.vectors.end());
      const Eigen::Index before = columns == 0 ? 0 : old.shapes.size() / columns,
                         after = 3 * static_cast<Eigen::Index>(change.nodes.rows());
      m->modes.shapes.resize(after * columns);
      for (Eigen::Index k = 0; k < columns; ++k)
        m->modes.shapes.segment(k * after, after) =
            change.nodes.apply3(old.shapes.segment(k * before, before));
      m->sleep = {};
      m->bodies = {};
    }
    state.memory.set_epoch(state.epoch);
  }

 private:
  // One step, as its parts see it.
  struct Now {
    const Model& model;
    const StepInput& in;
    StepReport& report;
    std::vector<std::uint8_t> held = {};  // by the script or by links
    StepStart start = {};
    EnergyGuard::Balance balance = {};      // of the guarded rule
    bool switched = false;                  // other nodes are dynamic than in the last step
    bool roused = false;                    // regions have woken up in this step
    std::vector<std::uint8_t> slides = {};  // pieces that slide on obstacles (sliding.hpp); empty: none
    std::vector<FreeSpin> spins = {};       // pieces that spin freely, and
    std::vector<Turn> turns = {};           // how far they turned
  };

  static ConJacMemory& memory(State& state) { return memory_of<ConJacMemory>(state); }
  bool guarded() const { return options_.rule == TimeRule::kGuarded; }
  // Eq. 11 stays the paper's: with all nodes dynamic it is VANILLA.
  bool paper() const { return options_.rule == TimeRule::kLinearImplicit; }
  bool turns() const { return !paper() && !links_; }

  EnergyGuard::Step judged(const Now& now, const Linearisation& at) {
    return {now.model,   now.in, contact_,         bodies(), now.start,
            now.balance, at,     condensation_->w, now.held, clock_};
  }

  static void go_back(const Now& now, State& state) {
    state.x = now.start.x;
    state.v = now.start.v;
    ++now.report.iterations;
  }

  std::vector<std::uint8_t> begin_links(const State& state, const StepInput& in) {
    if (!links_) return in.fixed;
    links_->begin(state, in);
    return links_->held(in.fixed);
  }

  // The scene's nodes are dynamic, with adaptivity those of lively regions; reserve nodes of a piece only
  // while nothing else fixes its rigid motions. True: somebody switched.
  bool choose_active(const Model& model, State& state, const StepInput& in) {
    std::vector<std::uint8_t>& dynamic = memory(state).dynamic;
    const std::vector<std::uint8_t> before =
        std::exchange(dynamic, std::vector<std::uint8_t>(nodes_.nodes.size(), 0));
    for (std::size_t i = 0; i < static_cast<std::size_t>(nodes_.chosen); ++i)
      dynamic[i] =
          !adaptivity_ || nodes_.region[i] < 0 || adaptivity_->dynamic(memory(state), nodes_.region[i]);
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

  // Line 1: the quasistatic nodes at rest around the dynamic ones, which stay where they are. A piece that
  // nothing holds has no static shape: hung from its dynamic nodes it would sag, into the floor that it lies
  // on.
  bool start_quasistatic(const Now& now, State& state) {
    auto phase = clock_.phase("static_start");
    StepInput held = now.in;
    for (std::size_t i = 0; i < nodes_.nodes.size(); ++i)
      if (memory(state).dynamic[i]) std::fill_n(held.fixed.begin() + 3 * nodes_.nodes[i], 3, std::uint8_t{1});
    Vec3 center;
    for (const Piece& piece : now.model.pieces)
      if (free_rigid_motions(now.model, piece, state.x, now.held, center).cols() > 0)
        for (const Index i : piece.nodes) std::fill_n(held.fixed.begin() + 3 * i, 3, std::uint8_t{1});
    const StaticResult result = solve_static(now.model, held, state.x, 1e-8, 200, solver_options_);
    now.report.iterations += result.iterations;
    if (result.shifts > 0) now.report.fallbacks["shifted_stiffness"] += result.shifts;
    if (!result.converged) fail(now.report, "the initial static solve failed: " + result.why);
    return result.converged;
  }

  // Contacts with obstacles and links for the step.
  void begin_touching(Now& now, const std::vector<Anchor>& anchors, const State& state) {
    if (link_contact_) link_contact_->begin(now.model, state, now.in.h);
    begin_contacts(link_contact_ ? link_contact_->obstacles() : now.model.contact, anchors, state, now.in,
                   contact_, clock_);
    if (link_contact_ && guarded()) now.balance.contact = contact_.energy(now.start.x, now.in.t);
  }

  // Pairs of bodies for the step. A body that touched in the last step is held up, others fall.
  void begin_body_contacts(const Now& now, State& state) {
    if (!bodies_) return;
    auto phase = clock_.phase("contact");
    BodySpringMemory& kept = memory(state).bodies;
    VecX expected = now.start.v;
    std::vector<std::uint8_t> touched(now.model.pieces.size(), 0);
    for (const ContactLaw& law : contact_.laws())
      if (law.active) touched[at(now.model.piece_of_node[law.contact.node])] = 1;
    for (const std::int64_t id : kept.ids)
      touched[at(now.model.piece_of_node[static_cast<Index>(static_cast<std::uint64_t>(id) >> 32)])] = 1;
    for (std::size_t p = 0; p < touched.size(); ++p)
      if (!touched[p])
        for (const Index i : now.model.pieces[p].nodes) node(expected, i) += now.in.h * now.in.gravity;
    restore_fixed(now.in, expected);
    bodies_->begin(kept, now.start.x, now.start.v, expected, now.in.h);
    couple(state);
  }

  void couple(State& state) {
    bodies_->cover(memory(state).bodies.coupled);
    condensation_->couple(memory(state).bodies.coupled);
  }

  void finish_body_contacts(const Now& now, State& state) {
    const BodySprings::Summary touching = bodies_->finish(state.x, memory(state).bodies);
    now.report.extra["body_contacts"] = static_cast<double>(touching.pressing);
    now.report.extra["body_contact_depth"] = touching.depth;  // [m]
    now.report.contacts += touching.pressing;
    if (!bodies_->settled()) ++now.report.fallbacks["contacts_unsettled"];
    if (touching.tunnelled)
      now.report.warnings.push_back("a node went through a body: a smaller time step or a finer mesh helps");
  }

  const BodySprings* bodies() const { return bodies_ ? &*bodies_ : nullptr; }

  // Pieces that are near a contact.
  std::vector<std::uint8_t> touching_pieces(const Model& model) const {
    std::vector<std::uint8_t> out(model.pieces.size(), 0);
    for (const ContactLaw& law : contact_.laws()) out[at(model.piece_of_node[law.contact.node])] = 1;
    if (bodies_)
      for (const RowSpring& spring : bodies_->springs()) {
        out[at(model.piece_of_node[spring.row.node])] = 1;
        out[at(model.piece_of_node[spring.row.face[0]])] = 1;
      }
    return out;
  }

  void measure_start(Now& now, State& state) {
    now.start = {state.x, state.v};
    restore_fixed(now.in, now.start.v);  // what held nodes did before does not belong to the body's energy
    if (guarded())
      now.balance = guard_.measure(now.model, state, now.in, now.start, memory(state).energy_excess, clock_);
  }

  // Without dynamic nodes nothing but stabilisation moves the body, and nothing at all when its forces are in
  // balance already: such a step needs no matrix.
  bool settled(const Now& now, State& state) {
    if (!adaptivity_ || !now.model.contact.empty() || link_contact_ || bodies_ ||
        !now.in.fixed_velocity.isZero(0))
      return false;
    const std::vector<std::uint8_t>& dynamic = memory(state).dynamic;
    if (std::count(dynamic.begin(), dynamic.end(), std::uint8_t{1}) > 0) return false;
    if (mode_adaptivity_ && !ModeAdaptivity::asleep(memory(state))) return false;
    auto phase = clock_.phase("guard");
    const VecX loads = external_force(now.model, now.in);
    const VecX& elastic = elastic_.at(now.model, now.start.x, now.in.activation).f;
    double residual = 0;
    for (Eigen::Index d = 0; d < loads.size(); ++d)
      if (!now.in.fixed[static_cast<std::size_t>(d)])
        residual = std::max(residual, std::abs(elastic[d] + loads[d]));
    return residual < kBalanced * loads.cwiseAbs().maxCoeff();
  }

  static void stay(const Now& now, State& state) {
    state.v.setZero();
    now.report.iterations = 0;
    now.report.extra["drift"] = 0;
  }

  // Which fraction of the step lies before f, K and J. A node that comes down hard stops at the surface,
  // which the velocities at the start know nothing of: such a step is linearised where it begins.
  double place_to_linearise(const Now& now) const {
    const bool symmetric = guarded() || options_.rule == TimeRule::kMidpoint;
    return symmetric && !contact_.closes(now.start.x) && !(bodies_ && bodies_->closes()) ? 0.5 : 0.0;
  }

  // x, where forces and energy are `here`, is no place to linearise a step at.
  bool overshoots(const Now& now, const VecX& x, const fem::Assembled& here) {
    const fem::Assembled& start = elastic_.at(now.model, now.start.x, now.in.activation);
    overshot_ = !here.finite || EnergyGuard::overshoots(now.balance, here.energy,
                                                        0.5 * (start.f + here.f).dot(x - now.start.x));
    return overshot_;
  }

  // After a step that overshot the next one will, too: its forces alone tell, and K need not be assembled
  // there. They are the same bits with K and without, so that nothing but time depends on the last step.
  bool overshoots_again(const Now& now, const VecX& x) {
    if (!overshot_) return false;
    auto phase = clock_.phase("assemble");
    return overshoots(now, x, elastic_.at(now.model, x, now.in.activation));
  }

  // Lines 4 and 5: f, K, J, b (Eqs. 6, 7 and 12) at x0 + fraction h v0. False: no factorisation.
  bool linearise(const Now& now, State& state, double fraction, Linearisation& at) {
    Condensation& c = *condensation_;
    const StepStart& start = now.start;
    const double h = now.in.h;
    at.fraction = fraction;
    at.x = start.x;
    at.v = start.v;
    at.spins.clear();
    if (turns()) at.spins = free_spins(now.model, start, now.held, touching_pieces(now.model));
    if (fraction > 0) at.x += fraction * h * start.v;
    turn_to(now.model, fraction, h, start, at.spins, at.x, at.v);
    const VecX& x = at.x;
    at.loads = external_force(now.model, now.in);
    const bool judged = fraction > 0 && guarded();
    if (judged && overshoots_again(now, x)) return linearise(now, state, 0, at);
    const bool finite = c.assemble(x, now.in, contact_, bodies(), clock_);
    if (judged && overshoots(now, x, c.system)) return linearise(now, state, 0, at);
    if (!finite) return false;
    now.report.inverted = c.system.inverted;
    now.report.extra["linearised_at"] = fraction;
    at.force = c.system.f + at.loads;
    at.closing.setZero(x.size());
    contact_.add_force(x, (1 - fraction) * h, at.force, at.closing);
    if (bodies_) bodies_->add_force(x - start.x, at.force, at.closing);
    if (link_contact_) at.touches = link_contact_->touches(contact_, x, (1 - fraction) * h);
    at.correction = at.force;
    const VecX unrelieved = at.force;
    relieve_inertia(now.model, at.x, at.v, now.held, at.correction);
    at.force += at.closing;
    add_frame_force(now.model, at.spins, at.v, at.force);
    at.unbalanced = at.correction;
    bool condensed = false;
    do {
      at.correction = at.unbalanced;
      condensed =
          c.condense(memory(state).dynamic, contact_, at.touches, at.force, at.v, at.correction, clock_);
    } while (condensed && mode_adaptivity_ && mode_adaptivity_->rouse(now.model, at.unbalanced));
    if (c.shifts > 0) now.report.fallbacks["shifted_stiffness"] += c.shifts;
    if (c.raised > 0) now.report.fallbacks["double_precision"] += c.raised;
    if (!condensed) return false;
    settle_sliding(now.model, now.slides, now.held, unrelieved, c, at, clock_);
    leave_out_rigid(now.model, at.spins, at.x, at.correction);
    now.report.extra["drift"] = at.correction.size() ? at.correction.cwiseAbs().maxCoeff() : 0.0;  // [m]
    take_share(now.model, now.slides, options_.gamma, at.correction);
    // Nodes that will touch go all the way to the surface.
    if (!at.closing.isZero(0)) {
      auto phase = clock_.phase("solve");
      c.solve_quasistatic(at.closing);
    }
    auto phase = clock_.phase("reduced");
    at.reduced.pieces.clear();
    VecX k_p = VecX::Zero(c.unknowns);
    if (fraction > 0) k_p = c.restrict_stiffness_times(at.v - c.w);
    for (const CondensedPiece& piece : c.pieces()) {
      ReducedSystem& reduced = at.reduced.pieces.emplace_back();
      reduced.h = h;
      reduced.M = piece.M_r;
      reduced.S = piece.S;
      if (contact_.active() > 0 || (bodies_ && bodies_->active() > 0)) reduced.S_contact = piece.S_contact;
      reduced.damping_mass = now.model.scene->damping_mass;
      reduced.damping_stiffness = now.model.scene->damping_stiffness;
      reduced.force = piece.f_r;
      reduced.k_w = piece.k_w;
      reduced.m_w = piece.m_w;
      reduced.momentum = piece.p_r;
      reduced.k_p = k_p.segment(piece.begin, piece.J.cols());
      reduced.fraction = fraction;
      reduced.twists0 = at.touches.start - at.touches.predicted;
      reduced.prepare();
    }
    return true;
  }

  // Line 6, Eq. 11 or another time rule, and lines 7 and 8. None: the guard asks for a linearisation at the
  // start of the step.
  std::optional<Moved> advance(const Now& now, const Linearisation& at, State& state) {
    const auto move = [&](const Advance& how, double share) { return extended(now, at, how, share, state); };
    switch (options_.rule) {
      case TimeRule::kLinearImplicit:
        return move({Advance::By::kEq11, options_.beta}, 1);
      case TimeRule::kModal:
        return move({Advance::By::kModal}, 1);
      case TimeRule::kTrapezoidal:
      case TimeRule::kMidpoint:
        return move({Advance::By::kTheta, 0.5}, 1);
      case TimeRule::kGuarded:
        break;
    }
    return guard_.advance(judged(now, at), move, now.report);
  }

  // Line 6; lines 7 and 8, Eq. 13, with the held nodes' share w and what closes contacts: v = J v_d + w,
  // x = x0 + J y + h w + gamma h b + c. `share` of the last two.
  Moved extended(const Now& now, const Linearisation& at, const Advance& how, double share, State& state) {
    const Condensation& c = *condensation_;
    Moved end;
    VecX bones, twists;  // unknowns that follow links, and minus the predicted ones of touched links [m/s]
    if (links_) {
      const BoneStep flesh{
          at.reduced.pieces.front(), c.pieces().front().dofs, now.model.mass, now.start, now.in, at.touches};
      BoneMotion both = step_with_bones(flesh, how, *links_, state);
      end.motion = std::move(both.motion);
      bones = std::move(both.bones);
      if (!at.touches.empty()) twists = std::move(both.twists);
      end.bones = both.work;
    } else {
      end.motion = at.reduced.advance(how);
    }
    auto phase = clock_.phase("reduced");
    MatX y(end.motion.velocity.size(), 2 + (bones.size() > 0) + (twists.size() > 0));
    y.col(0) = end.motion.velocity;
    y.col(1) = end.motion.displacement;
    if (bones.size() > 0) y.col(2) = bones;
    if (twists.size() > 0) y.col(3) = twists;
    const MatX moved = c.extend(y);
    end.x = now.start.x + now.in.h * c.w + share * at.correction + share * at.closing + moved.col(1);
    end.v = c.w + moved.col(0);
    end.imposed = bones.size() > 0 ? VecX(c.w + moved.col(2)) : c.w;
    if (twists.size() > 0) end.w = c.w + moved.col(3);
    if (link_contact_) {
      link_contact_->moved(state);
      contact_.follow_obstacles();
    }
    end.dissipated = at.reduced.dissipation(with_predicted_links(at, now.in.h, end.motion));
    if (!at.spins.empty())
      end.turns = turn_back({now.model, now.start, at.x, at.loads, now.in.h}, at.spins, moved.col(1),
                            share * at.correction, end.x, end.v);
    return end;
  }

  // The motion with all of the way of links that are touched, of which w has the greater part.
  static ReducedMotion with_predicted_links(const Linearisation& at, double h, ReducedMotion motion) {
    if (!at.touches.empty())
      motion.displacement.tail(at.touches.predicted.size()) += h * at.touches.predicted;
    return motion;
  }

  // Section 5.1: further quasi-Newton steps of the quasistatic nodes with the same factor. A step that would
  // raise the potential energy is not taken.
  void stabilise(const Now& now, const Linearisation& at, Moved& moved) {
    for (int k = 0; k < options_.newton_steps; ++k) {
      auto phase = clock_.phase("stabilise");
      const fem::Assembled& here = elastic_.at(now.model, moved.x, now.in.activation);
      VecX step = here.f + at.loads;
      contact_.add_force(moved.x, step);
      if (bodies_) bodies_->add_force(moved.x - now.start.x, step);
      VecX inertia = step;
      relieve_inertia(now.model, moved.x, moved.v, now.held, at.moving.size() ? at.moving : inertia, step);
      inertia -= step;  // M a: a load like any other while the body accelerates as a whole
      condensation_->solve_quasistatic(step);
      leave_out_rigid(now.model, at.spins, moved.x, step);
      const VecX x = moved.x + step;
      const fem::Assembled& there = elastic_.at(now.model, x, now.in.activation);
      double contact = contact_.potential(x) - contact_.potential(moved.x);
      if (bodies_) contact += bodies_->potential(x - now.start.x) - bodies_->potential(moved.x - now.start.x);
      if (!(there.energy - here.energy + contact <= (at.loads - inertia).dot(step))) {
        ++now.report.fallbacks["stabilisation_refused"];
        return;
      }
      moved.x = x;
      keep_spin(now.model, at.spins, moved.turns, moved.x, moved.v);
    }
  }

  // The state at the end of the step.
  void finish(Now& now, const Linearisation& at, Moved& moved, State& state) {
    if (guarded()) {
      // A region that has just become quasistatic is on its way to its equilibrium, and loses energy for
      // good.
      const bool give_back =
          !links_ && !now.switched && !(adaptivity_ && adaptivity_->relaxing(memory(state)));
      memory(state).energy_excess = guard_.settle(judged(now, at), give_back, moved);
    }
    if (condensation_->has_modes()) tell_modes(*condensation_, at, moved, now.report);
    if (mode_adaptivity_) mode_adaptivity_->record(now.model, now.in.h, at, moved.motion, memory(state));
    now.spins = at.spins;
    now.turns = std::move(moved.turns);
    state.x = std::move(moved.x);
    state.v = std::move(moved.v);
    if (links_) links_->place(state);
  }

  // The step shows that other nodes touch than was expected, and is to be taken again.
  bool touches_otherwise(const Now& now, State& state) {
    auto phase = clock_.phase("contact");
    bool again = contact_.revise(state.x) || contact_.renew_friction(state.x);
    if (bodies_ && bodies_->revise(state.x)) {
      again = true;
      couple(state);
    }
    if (!again) return false;
    go_back(now, state);
    return true;
  }

  // Algorithm 3, lines 4 to 8, for nodes that wake up. They do so before the step that shows that they
  // should.
  bool rouse(Now& now, State& state) {
    if (!adaptivity_) return false;
    auto phase = clock_.phase("liveliness");
    if (now.roused || !adaptivity_->rouse(now.model, now.start.x, now.in.h, state.x, memory(state)))
      return false;
    go_back(now, state);
    now.switched |= choose_active(now.model, state, now.in);
    return now.roused = true;
  }

  // The paper's friction: filtered velocities of all nodes, then the velocities of the unknowns nearest to
  // them in the norm of M + beta h^2 K. With v_f = J v_d + d that is (M_r + beta h^2 S) dv_d = Jᵀ (M + beta
  // h^2 K) d.
  void filter_velocities(const Model& model, State& state, const StepInput& in) {
    const VecX v = state.v;
    if (!filter_friction(model, contact_, in, state)) return;
    const Condensation& c = *condensation_;
    const VecX d = state.v - v;
    const double s = options_.beta * in.h * in.h;
    VecX dv = c.restrict_to_unknowns(model.mass.cwiseProduct(d));
    const VecX k_d = c.restrict_stiffness_times(d);
    for (const CondensedPiece& piece : c.pieces()) {
      const Eigen::Index r = piece.S.rows();
      const MatX A = piece.M_r + s * piece.S;
      const VecX rhs = dv.segment(piece.begin, r) + s * k_d.segment(piece.begin, r);
      dv.segment(piece.begin, r) = DenseCholesky<Eigen::Dynamic>(A).solve(rhs);
    }
    const VecX change = c.extend(dv);
    state.v = v + change;
    state.x += in.h * change;
  }

  void tell(const Now& now, State& state, bool stays) {
    StepReport& report = now.report;
    report.dofs = stays ? 0 : static_cast<Index>(condensation_->unknowns);
    if (links_) {
      report_links(*now.model.articulation, links_->outcome(), now.in.h, report);
      report.dofs += now.model.articulation->mechanism.velocities - static_cast<Index>(links_->dofs().size());
      if (!stays) report.dofs -= static_cast<Index>(condensation_->pieces().front().twists);
    }
    report.symbolic_analyses = condensation_->analyses();
    const std::vector<std::uint8_t>& dynamic = memory(state).dynamic;
    report.extra["dynamic_nodes"] =
        static_cast<double>(std::count(dynamic.begin(), dynamic.end(), std::uint8_t{1}) - attached_);
    if (adaptivity_) tell_liveliness(now, state);
    report.phases = clock_.phases();
  }

  void tell_liveliness(const Now& now, State& state) {
    {
      auto phase = clock_.phase("liveliness");
      adaptivity_->record(now.model, now.start.x, now.in.h, state.x, memory(state));
    }
    StepReport& report = now.report;
    report.extra["switches"] = adaptivity_->switches(memory(state));
    if (mode_adaptivity_) {
      report.extra["switches"] += mode_adaptivity_->switches(memory(state));
      report.extra["dynamic_modes"] = mode_adaptivity_->dynamic();
    }
    const auto storage = std::exchange(storage_, condensation_->storage());
    report.extra["allocations"] = storage.first != nullptr && storage != storage_ ? 1 : 0;
    const std::vector<double> mean = adaptivity_->means(memory(state));
    for (std::size_t r = 0; r < mean.size(); ++r) {
      const std::string& name = adaptivity_->regions().names[r];
      report.extra["liveliness/" + name] = mean[r];
      report.extra["dynamic/" + name] = adaptivity_->dynamic(memory(state), static_cast<Index>(r)) ? 1 : 0;
    }
  }

  const ConJacOptions options_;
  const CholeskyOptions solver_options_;

  DynamicNodes nodes_;
  std::optional<Adaptivity> adaptivity_;
  std::optional<Condensation> condensation_;
  std::optional<ModeAdaptivity> mode_adaptivity_;
  std::optional<LinkCoupling> links_;
  std::optional<LinkContact> link_contact_;
  Index attached_ = 0;  // nodes that move with links
  ElasticForces elastic_;
  bool overshot_ = false;  // the last step that was judged; see overshoots_again
  const EnergyGuard guard_{elastic_};
  ContactStep contact_;
  std::optional<BodySprings> bodies_;
  Condensation::Missed missed_;                    // of the first step, for the recording
  std::pair<const void*, const void*> storage_{};  // of K and its factor in the last step
  PhaseClock clock_;
};

}  // namespace

std::unique_ptr<Stepper> make_conjac(const Model& model, const nlohmann::json& options, const Preparation&) {
  return std::make_unique<ConJac>(model, ConJacOptions::read(options, model.scene->file));
}

}  // namespace limber
