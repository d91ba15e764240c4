// Cloth on links of a mechanism: what the cloth gets, the links give.
#include <limber/methods/methods.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/sim/simulation.hpp>

#include <limber/core/parallel.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/hash.hpp>

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace limber::cloth::test {
namespace {

// Cloth of 0.3 x 0.3 m and 9 g.
Simulation on_links(const std::string& gravity, const std::string& method, const std::string& body,
                    const std::string& more) {
  return Simulation(std::make_shared<const Scene>(
      read_scene(fmt::format(
                     R"({{"limber": 1, "time": {{"step": 0.005, "end": 100}}, "gravity": {},
              "method": {{"type": "cloth"{}}},
              "bodies": [{{"name": "cloth", "elements": "cloth", "thickness": 0.001, "area_density": 0.1,
                          "bending": 1e-5,
                          "mesh": {{"shape": "rectangle", "size": [0.3, 0.3], "nodes": [7, 7], "pattern": "crossed"}},
                          "material": {{"model": "corotational", "young": 1e5, "poisson": 0}}{}}}]{}}})",
                     gravity, method, body, more),
                 "links.json")));
}

// A plate on a spring: it goes down by the weight of plate and cloth over the spring's stiffness.
TEST(ClothOnLinks, AScaleShowsTheWeightOfTheCloth) {
  const auto lowered = [](const std::string& translation) {
    Simulation sim =
        on_links("[0, 0, -10]", "", fmt::format(R"(, "translation": [-0.15, -0.15, {}])", translation),
                 R"(, "links": [{"name": "plate", "mass": 0.05,
                                   "shapes": {"shape": "box", "size": [0.5, 0.5, 0.02], "contact": true}}],
                              "joints": [{"type": "prismatic", "child": "plate", "axis": [0, 0, 1], "stiffness": 20,
                                          "damping": 1.5}])");
    for (int k = 0; k < 500; ++k) sim.step();
    return -sim.state().joint_q[0];
  };
  EXPECT_NEAR(lowered("50"), 0.05 * 10 / 20, 1e-6);  // the cloth is still in the air
  EXPECT_NEAR(lowered("0.012"), (0.05 + 0.009) * 10 / 20, 1e-5);
}

// A box flies into cloth that floats, and takes it along: with vertices on its edges, or without.
TEST(ClothOnLinks, MomentumIsKept) {
  for (const char* method : {"", R"(, "eol": true, "size_min": 0.03, "size_max": 0.08)"}) {
    SCOPED_TRACE(method);
    Simulation sim = on_links("[0, 0, 0]", method, R"(, "translation": [-0.15, -0.15, 0.06])",
                              R"(, "links": [{"name": "box", "mass": 0.1,
                                   "shapes": {"shape": "box", "size": [0.1, 0.1, 0.1], "contact": true}}],
                              "joints": [{"type": "free", "child": "box", "velocity": [0.1, 0, 1]}])");
    const Vec3 before = sim.measured({}).momentum;
    EXPECT_NEAR(before[2], 0.1, 1e-12);
    double eol = 0;
    for (int k = 0; k < 60; ++k) {
      StepReport r = sim.step();
      eol = std::max(eol, r.extra["eol"]);
    }
    const Vec3 after = sim.measured({}).momentum;
    // Remeshing takes a little of the cloth's own (8e-3 kg m/s); the steps themselves take nothing.
    EXPECT_LT((after - before).norm(), method[0] ? 1e-4 : 1e-10);
    EXPECT_LT(sim.state().joint_v[2], 0.97);  // and some of it is the cloth's now
    EXPECT_EQ(eol > 0, method[0] != 0);
  }
}

// A flag that flies on pulls its pole along, and stays on it.
TEST(ClothOnLinks, AttachedClothPullsItsLink) {
  Simulation sim = on_links("[0, 0, 0]", "", R"(, "velocity": [1, 0, 0])",
                            R"(, "links": [{"name": "pole", "mass": 0.05,
                                 "shapes": {"shape": "cylinder", "radius": 0.01, "length": 0.4}}],
                            "joints": [{"type": "prismatic", "child": "pole", "axis": [1, 0, 0]}],
                            "attachments": [{"link": "pole", "nodes": {"formula": "x < 0.01"}}],
                            "damping": {"stiffness": 0.01})");
  const double before = sim.measured({}).momentum[0];
  for (int k = 0; k < 400; ++k) sim.step();
  EXPECT_NEAR(sim.measured({}).momentum[0], before, 1e-10);
  EXPECT_NEAR(sim.state().joint_v[0], before / 0.059, 0.05 * before / 0.059);
  for (const rigid::Attachment& a : sim.model().articulation->attachments)
    EXPECT_NEAR(sim.state().x[3 * a.node], sim.state().joint_q[0], 1e-4);
}

TEST(ClothOnLinks, SameBitsAfterARestartAndForAnyThreads) {
  const auto make = [] {
    return Simulation(std::make_shared<const Scene>(
        load_scene(std::string(LIMBER_SOURCE_DIR) + "/scenes/cloth/seesaw.json")));
  };
  Simulation whole = make(), first = make(), second = make();
  for (int k = 0; k < 80; ++k) whole.step();
  set_threads(1);
  for (int k = 0; k < 50; ++k) first.step();
  set_threads(2);
  second.restore(first.state());
  for (int k = 0; k < 30; ++k) second.step();
  EXPECT_EQ(hash_state(whole.state()), hash_state(second.state()));
}

}  // namespace
}  // namespace limber::cloth::test
