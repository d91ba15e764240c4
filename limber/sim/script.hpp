// The scene's script, step by step: only what changes is written again.
#pragma once

#include <limber/sim/model.hpp>

namespace limber {

class Script {
 public:
  // The model must outlive it.
  explicit Script(const Model& model);

  // What the script says about the step from state.t to state.t + h; the same numbers as script_input()
  // gives. Looks at positions of moving holds and of what springs pull only, and at none where `nodal` is
  // false: forces and holds of nodes are then left as they were. Valid until the next call.
  const StepInput& at(const State& state, double h, bool nodal = true);
  // Whether it looks at positions in the step from t to t + h: some hold moves, or a spring pulls.
  bool needs_positions(double t, double h) const;
  // Of the last step, with forces and held degrees of freedom of the nodes (velocities of moving holds only
  // where at() was asked for them).
  const StepInput& input();

 private:
  bool look_at_holds(double t, double h);
  bool look_at_loads(double t, double h);
  void fill_holds(const State* state);
  void fill_loads(const State* state);
  void add_pull(const State& state, std::size_t load);

  const Model& model_;
  StepInput input_;
  std::vector<std::uint8_t> plane_;                   // degrees of freedom that plane bodies never have
  std::vector<std::uint8_t> moving_;                  // of each hold: whether it moved in the last step
  bool changed_holds_ = true, changed_loads_ = true;  // since the nodes' values were written
  bool pulls_ = false;                                // a spring does, in this step
};

}  // namespace limber
