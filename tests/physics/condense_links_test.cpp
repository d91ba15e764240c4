// Links of a mechanism as bones, and training by several threads.
#include "physics/condense_scenes.hpp"

#include <limber/core/parallel.hpp>
#include <limber/sim/hash.hpp>

#include <gtest/gtest.h>

namespace limber::condense_tests {
namespace {

// The capsule with a fixed link and one on a hinge in place of its bones; `elbow`: what else the joint has.
std::shared_ptr<const Scene> on_links(const std::string& method, const std::string& elbow,
                                      const std::string& gravity = "[0, 0, 0]") {
  std::string text = capsule_text(method, fmt::format(R"(,
    "links": [{{"name": "lower", "shapes": {{"shape": "box", "size": [0.05, 0.05, 0.3], "position": [0, 0, -0.25], "density": 1000}}}},
              {{"name": "upper", "shapes": {{"shape": "box", "size": [0.05, 0.05, 0.3], "position": [0, 0, 0.25], "density": 1000}}}}],
    "joints": [{{"name": "base", "type": "fixed", "child": "lower"}},
               {{"name": "elbow", "parent": "lower", "child": "upper", "position": [0, 0, 0], "axis": [1, 0, 0]{}}}],
    "attachments": [
      {{"link": "lower", "nodes": {{"capsule": {{"point": [0, 0, -0.4], "end": [0, 0, -0.1], "radius": 0.045}}}}}},
      {{"link": "upper", "nodes": {{"capsule": {{"point": [0, 0, 0.1], "end": [0, 0, 0.4], "radius": 0.045}}}}}}])",
                                                      elbow));
  const std::size_t bones = text.find(R"("bones")"), end = text.find(R"("contact")");
  text.erase(bones, end - bones);
  replace(text, R"("gravity": [0, 0, 0])", R"("gravity": )" + gravity);
  return std::make_shared<const Scene>(read_scene(text, "links.json"));
}

const char* const kMethod = R"({"type": "condense", "poses": 8, "modes": 8, "least_spread": 1e-9})";

// A motor that turns the joint as the keys turn the bone: the same body.
TEST(CondenseLinks, MotorMovesTheFleshAsKeysDo) {
  Simulation keys(capsule_scene(kMethod), with_cache()),
      links(on_links(kMethod, R"(, "motor": {"type": "speed", "value": 0.7})"), with_cache());
  for (int k = 0; k < 8; ++k) {
    keys.step();
    const StepReport r = links.step();
    EXPECT_GT(r.iterations, 0);
    EXPECT_LT(max_distance(keys.state().x, links.state().x), 1e-6) << k;
  }
  EXPECT_GT(max_distance(links.state().x, initial_state(links.model()).x), 0.4);
}

// A pendulum: the mechanism finds its own way, and the flesh is where full space has it on that way.
TEST(CondenseLinks, SimulatedMechanismDrivesTheFlesh) {
  const auto scene = [&](const char* training) {
    std::string method =
        R"({"type": "condense", "poses": 12, "modes": 10, "least_spread": 1e-9, "training": ")";
    return on_links(method + training + R"("})", R"(, "stiffness": 2, "damping": 0.5)", "[0, -9.81, 0]");
  };
  for (const char* training : {"animation", "bones"}) {
    Simulation run(scene(training), with_cache());
    std::string keys = R"({"t": 0})";
    for (int k = 1; k <= 8; ++k) {
      run.step();
      keys += fmt::format(R"(, {{"t": {}, "rotation": [{:.17g}, 0, 0]}})", 0.25 * k, run.state().joint_q[0]);
    }
    EXPECT_GT(std::abs(run.state().joint_q[0]), 0.3);
    std::string text = capsule_text(R"({"type": "implicit", "integrator": "quasistatic"})");
    replace(text, R"({"t": 0}, {"t": 2, "rotation": [1.4, 0, 0]})", keys);
    replace(text, R"("gravity": [0, 0, 0])", R"("gravity": [0, -9.81, 0])");
    Simulation full(std::make_shared<const Scene>(read_scene(text, "capsule.json")));
    for (int k = 0; k < 8; ++k) full.step();
    const double error = max_distance(run.state().x, full.state().x);
    RecordProperty(training, fmt::format("{}", error));
    EXPECT_LT(error, 2e-3) << training;
  }
}

TEST(CondenseLinks, SameBitsAfterARestart) {
  const auto scene = on_links(
      R"({"type": "condense", "poses": 8, "modes": 8, "radius": 0.15, "solver": "l-bfgs",
          "full": [{"nodes": {"sphere": {"center": [0.12, 0, -0.05], "radius": 0.15}}}]})",
      R"(, "stiffness": 2, "damping": 0.5)", "[0, -9.81, 0]");
  Simulation run(scene, with_cache());
  for (int k = 0; k < 4; ++k) run.step();
  Simulation again(scene, with_cache());
  again.restore(run.state());
  for (int k = 0; k < 3; ++k) {
    EXPECT_GT(run.step().extra.at("full_nodes"), 0);
    again.step();
  }
  EXPECT_EQ(hash_state(run.state()), hash_state(again.state()));
}

// Chains of poses are solved beside each other: the same subspace for any number of threads.
TEST(CondenseTraining, SameBitsForAnyNumberOfThreads) {
  const int before = threads();
  std::vector<Subspace> found;
  const Trained& t = bends();
  CondenseOptions o = t.options;
  o.poses = 20;
  o.modes = 6;
  for (const int count : {1, 3}) {
    set_threads(count);
    const std::vector<TrainingPose> poses = training_poses(t.model, t.skeleton, o);
    EXPECT_GT(std::count_if(poses.begin(), poses.end(), [](const TrainingPose& p) { return p.restart; }), 1);
    std::vector<double> shares;
    Preparation preparation;
    preparation.progress = [&](std::string_view, double share) { shares.push_back(share); };
    found.push_back(train_subspace(t.model, t.skeleton, t.skinning, poses, o, preparation));
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  }
  set_threads(before);
  EXPECT_EQ(found[0].basis.domains()[0].U, found[1].basis.domains()[0].U);
  EXPECT_EQ(found[0].cubature.elements, found[1].cubature.elements);
  EXPECT_EQ(found[0].cubature.weights, found[1].cubature.weights);
}

// Without training, and nothing in the cache: made, but with no subspace.
TEST(CondenseTraining, LeftOutWhereOnlyLookedAt) {
  Preparation preparation;
  preparation.train = false;
  std::string said;
  preparation.progress = [&](std::string_view what, double) { said = what; };
  const Simulation looked(capsule_scene(R"({"type": "condense", "poses": 500})"), preparation);
  EXPECT_NE(said.find("limber train"), std::string::npos) << said;
}

}  // namespace
}  // namespace limber::condense_tests
