#include <limber/methods/vanilla/vanilla.hpp>

#include <limber/fem/assemble.hpp>
#include <limber/fem/dof.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/methods/common/link_contact.hpp>
#include <limber/methods/common/link_coupling.hpp>
#include <limber/methods/common/link_report.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/common/touching.hpp>
#include <limber/sim/contact_state.hpp>
#include <limber/sim/model.hpp>

#include <nlohmann/json.hpp>

#include <optional>

namespace limber {
namespace {

// clang-format off
constexpr Entry kVanillaEntries[] = {
    {.path = "/method[vanilla]/beta", .type = Type::kNumber, .fallback = "1", .range = ranges::at_least(0), .text = "Weight of the stiffness in M + hD + beta h^2 K; 1 is linearly implicit Euler, 0 explicit (symplectic) Euler, stable only with very small steps."},
};
// clang-format on

struct VanillaOptions {
  double beta = 1;  // numerical damping, Eq. 10

  static VanillaOptions read(const nlohmann::json& o) { return {o.at("beta")}; }
};

// The paper writes K = df/dx; ours is K = d2E/dx2 = -df/dx. Eq. 10 then reads (M + beta h^2 K) v = M v0 + h
// f, here with Rayleigh damping D = a M + b K on the left: A = M + h D + beta h^2 K.
class Vanilla final : public Stepper {
 public:
  Vanilla(const Model& model, const VanillaOptions& options)
      : beta_(options.beta), solver_({model.scene->solver, model.scene->ordering}) {
    solver_.analyze(*model.pattern);
    solver_.carry(*model.pattern, 1);
    eliminator_.emplace(*model.pattern);
    if (model.articulation) links_.emplace(model);
    link_contact_ = LinkContact::make(model);
    if (link_contact_) link_contact_->keep_apart(contact_);
  }

  // Algorithm 2.
  StepReport step(const Model& model, State& state, const StepInput& script) override {
    StepReport report;
    clock_.reset();
    const StepInput& in = links_ ? with_links(state, script) : script;
    {  // line 3: f, K at the start of the step
      auto phase = clock_.phase("assemble");
      fem::assemble(*model.elements, state.x, in.activation, system_);
      report.inverted = system_.inverted;
      if (!system_.finite) return fail(report, not_finite(system_));
      system_.f += external_force(model, in);
    }
    const VecX x0 = state.x, v0 = state.v;
    const std::vector<Anchor> anchors = anchors_of(state);
    if (link_contact_) link_contact_->begin(model, state, in.h);
    begin_contacts(link_contact_ ? link_contact_->obstacles() : model.contact, anchors, state, in, contact_,
                   clock_);
    if (!contact_.empty()) stiffness_ = system_.K.values;
    // Lines 4 and 5, again if the step shows that other nodes touch than was expected.
    for (report.iterations = 1;; ++report.iterations) {
      {
        auto phase = clock_.phase("assemble");
        force_ = system_.f;
        contact_.add_force(x0, force_);
        rhs_ = in.h * force_ + model.mass.cwiseProduct(v0);
        if (link_contact_) begin_touches(x0, in.h);
        form_system(model, in);
      }
      {
        auto phase = clock_.phase("factor");
        const FactorStatus status = solver_.factor(system_.K, rhs_);
        if (!status.ok) return fail(report, bad_pivot(status));
      }
      {
        auto phase = clock_.phase("solve");
        state.v = solver_.solve_carried();
        restore_fixed(in, state.v);
        if (links_) solve_links(model, in, state);
      }
      state.x = x0 + in.h * state.v;
      if (links_) links_->place(state);
      auto phase = clock_.phase("contact");
      if (link_contact_) {
        link_contact_->moved(state);
        contact_.follow_obstacles();
      }
      if (!contact_.revise(state.x)) break;
      system_.K.values = stiffness_;
    }
    if (!contact_.empty()) {
      auto phase = clock_.phase("contact");
      if (filter_friction(model, contact_, in, state)) state.x = x0 + in.h * state.v;
      if (links_) links_->place(state);
      finish_contacts(contact_, in.h, state, report);
      if (link_contact_) link_contact_->report(contact_, state, in.h, report);
    }

    report.dofs = free_dofs(in);
    if (links_) {
      report_links(*model.articulation, links_->outcome(), in.h, report);
      report.dofs += model.articulation->mechanism.velocities;
    }
    report.symbolic_analyses = solver_.stats().analyses;
    report.phases = clock_.phases();
    return report;
  }

  MethodFields fields(const Model& model, const State& state) const override {
    MethodFields f;
    if (links_) f = link_fields(*model.articulation, links_->outcome());
    if (link_contact_)
      f.node["contact"] = link_contact_->pressure(model, state);
    else if (!model.contact.empty())
      f.node["contact"] = contact_pressure(model, state);
    return f;
  }

 private:
  // The script with the attached nodes held as well: so the flesh is solved for bones at rest.
  const StepInput& with_links(const State& state, const StepInput& script) {
    links_->begin(state, script);
    held_ = script;
    held_.fixed = links_->held(script.fixed);
    return held_;
  }

  // Contacts with links (link_contact.hpp): what the links' own velocity adds to a node's impulse is known in
  // part, -h^2 S P phi_p, and follows the joints for the rest.
  void begin_touches(const VecX& x0, double h) {
    touches_ = link_contact_->touches(contact_, x0, 0);
    for (const LinkTouch& t : touches_.touches)
      node(rhs_, t.node) -= h * h * (t.stiffness * touches_.velocity(t));
  }

