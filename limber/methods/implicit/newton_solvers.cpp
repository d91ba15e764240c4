#include <limber/methods/implicit/newton_solvers.hpp>

#include <limber/core/error.hpp>
#include <limber/linalg/lbfgs.hpp>
#include <limber/linalg/line_search.hpp>
#include <limber/linalg/shifted_factor.hpp>
#include <limber/methods/common/system.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace limber {
namespace {

using Family = SolverChoice::Family;
using Linear = SolverChoice::Linear;

// The step over which dL/dt is differenced, as a share of the time step (Eq. 5.6): large against rounding,
// small against the change of K in a step.
constexpr double kDifferenceShare = 1e-3;

constexpr double kShortestStep = 1e-9;  // a matrix that is nearly singular makes directions far too long
constexpr int kLeastPcg = 30;           // iterations that every factor is given, and
constexpr double kStale = 3;            // how many factorisations' worth of them
constexpr int kPcgLimit = 1000;
constexpr int kLongestWait = 64;     // linearised steps between two trials of an old factor
constexpr double kLeastRate = 0.05;  // of log |r| per iteration that a new factor is trusted with
constexpr double kRenewal = 1.5;     // how much cheaper a new factor must look

bool same_factor(const FactorRecord& a, const FactorRecord& b) {
  return a.x.size() == b.x.size() && a.v.size() == b.v.size() && a.x == b.x && a.v == b.v && a.h == b.h &&
         a.t == b.t && a.gamma == b.gamma && a.fixed == b.fixed && a.activation == b.activation;
}

}  // namespace

SolverChoice solver_choice(const std::string& name) {
  if (name == "newton-direct") return {Family::kNewton, Linear::kDirect, false};
  if (name == "newton-pcg") return {Family::kNewton, Linear::kPlain, false};
  if (name == "newton-l0") return {Family::kNewton, Linear::kFactor, false};
  if (name == "newton-l1") return {Family::kNewton, Linear::kFactor, true};
  if (name == "quasi-newton-l0") return {Family::kQuasi, Linear::kFactor, false};
  if (name == "quasi-newton-l1") return {Family::kQuasi, Linear::kFactor, true};
  if (name == "hybrid-l0") return {Family::kHybrid, Linear::kFactor, false};
  if (name == "hybrid-l1") return {Family::kHybrid, Linear::kFactor, true};
  if (name == "qlb") return {Family::kQlb, Linear::kFactor, false};
  if (name == "auto") return {Family::kAuto, Linear::kFactor, false};
  throw Error(ErrorKind::kInput, "/method/solver: \"" + name + "\" is not a nonlinear solver");
}

// Measured on one core (docs/methods/implicit.md). An element: 0.15 us to assemble, 0.05 us for its force.
// The factor: 45 GFLOP/s, 5 ns an entry of L and 0.5 ns to round it. A solve with the rounded factor: 0.9 ns
// an entry. A product: 1 ns an entry of A. The vectors of one L-BFGS iteration: 80 ns a coordinate. Only
// ratios matter.
CostModel cost_model(const Model& model, const CholeskyStats& stats) {
  const double elements = static_cast<double>(model.mesh.elements.size());
  CostModel c;
  c.assemble = 0.15e-6 * elements;
  c.force = 0.05e-6 * elements;
  c.factor = stats.flops / 45e9 + 5.5e-9 * stats.nnz;
  c.solve = 0.9e-9 * stats.nnz;
  c.multiply = 9e-9 * static_cast<double>(model.pattern->blocks());
  c.vectors = 80e-9 * 3 * static_cast<double>(model.nodes());
  return c;
}

struct NewtonSolver::Run {
  ImplicitStage& stage;
  const StageContext& context;
  FactorRecord& record;
  VecX& x;
  PhaseClock& clock;
  ImplicitStage::Point point;
  SolverReport report;
  double target = 0;  // [N]

  bool converged() const { return point.norm <= target; }
};

