// The time steps that full and reduced space share: implicit Euler, and BDF2 with SDIRK2 as its first step.
// One stage is one problem of sqp.hpp:
//
//   Psi_u = 1/2 (u - target)^T (1/g^2 + a/g) M (u - target) - loads . u  (+ holds, contact)
//
// with the stage's velocity (u - c)/g. Damping b K v is -(b/g) (f - f_c): it makes the elastic energy 1 + b/g
// times as large, and what f_c gives is a constant force.
#pragma once

#include <limber/methods/mixed/options.hpp>
#include <limber/methods/mixed/sqp.hpp>
#include <limber/sim/model.hpp>

#include <functional>

namespace limber::mixed {

// Displacements (or coordinates of them) and velocities.
struct MixedMotion {
  VecX u, v;
};

// Where one stage stands in its step.
struct MixedStage {
  double gamma = 0;          // effective step [s]
  double w0 = 1, w1 = 0;     // weights of the two known states in c and in the old velocity
  double end = 0;            // time of the stage's end after the start of the step [s]
  double inertia = 0;        // 1/g^2 + a/g [1/s^2]
  const VecX* u0 = nullptr;  // where the step began
  VecX c;
};

class TimeSteps {
 public:
  // Adds to the problem what depends on the space: Hu, loads, holds, contact. May move the guess.
  using Pose = std::function<void(const MixedStage&, VecX& guess, StepProblem&)>;

  // `mass`: of all bodies [kg].
  TimeSteps(const Model& model, const MixedOptions& options, double mass)
      : scene_(*model.scene), options_(options), size_(model.size), mass_(mass) {}

  // From `now` (one step ago: `last`, may be empty) to the end of the step. `unknowns` has Z and Lambda, and
  // receives all; `velocity` that at the end. False: it failed, and report.why says why.
  bool step(double h, const MixedMotion& now, const MixedMotion& last, Sqp& sqp, const Pose& pose,
            SqpState& unknowns, VecX& velocity, StepReport& report, PhaseClock& clock) const;

 private:
  bool stage(MixedStage stage, const MixedMotion& s0, const MixedMotion& s1, const VecX& guess_velocity,
             Sqp& sqp, const Pose& pose, SqpState& unknowns, VecX& velocity, StepReport& report,
             PhaseClock& clock) const;

  const Scene& scene_;
  const MixedOptions& options_;
  double size_, mass_;
};

}  // namespace limber::mixed
