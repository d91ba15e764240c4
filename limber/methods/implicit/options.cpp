#include <limber/methods/implicit/options.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/implicit/implicit.hpp>
#include <limber/methods/implicit/memory.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace limber {
namespace {

// clang-format off
constexpr Entry kImplicitEntries[] = {
    {.path = "/method[implicit]/integrator", .type = Type::kEnum, .fallback = "\"bdf2\"", .values = "bdf1 baraff bdf2 sdirk2 quasistatic", .text = "bdf1: implicit Euler; baraff: its first Newton iteration only; bdf2, sdirk2: second order; quasistatic: equilibrium at every step."},
    {.path = "/method[implicit]/solver", .type = Type::kEnum, .fallback = "\"auto\"", .values = "newton-direct newton-pcg newton-l0 newton-l1 quasi-newton-l0 quasi-newton-l1 hybrid-l0 hybrid-l1 qlb auto", .text = "How often the matrix is factored; every choice reaches the same solution."},
    {.path = "/method[implicit]/matrix", .type = Type::kEnum, .fallback = "\"exact\"", .values = "exact projected", .text = "exact: the derivative of the forces where it is positive definite, with projected elements elsewhere; projected: always projected."},
    {.path = "/method[implicit]/strain_damping", .type = Type::kNumber, .unit = "s", .fallback = "0", .range = ranges::at_least(0), .text = "Green-strain damping: times Young's modulus, the energy lost per volume and squared strain rate."},
    {.path = "/method[implicit]/body_contact", .type = Type::kBoolean, .fallback = "false", .text = "Bodies touch each other and themselves."},
    {.path = "/method[implicit]/contact_gap", .type = Type::kEnum, .fallback = "\"plane\"", .values = "plane nearest", .text = "What a contact between bodies measures: the distance from the plane of one face during a step, or that from the nearest point of the surface, wherever nodes slide to (as condense does; for fine meshes, whose nodes slide by several faces in a step)."},
    {.path = "/method[implicit]/contact_damping", .type = Type::kNumber, .unit = "s", .fallback = "0", .range = ranges::at_least(0), .text = "Damping of contact, as a time: resists going deeper with this times the penalty stiffness."},
    {.path = "/method[implicit]/slip_speed", .type = Type::kNumber, .unit = "m/s", .fallback = "0.005", .range = ranges::above(0), .text = "Speed below which friction is viscous instead of Coulomb's."},
    {.path = "/method[implicit]/tolerance_relative", .type = Type::kNumber, .fallback = "1e-6", .range = ranges::inside(0, 1), .text = "Residual, relative to that of the initial guess, at which a solve ends."},
    {.path = "/method[implicit]/tolerance_absolute", .type = Type::kNumber, .unit = "N", .fallback = "1e-6", .range = ranges::above(0), .text = "Norm of the residual force at which a solve ends."},
    {.path = "/method[implicit]/max_iterations", .type = Type::kInteger, .fallback = "200", .range = ranges::within(1, 100000), .text = "Search directions after which a solve counts as failed."},
    {.path = "/method[implicit]/quasi_iterations", .type = Type::kInteger, .fallback = "20", .range = ranges::within(1, 100000), .text = "Quasi-Newton iterations after which a factor counts as stale."},
    {.path = "/method[implicit]/pcg_tolerance", .type = Type::kNumber, .fallback = "0.01", .range = ranges::inside(0, 1), .text = "Relative residual of conjugate gradients inside Newton's method."},
    {.path = "/method[implicit]/history", .type = Type::kInteger, .fallback = "8", .range = ranges::within(0, 100), .text = "Pairs that L-BFGS keeps (qlb, auto)."},
    {.path = "/method[implicit]/keep", .type = Type::kInteger, .fallback = "0", .range = ranges::within(0, 1000000), .text = "Steps that a factor serves; 0: one with l0 and l1, as long as it pays with qlb and auto."},
    {.path = "/method[implicit]/max_halvings", .type = Type::kInteger, .fallback = "4", .range = ranges::within(0, 20), .text = "How often a step that fails is halved before the run stops."},
};
// clang-format on

Integrator integrator_named(const std::string& name) {
  if (name == "bdf1") return Integrator::kBdf1;
  if (name == "baraff") return Integrator::kBaraff;
  if (name == "bdf2") return Integrator::kBdf2;
  if (name == "sdirk2") return Integrator::kSdirk2;
  if (name == "quasistatic") return Integrator::kQuasistatic;
  throw Error(ErrorKind::kInput, "/method/integrator: \"" + name + "\" is not an integrator");
}

SolverOptions solver_options(const nlohmann::json& o) {
  SolverOptions s;
  s.choice = solver_choice(o.at("solver"));
  s.relative = o.at("tolerance_relative");
  s.absolute = o.at("tolerance_absolute");
  s.max_iterations = o.at("max_iterations");
  s.quasi_iterations = o.at("quasi_iterations");
  s.pcg_tolerance = o.at("pcg_tolerance");
  s.history = o.at("history");
  s.keep = o.at("keep");
  // The one matrix of Baraff's step is always projected: nothing looks whether the step went down.
  s.exact = o.at("matrix") == "exact" && o.at("integrator") != "baraff";
  return s;
}

}  // namespace