NewtonSolver::NewtonSolver(const SolverOptions& options, const CholeskyOptions& cholesky)
    : options_(options), factor_(cholesky), direct_(cholesky) {}

void NewtonSolver::prepare(const ImplicitStage& stage) {
  if (analyzed_ == stage.pattern()) return;
  analyzed_ = stage.pattern();
  made_from_ = {};
  if (uses_kept_factor())
    factor_.analyze(*analyzed_);
  else if (options_.choice.linear == Linear::kDirect)
    direct_.analyze(*analyzed_);
  cost_ = cost_model(stage.model(), stats());
}

SolverReport NewtonSolver::solve(ImplicitStage& stage, const StageContext& context, FactorRecord& record,
                                 VecX& x, ImplicitStage::Point& point, PhaseClock& clock) {
  Run run{stage, context, record, x, clock, {}, {}, 0};
  SolverReport& report = run.report;
  {
    auto phase = clock.phase("analyze");
    prepare(stage);
  }
  if (!point.finite) {
    report.why = fmt::format("element {} gave a force that is not finite", point.first_bad);
    return report;
  }
  fresh_ = false;
  distrust_ = false;
  std::swap(run.point, point);
  report.first_residual = run.point.norm;
  run.target = std::max({options_.absolute, options_.relative * run.point.norm, run.point.rounding});

  End end = End::kConverged;
  if (!run.converged()) {
    if (uses_kept_factor() && !keep_factor(run)) return report;
    switch (options_.choice.family) {
      case Family::kNewton:
        end = newton(run, options_.max_iterations);
        break;
      case Family::kQuasi:
      case Family::kHybrid:
        end = quasi(run, options_.quasi_iterations);
        if (end != End::kConverged && end != End::kBroken && options_.choice.family == Family::kHybrid) {
          ++report.fallbacks["newton"];
          end = newton(run, options_.max_iterations);
        }
        // Whatever the factor was, it is useless now: make one here.
        while (end != End::kConverged && end != End::kBroken &&
               report.newton + report.quasi < options_.max_iterations) {
          ++report.fallbacks["refreshed_factor"];
          if (!make_factor(run, run.x)) return report;
          const int before = report.quasi;
          end = quasi(run, options_.quasi_iterations);
          if (end == End::kNoDescent && report.quasi == before) break;
        }
        break;
      case Family::kQlb:
      case Family::kAuto:
        end = lbfgs(run, options_.max_iterations);
        break;
    }
  }
  report.residual = run.point.norm;
  report.inverted = run.point.inverted;
  report.elastic = run.point.elastic;
  report.converged = end == End::kConverged;
  if (!report.converged && report.why.empty()) {
    Index worst = 0;
    double largest = -1;
    for (Index i = 0; i < run.point.r.size() / 3; ++i)
      if (node(run.point.r, i).norm() > largest) {
        largest = node(run.point.r, i).norm();
        worst = i;
      }
    report.why = fmt::format(
        "{} after {} iterations: residual {:.3g} N of {:.3g} N at the start, expected {:.3g} N; the largest, "
        "{:.3g} N, is at node {}",
        end == End::kNoDescent ? "no search direction leads down" : "not converged",
        report.newton + report.quasi, run.point.norm, report.first_residual, run.target, largest, worst);
  }
  return report;
}

void NewtonSolver::end_step(FactorRecord& record) {
  if (!uses_kept_factor() || record.x.size() == 0) return;
  if (std::exchange(with_contact_, false)) {
    forget(record);
    return;
  }
  // Only what this factor is to blame for: not what came before it in the step in which it was made.
  record.steps += 1;
  record.cost += step_cost_ - cost_before_;
  record.last_cost = step_cost_ - cost_before_;
}

void NewtonSolver::forget(FactorRecord& record) {
  record = without_factor(record);
  made_from_ = {};
}

