// What a step of ConJac tells about its modes, and about what it cannot follow.
#pragma once

#include <limber/methods/conjac/condensation.hpp>
#include <limber/methods/conjac/linearisation.hpp>
#include <limber/sim/stepper.hpp>

#include <cstdint>
#include <vector>

namespace limber {

// Energy of each mode [J]: kinetic, and what the force that is left could do on its way to equilibrium.
void tell_modes(const Condensation& condensation, const Linearisation& at, const Moved& moved,
                StepReport& report);

// What the choice of nodes (`dynamic`) and modes cannot follow, once, in the first step, of length h: the
// frequency, and the node that moves most. Warns of loads that move the quasistatic nodes at once where the
// time step would show how they swing: those of the first step, unless the run began in equilibrium, and
// those that the script brings later, faster than that.
Condensation::Missed tell_missed(const Model& model, const State& start,
                                 const std::vector<std::uint8_t>& dynamic, double h, bool static_start,
                                 Condensation& condensation, StepReport& report);

// The shapes of the modes, and of what is missed, for the recording.
void name_shapes(const Model& model, const ModeMemory& modes, const Condensation& condensation,
                 const Condensation::Missed& missed, MethodFields& fields);

}  // namespace limber
