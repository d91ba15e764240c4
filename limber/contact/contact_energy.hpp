// Contact with obstacles as an energy of the nodes' positions, for solvers that go down an energy.
//
//   E(x) = K/2 min(0, gap(x))^2                                      penalty [J]
//        + d K / g  ramp(gap(x) - min(0, gap_c))                     damping: resists going deeper only
//        + mu N s(|P (x - c - g w)|)                                 friction
//
// gap is the signed distance from the obstacle where it is at the end of the stage, g the stage's effective
// time step and (x - c)/g its velocity, w that of the obstacle's point, gap_c the distance of c + g w (so
// that (gap - gap_c)/g is the integrator's own rate), P = I - n nT. ramp and s (ramp.hpp) are smooth over e =
// g times the slip speed: friction is viscous below the slip speed and Coulomb's above it. N and n of
// friction do not depend on x while a stage is solved, which is what makes it the gradient of an energy: they
// are those of the start of the step, and then those of the solution (revise_friction), until both agree.
// gap's own second derivative is left out of the stiffness, which is positive semi-definite for it.
#pragma once

#include <limber/contact/contact_force.hpp>
#include <limber/contact/detect.hpp>
#include <limber/linalg/block_matrix.hpp>

#include <vector>

namespace limber {

class ContactEnergy {
 public:
  // `damping`: d [s]; `slip_speed` [m/s]; `margin`: how far from an obstacle a node is looked at in any
  // case [m].
  ContactEnergy(const ContactModel& model, double damping, double slip_speed, double margin)
      : model_(model), damping_(damping), slip_speed_(slip_speed), margin_(margin) {}

  // The stage from the step's start (nodes at x0, time t0) to time t, where nodes are expected near `guess`.
  // Only nodes that can come near an obstacle on the way are looked at from now on.
  void pose(const VecX& x0, double t0, const VecX& guess, double t, const VecX& c, double g);

  // Energy at x [J]; adds the force to f [N].
  double add_force(const VecX& x, VecX& f) const;
  // The forces at x one by one, for output.
  void list_forces(const VecX& x, std::vector<ContactForce>& out) const;
  // Adds the stiffness at x to A's diagonal blocks.
  void add_stiffness(const VecX& x, BlockMatrix& A) const;

  // Sets mu N to what the normal forces at x give, springs and damping. The sum of what has changed and the
  // sum of all, both [N].
  struct Revision {
    double change = 0, sum = 0;
  };
  Revision revise_friction(const VecX& x);

  // Whether a node is inside an obstacle at the start or at the expected end of the stage.
  bool touching() const { return touching_; }
  // Whether a contact has a stiffness at x.
  bool touching(const VecX& x) const;

  bool empty() const { return model_.empty(); }

 private:
  struct Candidate {
    Index node = -1, obstacle = -1;
    double stiffness = 0;        // K [N/m]
    double start = 0;            // min(0, gap_c) [m]
    double mu = 0, limit = 0;    // mu, mu N [N]
    Vec3 n = Vec3::Zero();       // of friction
    Vec3 origin = Vec3::Zero();  // c + g w [m]
    // No node that is nearer than `clearance` to `expected` is inside: most need no look at the surface.
    Vec3 expected = Vec3::Zero();
    double clearance = 0;  // [m]
    bool clear(const Vec3& x) const { return (x - expected).squaredNorm() < clearance * clearance; }
  };

  // Force on a node at xi [N]; adds its energy [J].
  Vec3 force_at(const Candidate& a, const Vec3& xi, double& energy) const;

  // How far a node was from an obstacle that stands still when it was last looked at. It cannot be nearer now
  // by more than it has moved.
  struct Seen {
    Vec3 x = Vec3::Zero();
    double distance = 0;  // [m]
  };

  const ContactModel& model_;
  double damping_, slip_speed_, margin_;
  std::vector<Seen> seen_;  // node by node
  double g_ = 0;
  bool touching_ = false;
  std::vector<Placement> placement_;  // of the obstacles at the end of the stage
  std::vector<Candidate> candidates_;
};

}  // namespace limber
