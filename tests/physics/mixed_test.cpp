// The method `mixed` as a scene runs it.
#include "physics/implicit_scenes.hpp"
#include "physics/scenes.hpp"

#include <limber/core/cache.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/methods/mixed/memory.hpp>
#include <limber/scene/load.hpp>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace limber::test {
namespace {

using mixed::MixedMemory;

nlohmann::json mixed_json(const std::string& space, const std::string& variant = "mixed") {
  return {{"space", space},
          {"variant", variant},
          {"integrator", "bdf1"},
          {"basis", "skinning"},
          {"modes", 6},
          {"points", 120},
          {"exponent", 0.0},
          {"features", "strain"},
          {"seed", 1},
          {"iterations", 60},
          {"tolerance", 1e-13},
          {"twist_from", 2},
          {"start", "extrapolated"},
          {"pins", "auto"},
          {"hold_stiffness", 0.0},
          {"contact_samples", 100},
          {"contact_damping", 0.0},
          {"slip_speed", 0.005}};
}

std::shared_ptr<Scene> mixed_bar(const nlohmann::json& options) {
  auto scene = bar_scene("bdf1", "newton-direct");
  scene->method = "mixed";
  *scene->method_options = options;
  return scene;
}

void add_floor(Scene& scene, double height) {
  ObstacleSpec floor;
  floor.name = "floor";
  floor.shape = "plane";
  floor.point = Vec3(0, height, 0);
  scene.obstacles.push_back(floor);
}

const double kBarMass = 0.2 * 0.05 * 0.05 * 1000;

// In full space, converged, mixed solves the equations of `implicit`: whatever damps, holds, pulls and
// touches.
TEST(MixedMethod, InFullSpaceEqualsImplicit) {
  for (const std::string integrator : {"bdf1", "bdf2"})
    for (const bool hand : {false, true})
      for (const std::string variant : {"mixed", "fem"}) {
        auto reference = bar_scene(integrator, "newton-direct");
        reference->method_options["tolerance_relative"] = 1e-13;
        reference->method_options["tolerance_absolute"] = 1e-11;
        reference->damping_mass = 0.3;
        reference->damping_stiffness = 0.002;
        if (hand) add_hand(*reference);
        ForceSpec pull;
        pull.nodes.kind = "set";
        pull.nodes.name = "y1";
        pull.force = Vec3(0.2, 0, 0.4);
        pull.ramp = 0.1;
        reference->forces.push_back(pull);
        reference->contact.friction = 0;
        add_floor(*reference, -0.001);
        auto scene = std::make_shared<Scene>(*reference);
        scene->method = "mixed";
        *scene->method_options = mixed_json("full", variant);
        scene->method_options["integrator"] = integrator;
        Simulation a = simulate(reference), b = simulate(scene);
        double worst = 0;
        Index contacts = 0;
        for (int k = 0; k < 25; ++k) {
          contacts = std::max(contacts, a.step().contacts);
          b.step();
          worst = std::max(worst, (a.state().x - b.state().x).lpNorm<Eigen::Infinity>());
        }
        const double moved = (a.state().x - initial_state(a.model()).x).lpNorm<Eigen::Infinity>();
        EXPECT_GT(moved, 0.01);
        EXPECT_GT(contacts, 0);
        EXPECT_LT(worst, 1e-8) << integrator << " " << variant << (hand ? " with a hand" : "");
      }
}

// A free body falls like a stone, and the subspace holds its rigid motion exactly.
TEST(MixedMethod, FreeFallIsExact) {
  auto scene = mixed_bar(mixed_json("reduced"));
  scene->constraints.clear();
  scene->bodies[0].angular_velocity = Vec3(0, 0, 3);
  Simulation sim = simulate(scene);
  const Diagnostics start = measure(sim.model(), sim.state(), {});
  run(sim, 20);
  const Diagnostics end = measure(sim.model(), sim.state(), {});
  // Implicit Euler: v_k = -g h k, y_k = -g h^2 k (k + 1) / 2
  const double h = scene->h;
  EXPECT_NEAR(end.center_of_mass[1] - start.center_of_mass[1], -9.81 * h * h * 20 * 21 / 2, 1e-10);
  EXPECT_NEAR(end.momentum[1], -9.81 * h * 20 * kBarMass, 1e-9);
  EXPECT_GT(end.angular_momentum.norm(), 0.8 * start.angular_momentum.norm());
}

// Rows between measurements: what the method says about energies is what the nodes have.
TEST(MixedMethod, KnowsItsEnergies) {
  auto scene = mixed_bar(mixed_json("reduced"));
  Simulation sim = simulate(scene);
  StepReport report;
  for (int k = 0; k < 15; ++k) report = sim.step();
  const Diagnostics d = measure(sim.model(), sim.state(), {});
  EXPECT_GT(d.kinetic, 1e-3);
  EXPECT_NEAR(report.energy.at("kinetic"), d.kinetic, 1e-10 * d.kinetic);
  EXPECT_NEAR(report.energy.at("gravity"), d.gravity, 1e-10 * std::abs(d.gravity));
}

// Pins by weights do not move at all; springs of the stated stiffness hold the load that hangs on them.
TEST(MixedMethod, PinsHold) {
  for (const std::string pins : {"weights", "penalty"}) {
    auto scene = mixed_bar(mixed_json("reduced"));
    scene->method_options["pins"] = pins;
    scene->method_options["hold_stiffness"] = 2e5;
    scene->damping_mass = 20;
    Simulation sim = simulate(scene);
    run(sim, 200);
    double most = 0, mean = 0, mass = 0;
    for (Index i = 0; i < sim.model().nodes(); ++i)
      if (sim.model().mesh.rest[at(i)][0] < 1e-9) {
        const Vec3 moved = node(sim.state().x, i) - sim.model().mesh.rest[at(i)];
        most = std::max(most, moved.norm());
        mean += moved[1] * sim.model().mass[3 * i];
        mass += sim.model().mass[3 * i];
      }
    if (pins == "weights")
      EXPECT_EQ(most, 0);
    else  // the springs together carry the weight: k times the mean sag
      EXPECT_NEAR(-mean / mass * 2e5, kBarMass * 9.81, 0.002 * kBarMass * 9.81);
  }
}

// A hand that pushes, pulls and turns the end of the bar: the stiff springs bring the reduced bar's end where
// the keys say, and the rest follows the full one.
TEST(MixedMethod, FollowsAScriptedHand) {
  auto full = mixed_bar(mixed_json("full"));
  add_hand(*full);
  full->damping_mass = 5;
  auto reduced = std::make_shared<Scene>(*full);
  *reduced->method_options = mixed_json("reduced");
  reduced->method_options["modes"] = 14;
  reduced->method_options["points"] = 0;
  Simulation a = simulate(full), b = simulate(reduced);
  for (const int until : {60, 40}) {
    run(a, until);
    run(b, until);
    double end = 0;
    for (const Index i : a.model().holds[1].nodes)
      end = std::max(end, (node(a.state().x, i) - node(b.state().x, i)).norm());
    const double moved = (a.state().x - initial_state(a.model()).x).norm();
    EXPECT_LT(end, 1e-3) << until;
    EXPECT_LT((a.state().x - b.state().x).norm(), 0.1 * moved) << until;
  }
}

// A hold that begins later takes nodes from where they are, and lets them go again.
TEST(MixedMethod, HoldsBeginAndEnd) {
  auto scene = mixed_bar(mixed_json("reduced"));
  scene->constraints[0].from = 0.05;
  scene->constraints[0].until = 0.15;
  Simulation sim = simulate(scene);
  const auto height = [&] {
    double sum = 0;
    for (const Index i : sim.model().holds[0].nodes) sum += node(sim.state().x, i)[1];
    return sum / static_cast<double>(sim.model().holds[0].nodes.size());
  };
  run(sim, 5);
  const double held = height();
  EXPECT_LT(held, 0.025 - 0.01);
  run(sim, 9);
  EXPECT_NEAR(height(), held, 2e-4);
  run(sim, 11);
  EXPECT_LT(height(), held - 0.02);
}

// The bar falls on a floor and comes to rest on it: the samples carry its weight.
TEST(MixedMethod, RestsOnAFloor) {
  auto scene = mixed_bar(mixed_json("reduced"));
  scene->constraints.clear();
  scene->method_options["contact_damping"] = 0.02;
  scene->method_options["tolerance"] = 1e-8;
  scene->damping_mass = 4;
  scene->contact.stiffness = 2000;
  add_floor(*scene, -0.02);
  Simulation sim = simulate(scene);
  StepReport last;
  for (int k = 0; k < 200; ++k) last = sim.step();
  const Diagnostics d = measure(sim.model(), sim.state(), {});
  EXPECT_GT(last.contacts, 3);
  EXPECT_LT(d.max_speed, 0.01);
  EXPECT_NEAR(d.center_of_mass[1], -0.02 + 0.025, 0.005);
}

// A stiff block on a slope: it stays below the angle of friction and slides as theory says above it.
TEST(MixedMethod, ObeysCoulombsLawOnASlope) {
  for (const bool slides : {false, true}) {
    auto scene = mixed_bar(mixed_json("reduced"));
    scene->constraints.clear();
    scene->method_options["modes"] = 2;
    scene->method_options["points"] = 40;
    scene->method_options["tolerance"] = 1e-9;
    scene->method_options["contact_damping"] = 0.02;
    scene->method_options["slip_speed"] = 1e-3;
    scene->bodies[0].material.young = Varying{1e6};
    scene->contact.friction = slides ? 0.2 : 0.5;
    scene->contact.stiffness = 1e4;
    add_floor(*scene, 0);
    const double slope = 0.35;  // tan = 0.365
    scene->gravity = 9.81 * Vec3(std::sin(slope), -std::cos(slope), 0);
    Simulation sim = simulate(scene);
    run(sim, 20);
    const double v0 = measure(sim.model(), sim.state(), {}).momentum[0] / kBarMass;
    run(sim, 30);
    const double v1 = measure(sim.model(), sim.state(), {}).momentum[0] / kBarMass;
    if (slides)
      EXPECT_NEAR((v1 - v0) / 0.3, 9.81 * (std::sin(slope) - 0.2 * std::cos(slope)), 0.05);
    else
      EXPECT_LT(v1, 1.1e-3);  // creeps below the slip speed
  }
}

// A stepper holds scratch only: a new one goes on with the same bits, whether or not somebody looked in
// between, and for any number of threads.
TEST(MixedMethod, GoesOnFromItsStateWithTheSameBits) {
  for (const std::string integrator : {"bdf1", "bdf2"})
    for (const std::string space : {"reduced", "full"}) {
      auto scene = mixed_bar(mixed_json(space));
      scene->method_options["integrator"] = integrator;
      scene->method_options["iterations"] = 2;
      scene->method_options["tolerance"] = 0.0;
      add_hand(*scene);
      add_floor(*scene, -0.01);
      set_threads(1);
      Simulation whole = simulate(scene), parts = simulate(scene);
      run(whole, 12);
      set_threads(2);
      for (int k = 0; k < 5; ++k) {
        parts.step();
        parts.state();
      }
      Simulation rest = simulate(scene);
      rest.restore(parts.state());
      run(rest, 7);
      set_threads(0);
      EXPECT_TRUE(whole.state().x == rest.state().x) << integrator << space;
      const auto* a = whole.state().memory.get<MixedMemory>();
      const auto* b = rest.state().memory.get<MixedMemory>();
      ASSERT_TRUE(a && b);
      EXPECT_TRUE(a->Lambda == b->Lambda && a->Z == b->Z && a->u == b->u && a->v == b->v);
    }
}

// Steps of the reduced method leave the nodes alone, even with a moving hand.
TEST(MixedMethod, NeverTouchesTheNodesInAStep) {
  auto scene = mixed_bar(mixed_json("reduced"));
  add_hand(*scene);
  Simulation sim = simulate(scene);
  ASSERT_TRUE(sim.reduced());
  const double* x = sim.state().x.data();
  const VecX before = sim.state().x;
  run(sim, 10);
  EXPECT_TRUE(Eigen::Map<const VecX>(x, before.size()) == before);
  EXPECT_GT((sim.state().x - before).norm(), 1e-3);
}

TEST(MixedMethod, KeepsItsBasisInTheCache) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("limber_mixed_cache_test_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  auto scene = mixed_bar(mixed_json("reduced"));
  int said = 0;
  const auto make = [&] {
    said = 0;
    Preparation preparation;
    preparation.cache = folder;
    preparation.progress = [&](std::string_view what, double) { said += what == "eigenmodes"; };
    Simulation sim(scene, preparation);
    run(sim, 3);
    return VecX(sim.state().x);
  };
  const VecX first = make();
  EXPECT_EQ(said, 1);
  const VecX second = make();
  EXPECT_EQ(said, 0);
  EXPECT_TRUE(first == second);
  scene->bodies[0].material.young = Varying{6e4};  // another body: another basis
  make();
  EXPECT_EQ(said, 1);
  std::filesystem::remove_all(folder);
}

TEST(MixedMethod, RefusesAStateOfAnotherBasis) {
  auto scene = mixed_bar(mixed_json("reduced")), other = mixed_bar(mixed_json("reduced"));
  other->bodies[0].generate->size[0] = 0.21;
  Simulation a = simulate(scene), b = simulate(other);
  a.step();
  try {
    b.restore(a.state());
    FAIL() << "a state of another mesh was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("basis"), std::string::npos) << e.what();
  }
}

Simulation simulate_text(const std::string& method, const std::string& body, const std::string& more = "") {
  const LoadResult loaded = try_read_scene(
      R"({"limber": 1, "time": {"step": 0.005, "end": 1}, "method": {"type": "mixed", "iterations": 30, "tolerance": 1e-9, )" +
          method +
          R"(}, "bodies": [{"name": "bar", "mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [13, 4, 4]},
            "material": {"model": "fixed-corotated", "young": 1e5, "poisson": 0.4})" +
          body + "}]" + more + "}",
      "mixed.json");
  for (const Problem& p : loaded.problems) ADD_FAILURE() << to_string(p);
  return Simulation(std::make_shared<Scene>(loaded.scene));
}

