// What `condense` remembers from step to step.
#pragma once

#include <limber/sim/state.hpp>

#include <cstdint>
#include <vector>

namespace limber::condense {

// What the kept factor of the region was made from, so that a restart makes the same one again.
struct RegionFactor {
  VecX x;                // all nodes then [m]; empty: there is none
  double t = 0;          // of the pose [s]
  VecX joints;           // of the pose, where links are bones
  double inertia = 0;    // weight of the masses [1/s^2]
  double stiffness = 1;  // of the elastic part
  std::vector<double> activation;
  double projected = 0;                     // share of the elements' projection that was in it
  std::vector<std::int64_t> contact_block;  // what contacts added: blocks of the region's pattern,
  std::vector<double> contact_value;        // nine numbers each [N/m]
  std::vector<double> contact_reduced;      // and to the subspace's matrix, where trained points touch [N/m]
  std::int64_t steps = 0;                   // that it has served
  double cost = 0, last_cost = 0;           // of all these steps and of the last one, by operation counts
  double fresh_rate = 3;                    // mean decrease of log |r| per iteration with new factors

  void forget() {
    const double rate = fresh_rate;
    *this = {};
    fresh_rate = rate;
  }
};

struct CondenseMemory {
  std::int64_t subspace = 0;          // hash of basis and points that all this belongs to
  VecX q;                             // coordinates of the subspace; empty: no step yet
  VecX q_rate;                        // their rate in the last step [m/s]
  std::vector<std::int32_t> keep;     // of every node: steps that the oracles keep it in full space
  std::vector<std::uint8_t> full;     // of every node: whether it was in full space in the last step
  VecX anchor;                        // reduced force that stands for points that are switched off [N]
  VecX anchor_q;                      // the coordinates that it was made at
  VecX x_prev, v_prev;                // bdf2: one step before the state [m, m/s]
  VecX local_velocity;                // 3n: rate of the displacement in the skinned frame [m/s]; empty: q's
  double speed = 0, change = 0;       // of that: means over the full nodes [m/s, m/s^2]
  std::vector<std::int64_t> coupled;  // what contacts between bodies added to the pattern, four nodes a pair
  std::vector<std::int64_t> tail;     // nodes that the region's factor eliminates last: those that touch
  RegionFactor factor;

  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("subspace", m.subspace);
    visitor("q", m.q);
    visitor("q_rate", m.q_rate);
    visitor("keep", m.keep);
    visitor("full", m.full);
    visitor("anchor", m.anchor);
    visitor("anchor_q", m.anchor_q);
    visitor("x_prev", m.x_prev);
    visitor("v_prev", m.v_prev);
    visitor("local_velocity", m.local_velocity);
    visitor("speed", m.speed);
    visitor("change", m.change);
    visitor("coupled", m.coupled);
    visitor("tail", m.tail);
    visitor("factor_x", m.factor.x);
    visitor("factor_t", m.factor.t);
    visitor("factor_joints", m.factor.joints);
    visitor("factor_inertia", m.factor.inertia);
    visitor("factor_stiffness", m.factor.stiffness);
    visitor("factor_activation", m.factor.activation);
    visitor("factor_projected", m.factor.projected);
    visitor("factor_contact_block", m.factor.contact_block);
    visitor("factor_contact_value", m.factor.contact_value);
    visitor("factor_contact_reduced", m.factor.contact_reduced);
    visitor("factor_steps", m.factor.steps);
    visitor("factor_cost", m.factor.cost);
    visitor("factor_last_cost", m.factor.last_cost);
    visitor("factor_fresh_rate", m.factor.fresh_rate);
  }
};

}  // namespace limber::condense
