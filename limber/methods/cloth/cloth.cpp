#include <limber/methods/cloth/cloth.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/cloth/links.hpp>
#include <limber/methods/cloth/requirements.hpp>
#include <limber/methods/common/link_report.hpp>
#include <limber/methods/common/system.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {
namespace cloth {
namespace {

class Cloth final : public Stepper {
 public:
  Cloth(const Model& model, const ClothOptions& options)
      : options_(options),
        solver_({model.scene->solver, ordering(model, options)}),
        charts_(find_charts(model)) {
    require_cloth(model);
    for (std::size_t b = 0; b < model.bodies.size(); ++b)
      for (Index e = model.bodies[b].elements.begin; e < model.bodies[b].elements.end; ++e) {
        body_.fabric.push_back(fabric_of(model.mesh.material[at(e)], model.scene->bodies[b].bending));
        if (e == model.bodies[b].elements.begin) of_patch_.push_back(body_.fabric.back());
      }
    std::vector<Tri> triangles;
    for (const Tet& t : model.mesh.elements) triangles.push_back({t[0], t[1], t[2]});
    body_.hinges = find_hinges(triangles);
    require_surface(model, triangles, body_.hinges);
    if (remeshes()) require_flat(model, triangles, charts_);
    if (!remeshes()) update_rest(model.mesh.rest, triangles, body_);
    if (model.articulation) links_.emplace(model, options_.link_friction);
    if (options_.sharp) features_ = find_features(obstacles(model), options_.sharp_angle);
    if (options_.mesh == ClothMesh::kConformal)
      too_short_ = short_features(features_, obstacles(model), options_.insert.size);
  }

  // Steps in which the material would slide further than the triangles ahead reach are cut.
  int parts(const Model& model, State& state) override {
    if (!options_.eol) return 1;
    ClothMemory& m = memory_of<ClothMemory>(state);
    double fastest2 = 0;
    for (std::size_t k = 0; k + 1 < m.V.size(); k += 2)
      fastest2 = std::max(fastest2, m.V[k] * m.V[k] + m.V[k + 1] * m.V[k + 1]);
    const double way = 1.25 * std::sqrt(fastest2) * model.scene->h, room = kSlideShare * options_.insert.size;
    m.parts = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(way / room)), 1, kMostParts);
    return static_cast<int>(m.parts);
  }

  // Lines 2 and 3 of Alg. 2.1: detection and remeshing, before the step.
  std::optional<TopologyChange> change(const Model& model, const State& state) override {
    ready_.reset();
    if (!remeshes()) return std::nullopt;
    if (const ClothMemory* m = memory_of<ClothMemory>(state); m && m->prepared == state.t)
      return std::nullopt;
    const Sheet before = sheet_of(model, state, charts_);
    update_rest(before, body_);
    if (links_) links_->predict(state, part_length(model, state));
    Prepared prepared = prepare(obstacles(model), state, part_length(model, state), before, side_of(state),
                                body_, of_patch_, features_, too_short_, options_);
    if (prepared.same) {
      ready_ = std::move(prepared);
      ready_time_ = state.t;
      return std::nullopt;
    }
    const ClothMemory* m = memory_of<ClothMemory>(state);
    ClothMemory memory = m ? *m : ClothMemory{};
    memory.prepared = state.t;
    memory.detect_seconds = prepared.detect_seconds;
    memory.remesh_seconds = prepared.remesh_seconds;
    memory.unclean = prepared.fallbacks.empty() ? 0 : 1;
    return change_of(model, prepared, charts_, std::move(memory));
  }

