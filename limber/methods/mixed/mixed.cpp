// Algorithm 1 of the paper is Sqp::solve(); here a scene becomes its problem (Psi_u, points, a start) and its
// solution becomes a state.
//
//   paper            here
//   B, u             Phi (x) I3, mass-orthonormal; displacements are B u, so that rest is u = 0 with any pins
//   H_u, f_u         (1/g^2 + a/g) I + holds; inertia, loads, damping, holds
//   implicit Euler   time_steps.hpp
#include <limber/methods/mixed/mixed.hpp>

#include <limber/core/error.hpp>
#include <limber/fem/mesh_map.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/mixed/memory.hpp>
#include <limber/methods/mixed/reduced_script.hpp>
#include <limber/methods/mixed/sample_contact.hpp>
#include <limber/methods/mixed/time_steps.hpp>
#include <limber/sim/contact_state.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace limber::mixed {
namespace {

constexpr double kMixedMargin = 0.01;   // of the body's size: how far from an obstacle samples are looked at
constexpr double kBlownUp = 1e3;        // body sizes: no body travels that far in one step
constexpr std::int64_t kFullSpace = 1;  // in MixedMemory::basis: no basis at all

std::string numbers_misfit(const char* name, std::span<const double> found, std::ptrdiff_t expected) {
  if (static_cast<std::ptrdiff_t>(found.size()) != expected)
    return wrong_size(name, static_cast<std::ptrdiff_t>(found.size()), expected);
  if (!std::all_of(found.begin(), found.end(), [](double v) { return std::isfinite(v); }))
    return fmt::format("\"{}\" has a number that is not finite", name);
  return {};
}

std::span<const double> numbers_of(const VecX& v) { return {v.data(), static_cast<std::size_t>(v.size())}; }

// What does not fit, of a memory with `unknowns` numbers in u (0: full space), `history` in u_prev and `wide`
// for each hold.
std::string memory_misfit(const MixedMemory& m, std::int64_t basis, std::ptrdiff_t unknowns,
                          std::ptrdiff_t history, std::ptrdiff_t wide, std::ptrdiff_t points,
                          std::ptrdiff_t holds) {
  if (m.basis != basis)
    return fmt::format(
        "it belongs to a basis with hash {:016x}, that of the scene has {:016x}: mesh, materials, pins or "
        "options "
        "of the method differ",
        static_cast<std::uint64_t>(m.basis), static_cast<std::uint64_t>(basis));
  for (std::string why :
       {numbers_misfit("u", numbers_of(m.u), unknowns), numbers_misfit("v", numbers_of(m.v), unknowns),
        numbers_misfit("u_prev", numbers_of(m.u_prev), m.u_prev.size() == 0 ? 0 : history),
        numbers_misfit("v_prev", numbers_of(m.v_prev), m.u_prev.size()), numbers_misfit("z", m.Z, 6 * points),
        numbers_misfit("lambda", m.Lambda, 6 * points),
        numbers_misfit("hold_begin", m.hold_begin, m.hold_begin.empty() ? 0 : holds),
        numbers_misfit("hold_u", m.hold_u, m.hold_begin.empty() ? 0 : holds * wide)})
    if (!why.empty()) return why;
  return {};
}

class FullMixed final : public Stepper {
 public:
  FullMixed(const Model& model, const MixedOptions& options)
      : options_(options),
        map_(fem::make_mesh_map(model.mesh, model.pattern)),
        rest_(3 * model.nodes()),
        Hu_(model.pattern),
        contact_(model.contact, rest_, options_.contact_damping, options_.slip_speed,
                 kMixedMargin * model.size),
        steps_(model, options_, model.mass.sum() / 3) {
    for (Index i = 0; i < model.nodes(); ++i) node(rest_, i) = model.mesh.rest[at(i)];
    std::vector<Point> points;
    const std::vector<double>& volume = fem::rest_volume(*model.elements);
    for (std::size_t e = 0; e < volume.size(); ++e) points.push_back({model.mesh.material[e], volume[e]});
    sqp_.emplace(*map_, std::move(points), model.scene->ordering);
  }

  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    clock_.reset();
    MixedMemory& memory = memory_of<MixedMemory>(state);
    sqp_->points().set_activation(in.activation);
    const MixedMotion now{state.x - rest_, state.v};
    SqpState unknowns{now.u, memory.Z, memory.Lambda};
    if (memory.Z.empty()) {
      memory.basis = kFullSpace;
      sqp_->start(unknowns);
    }
    VecX velocity;
    const bool ok = steps_.step(
        in.h, now, {memory.u_prev, memory.v_prev}, *sqp_,
        [&](const MixedStage& stage, VecX& guess, StepProblem& problem) {
          pose(model, in, stage, guess, problem);
        },
        unknowns, velocity, report, clock_);
    report.dofs = free_dofs(in);
    report.symbolic_analyses = 1;
    report.phases = clock_.phases();
    if (!ok) return fail(report, report.why);
    memory.Z = unknowns.Z;
    memory.Lambda = unknowns.Lambda;
    if (options_.bdf2) {
      memory.u_prev = now.u;
      memory.v_prev = now.v;
    }
    state.x = rest_ + unknowns.u;
    state.v = velocity;
    if (!model.contact.empty())
      report.contacts = static_cast<Index>(touching(model.contact, state.x, in.t + in.h).size());
    return report;
  }

