// Bodies that are inside each other, or inside an obstacle, before the first step.
#include "implicit_scenes.hpp"
#include "scenes.hpp"

#include <limber/core/error.hpp>
#include <limber/sim/overlap.hpp>

#include <gtest/gtest.h>

namespace limber::test {
namespace {

// Two bars of 14 x 4 x 4 cm, the second moved by `shift`.
std::shared_ptr<Scene> two_bars(const Vec3& shift, std::array<Index, 3> nodes = {8, 4, 4}) {
  auto s = bar_scene("bdf1", "newton-direct", nodes);
  s->constraints.clear();
  s->gravity.setZero();
  s->method_options["body_contact"] = true;
  s->bodies[0].generate->size = Vec3(.14, .04, .04);
  s->bodies[0].name = "low";
  s->bodies.push_back(s->bodies[0]);
  s->bodies[1].name = "high";
  s->bodies[1].translation = shift;
  return s;
}

std::string refusal(const std::shared_ptr<Scene>& s) {
  try {
    simulate(s);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return e.what();
  }
  return "";
}

TEST(Overlap, NamesBodiesDepthAndPlace) {
  for (const Vec3& shift : {Vec3(0, .02, 0), Vec3(.003, .03, .002), Vec3(0, 0, 0)}) {
    const std::string text = refusal(two_bars(shift));
    EXPECT_NE(text.find("\"low\""), std::string::npos) << text;
    EXPECT_NE(text.find("\"high\""), std::string::npos) << text;
    EXPECT_NE(text.find("m deep at ("), std::string::npos) << text;
    EXPECT_NE(text.find("/contact/overlap"), std::string::npos) << text;
  }
  const Model model = build_model(two_bars({.003, .03, .002}));
  const std::vector<Overlap> found = find_overlaps(model, initial_state(model).x, true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].depth, .01, 1e-9);  // the lower face of one, 1 cm below the upper face of the other
  EXPECT_NEAR(found[0].where.y(), found[0].body == 1 ? .03 : .04, 1e-9);
}

TEST(Overlap, BodiesThatCrossWithoutANodeInsideAreFoundToo) {
  auto s = two_bars(Vec3::Zero(), {2, 2, 2});
  s->bodies[1].rotation = Vec3(0, M_PI / 2, 0);
  s->bodies[1].translation = Vec3(.05, .01, .09);
  s->bodies[1].generate->size = Vec3(.14, .02, .04);
  EXPECT_NE(refusal(s).find("edges"), std::string::npos) << refusal(s);
}

TEST(Overlap, BodiesThatOnlyTouchAreFine) {
  for (const Vec3& shift : {Vec3(0, .04, 0), Vec3(.01, .04, .02), Vec3(.14, .04, 0), Vec3(0, .0401, 0)}) {
    Simulation sim = simulate(two_bars(shift));
    EXPECT_TRUE(sim.take_notices().empty());
  }
}

TEST(Overlap, IsLeftAloneWhenAcceptedOrWhenBodiesDoNotTouchEachOther) {
  auto s = two_bars({0, .02, 0});
  s->resolved["contact"]["overlap"] = "accept";
  Simulation sim = simulate(s);
  const std::vector<std::string> notices = sim.take_notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("\"high\""), std::string::npos) << notices[0];
  auto ghosts = two_bars({0, .02, 0});
  ghosts->method_options["body_contact"] = false;
  EXPECT_TRUE(refusal(ghosts).empty());
}

// ConJac used to end such a run with inverted elements and without a word.
TEST(Overlap, ABodyDeepInTheFloorIsRefusedByEveryMethod) {
  for (const char* method : {"vanilla", "conjac", "implicit"})
    for (const double depth : {5.0, .03, .001}) {
      auto s = two_bars({0, 10, 0});
      s->bodies.pop_back();
      s->bodies[0].translation = Vec3(0, -depth, 0);
      s->method_options["body_contact"] = false;
      ObstacleSpec floor;
      floor.name = "floor";
      floor.shape = "plane";
      floor.normal = Vec3::UnitY();
      s->obstacles.push_back(floor);
      if (method == std::string("vanilla")) use_vanilla(*s, 1);
      if (method == std::string("conjac")) use_conjac(*s, {Vec3::Zero()});
      const std::string text = refusal(s);
      EXPECT_EQ(text.empty(), depth < .01) << method << " " << depth << text;
      if (text.empty()) {
        EXPECT_EQ(simulate(s).take_notices().size(), 1u);
      } else {
        EXPECT_NE(text.find("\"floor\""), std::string::npos) << text;
      }
    }
}

// Held nodes may be inside: a body that stands in its socket.
TEST(Overlap, HeldNodesDoNotCount) {
  auto s = two_bars({0, 10, 0});
  s->bodies.pop_back();
  s->bodies[0].translation = Vec3(-.07, 0, 0);
  ConstraintSpec root;
  root.nodes.kind = "box";
  root.nodes.a = Vec3(-1, -1, -1);
  root.nodes.b = Vec3(1e-6, 1, 1);
  s->constraints.push_back(root);
  ObstacleSpec wall;
  wall.name = "wall";
  wall.shape = "plane";
  wall.normal = Vec3::UnitX();
  s->obstacles.push_back(wall);
  EXPECT_TRUE(refusal(s).empty()) << refusal(s);
}

}  // namespace
}  // namespace limber::test
