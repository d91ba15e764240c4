// The step of subspace condensation:
//
//   0  links that are bones take their step; they drive the flesh and do not feel it
//   1  skin the body in the pose of the step's end                                    (Eq. 13)
//   2  ask the oracles for the region V_f                                             (section 4.2)
//   3  where it shrinks: fit the subspace to what was full; where it changes: plans, pattern, anchor
//   4  Newton iterations on Eq. 11                                                    (Algorithm 1)
//   5  nodes of the subspace that touch something all the same: grow V_f, again from 3
#include <limber/methods/condense/condense.hpp>

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/linalg/tall.hpp>
#include <limber/methods/common/link_coupling.hpp>
#include <limber/methods/common/link_report.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/condense/hybrid_system.hpp>
#include <limber/methods/condense/memory.hpp>
#include <limber/methods/condense/options.hpp>
#include <limber/methods/condense/oracle.hpp>
#include <limber/sim/contact_state.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace limber::condense {
namespace {

constexpr int kGrowths = 5;            // of the region in a step, before all nodes are in full space
constexpr int kCondenseRevisions = 6;  // of friction in a step
constexpr int kPairRevisions = 2;      // of contacts between bodies in a step
constexpr int kFullNewton = 20;        // iterations with a factor each, where all nodes are in full space
constexpr int kHalvings = 2;           // of a step whose region does not converge

class Condense final : public Stepper {
 public:
  Condense(const Model& model, const CondenseOptions& options, const Preparation& preparation)
      : options_(options),
        skeleton_(read_skeleton(model)),
        skinning_(model.mesh.rest, weights(model, preparation),
                  options_.linear_skinning ? Blend::kLinear : Blend::kDualQuaternion),
        subspace_(train_subspace(model, skeleton_, skinning_, training_poses(model, skeleton_, options_),
                                 options_, preparation)),
        oracle_(model, skeleton_, options_),
        system_(model, skeleton_, subspace_, options_,
                [this, &model](double t, const VecX& joints, SkinnedBody& out) {
                  skinning_.pose(bone_poses(model, skeleton_, t, joints), out);
                }) {
    if (model.articulation) links_.emplace(model);
    free_ = static_cast<Index>(std::count(skeleton_.bone_of_node.begin(), skeleton_.bone_of_node.end(), -1));
    if (subspace_.columns() == 0) {
      preparation.say("not yet: `limber train` makes its subspace, or `limber run` when it begins", 1);
      return;
    }
    preparation.say(
        fmt::format("{}: {} columns, {} cubature points; error of their forces {:.2g} %, of unseen "
                    "ones {:.2g} %",
                    subspace_.from_cache ? "subspace from the cache" : "subspace", subspace_.columns(),
                    subspace_.cubature.elements.size(), 100 * subspace_.error, 100 * subspace_.held_out),
        1);
  }

  StepReport step(const Model& model, State& state, const StepInput& script) override {
    StepReport report;
    clock_.reset();
    switches_ = {};
    tunnelled_.clear();
    first_step_ = memory_of<CondenseMemory>(state).q.size() == 0;
    const std::vector<std::uint8_t> before = begin(model, state).full;
    const VecX joints = state.joint_q;
    const StepInput& in = links_ ? with_links(state, script) : script;
    NewtonReport solved;
    const bool ok = try_step(model, state, in, joints, 0, solved);
    report.fallbacks = solved.fallbacks;
    report.iterations = solved.iterations;
    report.residual = solved.residual;
    report.inverted = solved.inverted;
    report.dofs = 3 * system_.full_nodes() + static_cast<Index>(system_.q().size());
    report.symbolic_analyses = system_.solver().stats().analyses;
    if (!ok) return fail(report, solved.why);
    if (links_) report_links(*model.articulation, links_->outcome(), in.h, report);
    count_switches(before, memory_of<CondenseMemory>(state).full);
    describe(model, state, in, solved, report);
    report.phases = clock_.phases();
    return report;
  }