// The kept factor is of a matrix like this stage's.
bool NewtonSolver::fits(const Run& run) const {
  const FactorRecord& record = run.record;
  const MatrixKey& key = run.stage.key();
  return record.x.size() == run.x.size() && record.gamma == key.gamma && record.fixed == key.fixed &&
         record.activation == key.activation && !(run.context.first && run.stage.touching());
}

// Decides at the start of a stage which factor serves it, and makes it if it must be made.
bool NewtonSolver::keep_factor(Run& run) {
  const FactorRecord& record = run.record;
  bool usable = fits(run);
  if (usable && run.context.first) {
    if (options_.keep > 0)
      usable = record.steps < options_.keep;
    else if (!adaptive())
      usable = record.steps < 1;
    else  // the cheapest mean over the factor's life: go on while a step costs less than the mean so far
      usable = record.steps < 1 || record.last_cost * static_cast<double>(record.steps) <= record.cost;
  }
  return usable ? recall(run) : make_factor(run, adaptive() ? run.x : *run.context.x);
}

// Sees to it that factor_ is what the record describes: it is not after a restart.
bool NewtonSolver::recall(Run& run) {
  const FactorRecord& record = run.record;
  if (!same_factor(made_from_, record)) {
    // Making it again after a restart must not change a decision, and is not counted: it was when it was
    // made.
    const double cost = step_cost_;
    const int factorizations = run.report.factorizations;
    const std::map<std::string, int> fallbacks = run.report.fallbacks;
    if (!rebuild(run, false)) return false;
    step_cost_ = cost;
    run.report.factorizations = factorizations;
    run.report.fallbacks = fallbacks;
  }
  if (options_.choice.extrapolate) {
    auto phase = run.clock.phase("factor");
    if (!factor_.extrapolate(run.context.t - record.t)) ++run.report.fallbacks["frozen_factor"];
  }
  return true;
}

bool NewtonSolver::make_factor(Run& run, const VecX& x) {
  describe(run, x);
  fresh_ = true;
  const double before = step_cost_;
  if (!rebuild(run, true)) return false;
  // A matrix that is not positive definite costs two factorisations.
  double& price = run.record.price;
  price = price > 0 ? 0.5 * (price + step_cost_ - before) : step_cost_ - before;
  if (options_.choice.extrapolate) {
    auto phase = run.clock.phase("factor");
    if (!factor_.extrapolate(run.context.t - run.record.t)) ++run.report.fallbacks["frozen_factor"];
  }
  return true;
}

// Notes that the kept factor is to be that of this stage's matrix at x.
void NewtonSolver::describe(Run& run, const VecX& x) {
  FactorRecord& record = run.record;
  const MatrixKey& key = run.stage.key();
  record.x = x;
  record.v.resize(0);
  if (options_.choice.extrapolate)
    // Within a stage the motion that is left is unknown: extrapolate from x_k only.
    record.v = &x == run.context.x ? *run.context.v : VecX(VecX::Zero(x.size()));
  record.t = &x == run.context.x ? run.context.t_start : run.context.t;
  record.h = run.context.h;
  record.gamma = key.gamma;
  record.fixed = key.fixed;
  record.activation = key.activation;
  cost_before_ = step_cost_;
  record.steps = 0;
  record.cost = 0;
  record.last_cost = 0;
  with_contact_ = run.stage.touching(x);
}

// The pattern of the matrix at x.
void NewtonSolver::cover(Run& run, const VecX& x) {
  auto phase = run.clock.phase("analyze");
  if (!run.stage.cover(x)) return;
  ++run.report.fallbacks["recoupled"];
  prepare(run.stage);
}

