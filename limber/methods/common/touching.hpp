// Contact, as the steps of the methods use it.
#pragma once

#include <limber/contact/contact_step.hpp>
#include <limber/sim/model.hpp>
#include <limber/sim/stepper.hpp>

#include <span>

namespace limber {

// Looks for contacts of the step: nodes are expected to go on as they do, under gravity.
void begin_contacts(const ContactModel& model, std::span<const Anchor> anchors, const State& state,
                    const StepInput& in, ContactStep& contact, PhaseClock& clock);

// The paper's friction ("rule": "filter"): filters the velocities of touching nodes after the step (Bridson
// et al. 2002). False: that is not the rule, or nobody touches.
bool filter_friction(const Model& model, const ContactStep& contact, const StepInput& in, State& state);

}  // namespace limber
