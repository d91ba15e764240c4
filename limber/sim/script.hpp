// The scene's script, step by step: only what changes is written again.
#pragma once

#include <limber/sim/model.hpp>

namespace limber {

class Script {
 public:
  // The model must outlive it.
  explicit Script(const Model& model);

  // What the script says about the step from state.t to state.t + h; the same numbers as script_input()
  // gives. Looks at positions of moving holds only. Valid until the next call.
  const StepInput& at(const State& state, double h);
  // Whether it looks at positions in the step from t to t + h: some hold moves.
  bool needs_positions(double t, double h) const;
  // Of the last step.
  const StepInput& input() const { return input_; }

 private:
  void fill_holds(const State& state, double h);
  void fill_loads(double t, double h);

  const Model& model_;
  StepInput input_;
  std::vector<std::uint8_t> plane_;  // degrees of freedom that plane bodies never have
  std::vector<std::uint8_t> holding_,
      moving_;                 // of each hold: whether it was active in the last step, and moved
  std::vector<double> grown_;  // of each load: the share that acted in the last step; 0: none
  bool filled_ = false;
};

}  // namespace limber