  MethodFields fields(const Model& model, const State& state) const override {
    MethodFields f;
    if (!model.contact.empty()) f.node["contact"] = contact_pressure(model, state);
    return f;
  }

  // Those of the stage that ended the last step; before one there is none.
  StepForces forces(const Model&, const State& state) const override {
    return {true, posed_, posed_ ? contact_.forces(state.x - rest_) : std::vector<ContactForce>()};
  }

  std::string misfit(const Model& model, const State& state) const override {
    const MixedMemory* m = memory_of<MixedMemory>(state);
    return m ? memory_misfit(*m, kFullSpace, 0, 3 * model.nodes(), 0, sqp_->points().size(), 0)
             : std::string();
  }

 private:
  // Psi_u of all nodes: lumped mass; held nodes are moved and then left alone.
  void pose(const Model& model, const StepInput& in, const MixedStage& stage, VecX& guess,
            StepProblem& problem) {
    scale_and_add_mass(Hu_, 0, stage.inertia * model.mass);
    problem.Hu = &Hu_;
    problem.gradient -= external_force(model, in);
    problem.fixed = &in.fixed;
    for (Eigen::Index d = 0; d < guess.size(); ++d)
      if (in.fixed[static_cast<std::size_t>(d)]) guess[d] = (*stage.u0)[d] + stage.end * in.fixed_velocity[d];
    if (model.contact.empty()) return;
    contact_.pose(*stage.u0, in.t, guess, in.t + stage.end, stage.c, stage.gamma);
    posed_ = true;
    problem.potential = &contact_;
  }

  const MixedOptions options_;
  std::unique_ptr<DeformationMap> map_;
  VecX rest_;
  BlockMatrix Hu_;
  NodalContact contact_;
  bool posed_ = false;  // contact_
  TimeSteps steps_;
  std::optional<Sqp> sqp_;
  PhaseClock clock_;
};

class ReducedMixed final : public Stepper {
 public:
  ReducedMixed(const Model& model, const MixedOptions& options, const Preparation& preparation)
      : options_(options), steps_(model, options_, model.mass.sum() / 3) {
    VecX mass(model.nodes());
    for (Index i = 0; i < model.nodes(); ++i) mass[i] = model.mass[3 * i];
    const std::vector<std::uint8_t> pinned = pinned_by_weights(model, options_.pins);
    check_pieces(model, pinned);
    const std::string training =
        options_.training.empty() ? ""
                                  : (std::filesystem::path(model.scene->folder) / options_.training).string();
    body_ = reduce_body(
        {model.mesh, model.pattern, mass, fem::rest_volume(*model.elements), pinned, training}, options_,
        preparation.cache, [&](const std::string& what, double share) { preparation.say(what, share); });
    total_mass_ = mass.sum();
    const double h = model.scene->h;
    script_.emplace(
        model, *body_, pinned, options_.pins,
        options_.hold_stiffness > 0 ? options_.hold_stiffness : kHoldShare * total_mass_ / (h * h));
    sqp_.emplace(*body_->map, body_->points);
    contact_.emplace(*body_, model.contact, options_.contact_samples, options_.contact_damping,
                     options_.slip_speed, kMixedMargin * model.size);
    Hu_ = BlockMatrix(body_->map->pattern());
    if (body_->linear) wide_ = BlockMatrix(dense_pattern(body_->functions()));
    for (Index i = 0; i < model.nodes(); ++i) rest_moment_ += mass[i] * model.mesh.rest[at(i)];
  }