  // Lines 4 and 5 of Alg. 2.1.
  StepReport step(const Model& model, State& state, const StepInput& script) override {
    StepReport report;
    clock_.reset();
    take_sheet(model, state, report);
    const StepInput& in = links_ ? with_links(state, script) : script;
    if (!options_.eol && options_.mesh == ClothMesh::kConformal) {
      // Its vertices on features are there for the mesh alone: they move with the material.
      on_feature_ = sheet_.feature;
      on_parameter_ = sheet_.parameter;
      std::fill(sheet_.feature.begin(), sheet_.feature.end(), -1);
    }
    {
      auto phase = clock_.phase("assemble");
      if (remeshes()) update_rest(sheet_, body_);
      for (const RestTriangle& rest : body_.rest) report.inverted += !(rest.area > 0);
      if (!pattern_.blocks || !fits(pattern_, sheet_)) pattern_ = make_pattern(sheet_, body_.hinges);
      assemble(sheet_, body_, pattern_, terms(model, in), system_);
    }
    {
      auto phase = clock_.phase("contact");
      bound_velocities(model, state, in, report);
    }
    BoundSolution solution;
    {
      auto phase = clock_.phase("solve");
      turn_to_basis(problem_);
      problem_.guess = to_basis(problem_, system_.q);
      solution = solver_.solve(problem_, active_of(state));
      // Triangles that sliding would turn over: their vertices may slide half as far, in the end not at all.
      for (int k = 0; solution.ok && k < kMostNarrowings && narrow(in.h, solution, k + 1 >= kNarrowings);
           ++k) {
        report.fallbacks["slide-again"] += 1;
        BoundSolution again = solver_.solve(problem_, solution.active);
        again.iterations += solution.iterations;
        again.factorizations += solution.factorizations;
        for (const auto& [name, count] : solution.fallbacks) again.fallbacks[name] += count;
        solution = std::move(again);
      }
      if (!solution.ok) return fail(report, solution.why);
    }
    VecX q = from_basis(problem_, solution.y);
    if (options_.filter && !eol_.empty())
      filter_friction(pattern_, eol_, geometry_, lumped_mass(), solution.reaction, q);
    if (links_) {
      auto phase = clock_.phase("links");
      links_->step(impulses(q), touches_, sheet_.x, state);
      report_links(*model.articulation, links_->outcome(), in.h, report);
    }
    advance(in, q, solution, state);
    for (const auto& [name, count] : solution.fallbacks) report.fallbacks[name] += count;
    report_limits(solution, report);
    report.iterations = solution.iterations;
    report.extra["factorizations"] = solution.factorizations;
    report.extra["faces"] = sheet_.faces();
    if (options_.eol) report.extra["parts"] = static_cast<double>(memory_of<ClothMemory>(state).parts);
    report.extra["eol"] = static_cast<double>(eol_.size());
    if (options_.eol) report.extra["eol_force"] = edge_force(solution) / in.h;
    report.dofs = free_dofs(in) + 2 * static_cast<Index>(eol_.size()) +
                  (links_ ? model.articulation->mechanism.velocities : 0);
    report.symbolic_analyses = solver_.analyses();
    for (const auto& phase : clock_.phases()) report.phases.push_back(phase);
    return report;
  }

  void measure(const Model& model, const State& state, Diagnostics& d) const override {
    const Sheet sheet = sheet_of(model, state, charts_);
    ClothBody body = body_;
    if (remeshes()) update_rest(sheet, body);
    const ClothMotion m = cloth::measure(sheet, body, model.scene->gravity);
    d.kinetic = m.kinetic;
    d.elastic = m.membrane + m.bending;
    d.gravity = m.gravity;
    d.contact = 0;
    d.momentum = m.momentum;
    d.angular_momentum = m.angular_momentum;
    if (m.mass > 0) d.center_of_mass = m.first_moment / m.mass;
    d.max_speed = m.max_speed;
  }

