// Energies that methods report between two measurements are those that would be measured.
#include "implicit_scenes.hpp"
#include "scenes.hpp"

#include <limber/scene/load.hpp>

#include <gtest/gtest.h>

namespace limber::test {
namespace {

void expect_measured(Simulation& sim, int steps) {
  for (int k = 0; k < steps; ++k) {
    const StepReport report = sim.step();
    const Diagnostics d = measure(sim.model(), sim.state(), sim.input().activation);
    ASSERT_EQ(report.energy.size(), 3u);
    EXPECT_NEAR(report.energy.at("kinetic"), d.kinetic, 1e-12 * std::abs(d.kinetic));
    EXPECT_NEAR(report.energy.at("elastic"), d.elastic, 1e-12 * std::abs(d.elastic));
    EXPECT_NEAR(report.energy.at("gravity"), d.gravity, 1e-12 * std::abs(d.gravity));
  }
}

TEST(KnownEnergy, Static) {
  auto s = bar({.04, .04, .14}, {3, 3, 5}, 1e4, .3);
  s->gravity = {0, -9.81, 0};
  s->method = "static";
  *s->method_options = {{"tolerance", 1e-10}, {"max_iterations", 200}};
  Simulation sim = simulate(s);
  expect_measured(sim, 2);
  EXPECT_GT(measure(sim.model(), sim.state(), {}).elastic, 1e-6);
}

TEST(KnownEnergy, Implicit) {
  for (const char* integrator : {"bdf1", "bdf2", "sdirk2", "quasistatic"}) {
    SCOPED_TRACE(integrator);
    auto s = bar({.04, .04, .14}, {3, 3, 5}, 1e4, .3);
    s->gravity = {0, -9.81, 0};
    s->method = "implicit";
    *s->method_options = implicit_options(integrator, "newton-direct");
    Simulation sim = simulate(s);
    expect_measured(sim, 3);
  }
}

TEST(KnownEnergy, Joints) {
  auto s = std::make_shared<Scene>(load_scene(LIMBER_SOURCE_DIR "/scenes/joints/klann.json"));
  Simulation sim(s);
  expect_measured(sim, 5);
}

}  // namespace
}  // namespace limber::test
