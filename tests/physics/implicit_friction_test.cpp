// Coulomb's law in `implicit`: a block that slides is slowed by mu g, whatever the integrator, the step and
// the damping of contact.
#include "implicit_scenes.hpp"

#include <gtest/gtest.h>

namespace limber::test {
namespace {

std::shared_ptr<Scene> sliding_block(const std::string& integrator, double damping, double h) {
  auto s = bar_scene(integrator, "newton-direct", {4, 3, 4});
  s->constraints.clear();
  s->h = h;
  s->gravity = Vec3(0, -9.81, 0);
  BodySpec& body = s->bodies[0];
  body.generate->size = Vec3(.1, .04, .1);
  body.material.model = MaterialModel::kStableNeoHookeanLog;
  body.material.young = Varying{1e6};
  body.material.poisson = Varying{.3};
  body.velocity = {1, 0, 0};
  s->contact.friction = .3;
  s->method_options["contact_damping"] = damping;
  ObstacleSpec floor;
  floor.name = "floor";
  floor.shape = "plane";
  floor.normal = Vec3::UnitY();
  s->obstacles.push_back(floor);
  return s;
}

TEST(ImplicitFriction, ABlockIsSlowedByMuG) {
  for (const std::string integrator : {"bdf1", "bdf2", "sdirk2"})
    for (const double damping : {0.0, 0.01})
      for (const double h : {2e-3, 5e-4}) {
        Simulation sim(sliding_block(integrator, damping, h));
        const double mass = sim.model().mass.sum() / 3;
        const auto speed = [&] { return measure(sim.model(), sim.state(), {}).momentum.x() / mass; };
        const int settle = static_cast<int>(std::lround(0.02 / h)),
                  steps = static_cast<int>(std::lround(0.04 / h));
        for (int k = 0; k < settle; ++k) sim.step();
        const double before = speed();
        for (int k = 0; k < steps; ++k) sim.step();
        const double rate = (before - speed()) / (steps * h);
        EXPECT_NEAR(rate, .3 * 9.81, .03 * .3 * 9.81) << integrator << " damping " << damping << " h " << h;
      }
}

}  // namespace
}  // namespace limber::test
