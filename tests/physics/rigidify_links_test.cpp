// `rigidify` with bodies that hang on links: bodies and links are one system, whatever of the bodies is
// rigid.
#include "physics/rigidify_scenes.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/hash.hpp>

#include <fmt/format.h>

namespace limber::test {
namespace {

// An arm of flesh whose first sixth a bone holds. The bone turns about a hinge at its other end, which a
// motor holds level for two seconds and then turns by 0.9 rad in half a second.
std::shared_ptr<const Scene> arm(const std::string& method, const std::string& gravity = "[0, -9.81, 0]") {
  return std::make_shared<const Scene>(
      read_scene(fmt::format(
                     R"({{"limber": 1, "gravity": {}, "time": {{"step": 0.005, "end": 4}}, "method": {},
    "bodies": [{{"name": "flesh", "mesh": {{"shape": "box", "size": [0.6, 0.1, 0.1], "nodes": [13, 3, 3]}},
                 "material": {{"young": 3e5, "poisson": 0.3, "density": 1000}}}}],
    "damping": {{"mass": 8, "stiffness": 0.02}},
    "links": [{{"name": "bone", "shapes": {{"shape": "box", "size": [0.1, 0.05, 0.05],
                                            "position": [0.05, 0.05, 0.05], "density": 4000}}}}],
    "joints": [{{"name": "hinge", "child": "bone", "axis": [0, 0, 1], "position": [0, 0.05, 0.05],
                 "motor": {{"type": "speed", "keys": [[0, 0], [2, 0], [2.05, 2], [2.45, 2], [2.5, 0]]}}}}],
    "attachments": [{{"link": "bone", "nodes": {{"plane": {{"point": [0.11, 0, 0], "normal": [-1, 0, 0]}}}}}}],
    "output": {{"fields": ["reaction"]}}}})",
                     gravity, method),
                 "./scene.json"));
}

// With nothing rigid, flesh and bone are those of `vanilla`.
TEST(RigidifyLinks, WithoutPiecesItIsVanilla) {
  Simulation full(arm(R"({"type": "vanilla"})")), same(arm(R"({"type": "rigidify", "tolerance": 0})"));
  for (int k = 0; k < 60; ++k) {
    full.step();
    same.step();
    ASSERT_LT((full.state().x - same.state().x).cwiseAbs().maxCoeff(), 1e-11) << "step " << k;
    ASSERT_LT((full.state().joint_q - same.state().joint_q).cwiseAbs().maxCoeff(), 1e-11) << "step " << k;
  }
  EXPECT_LT(full.state().x[3 * (full.model().nodes() - 1) + 1], 0.099);  // it hangs
}

// The arm comes to rest and becomes rigid but for what the bone moves; the hinge carries its weight. When the
// bone turns, the flesh wakes and follows as it does with nothing rigid.
TEST(RigidifyLinks, ATurningBoneWakesItsFlesh) {
  Simulation full(arm(R"({"type": "vanilla"})")), adaptive(arm(R"({"type": "rigidify", "tolerance": 1})"));
  double worst = 0, reach = 0, awake = 0;
  for (int k = 0; k < 800; ++k) {
    full.step();
    const StepReport report = adaptive.step();
    ASSERT_EQ(report.status, StepStatus::kOk) << report.why;
    worst = std::max(worst, (full.state().x - adaptive.state().x).cwiseAbs().maxCoeff());
    reach = std::max(reach, (full.state().x - initial_state(full.model()).x).cwiseAbs().maxCoeff());
    if (k == 395) {
      EXPECT_GT(rigid_share(adaptive), 0.6);
      EXPECT_LT(measure(adaptive.model(), adaptive.state(), {}).max_speed, 1e-3);
    }
    if (k > 410 && k < 500) awake = std::max(awake, 1 - rigid_share(adaptive));
  }
  EXPECT_GT(awake, 0.9);
  EXPECT_GT(rigid_share(adaptive), 0.6);  // and sleeps again
  EXPECT_GT(reach, 0.3);
  EXPECT_LT(worst, 0.03 * reach);
  EXPECT_NEAR(adaptive.state().joint_q[0], full.state().joint_q[0], 0.01);
}

