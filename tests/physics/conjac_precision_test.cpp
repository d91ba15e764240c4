// ConJac with factors of K in single precision against factors in double precision.
#include "scenes.hpp"

#include <limber/core/parallel.hpp>
#include <limber/sim/static_solve.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace limber::test {
namespace {

enum class Dynamic { kNodes, kModes };

std::shared_ptr<Scene> hanging_bar(Dynamic dynamic, const char* precision, const char* young = "1e4") {
  auto s = bar({.04, .04, .14}, {4, 4, 8}, 1e4, .45);
  s->bodies[0].material.young = {};
  s->bodies[0].material.young.formula = young;
  s->gravity = {0, -9.81, 0};
  nlohmann::json options = conjac_options("guarded");
  options["precision"] = precision;
  use_conjac(*s, {{.02, .02, .07}, {.02, .02, .14}}, options);
  if (dynamic == Dynamic::kModes) s->method_options["dynamic"] = nlohmann::json::array({{{"modes", 6}}});
  return s;
}

TEST(ConJacPrecision, SinglePrecisionMovesTheSame) {
  Simulation exact = simulate(hanging_bar(Dynamic::kModes, "double")),
             rounded = simulate(hanging_bar(Dynamic::kModes, "single"));
  double apart = 0, moved = 0;
  for (int k = 0; k < 80; ++k) {
    exact.step();
    EXPECT_EQ(rounded.step().fallbacks.count("double_precision"), 0U) << k;
    apart = std::max(apart, (rounded.state().x - exact.state().x).cwiseAbs().maxCoeff());
    moved = std::max(moved, measure(exact.model(), exact.state(), {}).max_displacement);
  }
  EXPECT_GT(moved, .05);
  EXPECT_LT(apart, 1e-4 * moved);
  EXPECT_GT(apart, 1e-11 * moved);  // it is single precision indeed
}

// Forces are doubles, and only forces say where a body rests.
TEST(ConJacPrecision, RestsWhereStaticsSays) {
  auto s = hanging_bar(Dynamic::kModes, "single");
  s->damping_mass = 15;
  Simulation sim = simulate(s);
  run(sim, 1200);
  StepInput in;
  State still = initial_state(sim.model());
  script_input(sim.model(), still, sim.scene().h, in);
  const StaticResult r = solve_static(sim.model(), in, still.x, 1e-12);
  ASSERT_TRUE(r.converged) << r.why;
  EXPECT_LT((sim.state().x - still.x).cwiseAbs().maxCoeff(), 1e-8 * sim.model().size);
}

// A stiff block on soft flesh: the condition number of K is beyond what floats hold. And dynamic nodes. Every
// factor is then made in double precision, and the run is that of double precision, to the last bit.
TEST(ConJacPrecision, DoublePrecisionWhereSingleDoesNotDo) {
  for (const auto& [dynamic, young] :
       {std::pair{Dynamic::kModes, "if(z > 0.04, 1e11, 1e4)"}, {Dynamic::kNodes, "1e4"}}) {
    Simulation exact = simulate(hanging_bar(dynamic, "double", young)),
               rounded = simulate(hanging_bar(dynamic, "single", young));
    for (int k = 0; k < 10; ++k) {
      exact.step();
      EXPECT_GE(rounded.step().fallbacks["double_precision"], 1) << young << ", step " << k;
    }
    EXPECT_GT(measure(exact.model(), exact.state(), {}).max_displacement, 1e-4);
    EXPECT_EQ(exact.state().x, rounded.state().x) << young;
    EXPECT_EQ(exact.state().v, rounded.state().v) << young;
  }
}

TEST(ConJacPrecision, RestartIsExactAndThreadsDoNotMatter) {
  const auto fresh = [] { return simulate(hanging_bar(Dynamic::kModes, "single")); };
  set_threads(1);
  Simulation one = fresh();
  run(one, 12);
  set_threads(3);
  Simulation three = fresh();
  run(three, 12);
  EXPECT_EQ(one.state().x, three.state().x);
  Simulation again = fresh();
  again.restore(one.state());
  run(again, 12);
  run(one, 12);
  EXPECT_EQ(one.state().x, again.state().x);
  EXPECT_EQ(one.state().v, again.state().v);
  set_threads(0);
}

}  // namespace
}  // namespace limber::test