// Factors A(x), and A(x_later) if asked: as they are where that is positive definite, with projected elements
// otherwise, with a shift at last. `factor` factors A_ (and A_later_).
template <class Factor>
bool NewtonSolver::factor_positive(Run& run, const VecX& x, const MatrixKey& key, const VecX* x_later,
                                   bool contact, Factor&& factor) {
  FactorStatus status;
  auto attempt = [&] {
    auto phase = run.clock.phase("factor");
    run.report.factorizations += x_later ? 2 : 1;
    step_cost_ += cost_.factor * (x_later ? 2 : 1);
    status = factor();
    return status.ok;
  };
  auto build = [&](fem::Projection projection) {
    auto phase = run.clock.phase("assemble");
    run.stage.matrix(x, key, A_, projection, contact);
    if (x_later) run.stage.matrix(*x_later, key, A_later_, projection, contact);
    step_cost_ += cost_.assemble * (x_later ? 2 : 1);
  };
  if (contact) cover(run, x);
  // Just positive definite is not enough: directions may be so long that no part of them leads down.
  if (options_.exact && !distrust_) {
    build(fem::Projection::kElastic);
    if (attempt()) return true;
  }
  if (options_.exact) ++run.report.fallbacks["projected_matrix"];
  build(fem::Projection::kPsd);
  const auto try_it = [&] {
    attempt();
    return status;
  };
  const double mean = mean_diagonal(A_);
  const VecX& mass = run.stage.model().mass;
  int shifts = 0;
  if (x_later)
    factor_with_shift({&A_, &A_later_}, mean, mass, try_it, shifts);
  else
    factor_with_shift({&A_}, mean, mass, try_it, shifts);
  if (shifts > 0) run.report.fallbacks["shifted_matrix"] += shifts;
  if (!status.ok) run.report.why = bad_pivot(status);
  return status.ok;
}

// The factor that the record describes, with the contacts of the stage or without any.
bool NewtonSolver::rebuild(Run& run, bool contact) {
  const FactorRecord& record = run.record;
  const MatrixKey key{record.gamma, record.fixed, record.activation};
  const bool moving = record.v.size() > 0 && record.v.squaredNorm() > 0;
  const double epsilon = kDifferenceShare * record.h;
  VecX later;
  if (moving) later = record.x + epsilon * record.v;
  made_from_ = {};
  if (contact && moving) with_contact_ = with_contact_ || run.stage.touching(later);
  if (!factor_positive(run, record.x, key, moving ? &later : nullptr, contact,
                       [&] { return moving ? factor_.factor(A_, A_later_, epsilon) : factor_.factor(A_); }))
    return false;
  made_from_ = record;
  return true;
}

// Moves x along d until the energy has fallen enough.
bool NewtonSolver::search_along(Run& run, const VecX& d) {
  auto phase = run.clock.phase("force");
  const LinePoint start{run.point.energy, run.point.r.dot(d), run.point.scale};
  const double length = line_search(start, kShortestStep, [&](double tried) {
    x_trial_ = run.x + tried * d;
    run.stage.evaluate(x_trial_, trial_);
    ++run.report.evaluations;
    step_cost_ += cost_.force;
    return LinePoint{trial_.energy, trial_.finite ? trial_.r.dot(d) : 0, trial_.scale, trial_.finite};
  });
  if (length == 0) return false;
  run.x.swap(x_trial_);
  std::swap(run.point, trial_);
  run.stage.follow(run.x);
  return true;
}

// A search direction by conjugate gradients on A(x), to a loose tolerance. They notice where A is not
// positive definite. When they take as long as several factorisations, the factor is useless: a new one then.
bool NewtonSolver::direction_pcg(Run& run, VecX& d) {
  const VecX b = -run.point.r;
  const bool plain = options_.choice.linear == Linear::kPlain;
  const int limit =
      plain ? kPcgLimit
            : std::max(kLeastPcg, static_cast<int>(kStale * cost_.factor / (cost_.solve + cost_.multiply)));
  bool stale = false;
  if (plain) cover(run, run.x);
  auto solve_with = [&](fem::Projection projection) {
    {
      auto phase = run.clock.phase("assemble");
      run.stage.matrix(run.x, run.stage.key(), A_, projection);
      step_cost_ += cost_.assemble;
    }
    auto phase = run.clock.phase("solve");
    const Preconditioner factor = [&](VecX& z) { factor_.precondition(z); };
    const Preconditioner inverse = plain ? Preconditioner(BlockJacobi(A_)) : factor;
    const PcgResult result = pcg([&](const VecX& p, VecX& y) { multiply(A_, p, y); }, b, inverse,
                                 options_.pcg_tolerance, limit, d);
    run.report.pcg += result.iterations;
    step_cost_ += result.iterations * (cost_.solve + cost_.multiply);
    stale = !plain && !result.converged && result.iterations == limit;
    return result.converged;
  };
  auto solve = [&] {
    if (options_.exact && !distrust_ && (solve_with(fem::Projection::kElastic) || stale)) return;
    if (options_.exact) ++run.report.fallbacks["projected_matrix"];
    solve_with(fem::Projection::kPsd);
  };
  solve();
  if (!stale) return true;
  ++run.report.fallbacks["refreshed_factor"];
  if (!make_factor(run, run.x)) return false;
  solve();
  return true;
}

