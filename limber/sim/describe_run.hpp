// What the manifest says about a run, and what is left of one that failed: the same for every program that
// records.
#pragma once

#include <limber/sim/run_folder.hpp>
#include <limber/sim/simulation.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace limber {

// Fills in version, machine, method and sizes, and that the run was started or goes on now. `target`: the
// step at which it is to end; `overrides`: values of the scene that were changed, as in try_load_scene().
void describe_run(const Simulation& simulation, const std::vector<std::string>& overrides,
                  std::int64_t target, RunFolder& folder);

// failure.lmc and failure.json: the state before the step that failed, and why.
void dump_failure(const RunFolder& folder, const Simulation& simulation, const std::string& why);

// Body, the smallest set, and coordinates of a node at rest, for a person.
std::string place_of(const Model& model, Index node);

// What a step tells of the motions that its method does not follow ("followed_below" [Hz], "missed_node"), as
// a sentence; empty: nothing.
std::string followed_text(const Model& model, const StepReport& report);

}  // namespace limber