// What rigid pieces weigh hangs on the bone as well.
TEST(RigidifyLinks, TheHingeCarriesTheWeight) {
  Simulation sim(arm(R"({"type": "rigidify", "tolerance": 1})"));
  StepReport report;
  for (int k = 0; k < 395; ++k) report = sim.step();
  ASSERT_GT(rigid_share(sim), 0.6);
  double mass = sim.model().mass.sum() / 3;
  for (const rigid::Link& link : sim.model().articulation->mechanism.links) mass += link.inertia.mass;
  EXPECT_NEAR(report.extra.at("joint_force/hinge/y"), 9.81 * mass, 1e-3 * 9.81 * mass);
}

// Floating flesh with a bone in it, half of which is a rigid piece: the momentum of all stays to the order of
// the step, as it does in `vanilla`.
TEST(RigidifyLinks, AFloatingBodyKeepsItsMomentum) {
  const auto drift = [](const std::string& method, double h, double& rigid) {
    Simulation s(std::make_shared<const Scene>(
        read_scene(fmt::format(
                       R"({{"limber": 1, "gravity": [0, 0, 0], "time": {{"step": {}}}, "method": {},
    "bodies": [{{"name": "flesh", "mesh": {{"shape": "box", "size": [0.4, 0.1, 0.1], "nodes": [9, 3, 3]}},
                 "material": {{"young": 2e5}}, "velocity": [0.2, 0, 0]}}],
    "damping": {{"stiffness": 0.01}},
    "links": [{{"name": "bone", "shapes": {{"shape": "box", "size": [0.1, 0.05, 0.05],
                                            "position": [0.05, 0.05, 0.05], "density": 4000}}}}],
    "joints": [{{"name": "space", "type": "free", "child": "bone", "position": [0.05, 0.05, 0.05],
                 "velocity": [0.2, 0, 0], "angular_velocity": [0, 0, 1]}}],
    "attachments": [{{"link": "bone", "nodes": {{"plane": {{"point": [0.11, 0, 0], "normal": [-1, 0, 0]}}}}}}]}})",
                       h, method),
                   "./scene.json")));
    const Vec3 before = measure(s.model(), s.state(), {}).momentum;
    for (int k = 0; k < std::lround(1.0 / h); ++k) {
      s.step();
      if (rigid >= 0) rigid = std::max(rigid, rigid_share(s));
    }
    return (measure(s.model(), s.state(), {}).momentum - before).norm() / before.norm();
  };
  double none = -1, rigid = 0;
  const std::string adaptive = R"({"type": "rigidify", "tolerance": 3})";
  const double coarse = drift(adaptive, 0.004, rigid), fine = drift(adaptive, 0.002, rigid);
  EXPECT_GT(rigid, 0.4);
  EXPECT_LT(fine, 0.02);
  EXPECT_LT(fine, 0.75 * coarse);
  EXPECT_LT(fine, 2 * drift(R"({"type": "vanilla"})", 0.002, none));
}

// A new stepper goes on with the same bits, for any number of threads.
TEST(RigidifyLinks, RestartIsExact) {
  const auto scene = arm(R"({"type": "rigidify", "tolerance": 3})");
  set_threads(1);
  Simulation whole(scene), first(scene), second(scene);
  for (int k = 0; k < 440; ++k) whole.step();
  set_threads(2);
  for (int k = 0; k < 406; ++k) first.step();
  EXPECT_GT(rigid_share(first), 0.3);
  second.restore(first.state());
  for (int k = 0; k < 34; ++k) second.step();
  set_threads(0);
  EXPECT_EQ(hash_state(whole.state()), hash_state(second.state()));
}

TEST(RigidifyLinks, RefusesWhatDoesNotReachTheLinks) {
  for (const auto& [method, pointer] :
       {std::pair(R"({"type": "rigidify", "integrator": "bdf1"})", "/method/integrator"),
        std::pair(R"({"type": "rigidify", "contact": "pgs"})", "/method/contact")}) {
    try {
      arm(method);
      ADD_FAILURE() << method;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(pointer), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace limber::test
