#include <limber/methods/rigidify/rigidify.hpp>

#include <limber/core/motion.hpp>
#include <limber/mesh/geometry.hpp>
#include <limber/methods/common/link_report.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/rigidify/links.hpp>
#include <limber/methods/rigidify/mixed_system.hpp>
#include <limber/methods/rigidify/newton.hpp>
#include <limber/methods/rigidify/quick_solve.hpp>
#include <limber/methods/rigidify/row_contact.hpp>
#include <limber/sim/contact_state.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace limber::rigidify {
namespace {

// The quick solve falls short of what new loads do: of the rates that they cause it finds about 0.4 (root of
// them), so that the threshold is lower in the step in which a load is new (docs/methods/rigidify.md).
constexpr double kNewLoad = 1.0 / 6;
// Loads of a sleeping object may change by what moves a strain rate by this share of the threshold at most.
constexpr double kAsleep = 0.05;
// Steps between looks at strain rates while nothing is rigid.
constexpr std::int32_t kLookEvery = 4;
constexpr std::size_t kSample = 8;  // one element of so many is looked at first
// What pieces cost is paid in advance, so that nothing is ever much slower for them: an object has a credit
// of steps (full ones, of its own). A new mask takes from it, and pieces give back what they save. Without
// pieces it earns kEarn a step. What it cannot pay is not done: pieces do not grow, and those that would have
// to shrink go altogether, which costs no analysis. So 100 steps lose 1 + 100 kEarn steps at most.
constexpr double kMostCredit = 1, kEarn = 0.005;
constexpr double kPredictElement = 100;  // [ns], beside those of MixedSystem's costs

class Rigidify final : public Stepper {
 public:
  Rigidify(const Model& model, const RigidifyOptions& options)
      : options_(options),
        mesh_(model),
        system_(model, options.tau_rigid > 0 ? MixedSystem::Economy::kAll : MixedSystem::Economy::kNone),
        contact_(model, options),
        newton_(model, options) {
    if (options.tau_rigid > 0) {
      quick_.emplace(model, mesh_, system_.order());
      for (const std::vector<Index>& elements : mesh_.object_elements)
        for (std::size_t k = 0; k < elements.size(); k += kSample) sampled_.push_back(elements[k]);
      std::sort(sampled_.begin(), sampled_.end());
      samples_ = fem::make_plan(*model.elements, sampled_);
    }
    if (model.articulation) {
      links_.emplace(model);
      system_.keep_whole();
    }
    for (std::size_t k = 0; k < kBins; ++k) {
      const std::string from =
          k == 0 ? "0" : fmt::format("{:.3g}", std::pow(10, 0.5 * (double(k) - kTauBin)));
      if (k > 0) bin_begin_[k - 1] = options.tau_rigid * std::pow(10, double(k) - kTauBin);
      elastic_name_[k] = "rate_elastic/" + from;
      rigid_name_[k] = "rate_rigid/" + from;
    }
  }

  // Algorithm 1.
  StepReport step(const Model& model, State& state, const StepInput& script) override {
    StepReport report;
    clock_.reset();
    const StepInput& in = links_ ? links_->begin(state, script) : script;
    RigidifyMemory& memory = memory_of<RigidifyMemory>(state);
    begin(model, memory);
    holds_ = find_holds(model, mesh_.plane_node, state.x, script);
    if (links_) links_->mark(holds_.kind);
    {
      auto phase = clock_.phase("contact");
      contact_.leave_alone(memory.alone);
      contact_.begin(memory, state.x, state.v, script);
    }
    choose_pieces(model, state, in, memory, report);  // quick solve, strain rates, BFS, rigid properties
    leave_alone(memory);
    system_.set_pieces(assignment_);
    known_ = driven_velocities(model, state.x, in.h);
    const VecX x0 = state.x;
    VecX u, impulses;
    const bool ok = options_.newton
                        ? newton_.solve(state, in, pieces_, known_, system_, contact_, u, report, clock_)
                        : linear_step(model, state, in, script, u, impulses, report);
    report.inverted = system_.elastic().inverted;
    report.symbolic_analyses = system_.analyses();
    report.phases = clock_.phases();
    if (!ok) return report;
    {
      auto phase = clock_.phase("move");
      move(model, script, u, state, memory);
      if (links_) links_->place(state);
    }
    {
      auto phase = clock_.phase("contact");
      const VecX v1 = (state.x - x0) / in.h;
      contact_.finish(in.h, v1, impulses, memory, report);
      contact_forces_ = contact_.forces(options_.newton ? 0 : model.scene->damping_stiffness, v1, impulses);
    }
    {
      auto phase = clock_.phase("strain rates");
      watch_strain(x0, state, in.h, memory);
    }
    settle_credit(memory);
    memory.hold = holds_.kind;
    memory.force = in.force;
    memory.activation = in.activation;
    report.dofs = system_.free_unknowns();
    if (links_) {
      report_links(*model.articulation, links_->outcome(), in.h, report);
      report.dofs += model.articulation->mechanism.velocities;
    }
    tell(model, report);
    report.phases = clock_.phases();
    return report;
  }

