#include <limber/methods/static/static.hpp>

#include <limber/methods/common/system.hpp>
#include <limber/sim/static_solve.hpp>

#include <nlohmann/json.hpp>

namespace limber {
namespace {

// clang-format off
constexpr Entry kStaticEntries[] = {
    {.path = "/method[static]/tolerance", .type = Type::kNumber, .fallback = "1e-10", .range = ranges::inside(0, 1), .text = "Force residual relative to the largest force at which Newton's method stops."},
    {.path = "/method[static]/max_iterations", .type = Type::kInteger, .fallback = "200", .range = ranges::within(1, 100000), .text = "Newton iterations after which the solve counts as failed."},
};
// clang-format on

struct StaticOptions {
  double tolerance = 1e-10;
  int max_iterations = 200;

  static StaticOptions read(const nlohmann::json& o) { return {o.at("tolerance"), o.at("max_iterations")}; }
};

class Static final : public Stepper {
 public:
  Static(const Model& model, const StaticOptions& options)
      : options_(options), solver_(model, {model.scene->solver, model.scene->ordering}) {}

  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    clock_.reset();
    {
      auto phase = clock_.phase("newton");
      state.v.setZero();
      restore_fixed(in, state.v);
      state.x += in.h * state.v;
      const StaticResult result = solver_.solve(in, state.x, options_.tolerance, options_.max_iterations);
      if (result.shifts > 0) report.fallbacks["shifted_stiffness"] = result.shifts;
      if (!result.converged) return fail(report, "no equilibrium found: " + result.why);
      state.v.setZero();
      report.iterations = result.iterations;
      report.residual = result.residual;
      report_energy(model, state, result.elastic, report);
    }
    report.dofs = free_dofs(in);
    report.symbolic_analyses = solver_.analyses();
    report.phases = clock_.phases();
    return report;
  }

 private:
  const StaticOptions options_;
  StaticSolver solver_;
  PhaseClock clock_;
};

}  // namespace

constinit const Method static_method{.spec = {.name = "static",
                                              .summary = "equilibrium at every step: the reference shape",
                                              .entries = kStaticEntries,
                                              .can = {.free_bodies = false},
                                              .remedy = "try loads that grow over more steps, or a larger "
                                                        "method/tolerance or method/max_iterations"},
                                     .make = [](const Model& model, const nlohmann::json& options,
                                                const Preparation&) -> std::unique_ptr<Stepper> {
                                       return std::make_unique<Static>(model, StaticOptions::read(options));
                                     }};

}  // namespace limber
