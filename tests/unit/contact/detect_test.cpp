#include <limber/contact/detect.hpp>
#include <limber/core/parallel.hpp>

#include "shapes.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace limber {
namespace {

using test::free_nodes;
using test::random_point;

struct Cloud {
  VecX x, v;
};

Cloud cloud(Index n, double extent, double speed, unsigned seed) {
  std::mt19937 random(seed);
  Cloud c{VecX(3 * n), VecX(3 * n)};
  for (Index i = 0; i < n; ++i) {
    node(c.x, i) = random_point(random, extent);
    node(c.v, i) = random_point(random, speed);
  }
  return c;
}

// Against no culling and no tree: a node is a contact exactly if some point of its path, sampled densely, is
// inside.
TEST(Detect, FindsEveryNodeThatMeetsAnObstacleAndNoOther) {
  const double h = 5e-3;
  ContactModel model = free_nodes(test::all_shapes(), 1500);
  // A scripted one as well.
  Obstacle mover = test::base(ObstacleShape::kCapsule);
  mover.radius = 0.04;
  mover.half_length = 0.1;
  mover.motion = {{0, Vec3::Zero(), Vec3::Zero(), 1}, {1, {4, 0, 0}, {0, 0, 3}, 1}};
  mover.interpolation = "linear";
  model.obstacles.push_back(mover);
  const Cloud c = cloud(1500, 0.3, 5.0, 11);
  const double t = 0.02;
  const std::vector<Contact> found = detect(model, c.x, c.v, h, t);
  ASSERT_GT(found.size(), 300u);
  auto next = found.begin();
  int missed_by_a_hair = 0;
  for (Index i = 0; i < 1500; ++i)
    for (std::size_t o = 0; o < model.obstacles.size(); ++o) {
      const Placement from = placement_at(model.obstacles[o], t),
                      to = placement_at(model.obstacles[o], t + h);
      const Vec3 y0 = from.to_local(node(c.x, i)), y1 = to.to_local(node(c.x, i) + h * node(c.v, i));
      double least = 1e9;
      for (int k = 0; k <= 400; ++k)
        least = std::min(least, closest_local(model.obstacles[o], y0 + k / 400.0 * (y1 - y0)).distance);
      const bool listed = next != found.end() && next->node == i && next->obstacle == static_cast<Index>(o);
      const double hair = 2e-3 * (y1 - y0).norm();
      if (std::abs(least) > hair)
        EXPECT_EQ(listed, least < 0) << "node " << i << " obstacle " << o << " least " << least;
      else
        missed_by_a_hair += listed != (least <= 0);
      if (listed) ++next;
    }
  EXPECT_EQ(next, found.end());
  EXPECT_LT(missed_by_a_hair, 10);
}

TEST(Detect, ContactsDescribeTheSurfaceAtTheEndOfTheStep) {
  ContactModel model = free_nodes(test::all_shapes(), 400);
  const Cloud c = cloud(400, 0.2, 1.0, 5);
  for (const Contact& k : detect(model, c.x, c.v, 5e-3, 0)) {
    const Obstacle& o = model.obstacles[k.obstacle];
    const Placement at = placement_at(o, 0);
    EXPECT_NEAR(closest_point(o, at, k.x_s).distance, 0, 1e-12);
    EXPECT_NEAR((at.to_world(k.local) - k.x_s).norm(), 0, 1e-14);
    EXPECT_NEAR(k.depth, k.n.dot(k.x_s - node(c.x, k.node)), 1e-15);
    const double d = closest_point(o, at, node(c.x, k.node)).distance;
    if (d <= 0) {
      EXPECT_NEAR(k.depth, -d, 1e-13);
    }
    EXPECT_EQ(k.stiffness, 1000);
    EXPECT_EQ(k.friction, 0.3);
    EXPECT_EQ(k.velocity, Vec3::Zero());
  }
}

TEST(Detect, FastNodesDoNotTunnelThroughThinWalls) {
  Obstacle wall;
  wall.shape = ObstacleShape::kBox;
  wall.half_size = {1e-4, 1, 1};
  const ContactModel model = free_nodes({wall}, 1);
  const VecX x = Vec3(-0.3, 0.1, 0.2), v = Vec3(120, 3, -2);  // 60 cm in the step
  const std::vector<Contact> found = detect(model, x, v, 5e-3, 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR((found[0].n + Vec3::UnitX()).norm(), 0, 1e-9);  // the side it came from
  EXPECT_NEAR(found[0].x_s[0], -1e-4, 1e-9);
  EXPECT_NEAR(found[0].depth, -(0.3 - 1e-4), 1e-9);
  EXPECT_TRUE(detect(model, x, -v, 5e-3, 0).empty());
}

TEST(Detect, MovingWallsCatchRestingNodes) {
  Obstacle wall;
  wall.shape = ObstacleShape::kBox;
  wall.half_size = {1e-3, 1, 1};
  wall.motion = {{0, {-0.5, 0, 0}, Vec3::Zero(), 1}, {1, {0.5, 0, 0}, Vec3::Zero(), 1}};
  wall.interpolation = "linear";
  const ContactModel model = free_nodes({wall}, 1);
  const VecX x = Vec3(0.003, 0, 0), v = Vec3::Zero();
  EXPECT_TRUE(detect(model, x, v, 5e-3, 0.49).empty());
  const std::vector<Contact> found = detect(model, x, v, 5e-3, 0.4995);  // the wall's face goes over the node
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR((found[0].velocity - Vec3(1, 0, 0)).norm(), 0, 1e-12);
  EXPECT_NEAR((found[0].n - Vec3::UnitX()).norm(), 0, 1e-12);
  EXPECT_NEAR(found[0].depth, 0.0045 + 1e-3 - 0.003, 1e-12);
}

TEST(Detect, SameBitsForAnyThreadCount) {
  ContactModel model = free_nodes(test::all_shapes(), 2000);
  const Cloud c = cloud(2000, 0.2, 2.0, 9);
  set_threads(1);
  const std::vector<Contact> one = detect(model, c.x, c.v, 5e-3, 0);
  set_threads(2);
  const std::vector<Contact> two = detect(model, c.x, c.v, 5e-3, 0);
  set_threads(0);
  ASSERT_EQ(one.size(), two.size());
  ASSERT_GT(one.size(), 500u);
  for (std::size_t k = 0; k < one.size(); ++k) {
    EXPECT_EQ(one[k].node, two[k].node);
    EXPECT_EQ(one[k].obstacle, two[k].obstacle);
    EXPECT_EQ(one[k].x_s, two[k].x_s);
    EXPECT_EQ(one[k].n, two[k].n);
    EXPECT_TRUE(k == 0 || before(one[k - 1], one[k]));
  }
}

TEST(Detect, OnlyListedNodesTouch) {
  Obstacle floor;
  ContactModel model = free_nodes({floor}, 0);
  VecX x = VecX::Constant(30, -1.0);
  EXPECT_TRUE(touching(model, x, 0).empty());
  model.nodes = {2, 7};
  model.stiffness = {10, 20};
  model.elastic = {1, 1};
  const std::vector<Contact> found = touching(model, x, 0);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].node, 7);
  EXPECT_EQ(found[1].stiffness, 20);
  EXPECT_EQ(found[1].depth, 1);
}

}  // namespace
}  // namespace limber
