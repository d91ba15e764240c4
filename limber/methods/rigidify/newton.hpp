// Implicit Euler on the mixed unknowns by Newton's method: find u with
//   r(u) = (1 + h a) M u - (M v, p, L) - h Gᵀ ((1 + b/h) f(x) - (b/h) f(x_0) + f_ext + f_c(x)) = 0,   x =
//   x(u),
// where elastic nodes go straight, x = x_0 + h u, and pieces turn, x = c + h v + R(h w) (x_0 - c); moments
// are taken about where centres are at the end. Without pieces this is BDF1 of `implicit`
// (implicit_stage.hpp), and a piece without forces keeps its momenta exactly.
#pragma once

#include <limber/methods/rigidify/mixed_system.hpp>
#include <limber/methods/rigidify/row_contact.hpp>

namespace limber::rigidify {

class MixedNewton {
 public:
  MixedNewton(const Model& model, const RigidifyOptions& options) : model_(model), options_(options) {}

  // False: no solution, and the report says why.
  // `known`: velocities of driven nodes, 3n; empty: none.
  bool solve(const State& state, const StepInput& in, std::span<const RigidPiece> pieces, const VecX& known,
             MixedSystem& system, RowContact& contact, VecX& u, StepReport& report, PhaseClock& clock);

 private:
  struct Point {
    VecX x, r;
    std::vector<RigidPiece> pieces;  // where they are at x
    double energy = 0, norm = 0;
    bool finite = false;
  };
  void evaluate(const VecX& u, MixedSystem& system, const RowContact& contact, Point& point) const;

  const Model& model_;
  const RigidifyOptions options_;
  // of the step
  const State* state_ = nullptr;
  const StepInput* in_ = nullptr;
  std::span<const RigidPiece> start_;
  const VecX* known_ = nullptr;
  VecX momenta_, constant_;  // (M v, p, L); external and history forces [N]
};

}  // namespace limber::rigidify
