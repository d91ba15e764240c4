// Small scenes for the tests of `implicit`, built in code.
#pragma once

#include <limber/methods/implicit/implicit.hpp>
#include <limber/methods/implicit/memory.hpp>
#include <limber/methods/vanilla/vanilla.hpp>
#include <limber/sim/simulation.hpp>

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace limber::test {

inline nlohmann::json implicit_options(const std::string& integrator, const std::string& solver) {
  return {{"integrator", integrator},   {"solver", solver},       {"tolerance_relative", 1e-6},
          {"tolerance_absolute", 1e-6}, {"max_iterations", 200},  {"quasi_iterations", 20},
          {"pcg_tolerance", 1e-2},      {"history", 8},           {"keep", 0},
          {"max_halvings", 4},          {"strain_damping", 0.0},  {"matrix", "exact"},
          {"body_contact", false},      {"contact_damping", 0.0}, {"slip_speed", 5e-3}};
}

// A bar along x, held at x = 0, of `nodes` nodes.
inline std::shared_ptr<Scene> bar_scene(const std::string& integrator, const std::string& solver,
                                        std::array<Index, 3> nodes = {9, 3, 3}) {
  auto scene = std::make_shared<Scene>();
  scene->name = "bar";
  scene->h = 0.01;
  scene->end = 1;
  scene->method = "implicit";
  *scene->method_options = implicit_options(integrator, solver);
  BodySpec body;
  body.name = "bar";
  body.generate = GenerateSpec{};
  body.generate->shape = "bar";
  body.generate->size = Vec3(0.2, 0.05, 0.05);
  body.generate->nodes = nodes;
  body.material.young = Varying{5e4};
  body.material.poisson = Varying{0.4};
  body.material.density = Varying{1000.0};
  scene->bodies.push_back(body);
  ConstraintSpec root;
  root.name = "root";
  root.nodes.kind = "set";
  root.nodes.name = "x0";
  scene->constraints.push_back(root);
  return scene;
}

// Its other end follows keys: pushed in, pulled out, bent, twisted.
inline void add_hand(Scene& scene) {
  ConstraintSpec hand;
  hand.name = "hand";
  hand.nodes.kind = "set";
  hand.nodes.name = "x1";
  hand.center = Vec3(0.2, 0.025, 0.025);
  hand.motion = {{0.0, Vec3::Zero(), Vec3::Zero(), 1},
                 {0.25, Vec3(-0.05, 0, 0), Vec3::Zero(), 1},
                 {0.5, Vec3(0.05, 0, 0), Vec3::Zero(), 1},
                 {0.75, Vec3(-0.02, 0.05, 0), Vec3(0, 0, 0.8), 1},
                 {1.0, Vec3::Zero(), Vec3(2.0, 0, 0), 1}};
  scene.constraints.push_back(hand);
}

}  // namespace limber::test
