#include <limber/contact/obstacle.hpp>

#include "shapes.hpp"

#include <gtest/gtest.h>

namespace limber {
namespace {

using test::random_point;

// What every distance must satisfy: x = x_s + d n, |n| = 1, and n is the gradient of d.
TEST(Obstacle, NormalIsTheGradientOfTheDistance) {
  std::mt19937 random(1);
  for (const Obstacle& o : test::all_shapes()) {
    const Placement at = placement_at(o, 0);
    int inside = 0, smooth = 0;
    for (int k = 0; k < 300; ++k) {
      const Vec3 x = at.origin + random_point(random, 0.2);
      const SurfacePoint p = closest_point(o, at, x);
      EXPECT_NEAR((p.x + p.distance * p.n - x).norm(), 0, 1e-13);
      EXPECT_NEAR(p.n.norm(), 1, 1e-12);
      EXPECT_NEAR(closest_point(o, at, p.x).distance, 0, 1e-13);
      inside += p.distance < 0;
      Vec3 gradient;
      for (int c = 0; c < 3; ++c) {
        const Vec3 e = 1e-6 * Vec3::Unit(c);
        gradient[c] = (closest_point(o, at, x + e).distance - closest_point(o, at, x - e).distance) / 2e-6;
      }
      smooth += (gradient - p.n).norm() < 1e-6;  // not where two faces of a box are equally near
    }
    EXPECT_GT(inside, 5) << static_cast<int>(o.shape);
    EXPECT_GT(smooth, 290) << static_cast<int>(o.shape);
  }
}

// The closest point is no farther than any of many points of the surface.
TEST(Obstacle, NoSampleOfTheSurfaceIsNearer) {
  std::mt19937 random(2);
  for (const Obstacle& o : test::all_shapes()) {
    const Placement at = placement_at(o, 0);
    std::vector<Vec3> samples;
    for (int k = 0; k < 2000; ++k)
      samples.push_back(closest_point(o, at, at.origin + random_point(random, 0.3)).x);
    for (int k = 0; k < 100; ++k) {
      const Vec3 x = at.origin + random_point(random, 0.25);
      const double d = std::abs(closest_point(o, at, x).distance);
      double least = 1e9;
      for (const Vec3& s : samples) least = std::min(least, (s - x).norm());
      EXPECT_LE(d, least + 1e-13);
      EXPECT_GT(d, least - 0.05);
    }
  }
}

TEST(Obstacle, BoxAgreesWithTheSameBoxAsMesh) {
  Obstacle box = test::base(ObstacleShape::kBox), mesh = test::base(ObstacleShape::kMesh);
  box.half_size = {0.1, 0.05, 0.08};
  TriMesh surface = surface_mesh(make_box({0.2, 0.1, 0.16}, {3, 2, 3}));
  for (Vec3& x : surface.nodes) x -= box.half_size;
  mesh.surface = std::make_shared<const ClosedSurface>(std::move(surface));
  const Placement at = placement_at(box, 0);
  std::mt19937 random(4);
  for (int k = 0; k < 500; ++k) {
    const Vec3 x = at.origin + random_point(random, 0.2);
    EXPECT_NEAR(closest_point(box, at, x).distance, closest_point(mesh, at, x).distance, 1e-14);
  }
}

TEST(Obstacle, BoxesOfPlacedObstaclesHoldThem) {
  std::mt19937 random(5);
  for (const Obstacle& o : test::all_shapes()) {
    const Placement at = placement_at(o, 0);
    const Box box = bounds(o, at);
    Box seen;
    for (int k = 0; k < 3000; ++k) {
      const Vec3 x = at.origin + random_point(random, 0.4);
      if (closest_point(o, at, x).distance >= 0) continue;
      EXPECT_TRUE((x.array() >= box.lo.array()).all() && (x.array() <= box.hi.array()).all());
      seen.add(x);
    }
    // Not needlessly large: the box of a turned shape is at most its own diagonal too wide.
    EXPECT_TRUE(o.shape == ObstacleShape::kPlane || box.size().norm() < 2 * seen.size().norm());
  }
}

TEST(Obstacle, MotionTurnsAboutTheObstacle) {
  Obstacle o = test::base(ObstacleShape::kSphere);
  o.start.R.setIdentity();
  o.start.scale = 1;
  o.radius = 0.1;
  o.motion = {{0, Vec3::Zero(), Vec3::Zero(), 1}, {1, {1, 0, 0}, {0, 0, 1.0}, 2}};
  const Placement end = placement_at(o, 1), middle = placement_at(o, 0.5), later = placement_at(o, 7);
  EXPECT_NEAR((end.origin - o.start.origin - Vec3(1, 0, 0)).norm(), 0, 1e-15);
  EXPECT_NEAR((middle.origin - o.start.origin - Vec3(0.5, 0, 0)).norm(), 0, 1e-15);
  EXPECT_NEAR((end.to_world({0.1, 0, 0}) - end.origin - 0.2 * Vec3(std::cos(1.0), std::sin(1.0), 0)).norm(),
              0, 1e-15);
  EXPECT_EQ(later.origin, end.origin);
  EXPECT_NEAR(closest_point(o, end, end.origin + Vec3(0, 0.5, 0)).distance, 0.3, 1e-15);
  const Vec3 y = end.to_local({0.3, 0.2, 0.1});
  EXPECT_NEAR((end.to_world(y) - Vec3(0.3, 0.2, 0.1)).norm(), 0, 1e-15);
}

}  // namespace
}  // namespace limber