  // Those of the last step; before one they are springs without friction.
  StepForces forces(const Model&, const State&) const override {
    return {options_.dynamics, contact_forces_.has_value(),
            contact_forces_ ? *contact_forces_ : std::vector<ContactForce>()};
  }

  MethodFields fields(const Model& model, const State& state) const override {
    MethodFields f;
    if (links_) f = link_fields(*model.articulation, links_->outcome());
    const CondenseMemory* m = memory_of<CondenseMemory>(state);
    std::vector<double> full(at(model.nodes()), 0.0);
    if (m && m->full.size() == full.size()) std::copy(m->full.begin(), m->full.end(), full.begin());
    f.node["full"] = std::move(full);
    std::vector<double> weight(model.mesh.elements.size(), 0.0);
    for (std::size_t c = 0; c < subspace_.cubature.elements.size(); ++c)
      weight[at(subspace_.cubature.elements[c])] = subspace_.cubature.weights[c];
    f.element["cubature_weight"] = std::move(weight);
    f.constant.insert("cubature_weight");
    if (!model.contact.empty()) f.node["contact"] = contact_pressure(model, state);
    return f;
  }

  std::string misfit(const Model& model, const State& state) const override {
    const CondenseMemory* m = memory_of<CondenseMemory>(state);
    if (!m || m->q.size() == 0) return {};
    if (m->subspace != static_cast<std::int64_t>(subspace_.hash))
      return fmt::format(
          "it belongs to a subspace with hash {:016x}, that of the scene has {:016x}: mesh, materials, "
          "bones or options of the method differ",
          static_cast<std::uint64_t>(m->subspace), subspace_.hash);
    const auto n = static_cast<std::ptrdiff_t>(model.nodes());
    const auto size = [](const auto& list) { return static_cast<std::ptrdiff_t>(list.size()); };
    if (m->q.size() != subspace_.columns()) return wrong_size("q", m->q.size(), subspace_.columns());
    if (size(m->keep) != n) return wrong_size("keep", size(m->keep), n);
    if (size(m->full) != n) return wrong_size("full", size(m->full), n);
    if (m->anchor.size() != 0 && m->anchor.size() != m->q.size())
      return wrong_size("anchor", m->anchor.size(), m->q.size());
    if (m->anchor_q.size() != m->anchor.size())
      return wrong_size("anchor_q", m->anchor_q.size(), m->anchor.size());
    if (m->q_rate.size() != m->q.size()) return wrong_size("q_rate", m->q_rate.size(), m->q.size());
    if (m->local_velocity.size() != 3 * n && (options_.dynamics || m->local_velocity.size() != 0))
      return wrong_size("local_velocity", m->local_velocity.size(), 3 * n);
    if (m->x_prev.size() != (options_.bdf2 ? 3 * n : 0))
      return wrong_size("x_prev", m->x_prev.size(), options_.bdf2 ? 3 * n : 0);
    if (m->v_prev.size() != m->x_prev.size()) return wrong_size("v_prev", m->v_prev.size(), m->x_prev.size());
    if (m->coupled.size() % 4 != 0 ||
        std::any_of(m->coupled.begin(), m->coupled.end(), [&](std::int64_t i) { return i < 0 || i >= n; }))
      return "\"coupled\" is not a list of nodes, four for each pair";
    if (!std::is_sorted(m->tail.begin(), m->tail.end(), std::less_equal<>()) ||
        (!m->tail.empty() && (m->tail.front() < 0 || m->tail.back() >= n)))
      return "\"tail\" is not a list of nodes, ascending";
    const RegionFactor& factor = m->factor;
    if (factor.x.size() != 0 && factor.x.size() != 3 * n)
      return wrong_size("factor_x", factor.x.size(), 3 * n);
    if (size(factor.contact_value) != 9 * size(factor.contact_block))
      return wrong_size("factor_contact_value", size(factor.contact_value), 9 * size(factor.contact_block));
    if (!m->q.allFinite() || !m->anchor.allFinite() || !m->anchor_q.allFinite() || !m->q_rate.allFinite() ||
        !m->local_velocity.allFinite() || !std::isfinite(m->speed) || !std::isfinite(m->change))
      return "a number of the subspace is not finite";
    return {};
  }

