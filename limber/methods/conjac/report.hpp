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

// What the choice of nodes (`dynamic`) and modes cannot follow, once, in the first step, of length h. Loads
// that are there at once move the quasistatic nodes at once, unless the run began in equilibrium.
void tell_missed(const Model& model, const std::vector<std::uint8_t>& dynamic, double h, bool static_start,
                 Condensation& condensation, StepReport& report);

}  // namespace limber
