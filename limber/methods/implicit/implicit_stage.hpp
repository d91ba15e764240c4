// One implicit stage. Every integrator of `implicit` ends in the same problem: find x with
//
//   r(x) = M ((x - c)/g - u)/g + a M (x - c)/g - f(x) - b (f(x) - f_h)/g - f_s(x) - f_c(x) - f_ext = 0   [N]
//   A(x) = dr/dx = (1/g^2 + a/g) M + (1 + b/g) K + K_s + K_c
//
// The stage's velocity is v = (x - c)/g. c, u, f_h and E_h are the same weighted sum of two known states,
// taken of positions, velocities, elastic forces and Green strains:
//
//   integrator       g       c                               appendix C
//   bdf1             h       x_k                             C.2
//   bdf2             2h/3    4/3 x_k - 1/3 x_k-1             C.6
//   sdirk2, first    alpha h x_k                             C.9
//   sdirk2, second   alpha h x_k + (1-alpha)/alpha (x_k+alpha - x_k)   C.10, with alpha = 1 - 1/sqrt(2)
//   quasistatic      -       r = -f - f_ext only             C.4
//
// Damping is a M v + b K v with K the true tangent: along a motion K v = -df/dt, and df/dt is taken by the
// integrator's own formula, (f(x) - f_h)/g. Green-strain damping (f_s, K_s) dissipates s young |dE/dt|^2 per
// volume, and its dE/dt is (E(x) - E_h)/g. So damping has the integrator's order, A is its exact derivative,
// and r is the gradient of an energy, which the line search goes down. Contact (f_c, K_c) has an energy of
// its own (contact/contact_energy.hpp). Our A is the appendix's divided by g^2, and its K = df/dx is minus
// ours.
#pragma once

#include <limber/contact/body_contact.hpp>
#include <limber/contact/contact_energy.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/fem/dof.hpp>
#include <limber/sim/model.hpp>

#include <cmath>
#include <optional>
#include <span>
#include <vector>

namespace limber {

struct StageRule {
  double gamma = 0;          // effective time step g [s]
  double w0 = 1, w1 = 0;     // weights of the two known states
  bool quasistatic = false;  // neither inertia nor damping
};

struct KnownState {
  const VecX* x = nullptr;
  const VecX* v = nullptr;
};

// All that A depends on besides x. A kept factor remembers its own.
struct MatrixKey {
  double gamma = 0;  // 0: quasistatic
  std::vector<std::uint8_t> fixed;
  std::vector<double> activation;
  bool operator==(const MatrixKey&) const = default;
};

struct StageOptions {
  double strain_damping = 0;   // s [s]
  double contact_damping = 0;  // [s]
  double slip_speed = 5e-3;    // [m/s]
  bool body_contact = false;   // bodies touch each other and themselves
  bool nearest = false;        // as in BodyContactOptions
};

class ImplicitStage {
 public:
  ImplicitStage(const Model& model, const StageOptions& options);

  // Poses the problem. `in`: forces, activation and held degrees of freedom; `s0`, `s1`: the known states of
  // the rule (s1 may be empty when w1 = 0).
  void pose(const StepInput& in, const StageRule& rule, const KnownState& s0, const KnownState& s1);

  // The contacts of the posed problem: the step starts at t0 with nodes at x0, the stage ends at t, near
  // `guess`.
  void pose_contact(const VecX& x0, double t0, const VecX& guess, double t);
  // Compares the contacts between bodies with where nodes have come to. True: the problem has changed.
  bool revise_contact(const VecX& x);
  // After a step of the solve: contacts between bodies find their faces from there on.
  void follow(const VecX& x);
  // Gives friction the normal forces at x. True: they differ from those that it had by more than a hundredth.
  bool revise_friction(const VecX& x);
  const BodyContact* bodies() const { return bodies_ ? &*bodies_ : nullptr; }