  const Subspace& subspace() const { return subspace_; }

 private:
  MatX weights(const Model& model, const Preparation& preparation) const {
    preparation.say("skinning weights", 0);
    return heat_weights(model.mesh, model.pattern, skeleton_.bone_of_node, skeleton_.bones());
  }

  CondenseMemory& begin(const Model& model, State& state) {
    CondenseMemory& memory = memory_of<CondenseMemory>(state);
    if (memory.q.size() > 0) return memory;
    memory.subspace = static_cast<std::int64_t>(subspace_.hash);
    memory.q = memory.q_rate = VecX::Zero(subspace_.columns());
    memory.keep.assign(at(model.nodes()), 0);
    memory.full.assign(at(model.nodes()), 0);
    if (options_.dynamics) memory.local_velocity = VecX::Zero(3 * model.nodes());
    // A body that starts elsewhere than in the rest shape: the nearest shape of the subspace.
    SkinnedBody start;
    skinning_.pose(bone_poses(model, skeleton_, state.t, state.joint_q), start);
    const VecX weighted = model.mass.cwiseProduct(state.x - start.x);
    memory.q = solve_semidefinite(subspace_.mass, reduced_force(subspace_, start, weighted));
    return memory;
  }

  // A step of in.h. Where the solve of the region fails, two of half the length, and so on: nodes that go
  // several faces far in one step meet faces that are not theirs. At last with all nodes in full space.
  bool try_step(const Model& model, State& state, const StepInput& in, const VecX& joints, int halvings,
                NewtonReport& solved) {
    // Links and the history of bdf2 have whole steps.
    const bool divisible = !links_ && !options_.bdf2 && halvings < kHalvings;
    const VecX x = state.x, v = state.v;
    const CondenseMemory kept = memory_of<CondenseMemory>(state);
    if (plain_step(model, state, in, joints, !divisible, solved)) return true;
    if (!divisible) return false;
    state.x = x;
    state.v = v;
    memory_of<CondenseMemory>(state) = kept;
    ++solved.fallbacks["halved_step"];
    StepInput half = in;
    half.h = 0.5 * in.h;
    if (!try_step(model, state, half, joints, halvings + 1, solved)) return false;
    half.t = in.t + half.h;
    return try_step(model, state, half, joints, halvings + 1, solved);
  }

  // `last`: nothing shorter is tried after it.
  bool plain_step(const Model& model, State& state, const StepInput& in, const VecX& joints, bool last,
                  NewtonReport& solved) {
    CondenseMemory& memory = memory_of<CondenseMemory>(state);
    guess_.resize(0);
    guess_q_.resize(0);
    system_.begin_step();
    skin(model, in, joints, state.joint_q);
    std::vector<std::uint8_t> region;
    {
      auto phase = clock_.phase("oracle");
      begin_stage(state, in, memory);
      region = oracle_.region(hits(model, state, in, memory), in.t + in.h, moving(memory), memory);
      // Contacts that training knows, beside nodes in full space, are as new.
      for (std::vector<Index> beside; !(beside = known_beside(state, region)).empty();)
        if (!oracle_.grow(beside, memory, region)) break;
    }
    bool all = false, doubled = false;
    int revisions = 0;
    for (int growth = 0;;) {
      take_region(model, state, in, region, all, memory);
      NewtonReport r = solve(model, state, in, limits(last, all), memory);
      add(r, solved);
      VecX x;
      {
        auto phase = clock_.phase("finish");
        x = system_.positions();
      }
      if (!r.converged && (!last || system_.all_full())) return false;
      if (!r.converged) {  // graceful degradation, from the lowest energy that was found
        keep_solution(x, memory);
        if (!std::exchange(doubled, true) && oracle_.grow(touched(model, in, x), memory, region, 2)) {
          ++solved.fallbacks["region_doubled"];
        } else {
          ++solved.fallbacks["full_space_after_failure"];
          all = true;
        }
        continue;
      }
      auto phase = clock_.phase("oracle");
      const bool other_pairs = system_.bodies() && system_.bodies()->revise(x);
      std::vector<Index> missed = outside(model, in, x);
      if (missed.empty() && !other_pairs) {
        reached_ = std::move(x);
        break;
      }
      if (missed.empty()) {
        // Bodies have gone into each other where nobody looked, or round an edge: again, with these contacts.
        if (revisions == kPairRevisions) {
          ++solved.fallbacks["contact_unsettled"];
          reached_ = std::move(x);
          break;
        }
        ++revisions;
        ++solved.fallbacks["contact_revision"];
      } else {
        ++solved.fallbacks["region_grown"];
        if (growth == kGrowths) {
          ++solved.fallbacks["full_space_after_growth"];
          all = true;
        }
        ++growth;
        if (!oracle_.grow(missed, memory, region)) all = true;
      }
      keep_solution(x, memory);
    }
    finish(model, in, state, memory);
    contact_forces_ = system_.contact_forces();
    if (const BodyContact* bodies = system_.bodies())
      tunnelled_.insert(tunnelled_.end(), bodies->tunnelled().begin(), bodies->tunnelled().end());
    return true;
  }

