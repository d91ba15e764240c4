// Scenes and questions that the tests of `rigidify` share.
#pragma once

#include "physics/scenes.hpp"

#include <limber/methods/rigidify/memory.hpp>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace limber::test {

using rigidify::RigidifyMemory;

// Thresholds as the paper has them: tau_R, tau_E / tau_R.
inline nlohmann::json rigidify_json(double tau_rigid, double ratio = 10) {
  return {{"integrator", "linear"},
          {"tolerance", 100 * std::sqrt(tau_rigid)},
          {"threshold_ratio", ratio},
          {"quiet_steps", 3},
          {"foresight", 0},
          {"predict", "step"},
          {"predict_every", 1},
          {"grow_every", 1},
          {"least_share", 0.0},
          {"never_slower", false},
          {"sleep", true},
          {"body_contact", false},
          {"contact", "penalty"},
          {"baumgarte", 0.2},
          {"compliance", 1e-3},
          {"sweeps", 500},
          {"max_iterations", 50},
          {"tolerance_relative", 1e-6},
          {"tolerance_absolute", 1e-6}};
}

inline void use_rigidify(Scene& s, const nlohmann::json& options) {
  s.method = "rigidify";
  *s.method_options = options;
}

// A bar of 0.25 m cells along z, light and soft.
inline std::shared_ptr<Scene> light_bar(const std::array<Index, 3>& nodes, double young, bool held) {
  auto s =
      bar({0.25 * (nodes[0] - 1), 0.25 * (nodes[1] - 1), 0.25 * (nodes[2] - 1)}, nodes, young, 0.35, held);
  s->bodies[0].material.density = Varying{10.0};
  s->h = 0.01;
  return s;
}

// Two soft blocks of half a metre, one upon the other; what carries them is the caller's.
inline std::shared_ptr<Scene> stack_of_two() {
  auto s = light_bar({3, 3, 3}, 5e4, false);
  s->gravity = Vec3(0, 0, -9.81);
  s->damping_stiffness = 0.05;
  s->damping_mass = 1;
  BodySpec upper = s->bodies[0];
  upper.name = "upper";
  upper.translation = Vec3(0.03, 0.02, 0.505);
  s->bodies.push_back(upper);
  s->contact.friction = 0.5;
  use_rigidify(*s, rigidify_json(1e-4));
  s->method_options["body_contact"] = true;
  return s;
}

inline const RigidifyMemory& memory_in(const Simulation& sim) {
  const auto* memory = sim.state().memory.get<RigidifyMemory>();
  EXPECT_TRUE(memory);
  return *memory;
}

inline double rigid_share(const Simulation& sim) {
  const RigidifyMemory& m = memory_in(sim);
  return 1 - static_cast<double>(std::count(m.piece.begin(), m.piece.end(), -1)) /
                 static_cast<double>(m.piece.size());
}

inline void add_ground(Scene& s, const Vec3& normal = Vec3::UnitZ(), double height = 0) {
  ObstacleSpec floor;
  floor.name = "floor";
  floor.shape = "plane";
  floor.point = height * normal;
  floor.normal = normal;
  s.obstacles.push_back(floor);
}

}  // namespace limber::test
