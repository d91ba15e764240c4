#include <limber/sim/static_solve.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {
namespace {

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
  // A body that nothing loads has forces of this size: less than that cannot be asked for, and no line search
  // sees a difference of energies below that of its terms.
  const double floor = 4 * rounding_.force * (x.size() ? x.lpNorm<Eigen::Infinity>() : 0.0);
  const double flat = 1e-13 * rounding_.energy;

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
    if (largest <= std::max(tolerance * scale, floor)) {
      result.converged = true;
      return result;
    }
    BlockMatrix& K = system_.K;
    double mean = 0;
    for (Index j = 0; j < K.pattern->n; ++j) mean += K.block(K.pattern->col_begin[j]).trace();
    mean /= 3 * K.pattern->n;
    eliminator_.eliminate(K, in.fixed, mean);
    const std::vector<double> values = K.values;
    FactorStatus status = solver_.factor(K);
    for (double shift = 1e-8; !status.ok && shift < 1e3; shift *= 10) {
      K.values = values;
      for (Index j = 0; j < K.pattern->n; ++j)
        K.block(K.pattern->col_begin[j]).diagonal().array() += shift * mean;
      status = solver_.factor(K);
    }
    if (!status.ok) {
      result.why =
          fmt::format("the stiffness is not positive definite at node {}: is the body held?", status.node);
      return result;
    }
    VecX step = r;
    solver_.solve(step);
    // Armijo line search on the total energy; near the solution the energy is flat to rounding and the
    // residual decides.
    const double slope = -r.dot(step);
    const double energy = system_.energy - load.dot(x);
    double length = 1;
    for (; length > 1e-10; length *= 0.5) {
      const VecX x1 = x + length * step;
      fem::assemble_force(*model_.elements, x1, in.activation, trial_);
      if (!trial_.finite) continue;
      if (trial_.energy - load.dot(x1) <= energy + 1e-4 * length * slope) break;
      if (std::abs(slope) < 1e-8 * std::abs(energy) + flat &&
          largest_free(trial_.f + load, in) < 0.9 * largest)
        break;
    }
    if (length <= 1e-10) {
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