  // The links' step, which the flesh has no part in, and the script with the attached nodes held as well.
  const StepInput& with_links(State& state, const StepInput& script) {
    auto phase = clock_.phase("links");
    links_->begin(state, script);
    const MatX& B = links_->B();
    links_->step(VecX::Zero(B.rows()), MatX::Zero(B.rows(), B.cols()), script, state);
    held_ = script;
    held_.fixed = links_->held(script.fixed);
    VecX x = state.x, v = state.v;
    links_->place(state, x, v);
    for (const Index d : links_->dofs()) held_.fixed_velocity[d] = (x[d] - state.x[d]) / script.h;
    return held_;
  }

  // The body in the poses of the step's start and end.
  void skin(const Model& model, const StepInput& in, const VecX& joints_before, const VecX& joints) {
    auto phase = clock_.phase("skin");
    const std::vector<BonePose> from = bone_poses(model, skeleton_, in.t, joints_before),
                                to = bone_poses(model, skeleton_, in.t + in.h, joints);
    pose_moves_ = !std::equal(from.begin(), from.end(), to.begin(),
                              [](const BonePose& a, const BonePose& b) { return a.R == b.R && a.t == b.t; });
    // What was the end of the last step is the start of this one; of any other the numbers are the same.
    if (after_time_ == in.t && after_.x.size() > 0 && after_joints_ == joints_before)
      std::swap(before_, after_);
    else
      skinning_.pose(from, before_);
    after_time_ = in.t + in.h;
    after_joints_ = joints;
    if (pose_moves_)
      skinning_.pose(to, after_);
    else
      after_ = before_;
  }

  // Where the nodes would be if only the skeleton moved.
  VecX carried(const Model& model, const VecX& x, const StepInput& in) const {
    VecX out(x.size());
    parallel_for(model.nodes(), 2048, [&](std::ptrdiff_t n) {
      const auto i = static_cast<Index>(n);
      if (skeleton_.bone_of_node[at(i)] >= 0)
        node(out, i) = node(x, i) + in.h * node(in.fixed_velocity, i);
      else
        node(out, i) = Vec3(node(after_.x, i)) +
                       after_.R[at(i)] * (before_.R[at(i)].transpose() * (node(x, i) - node(before_.x, i)));
    });
    return out;
  }

  // The time integration of the step: v = (x - c)/g (docs/methods/implicit.md).
  void begin_stage(const State& state, const StepInput& in, const CondenseMemory& memory) {
    stage_ = {in.h, state.x, state.v, {{1, &state.x}}};
    if (!options_.bdf2 || memory.x_prev.size() != state.x.size()) return;  // the first step
    stage_ = {2.0 / 3 * in.h,
              4.0 / 3 * state.x - 1.0 / 3 * memory.x_prev,
              4.0 / 3 * state.v - 1.0 / 3 * memory.v_prev,
              {{4.0 / 3, &state.x}, {-1.0 / 3, &memory.x_prev}}};
  }

