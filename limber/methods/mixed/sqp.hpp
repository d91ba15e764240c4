// One time step of (subspace) mixed FEM: the optimisation problem of Eq. 4 by sequential quadratic
// programming, Eqs. 5 to 8, and the same problem by Newton's method on positions alone, the paper's FEM
// baseline.
//
//   min over u, Z  max over Lambda   Psi_u(u) + sum over points of w [psi(Z) + Lambda : (S(F(u)) - Z)]
//
// The paper writes z, mu for Z, Lambda as vectors. Its Eq. 6 has G_u and its transpose exchanged in K; K here
// is G_u^T G_z^-1 H_z G_z^-1 G_u = sum of w J^T dS^T H_z dS J.
#pragma once

#include <limber/core/phase_clock.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/linalg/deformation_map.hpp>
#include <limber/methods/mixed/points.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace limber::mixed {

// A further energy of u that is not quadratic (contact).
class Potential {
 public:
  virtual ~Potential() = default;
  virtual double energy(const VecX& u) const = 0;  // [J]
  // g += gradient, A += second derivative (or something near it that is positive semi-definite).
  virtual void add(const VecX& u, VecX& g, BlockMatrix& A) const = 0;
  // Takes over from u what it keeps constant while a problem is solved (normal forces of friction). True:
  // that has changed enough for the problem to be solved again.
  virtual bool revise(const VecX&) { return false; }
};

// Psi_u: quadratic, so that it is known by its gradient somewhere and its second derivative.
struct StepProblem {
  const BlockMatrix* Hu = nullptr;
  VecX anchor, gradient;  // the gradient at the anchor [N]
  double inertia = 1;     // mass of the body over the squared time step [N/m]
  double scale = 1;       // of the elastic energy: 1 + b/g with stiffness damping b
  const std::vector<std::uint8_t>* fixed = nullptr;  // unknowns that must not change; null: none
  Potential* potential = nullptr;
};

struct SqpOptions {
  bool mixed = true;     // false: plain FEM
  int iterations = 2;    // at most
  double tolerance = 0;  // rms change [m, or strain times size] at which to stop; 0: all iterations
  double size = 1;       // of the body [m]: what a strain is multiplied with
  int twist_from = 2;    // Lambda : d2S joins the Hessian from this iteration on (1: always); 0: never
  int halvings = 30;     // of a line search
};

struct SqpState {
  VecX u;                         // displacements, or coordinates of them
  std::vector<double> Z, Lambda;  // 6 a point; Lambda in [Pa]
};

struct SqpResult {
  bool ok = true;
  std::string why;
  int iterations = 0;
  double change = 0;               // of the last iteration, as SqpOptions::tolerance measures it
  bool converged = false;          // the change fell below the tolerance
  Index inverted = 0;              // points with det F <= 0 where the iterations began
  double decrement = 0;            // sqrt of minus the slope of the last iteration [sqrt(J)]
  std::vector<double> decrements;  // of all iterations
  std::map<std::string, int> fallbacks;
  double flops = 0;  // of the matrices: assembly and factorisation
};

class Sqp {
 public:
  Sqp(const DeformationMap& map, std::vector<Point> points, std::string ordering = "auto");

  Points& points() { return points_; }
  const Points& points() const { return points_; }
  const DeformationMap& map() const { return map_; }
  // Z and Lambda that fit u.
  void start(SqpState& state);

  // Algorithm 1 (the whole loop). `watch`, if given, is called with u after every iteration.
  SqpResult solve(const StepProblem& problem, const SqpOptions& options, SqpState& state, PhaseClock& clock,
                  const std::function<void(const VecX&)>& watch = {});

  // Elastic energy of the points at u [J], and its gradient (added).
  double elastic(const VecX& u, VecX* gradient);
  Index inverted(const VecX& u);

  // For tests: the right side and the matrix of Eq. 6 at (u, Z), and what follows from du.
  struct Linear {
    VecX rhs, du;
    BlockMatrix A;
    std::vector<double> dZ, Lambda;
  };
  Linear linear_step(const StepProblem& problem, const SqpState& state, bool geometric);

 private:
  void gradients(const VecX& u);
  bool factor(const StepProblem& problem, const SqpOptions& options, const SqpState& state, bool geometric,
              SqpResult& result, PhaseClock& clock);
  void fill(const StepProblem& problem, const VecX& u);

  const DeformationMap& map_;
  Points points_;
  Cholesky cholesky_;
  BlockMatrix A_;
  std::vector<double> F_, dF_, P_, H_, dZ_, next_;
  VecX fu_, du_, rhs_, Hdu_;
};

}  // namespace limber::mixed