// Algorithm 5.4, or Newton's method with a factor of its own in every iteration.
NewtonSolver::End NewtonSolver::newton(Run& run, int limit) {
  VecX d;
  for (int i = 0; !run.converged(); ++i) {
    if (i == limit) return End::kLimit;
    ++run.report.newton;
    if (options_.choice.linear == Linear::kDirect) {
      if (!factor_positive(run, run.x, run.stage.key(), nullptr, true, [&] { return direct_.factor(A_); }))
        return End::kBroken;
      auto phase = run.clock.phase("solve");
      d = -run.point.r;
      direct_.solve(d);
    } else {
      if (!direction_pcg(run, d)) return End::kBroken;
    }
    if (search_along(run, d)) {
      distrust_ = false;
    } else {
      if (!options_.exact || distrust_) return End::kNoDescent;
      distrust_ = true;
    }
  }
  return End::kConverged;
}

// Algorithm 5.3. Gives up early when the rate so far says that the limit will not be enough.
NewtonSolver::End NewtonSolver::quasi(Run& run, int limit) {
  VecX d;
  ResidualProgress progress(run.point.norm);
  while (!run.converged()) {
    const int i = progress.steps();
    if (i >= limit || (i >= 4 && i + progress.remaining(run.target) > 1.5 * limit)) return End::kLimit;
    {
      auto phase = run.clock.phase("solve");
      d = -run.point.r;
      factor_.precondition(d);
    }
    ++run.report.quasi;
    step_cost_ += cost_.solve;
    if (!search_along(run, d)) return End::kNoDescent;
    progress.add(run.point.norm);
  }
  return End::kConverged;
}

NewtonSolver::End NewtonSolver::lbfgs(Run& run, int limit) {
  VecX d;
  Lbfgs pairs(options_.history);
  ResidualProgress progress(run.point.norm);
  FactorRecord& record = run.record;
  bool fresh = fresh_;
  const double iteration = cost_.solve + cost_.force + cost_.vectors;
  // What a new factor brought, from when it was made until it was given up or no longer needed.
  const auto learn = [&] {
    if (fresh && progress.steps() > 0)
      record.fresh_rate = std::max(kLeastRate, 0.5 * (record.fresh_rate + progress.mean_rate()));
  };
  for (int i = 0; !run.converged(); ++i) {
    if (i == limit) return End::kLimit;
    bool renew = false;
    if (options_.choice.family == Family::kAuto && progress.steps() >= 2) {
      // Go on with this factor, or pay for a new one and converge at the rate that new ones had.
      const double stay = progress.remaining(run.target) * iteration;
      const double left = std::log(run.point.norm / run.target);
      const double with_new = record.price + left / record.fresh_rate * iteration;
      // Where |r| goes up and down, or where this factor was new itself, rates promise nothing: then a factor
      // must have been worked with for as long as one costs.
      const bool predictable = progress.steady() && !fresh;
      renew = kRenewal * with_new < stay &&
              (predictable || progress.steps() * iteration >= kRenewal * record.price);
    } else if (progress.steps() >= options_.quasi_iterations) {
      renew = progress.remaining(run.target) > options_.quasi_iterations;
    }
    const VecX x0 = run.x, r0 = run.point.r;
    if (!renew) {
      {
        auto phase = run.clock.phase("solve");
        d = -run.point.r;
        pairs.apply(d, [&](VecX& z) { factor_.precondition(z); });
      }
      ++run.report.quasi;
      step_cost_ += cost_.solve + cost_.vectors;
      renew = !search_along(run, d);
      if (renew && fresh && progress.steps() == 0) {
        if (!options_.exact || distrust_) return End::kNoDescent;
        distrust_ = true;
      }
    }
    if (renew) {
      ++run.report.fallbacks["renewed_factor"];
      learn();
      if (!make_factor(run, run.x)) return End::kBroken;
      if (distrust_) with_contact_ = true;  // the record does not tell: it serves this step only
      pairs.clear();
      progress = ResidualProgress(run.point.norm);
      fresh = true;
      continue;
    }
    distrust_ = false;
    pairs.add(run.x - x0, run.point.r - r0);
    progress.add(run.point.norm);
  }
  learn();
  return End::kConverged;
}

