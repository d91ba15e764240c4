// Bodies that slide on obstacles. Friction goes by what contacts carry, and the contacts of quasistatic nodes
// carry a body only once these have arrived: a body that slides is told how it moves as a whole.
#pragma once

#include <limber/contact/contact_step.hpp>
#include <limber/core/phase_clock.hpp>
#include <limber/methods/conjac/condensation.hpp>
#include <limber/methods/conjac/linearisation.hpp>
#include <limber/sim/model.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace limber {

// A flag for every piece that nothing holds and that as a rigid body goes several times as far in the step as
// the springs of its contacts stretch before they slip (penalty.hpp). `contact` is told.
std::vector<std::uint8_t> find_sliding(const Model& model, const StepInput& in, const StepStart& start,
                                       std::span<const std::uint8_t> held, ContactStep& contact);

// The correction of pieces that slide, anew: a body that lies on the ground is not about to fall, although
// its contacts do not know yet. Its acceleration is that of the condensed system, for which they do. `force`:
// all forces before inertia relief [N]. Sets at.moving and at.correction where a piece slides.
void settle_sliding(const Model& model, std::span<const std::uint8_t> slides,
                    std::span<const std::uint8_t> held, const VecX& force, Condensation& condensation,
                    Linearisation& at, PhaseClock& clock);

// Eq. 13: gamma of the correction; all of it, while it is small, where a body slides.
void take_share(const Model& model, std::span<const std::uint8_t> slides, double gamma, VecX& correction);

}  // namespace limber
