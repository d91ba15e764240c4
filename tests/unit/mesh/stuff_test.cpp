// Isosurface stuffing.
#include <limber/core/error.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/quality.hpp>
#include <limber/mesh/remesh.hpp>
#include <limber/mesh/stuff.hpp>
#include <limber/mesh/surface.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace limber {
namespace {

Box cube(double half) {
  Box box;
  box.add(Vec3::Constant(-half));
  box.add(Vec3::Constant(half));
  return box;
}

double greatest_dihedral_angle(const TetMesh& mesh) {
  double most = 0;
  for (const Tet& t : mesh.tets) {
    std::array<Vec3, 4> n;
    for (int k = 0; k < 4; ++k) {
      const Vec3 &a = mesh.nodes[t[(k + 1) % 4]], &b = mesh.nodes[t[(k + 2) % 4]],
                 &c = mesh.nodes[t[(k + 3) % 4]];
      n[k] = cross(b - a, c - a).normalized();
      if (n[k].dot(mesh.nodes[t[k]] - a) > 0) n[k] = -n[k];
    }
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < i; ++j)
        most = std::max(most, 180 - std::acos(std::clamp(n[i].dot(n[j]), -1.0, 1.0)) * 180 / M_PI);
  }
  return most;
}

void expect_sound(const TetMesh& mesh, double least_angle, double most_angle) {
  const MeshReport report = check_mesh(mesh);
  EXPECT_TRUE(report.usable()) << report.errors();
  EXPECT_EQ(report.find(MeshProblemKind::kInverted), nullptr);
  EXPECT_EQ(report.find(MeshProblemKind::kDegenerate), nullptr);
  EXPECT_EQ(report.find(MeshProblemKind::kDuplicateElement), nullptr);
  EXPECT_EQ(report.find(MeshProblemKind::kUnusedNode), nullptr);
  EXPECT_EQ(report.find(MeshProblemKind::kNonManifoldSurface), nullptr);
  const QualitySummary q = summarize_quality(mesh);
  EXPECT_GT(q.least_angle, least_angle);
  EXPECT_LT(greatest_dihedral_angle(mesh), most_angle);
  EXPECT_TRUE(surface_defects(surface_mesh(mesh)).empty());
}

TEST(Stuffing, FillsABallWithoutSlivers) {
  double last = 1;
  for (const double spacing : {0.3, 0.15, 0.075}) {
    StuffOptions options;
    options.spacing = spacing;
    const TetMesh mesh = stuff_isosurface([](const Vec3& x) { return 1 - x.norm(); }, cube(1), options);
    expect_sound(mesh, 8, 166);
    const double error = std::abs(summarize_quality(mesh).volume / (4.0 / 3 * M_PI) - 1);
    EXPECT_LT(error, 0.35 * last);  // second order
    last = error;
    for (const Index i : mesh.node_sets.at("surface")) EXPECT_NEAR(mesh.nodes[at(i)].norm(), 1, 1e-6);
  }
  EXPECT_LT(last, 0.01);
}

TEST(Stuffing, FillsManyShapesAtAnyOffset) {
  for (int k = 0; k < 12; ++k) {
    const Vec3 c(0.013 * k, -0.029 * k, 0.007 * k);
    StuffOptions options;
    options.spacing = 0.11 + 0.003 * k;
    const auto torus = [&](const Vec3& p) {
      const Vec3 x = p - c;
      const double ring = std::hypot(x[0], x[1]) - 0.7;
      return 0.28 - std::hypot(ring, x[2]);
    };
    expect_sound(stuff_isosurface(torus, cube(1.4), options), 8, 166);
    const auto slab = [&](const Vec3& p) {  // a box with sharp edges, turned
      const Vec3 x(0.8 * (p - c)[0] + 0.6 * (p - c)[1], -0.6 * (p - c)[0] + 0.8 * (p - c)[1], (p - c)[2]);
      return std::min({0.8 - std::abs(x[0]), 0.5 - std::abs(x[1]), 0.4 - std::abs(x[2])});
    };
    const TetMesh mesh = stuff_isosurface(slab, cube(1.5), options);
    EXPECT_TRUE(check_mesh(mesh).usable());
    EXPECT_NEAR(summarize_quality(mesh).volume, 1.6 * 1.0 * 0.8, 0.15);
  }
}

TEST(Stuffing, NamesRegionsAndFillsSurfaces) {
  StuffOptions options;
  options.spacing = 0.08;
  options.regions = {"left", "right"};
  options.label = [](const Vec3& x) { return x[0] < 0 ? 0 : 1; };
  const TriMesh ball = surface_mesh(make_sphere(0.5, 0.08));
  const TetMesh mesh = stuff_isosurface(surface_depth(ball), cube(0.5), options);
  expect_sound(mesh, 7, 168);
  EXPECT_EQ(mesh.element_sets.at("left").size() + mesh.element_sets.at("right").size(), mesh.tets.size());
  EXPECT_NEAR(summarize_quality(mesh).volume, enclosed_volume(ball), 0.03 * enclosed_volume(ball));
  EXPECT_THROW(stuff_isosurface([](const Vec3&) { return -1.0; }, cube(1), options), Error);
  options.spacing = 1e-4;
  EXPECT_THROW(stuff_isosurface([](const Vec3&) { return 1.0; }, cube(1), options), Error);
}

}  // namespace
}  // namespace limber
