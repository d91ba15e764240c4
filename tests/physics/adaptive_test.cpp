// ConJac's adaptivity: the metric, the regions, and what switching does to the motion.
#include "scenes.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/methods/conjac/adaptive.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/frame.hpp>
#include <limber/sim/static_solve.hpp>

#include <gtest/gtest.h>

#include <Eigen/Geometry>

#include <cmath>
#include <random>

namespace limber::test {
namespace {

nlohmann::json adaptive_options(double threshold, const std::string& rule = "guarded") {
  nlohmann::json o = conjac_options(rule);
  o["adaptive"] = {{"threshold", threshold},
                   {"hysteresis", .5},
                   {"window", 10},
                   {"start_dynamic", false},
                   {"regions", nlohmann::json::array()}};
  return o;
}

const std::vector<Vec3> kThree = {{.02, .02, .05}, {.02, .02, .10}, {.02, .02, .14}};

std::shared_ptr<Scene> adaptive_bar(double threshold, const std::string& rule = "guarded") {
  auto s = bar({.04, .04, .14}, {4, 4, 8}, 3e4, .4);
  use_conjac(*s, kThree, adaptive_options(threshold, rule));
  return s;
}

DynamicNodes representatives(const Model& model) {
  return choose_dynamic_nodes(model, ConJacOptions::read(*model.scene->method_options).dynamic, true);
}

double total_energy(const Simulation& sim) { return measure(sim.model(), sim.state(), {}).total(); }

// A bent and stretched shape.
VecX bent(const Model& model) {
  VecX x(3 * model.nodes());
  for (Index i = 0; i < model.nodes(); ++i) {
    const Vec3 p = model.mesh.rest[i];
    node(x, i) = Vec3(p.x() + 2 * p.z() * p.z(), .9 * p.y(), 1.1 * p.z() + p.x() * p.y());
  }
  return x;
}

TEST(Liveliness, RigidMotionsOfADeformedBodyAreZeroToRounding) {
  const Model model = build_model(adaptive_bar(.02));
  const LivelyRegions regions = make_regions(model, representatives(model), {});
  std::vector<Mat3> scratch;
  const VecX x0 = bent(model);
  for (const double angle : {0.0, .01, 1.0, 2.5}) {  // up to half a turn in one step
    const Mat3 R = Eigen::AngleAxisd(angle, Vec3(1, 2, -1).normalized()).toRotationMatrix();
    VecX x1(x0.size());
    for (Index i = 0; i < model.nodes(); ++i) node(x1, i) = R * node(x0, i) + Vec3(.1, -.3, .2);
    for (const double m : liveliness(model, regions, x0, x1, 5e-3, scratch)) EXPECT_LT(m, 1e-9) << angle;
  }
  // A uniform stretch at the rate of e/h has dS/dt = e/h I: a third of its entries count.
  for (const double m : liveliness(model, regions, x0, x0, 5e-3, scratch)) EXPECT_EQ(m, 0);
  VecX rest(x0.size());
  for (Index i = 0; i < model.nodes(); ++i) node(rest, i) = model.mesh.rest[i];
  const Mat3 R = Eigen::AngleAxisd(.7, Vec3::UnitX()).toRotationMatrix();
  VecX turned(x0.size()), larger(x0.size());
  for (Index i = 0; i < model.nodes(); ++i) {
    node(turned, i) = R * node(rest, i);
    node(larger, i) = 1.001 * node(turned, i);
  }
  for (const double m : liveliness(model, regions, turned, larger, 5e-3, scratch))
    EXPECT_NEAR(m, 1e-3 / 5e-3 / 3, 1e-12);
}

TEST(Regions, GrowFromTheNodesOrFollowTheScene) {
  auto s = adaptive_bar(.02);
  s->bodies[0].element_sets.push_back({"end", {}});
  s->bodies[0].element_sets[0].second.kind = "formula";
  s->bodies[0].element_sets[0].second.name = "z > 0.1";
  const Model model = build_model(s);
  const DynamicNodes nodes = representatives(model);
  ASSERT_EQ(nodes.regions, 3);
  auto height = [&](std::size_t e) {
    double z = 0;
    for (Index i : model.mesh.elements[e]) z += .25 * model.mesh.rest[i].z();
    return z;
  };
  const LivelyRegions grown = make_regions(model, nodes, {});
  double volume = 0;
  for (double v : grown.volume) volume += v;
  EXPECT_NEAR(volume, .04 * .04 * .14, 1e-12);  // every element has an owner
  for (std::size_t e = 0; e < grown.of_element.size(); ++e) {
    const double z = height(e);
    const Index expected = z < .055 ? 0 : z > .13 ? 2 : z > .085 && z < .105 ? 1 : -1;
    if (expected >= 0) {
      EXPECT_EQ(grown.of_element[e], expected) << z;
    }
  }

  const std::vector<RegionChoice> given = {{"root", "", read_selection("all")},
                                           {"middle", "", read_selection({{"formula", "z > 0.05"}})},
                                           {"", "", read_selection({{"set", "end"}})}};
  const LivelyRegions regions = make_regions(model, nodes, given);
  EXPECT_EQ(regions.names, (std::vector<std::string>{"root", "middle", "3"}));
  for (std::size_t e = 0; e < regions.of_element.size(); ++e)
    EXPECT_EQ(regions.of_element[e], height(e) > .1 ? 2 : height(e) > .05 ? 1 : 0);

  EXPECT_THROW(make_regions(model, nodes, {{}}), Error);  // one for three nodes
  std::vector<RegionChoice> missing = given;
  missing[1].elements = read_selection({{"set", "nowhere"}});
  EXPECT_THROW(make_regions(model, nodes, missing), Error);
}

// A bar sags, swings, comes to rest and falls asleep; the full statics is where it ends.
TEST(Adaptive, WakesFallsAsleepAndRestsWhereStaticsSays) {
  auto s = adaptive_bar(.02);
  s->gravity = {0, -9.81, 0};
  s->damping_mass = 4;
  s->damping_stiffness = 2e-3;
  Simulation sim = simulate(s);
  double switches = 0;
  Index most = 0;
  StepReport r;
  for (int k = 0; k < 800; ++k) {
    r = sim.step();
    switches += r.extra.at("switches");
    most = std::max(most, r.dofs);
    ASSERT_EQ(r.symbolic_analyses, 1);
    ASSERT_EQ(r.extra.at("allocations"), 0);
  }
  EXPECT_EQ(most, 9);
  EXPECT_EQ(r.dofs, 0);        // stabilisation alone
  EXPECT_EQ(r.iterations, 0);  // and that has nothing left to do
  EXPECT_GE(switches, 6);
  EXPECT_LE(switches, 12);  // no chatter
  for (const char* name : {"liveliness/1", "liveliness/2", "liveliness/3"})
    EXPECT_LT(r.extra.at(name), 1e-10) << name;
  EXPECT_GT(measure(sim.model(), sim.state(), {}).max_displacement, .005);

  StepInput in;
  State rest = initial_state(sim.model());
  script_input(sim.model(), rest, s->h, in);
  ASSERT_TRUE(solve_static(sim.model(), in, rest.x, 1e-12).converged);
  EXPECT_LT((sim.state().x - rest.x).cwiseAbs().maxCoeff(), 1e-9 * sim.model().size);
}

// Nodes are switched at random while the bar swings. Where a node becomes dynamic, its motion begins as the
// M-orthogonal projection of the velocity field that was there, and where one becomes quasistatic, its own
// motion is lost.
TEST(Adaptive, SwitchingCreatesNoEnergy) {
  for (const char* rule : {"guarded", "linear-implicit"}) {
    auto s = adaptive_bar(1e9, rule);  // nobody switches of his own accord
    Simulation sim = simulate(s);
    State state = sim.state();
    for (Index i = 0; i < sim.model().nodes(); ++i) {
      const double z = sim.model().mesh.rest[i].z();
      node(state.x, i).x() += 1.5 * z * z;
      node(state.v, i).y() += 3 * z;
    }
    memory_of<ConJacMemory>(state).region_age = {1, 1, 1};
    memory_of<ConJacMemory>(state).liveliness_window.assign(30, 0.0);
    sim.restore(state);
    run(sim, 3);
    const double start = total_energy(sim);
    double least = start;
    std::mt19937 random(7);
    for (int k = 0; k < 120; ++k) {
      if (k % 4 == 3) {
        state = sim.state();
        for (auto& age : memory_of<ConJacMemory>(state).region_age) age = random() % 3 ? 1 : -1;
        sim.restore(state);
      }
      sim.step();
      const double e = total_energy(sim);
      EXPECT_LT(e - least, 2e-3 * start) << rule << " step " << k;
      least = std::min(least, e);
    }
    EXPECT_GT(least, 0);
  }
}

// Pulled until it sleeps, then let go: it must swing as if it had been dynamic all the time, and not be
// dragged to its rest shape by the stabilisation.
TEST(Adaptive, ASleepingBodySwingsWhenItIsLetGo) {
  auto swing = [](std::shared_ptr<Scene> s) {
    s->damping_mass = 6;
    s->damping_stiffness = 2e-3;
    ForceSpec pull;
    pull.nodes.kind = "set";
    pull.nodes.name = "z1";
    pull.force = {.25, 0, 0};
    pull.ramp = .5;
    pull.until = 4;
    s->forces.push_back(pull);
    Simulation sim = simulate(s);
    run(sim, 799);
    EXPECT_EQ(sim.step().dofs, s->method_options->contains("adaptive") ? 0 : 9);
    const Index tip = sim.model().nodes() - 1;
    const double held = sim.state().x[3 * tip] - sim.model().mesh.rest[tip].x();
    EXPECT_GT(held, .015);
    double least = held;
    for (int k = 0; k < 60; ++k) {
      sim.step();
      least = std::min(least, sim.state().x[3 * tip] - sim.model().mesh.rest[tip].x());
    }
    return least / held;
  };
  auto always = adaptive_bar(.02);
  always->method_options->erase("adaptive");
  const double full = swing(always), adaptive = swing(adaptive_bar(.02));
  EXPECT_LT(full, -.3);  // it swings through
  EXPECT_NEAR(adaptive, full, .02);
}

TEST(Adaptive, AFreshStepperAndOtherThreadsGiveTheSameBits) {
  auto s = adaptive_bar(.05);
  s->gravity = {0, -9.81, 0};
  s->damping_stiffness = 4e-3;
  s->damping_mass = 10;
  set_threads(1);
  Simulation a = simulate(s);
  run(a, 150);
  set_threads(3);
  Simulation b = simulate(s);
  double switches = 0;
  for (int k = 0; k < 150; ++k) {
    switches += b.step().extra.at("switches");
    if (k % 10 != 9) continue;
    Simulation fresh = simulate(s);
    fresh.restore(b.state());
    b = std::move(fresh);
  }
  set_threads(0);
  EXPECT_GE(switches, 3);
  EXPECT_EQ(a.state().x, b.state().x);
  const ConJacMemory &at_a = *memory_of<ConJacMemory>(a.state()), &at_b = *memory_of<ConJacMemory>(b.state());
  EXPECT_EQ(at_a.region_age, at_b.region_age);
  EXPECT_EQ(at_a.liveliness_window, at_b.liveliness_window);
}

// A free body that falls and spins without deforming stays asleep: it needs only the reserve nodes.
TEST(Adaptive, FallingAndSpinningIsNotLively) {
  auto s = bar({.04, .04, .14}, {4, 4, 8}, 1e5, .4, false);
  s->gravity = {0, -9.81, 0};
  s->bodies[0].velocity = {.3, .5, 0};
  use_conjac(*s, kThree, adaptive_options(.02));
  Simulation falling = simulate(s);
  for (int k = 0; k < 60; ++k) {
    const StepReport r = falling.step();
    EXPECT_EQ(r.extra.at("dynamic_nodes"), 4);
    for (const char* name : {"liveliness/1", "liveliness/2", "liveliness/3"})
      EXPECT_LT(r.extra.at(name), 1e-9) << name;
  }
  std::vector<Mat3> F;
  fem::deformation_gradients(*falling.model().elements, falling.state().x, F);
  for (const Mat3& f : F) ASSERT_LT((f - Mat3::Identity()).norm(), 1e-10);
  EXPECT_NEAR(measure(falling.model(), falling.state(), {}).center_of_mass.y(),
              .02 + .5 * .3 - .5 * 9.81 * .09, 1e-10);

  // The sudden spin stretches it by a little, which dies out.
  s->gravity.setZero();
  s->damping_stiffness = 2e-3;
  s->bodies[0].angular_velocity = {2, 0, 0};
  Simulation spinning = simulate(s);
  const Vec3 before = measure(spinning.model(), spinning.state(), {}).angular_momentum;
  StepReport r;
  for (int k = 0; k < 200; ++k) r = spinning.step();
  EXPECT_EQ(r.extra.at("dynamic_nodes"), 4);
  const Vec3 after = measure(spinning.model(), spinning.state(), {}).angular_momentum;
  EXPECT_LT((after - before).norm(), .01 * before.norm());
}

// What the page and ParaView are told, from the first frame on.
TEST(Adaptive, RecordsRegionsLivelinessAndNodes) {
  auto s = adaptive_bar(.02);
  s->gravity = {0, -9.81, 0};
  s->method_options["adaptive"]["regions"] =
      nlohmann::json::array({{{"name", "root"}}, {{"name", "middle"}}, {{"name", "tip"}}});
  Simulation sim = simulate(s);
  const ReplayTopology topology = replay_topology(sim);
  EXPECT_EQ(topology.regions, (std::vector<std::string>{"elsewhere", "root", "middle", "tip"}));
  ASSERT_EQ(topology.node_fields.size(), 1u);
  EXPECT_EQ(topology.node_fields[0].name, "candidate");
  EXPECT_EQ(std::count(topology.node_fields[0].values.begin(), topology.node_fields[0].values.end(), 1.0f),
            3);
  sim.step();
  const FrameFields fields = frame_fields(sim, sim.input());
  const std::vector<double>&lively = fields.element.at("liveliness").values,
        &region = fields.element.at("region").values, &dynamic = fields.node.at("dynamic").values;
  for (std::size_t e = 0; e < region.size(); ++e) {
    EXPECT_GT(lively[e], 0);
    EXPECT_TRUE(region[e] >= 1 && region[e] <= 3);
  }
  EXPECT_EQ(std::count(dynamic.begin(), dynamic.end(), 1.0), 3);
  for (const ReplayField& f : replay_frame(sim, fields, {}).element_fields) EXPECT_NE(f.name, "region");
}

TEST(Adaptive, ACutThroughARepresentativeNodeGoesOn) {
  auto s = bar({.03, .03, .12}, {4, 4, 13}, 1e4, .4);
  s->gravity = {0, -9.81, 0};
  s->end = .4;
  use_conjac(*s, {{.015, .015, .04}, {.015, .015, .07}}, adaptive_options(.02));
  EventSpec cut;
  cut.time = .2;
  cut.point = {0, 0, .07};
  cut.normal = {0, 0, 1};
  s->events = {cut};
  Simulation sim = simulate(s);
  StepReport r;
  while (!sim.done()) r = sim.step();
  EXPECT_EQ(sim.model().pieces.size(), 2u);
  EXPECT_EQ(memory_of<ConJacMemory>(sim.state())->region_age.size(), 2u);
  EXPECT_EQ(r.symbolic_analyses, 1);
  EXPECT_EQ(r.extra.count("liveliness/2"), 1u);
}

// A block thrown down in seeded orientations.
TEST(Landing, AnyOrientationComesToRest) {
  for (unsigned seed : {1u, 2u, 3u}) {
    auto s = bar({.1, .06, .04}, {6, 4, 3}, 4e4, .45, false);
    s->gravity = {0, 0, -9.81};
    s->damping_stiffness = 4e-3;
    ObstacleSpec floor;
    floor.shape = "plane";
    floor.normal = {0, 0, 1};
    s->obstacles.push_back(floor);
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    double c[4];
    for (double& v : c) v = normal(random);
    const Eigen::AngleAxisd turn(Eigen::Quaterniond(c[3], c[2], c[1], c[0]).normalized());
    s->bodies[0].rotation = turn.angle() * turn.axis();
    s->bodies[0].translation = {0, 0, .2};
    use_conjac(*s, {});
    s->method_options["dynamic"] = nlohmann::json::array({{{"auto", 8}}});
    Simulation sim = simulate(s);
    double deepest = 0, least = total_energy(sim);
    const double fall = .2 * 9.81 * sim.model().mass.sum() / 3;
    for (int k = 0; k < 600; ++k) {
      deepest = std::max(deepest, sim.step().extra.at("contact_depth"));
      const double e = total_energy(sim);
      EXPECT_LT(e - least, 3e-3 * fall) << "seed " << seed << " step " << k;
      least = std::min(least, e);
    }
    EXPECT_LT(deepest, .015 * .1) << seed;  // 20 mm elements; finer ones go in less
    const VecX x = sim.state().x;
    run(sim, 50);
    EXPECT_LT(measure(sim.model(), sim.state(), {}).max_speed, 1e-4) << seed;
    EXPECT_LT((sim.state().x - x).cwiseAbs().maxCoeff(), 1e-5) << seed;
  }
}

// In this orientation and with this step, the hardest of twenty that bench_adaptive tries, the impact is
// overdamped; what closes contacts once brought energy in.
TEST(Landing, TheBunnyGainsNothingInItsImpact) {
  const std::vector<std::string> changes = {
      "/time/step=0.01", "/bodies/0/rotation=[-1.7445126575381,0.4183962994582,-1.0810169961982]"};
  Simulation sim =
      simulate(std::make_shared<Scene>(load_scene(LIMBER_SOURCE_DIR "/scenes/conjac/bunny.json", changes)));
  double least = total_energy(sim);
  int touched = 0;
  for (int k = 0; k < 30; ++k) {
    touched += sim.step().contacts > 0;
    const double e = total_energy(sim);
    EXPECT_LT(e - least, 1e-9 * std::abs(least)) << "step " << k;
    least = std::min(least, e);
  }
  EXPECT_GT(touched, 5);
}

}  // namespace
}  // namespace limber::test
