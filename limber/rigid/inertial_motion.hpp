// Inertia over a step without the gain of energy that explicit gyroscopic and centripetal terms have.
//
// A step is a kick and a coast. The kick is all that is not inertia: forces and impulses change the velocity
// to v_c where the links are, H (v_c - v_0) = impulses. Then the links coast from v_c to v_1. With p = M J v
// the momenta of the links in world axes, at the start (0, with v_c) and at the end (1),
//   1/2 (J_0 + J_1)^T (p_1 - p_0) = 0,
// and the joints move by the mean of both velocities, rotations in the axes of the child (Simo and Wong
// 1991). A free link keeps momentum, spin and energy to rounding, however fast it turns.
//
// As part of the linear system H v_1 = b + gamma the coast is the impulse gamma = H (v_1 - v_c),
//   gamma = J_0^T M_0 J_0 (v_1 - v_c) + 1/2 (J_0 + J_1)^T (p_0 - p_1),
// to first order -h J^T (omega x I omega, M dJ/dt v). It depends on v_1, so that it is iterated.
#pragma once

#include <limber/rigid/constraints.hpp>

#include <functional>

namespace limber::rigid {

class InertialMotion {
 public:
  // For a step h from q, whose motion is `start`; all are kept by reference, and so is `response`.
  InertialMotion(const Mechanism& mechanism, const Motion& start, const VecX& q, double h,
                 const ConstrainedSolver& response);

  // `coasted` is the response to gamma, v_1 - v_c.
  using Solve = std::function<const VecX&(const VecX& gamma, const VecX& coasted)>;
  // Finds gamma and v_1 = solve(gamma, v_1 - v_c) together. `tolerance`: on the velocity that is left over,
  // relative in the norm of the kinetic energy. False: there is no solution in reach (links turn by radians
  // in a step); the links then go on with v_c, which is stable but not the true motion.
  bool settle(const Solve& solve, double tolerance);

  const VecX& gamma() const { return gamma_; }
  const VecX& q1() const { return q1_; }  // the position at the end
  const VecX& p1() const { return p1_; }  // the momenta there, 6 per link [N m s, N s]

 private:
  void advance(const VecX& kicked, const VecX& v1);
  VecX evaluate(const Solve& solve);

  const Mechanism& m_;
  const Motion& start_;
  const VecX& q0_;
  double h_;
  const ConstrainedSolver& response_;
  Motion end_;
  VecX gamma_, coasted_, q1_, p1_;
  double kinetic_ = 0;  // p_0 . J_0 v_c + p_1 . J_1 v_1 of the last evaluate() [J]
};

}  // namespace limber::rigid
