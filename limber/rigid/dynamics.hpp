// The linearly implicit equations of motion in joint velocities (Eq. 3.6, with K = -df/dx positive):
//   (J^T (M + h D_m + h^2 K_m) J + h D_r + h^2 K_r) v1 = J^T M J v0 + h (f_r + J^T (f_m - M dJ/dt v0))
// with maximal forces f_m on the links (gravity, gyroscopic torque, springs, damping), reduced forces f_r on
// the joints (springs, dampers, torque motors), and both kinds of stiffness and damping.
#pragma once

#include <limber/rigid/tree_solver.hpp>

namespace limber::rigid {

// Stiffness and damping between two links: the block (a, b) of h D + h^2 K; its transpose is (b, a).
struct Coupling {
  Index a = 0, b = 0;
  Mat6 block;
};

struct System {
  std::vector<Mat6> A;              // per link: M + h D_m + h^2 K_m, diagonal block
  std::vector<Coupling> couplings;  // the rest of h D_m + h^2 K_m
  VecX R;                           // per velocity: h D_r + h^2 K_r
  VecX f_m;                         // maximal forces without damping, gyroscopic torque included, 6 per link
  VecX f_r;                         // reduced forces without damping
  // What hangs on the links answers their motion with the impulses -response u (6 per link); may be empty.
  // J^T response is symmetric and positive.
  MatX response;
};

// External wrenches on links may be added to system.f_m afterwards, implicit ones to A.
void assemble_system(const Mechanism& mechanism, const Motion& motion, const VecX& q, double t, double h,
                     const Vec3& gravity, System& system);

// The right-hand side J^T (M phi0 + h (f_m - M bias)) + h f_r.
VecX reduced_impulse(const Mechanism& mechanism, const Motion& motion, const System& system, double h);

// Solves with the left-hand side. Without couplings one tree recursion; with couplings conjugate gradients
// with the tree recursion as preconditioner (the couplings' diagonal blocks are in A), or a dense factor
// where that is smaller or something answers. Otherwise no cost grows faster than the number of links for a
// fixed number of iterations.
class SystemSolver {
 public:
  void factor(const Mechanism& mechanism, const Motion& motion, const System& system);
  void solve(Eigen::Ref<VecX> b) const;
  // y = (J^T A J + R) x, couplings included.
  void multiply(const VecX& x, VecX& y) const;
  int iterations() const { return iterations_; }  // of the last solve; 0 when direct

 private:
  const Mechanism* mechanism_ = nullptr;
  const Motion* motion_ = nullptr;
  const System* system_ = nullptr;
  TreeSolver tree_;
  MatX dense_;  // inverse is never formed: the lower Cholesky factor, empty when not used
  mutable int iterations_ = 0;
};

// Mechanical energy of the links, joint springs and springs [J].
struct Energy {
  double kinetic = 0, gravity = 0, springs = 0;
  double total() const { return kinetic + gravity + springs; }
};
Energy measure_energy(const Mechanism& mechanism, const Motion& motion, const VecX& q, const Vec3& gravity);

// dv/dt of the frictionless tree without loops and contacts, for explicit integration and tests.
VecX acceleration(const Mechanism& mechanism, const VecX& q, const VecX& v, double t, const Vec3& gravity);

// Fills in what springs take from the initial position: rest lengths that were left negative.
void set_rest_lengths(Mechanism& mechanism, const Motion& motion);

}  // namespace limber::rigid
