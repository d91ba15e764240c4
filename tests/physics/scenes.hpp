// Small scenes for the physics tests, built as data.
#pragma once

#include <limber/methods/methods.hpp>
#include <limber/sim/simulation.hpp>

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace limber::test {

inline nlohmann::json conjac_options(const std::string& rule = "guarded") {
  return {
      {"beta", 0.5}, {"gamma", 1.0 / 3}, {"time_rule", rule}, {"newton_steps", 0}, {"static_start", false}};
}

// A bar along z with its least corner at the origin, root (z = 0) pinned when `held`.
inline std::shared_ptr<Scene> bar(const Vec3& size, const std::array<Index, 3>& nodes, double young,
                                  double poisson, bool held = true) {
  auto s = std::make_shared<Scene>();
  s->gravity.setZero();
  *s->method_options = {{"beta", 1.0}};
  BodySpec body;
  body.name = "bar";
  body.generate = GenerateSpec{};
  body.generate->shape = "bar";
  body.generate->size = size;
  body.generate->nodes = nodes;
  body.material.young = {young};
  body.material.poisson = {poisson};
  s->bodies.push_back(body);
  if (held) {
    ConstraintSpec root;
    root.nodes.kind = "set";
    root.nodes.name = "z0";
    s->constraints.push_back(root);
  }
  return s;
}

inline void use_vanilla(Scene& s, double beta) {
  s.method = "vanilla";
  *s.method_options = {{"beta", beta}};
}

inline void use_conjac(Scene& s, const std::vector<Vec3>& nearest,
                       const nlohmann::json& options = conjac_options()) {
  s.method = "conjac";
  *s.method_options = options;
  nlohmann::json points = nlohmann::json::array();
  for (const Vec3& p : nearest) points.push_back({p.x(), p.y(), p.z()});
  s.method_options["dynamic"] = nlohmann::json::array();
  if (!nearest.empty()) s.method_options["dynamic"].push_back({{"nearest", points}});
}

inline Simulation simulate(std::shared_ptr<Scene> s) { return Simulation(std::move(s)); }

inline void run(Simulation& sim, int steps) {
  for (int k = 0; k < steps; ++k) sim.step();
}

}  // namespace limber::test