  // Those of the last step; before one they are springs without friction.
  StepForces forces(const Model&, const State&) const override {
    StepForces out;
    out.contact_known = contact_forces_.has_value();
    if (contact_forces_) out.contact = *contact_forces_;
    return out;
  }

  MethodFields fields(const Model& model, const State& state) const override {
    MethodFields f;
    if (links_) f = link_fields(*model.articulation, links_->outcome());
    const RigidifyMemory* memory = memory_of<RigidifyMemory>(state);
    std::vector<double> piece(model.mesh.elements.size(), 0.0), rate(piece.size(), 0.0);
    if (memory && !memory->piece.empty())
      for (std::size_t e = 0; e < piece.size(); ++e) piece[e] = memory->piece[e] + 1.0;
    for (std::size_t e = 0; e < rate_.size(); ++e) rate[e] = std::sqrt(rate_[e]);
    f.element["rigid_piece"] = std::move(piece);  // 0: elastic
    f.element["strain_rate"] = std::move(rate);
    f.units["strain_rate"] = "1/s";
    if (!model.contact.empty()) f.node["contact"] = contact_pressure(model, state);
    return f;
  }

  std::string misfit(const Model& model, const State& state) const override {
    const RigidifyMemory* m = memory_of<RigidifyMemory>(state);
    if (!m || m->piece.empty()) return {};
    const auto elements = static_cast<std::ptrdiff_t>(model.mesh.elements.size());
    const auto pieces = static_cast<std::ptrdiff_t>(m->piece_state.size() / kPieceNumbers);
    const auto size = [](const auto& v) { return static_cast<std::ptrdiff_t>(v.size()); };
    if (size(m->piece) != elements) return wrong_size("piece", size(m->piece), elements);
    if (size(m->quiet) != elements) return wrong_size("quiet", size(m->quiet), elements);
    if (!m->rate.empty() && size(m->rate) != elements) return wrong_size("rate", size(m->rate), elements);
    if (size(m->hold) != model.nodes()) return wrong_size("hold", size(m->hold), model.nodes());
    if (m->force.size() != 3 * model.nodes()) return wrong_size("force", m->force.size(), 3 * model.nodes());
    if (m->load.size() != 3 * model.nodes()) return wrong_size("load", m->load.size(), 3 * model.nodes());
    if (size(m->asleep) != size(model.pieces))
      return wrong_size("asleep", size(m->asleep), size(model.pieces));
    if (size(m->alone) != size(model.pieces)) return wrong_size("alone", size(m->alone), size(model.pieces));
    if (size(m->credit) != size(model.pieces))
      return wrong_size("credit", size(m->credit), size(model.pieces));
    if (size(m->waiting) != size(model.pieces))
      return wrong_size("waiting", size(m->waiting), size(model.pieces));
    for (const double credit : m->credit)
      if (!std::isfinite(credit)) return "\"credit\" has a number that is not finite";
    if (m->activation.size() != model.activations.size())
      return wrong_size("activation", size(m->activation), size(model.activations));
    if (m->piece_state.size() % kPieceNumbers != 0)
      return fmt::format("\"piece_state\" has {} numbers, expected {} for each piece", m->piece_state.size(),
                         kPieceNumbers);
    if (size(m->contact_memory) != 3 * size(m->contact_ids))
      return wrong_size("contact_memory", size(m->contact_memory), 3 * size(m->contact_ids));
    for (const std::int32_t j : m->piece)
      if (j < -1 || j >= pieces) return fmt::format("\"piece\" names piece {}; there are {}", j, pieces);
    for (const std::int64_t id : m->contact_ids)
      if (id < 0 || (id >> 32) >= model.nodes())
        return fmt::format("\"contact_ids\" names node {}; there are {}", id >> 32, model.nodes());
    for (const double number : m->piece_state)
      if (!std::isfinite(number)) return "\"piece_state\" has a number that is not finite";
    for (std::size_t k = 0; k < m->piece_state.size(); k += kPieceNumbers)
      if (!(m->piece_state[k + 15] > 0)) return "\"piece_state\" has a piece without mass";
    if (std::string why = contact_.misfit(*m); !why.empty()) return why;
    if (!m->force.allFinite() || !m->load.allFinite()) return "a force is not finite";
    return {};
  }