// Linear modes with their derivatives are better than skinning where motions are small, and worse where the
// body bends far.
TEST(MixedMethod, LinearModesAreForSmallMotions) {
  const auto error = [](const std::string& basis, double gravity) {
    const std::string more =
        fmt::format(R"(, "gravity": [0, {}, 0], "constraints": [{{"nodes": {{"set": "x0"}}}}])", -gravity);
    Simulation full = simulate_text(R"("space": "full")", "", more),
               reduced = simulate_text(R"("modes": 4, "points": 648, "basis": ")" + basis + "\"", "", more);
    double apart = 0, moved = 0;
    for (int k = 0; k < 60; ++k) {
      full.step();
      reduced.step();
      apart += (full.state().x - reduced.state().x).squaredNorm();
      for (Index i = 0; i < full.model().nodes(); ++i)
        moved += (node(full.state().x, i) - full.model().mesh.rest[at(i)]).squaredNorm();
    }
    return std::sqrt(apart / moved);
  };
  const double small = error("linear", 0.5), large = error("linear", 150);
  EXPECT_LT(small, 0.005);
  EXPECT_LT(small, 0.1 * error("skinning", 0.5));
  EXPECT_GT(large, 0.05);
  EXPECT_GT(large, error("skinning", 150));
}

// Holds that move, loads and obstacles know linear modes as well: the same bar, pushed and touching, in both
// bases.
TEST(MixedMethod, LinearModesFollowHandsAndTouch) {
  const std::string more = R"(, "gravity": [0, -1, 0], "constraints": [{"nodes": {"set": "x0"}},
      {"nodes": {"set": "x1"}, "motion": [{"t": 0}, {"t": 0.1, "translation": [0, -0.006, 0]}]}],
      "obstacles": [{"shape": "plane", "point": [0, -0.003, 0]}])";
  Simulation linear = simulate_text(R"("modes": 12, "points": 648, "basis": "linear")", "", more),
             full = simulate_text(R"("space": "full")", "", more);
  Index contacts = 0;
  for (int k = 0; k < 20; ++k) {
    contacts = linear.step().contacts;
    full.step();
  }
  EXPECT_GT(contacts, 0);
  const std::vector<Index>& end = linear.model().node_sets.at("bar/x1");
  for (const Index i : end) {
    const Vec3 moved = node(linear.state().x, i) - linear.model().mesh.rest[at(i)];
    EXPECT_NEAR(moved[1], -0.006, 5e-4);
  }
  EXPECT_LT((linear.state().x - full.state().x).norm() / std::sqrt(double(linear.model().nodes())), 5e-4);
  // A checkpoint in the middle of a hold goes on to the same bits.
  Simulation again = simulate_text(R"("modes": 12, "points": 648, "basis": "linear")", "", more);
  again.restore(linear.state());
  linear.step();
  again.step();
  EXPECT_TRUE(linear.state().x == again.state().x);
}

