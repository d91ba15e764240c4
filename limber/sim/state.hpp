// All that changes during a run and must survive a restart. Nothing else may: a Stepper holds scratch only.
#pragma once

#include <limber/core/types.hpp>
#include <limber/sim/memory.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace limber {

struct Topology;

struct State {
  double t = 0;                             // [s]
  std::int64_t step = 0;                    // steps done
  std::int64_t epoch = 0;                   // topology changes so far
  VecX x;                                   // positions, 3n [m]
  VecX v;                                   // velocities, 3n [m/s]
  std::vector<std::int64_t> contact_pairs;  // (node, obstacle) of every anchor of friction
  std::vector<double> contact_anchors;      // their points, three numbers each, in the obstacle's frame [m]
  VecX joint_q, joint_v;  // positions and velocities of the joints, stacked (rigid/mechanism.hpp)
  VecX joint_friction;    // warm start: friction impulses of the last step [N s]
  std::vector<std::int64_t> events_done;     // indices of scene events that have happened, in order
  std::shared_ptr<const Topology> topology;  // all changes of it so far (sim/topology.hpp); null at epoch 0
  MethodMemory memory;                       // what the method remembers (sim/memory.hpp)
};

// Lists every member that all methods share, with its name; the method's own are in state.memory.visit(), and
// the topology is a value of its own. The one list behind checkpoint, hash and comparison.
template <class S, class Visitor>
void visit(S& state, Visitor&& visitor) {
  visitor("t", state.t);
  visitor("step", state.step);
  visitor("epoch", state.epoch);
  visitor("x", state.x);
  visitor("v", state.v);
  visitor("contact_pairs", state.contact_pairs);
  visitor("contact_anchors", state.contact_anchors);
  visitor("joint_q", state.joint_q);
  visitor("joint_v", state.joint_v);
  visitor("joint_friction", state.joint_friction);
  visitor("events_done", state.events_done);
}

// The method's memory. One that is missing, of another method or of an older topology begins anew.
template <class T>
T& memory_of(State& state) {
  T* held = state.memory.get<T>();
  if (!held || state.memory.epoch() != state.epoch) {
    state.memory = MethodMemory::of(T{}, state.epoch);
    held = state.memory.get<T>();
  }
  return *held;
}
// The same to look at: null where there is none yet.
template <class T>
const T* memory_of(const State& state) {
  return state.memory.epoch() == state.epoch ? state.memory.get<T>() : nullptr;
}

}  // namespace limber
