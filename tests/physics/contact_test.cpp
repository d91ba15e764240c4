// Bodies that touch obstacles, in the full space and with ConJac, against Newton and Coulomb.
#include "scenes.hpp"

#include <limber/core/parallel.hpp>
#include <limber/sim/contact_state.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace limber::test {
namespace {

constexpr double kG = 9.81;
const std::vector<Vec3> kCorners = {{0, 0, .05}, {.1, 0, .05}, {0, .1, .05}, {.1, .1, .05}, {.05, .05, .02}};

// A flat block, 10 x 10 x 5 cm and 0.5 kg, on the plane z = 0 that is tilted by `angle`: gravity has a share
// along x.
std::shared_ptr<Scene> block(const std::string& method, double angle = 0) {
  auto s = bar({.1, .1, .05}, {5, 5, 3}, 4e4, .4, false);
  s->gravity = {kG * std::sin(angle), 0, -kG * std::cos(angle)};
  ObstacleSpec floor;
  floor.name = "floor";
  floor.shape = "plane";
  floor.normal = {0, 0, 1};
  s->obstacles.push_back(floor);
  if (method == "vanilla")
    use_vanilla(*s, 1);
  else
    use_conjac(*s, kCorners);
  return s;
}

std::shared_ptr<Scene> ball(const std::string& method, double height) {
  auto s = block(method);
  GenerateSpec& g = *s->bodies[0].generate;
  g.shape = "sphere";
  g.radius = .05;
  g.edge = .016;
  s->bodies[0].translation = {0, 0, .05 + height};
  s->bodies[0].rotation = {.4, .1, 0};
  if (method == "conjac") {
    s->method_options["dynamic"] = nlohmann::json::array({{{"auto", 6}}});
  }
  return s;
}

const char* const kMethods[] = {"vanilla", "conjac"};

TEST(Contact, ABlockSticksBelowTheFrictionAngle) {
  for (const char* method : kMethods) {
    auto s = block(method, std::atan(.3) - .01);
    s->damping_stiffness = 2e-3;
    Simulation sim = simulate(s);
    run(sim, 150);
    const Diagnostics before = measure(sim.model(), sim.state(), {});
    run(sim, 50);
    const Diagnostics after = measure(sim.model(), sim.state(), {});
    // ConJac's quasistatic nodes take longer to settle: it still creeps by micrometres.
    const bool full = method == kMethods[0];
    EXPECT_LT((after.center_of_mass - before.center_of_mass).norm(), full ? 1e-7 : 2e-5) << method;
    EXPECT_LT(after.max_speed, full ? 1e-5 : 1e-4) << method;
  }
}

TEST(Contact, ABlockSlidesAboveTheFrictionAngleAsCoulombSays) {
  for (const char* method : kMethods)
    for (const double mu : {.3, .1}) {
      const double angle = std::atan(.3) + .1;
      auto s = block(method, angle);
      s->contact.friction = mu;
      s->damping_stiffness = 2e-3;
      Simulation sim = simulate(s);
      run(sim, 60);
      const Vec3 p0 = measure(sim.model(), sim.state(), {}).momentum;
      run(sim, 60);
      const Vec3 p1 = measure(sim.model(), sim.state(), {}).momentum;
      const double mass = sim.model().mass.sum() / 3;
      const double a = (p1[0] - p0[0]) / mass / (60 * s->h);
      EXPECT_NEAR(a / (kG * (std::sin(angle) - mu * std::cos(angle))), 1, .02) << method << " mu " << mu;
    }
}

// A block that comes down at the start of the run stops after v^2 / (2 mu g), although its weight rests on
// quasistatic nodes that have yet to arrive at the floor.
TEST(Contact, ASlidingBlockStopsWhereCoulombSays) {
  for (const char* method : kMethods)
    for (const double mu : {.3, .5}) {
      auto s = block(method);
      s->contact.friction = mu;
      s->bodies[0].velocity = {1, 0, 0};
      Simulation sim = simulate(s);
      const double x0 = measure(sim.model(), sim.state(), {}).center_of_mass[0];
      run(sim, 160);
      EXPECT_LT(measure(sim.model(), sim.state(), {}).max_speed, .01) << method;
      const double way = measure(sim.model(), sim.state(), {}).center_of_mass[0] - x0;
      EXPECT_NEAR(way / (1 / (2 * mu * kG)), 1, .05) << method << " mu " << mu;
    }
}

TEST(Contact, RestingPenetrationIsWeightOverStiffness) {
  for (const char* method : kMethods) {
    auto s = block(method);
    s->contact.stiffness = 3000;
    s->contact.friction = 0;
    s->damping_stiffness = 5e-3;
    Simulation sim = simulate(s);
    run(sim, 250);
    EXPECT_LT(measure(sim.model(), sim.state(), {}).max_speed, 1e-6) << method;
    double depth = 0;
    Index count = 0;
    for (const Contact& c : touching(sim.model().contact, sim.state().x, sim.state().t)) {
      depth += c.depth;
      ++count;
    }
    EXPECT_EQ(count, 25) << method;
    const double weight = sim.model().mass.sum() / 3 * kG;
    EXPECT_NEAR(depth * 3000 / weight, 1, 1e-6) << method;
  }
}

TEST(Contact, ABouncingBodyNeverGainsEnergy) {
  for (const char* method : kMethods) {
    auto s = ball(method, .1);
    Simulation sim = simulate(s);
    const double start = measure(sim.model(), sim.state(), {}).total();
    const double fall = sim.model().mass.sum() / 3 * kG * .1;  // what there is to lose
    double least = start;
    Index most_contacts = 0;
    double deepest = 0;
    for (int k = 0; k < 160; ++k) {
      const StepReport r = sim.step();
      const double e = measure(sim.model(), sim.state(), {}).total();
      EXPECT_LT(e - least, 2e-3 * fall) << method << " step " << k;
      least = std::min(least, e);
      most_contacts = std::max(most_contacts, r.contacts);
      deepest = std::max(deepest, r.extra.at("contact_depth"));
    }
    EXPECT_GT(most_contacts, 5) << method;
    EXPECT_LT(deepest, .01 * sim.model().size) << method;
    EXPECT_LT(least, start - .05 * fall) << method;  // impact is not free
  }
}

TEST(Contact, FarFromObstaclesNothingChangesByABit) {
  for (const char* method : kMethods) {
    auto with = ball(method, 3.0), without = ball(method, 3.0);
    for (auto* s : {with.get(), without.get()}) s->bodies[0].angular_velocity = {1, 2, 3};
    without->obstacles.clear();
    Simulation a = simulate(with), b = simulate(without);
    run(a, 30);
    run(b, 30);
    EXPECT_EQ(a.state().x, b.state().x) << method;
    EXPECT_EQ(a.state().v, b.state().v) << method;
  }
}

// Frictionless, so that the rest state has no history.
TEST(Contact, ConJacLandsInTheRestStateOfTheFullSpace) {
  std::vector<double> elastic, height;
  for (const char* method : kMethods) {
    auto s = block(method);
    s->bodies[0].translation = {0, 0, .02};
    s->contact.friction = 0;
    s->damping_stiffness = 5e-3;
    Simulation sim = simulate(s);
    run(sim, 400);
    const Diagnostics d = measure(sim.model(), sim.state(), {});
    EXPECT_LT(d.max_speed, 1e-6) << method;
    elastic.push_back(d.elastic);
    height.push_back(d.center_of_mass[2]);
  }
  EXPECT_NEAR(elastic[1] / elastic[0], 1, 1e-5);
  EXPECT_NEAR(height[1], height[0], 1e-8);
}

TEST(Contact, AllNodesDynamicTouchAsTheFullSpace) {
  auto full = block("vanilla", .1);
  auto reduced = std::make_shared<Scene>(*full);
  use_vanilla(*full, .8);
  nlohmann::json options = conjac_options("linear-implicit");
  options["beta"] = .8;
  use_conjac(*reduced, {}, options);
  reduced->method_options["dynamic"] = nlohmann::json::array({"all"});
  Simulation a = simulate(full), b = simulate(reduced);
  for (int k = 0; k < 30; ++k) {
    a.step();
    b.step();
    ASSERT_LT((a.state().x - b.state().x).cwiseAbs().maxCoeff(), 1e-9) << "step " << k;
  }
  EXPECT_GT(touching(a.model().contact, a.state().x, a.state().t).size(), 20u);
}

// A floor that rises carries the block; friction takes it along sideways.
TEST(Contact, AMovingFloorCarriesTheBlock) {
  for (const char* method : kMethods) {
    auto s = block(method);
    s->contact.friction = 1;
    s->damping_stiffness = 5e-3;
    s->obstacles[0].interpolation = "linear";
    s->obstacles[0].motion = {{0, Vec3::Zero(), Vec3::Zero(), 1}, {10, {1, 0, 2}, Vec3::Zero(), 1}};
    Simulation sim = simulate(s);
    run(sim, 250);
    const Diagnostics d = measure(sim.model(), sim.state(), {});
    const double mass = sim.model().mass.sum() / 3;
    EXPECT_NEAR(d.momentum[0] / mass, .1, 1e-3) << method;
    EXPECT_NEAR(d.momentum[2] / mass, .2, 1e-3) << method;
  }
}

TEST(Contact, AFreshStepperAndOtherThreadsGiveTheSameBits) {
  for (const char* method : kMethods) {
    auto s = ball(method, .03);
    s->bodies[0].velocity = {.4, 0, 0};
    set_threads(1);
    Simulation a = simulate(s);
    run(a, 40);
    set_threads(2);
    Simulation b = simulate(s);
    bool anchored = false;
    for (int k = 0; k < 40; ++k) {
      b.step();
      anchored = anchored || !b.state().contact_pairs.empty();
      Simulation fresh = simulate(s);
      fresh.restore(b.state());
      if (k % 8 == 7) b = std::move(fresh);
    }
    set_threads(0);
    EXPECT_TRUE(anchored);
    EXPECT_EQ(a.state().x, b.state().x) << method;
    EXPECT_EQ(a.state().v, b.state().v) << method;
    EXPECT_EQ(a.state().contact_anchors, b.state().contact_anchors) << method;
  }
}

// The paper's friction by filtering velocities (Bridson et al.): it slows and never turns a sliding block
// around.
TEST(Contact, FilteredFrictionSlowsASlidingBlock) {
  for (const char* method : kMethods) {
    auto s = block(method);
    s->contact.rule = "filter";
    s->contact.alpha = 0;
    s->bodies[0].velocity = {1, 0, 0};
    Simulation sim = simulate(s);
    double last = 1e9;
    for (int k = 0; k < 60; ++k) {
      sim.step();
      const double p = measure(sim.model(), sim.state(), {}).momentum[0];
      EXPECT_LE(p, last + 1e-6) << method << " step " << k;
      EXPECT_GE(p, -1e-3) << method;
      last = p;
    }
    const double mass = sim.model().mass.sum() / 3;
    EXPECT_LT(last, .8 * mass) << method;
  }
}

// With its own default alpha the filter is Coulomb's law; with 0.1 of the stiffness a block stops in two
// steps.
TEST(Contact, FilteredFrictionIsCoulombsWithoutAlpha) {
  for (const char* method : kMethods) {
    auto s = block(method);
    s->contact.rule = "filter";
    s->contact.alpha = 0;
    s->bodies[0].velocity = {1, 0, 0};
    s->damping_stiffness = 2e-3;
    Simulation sim = simulate(s);
    const double mass = sim.model().mass.sum() / 3;
    run(sim, 10);
    const double before = measure(sim.model(), sim.state(), {}).momentum[0] / mass;
    run(sim, 30);
    const double rate = (before - measure(sim.model(), sim.state(), {}).momentum[0] / mass) / (30 * s->h);
    // ConJac has friction of quasistatic nodes in the sense of least squares only (section 7 of the paper).
    EXPECT_NEAR(rate, .3 * kG, (method == kMethods[0] ? .1 : .3) * .3 * kG) << method;
  }
}

}  // namespace
}  // namespace limber::test