 private:
  // The pieces of the memory; of an empty one, none.
  void begin(const Model& model, RigidifyMemory& memory) {
    if (memory.piece.empty()) {
      memory.piece.assign(model.mesh.elements.size(), -1);
      memory.quiet.assign(model.mesh.elements.size(), 0);
      memory.hold.assign(at(model.nodes()), 0);
      memory.force.setZero(3 * model.nodes());
      memory.load.setZero(3 * model.nodes());
      memory.activation.assign(model.activations.size(), 0.0);
      memory.asleep.assign(model.pieces.size(), 0);
      memory.alone.assign(model.pieces.size(), 0);
      memory.credit.assign(model.pieces.size(), kMostCredit);
      memory.waiting.assign(model.pieces.size(), 0);
    }
    // What a frame shows follows from its own step, after a restart too.
    rate_.assign(memory.piece.size(), 0.0);
    elastic_count_ = rigid_count_ = {};
    predicted_.assign(model.pieces.size(), 0);
    if (memory.piece != assignment_.element) assignment_ = pieces_of(mesh_, memory, model.nodes());
    pieces_ = load_pieces(memory);
  }

  bool all_rigid(std::size_t object) const {
    return assignment_.rigid_elements[object] == static_cast<Index>(mesh_.object_elements[object].size());
  }

  // Objects that are rigid as a whole and had no contact with themselves in the step in which they became so
  // have none until they deform.
  void leave_alone(RigidifyMemory& memory) {
    if (!contact_.between_bodies()) return;
    bool any = false;
    for (std::size_t o = 0; o < memory.alone.size(); ++o) any |= all_rigid(o) != (memory.alone[o] != 0);
    if (!any) return;
    const std::vector<std::uint8_t> near = contact_.objects_near_themselves();
    for (std::size_t o = 0; o < near.size(); ++o) memory.alone[o] = all_rigid(o) && !near[o];
    contact_.leave_alone(memory.alone);
  }

  // What a mask costs an object in full steps if so many of its elements are rigid; and whether it can pay.
  double mask_steps(std::size_t object, Index rigid) const {
    const double elastic = 1 - rigid / static_cast<double>(mesh_.object_elements[object].size());
    return elastic * system_.mask_cost(object) / system_.full_cost(object);
  }
  bool can_pay(const RigidifyMemory& memory, std::size_t object, Index rigid) const {
    return !options_.never_slower ||
           memory.credit[object] >= std::min(kMostCredit, mask_steps(object, rigid));
  }

  // After a step.
  void settle_credit(RigidifyMemory& memory) const {
    if (options_.tau_rigid == 0 || !options_.never_slower) return;
    for (std::size_t o = 0; o < memory.credit.size(); ++o) {
      double earned = kEarn;
      if (assignment_.rigid_elements[o] > 0) {
        const double full = system_.full_cost(o);
        earned = 1 - system_.present_cost(o) / full;
        if (predicted_[o])
          earned -= kPredictElement * static_cast<double>(mesh_.object_elements[o].size()) / full;
      }
      memory.credit[o] = std::min(kMostCredit, memory.credit[o] + earned);
    }
  }