  // Nodes that touch something at the start of the step or are about to, and that training does not know of.
  std::vector<Index> hits(const Model& model, const State& state, const StepInput& in,
                          const CondenseMemory& memory) {
    std::vector<Index> out;
    expected_ = carried(model, state.x, in);
    const VecX& expected = expected_;
    if (BodyContact* bodies = system_.bodies()) {
      bodies->pose(state.x, expected, stage_.c, stage_.g);
      system_.add_pressing(state.x, memory.full, out);
      system_.add_pressing(expected, memory.full, out);
    }
    if (model.contact.empty()) return clean(std::move(out));
    const VecX way = (expected - state.x) / in.h;
    for (const Contact& c : detect(model.contact, state.x, way, in.h, in.t)) out.push_back(c.node);
    for (const Contact& c : touching(model.contact, state.x, in.t)) out.push_back(c.node);
    return clean(std::move(out));
  }

  std::vector<Index> known_beside(const State& state, const std::vector<std::uint8_t>& region) const {
    std::vector<Index> out;
    if (!options_.trained_contact || !system_.bodies()) return out;
    system_.add_pressing(state.x, region, out);
    system_.add_pressing(expected_, region, out);
    std::erase_if(out, [&](Index i) { return region[at(i)] != 0; });
    return clean(std::move(out));
  }

  // Nodes that touch something after the solve.
  std::vector<Index> touched(const Model& model, const StepInput& in, const VecX& x) const {
    std::vector<Index> out;
    if (system_.bodies()) system_.add_pressing(x, system_.full(), out);
    if (!model.contact.empty())
      for (const Contact& c : touching(model.contact, x, in.t + in.h)) out.push_back(c.node);
    return clean(std::move(out));
  }

  // Those of the subspace.
  std::vector<Index> outside(const Model& model, const StepInput& in, const VecX& x) const {
    if (system_.all_full()) return {};
    std::vector<Index> out = touched(model, in, x);
    std::erase_if(out, [&](Index i) { return system_.full()[at(i)] != 0; });
    return out;
  }

