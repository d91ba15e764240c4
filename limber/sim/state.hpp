// All that changes during a run and must survive a restart. Nothing else may: a Stepper holds scratch only.
#pragma once

#include <limber/core/types.hpp>

#include <cstdint>
#include <vector>

namespace limber {

struct State {
  double t = 0;                           // [s]
  std::int64_t step = 0;                  // steps done
  std::int64_t epoch = 0;                 // topology changes so far
  VecX x;                                 // positions, 3n [m]
  VecX v;                                 // velocities, 3n [m/s]
  std::vector<std::uint8_t> dynamic;      // ConJac: representative node i is dynamic
  std::vector<double> liveliness_window;  // ConJac: past metrics, representative-major [1/s]
  std::int64_t liveliness_steps = 0;
  double energy_excess = 0;                 // ConJac's guard: energy gained and not yet lost again [J]
  std::vector<std::int64_t> contact_pairs;  // (node, obstacle) of every anchor of friction
  std::vector<double> contact_anchors;      // their points, three numbers each, in the obstacle's frame [m]
  std::vector<std::int64_t> events_done;    // indices of scene events that have happened, in order
};

// Lists every member with its name: the one list behind checkpoint, hash and comparison.
template <class S, class Visitor>
void visit(S& state, Visitor&& visitor) {
  visitor("t", state.t);
  visitor("step", state.step);
  visitor("epoch", state.epoch);
  visitor("x", state.x);
  visitor("v", state.v);
  visitor("dynamic", state.dynamic);
  visitor("liveliness_window", state.liveliness_window);
  visitor("liveliness_steps", state.liveliness_steps);
  visitor("energy_excess", state.energy_excess);
  visitor("contact_pairs", state.contact_pairs);
  visitor("contact_anchors", state.contact_anchors);
  visitor("events_done", state.events_done);
}

}  // namespace limber
