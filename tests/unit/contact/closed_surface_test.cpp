#include <limber/contact/closed_surface.hpp>
#include <limber/core/error.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/surface.hpp>

#include <gtest/gtest.h>

#include <numbers>
#include <random>

namespace limber {
namespace {

constexpr double kPi = std::numbers::pi;

// The least of the distances to the plane (where the foot is inside) and to the three sides.
double brute_distance(const TriMesh& mesh, const Vec3& x) {
  double best = std::numeric_limits<double>::infinity();
  for (const Tri& t : mesh.triangles) {
    const Vec3 corner[3] = {mesh.nodes[t[0]], mesh.nodes[t[1]], mesh.nodes[t[2]]};
    const Vec3 n = cross(corner[1] - corner[0], corner[2] - corner[0]).normalized();
    const double height = n.dot(x - corner[0]);
    const Vec3 foot = x - height * n;
    bool inside = true;
    for (int k = 0; k < 3; ++k) {
      const Vec3 &a = corner[k], &b = corner[(k + 1) % 3];
      inside = inside && cross(b - a, foot - a).dot(n) >= 0;
      const double s = std::clamp((x - a).dot(b - a) / (b - a).squaredNorm(), 0.0, 1.0);
      best = std::min(best, (x - a - s * (b - a)).norm());
    }
    if (inside) best = std::min(best, std::abs(height));
  }
  return best;
}

// Solid angle of the surface seen from x, over 4 pi: 1 inside, 0 outside (van Oosterom and Strackee).
double winding_number(const TriMesh& mesh, const Vec3& x) {
  double sum = 0;
  for (const Tri& t : mesh.triangles) {
    const Vec3 a = mesh.nodes[t[0]] - x, b = mesh.nodes[t[1]] - x, c = mesh.nodes[t[2]] - x;
    const double la = a.norm(), lb = b.norm(), lc = c.norm();
    sum += 2 * std::atan2(a.dot(cross(b, c)), la * lb * lc + a.dot(b) * lc + b.dot(c) * la + c.dot(a) * lb);
  }
  return sum / (4 * kPi);
}

// A star of twelve thin spikes: the worst kind of edges and corners for inside tests.
TriMesh star() {
  TriMesh mesh = surface_mesh(make_sphere(0.05, 0.03));
  std::mt19937 random(7);
  std::uniform_real_distribution<double> far(0.05, 0.3);
  for (Vec3& x : mesh.nodes) x *= far(random) / 0.05;
  return mesh;
}

void expect_agrees(const TriMesh& mesh) {
  const ClosedSurface tree(mesh);
  const Box box = bounding_box(mesh.nodes);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> unit(-0.2, 1.2);
  int inside = 0;
  for (int k = 0; k < 400; ++k) {
    const Vec3 x = box.lo + Vec3(unit(random), unit(random), unit(random)).cwiseProduct(box.size());
    const SurfacePoint p = tree.closest(x);
    EXPECT_NEAR(std::abs(p.distance), brute_distance(mesh, x), 1e-14);
    EXPECT_EQ(p.distance<0, winding_number(mesh, x)> 0.5) << x.transpose();
    EXPECT_NEAR((p.x + p.distance * p.n - x).norm(), 0, 1e-14);
    EXPECT_NEAR(p.n.norm(), 1, 1e-12);
    inside += p.distance < 0;
  }
  EXPECT_GT(inside, 5);
}

TEST(ClosedSurface, AgreesWithBruteForceAndWindingNumbers) {
  expect_agrees(surface_mesh(make_torus(0.1, 0.03, 0.02)));
  expect_agrees(surface_mesh(make_box({0.1, 0.2, 0.05}, {2, 2, 2})));
  expect_agrees(star());
}

// Nearest to a corner of a star or to the edge of a box, the sign must not depend on which of the faces was
// found first.
TEST(ClosedSurface, SignIsRightBeyondSharpCorners) {
  const TriMesh mesh = star();
  const ClosedSurface tree(mesh);
  for (const Vec3& corner : mesh.nodes) {
    const Vec3 out = corner.normalized();
    for (const double d : {1e-6, 1e-3}) {
      const Vec3 x = corner + d * out;
      EXPECT_EQ(tree.closest(x).distance<0, winding_number(mesh, x)> 0.5);
    }
  }
}

TEST(ClosedSurface, PointsOnTheSurfaceHaveItsNormal) {
  const TriMesh mesh = surface_mesh(make_box({1, 1, 1}, {3, 3, 3}));
  const ClosedSurface tree(mesh);
  const SurfacePoint p = tree.closest({0.3, 0.4, 1.0});
  EXPECT_NEAR(p.distance, 0, 1e-15);
  EXPECT_NEAR((p.n - Vec3::UnitZ()).norm(), 0, 1e-14);
}

TEST(ClosedSurface, TurnsAnInsideOutSurface) {
  TriMesh mesh = surface_mesh(make_sphere(0.1, 0.03));
  for (Tri& t : mesh.triangles) std::swap(t[0], t[1]);
  const ClosedSurface tree(mesh);
  EXPECT_LT(tree.closest(Vec3(0.01, 0, 0)).distance, 0);
  EXPECT_GT(tree.closest(Vec3(0.2, 0, 0)).distance, 0);
}

TEST(ClosedSurface, RefusesOpenAndMixedSurfaces) {
  TriMesh open = surface_mesh(make_sphere(0.1, 0.03));
  open.triangles.pop_back();
  try {
    ClosedSurface tree(open, "obstacle \"bowl\"");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find("obstacle \"bowl\""), std::string::npos) << e.what();
  }
  TriMesh mixed = surface_mesh(make_sphere(0.1, 0.03));
  std::swap(mixed.triangles[5][0], mixed.triangles[5][1]);
  EXPECT_THROW(ClosedSurface tree(mixed), Error);
}

}  // namespace
}  // namespace limber
