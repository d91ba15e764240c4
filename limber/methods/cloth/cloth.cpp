#include <limber/methods/cloth/cloth.hpp>

#include <limber/cloth/contacts.hpp>
#include <limber/cloth/eol.hpp>
#include <limber/cloth/system.hpp>
#include <limber/core/error.hpp>
#include <limber/methods/cloth/memory.hpp>
#include <limber/methods/cloth/options.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/sim/model.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace limber {
namespace {

using namespace cloth;

class Cloth final : public Stepper {
 public:
  Cloth(const Model& model, const ClothOptions& options)
      : options_(options), solver_({model.scene->solver, model.scene->ordering}) {
    for (const Body& body : model.bodies) {
      if (!is_sheet(body.kind))
        throw Error(
            ErrorKind::kInput,
            fmt::format("/method/type: \"cloth\" moves cloth only, and \"{}\" is none; give it triangles "
                        "and \"elements\": \"cloth\", or take another method",
                        body.name));
    }
    for (const Tet& t : model.mesh.elements) triangles_.push_back({t[0], t[1], t[2]});
    for (std::size_t b = 0; b < model.bodies.size(); ++b)
      for (Index e = model.bodies[b].elements.begin; e < model.bodies[b].elements.end; ++e)
        body_.fabric.push_back(fabric_of(model.mesh.material[at(e)], model.scene->bodies[b].bending));
    body_.hinges = find_hinges(triangles_);
    for (std::size_t k = 0; k + 1 < body_.hinges.size(); ++k) {
      const auto &a = body_.hinges[k].vertex, &b = body_.hinges[k + 1].vertex;
      if (a[0] == b[0] && a[1] == b[1])
        throw Error(
            ErrorKind::kInput,
            fmt::format("/bodies: the edge between nodes {} and {} has more than two triangles; cloth must "
                        "be a surface (`limber mesh` finds and repairs such places)",
                        a[0], a[1]));
    }
    update_rest(model.mesh.rest, triangles_, body_);
  }

  // Alg. 2.1, of which detection and remeshing come before (change).
  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    clock_.reset();
    read_sheet(model, state);
    {
      auto phase = clock_.phase("assemble");
      if (!pattern_.blocks || !fits(pattern_, sheet_)) pattern_ = make_pattern(sheet_, body_.hinges);
      assemble(sheet_, body_, pattern_, terms(model, in), system_);
    }
    {
      auto phase = clock_.phase("contact");
      set_bounds(model, state, in, report);
    }
    BoundSolution solution;
    {
      auto phase = clock_.phase("solve");
      turn_to_basis(problem_);
      solution = solver_.solve(problem_, active_of(state));
      if (!solution.ok) return fail(report, solution.why);
    }
    const VecX q = from_basis(problem_, solution.y);
    advance(in, q, state);
    keep_active(solution, state);
    report.fallbacks = solution.fallbacks;
    report.iterations = solution.iterations;
    report.extra["factorizations"] = solution.factorizations;
    report.dofs = free_dofs(in);
    report.symbolic_analyses = solver_.analyses();
    report.phases = clock_.phases();
    return report;
  }

  void measure(const Model& model, const State& state, Diagnostics& d) const override {
    Sheet sheet;
    fill_sheet(model, state, sheet);
    const ClothMotion m = cloth::measure(sheet, body_, model.scene->gravity);
    d.kinetic = m.kinetic;
    d.elastic = m.membrane + m.bending;
    d.gravity = m.gravity;
    d.contact = 0;
    d.momentum = m.momentum;
    d.angular_momentum = m.angular_momentum;
    if (m.mass > 0) d.center_of_mass = m.first_moment / m.mass;
    d.max_speed = m.max_speed;
  }

  std::string misfit(const Model& model, const State& state) const override {
    const ClothMemory* m = memory_of<ClothMemory>(state);
    if (!m) return {};
    const auto n = static_cast<std::ptrdiff_t>(model.nodes());
    const auto wrong = [&](const char* name, std::size_t found, std::ptrdiff_t expected) {
      return found == 0 || static_cast<std::ptrdiff_t>(found) == expected
                 ? std::string()
                 : wrong_size(name, static_cast<std::ptrdiff_t>(found), expected);
    };
    for (const std::string& why :
         {wrong("active", m->active.size(), 6 * n), wrong("friction", m->friction.size(), 2 * n)})
      if (!why.empty()) return why;
    return {};
  }

