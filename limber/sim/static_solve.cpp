#include <limber/sim/static_solve.hpp>

#include <limber/linalg/line_search.hpp>
#include <limber/linalg/shifted_factor.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {
namespace {

constexpr double kShortestStaticStep = 1e-10;

double largest_free(const VecX& r, const StepInput& in) {
  double largest = 0;
  for (Eigen::Index d = 0; d < r.size(); ++d)
    if (!in.fixed[static_cast<std::size_t>(d)]) largest = std::max(largest, std::abs(r[d]));
  return largest;
}

}  // namespace

StaticSolver::StaticSolver(const Model& model, const CholeskyOptions& options)
    : model_(model),
      solver_(options),
      eliminator_(*model.pattern),
      rounding_(fem::rounding(model.mesh, fem::rest_volume(*model.elements))) {
  solver_.analyze(*model.pattern);
}

StaticResult StaticSolver::solve(const StepInput& in, VecX& x, double tolerance, int max_iterations) {
  StaticResult result;
  VecX load = in.force;
  for (Index i = 0; i < model_.nodes(); ++i) node(load, i) += model_.mass[3 * i] * in.gravity;
  // A body that nothing loads has forces of this size: less than that cannot be asked for.
  const double floor = 4 * rounding_.force * (x.size() ? x.lpNorm<Eigen::Infinity>() : 0.0);

  double scale = 0;
  for (; result.iterations <= max_iterations; ++result.iterations) {
    fem::assemble(*model_.elements, x, in.activation, system_);
    if (!system_.finite) {
      result.why = fmt::format("element {} is not finite", system_.first_bad);
      return result;
    }
    VecX r = system_.f + load;
    scale = std::max({scale, load.lpNorm<Eigen::Infinity>(), system_.f.lpNorm<Eigen::Infinity>()});
    for (Eigen::Index d = 0; d < r.size(); ++d)
      if (in.fixed[static_cast<std::size_t>(d)]) r[d] = 0;
    const double largest = largest_free(r, in);
    result.residual = largest;
    result.elastic = system_.energy;
    if (largest <= std::max(tolerance * scale, floor)) {
      result.converged = true;
      return result;
    }
    BlockMatrix& K = system_.K;
    const double mean = mean_diagonal(K);
    eliminator_.eliminate(K, in.fixed, mean);
    int shifts = 0;
    const FactorStatus status = factor_with_shift(
        {&K}, mean, model_.mass, [&] { return solver_.factor(K); }, shifts);
    result.shifts += shifts;
    if (!status.ok) {
      result.why =
          fmt::format("the stiffness is not positive definite at node {}: is the body held?", status.node);
      return result;
    }
    VecX step = r;
    solver_.solve(step);
    const auto point = [&](const fem::Assembled& system, const VecX& at) {
      const double work = load.dot(at);
      return LinePoint{system.energy - work, -(system.f + load).dot(step),
                       system.energy + rounding_.energy + std::abs(work), system.finite};
    };
    const double length = line_search(point(system_, x), kShortestStaticStep, [&](double tried) {
      const VecX x1 = x + tried * step;
      fem::assemble_force(*model_.elements, x1, in.activation, trial_);
      return point(trial_, x1);
    });
    if (length == 0) {
      result.converged = largest <= std::max(1e4 * tolerance * scale, 100 * floor);
      if (!result.converged) result.why = fmt::format("no descent; largest force left {:.3g} N", largest);
      return result;
    }
    x += length * step;
  }
  result.why = fmt::format("not converged after {} iterations; largest force left {:.3g} N", max_iterations,
                           result.residual);
  return result;
}

StaticResult solve_static(const Model& model, const StepInput& in, VecX& x, double tolerance,
                          int max_iterations, const CholeskyOptions& options) {
  return StaticSolver(model, options).solve(in, x, tolerance, max_iterations);
}

}  // namespace limber
