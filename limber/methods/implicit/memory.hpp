// What the implicit integrators remember from step to step.
#pragma once

#include <limber/sim/state.hpp>

#include <cstdint>
#include <string>
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

// No factor, but what was learnt.
inline FactorRecord without_factor(const FactorRecord& record) {
  FactorRecord next;
  next.price = record.price;
  next.fresh_rate = record.fresh_rate;
  next.wait = record.wait;
  next.patience = record.patience;
  return next;
}

struct ImplicitMemory {
  std::vector<std::int64_t> coupled_nodes;  // what contacts between bodies added to the pattern
  VecX x_prev, v_prev;                      // BDF2: one step ago; empty: none
  FactorRecord factor;                      // of the kept factor

  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("coupled_nodes", m.coupled_nodes);
    visitor("x_prev", m.x_prev);
    visitor("v_prev", m.v_prev);
    visitor("factor_x", m.factor.x);
    visitor("factor_v", m.factor.v);
    visitor("factor_fixed", m.factor.fixed);
    visitor("factor_activation", m.factor.activation);
    visitor("factor_gamma", m.factor.gamma);
    visitor("factor_t", m.factor.t);
    visitor("factor_h", m.factor.h);
    visitor("factor_steps", m.factor.steps);
    visitor("factor_cost", m.factor.cost);
    visitor("factor_last_cost", m.factor.last_cost);
    visitor("factor_price", m.factor.price);
    visitor("factor_fresh_rate", m.factor.fresh_rate);
    visitor("factor_wait", m.factor.wait);
    visitor("factor_patience", m.factor.patience);
  }
};

// What does not fit a model of `nodes` nodes, of a memory from a file; empty: all fits.
std::string implicit_misfit(const ImplicitMemory& memory, Index nodes, std::size_t activations);

}  // namespace limber