 private:
  void fill_sheet(const Model& model, const State& state, Sheet& sheet) const {
    const auto n = at(model.nodes());
    sheet.x.resize(n);
    sheet.v.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      sheet.x[i] = node(state.x, static_cast<Index>(i));
      sheet.v[i] = node(state.v, static_cast<Index>(i));
    }
    sheet.X.assign(n, Vec2::Zero());
    sheet.V.assign(n, Vec2::Zero());
    sheet.feature.assign(n, -1);
    sheet.parameter.assign(n, 0.0);
    sheet.age.assign(n, 0);
    sheet.tag.assign(n, -1);
    sheet.patch.assign(n, 0);
    sheet.triangles = triangles_;
  }

  void read_sheet(const Model& model, const State& state) { fill_sheet(model, state, sheet_); }

  ClothTerms terms(const Model& model, const StepInput& in) const {
    ClothTerms t;
    t.h = in.h;
    t.damping_mass = model.scene->damping_mass;
    t.damping_stiffness = model.scene->damping_stiffness;
    t.gravity = in.gravity;
    t.wind = options_.wind;
    t.force = &in.force;
    t.inertia_forces = options_.inertia_forces;
    return t;
  }

  void set_bounds(const Model& model, const State& state, const StepInput& in, StepReport& report) {
    problem_.A = system_.A;
    problem_.b = system_.b;
    problem_.resize(pattern_.size());
    std::vector<std::uint8_t> held(sheet_.x.size(), 0);
    for (std::size_t d = 0; d < in.fixed.size(); ++d) {
      if (!in.fixed[d]) continue;
      problem_.bound[d] = Bound::kHeld;
      problem_.value[static_cast<Eigen::Index>(d)] = in.fixed_velocity[static_cast<Eigen::Index>(d)];
      held[d / 3] = 1;
    }
    std::vector<Vec3> expected = sheet_.v;
    for (Vec3& v : expected) v += in.h * in.gravity;
    const std::vector<FaceContact> contacts =
        face_contacts(model.contact.obstacles, sheet_.x, expected, held, in.h, state.t, options_.contact);
    add_all_face_bounds(contacts, problem_);
    report.contacts = static_cast<Index>(contacts.size());
    const ClothMemory* m = memory_of<ClothMemory>(state);
    if (m && m->friction.size() == 2 * sheet_.x.size())
      for (FrictionDisc& disc : problem_.friction) {
        const std::size_t i = at(vertex_of(disc));
        disc.start = Vec2(m->friction[2 * i], m->friction[2 * i + 1]);
      }
  }

  void advance(const StepInput& in, const VecX& q, State& state) const {
    const Eigen::Index n = state.x.size();
    state.v = q.head(n);
    restore_fixed(in, state.v);
    state.x += in.h * state.v;
  }

  // Six numbers a vertex, those of its block and of its second one.
  std::vector<std::int8_t> active_of(const State& state) const {
    std::vector<std::int8_t> out;
    const ClothMemory* m = memory_of<ClothMemory>(state);
    if (!m || m->active.size() != 6 * sheet_.x.size()) return out;
    out.assign(at(3 * pattern_.size()), 0);
    for (std::size_t i = 0; i < sheet_.x.size(); ++i)
      for (std::size_t k = 0; k < 3; ++k) {
        out[3 * i + k] = static_cast<std::int8_t>(m->active[6 * i + k]);
        if (const Index e = pattern_.extra[i]; e >= 0)
          out[at(3 * e) + k] = static_cast<std::int8_t>(m->active[6 * i + 3 + k]);
      }
    return out;
  }
  Index vertex_of(const FrictionDisc& disc) const {
    const Index block = disc.slide[0] / 3;
    return block < pattern_.vertices ? block : pattern_.vertex_of[at(block - pattern_.vertices)];
  }
  void keep_active(const BoundSolution& solution, State& state) const {
    ClothMemory& m = memory_of<ClothMemory>(state);
    m.active.assign(6 * sheet_.x.size(), 0);
    m.friction.assign(problem_.friction.empty() ? 0 : 2 * sheet_.x.size(), 0.0);
    for (std::size_t k = 0; k < problem_.friction.size(); ++k)
      for (std::size_t s = 0; s < 2; ++s)
        m.friction[2 * at(vertex_of(problem_.friction[k])) + s] = solution.friction[k][static_cast<int>(s)];
    for (std::size_t i = 0; i < sheet_.x.size(); ++i)
      for (std::size_t k = 0; k < 3; ++k) {
        m.active[6 * i + k] = static_cast<std::uint8_t>(solution.active[3 * i + k]);
        if (const Index e = pattern_.extra[i]; e >= 0)
          m.active[6 * i + 3 + k] = static_cast<std::uint8_t>(solution.active[at(3 * e) + k]);
      }
  }

  const ClothOptions options_;
  std::vector<Tri> triangles_;
  ClothBody body_;
  Sheet sheet_;
  ClothPattern pattern_;
  ClothSystem system_;
  BoundProblem problem_;
  BoundSolver solver_;
  PhaseClock clock_;
};

}  // namespace

std::unique_ptr<Stepper> make_cloth(const Model& model, const nlohmann::json& options, const Preparation&) {
  return std::make_unique<Cloth>(model, ClothOptions::read(options));
}

}  // namespace limber