  MethodFields fields(const Model& model, const State& state) const override {
    MethodFields f;
    if (links_) f = link_fields(*model.articulation, links_->outcome());
    const bool charted =
        std::all_of(charts_.begin(), charts_.end(), [](const auto& c) { return c.has_value(); });
    if (!charted) return f;
    const Sheet sheet = sheet_of(model, state, charts_);
    auto &u = f.node["material_u"], &v = f.node["material_v"];
    for (const Vec2& X : sheet.X) {
      u.push_back(X[0]);
      v.push_back(X[1]);
    }
    f.units["material_u"] = f.units["material_v"] = "m";
    if (!remeshes()) f.constant = {"material_u", "material_v"};
    if (options_.mesh == ClothMesh::kConformal) {
      auto& eol = f.node["eol"];
      // Negative on corners and nails, so that the page knows which edges follow a line.
      for (const std::int64_t feature : sheet.feature) {
        const bool point = feature >= 0 && at(static_cast<Index>(feature)) < features_.size() &&
                           !features_[at(static_cast<Index>(feature))].line();
        eol.push_back(static_cast<double>(point ? -feature - 1 : feature + 1));
      }
    }
    return f;
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
    const auto vertices = static_cast<std::ptrdiff_t>(m->X.size()) / 2;
    for (const std::string& why :
         {wrong("active", m->active.size(), 6 * n), wrong("side", m->side.size(), n),
          wrong("friction", m->friction.size(), 2 * n), wrong("X", m->X.size(), 2 * n),
          wrong("V", m->V.size(), 2 * vertices), wrong("feature", m->feature.size(), vertices),
          wrong("parameter", m->parameter.size(), vertices), wrong("age", m->age.size(), vertices)})
      if (!why.empty()) return why;
    if (!m->X.empty() && (m->V.empty() || m->feature.empty() || m->parameter.empty() || m->age.empty()))
      return "it has material coordinates of cloth, but not all that belongs to them";
    for (const std::int64_t f : m->feature)
      if (f < -1 || f >= static_cast<std::int64_t>(features_.size()))
        return fmt::format("it names the sharp feature {}; the obstacles have {}", f, features_.size());
    for (const std::int32_t i : m->preserved)
      if (i < 0 || i >= n) return fmt::format("\"preserved\" names node {}; there are {}", i, n);
    return {};
  }

 private:
  static constexpr double kSlideShare = 0.3;  // of the smallest edge: what may slide in a part of a step
  static constexpr std::int64_t kMostParts = 32;
  static constexpr int kNarrowings = 5, kMostNarrowings = 12;
  static constexpr double kLeastAltitude = 0.03;  // of a triangle, of the smallest edge
  static constexpr double kLeastArea = 0.1;       // of a triangle, of what it had before the part

  double part_length(const Model& model, const State& state) const {
    const ClothMemory* m = memory_of<ClothMemory>(state);
    return model.scene->h / static_cast<double>(m ? m->parts : 1);
  }

  static std::vector<std::uint8_t> side_of(const State& state) {
    const ClothMemory* m = memory_of<ClothMemory>(state);
    return m ? m->side : std::vector<std::uint8_t>();
  }

  bool remeshes() const { return options_.mesh != ClothMesh::kStatic; }

  // A mesh that changes in every step is not worth two attempts at an order.
  static std::string ordering(const Model& model, const ClothOptions& options) {
    const std::string& wanted = model.scene->ordering;
    return wanted == "auto" && options.mesh != ClothMesh::kStatic ? "amd" : wanted;
  }

  // The sheet that the step begins with: as `change` has made it.
  void take_sheet(const Model& model, const State& state, StepReport& report) {
    if (remeshes() && ready_ && ready_time_ == state.t) {
      sheet_ = std::move(ready_->sheet);
      side_ = std::move(ready_->side);
      report.phases = {{"detect", ready_->detect_seconds}, {"remesh", ready_->remesh_seconds}};
      report.fallbacks = ready_->fallbacks;
      ready_.reset();
      return;
    }
    sheet_ = sheet_of(model, state, charts_);
    side_ = side_of(state);
    if (const ClothMemory* m = memory_of<ClothMemory>(state); m && remeshes()) {
      report.phases = {{"detect", m->detect_seconds}, {"remesh", m->remesh_seconds}};
      if (m->unclean) report.fallbacks["remesh-unclean"] += 1;
    }
  }

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