  // Contacts between bodies couple nodes that no element joins: A has the blocks of the elements and of many
  // pairs. The pattern is made anew only when a pair that presses needs a block that it lacks.
  const std::shared_ptr<const BlockPattern>& pattern() const { return pattern_; }
  // What the pattern has besides elements: four nodes a pair. Part of the state, since it decides the order
  // of elimination.
  const std::vector<std::int64_t>& coupled() const { return coupled_; }
  // Between two matrices of a solve: makes the pattern anew where a node that presses at x has slid to a face
  // whose blocks it lacks. Without them node and face are both held in space by the stiffness of their
  // contact, and solves creep. True: it is another one.
  bool cover(const VecX& x);
  void set_coupled(const std::vector<std::int64_t>& coupled);
  int pattern_changes() const { return pattern_changes_; }  // by contacts, so far
  int followed() const { return followed_; }                // nodes that have slid to another face, so far
  int uncoupled(const VecX& x) const;  // pairs that press at x and lack a block all the same

  struct Point {
    double energy = 0;     // E(x) up to a constant [J]
    double elastic = NAN;  // of that the bodies' elastic energy; not a number with strain damping [J]
    double scale = 0;      // size of the terms that E is the sum of, for its rounding error [J]
    VecX r;                // residual, zero at held degrees of freedom [N]
    double norm = 0;       // |r| [N]
    double rounding = 0;   // |r| that rounding alone can leave [N]
    bool finite = false;
    Index first_bad = -1;  // element that is not finite
    Index inverted = 0;
  };
  // Energy and residual; when something is not finite, nothing but that is set.
  void evaluate(const VecX& x, Point& point);
  // A(x) without its held rows and columns; their diagonal is the mean of the others.
  void matrix(const VecX& x, const MatrixKey& key, BlockMatrix& A,
              fem::Projection projection = fem::Projection::kPsd, bool contact = true);
  // The same, and the held degrees of freedom's share of A d on the right side: y = A d for d zero elsewhere.
  void matrix(const VecX& x, const MatrixKey& key, const VecX& d, BlockMatrix& A, VecX& y);

  // Whether contacts have a stiffness at the start or at the expected end of the stage, and at x.
  bool touching() const { return bodies_touch_ || contact_.touching(); }
  bool touching(const VecX& x) const { return contact_.touching(x) || (bodies_ && bodies_->touching(x)); }

  // Contacts of the posed problem at x, for output.
  std::vector<ContactForce> contact_forces(const VecX& x) const;

  const Model& model() const { return model_; }
  const MatrixKey& key() const { return key_; }
  VecX velocity(const VecX& x) const { return (x - c_) / rule_.gamma; }
  double gamma() const { return rule_.gamma; }
  Index free_dofs() const { return free_; }

 private:
  const fem::StrainTerm* strain() const { return strain_.weight > 0 ? &strain_ : nullptr; }
  void build(const VecX& x, const MatrixKey& key, fem::Projection projection, bool contact, BlockMatrix& A);
  bool covered(const BodyContact::Pair& pair) const;
  void cover_pairs(const VecX& x0, const VecX& x1);
  void make_pattern();
  void eliminate(const MatrixKey& key, BlockMatrix& A) const;

  const Model& model_;
  std::shared_ptr<const BlockPattern> pattern_;
  std::vector<std::int64_t> coupled_;
  std::vector<Index> block_of_;  // where the blocks of the model's pattern are in pattern_
  int pattern_changes_ = 0;
  fem::DofEliminator eliminator_;
  StageRule rule_;
  MatrixKey key_;
  Index free_ = 0;
  VecX c_;                     // position history
  VecX target_;                // x at which the quadratic part of E is least
  VecX weight_;                // its second derivative, diagonal [N/m]
  VecX constant_;              // force that does not depend on x [N]
  double stiffness_ = 1;       // 1 + b/g
  double elastic_scale_ = 0;   // sum of E times volume: terms of that size cancel in the elastic energy [J]
  double force_rounding_ = 0;  // error of the elastic forces that rounding x brings, per size of x [N/m]
  double strain_damping_;      // s [s]
  fem::StrainTerm strain_;
  std::vector<double> other_strain_;
  ContactEnergy contact_;
  std::optional<BodyContact> bodies_;
  bool bodies_touch_ = false;
  int followed_ = 0;
  VecX contact_force_;
  fem::Assembled force_, system_;
};

}  // namespace limber