  // Which elements are rigid in this step (sections 3.4, 3.5).
  void choose_pieces(const Model& model, State& state, const StepInput& in, RigidifyMemory& memory,
                     StepReport& report) {
    if (options_.tau_rigid == 0) return;
    // Objects with elements that have become quiet since pieces last grew, and with enough that may be rigid:
    // of what is too little for `least_share` nothing is tried.
    const bool grow = state.step % options_.regrow == 0;
    const int lately = std::max(options_.regrow, kLookEvery);
    std::vector<std::uint8_t> growing(model.pieces.size(), 0);
    std::vector<Index> ready(model.pieces.size(), 0);
    for (std::size_t e = 0; grow && e < memory.piece.size(); ++e) {
      const std::size_t o = at(mesh_.object_of[e]);
      const int quiet = memory.quiet[e] - options_.quiet_steps;
      ready[o] += memory.piece[e] >= 0 || quiet >= 0;
      if (memory.piece[e] < 0 && quiet >= 0 && quiet < lately) growing[o] = 1;
    }
    for (std::size_t o = 0; grow && o < growing.size(); ++o) {
      growing[o] |= memory.waiting[o];
      memory.waiting[o] = 0;
      if (2.0 * ready[o] < options_.least_share * static_cast<double>(mesh_.object_elements[o].size()))
        growing[o] = 0;
      if (growing[o] && !can_pay(memory, o, ready[o])) {
        growing[o] = 0;
        memory.waiting[o] = 1;
      }
    }
    const bool any_growing = std::find(growing.begin(), growing.end(), 1) != growing.end();
    if (pieces_.empty() && !any_growing) return;
    std::vector<std::uint8_t> flagged(memory.piece.size(), 0), loose(holds_.kind.size(), 0);
    std::vector<std::uint8_t> changed(model.pieces.size(), 0);  // objects whose pieces are to be found anew
    for (std::size_t i = 0; i < holds_.kind.size(); ++i) {
      loose[i] = holds_.kind[i] == static_cast<std::uint8_t>(HoldKind::kMoving);
      if (holds_.kind[i] != memory.hold[i]) changed[at(model.piece_of_node[i])] = 1;
    }
    if (!pieces_.empty() || (options_.swing && any_growing)) {
      auto phase = clock_.phase("quick solve");
      elastify(model, state, in, growing, memory, flagged, report);
    }
    auto phase = clock_.phase("pieces");
    std::vector<std::uint8_t> candidate(memory.piece.size(), 0);
    for (std::size_t e = 0; e < candidate.size(); ++e) {
      candidate[e] = !flagged[e] && (memory.piece[e] >= 0 || memory.quiet[e] >= options_.quiet_steps);
      if (!flagged[e]) continue;
      changed[at(mesh_.object_of[e])] = 1;
      for (int a = 0; a < corners(mesh_.nodes[e]); ++a)  // and all elements that touch it
        loose[at(mesh_.nodes[e][static_cast<std::size_t>(a)])] = 1;
    }
    std::vector<std::uint8_t> dissolved(changed.size(), 0);
    std::vector<Index> stay = assignment_.rigid_elements;
    for (std::size_t e = 0; e < flagged.size(); ++e) stay[at(mesh_.object_of[e])] -= flagged[e];
    for (std::size_t o = 0; o < changed.size(); ++o) {
      if (assignment_.rigid_elements[o] > 0)
        dissolved[o] =
            (options_.never_slower && memory.credit[o] < 0) || (changed[o] && !can_pay(memory, o, stay[o]));
      changed[o] |= growing[o] | dissolved[o];
    }
    for (std::size_t e = 0; e < candidate.size(); ++e)
      if (dissolved[at(mesh_.object_of[e])]) candidate[e] = 0;
    if (std::find(changed.begin(), changed.end(), 1) == changed.end()) return;
    Regrowth next =
        regrow_pieces(mesh_, assignment_, changed, options_.least_share, candidate, loose, holds_.kind);
    if (next.pieces.element == assignment_.element && next.pieces.held == assignment_.held) return;
    std::vector<std::uint8_t> paid(changed.size(), 0);
    for (std::size_t e = 0; e < next.pieces.element.size(); ++e) {
      const bool was = memory.piece[e] >= 0, is = next.pieces.element[e] >= 0;
      if (was && !is) memory.quiet[e] = 0;
      if (was != is) paid[at(mesh_.object_of[e])] = 1;
    }
    for (std::size_t o = 0; options_.never_slower && o < paid.size(); ++o)
      if (const Index rigid = next.pieces.rigid_elements[o]; paid[o] && rigid > 0)
        memory.credit[o] -= mask_steps(o, rigid);
    assignment_ = std::move(next.pieces);
    memory.piece = assignment_.element;
    std::vector<RigidPiece> pieces;
    for (std::size_t j = 0; j < assignment_.held.size(); ++j) {
      if (next.kept[j] >= 0) {
        pieces.push_back(pieces_[at(next.kept[j])]);
        continue;
      }
      const std::vector<Index>& nodes = assignment_.piece_nodes[j];
      pieces.push_back(start_piece(nodes, assignment_.held[j], model.mass, state.x, state.v));
      const Vec3 v = pieces[j].velocity(), w = pieces[j].spin();
      for (const Index i : nodes) node(state.v, i) = v + cross(w, node(state.x, i) - pieces[j].c);
    }
    pieces_ = std::move(pieces);
  }

