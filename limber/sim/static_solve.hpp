// The static shape under given loads: Newton's method on the total energy.
#pragma once

#include <limber/linalg/cholesky.hpp>
#include <limber/sim/model.hpp>

namespace limber {

struct StaticResult {
  bool converged = false;
  int iterations = 0;
  double residual = 0;  // largest force on a free degree of freedom [N]
  std::string why;      // of a failure
};

// Moves the free degrees of freedom of `x` to rest under gravity, the script's forces and activation of `in`;
// held ones stay where they are. Stops when no free degree of freedom feels more than `tolerance` times the
// largest load or elastic force of the start [N/N]. Pieces that are not held are left alone: they have no
// static shape.
StaticResult solve_static(const Model& model, const StepInput& in, VecX& x, double tolerance = 1e-10,
                          int max_iterations = 200, const CholeskyOptions& options = {});

}  // namespace limber
