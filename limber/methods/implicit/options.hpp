// The implicit integrators' part of the scene: /method with type "implicit".
#pragma once

#include <limber/methods/implicit/implicit_stage.hpp>
#include <limber/methods/implicit/newton_solvers.hpp>

#include <nlohmann/json_fwd.hpp>

namespace limber {

enum class Integrator { kBdf1, kBaraff, kBdf2, kSdirk2, kQuasistatic };

struct ImplicitOptions {
  Integrator integrator = Integrator::kBdf2;
  int max_halvings = 4;
  SolverOptions solver;
  StageOptions stage;

  static ImplicitOptions read(const nlohmann::json& options);
};

}  // namespace limber