ImplicitOptions ImplicitOptions::read(const nlohmann::json& o) {
  return {integrator_named(o.at("integrator")),
          o.at("max_halvings"),
          solver_options(o),
          {o.at("strain_damping"), o.at("contact_damping"), o.at("slip_speed"), o.at("body_contact"),
           o.value("contact_gap", "plane") == std::string("nearest")}};
}

std::string implicit_misfit(const ImplicitMemory& m, Index nodes, std::size_t activations) {
  const auto n = static_cast<std::ptrdiff_t>(nodes);
  const auto whole = [&](const char* name, const VecX& v) -> std::string {
    if (v.size() != 0 && v.size() != 3 * n) return wrong_size(name, v.size(), 3 * n);
    return v.allFinite() ? "" : fmt::format("\"{}\" has a number that is not finite", name);
  };
  const std::pair<const char*, const VecX*> vectors[] = {
      {"x_prev", &m.x_prev}, {"v_prev", &m.v_prev}, {"factor_x", &m.factor.x}, {"factor_v", &m.factor.v}};
  for (const auto& [name, v] : vectors)
    if (std::string why = whole(name, *v); !why.empty()) return why;
  if (m.v_prev.size() != m.x_prev.size()) return wrong_size("v_prev", m.v_prev.size(), m.x_prev.size());
  if (m.coupled_nodes.size() % 4 != 0)
    return fmt::format("\"coupled_nodes\" has {} numbers, expected four for each pair",
                       m.coupled_nodes.size());
  for (const std::int64_t i : m.coupled_nodes)
    if (i < -1 || i >= n) return fmt::format("\"coupled_nodes\" names node {}; there are {}", i, n);
  const FactorRecord& f = m.factor;
  if (f.x.size() > 0) {
    if (static_cast<std::ptrdiff_t>(f.fixed.size()) != 3 * n)
      return wrong_size("factor_fixed", static_cast<std::ptrdiff_t>(f.fixed.size()), 3 * n);
    if (f.activation.size() != activations)
      return wrong_size("factor_activation", static_cast<std::ptrdiff_t>(f.activation.size()),
                        static_cast<std::ptrdiff_t>(activations));
  } else if (f.v.size() > 0) {
    return wrong_size("factor_v", f.v.size(), 0);
  }
  for (const double value : {f.gamma, f.t, f.h, f.cost, f.last_cost, f.price, f.fresh_rate})
    if (!(value >= 0 && std::isfinite(value)))
      return fmt::format("the record of the kept factor has the number {}, expected one from 0 on", value);
  if (f.steps < 0 || f.wait < 0 || f.patience < 1)
    return fmt::format("the record of the kept factor counts {} steps, waits for {} and has patience for {}",
                       f.steps, f.wait, f.patience);
  return {};
}

constinit const Method implicit_method{
    .spec = {.name = "implicit",
             .summary = "nonlinear implicit integrators with solvers that reuse their factor",
             .entries = kImplicitEntries,
             .can = {.obstacles = true, .body_contact = true, .cloth = true}},
    .make = make_implicit,
    .memory = [] { return MethodMemory::of(ImplicitMemory{}, 0); }};

}  // namespace limber