  // Velocities of the nodes of driven pieces over the step; empty: there are none.
  VecX driven_velocities(const Model& model, const VecX& x, double h) const {
    VecX out;
    for (std::size_t j = 0; j < pieces_.size(); ++j) {
      if (pieces_[j].held != static_cast<std::uint8_t>(PieceHold::kDriven)) continue;
      if (out.size() == 0) out.setZero(x.size());
      const std::vector<Index>& nodes = assignment_.piece_nodes[j];
      const RigidMotion& motion = holds_.driven[at(model.piece_of_node[at(nodes.front())])];
      for (const Index i : nodes) node(out, i) = motion.displacement(node(x, i)) / h;
    }
    return out;
  }

  // Section 3.5.
  void elastify(const Model& model, const State& state, const StepInput& in,
                std::span<const std::uint8_t> growing, RigidifyMemory& memory,
                std::vector<std::uint8_t>& flagged, StepReport& report) {
    const std::size_t objects = model.pieces.size();
    std::vector<std::uint8_t> fresh(objects, 0);  // has new loads
    for (const Index o : contact_.objects_with_new_contacts()) fresh[at(o)] = 1;
    for (Index i = 0; i < model.nodes(); ++i)
      if (holds_.kind[at(i)] != memory.hold[at(i)] || node(in.force, i) != node(memory.force, i))
        fresh[at(model.piece_of_node[at(i)])] = 1;
    // What the script moves is accelerated in other ways than by loads, and never sleeps.
    std::vector<std::uint8_t> driven(objects, 0);
    for (Index i = 0; i < model.nodes(); ++i)
      if (holds_.kind[at(i)] == static_cast<std::uint8_t>(HoldKind::kDriven))
        driven[at(model.piece_of_node[at(i)])] = 1;
    VecX gain = driven_velocities(model, state.x, in.h);
    for (Index i = 0; gain.size() > 0 && i < model.nodes(); ++i)
      if (const std::int32_t j = assignment_.node[at(i)];
          j >= 0 && pieces_[at(j)].held == static_cast<std::uint8_t>(PieceHold::kDriven))
        node(gain, i) -= node(state.v, i);
    const bool activated = in.activation != memory.activation;
    quick_->begin(in, holds_.kind);
    const double b = model.scene->damping_stiffness;
    VecX impulse = in.h * in.force;
    impulse += contact_.predict(in.h, b, state.v, [&](Index i) { return quick_->compliance(i); });
    std::vector<Index> asked;
    for (std::size_t o = 0; o < objects; ++o) {
      if (assignment_.rigid_elements[o] == 0) memory.asleep[o] = 0;
      if (assignment_.rigid_elements[o] == 0 && !(options_.swing && growing[o])) continue;
      // Between predictions nothing is let go but for loads that are new.
      if (state.step % options_.predict_every != 0 && !fresh[o] && !activated && !growing[o]) continue;
      if (options_.sleep && all_rigid(o) && !activated && !driven[o] && memory.asleep[o] &&
          sleeps(model, o, in.h, impulse, memory))
        continue;
      asked.push_back(static_cast<Index>(o));
    }
    report.extra["quick_solves"] = static_cast<double>(asked.size());
    if (asked.empty()) return;
    for (Index i = 0; i < model.nodes(); ++i) node(impulse, i) += in.h * model.mass[3 * i] * in.gravity;
    VecX drag = VecX::Zero(state.x.size());
    system_.set_pieces(assignment_);
    system_.add_stiffness_times(in.h * in.h + in.h * b, state.x, in.activation, state.v, drag);
    for (const Index o : asked) {
      predicted_[at(o)] = 1;
      const std::vector<double>& rate =
          quick_->predict(o, state.x, state.v, impulse, drag, gain, options_.swing);
      const bool is_new = fresh[at(o)] || activated;
      const double limit = (is_new ? kNewLoad : 1.0) * options_.tau_elastic;
      const std::vector<Index>& elements = mesh_.object_elements[at(o)];
      bool found = false;
      for (std::size_t k = 0; k < elements.size(); ++k) {
        const std::size_t e = at(elements[k]);
        if (memory.piece[e] < 0) {
          // What would have to be let go again does not begin to be rigid.
          if (options_.swing && !(rate[k] <= options_.tau_rigid)) memory.quiet[e] = 0;
          continue;
        }
        rate_[e] = rate[k];
        ++rigid_count_[bin_of(rate[k])];
        if (!(rate[k] <= limit)) flagged[e] = found = 1;
      }
      memory.asleep[at(o)] = !found;
      for (const Index i : model.pieces[at(o)].nodes)
        node(memory.load, i) = (node(impulse, i) - in.h * model.mass[3 * i] * in.gravity) / in.h;
    }
  }