  // Once each, and none that a bone holds: those go where the bone does.
  std::vector<Index> clean(std::vector<Index> nodes) const {
    std::erase_if(nodes, [&](Index i) { return skeleton_.bone_of_node[at(i)] >= 0; });
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  bool moving(const CondenseMemory& m) const {
    return options_.dynamics && (m.speed > options_.quiet_speed * oracle_.size() ||
                                 m.change > options_.quiet_change * oracle_.size());
  }

  // Makes the region V_f, or what must be instead of it.
  void take_region(const Model& model, State& state, const StepInput& in,
                   const std::vector<std::uint8_t>& wanted, bool all, CondenseMemory& memory) {
    auto phase = clock_.phase("region");
    std::vector<std::uint8_t> region = wanted;
    const auto count = std::count(region.begin(), region.end(), std::uint8_t{1});
    if (!all && count > 0 && static_cast<double>(count) > options_.full_share * free_) {
      all = true;
      ++switches_.full_space;
    }
    if (all)
      for (std::size_t i = 0; i < region.size(); ++i) region[i] = skeleton_.bone_of_node[i] < 0;
    const bool changed = region != memory.full;
    if (changed && refit(model, state, region, memory)) {
      begin_stage(state, in, memory);
      expected_ = carried(model, state.x, in);
    }
    if (changed) memory.tail.clear();
    system_.set_region(region, options_.exact, memory.coupled, memory.tail);
    switches_.exact_points += system_.exact_domains();
    switches_.firm_anchors += system_.firm();
    region_changed_ |= changed;
    if (changed) memory.factor.forget();
    memory.full = std::move(region);
  }

  // Nodes that leave full space: the subspace takes over positions and velocities, fitted by masses. True:
  // some do.
  bool refit(const Model& model, State& state, const std::vector<std::uint8_t>& region,
             CondenseMemory& memory) {
    const auto leaves = [&](Index i) { return memory.full[at(i)] && !region[at(i)]; };
    Index leaving = 0;
    for (Index i = 0; i < model.nodes(); ++i) leaving += leaves(i);
    if (leaving == 0) return false;
    // U_s^T M U_s
    std::vector<Index> full;
    for (Index i = 0; i < model.nodes(); ++i)
      if (region[at(i)]) full.push_back(i);
    VecX weights(static_cast<Eigen::Index>(full.size()));
    for (std::size_t k = 0; k < full.size(); ++k)
      weights[static_cast<Eigen::Index>(k)] = model.mass[3 * full[k]];
    const MatX mass = subspace_.mass - BasisRows(subspace_.basis, {}, full).gram(weights);
    const auto fit = [&](const VecX& v) -> VecX {
      const VecX impulse = model.mass.cwiseProduct(v);
      return solve_semidefinite(mass, reduced_force(subspace_, before_, impulse, region));
    };
    memory.q = fit(state.x - before_.x);
    VecX x;
    subspace_positions(subspace_, before_, memory.q, x);
    const bool history = memory.x_prev.size() == x.size();
    for (Index i = 0; i < model.nodes(); ++i)
      if (!region[at(i)] && skeleton_.bone_of_node[at(i)] < 0) {
        if (history) node(memory.x_prev, i) += node(x, i) - node(state.x, i);
        node(state.x, i) = node(x, i);
      }
    if (memory.local_velocity.size() == 0) return true;
    // Velocities in the skinned frame: what the skeleton does by itself stays.
    VecX turned(state.v.size());
    for (Index i = 0; i < model.nodes(); ++i)
      node(turned, i) = before_.R[at(i)] * Vec3(node(memory.local_velocity, i));
    memory.q_rate = fit(turned);
    if (!options_.dynamics) return true;
    const VecX rate = subspace_.basis.times(memory.q_rate);
    for (Index i = 0; i < model.nodes(); ++i)
      if (!region[at(i)] && skeleton_.bone_of_node[at(i)] < 0) {
        const Vec3 change = Vec3(node(rate, i)) - Vec3(node(memory.local_velocity, i));
        node(state.v, i) += before_.R[at(i)] * change;
        if (history) node(memory.v_prev, i) += before_.R[at(i)] * change;
        node(memory.local_velocity, i) = node(rate, i);
      }
    return true;
  }

  // A factor in every iteration is for what nothing else helps: not where shorter steps do, and in full space
  // not for long.
  SolveLimits limits(bool last, bool all) const {
    SolveLimits out;
    if (all) out.newton = std::min(kFullNewton, options_.max_iterations);
    if (!last && system_.bodies()) out.newton = 0;
    return out;
  }

  NewtonReport solve(const Model& model, const State& state, const StepInput& in, const SolveLimits& limits,
                     CondenseMemory& memory) {
    const bool first = guess_.size() == 0;  // of the step
    {
      auto phase = clock_.phase("pose");
      HybridStep s;
      s.skin = &after_;
      s.t = in.t + in.h;
      s.joints = state.joint_q;
      s.load = external_force(model, in);
      s.activation = in.activation;
      if (options_.dynamics) {
        const double a = model.scene->damping_mass, g = stage_.g;
        s.inertia = 1 / (g * g) + a / g;
        s.target = stage_.c + g / (1 + a * g) * stage_.u;
        s.damping = model.scene->damping_stiffness / g;
        s.history = stage_.history;
      }
      const VecX guess = first ? expected_ : guess_;
      if (system_.couple_pairs(state.x, guess)) memory.factor.forget();
      system_.pose(std::move(s), guess, first ? memory.q : guess_q_);
      if (options_.anchor && (region_changed_ || pose_moves_ || memory.anchor.size() == 0)) {
        memory.anchor = system_.make_anchor(memory.q);
        memory.anchor_q = memory.anchor.size() > 0 ? memory.q : VecX();
      }
      region_changed_ = false;
      if (options_.anchor && memory.anchor.size() == system_.q().size())
        system_.set_anchor(memory.anchor, memory.anchor_q);
      system_.pose_contact(state.x, in.t, in.t + in.h, stage_.c, stage_.g);
      if (first_step_) system_.go_to_pose();
    }
    guess_.resize(0);
    guess_q_.resize(0);
    std::optional<HybridStart> onward;
    if (first && !first_step_) onward = as_before(in, memory);
    NewtonReport r = system_.solve(memory.factor, clock_, limits, onward ? &*onward : nullptr);
    for (int k = 0; r.converged && system_.revise_friction(); ++k) {
      if (k == kCondenseRevisions) {
        ++r.fallbacks["friction_unsettled"];
        break;
      }
      const NewtonReport again = system_.solve(memory.factor, clock_, limits);
      add(again, r);
    }
    memory.coupled = system_.coupled();
    memory.tail = system_.tail();
    return r;
  }

  // Where the body would be if it went on as in the last step, seen from its skeleton. When a bone draws
  // flesh off an obstacle, the skeleton alone would take it away from there, and the flesh springs back and
  // stays.
  HybridStart as_before(const StepInput& in, const CondenseMemory& memory) const {
    HybridStart out{system_.xf(), system_.q()};
    if (out.q.size() > 0) out.q += in.h * memory.q_rate;
    const std::span<const Index> full = system_.full_list();
    if (full.empty()) return out;
    const VecX rate =
        memory.local_velocity.size() > 0 ? memory.local_velocity : subspace_.basis.times(memory.q_rate);
    for (std::size_t k = 0; k < full.size(); ++k)
      node(out.xf, static_cast<Index>(k)) += in.h * (after_.R[at(full[k])] * Vec3(node(rate, full[k])));
    return out;
  }

  // The next solve of the step begins where this one ended.
  void keep_solution(const VecX& x, const CondenseMemory& memory) {
    guess_ = x;
    guess_q_ = system_.q().size() > 0 ? system_.q() : memory.q;
  }

  static void add(const NewtonReport& r, NewtonReport& sum) {
    sum.converged = r.converged;
    sum.why = r.why;
    sum.iterations += r.iterations;
    sum.factorizations += r.factorizations;
    sum.evaluations += r.evaluations;
    sum.pcg += r.pcg;
    sum.residual = r.residual;
    sum.elastic = r.elastic;
    sum.inverted = r.inverted;
    sum.refound += r.refound;
    for (const auto& [name, times] : r.fallbacks) sum.fallbacks[name] += times;
  }

  void finish(const Model& model, const StepInput& in, State& state, CondenseMemory& memory) {
    auto phase = clock_.phase("finish");
    const VecX x = std::move(reached_);
    memory.q_rate.setZero();
    if (system_.q().size() > 0) memory.q_rate = (system_.q() - memory.q) / in.h;
    VecX rate;
    if (options_.dynamics || system_.full_nodes() > 0)
      rate = (local_displacement(after_, x) - local_displacement(before_, state.x)) / in.h;
    if (options_.dynamics) {
      double speed = 0, change = 0;
      for (Index i = 0; i < model.nodes(); ++i) {
        if (!memory.full[at(i)]) continue;
        speed += node(rate, i).norm();
        change += (node(rate, i) - node(memory.local_velocity, i)).norm() / in.h;
      }
      const double count = std::max<Index>(1, system_.full_nodes());
      memory.speed = speed / count;
      memory.change = change / count;
    }
    memory.local_velocity = std::move(rate);
    const VecX c = std::move(stage_.c);
    if (options_.bdf2) {
      memory.x_prev = std::move(state.x);
      memory.v_prev = std::move(state.v);
    }
    state.v = (x - c) / stage_.g;
    state.x = x;
    if (links_) links_->place(state);
    if (system_.q().size() > 0) memory.q = system_.q();
    system_.end_step(memory.factor);
  }

  void count_switches(const std::vector<std::uint8_t>& before, const std::vector<std::uint8_t>& now) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      switches_.activated += now[i] && !before[i];
      switches_.deactivated += !now[i] && before[i];
    }
  }

