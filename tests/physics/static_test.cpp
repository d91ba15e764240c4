// `static` where there is nothing, or nothing any more, to do.
#include "scenes.hpp"

#include <limber/core/error.hpp>

#include <gtest/gtest.h>

namespace limber::test {
namespace {

std::shared_ptr<Scene> static_bar(const Vec3& size, const std::array<Index, 3>& nodes, double young) {
  auto s = bar(size, nodes, young, .3);
  s->method = "static";
  *s->method_options = {{"tolerance", 1e-10}, {"max_iterations", 200}};
  return s;
}

TEST(Static, ABodyAtRestStaysAndIsAnalysedOnce) {
  // Far from the origin too, where rounding leaves larger forces.
  for (const double away : {0.0, 50.0}) {
    auto s = static_bar({.1, .1, .1}, {3, 3, 3}, 1e6);
    s->bodies[0].translation = Vec3::Constant(away);
    Simulation sim = simulate(s);
    const VecX x = sim.state().x;
    for (int k = 0; k < 5; ++k) EXPECT_EQ(sim.step().symbolic_analyses, 1);
    EXPECT_LT((sim.state().x - x).cwiseAbs().maxCoeff(), 1e-12 * (1 + away));
  }
}

TEST(Static, GoesBackWhenALoadHasEnded) {
  auto s = static_bar({.1, .1, .3}, {3, 3, 7}, 1e5);
  ForceSpec pull;
  pull.nodes.kind = "set";
  pull.nodes.name = "z1";
  pull.force = Vec3(0, -5, 0);
  pull.until = 0.012;
  s->forces.push_back(pull);
  Simulation sim = simulate(s);
  const VecX x = sim.state().x;
  sim.step();
  sim.step();
  EXPECT_GT((sim.state().x - x).cwiseAbs().maxCoeff(), 1e-3);
  for (int k = 0; k < 5; ++k) sim.step();
  EXPECT_LT((sim.state().x - x).cwiseAbs().maxCoeff(), 1e-9);
}

TEST(Static, FindsTheShapeUnderActivationAlone) {
  auto s = static_bar({.03, .03, .15}, {4, 4, 11}, 3e4);
  FibreSpec fibre;
  fibre.model = FibreModel::kStVenantKirchhoff;
  fibre.stiffness = {2e4};
  fibre.direction = Vec3::UnitZ();
  fibre.activation = "pull";
  s->bodies[0].material.fibre = fibre;
  s->activations.push_back({"pull", {{0, 0}, {0.02, 0.3}, {1, 0.3}}});
  Simulation sim = simulate(s);
  for (int k = 0; k < 8; ++k) sim.step();
  double end = 0;
  for (Index i = 0; i < sim.model().nodes(); ++i) end = std::max(end, sim.state().x[3 * i + 2]);
  EXPECT_LT(end, .149);  // it has become shorter
}

TEST(Static, AThinStiffBeamConvergesAtTheDefaultTolerance) {
  auto s = static_bar({.002, .002, 1}, {2, 2, 101}, 2e11);
  s->gravity = {0, -9.81, 0};
  s->bodies[0].material.density = {7800.0};
  Simulation sim = simulate(s);
  for (int k = 0; k < 3; ++k) EXPECT_LT(sim.step().iterations, 100);
}

TEST(Static, AFailureDoesNotAdviseASmallerTimeStep) {
  auto s = static_bar({.1, .1, .3}, {3, 3, 7}, 1e5);
  s->method_options["max_iterations"] = 1;
  s->gravity = {0, -500, 0};
  Simulation sim = simulate(s);
  try {
    sim.step();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find("time step"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("max_iterations"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace limber::test
