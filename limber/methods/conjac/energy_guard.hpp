// The guard of the default time rule: as lively as the motion allows, and never a gain of energy.
//
// A step is advanced by the midpoint rule. Where the energy of the whole body would grow, the same small
// system is advanced with more damping (theta = 0.55 to 1), then linearised anew at the start of the step,
// and at last with ever less motion. What a step loses by its own error is given back.
#pragma once

#include <limber/contact/body_springs.hpp>
#include <limber/contact/contact_step.hpp>
#include <limber/core/phase_clock.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/methods/conjac/linearisation.hpp>
#include <limber/sim/model.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace limber {

// Elastic energy and force by shape. The last two are remembered: a step begins where the one before ended.
// They are made by the same sums wherever they are asked for, so that a resumed run has the same bits.
class ElasticForces {
 public:
  // Stays good until two other shapes have been asked for.
  const fem::Assembled& at(const Model& model, const VecX& x, const std::vector<double>& activation);

 private:
  struct Known {
    VecX x;
    std::vector<double> activation;
    fem::Assembled value;
  };
  std::array<Known, 2> known_;
  std::size_t latest_ = 0;
};

class EnergyGuard {
 public:
  // At the start of a step [J].
  struct Balance {
    double elastic = 0, kinetic = 0, contact = 0;
    double excess = 0;  // energy gained so far and not lost again
  };

  // The step that is judged.
  struct Step {
    const Model& model;
    const StepInput& in;
    const ContactStep& contact;
    const BodySprings* bodies;  // may be null
    const StepStart& start;
    const Balance& balance;
    const Linearisation& at;
    const VecX& w;                       // the motion that held nodes impose (condensation.hpp)
    std::span<const std::uint8_t> held;  // by the script or by links
    PhaseClock& clock;
  };
  // Lines 6 to 8, with this share of correction and closing.
  using Move = std::function<Moved(const Advance& how, double share)>;

  explicit EnergyGuard(ElasticForces& elastic) : elastic_(elastic) {}

  Balance measure(const Model& model, const State& state, const StepInput& in, const StepStart& start,
                  double excess, PhaseClock& clock) const;

  // Whether the way that nodes would go with the velocities they have, to where the step is linearised, leads
  // so far from what is linear that nothing found there would be of use: the elastic energy of a linear body
  // changes by the mean of the forces at both ends times the way, and what this one has beyond that is a
  // large share of its kinetic energy.
  static bool overshoots(const Balance& balance, double elastic, double work_of_forces);

  // Lines 6 to 8: the least damped motion that does not gain energy. None: whatever the damping, it would,
  // and the step should be linearised at its start; a step that is gets a motion always.
  std::optional<Moved> advance(const Step& step, const Move& move, StepReport& report) const;

  // The excess after the step. What the step lost by its own error is given back to the motion, if
  // `give_back`.
  double settle(const Step& step, bool give_back, Moved& moved) const;

 private:
  static bool touches(const Step& step);
  double gain(const Step& step, const Moved& moved) const;
  Moved overdamped(const Step& step, const Move& move, double tolerated) const;

  ElasticForces& elastic_;
};

}  // namespace limber