  void describe(const Model& model, const State& state, const StepInput& in, const NewtonReport& solved,
                StepReport& report) const {
    report.extra["full_nodes"] = system_.full_nodes();
    report.extra["full_share"] = static_cast<double>(system_.full_nodes()) / std::max<Index>(1, free_);
    report.extra["active_elements"] = system_.active_elements();
    report.extra["cubature_points"] = system_.points();
    report.extra["activated"] = switches_.activated;
    report.extra["deactivated"] = switches_.deactivated;
    report.extra["factorizations"] = solved.factorizations;
    report.extra["tail_nodes"] = system_.solver().tail_nodes();
    report.extra["force_evaluations"] = solved.evaluations;
    if (options_.solver == RegionSolver::kPcg || options_.solver == RegionSolver::kJacobi)
      report.extra["pcg_iterations"] = solved.pcg;
    if (switches_.full_space > 0) report.fallbacks["full_space"] = switches_.full_space;
    if (switches_.exact_points > 0) report.fallbacks["exact_subspace_energy"] = switches_.exact_points;
    if (switches_.firm_anchors > 0) report.fallbacks["firm_anchor"] = switches_.firm_anchors;
    if (!links_) report_energy(model, state, solved.elastic, report);
    if (const BodyContact* bodies = system_.bodies()) {
      const BodyContact::Summary now = bodies->summary(state.x);
      report.extra["body_pairs"] = static_cast<double>(bodies->pairs().size());
      report.extra["body_contacts"] = static_cast<double>(now.active);
      report.extra["body_depth"] = now.depth;  // [m]
      report.extra["faces_found_again"] = solved.refound;
      if (options_.trained_contact) report.extra["trained_contacts"] = system_.trained_pairs();
      report.extra["body_tunnelled"] = static_cast<double>(tunnelled_.size());
      if (!tunnelled_.empty())
        report.warnings.push_back(fmt::format(
            "{} node{} went through a body, the first is node {}: a smaller time step or a finer mesh helps",
            tunnelled_.size(), tunnelled_.size() == 1 ? "" : "s", tunnelled_.front()));
    }
    if (model.contact.empty()) return;
    double deepest = 0;
    for (const Contact& c : touching(model.contact, state.x, in.t + in.h)) {
      ++report.contacts;
      deepest = std::max(deepest, c.depth);
    }
    report.extra["contact_depth"] = deepest;  // [m]
  }

