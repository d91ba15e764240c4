// Newton-type solvers of one implicit stage, which differ in how often they factor. All reach the same x to
// the same tolerance; only the work differs.
//
//   newton-direct       factors A(x) in every iteration
//   newton-pcg          conjugate gradients on A(x), block-Jacobi
//   newton-l0, -l1      conjugate gradients on A(x), preconditioned by one factor per step: frozen at x_k
//                       (L0), or extrapolated to the stage's time, L + dt dL/dt (L1, Eq. 5.4)
//   quasi-newton-l0/-l1 that factor instead of A(x)                                    (Algorithm 5.3)
//   hybrid-l0, -l1      quasi-Newton first, then newton-l0/-l1 from where it failed
//   qlb                 L-BFGS on top of a frozen factor that is kept over steps while that is cheaper
//   auto                qlb that also factors within a step when that is expected to be cheaper; its extremes
//                       are newton-direct and a factor that is never renewed
//
// Contacts come and go: a factor that has them serves one step only.
//
// "Cheaper" is judged by operation counts and iteration counts, never by a clock, so that a run is the same
// bits however busy the machine is.
#pragma once

#include <limber/linalg/factor_derivative.hpp>
#include <limber/linalg/pcg.hpp>
#include <limber/methods/implicit/implicit_stage.hpp>
#include <limber/methods/implicit/memory.hpp>

#include <map>
#include <string>

namespace limber {

struct SolverChoice {
  enum class Family { kNewton, kQuasi, kHybrid, kQlb, kAuto };
  Family family = Family::kNewton;
  enum class Linear { kDirect, kPlain, kFactor };
  Linear linear = Linear::kDirect;  // of Newton iterations
  bool extrapolate = false;         // L1
};
// Throws Error(kInput) for a name that is not in the list above.
SolverChoice solver_choice(const std::string& name);

struct SolverOptions {
  SolverChoice choice;
  double relative = 1e-6;     // of the residual at the initial guess
  double absolute = 1e-6;     // [N]
  int max_iterations = 200;   // search directions in one stage
  int quasi_iterations = 20;  // with one factor, before a quasi-Newton solver gives it up
  double pcg_tolerance = 1e-2;
  int history = 8;    // pairs of L-BFGS
  int keep = 0;       // steps that a factor serves; 0: one (L0, L1), as long as it pays (qlb, auto)
  bool exact = true;  // A as it is where it is positive definite; false: always projected
};

struct SolverReport {
  bool converged = false;
  std::string why;  // of a failure
  int newton = 0, quasi = 0, pcg = 0, factorizations = 0, evaluations = 0;
  double first_residual = 0, residual = 0;  // [N]
  double elastic = NAN;                     // energy of the solution, where it is known [J]
  Index inverted = 0;                       // elements, at the solution
  std::map<std::string, int> fallbacks;
};

// Where in time a stage is.
struct StageContext {
  double t = 0;             // of the solution that is sought [s]
  double t_start = 0;       // of the step [s]
  const VecX* x = nullptr;  // at the start of the step
  const VecX* v = nullptr;  // there; held degrees of freedom with the velocity of this step
  double h = 0;             // of the step [s]
  bool first = true;        // first stage of its step or of a part of it
};

// What one operation costs, in units of an arbitrary second. Constant for a model.
struct CostModel {
  double assemble = 0, force = 0, factor = 0, solve = 0, multiply = 0, vectors = 0;
};
CostModel cost_model(const Model& model, const CholeskyStats& stats);

class NewtonSolver {
 public:
  NewtonSolver(const SolverOptions& options, const CholeskyOptions& cholesky);

  // Moves x from the initial guess to the solution; `point` is the stage's value there. `record` says what
  // the kept factor was made from.
  SolverReport solve(ImplicitStage& stage, const StageContext& context, FactorRecord& record, VecX& x,
                     ImplicitStage::Point& point, PhaseClock& clock);

  // One linear solve A d = rhs with A at the start of the step (the Baraff integrator): directly with a
  // factor of A, or by conjugate gradients to a tolerance of options.relative with a factor that is kept from
  // before.
  SolverReport solve_linear(ImplicitStage& stage, const StageContext& context, const BlockMatrix& A,
                            const VecX& rhs, FactorRecord& record, VecX& d, PhaseClock& clock);

  // Around every step; the end only after it has succeeded.
  void begin_step() { step_cost_ = cost_before_ = 0; }
  void end_step(FactorRecord& record);
  // The pattern of A has changed: nothing is left of the kept factor.
  void forget(FactorRecord& record);

  long analyses() const { return factor_.stats().analyses + direct_.stats().analyses; }
  const CholeskyStats& stats() const { return uses_kept_factor() ? factor_.stats() : direct_.stats(); }

 private:
  struct Run;  // one call of solve()

  bool uses_kept_factor() const {
    return options_.choice.family != SolverChoice::Family::kNewton ||
           options_.choice.linear == SolverChoice::Linear::kFactor;
  }
  bool adaptive() const {
    return options_.choice.family == SolverChoice::Family::kQlb ||
           options_.choice.family == SolverChoice::Family::kAuto;
  }
  void prepare(const ImplicitStage& stage);
  void cover(Run& run, const VecX& x);
  bool fits(const Run& run) const;
  bool keep_factor(Run& run);
  bool recall(Run& run);
  bool make_factor(Run& run, const VecX& x);
  void describe(Run& run, const VecX& x);
  bool rebuild(Run& run, bool contact);
  template <class Factor>
  bool factor_positive(Run& run, const VecX& x, const MatrixKey& key, const VecX* x_later, bool contact,
                       Factor&& factor);
  bool direction_pcg(Run& run, VecX& d);
  bool search_along(Run& run, const VecX& d);
  enum class End { kConverged, kLimit, kNoDescent, kBroken };
  End newton(Run& run, int limit);
  End quasi(Run& run, int limit);
  End lbfgs(Run& run, int limit);

  SolverOptions options_;
  TimeFactor factor_;  // the kept one
  Cholesky direct_;    // of newton-direct
  std::shared_ptr<const BlockPattern> analyzed_;
  FactorRecord made_from_;     // what factor_ is of
  bool fresh_ = false;         // factor_ was made for the stage that is being solved
  bool distrust_ = false;      // the exact matrix gave a direction that leads nowhere
  bool with_contact_ = false;  // and of contacts, which a record does not know
  CostModel cost_;
  double step_cost_ = 0, cost_before_ = 0;  // of the current step, and of it before the factor was made
  BlockMatrix A_, A_later_;
  ImplicitStage::Point trial_;
  VecX x_trial_;
};

}  // namespace limber