  // The impulses on the links, -Pᵀ p, where nodes move at b + V u and twists are J u.
  LinkCoupling::Pushed pushed_links(const VecX& b, const MatX& V, double h, double s) const {
    LinkCoupling::Pushed out{touches_.links, VecX::Zero(touches_.J.rows()),
                             MatX::Zero(touches_.J.rows(), touches_.J.cols())};
    for (const LinkTouch& t : touches_.touches) {
      const Vec3 known =
          h * t.force - t.stiffness * (h * h * touches_.velocity(t) + s * Vec3(node(b, t.node)));
      out.g.segment<6>(t.column) -= t.P.transpose() * known;
      out.G.middleRows<6>(t.column) +=
          t.P.transpose() *
          (s * t.stiffness * (t.P * touches_.J.middleRows<6>(t.column) - V.middleRows<3>(3 * t.node)));
    }
    return out;
  }

  // Flesh and bones as one system (link_coupling.hpp): v = G u + b with u the joint velocities, b the flesh
  // for bones at rest, which is state.v before, and a column of G how the flesh follows a joint.
  void solve_links(const Model& model, const StepInput& in, State& state) {
    const std::vector<Index>& dofs = links_->dofs();
    const MatX& B = links_->B();
    VecX Av;
    multiply(whole_, state.v, Av);
    const VecX mass = model.mass(dofs);
    const VecX g = (whole_rhs_ - Av)(dofs)-in.h * mass.cwiseProduct(links_->bias());
    MatX columns = MatX::Zero(state.v.size(), B.cols()), response(B.rows(), B.cols());
    const double s = contact_factor(model, in.h);
    for (Eigen::Index j = 0; j < B.cols(); ++j) {
      VecX pull = VecX::Zero(state.v.size());  // of links that are touched
      for (const LinkTouch& t : touches_.touches)
        node(pull, t.node) += s * (t.stiffness * (t.P * touches_.J.col(j).segment<6>(t.column)));
      VecX v = VecX::Zero(state.v.size());
      v(dofs) = B.col(j);
      multiply(whole_, v, Av);
      VecX follow = pull - Av;
      for (Eigen::Index d = 0; d < follow.size(); ++d)
        if (in.fixed[static_cast<std::size_t>(d)]) follow[d] = 0;
      solver_.solve(follow);
      v += follow;
      multiply(whole_, v, Av);
      columns.col(j) = v;
      response.col(j) = (Av - pull)(dofs);
    }
    const LinkCoupling::Pushed pushed = pushed_links(state.v, columns, in.h, s);
    const VelocityMap G = VelocityMap::from_columns(std::move(columns), state.v);
    state.v = G.velocity(links_->step(g, response, in, state, pushed));
  }

  static double contact_factor(const Model& model, double h) {
    return h * model.scene->damping_stiffness + h * h;
  }

  // Turns K into A = M + h D + beta h^2 K and moves the held degrees of freedom, whose velocity is known, to
  // the right.
  void form_system(const Model& model, const StepInput& in) {
    const Scene& scene = *model.scene;
    const double stiffness = in.h * scene.damping_stiffness + beta_ * in.h * in.h;
    const VecX mass = (1 + in.h * scene.damping_mass) * model.mass;
    scale_and_add_mass(system_.K, stiffness, mass);
    // Contact springs are stiff and come and go: they are always taken fully implicitly.
    contact_.add_stiffness(contact_factor(model, in.h), system_.K);
    if (links_) {
      whole_ = system_.K;
      whole_rhs_ = rhs_;
    }
    eliminator_->multiply_fixed(system_.K, in.fixed, in.fixed_velocity, known_);
    const double diagonal = mass.mean();
    rhs_ -= known_;
    for (Eigen::Index d = 0; d < rhs_.size(); ++d)
      if (in.fixed[static_cast<std::size_t>(d)]) rhs_[d] = diagonal * in.fixed_velocity[d];
    eliminator_->eliminate(system_.K, in.fixed, diagonal);
  }

  const double beta_;
  Cholesky solver_;
  std::optional<fem::DofEliminator> eliminator_;
  fem::Assembled system_;
  ContactStep contact_;
  std::vector<double> stiffness_;  // K of the elements, while contacts are tried
  VecX force_, rhs_, known_;
  std::optional<LinkCoupling> links_;
  std::optional<LinkContact> link_contact_;
  LinkTouches touches_;  // of the system that is solved
  StepInput held_;
  BlockMatrix whole_;  // A and right-hand side with the rows of held nodes
  VecX whole_rhs_;
  PhaseClock clock_;
};

}  // namespace

constinit const Method vanilla_method{
    .spec = {.name = "vanilla",
             .summary = "full space, linearly implicit: every node is an unknown",
             .entries = kVanillaEntries,
             .can = {.links = true, .link_contact = true, .obstacles = true, .cloth = true},
             .remedy = "try a smaller time step (time/step), or more damping (method/beta)"},
    .make = [](const Model& model, const nlohmann::json& options,
               const Preparation&) -> std::unique_ptr<Stepper> {
      return std::make_unique<Vanilla>(model, VanillaOptions::read(options));
    }};

}  // namespace limber