  const CondenseOptions options_;
  const Skeleton skeleton_;
  const BoneSkinning skinning_;
  const Subspace subspace_;
  const Oracle oracle_;
  HybridSystem system_;
  std::optional<LinkCoupling> links_;
  Index free_ = 0;
  PhaseClock clock_;

  // Scratch of a step.
  SkinnedBody before_, after_;
  double after_time_ = -1;
  VecX after_joints_;
  StepInput held_;
  struct Stage {
    double g = 0;  // [s]
    VecX c, u;     // [m, m/s]
    std::vector<std::pair<double, const VecX*>> history;
  } stage_;
  VecX expected_;  // where nodes would be at its end if only the skeleton moved
  VecX reached_;   // where they are
  bool pose_moves_ = false, region_changed_ = false, first_step_ = false;
  VecX guess_, guess_q_;
  std::vector<Index> tunnelled_;
  std::optional<std::vector<ContactForce>> contact_forces_;  // of the last step
  struct Switches {
    int full_space = 0, exact_points = 0, firm_anchors = 0, activated = 0, deactivated = 0;
  } switches_;
};

}  // namespace
}  // namespace limber::condense

namespace limber {

std::unique_ptr<Stepper> make_condense(const Model& model, const nlohmann::json& options,
                                       const Preparation& preparation) {
  return std::make_unique<condense::Condense>(model, condense::CondenseOptions::read(options), preparation);
}

}  // namespace limber