  // Line 4: bounds on the velocities of the step.
  void bound_velocities(const Model& model, const State& state, const StepInput& in, StepReport& report) {
    problem_.A = system_.A;
    problem_.b = system_.b;
    StepContacts found = set_bounds({sheet_, body_, pattern_, side_, on_feature_, on_parameter_, features_,
                                     too_short_, obstacles(model), state.t, in, options_},
                                    problem_);
    eol_ = std::move(found.eol);
    geometry_ = std::move(found.geometry);
    touches_ = std::move(found.touches);
    report.contacts = found.contacts;
    if (found.short_edges > 0) report.fallbacks["short-edge"] += found.short_edges;
    const ClothMemory* m = memory_of<ClothMemory>(state);
    if (m && m->friction.size() == 2 * sheet_.x.size())
      for (FrictionDisc& disc : problem_.friction) {
        const std::size_t i = at(vertex_of(disc));
        disc.start = Vec2(m->friction[2 * i], m->friction[2 * i + 1]);
      }
  }

  VecX lumped_mass() const {
    VecX mass = VecX::Zero(sheet_.vertices());
    for (std::size_t t = 0; t < sheet_.triangles.size(); ++t)
      for (const Index i : sheet_.triangles[t]) mass[i] += body_.fabric[t].density * body_.rest[t].area / 3;
    return mass;
  }

  std::span<const Obstacle> obstacles(const Model& model) const {
    return links_ ? links_->obstacles() : std::span<const Obstacle>(model.contact.obstacles);
  }

  const StepInput& with_links(const State& state, const StepInput& script) {
    auto phase = clock_.phase("links");
    held_ = script;
    links_->predict(state, script.h);
    links_->hold_attached(sheet_.x, held_);
    return held_;
  }

  // What contacts and holds have given every vertex in space: all that its own forces do not explain [N s].
  // (EOL vertices slide by forces in the material; those move nothing in space.)
  VecX impulses(const VecX& q) const {
    VecX out;
    multiply(system_.A, q, out);
    return (out - system_.b).head(3 * sheet_.vertices());
  }

