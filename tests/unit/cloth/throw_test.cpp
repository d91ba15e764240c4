// Cloth over corners and edges of a box that moves: the mesh stays sound, and nothing is lost in remeshing.
#include <limber/methods/cloth/cloth_mesh.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace limber::cloth {
namespace {

Simulation scene_of(const std::string& name, const std::vector<std::string>& overrides = {}) {
  return Simulation(std::make_shared<const Scene>(
      load_scene(std::string(LIMBER_SOURCE_DIR) + "/scenes/cloth/" + name + ".json", overrides)));
}

// THROW: preserved edges are edges, areas positive, their sum that of the cloth, in every step.
TEST(ThrownCloth, KeepsItsMeshSound) {
  Simulation sim = scene_of("throw", {"/method/size_min=0.06", "/method/size_max=0.15"});
  const std::vector<std::optional<Chart>> charts = find_charts(sim.model());
  int eol = 0;
  for (int k = 0; k < 200; ++k) {
    const StepReport report = sim.step();
    eol += report.extra.at("eol") > 0;
    const Sheet sheet = sheet_of(sim.model(), sim.state(), charts);
    const std::vector<std::string> defects = sheet_defects(sheet);
    ASSERT_TRUE(defects.empty()) << "step " << k << ": " << defects.front();
    ASSERT_NEAR(material_area(sheet), 1, 1e-12) << "step " << k;
  }
  EXPECT_GT(eol, 50);
}

// Remeshing where cloth slides over an edge changes momentum and energy by little: ten times without a step
// between, the mesh of the moment (other sizes each time).
TEST(ThrownCloth, RemeshingKeepsMomentumAndEnergy) {
  Simulation sim = scene_of("edge-eol", {"/method/size_min=0.06", "/method/size_max=0.12"});
  for (int k = 0; k < 96; ++k) sim.step();
  const std::vector<std::optional<Chart>> charts = find_charts(sim.model());
  Sheet sheet = sheet_of(sim.model(), sim.state(), charts);
  ElementMaterial material = sim.model().mesh.material.front();
  const auto measured = [&](const Sheet& s) {
    ClothBody body;
    body.fabric.assign(s.triangles.size(), fabric_of(material, 0));
    body.hinges = find_hinges(s.triangles);
    update_rest(s, body);
    return measure(s, body, Vec3::Zero());
  };
  const ClothMotion before = measured(sheet);
  ASSERT_GT(before.kinetic, 1e-3);
  int eol = 0;
  for (const std::int64_t f : sheet.feature) eol += f >= 0;
  ASSERT_GT(eol, 3);
  const FeatureSet features = find_features(sim.model().contact.obstacles);
  const PlaceOnFeature place = feature_placer(features, sim.model().contact.obstacles, sim.time());
  for (int k = 0; k < 10; ++k) {
    AdaptOptions options;
    options.size_min = k % 2 == 0 ? 0.03 : 0.06;
    options.size_max = k % 2 == 0 ? 0.06 : 0.12;
    options.refine_velocity = 0.05;  // fine where velocities differ: what is collapsed says little
    sheet = adapted(sheet, options, place).sheet;
  }
  const ClothMotion after = measured(sheet);
  EXPECT_NEAR(after.mass, before.mass, 1e-12);
  EXPECT_LT((after.momentum - before.momentum).norm(), 1e-3 * before.momentum.norm());
  EXPECT_NEAR(after.kinetic, before.kinetic, 5e-3 * before.kinetic);
}

// A vertex that leaves its feature takes the momentum of the material with it.
TEST(ThrownCloth, LiftingOffKeepsTheMomentum) {
  Simulation sim = scene_of("edge-eol", {"/method/size_min=0.06", "/method/size_max=0.12"});
  for (int k = 0; k < 96; ++k) sim.step();
  Sheet sheet = sheet_of(sim.model(), sim.state(), find_charts(sim.model()));
  ClothBody body;
  body.fabric.assign(sheet.triangles.size(), fabric_of(sim.model().mesh.material.front(), 0));
  body.hinges = find_hinges(sheet.triangles);
  update_rest(sheet, body);
  const ClothMotion before = measure(sheet, body, Vec3::Zero());
  const auto around = triangles_around(sheet);
  for (Index i = 0; i < sheet.vertices(); ++i) {
    if (!sheet.eol(i)) continue;
    sheet.v[at(i)] = joined_velocity(sheet, body, around[at(i)], i);
    sheet.V[at(i)].setZero();
  }
  const ClothMotion after = measure(sheet, body, Vec3::Zero());
  EXPECT_LT((after.momentum - before.momentum).norm(), 1e-12 * before.momentum.norm());
  EXPECT_LT(after.kinetic, before.kinetic);
}

// From a state in the middle, remeshing and all, to the same bits.
TEST(ThrownCloth, GoesOnToTheSameBits) {
  const std::vector<std::string> coarse{"/method/size_min=0.06", "/method/size_max=0.15"};
  Simulation whole = scene_of("throw", coarse), first = scene_of("throw", coarse),
             second = scene_of("throw", coarse);
  for (int k = 0; k < 130; ++k) whole.step();
  for (int k = 0; k < 90; ++k) first.step();
  second.restore(first.state());
  for (int k = 0; k < 40; ++k) second.step();
  EXPECT_EQ(hash_state(whole.state()), hash_state(second.state()));
}

}  // namespace
}  // namespace limber::cloth
