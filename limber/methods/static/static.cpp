#include <limber/methods/static/static.hpp>

#include <limber/methods/common/system.hpp>
#include <limber/sim/static_solve.hpp>

namespace limber {
namespace {

class Static final : public Stepper {
 public:
  explicit Static(const Scene& scene)
      : tolerance_(scene.method_options.at("tolerance")),
        max_iterations_(scene.method_options.at("max_iterations")),
        solver_{scene.solver, scene.ordering} {}

  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    clock_.reset();
    {
      auto phase = clock_.phase("newton");
      state.v.setZero();
      restore_fixed(in, state.v);
      state.x += in.h * state.v;
      const StaticResult result = solve_static(model, in, state.x, tolerance_, max_iterations_, solver_);
      if (!result.converged) return fail(report, "no equilibrium found: " + result.why);
      state.v.setZero();
      report.iterations = result.iterations;
      report.residual = result.residual;
    }
    report.dofs = free_dofs(in);
    report.symbolic_analyses = ++analyses_;
    report.phases = clock_.phases();
    return report;
  }

 private:
  const double tolerance_;
  const int max_iterations_;
  const CholeskyOptions solver_;
  long analyses_ = 0;
  PhaseClock clock_;
};

}  // namespace

std::unique_ptr<Stepper> make_static(const Scene& scene) { return std::make_unique<Static>(scene); }

}  // namespace limber