  // Line 5: positions, in space and in the material.
  void advance(const StepInput& in, const VecX& q, const BoundSolution& solution, State& state) {
    const auto n = static_cast<Index>(sheet_.x.size());
    VecX v = q.head(3 * n);
    restore_fixed(in, v);
    for (Index i = 0; i < n; ++i) {
      sheet_.v[at(i)] = node(v, i);
      sheet_.x[at(i)] += in.h * sheet_.v[at(i)];
      node(state.x, i) = sheet_.x[at(i)];
      if (const Index e = pattern_.extra[at(i)]; e >= 0) {
        sheet_.V[at(i)] = node(q, e).head<2>();
        sheet_.X[at(i)] += in.h * sheet_.V[at(i)];
      }
    }
    state.v = v;
    // How long each has been on its feature; negative: for so many steps nothing has pressed it.
    for (const EolVertex& e : eol_) {
      bool pressed = false;
      for (Index k = 0; k < 3; ++k)
        pressed |= problem_.bound[at(3 * e.vertex + k)] == Bound::kLower &&
                   solution.active[at(3 * e.vertex + k)] != 0;
      std::int64_t& age = sheet_.age[at(e.vertex)];
      age = pressed ? std::max<std::int64_t>(age, 0) + 1 : std::min<std::int64_t>(age, 0) - 1;
    }
    ClothMemory& m = memory_of<ClothMemory>(state);
    if (!options_.eol && options_.mesh == ClothMesh::kConformal) {
      sheet_.feature = on_feature_;
      sheet_.parameter = on_parameter_;
    }
    if (remeshes()) store(sheet_, m);
    m.side = side_;
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

  // Narrows the bounds on sliding around triangles that would lose nearly all of their area. False: there are
  // none.
  bool narrow(double h, const BoundSolution& solution, bool stop) {
    if (eol_.empty()) return false;
    std::vector<std::uint8_t> mark(sheet_.x.size(), 0);
    bool any = false;
    const auto moved = [&](Index i) {
      Vec2 X = sheet_.X[at(i)];
      if (const Index e = pattern_.extra[at(i)]; e >= 0)
        X += h * (problem_.basis[at(e)] * Vec3(node(solution.y, e))).head<2>();
      return X;
    };
    for (std::size_t t = 0; t < sheet_.triangles.size(); ++t) {
      const Tri& tri = sheet_.triangles[t];
      if (!sheet_.eol(tri[0]) && !sheet_.eol(tri[1]) && !sheet_.eol(tri[2])) continue;
      const Vec2 a = moved(tri[0]), b = moved(tri[1]), c = moved(tri[2]);
      const double area = 0.5 * cross2(b - a, c - a), before = body_.rest[t].area;
      const double longest = std::max({(b - a).norm(), (c - b).norm(), (a - c).norm()});
      const bool flat = area < before && area < 0.5 * kLeastAltitude * options_.insert.size * longest;
      if (area > kLeastArea * before && !flat) continue;
      for (const Index i : tri)
        if (sheet_.eol(i)) mark[at(i)] = any = true;
    }
    for (std::size_t i = 0; i < mark.size() && any; ++i) {
      if (!mark[i]) continue;
      for (Index k = 0; k < 2; ++k) {
        const Index d = 3 * pattern_.extra[i] + k;
        if (problem_.bound[at(d)] != Bound::kRange) continue;
        const double reach = std::abs(problem_.value[d]) + problem_.range[d];
        problem_.value[d] = 0;
        problem_.range[d] = stop ? 0.0 : 0.5 * std::min(std::abs(solution.y[d]), reach);
      }
    }
    return any;
  }

  // With what features push the cloth away, along its bisectors [N s].
  double edge_force(const BoundSolution& solution) const {
    double sum = 0;
    for (const EolVertex& e : eol_) sum += solution.reaction[3 * e.vertex];
    return sum;
  }

  // Sliding that was held back to keep the triangles ahead.
  void report_limits(const BoundSolution& solution, StepReport& report) const {
    int limited = 0;
    for (const EolVertex& e : eol_) {
      const Index d = 3 * pattern_.extra[at(e.vertex)];
      for (Index k = 0; k < 2; ++k)
        limited += problem_.bound[at(d + k)] == Bound::kRange && solution.active[at(d + k)] != 0 &&
                   std::abs(solution.y[d + k] - problem_.value[d + k]) >= 0.999 * problem_.range[d + k];
    }
    if (limited > 0) report.fallbacks["slide-limit"] += limited;
  }

  // Which bounds the last step ended with: six numbers a vertex, those of its block and of its second one.
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

  const ClothOptions options_;
  BoundSolver solver_;
  std::vector<std::optional<Chart>> charts_;
  std::vector<Fabric> of_patch_;
  ClothBody body_;
  FeatureSet features_;
  std::vector<std::uint8_t> too_short_;  // of each feature: no edge of the mesh fits onto it
  std::optional<Prepared> ready_;
  double ready_time_ = -1;
  Sheet sheet_;
  std::vector<std::uint8_t> side_;
  std::vector<std::int64_t> on_feature_;  // conformal without eol: what vertices lie on
  std::vector<double> on_parameter_;
  ClothPattern pattern_;
  ClothSystem system_;
  BoundProblem problem_;
  std::vector<EolVertex> eol_;
  std::vector<EolGeometry> geometry_;
  std::vector<Touch> touches_;
  std::optional<ClothLinks> links_;
  StepInput held_;  // the script's, with what links hold
  PhaseClock clock_;
};

}  // namespace
}  // namespace cloth

std::unique_ptr<Stepper> make_cloth(const Model& model, const nlohmann::json& options, const Preparation&) {
  return std::make_unique<cloth::Cloth>(model, cloth::ClothOptions::read(options));
}

}  // namespace limber