  // Whether the loads on an object, seen from it, are those of the last quick solve.
  bool sleeps(const Model& model, std::size_t object, double h, const VecX& impulse,
              const RigidifyMemory& memory) const {
    const double limit = kAsleep * std::sqrt(options_.tau_elastic);
    for (const Index i : model.pieces[object].nodes) {
      const Vec3 change = node(impulse, i) / h - node(memory.load, i);
      if (change.norm() * quick_->reach(i, h) > limit) return false;
    }
    return true;
  }

  // Eq. 11, in momenta: A u = h Gᵀ f + (M v, p, L). `in` holds the nodes on links as well, whose joints
  // `state` has anew afterwards.
  bool linear_step(const Model& model, State& state, const StepInput& in, const StepInput& script, VecX& u,
                   VecX& impulses, StepReport& report) {
    const double a = model.scene->damping_mass, b = model.scene->damping_stiffness;
    VecX force = external_force(model, in);
    {
      auto phase = clock_.phase("assemble");
      if (system_.assemble(state.x, in.activation).first_bad >= 0) {
        fail(report, bad_element(system_.elastic()));
        return false;
      }
      system_.add_force(1, force);
    }
    VecX rest;  // the unknowns for links at rest
    bool new_couplings = true;
    for (report.iterations = 1;; ++report.iterations) {
      VecX rhs, whole_rhs;
      {
        auto phase = clock_.phase("assemble");
        VecX impulse = in.h * force;
        if (!options_.pgs) contact_.add_impulse(in.h, b, known_, impulse);
        rhs = system_.reduce(impulse, state.x, pieces_) + system_.momenta(state.v, pieces_);
        if (known_.size() > 0) rhs -= system_.known_drag(in.h * in.h + in.h * b, known_, state.x, pieces_);
        if (new_couplings) system_.set_couplings(contact_.couplings());
      }
      {
        auto phase = clock_.phase("analyse");
        system_.prepare();
      }
      {
        auto phase = clock_.phase("assemble");
        system_.form(1 + in.h * a, in.h * in.h + in.h * b, state.x, pieces_, contact_.possible());
        if (!options_.pgs) contact_.add_stiffness(in.h, b, state.x, pieces_, system_);
      }
      {
        auto phase = clock_.phase("factor");
        if (links_) whole_rhs = rhs;
        const FactorStatus status = system_.factor(in, rhs);
        if (!status.ok) {
          fail(report, fmt::format("the system matrix is not positive definite: pivot {:.3g} at unknown {}",
                                   status.pivot, status.node));
          return false;
        }
      }
      {
        auto phase = clock_.phase("solve");
        if (!system_.solve_factored(rhs, links_ ? rest : u)) {
          ++report.fallbacks["contacts_factored"];
          new_couplings = true;
          continue;
        }
        if (links_) u = links_->solve(system_, whole_rhs, rest, state);
      }
      if (!contact_.possible()) break;
      auto phase = clock_.phase("contact");
      if (options_.pgs) {
        if (!contact_.solve_pgs(in.h, state.x, pieces_, system_, known_, u, impulses))
          ++report.fallbacks["pgs_unconverged"];
        break;
      }
      VecX v1 = system_.expand(u, state.x, pieces_);
      if (known_.size() > 0) v1 += known_;
      restore_fixed(script, v1);
      if (!contact_.revise(v1)) break;
      new_couplings = !contact_.change_springs(in.h, b, state.x, pieces_, system_);
    }
    return true;
  }

