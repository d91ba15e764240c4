#include <limber/methods/mixed/time_steps.hpp>

#include <cmath>

namespace limber::mixed {
namespace {

constexpr int kMixedFrictionRevisions = 4;

}  // namespace

bool TimeSteps::step(double h, const MixedMotion& now, const MixedMotion& last, Sqp& sqp, const Pose& pose,
                     SqpState& unknowns, VecX& velocity, StepReport& report, PhaseClock& clock) const {
  report.iterations = 0;
  const auto run = [&](double gamma, double w0, double w1, double end, const MixedMotion& other,
                       const VecX& guess_velocity) {
    return stage({gamma, w0, w1, end, 0, &now.u, {}}, now, other, guess_velocity, sqp, pose, unknowns,
                 velocity, report, clock);
  };
  if (!options_.bdf2) return run(h, 1, 0, h, now, now.v);
  if (last.u.size() == now.u.size()) return run(2.0 / 3 * h, 4.0 / 3, -1.0 / 3, h, last, now.v);
  // There is no history yet: SDIRK2.
  const double a = 1 - std::sqrt(0.5), w1 = (1 - a) / a;
  if (!run(a * h, 1, 0, a * h, now, now.v)) return false;
  const MixedMotion middle{unknowns.u, velocity};
  return run(a * h, 1 - w1, w1, h, middle, middle.v);
}

bool TimeSteps::stage(MixedStage stage, const MixedMotion& s0, const MixedMotion& s1,
                      const VecX& guess_velocity, Sqp& sqp, const Pose& pose, SqpState& unknowns,
                      VecX& velocity, StepReport& report, PhaseClock& clock) const {
  const double g = stage.gamma, a = scene_.damping_mass, b = scene_.damping_stiffness;
  const bool two = stage.w1 != 0;
  stage.inertia = 1 / (g * g) + a / g;
  stage.c = stage.w0 * s0.u;
  VecX v = stage.w0 * s0.v;
  if (two) {
    stage.c += stage.w1 * s1.u;
    v += stage.w1 * s1.v;
  }
  StepProblem problem;
  problem.anchor = stage.c + g / (1 + a * g) * v;
  problem.inertia = stage.inertia * mass_;
  problem.scale = 1 + b / g;
  problem.gradient = VecX::Zero(stage.c.size());
  if (b > 0) {
    auto phase = clock.phase("points");
    VecX history = VecX::Zero(stage.c.size());
    sqp.elastic(s0.u, &history);
    problem.gradient -= b / g * stage.w0 * history;
    if (two) {
      history.setZero();
      sqp.elastic(s1.u, &history);
      problem.gradient -= b / g * stage.w1 * history;
    }
  }
  unknowns.u = s0.u;
  if (options_.extrapolate) unknowns.u += stage.end * guess_velocity;
  {
    auto phase = clock.phase("pose");
    pose(stage, unknowns.u, problem);
  }

  SqpOptions o;
  o.mixed = !options_.fem;
  o.iterations = options_.iterations;
  o.tolerance = options_.tolerance * size_;
  o.size = size_;
  o.twist_from = options_.twist_from;
  SqpResult result;
  // Coulomb's law holds between the forces of one stage: again, until friction has the normal forces of its
  // own solution. With a fixed number of iterations it has those of the step's start.
  for (int revision = 0;; ++revision) {
    result = sqp.solve(problem, o, unknowns, clock);
    report.iterations += result.iterations;
    for (const auto& [name, count] : result.fallbacks) report.fallbacks[name] += count;
    if (!result.ok || o.tolerance == 0 || !problem.potential || !problem.potential->revise(unknowns.u)) break;
    if (revision == kMixedFrictionRevisions) {
      ++report.fallbacks["friction_unsettled"];
      break;
    }
  }
  if (o.tolerance > 0 && result.ok && !result.converged) ++report.fallbacks["iterations_spent"];
  report.extra["decrement"] = result.decrement;
  report.extra["change"] = result.change;
  report.inverted = result.inverted;
  velocity = (unknowns.u - stage.c) / g;
  if (!result.ok) report.why = result.why;
  return result.ok;
}

}  // namespace limber::mixed
