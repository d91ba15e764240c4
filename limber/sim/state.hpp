// All that changes during a run and must survive a restart. Nothing else may: a Stepper holds scratch only.
#pragma once

#include <limber/core/types.hpp>

#include <cstdint>
#include <vector>

namespace limber {

// What a factor that is kept over several steps was made from, so that a restart makes the same one again.
struct FactorRecord {
  VecX x, v;  // positions [m] and, for an extrapolated factor, velocities [m/s]
  std::vector<std::uint8_t> fixed;
  std::vector<double> activation;
  double gamma = 0;                // effective time step of the matrix [s]; 0: stiffness alone
  double t = 0, h = 0;             // time it belongs to, and time step then [s]
  std::int64_t steps = 0;          // steps it has served
  double cost = 0, last_cost = 0;  // of all these steps and of the last one, by the cost model
  // Cost of new factors of late (0: none yet), and the mean decrease of log |r| per iteration with them.
  double price = 0, fresh_rate = 3;
  // Linearised steps: how many are still done with a factor of their own before an old one is tried again,
  // and how many after the next trial that fails.
  std::int64_t wait = 0, patience = 1;
};

struct State {
  double t = 0;                           // [s]
  std::int64_t step = 0;                  // steps done
  std::int64_t epoch = 0;                 // topology changes so far
  VecX x;                                 // positions, 3n [m]
  VecX v;                                 // velocities, 3n [m/s]
  std::vector<std::uint8_t> dynamic;      // ConJac: representative node i is dynamic
  std::vector<std::int64_t> region_age;   // ConJac: steps that a region is dynamic; negative: quasistatic
  std::vector<double> liveliness_window;  // ConJac: past metrics, region-major [1/s]
  std::int64_t liveliness_steps = 0;
  double energy_excess = 0;                 // ConJac's guard: energy gained and not yet lost again [J]
  std::vector<std::int64_t> contact_pairs;  // (node, obstacle) of every anchor of friction
  std::vector<double> contact_anchors;      // their points, three numbers each, in the obstacle's frame [m]
  std::vector<std::int64_t> coupled_nodes;  // implicit: what contacts between bodies added to the pattern
  VecX x_prev, v_prev;                      // implicit, BDF2: one step ago; empty: none
  FactorRecord factor;                      // implicit: of the kept factor
  VecX joint_q, joint_v;  // positions and velocities of the joints, stacked (rigid/mechanism.hpp)
  VecX joint_friction;    // warm start: friction impulses of the last step [N s]
  VecX link_x, link_phi;  // poses and velocities of the links where a method steps them freely (sp)
  std::vector<std::int64_t> events_done;  // indices of scene events that have happened, in order
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
  visitor("region_age", state.region_age);
  visitor("liveliness_window", state.liveliness_window);
  visitor("liveliness_steps", state.liveliness_steps);
  visitor("energy_excess", state.energy_excess);
  visitor("contact_pairs", state.contact_pairs);
  visitor("contact_anchors", state.contact_anchors);
  visitor("coupled_nodes", state.coupled_nodes);
  visitor("x_prev", state.x_prev);
  visitor("v_prev", state.v_prev);
  visitor("factor_x", state.factor.x);
  visitor("factor_v", state.factor.v);
  visitor("factor_fixed", state.factor.fixed);
  visitor("factor_activation", state.factor.activation);
  visitor("factor_gamma", state.factor.gamma);
  visitor("factor_t", state.factor.t);
  visitor("factor_h", state.factor.h);
  visitor("factor_steps", state.factor.steps);
  visitor("factor_cost", state.factor.cost);
  visitor("factor_last_cost", state.factor.last_cost);
  visitor("factor_price", state.factor.price);
  visitor("factor_fresh_rate", state.factor.fresh_rate);
  visitor("factor_wait", state.factor.wait);
  visitor("factor_patience", state.factor.patience);
  visitor("joint_q", state.joint_q);
  visitor("joint_v", state.joint_v);
  visitor("joint_friction", state.joint_friction);
  visitor("link_x", state.link_x);
  visitor("link_phi", state.link_phi);
  visitor("events_done", state.events_done);
}

}  // namespace limber