// Points that are trained on poses of a run give the forces of such poses with a few points.
TEST(MixedMethod, PointsAreTrainedOnPoses) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("limber-poses-{}", ::getpid());
  std::filesystem::create_directories(folder);
  const std::string pin = R"(, "constraints": [{"nodes": {"set": "x0"}}])";
  Simulation all = simulate_text(R"("modes": 4, "points": 648)", "", pin);
  const std::string file = (folder / "poses.txt").string();
  {
    std::ofstream out(file);
    for (int k = 1; k <= 40; ++k) {
      all.step();
      if (k % 5 != 0) continue;
      for (const double v : all.state().x) out << fmt::format("{} ", v);
      out << "\n";
    }
  }
  Simulation trained = simulate_text(R"("modes": 4, "points": 80, "training": ")" + file + "\"", "", pin),
             clustered = simulate_text(R"("modes": 4, "points": 80)", "", pin);
  for (int k = 0; k < 40; ++k) {
    trained.step();
    clustered.step();
  }
  const VecX& x = all.state().x;
  const double moved = [&] {
    double sum = 0;
    for (Index i = 0; i < all.model().nodes(); ++i)
      sum += (node(x, i) - all.model().mesh.rest[at(i)]).squaredNorm();
    return std::sqrt(sum);
  }();
  const double by_training = (trained.state().x - x).norm() / moved,
               by_clusters = (clustered.state().x - x).norm() / moved;
  EXPECT_LT(by_training, 0.02);
  EXPECT_LT(by_training, by_clusters);
  std::ofstream(file) << "1 2 3\n";
  try {
    simulate_text(R"("modes": 4, "training": ")" + file + "\"", "", pin);
    FAIL() << "three numbers are no pose";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("found 3 numbers"), std::string::npos) << e.what();
  }
  std::filesystem::remove_all(folder);
}

TEST(MixedMethod, RefusesScenesThatItCannotDo) {
  const auto problems = [](const std::string& method, const std::string& more = "") {
    const LoadResult loaded = try_read_scene(R"({"limber": 1, "method": {"type": "mixed", )" + method + R"(},
            "bodies": [{"mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [9, 3, 3]}}])" +
                                                 more + "}",
                                             "mixed.json");
    std::string all;
    for (const Problem& p : loaded.problems) all += to_string(p) + "\n";
    return all;
  };
  EXPECT_EQ(problems(R"("modes": 8, "points": 40)"), "");
  EXPECT_NE(problems(R"("modes": 8, "points": 39)").find("expected at least 40"), std::string::npos);
  EXPECT_EQ(problems(R"("modes": 8, "points": 39, "space": "full")"), "");
  EXPECT_NE(
      problems(R"("modes": 8)", R"(, "events": [{"time": 0.1, "point": [0.1, 0, 0], "normal": [1, 0, 0]}])"),
      "");
  auto many = mixed_bar(mixed_json("reduced"));
  many->method_options["points"] = 100000;
  EXPECT_THROW(simulate(many), Error);
}

}  // namespace
}  // namespace limber::test