  void move(const Model& model, const StepInput& in, const VecX& u, State& state, RigidifyMemory& memory) {
    for (Index i = 0; i < model.nodes(); ++i) {
      if (system_.rigid(i)) continue;
      Vec3 v = node(u, system_.node_block(i));
      for (int k = 0; k < 3; ++k)
        if (in.fixed[3 * at(i) + static_cast<std::size_t>(k)])
          v[k] = in.fixed_velocity[3 * static_cast<Eigen::Index>(i) + k];
      node(state.v, i) = v;
      node(state.x, i) += in.h * v;
    }
    for (std::size_t j = 0; j < pieces_.size(); ++j) {
      const Index block = system_.piece_block(j);
      if (block < 0) {
        drive(model, in.h, j, state);
        continue;
      }
      const Vec3 v = node(u, block), w = node(u, block + 1);
      const Vec3 turn = turn_of(pieces_[j], w, in.h);
      const Vec3 L = pieces_[j].I * w;
      move_piece(pieces_[j], assignment_.piece_nodes[j], v, turn, L, in.h, state.x, state.v);
      const Index object = model.piece_of_node[at(assignment_.piece_nodes[j].front())];
      if (!memory.asleep[at(object)]) continue;
      const Mat3 R = rotation_of(turn);
      for (const Index i : assignment_.piece_nodes[j]) node(memory.load, i) = R * node(memory.load, i);
    }
    store_pieces(pieces_, memory);
  }

  // A piece that the script holds or moves.
  void drive(const Model& model, double h, std::size_t j, State& state) {
    const std::vector<Index>& nodes = assignment_.piece_nodes[j];
    if (known_.size() == 0 || pieces_[j].held != static_cast<std::uint8_t>(PieceHold::kDriven)) {
      for (const Index i : nodes) node(state.v, i).setZero();
      return;
    }
    for (const Index i : nodes) {
      node(state.v, i) = node(known_, i);
      node(state.x, i) += h * node(known_, i);
    }
    const RigidMotion& motion = holds_.driven[at(model.piece_of_node[at(nodes.front())])];
    RigidPiece& piece = pieces_[j];
    piece.c += motion.displacement(piece.c);
    piece.I = motion.R * piece.I * motion.R.transpose();
  }

  // No object has a quarter as many quiet elements, among the samples, as its pieces need at least.
  bool all_lively(const VecX& x, const VecX& v) {
    std::vector<double> rate;
    fem::strain_rates(*samples_.elements, samples_.gather(x), samples_.gather(v), rate);
    std::vector<Index> all(mesh_.object_elements.size(), 0), quiet(all);
    for (std::size_t k = 0; k < rate.size(); ++k) {
      const std::size_t o = at(mesh_.object_of[at(sampled_[k])]);
      ++all[o];
      quiet[o] += rate[k] < options_.tau_rigid;
    }
    for (std::size_t o = 0; o < all.size(); ++o)
      if (4.0 * quiet[o] >= options_.least_share * all[o]) return false;
    return true;
  }

