// ConJac's part of the scene: /method with type "conjac".
#pragma once

#include <limber/methods/conjac/reduced_step.hpp>

#include <nlohmann/json.hpp>

namespace limber {

struct ConJacOptions {
  double beta = 0.5;       // numerical damping of the paper's rule, Eq. 11
  double gamma = 1.0 / 3;  // stabilisation, Eq. 13
  TimeRule rule = TimeRule::kGuarded;
  int newton_steps = 0;
  bool static_start = false;
  nlohmann::json adaptive;  // null: not adaptive

  static ConJacOptions read(const nlohmann::json& options);
};

}  // namespace limber