SolverReport NewtonSolver::solve_linear(ImplicitStage& stage, const StageContext& context,
                                        const BlockMatrix& A, const VecX& rhs, FactorRecord& record, VecX& d,
                                        PhaseClock& clock) {
  VecX x = *context.x;
  Run run{stage, context, record, x, clock, {}, {}, 0};
  SolverReport& report = run.report;
  {
    auto phase = clock.phase("analyze");
    prepare(stage);
  }
  report.newton = 1;
  const bool kept = uses_kept_factor(), direct = !kept && options_.choice.linear == Linear::kDirect;
  auto conjugate = [&](int limit) {
    auto phase = clock.phase("solve");
    Preconditioner inverse = [&](VecX& z) { factor_.precondition(z); };
    if (!kept) inverse = BlockJacobi(A);
    const PcgResult result =
        pcg([&](const VecX& p, VecX& y) { multiply(A, p, y); }, rhs, inverse, options_.relative, limit, d);
    report.pcg += result.iterations;
    report.converged = result.converged;
    if (!result.converged)
      report.why = fmt::format("conjugate gradients stopped after {} iterations at a residual of {:.3g}",
                               result.iterations, result.residual);
  };

  // An old factor.
  if (kept && options_.choice.extrapolate) {
    if (keep_factor(run)) conjugate(10 * kPcgLimit);
    return report;
  }
  if (kept && !adaptive() && fits(run) && record.steps < options_.keep) {
    if (recall(run)) conjugate(10 * kPcgLimit);
    return report;
  }
  if (adaptive() && fits(run) && record.wait == 0) {
    // Worth a trial only when it needs less than a new factor would. Trials that fail become rare.
    const int limit = static_cast<int>(cost_.factor / (cost_.solve + cost_.multiply));
    if (limit > 1) {
      if (!recall(run)) return report;
      conjugate(limit);
      if (report.converged) {
        record.patience = 1;
        return report;
      }
      ++report.fallbacks["renewed_factor"];
    }
    record.wait = record.patience;
    record.patience = std::min<std::int64_t>(2 * record.patience, kLongestWait);
  } else if (record.wait > 0) {
    --record.wait;
  }

  // A factor of A itself.
  report.why.clear();
  if (kept || direct) {
    auto phase = clock.phase("factor");
    if (kept) describe(run, x);
    made_from_ = {};
    const FactorStatus status = kept ? factor_.factor(A) : direct_.factor(A);
    ++report.factorizations;
    if (!status.ok) {
      report.why = bad_pivot(status);
      return report;
    }
    made_from_ = record;
  }
  if (!kept && !direct) {
    conjugate(10 * kPcgLimit);
  } else {
    auto phase = clock.phase("solve");
    d = rhs;
    kept ? factor_.solve(d) : direct_.solve(d);
    report.converged = true;
  }
  return report;
}

}  // namespace limber