  // Eq. 17 of the elastic elements, and for how long each has been quiet.
  void watch_strain(const VecX& x0, const State& state, double h, RigidifyMemory& memory) {
    if (options_.tau_rigid == 0 || system_.elastic_elements().empty()) return;
    // While nothing is rigid it is enough to look now and then: what is quiet in two looks was so in between.
    const bool now_and_then = options_.foresight == 0 && pieces_.empty();
    if (now_and_then && (state.step + 1) % kLookEvery != 0) return;
    const VecX& x1 = state.x;
    const VecX middle = 0.5 * (x0 + x1), velocity = (x1 - x0) / h;
    // And while samples say that all deforms, to look at these; now and then at all, to show their rates.
    if (now_and_then && (state.step + 1) % (4 * kLookEvery) != 0 && all_lively(middle, velocity)) {
      std::fill(memory.quiet.begin(), memory.quiet.end(), 0);
      return;
    }
    if (options_.foresight > 0) memory.rate.resize(memory.piece.size(), 0.0);
    system_.strain_rates(middle, velocity, elastic_rate_);
    const std::vector<Index>& list = system_.elastic_elements();
    for (std::size_t k = 0; k < list.size(); ++k) {
      const std::size_t e = at(list[k]);
      rate_[e] = elastic_rate_[k];
      ++elastic_count_[bin_of(elastic_rate_[k])];
      bool quiet = elastic_rate_[k] < options_.tau_rigid;
      if (options_.foresight > 0) {
        const double now = std::sqrt(elastic_rate_[k]);
        const double later = now + options_.foresight * std::abs(now - memory.rate[e]);
        quiet = later * later < options_.tau_rigid;
        memory.rate[e] = now;
      }
      const std::int32_t steps = now_and_then && memory.quiet[e] > 0 ? kLookEvery : 1;
      memory.quiet[e] = quiet ? memory.quiet[e] + steps : 0;
    }
  }

  void tell(const Model& model, StepReport& report) const {
    Index elastic = 0;
    for (Index i = 0; i < model.nodes(); ++i) elastic += !system_.rigid(i);
    report.extra["elastic_nodes"] = static_cast<double>(elastic);
    report.extra["elastic_elements"] = static_cast<double>(system_.elastic_elements().size());
    report.extra["rigid_pieces"] = static_cast<double>(pieces_.size());
    if (!report.extra.count("quick_solves")) report.extra["quick_solves"] = 0;
    if (options_.tau_rigid == 0) return;
    // Figure 6: elements by their strain rates, measured or predicted, in tolerances.
    Index rigid = 0;
    for (const Index n : assignment_.rigid_elements) rigid += n;
    for (const Index n : rigid_count_) rigid -= n;
    for (std::size_t k = 0; k < kBins; ++k) {
      report.extra[elastic_name_[k]] = elastic_count_[k];
      report.extra[rigid_name_[k]] = rigid_count_[k] + (k == 0 ? std::max<Index>(0, rigid) : 0);
    }
  }

  // Bins of half a decade of strain rates; bin kTauBin begins at the tolerance.
  static constexpr std::size_t kBins = 10, kTauBin = 5;
  std::size_t bin_of(double squared_rate) const {
    std::size_t k = 0;
    for (const double begin : bin_begin_) k += squared_rate >= begin;
    return k;
  }

  const RigidifyOptions options_;
  const Connectivity mesh_;
  MixedSystem system_;
  std::optional<QuickSolve> quick_;  // none where nothing becomes rigid
  RowContact contact_;
  std::optional<std::vector<ContactForce>> contact_forces_;
  MixedNewton newton_;
  std::optional<MixedLinks> links_;
  std::vector<Index> sampled_;  // elements, ascending
  fem::Plan samples_;
  PieceAssignment assignment_;
  std::vector<RigidPiece> pieces_;
  std::vector<std::uint8_t> predicted_;  // objects, in this step
  Holds holds_;
  VecX known_;                                 // velocities of driven nodes; empty: none
  std::vector<double> rate_, elastic_rate_;    // squared strain rates, measured or predicted [1/s^2]
  std::array<double, kBins - 1> bin_begin_{};  // squared strain rates; the first bin begins at 0 [1/s^2]
  std::array<std::string, kBins> elastic_name_, rigid_name_;  // columns of steps.csv
  std::array<Index, kBins> elastic_count_{}, rigid_count_{};  // elements by their rates
  PhaseClock clock_;
};

}  // namespace
}  // namespace limber::rigidify

namespace limber {

std::unique_ptr<Stepper> make_rigidify(const Model& model, const nlohmann::json& options,
                                       const Preparation&) {
  return std::make_unique<rigidify::Rigidify>(model, rigidify::RigidifyOptions::read(options));
}

}  // namespace limber
