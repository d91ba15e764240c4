#include <limber/sim/static_solve.hpp>

#include <limber/fem/assemble.hpp>
#include <limber/fem/dof.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {

StaticResult solve_static(const Model& model, const StepInput& in, VecX& x, double tolerance,
                          int max_iterations, const CholeskyOptions& options) {
  StaticResult result;
  VecX load = in.force;
  for (Index i = 0; i < model.nodes(); ++i) node(load, i) += model.mass[3 * i] * in.gravity;
  Cholesky solver(options);
  solver.analyze(*model.pattern);
  const fem::DofEliminator eliminator(*model.pattern);
  fem::Assembled system, trial;

  double scale = 0;
  for (; result.iterations <= max_iterations; ++result.iterations) {
    fem::assemble(*model.elements, x, in.activation, system);
    if (!system.finite) {
      result.why = fmt::format("element {} is not finite", system.first_bad);
      return result;
    }
    VecX r = system.f + load;
    double largest = 0;
    for (Eigen::Index d = 0; d < r.size(); ++d) {
      scale = std::max({scale, std::abs(load[d]), std::abs(system.f[d])});
      if (in.fixed[static_cast<std::size_t>(d)]) r[d] = 0;
      largest = std::max(largest, std::abs(r[d]));
    }
    result.residual = largest;
    if (largest <= tolerance * scale || largest == 0) {
      result.converged = true;
      return result;
    }
    double mean = 0;
    for (Index j = 0; j < system.K.pattern->n; ++j)
      mean += system.K.block(system.K.pattern->col_begin[j]).trace();
    mean /= 3 * system.K.pattern->n;
    eliminator.eliminate(system.K, in.fixed, mean);
    const std::vector<double> values = system.K.values;
    FactorStatus status = solver.factor(system.K);
    for (double shift = 1e-8; !status.ok && shift < 1e3; shift *= 10) {
      system.K.values = values;
      for (Index j = 0; j < system.K.pattern->n; ++j)
        system.K.block(system.K.pattern->col_begin[j]).diagonal().array() += shift * mean;
      status = solver.factor(system.K);
    }
    if (!status.ok) {
      result.why =
          fmt::format("the stiffness is not positive definite at node {}: is the body held?", status.node);
      return result;
    }
    VecX step = r;
    solver.solve(step);
    // Armijo line search on the total energy; near the solution the energy is flat to rounding and the
    // residual decides.
    const double slope = -r.dot(step);
    const double energy = system.energy - load.dot(x);
    double length = 1;
    for (; length > 1e-10; length *= 0.5) {
      const VecX x1 = x + length * step;
      fem::assemble_force(*model.elements, x1, in.activation, trial);
      if (!trial.finite) continue;
      if (trial.energy - load.dot(x1) <= energy + 1e-4 * length * slope) break;
      VecX r1 = trial.f + load;
      double largest1 = 0;
      for (Eigen::Index d = 0; d < r1.size(); ++d)
        if (!in.fixed[static_cast<std::size_t>(d)]) largest1 = std::max(largest1, std::abs(r1[d]));
      if (largest1 < 0.9 * largest && std::abs(slope) < 1e-8 * std::abs(energy)) break;
    }
    if (length <= 1e-10) {
      result.converged = largest <= 1e4 * tolerance * scale;
      if (!result.converged) result.why = fmt::format("no descent; largest force left {:.3g} N", largest);
      return result;
    }
    x += length * step;
  }
  result.why = fmt::format("not converged after {} iterations; largest force left {:.3g} N", max_iterations,
                           result.residual);
  return result;
}

}  // namespace limber
