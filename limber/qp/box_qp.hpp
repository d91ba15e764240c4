// Small dense convex quadratic programs with bounds:
//   minimise  1/2 x^T H x + g^T x   subject to  lo <= x <= hi
// H symmetric positive semi-definite; bounds may be infinite; lo == hi fixes an entry. Contact and friction
// problems reach this form through their duals: an equality row has free bounds, a unilateral row [0, inf).
#pragma once

#include <limber/core/types.hpp>

namespace limber::qp {

struct BoxQpOptions {
  // Added to the diagonal of H, relative to its own entry: redundant rows make H singular, and exact pivoting
  // needs a definite matrix. 1e-9 changes forces by less than a part in a million on the problems of rigid/.
  double compliance = 1e-9;
  // Added to every diagonal entry as it is, in the units of H. It decides how redundant rows share: among all
  // solutions the one with the smallest sum of squares is approached (epsilon of Eq. 3.7).
  double regularisation = 0;
  int max_iterations = 200;  // pivoting steps
};

struct BoxQpReport {
  bool converged = false;
  int iterations = 0;
  double residual = 0;      // max |x - clamp(x - (H x + g) / diag H)|, in the units of x
  const char* solver = "";  // "pivoting" or "newton"
};

// Block principal pivoting with Murty's least-index rule as backup; `x` holds the warm start and the result.
// When the pivoting limit is reached (badly conditioned H) a projected Newton method with line search takes
// over, which always descends; the report says so.
BoxQpReport solve_box_qp(const MatX& H, const VecX& g, const VecX& lo, const VecX& hi, VecX& x,
                         const BoxQpOptions& options = {});

// The natural residual of the report for a given x: zero exactly at a solution.
double box_qp_residual(const MatX& H, const VecX& g, const VecX& lo, const VecX& hi, const VecX& x);

}  // namespace limber::qp
