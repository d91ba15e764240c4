// One time step of the condensed system M_r y'' + C y' + S y = g, C = a M_r + b S: small, dense, and free to
// be advanced without numerical damping.
#pragma once

#include <limber/core/types.hpp>

#include <string>
#include <vector>

namespace limber {

enum class TimeRule {
  kGuarded,         // midpoint, damped only as far as needed to keep the energy from growing; the default
  kLinearImplicit,  // the paper's, Eq. 11
  kTrapezoidal,
  kModal,     // exact in time for the frozen system, mode by mode
  kMidpoint,  // linearised at x0 + (h/2) v0, symmetric, no damping at all
};
TimeRule time_rule(const std::string& name);

// How one step of the condensed system is taken.
struct Advance {
  enum class By { kEq11, kTheta, kModal } by = By::kTheta;
  double weight = 0.5;  // beta of Eq. 11, or theta
};

// q'' + 2 decay q' + w2 q = 0 with q(0) = 0, q'(0) = 1: q and q' at the time t.
struct ImpulseResponse {
  double place, speed;
};
ImpulseResponse impulse_response(double w2, double decay, double t);

struct ReducedMotion {
  VecX displacement;  // of the dynamic degrees of freedom over the step [m]
  VecX velocity;      // at the end of the step [m/s]
};

// Linearised at x0 + fraction h p, p the predicted velocity. `w` is the velocity field that held nodes
// impose.
struct ReducedSystem {
  double h = 0;    // [s]
  MatX M, S;       // JᵀMJ [kg], JᵀKJ [N/m]
  MatX S_contact;  // the share of S that contact springs have: always taken fully implicitly; may be empty
  double damping_mass = 0, damping_stiffness = 0;  // Rayleigh a [1/s], b [s]
  VecX force;                                      // Jᵀf where the system was linearised [N]
  VecX momentum;                                   // JᵀM(v0 - w) [kg m/s]
  VecX k_w, m_w;                                   // JᵀK w, JᵀM w
  VecX k_p;                                        // JᵀK (p - w)
  double fraction = 0;
  // Of the last unknowns, how much faster links are at the start of the step than predicted for its end:
  // known, and not found from the momentum, as the body may follow one twist as it follows another.
  VecX twists0;

  // Once, before any of the rules.
  void prepare();

  ReducedMotion advance(const Advance& how) const;
  // A v1 = rhs, and the displacement that belongs to v1: not for kModal.
  struct Equations {
    MatX A;
    VecX rhs;
  };
  Equations equations(const Advance& how) const;
  VecX displacement(const Advance& how, const VecX& v1) const;

  // Eq. 11: (M + h C + beta h^2 S) v1 = M v0 + h f, y = h v1.
  ReducedMotion linear_implicit(double beta) const { return advance({Advance::By::kEq11, beta}); }
  // y = h((1 - theta) v0 + theta v1), force taken at theta y. 1/2: trapezoidal from the start of the step
  // (fraction 0), symmetric midpoint (fraction 1/2). 1: implicit Euler.
  ReducedMotion theta(double theta) const { return advance({Advance::By::kTheta, theta}); }
  // Exact solution of the frozen system.
  ReducedMotion modal() const;

  // The force that is left after the motion: Jᵀf, linearised [N].
  VecX force_after(const ReducedMotion& motion) const;
  // What Rayleigh damping takes during the motion [J].
  double dissipation(const ReducedMotion& motion) const;

  VecX v0;  // M^-1 momentum

 private:
  VecX g_;  // force carried back to the start of the step

  // factor S, with the contacts' share counted in full
  MatX implicit_stiffness(double factor) const;
};

// The systems of pieces that do not touch each other's, advanced one by one; motions one after the other.
struct ReducedSystems {
  std::vector<ReducedSystem> pieces;

  ReducedMotion advance(const Advance& how) const;
  double dissipation(const ReducedMotion& motion) const;
};

}  // namespace limber