  bool reduced() const override { return true; }
  bool nodal_input() const override { return false; }
  // Linear modes, which are there for comparison, are recorded by positions.
  const MatX* basis() const override { return body_->linear ? nullptr : &body_->basis.Phi; }
  const VecX* coordinates(const State& state) const override {
    const MixedMemory* m = memory_of<MixedMemory>(state);
    return m && m->u.size() > 0 && !body_->linear ? &m->u : nullptr;
  }
  const VecX* velocity_coordinates(const State& state) const override {
    const MixedMemory* m = memory_of<MixedMemory>(state);
    return m && m->v.size() > 0 && !body_->linear ? &m->v : nullptr;
  }

  void expand(const Model&, State& state) const override {
    if (const MixedMemory* m = state.memory.get<MixedMemory>()) body_->expand(m->u, m->v, state.x, state.v);
  }

  // The state is changed only where all has gone well.
  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    clock_.reset();
    sqp_->points().set_activation(in.activation);
    const MixedMemory* before = memory_of<MixedMemory>(std::as_const(state));
    MixedMemory next = before ? *before : begin(model, state, report);
    const MixedMotion now{next.u, next.v};
    SqpState unknowns{{}, std::move(next.Z), std::move(next.Lambda)};
    const bool ok = steps_.step(
        in.h, now, {next.u_prev, next.v_prev}, *sqp_,
        [&](const MixedStage& stage, VecX& guess, StepProblem& problem) {
          pose(model, in, stage, guess, now.v, next, problem);
        },
        unknowns, next.v, report, clock_);
    report.dofs = body_->unknowns();
    report.symbolic_analyses = 1;
    if (!ok) return fail(report, report.why);
    const double way = (unknowns.u - now.u).norm() / std::sqrt(total_mass_);
    if (!(way < kBlownUp * model.size))
      return fail(report,
                  fmt::format("the body moved {:.3g} m (root mean square) in one step: the simulation has "
                              "blown up",
                              way));
    next.u = std::move(unknowns.u);
    next.Z = std::move(unknowns.Z);
    next.Lambda = std::move(unknowns.Lambda);
    if (options_.bdf2) {
      next.u_prev = now.u;
      next.v_prev = now.v;
    }
    report.energy["kinetic"] = 0.5 * next.v.squaredNorm();
    const VecX u = body_->wide(next.u);
    const Eigen::Map<const Eigen::Matrix<double, 3, Eigen::Dynamic>> U(u.data(), 3, body_->functions());
    report.energy["gravity"] = -in.gravity.dot(rest_moment_ + U * script_->mass_moment());
    if (!contact_->empty()) report.contacts = contact_->touching(next.u, in.t + in.h);
    memory_of<MixedMemory>(state) = std::move(next);
    report.phases = clock_.phases();
    return report;
  }

  MethodFields fields(const Model& model, const State& state) const override {
    MethodFields f;
    std::vector<double> weight(model.mesh.elements.size(), 0.0);
    for (std::size_t c = 0; c < body_->cubature.elements.size(); ++c)
      weight[at(body_->cubature.elements[c])] = body_->cubature.weights[c];
    f.element["cubature_weight"] = std::move(weight);
    f.units["cubature_weight"] = "m^3";
    f.constant.insert("cubature_weight");
    if (!model.contact.empty()) f.node["contact"] = contact_pressure(model, state);
    return f;
  }

  // Those of the stage that ended the last step, on the samples; before one there is none.
  StepForces forces(const Model&, const State& state) const override {
    const MixedMemory* m = memory_of<MixedMemory>(state);
    if (!posed_ || !m) return {};
    return {true, true, contact_->forces(m->u)};
  }

  std::string misfit(const Model&, const State& state) const override {
    const MixedMemory* m = memory_of<MixedMemory>(state);
    return m ? memory_misfit(*m, static_cast<std::int64_t>(body_->hash), body_->unknowns(), body_->unknowns(),
                             3 * body_->functions(), sqp_->points().size(),
                             static_cast<std::ptrdiff_t>(script_->holds()))
             : std::string();
  }

 private:
  // Every piece that no weight pins needs a constant weight of its own.
  void check_pieces(const Model& model, const std::vector<std::uint8_t>& pinned) const {
    Index loose = 0;
    for (const Piece& piece : model.pieces)
      loose += pinned.empty() || std::none_of(piece.nodes.begin(), piece.nodes.end(),
                                              [&](Index i) { return pinned[at(i)] != 0; });
    if (loose > options_.modes && options_.basis != "linear")
      throw Error(
          ErrorKind::kInput,
          fmt::format("/method/modes: found {}, but {} pieces move freely; expected at least one for each",
                      options_.modes, loose));
  }

  // The memory before the first step, from the positions and velocities of the nodes.
  MixedMemory begin(const Model& model, const State& state, StepReport& report) {
    MixedMemory m;
    m.basis = static_cast<std::int64_t>(body_->hash);
    const VecX displacement = state.x - body_->rest;
    m.u = body_->reduced(displacement);
    m.v = body_->reduced(state.v);
    VecX x, v;
    body_->expand(m.u, m.v, x, v);
    const double lost = (x - state.x).norm(), moved = displacement.norm();
    if (moved > 1e-9 * model.size && lost > 0.01 * moved)
      report.warnings.push_back(
          fmt::format("the modes cannot hold {:.1f} % of the initial displacement", 100 * lost / moved));
    if (body_->basis.dropped > 0)
      report.warnings.push_back(
          fmt::format("{} of {} columns of the basis depend on others and were left out",
                      body_->basis.dropped, 4 * options_.modes));
    const Index points = sqp_->points().size();
    if (points < 10 * options_.modes && points < static_cast<Index>(model.mesh.elements.size()))
      report.warnings.push_back(
          fmt::format("{} cubature points are few for {} modes: soft parts become too soft; {} are safe",
                      points, options_.modes, 20 * options_.modes));
    SqpState s{m.u, {}, {}};
    sqp_->start(s);
    m.Z = std::move(s.Z);
    m.Lambda = std::move(s.Lambda);
    return m;
  }

  // Psi_u of the coordinates: the mass matrix is the identity.
  void pose(const Model& model, const StepInput& in, const MixedStage& stage, const VecX& guess,
            const VecX& v0, MixedMemory& memory, StepProblem& problem) {
    std::fill(Hu_.values.begin(), Hu_.values.end(), 0.0);
    for (Index j = 0; j < Hu_.pattern->n; ++j)
      Hu_.block(Hu_.pattern->col_begin[at(j)]) = stage.inertia * Mat3::Identity();
    problem.Hu = &Hu_;
    if (body_->linear) {
      std::fill(wide_.values.begin(), wide_.values.end(), 0.0);
      VecX g = VecX::Zero(3 * static_cast<Eigen::Index>(body_->functions()));
      script_->add_loads(model, in, body_->wide(*stage.u0), body_->wide(v0), g);
      script_->add_holds(model, in, in.t + stage.end, body_->wide(*stage.u0), body_->wide(problem.anchor),
                         memory, wide_, g);
      problem.gradient += body_->narrow(g);
      body_->add_narrow(wide_, Hu_);
    } else {
      script_->add_loads(model, in, *stage.u0, v0, problem.gradient);
      script_->add_holds(model, in, in.t + stage.end, *stage.u0, problem.anchor, memory, Hu_,
                         problem.gradient);
    }
    if (contact_->empty()) return;
    contact_->pose(*stage.u0, in.t, guess, in.t + stage.end, stage.c, stage.gamma);
    posed_ = true;
    problem.potential = &*contact_;
  }

  const MixedOptions options_;
  TimeSteps steps_;
  std::unique_ptr<ReducedBody> body_;
  std::optional<ReducedScript> script_;
  std::optional<Sqp> sqp_;
  std::optional<SampleContact> contact_;
  bool posed_ = false;               // contact_
  double total_mass_ = 0;            // [kg]
  Vec3 rest_moment_ = Vec3::Zero();  // sum of m X [kg m]
  BlockMatrix Hu_, wide_;            // the second of linear modes
  PhaseClock clock_;
};

}  // namespace
}  // namespace limber::mixed

namespace limber {

std::unique_ptr<Stepper> make_mixed(const Model& model, const nlohmann::json& options,
                                    const Preparation& preparation) {
  const mixed::MixedOptions o = mixed::MixedOptions::read(options);
  if (o.full_space) return std::make_unique<mixed::FullMixed>(model, o);
  return std::make_unique<mixed::ReducedMixed>(model, o, preparation);
}

}  // namespace limber
