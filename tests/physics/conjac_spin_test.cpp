// Free bodies that spin with ConJac.
#include "scenes.hpp"

#include <limber/fem/assemble.hpp>
#include <limber/scene/load.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace limber::test {
namespace {

using nlohmann::json;

// How far the centre of mass, the spin and the strain of a free bar went in a second.
struct Spun {
  double drift = 0, spin = 0, strain = 0;
};

Spun spin(const json& method, const Vec3& omega, double h, double damping_stiffness = 0) {
  const Vec3 velocity(.1, 0, -.2);
  const json text = {{"limber", 1},
                     {"time", {{"step", h}, {"end", 1}}},
                     {"gravity", {0, 0, 0}},
                     {"damping", {{"stiffness", damping_stiffness}}},
                     {"method", method},
                     {"bodies",
                      {{{"mesh", {{"shape", "bar"}, {"size", {.03, .03, .09}}, {"nodes", {4, 4, 10}}}},
                        {"material", {{"model", "stable-neo-hookean-log"}, {"young", 1e4}, {"poisson", .4}}},
                        {"velocity", {velocity.x(), velocity.y(), velocity.z()}},
                        {"angular_velocity", {omega.x(), omega.y(), omega.z()}}}}}};
  Simulation sim = simulate(std::make_shared<Scene>(read_scene(text.dump(), "spin.json")));
  const Diagnostics a = measure(sim.model(), sim.state(), {});
  Spun out;
  std::vector<Mat3> F;
  while (sim.state().t < 1 - h / 2) {
    sim.step();
    const Diagnostics b = measure(sim.model(), sim.state(), {});
    const Vec3 gone = b.center_of_mass - a.center_of_mass;
    // About the origin: a centre of mass that moves straight ahead keeps its share.
    out.drift = std::max(out.drift, (gone - sim.state().t * velocity).norm());
    out.spin =
        std::max(out.spin, (b.angular_momentum - a.angular_momentum).norm() / a.angular_momentum.norm());
    fem::deformation_gradients(*sim.model().elements, sim.state().x, F);
    for (const Mat3& f : F)
      out.strain = std::max(out.strain, .5 * (f.transpose() * f - Mat3::Identity()).norm());
  }
  return out;
}

// Centrifugal forces stretch the bar, by 0.5 % at 5 rad/s, and nothing else may.
TEST(ConJacSpin, FreeBodySpinsAsInTheFullSpace) {
  const json nodes = json::array({{{"auto", 6}}});
  const std::vector<json> methods = {
      {{"dynamic", nodes}},
      {{"dynamic", json::array({{{"modes", 6}}})}},
      {{"dynamic", nodes}, {"newton_steps", 2}},
      {{"dynamic", nodes}, {"time_rule", "modal"}},
      {{"dynamic", nodes}, {"adaptive", json::object()}},
  };
  for (const Vec3& omega : {Vec3(0, 5, 0), Vec3(3, 4, 2), Vec3(0, 15, 0)}) {
    const Spun full = spin({{"type", "implicit"}, {"integrator", "sdirk2"}}, omega, 2e-3);
    for (json method : methods) {
      method["type"] = "conjac";
      const Spun reduced = spin(method, omega, 5e-3);
      EXPECT_LT(reduced.drift, 1e-13) << method << omega.transpose();
      EXPECT_LT(reduced.spin, 1e-12) << method << omega.transpose();
      EXPECT_LT(reduced.strain, 2 * full.strain) << method << omega.transpose();
    }
  }
}

// Damping by mass slows the spin as it slows every velocity; damping by stiffness must not.
TEST(ConJacSpin, OnlyDampingByMassSlowsIt) {
  EXPECT_LT(spin({{"type", "conjac"}, {"dynamic", json::array({{{"auto", 6}}})}}, {0, 5, 0}, 5e-3, 1e-3).spin,
            1e-8);
  auto s = bar({.03, .03, .09}, {4, 4, 10}, 1e5, .4, false);
  s->damping_mass = 2;
  s->bodies[0].angular_velocity = {0, 5, 0};
  use_conjac(*s, {{0, 0, 0}, {.03, 0, .09}, {0, .03, .05}});
  Simulation sim = simulate(s);
  const double before = measure(sim.model(), sim.state(), {}).angular_momentum.norm();
  run(sim, 100);
  const double after = measure(sim.model(), sim.state(), {}).angular_momentum.norm();
  EXPECT_NEAR(after / before, std::exp(-2 * 100 * s->h), 1e-3);
}

// A load at one end turns a spinning bar about all its axes. The full space at a fifth of the step tells
// where to.
TEST(ConJacSpin, LoadsTurnIt) {
  const auto end = [](const json& method, double h) {
    const json text = {{"limber", 1},
                       {"time", {{"step", h}, {"end", .5}}},
                       {"gravity", {0, 0, 0}},
                       {"method", method},
                       {"bodies",
                        {{{"mesh", {{"shape", "bar"}, {"size", {.03, .04, .09}}, {"nodes", {4, 4, 8}}}},
                          {"material", {{"young", 2e5}, {"poisson", .4}}},
                          {"angular_velocity", {1, 0, 8}}}}},
                       {"forces", {{{"nodes", {{"set", "z1"}}}, {"force", {0, .02, 0}}}}}};
    Simulation sim = simulate(std::make_shared<Scene>(read_scene(text.dump(), "turn.json")));
    while (!sim.done()) sim.step();
    return std::pair(sim.state().x, measure(sim.model(), sim.state(), {}).angular_momentum);
  };
  const auto [x_full, spin_full] = end({{"type", "implicit"}, {"integrator", "sdirk2"}}, 1e-3);
  const auto [x, spin] = end({{"type", "conjac"}, {"dynamic", json::array({{{"auto", 4}}})}}, 5e-3);
  EXPECT_LT((x - x_full).cwiseAbs().maxCoeff(), .01 * .09);
  EXPECT_LT((spin - spin_full).norm(), .01 * spin_full.norm());
}

}  // namespace
}  // namespace limber::test
