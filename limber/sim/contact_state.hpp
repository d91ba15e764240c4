// Contact in the state, the report and the diagnostics.
#pragma once

#include <limber/contact/contact_step.hpp>
#include <limber/sim/model.hpp>
#include <limber/sim/state.hpp>

#include <vector>

namespace limber {

std::vector<Anchor> anchors_of(const State& state);
void store_anchors(const std::vector<Anchor>& anchors, State& state);

// Energy of the penalty springs [J].
double contact_energy(const Model& model, const State& state);

// Force with which obstacles press on each node, along their normals [N]; one number per node.
std::vector<double> contact_pressure(const Model& model, const State& state);

// Ends a step: `state.x` is where the nodes went, `state.t` still the time of its start. Keeps the anchors
// and reports contacts, the deepest one, and nodes that went right through an obstacle.
void finish_contacts(const ContactStep& contact, double h, State& state, StepReport& report);

}  // namespace limber
