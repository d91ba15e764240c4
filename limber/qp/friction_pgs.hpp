// Contact with Coulomb friction by projected Gauss-Seidel on impulses.
//
// Contact c has three entries, normal first, then two tangents, and the impulse p = (p_n, p_t). With the
// mobility W = J A^-1 Jᵀ and the relative velocity u that contacts have without impulses, w = W p + u:
//   0 <= p_n  complementary to  w_n + gamma p_n >= target
//   |p_t| <= mu p_n;   where w_t + delta p_t is not zero, |p_t| = mu p_n and p_t points against it.
// Normal and tangential impulses are unknowns together, for contact rows (contact/contact_rows.hpp) of any
// method. Not to be confused with friction_qp.hpp, the step of staggered projections in which the normal
// impulses are held. This is Coulomb's law itself, which is no quadratic program (the cone's width depends on
// the solution); without friction it is the box QP 1/2 pᵀ(W + gamma)p + pᵀ(u - target), p >= 0.
#pragma once

#include <limber/core/types.hpp>

namespace limber::qp {

struct FrictionProblem {
  MatX W;           // 3m x 3m, symmetric positive semi-definite [1/kg]
  VecX u;           // 3m [m/s]
  VecX target;      // m: the least normal velocity at the end of the step [m/s]
  VecX compliance;  // m: gamma [1/kg]; with Baumgarte's rule a contact at rest is a spring of beta / (gamma
                    // h^2)
  VecX friction;    // m: mu
  // m: delta [1/kg]; empty: 0, Coulomb's law itself. A stiff body has more tangential rows than freedoms, and
  // while it turns they contradict each other by a little: impulses that do nothing but work against each
  // other then grow sweep by sweep, up to the limit of friction. A small delta ends that, at the price of a
  // creep of delta p_t where a contact sticks.
  VecX tangent_compliance;
};

// The least normal velocity of a contact: one that is open may close its gap within h, one that is closed
// loses the share `baumgarte` of its depth in a step [m/s].
double contact_target(double gap, double h, double baumgarte);

struct FrictionPgsOptions {
  int max_sweeps = 1000;
  double tolerance = 1e-8;  // on the residual, relative to the largest impulse
};

struct FrictionPgsReport {
  bool converged = false;
  int sweeps = 0;
  double residual = 0;  // what one more projection would change at most [N s]
};

// `p` holds the warm start and the result. Always returns impulses inside their cones. Where A^-1 is exact,
// one sweep costs 9 m^2 products. Contacts are visited in their order: the same input gives the same bits.
// Throws Error(kUsage) when sizes differ, or mu or gamma is negative or not a number.
FrictionPgsReport solve_friction_pgs(const FrictionProblem& problem, VecX& p,
                                     const FrictionPgsOptions& options = {});

// The report's residual for given impulses: zero exactly at a solution, NaN where something is not finite.
double friction_residual(const FrictionProblem& problem, const VecX& p);

}  // namespace limber::qp
