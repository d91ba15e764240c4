// ConJac against the full method, statics and its own promises.
#include "scenes.hpp"

#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/sim/static_solve.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace limber::test {
namespace {

const std::vector<Vec3> kAxis = {{.02, .02, .07}, {.02, .02, .14}};

std::shared_ptr<Scene> soft_bar() { return bar({.04, .04, .14}, {4, 4, 8}, 1e4, .4); }

VecX static_shape(const Simulation& sim) {
  StepInput in;
  State state = initial_state(sim.model());
  script_input(sim.model(), state, sim.scene().h, in);
  const StaticResult r = solve_static(sim.model(), in, state.x, 1e-12);
  EXPECT_TRUE(r.converged) << r.why;
  return state.x;
}

// Runs with damping until nothing moves and returns the largest distance from the static shape over the
// body's size.
double distance_at_rest(std::shared_ptr<Scene> s) {
  s->damping_mass = 15;
  Simulation sim = simulate(s);
  run(sim, 1200);
  EXPECT_LT(measure(sim.model(), sim.state(), sim.input().activation).max_speed, 1e-8);
  return (sim.state().x - static_shape(sim)).cwiseAbs().maxCoeff() / sim.model().size;
}

TEST(ConJac, AllNodesDynamicIsVanilla) {
  auto full = bar({.04, .04, .06}, {3, 3, 4}, 2e4, .45);
  full->gravity = {0, -9.81, 0};
  full->damping_mass = .3;
  full->damping_stiffness = 1e-3;
  MotionKey start, end;
  end.t = .1;
  end.translation = {0, .01, .005};
  end.rotation = {0, 0, .5};
  full->constraints[0].motion = {start, end};
  auto reduced = std::make_shared<Scene>(*full);
  use_vanilla(*full, .7);
  nlohmann::json options = conjac_options("linear-implicit");
  options["beta"] = .7;
  use_conjac(*reduced, {}, options);
  reduced->method_options["dynamic"] = nlohmann::json::array({"all"});
  Simulation a = simulate(full), b = simulate(reduced);
  for (int k = 0; k < 40; ++k) {
    a.step();
    b.step();
    ASSERT_LT((a.state().x - b.state().x).cwiseAbs().maxCoeff(), 1e-11) << "step " << k;
  }
  EXPECT_GT(measure(a.model(), a.state(), {}).max_displacement, 5e-3);  // something happened
}

TEST(ConJac, RestsWhereStaticsSays) {
  for (const char* rule : {"guarded", "linear-implicit", "midpoint"}) {
    auto s = soft_bar();
    s->gravity = {0, -9.81, 0};
    use_conjac(*s, {{.02, .02, .14}}, conjac_options(rule));
    EXPECT_LT(distance_at_rest(s), 1e-8) << rule;
  }
}

TEST(ConJac, RestsWhereStaticsSaysWithLayersAndFibres) {
  auto layers = bar({.03, .03, .085}, {4, 4, 11}, 1e4, .4);
  layers->gravity = {0, 0, -9.81};
  layers->bodies[0].material.young = {};
  layers->bodies[0].material.young.formula = "if(sin(z * 185) > 0, 1e4, 2e5)";
  use_conjac(*layers, {{.015, .015, .085}});
  EXPECT_LT(distance_at_rest(layers), 1e-8);

  auto helix = bar({.03, .03, .085}, {4, 4, 11}, 1e4, .4);
  helix->gravity = {0, 0, -9.81};
  FibreSpec fibre;
  fibre.model = FibreModel::kStVenantKirchhoff;
  fibre.stiffness = {2e4};
  fibre.formula = {"-(y - 0.015)", "x - 0.015", "0.01"};
  helix->bodies[0].material.fibre = fibre;
  use_conjac(*helix, {{.015, .015, .085}});
  EXPECT_LT(distance_at_rest(helix), 1e-8);
}

// First bending period against the full method at a small step: condensation is Rayleigh-Ritz, so it is a
// little stiff, and less so with more nodes.
TEST(ConJac, BendingPeriodIsAlittleShortAndImprovesWithNodes) {
  auto period = [](std::shared_ptr<Scene> s) {
    s->h = 4e-3;
    s->end = 4;
    Simulation sim = simulate(s);
    State state = sim.state();
    for (Index i = 0; i < sim.model().nodes(); ++i) {
      const double z = sim.model().mesh.rest[i].z() / .14;
      state.v[3 * i] = .02 * z * z;
    }
    sim.restore(state);
    const Index tip = sim.model().nodes() - 1;
    std::vector<double> up;  // upward zero crossings of the tip
    double before = 0;
    while (!sim.done() && up.size() < 4) {
      sim.step();
      const double x = sim.state().x[3 * tip] - sim.model().mesh.rest[tip].x();
      if (before < 0 && x >= 0) up.push_back(sim.state().t - sim.scene().h * x / (x - before));
      before = x;
    }
    EXPECT_EQ(up.size(), 4u);
    return up.size() == 4 ? (up[3] - up[0]) / 3 : 0;
  };
  auto full = soft_bar();
  use_vanilla(*full, .5);
  auto one = soft_bar(), three = soft_bar();
  use_conjac(*one, {{.02, .02, .14}});
  use_conjac(*three, {{.02, .02, .06}, {.02, .02, .10}, {.02, .02, .14}});
  const double t = period(full), t1 = period(one), t3 = period(three);
  EXPECT_LT(t1, t);
  EXPECT_GT(t1, .94 * t);
  EXPECT_LT(std::abs(t3 - t), std::abs(t1 - t));
  EXPECT_NEAR(t3 / t, 1, .05);
}

TEST(ConJac, DriftsWithoutStabilisationAndNotWithIt) {
  auto largest_drift = [](double gamma) {
    auto s = soft_bar();
    s->end = 2;
    nlohmann::json options = conjac_options("linear-implicit");
    options["gamma"] = gamma;
    use_conjac(*s, {{.02, .02, .07}}, options);
    ConstraintSpec hand;
    hand.nodes.kind = "set";
    hand.nodes.name = "z1";
    hand.center = {.02, .02, .14};
    MotionKey key[5];
    for (int k = 0; k < 5; ++k) key[k].t = .5 * k;
    key[1].rotation = key[3].rotation = {0, 0, 2.5};
    key[2].translation = {.05, 0, -.03};
    hand.motion.assign(key, key + 5);
    s->constraints.push_back(hand);
    Simulation sim = simulate(s);
    double drift = 0;
    while (!sim.done()) drift = std::max(drift, sim.step().extra.at("drift"));
    return drift / .14;
  };
  const double without = largest_drift(0), with = largest_drift(1.0 / 3);
  EXPECT_GT(without, 3 * with);
  EXPECT_LT(with, .08);
}

TEST(ConJac, GuardedRuleKeepsEnergyAndNeverGainsIt) {
  auto s = soft_bar();
  s->end = 2;
  use_conjac(*s, kAxis);
  Simulation sim = simulate(s);
  State state = sim.state();
  for (Index i = 0; i < sim.model().nodes(); ++i)
    state.x[3 * i] += .25 * std::pow(sim.model().mesh.rest[i].z(), 2) / .14;
  sim.restore(state);
  run(sim, 20);  // the quasistatic nodes find their places
  const double e0 = measure(sim.model(), sim.state(), {}).total();
  double most = 0, last = 0;
  while (!sim.done()) {
    sim.step();
    last = measure(sim.model(), sim.state(), {}).total();
    most = std::max(most, last);
  }
  EXPECT_LT(most, 1.002 * e0);
  EXPECT_GT(last, .85 * e0);
}

TEST(ConJac, SurvivesAViolentRelease) {
  for (int dynamic : {1, 4}) {
    auto s = bar({.04, .04, .14}, {4, 4, 8}, 3e4, .49);
    s->end = 1;
    std::vector<Vec3> points;
    for (int k = 1; k <= dynamic; ++k) points.push_back({.02, .02, .14 * k / dynamic});
    use_conjac(*s, points);
    Simulation sim = simulate(s);
    State state = sim.state();
    for (Index i = 0; i < sim.model().nodes(); ++i) state.x[3 * i + 2] *= 2;  // twice as long, then let go
    sim.restore(state);
    const double e0 = measure(sim.model(), sim.state(), {}).total();
    while (!sim.done()) {
      sim.step();
      ASSERT_LT(measure(sim.model(), sim.state(), {}).total(), 1.01 * e0);
    }
  }
}

TEST(ConJac, FreeBodyFallsExactlyAndUndeformed) {
  auto s = bar({.04, .04, .14}, {4, 4, 8}, 1e4, .4, false);
  s->gravity = {0, -9.81, 0};
  s->bodies[0].velocity = {.3, .5, 0};
  use_conjac(*s, {{0, 0, 0}, {.04, 0, .14}, {0, .04, .07}});
  Simulation sim = simulate(s);
  run(sim, 100);
  const double h = s->h, t = 100 * h;
  std::vector<Mat3> F;
  fem::deformation_gradients(*sim.model().elements, sim.state().x, F);
  for (const Mat3& f : F) ASSERT_LT((f - Mat3::Identity()).norm(), 1e-10);
  // The guarded rule is the midpoint rule, which is exact for a constant force.
  const Vec3 fallen = Vec3(node(sim.state().x, 5)) - sim.model().mesh.rest[5];
  EXPECT_NEAR(fallen.x(), .3 * t, 1e-12);
  EXPECT_NEAR(fallen.y(), .5 * t - .5 * 9.81 * t * t, 1e-10);
}

TEST(ConJac, PieceWithoutDynamicNodesBorrowsSome) {
  auto s = bar({.04, .04, .14}, {4, 4, 8}, 1e4, .4, false);
  s->gravity = {0, -9.81, 0};
  use_conjac(*s, {});
  Simulation sim = simulate(s);
  const StepReport r = sim.step();
  EXPECT_EQ(r.extra.at("dynamic_nodes"), 4);
  run(sim, 50);
  EXPECT_NEAR(measure(sim.model(), sim.state(), {}).center_of_mass.y(), .02 - .5 * 9.81 * .255 * .255, 1e-9);
}

TEST(ConJac, CutKeepsMassMomentumAndGoesOn) {
  auto s = bar({.03, .03, .12}, {4, 4, 13}, 1e4, .4);
  s->gravity = {0, -9.81, 0};
  s->end = .6;
  ConstraintSpec far;
  far.nodes.kind = "set";
  far.nodes.name = "z1";
  s->constraints.push_back(far);
  use_conjac(*s, {{.015, .015, .04}, {.015, .015, .07}});
  EventSpec first, second, nothing;
  first.time = .1;
  first.point = {0, 0, .055};
  first.normal = {0, 0, 1};
  second = first;
  second.time = .2;
  second.point = {0, 0, .095};
  nothing = first;
  nothing.time = .3;
  nothing.point = {0, 0, 1};
  s->events = {first, second, nothing};
  Simulation sim = simulate(s);
  std::vector<std::string> notices;
  double mass = sim.model().mass.sum();
  long analyses = 0;
  while (!sim.done()) {
    const StepReport r = sim.step();
    analyses = r.symbolic_analyses;
    for (std::string& n : sim.take_notices()) notices.push_back(std::move(n));
  }
  EXPECT_EQ(sim.model().pieces.size(), 3u);
  EXPECT_EQ(sim.state().epoch, 2);
  EXPECT_EQ(analyses, 1);
  EXPECT_NEAR(sim.model().mass.sum(), mass, 1e-12);
  ASSERT_EQ(notices.size(), 4u);
  EXPECT_NE(notices[0].find("follow what is slower than"), std::string::npos) << notices[0];
  EXPECT_NE(notices[3].find("separates nothing"), std::string::npos) << notices[3];
  // The middle piece is free: it has fallen 0.4 s, and the others hang on.
  for (const Piece& piece : sim.model().pieces) {
    double z = 0, y = 0;
    for (Index i : piece.nodes) {
      z += sim.model().mesh.rest[i].z() / static_cast<double>(piece.nodes.size());
      y += sim.state().x[3 * i + 1] / static_cast<double>(piece.nodes.size());
    }
    if (z > .06 && z < .09)
      EXPECT_LT(y, -.5);
    else
      EXPECT_GT(y, -.1);
  }
}

TEST(ConJac, StepperIsScratchAndThreadsDoNotMatter) {
  auto s = soft_bar();
  s->gravity = {0, -9.81, 0};
  use_conjac(*s, kAxis);
  Simulation plain = simulate(s);
  run(plain, 20);

  State state = simulate(s).state();
  for (int k = 0; k < 20; ++k) {
    Simulation fresh = simulate(s);
    fresh.restore(state);
    fresh.step();
    state = fresh.state();
  }
  EXPECT_TRUE(state.x == plain.state().x);
  EXPECT_TRUE(state.v == plain.state().v);

  for (int threads : {1, 3}) {
    set_threads(threads);
    Simulation other = simulate(s);
    run(other, 20);
    EXPECT_TRUE(other.state().x == plain.state().x) << threads;
  }
  set_threads(0);
}

}  // namespace
}  // namespace limber::test
