// The quadratic program of friction with given normal impulses:
//   minimise  1/2 x^T H x + g^T x   subject to  |x_i| <= bound_i, and for pairs  |(x_i, x_i+1)| <= bound_i
// It is one half of staggered projections (staggered.hpp; rigid/bisp, rigid/sp), solved to rounding by
// pivoting; the other half, normal impulses with friction held, is a box QP. friction_pgs.hpp solves both
// halves at once, by sweeps that converge linearly and need no factorisation: for many contacts and few
// digits. A pair is the friction impulse in the plane of a contact, whose bound is a disk: Coulomb's cone.
// Bounds on its two entries alone would be a square, sqrt(2) too strong along the diagonals.
#pragma once

#include <limber/qp/box_qp.hpp>

#include <vector>

namespace limber::qp {

// `pairs`: the first index of each pair. A few box problems, each in axes along the impulses of the last and
// with the curvature of the disk (Newton's method on the circle); `x` holds the warm start and the result.
BoxQpReport solve_friction_qp(const MatX& H, const VecX& g, const VecX& bound,
                              const std::vector<Eigen::Index>& pairs, VecX& x,
                              const BoxQpOptions& options = {});

// x <- the nearest admissible point.
void into_bounds(const VecX& bound, const std::vector<Eigen::Index>& pairs, VecX& x);

// max |x - P(x - (H x + g) / diag H)|, P the nearest admissible point: zero exactly at a solution.
double friction_qp_residual(const MatX& H, const VecX& g, const VecX& bound,
                            const std::vector<Eigen::Index>& pairs, const VecX& x);

}  // namespace limber::qp
