// The static shape under given loads: Newton's method on the total energy.
#pragma once

#include <limber/fem/assemble.hpp>
#include <limber/fem/dof.hpp>
#include <limber/fem/rounding.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/sim/model.hpp>

namespace limber {

struct StaticResult {
  bool converged = false;
  int iterations = 0;
  int shifts = 0;       // of a stiffness that was not positive definite
  double residual = 0;  // largest force on a free degree of freedom [N]
  double elastic = 0;   // energy [J]
  std::string why;      // of a failure
};

// For one model, whose matrix is analysed once.
class StaticSolver {
 public:
  explicit StaticSolver(const Model& model, const CholeskyOptions& options = {});

  // Moves the free degrees of freedom of `x` to rest under gravity, the script's forces and activation of
  // `in`; held ones stay where they are. Stops when no free degree of freedom feels more than `tolerance`
  // times the largest load or elastic force on the way [N/N], or than rounding can leave. Pieces that are not
  // held are left alone: they have no static shape.
  StaticResult solve(const StepInput& in, VecX& x, double tolerance, int max_iterations);

  long analyses() const { return solver_.stats().analyses; }

 private:
  const Model& model_;
  Cholesky solver_;
  fem::DofEliminator eliminator_;
  fem::Rounding rounding_;
  fem::Assembled system_, trial_;
};

// The same, once.
StaticResult solve_static(const Model& model, const StepInput& in, VecX& x, double tolerance = 1e-10,
                          int max_iterations = 200, const CholeskyOptions& options = {});

}  // namespace limber
