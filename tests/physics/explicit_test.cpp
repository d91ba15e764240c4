// Explicit steps: beta = 0.
#include "scenes.hpp"

#include <limber/fem/assemble.hpp>

#include <gtest/gtest.h>

namespace limber::test {
namespace {

// beta = 0 is symplectic Euler: v1 = v0 + h M^-1 f(x0), x1 = x0 + h v1.
TEST(Explicit, VanillaWithoutStiffnessIsSymplecticEuler) {
  auto s = bar({.04, .04, .14}, {3, 3, 5}, 1e4, .3);
  s->h = 2e-4;
  s->gravity = {0, -9.81, 0};
  use_vanilla(*s, 0);
  Simulation sim = simulate(s);
  VecX x = sim.state().x, v = sim.state().v;
  fem::Assembled elastic;
  StepInput in;
  script_input(sim.model(), sim.state(), s->h, in);
  for (int k = 0; k < 200; ++k) {
    fem::assemble_force(*sim.model().elements, x, {}, elastic);
    for (Index i = 0; i < x.size(); ++i)
      v[i] = in.fixed[i] ? 0 : v[i] + s->h * (elastic.f[i] / sim.model().mass[i] + s->gravity[i % 3]);
    x += s->h * v;
    sim.step();
  }
  EXPECT_GT((x - initial_state(sim.model()).x).norm(), 1e-3);
  EXPECT_LT((sim.state().x - x).lpNorm<Eigen::Infinity>(), 1e-11);
  EXPECT_LT((sim.state().v - v).lpNorm<Eigen::Infinity>(), 1e-9);
}

TEST(Explicit, ConJacWithoutStiffnessFallsFreely) {
  auto s = bar({.04, .04, .14}, {3, 3, 5}, 1e4, .3, false);
  s->gravity = {0, -9.81, 0};
  auto options = conjac_options("linear-implicit");
  options["beta"] = 0;
  use_conjac(*s, {{0, 0, 0}, {.04, .04, .14}, {.04, 0, .07}, {0, .04, .1}}, options);
  Simulation sim = simulate(s);
  run(sim, 50);
  const double fallen = 9.81 * s->h * s->h * 50 * 51 / 2;
  for (Index i = 0; i < sim.model().nodes(); ++i)
    ASSERT_NEAR(sim.state().x[3 * i + 1], sim.model().mesh.rest[i].y() - fallen, 1e-9);
}

}  // namespace
}  // namespace limber::test
