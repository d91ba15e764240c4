#include <limber/core/error.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/quality.hpp>
#include <limber/mesh/surface.hpp>

#include <gtest/gtest.h>

#include <numbers>
#include <set>

namespace limber {
namespace {

double mesh_volume(const TetMesh& mesh) {
  double v = 0;
  for (const Tet& t : mesh.tets) v += tet_volume(mesh.nodes, t);
  return v;
}

// Volume by the divergence theorem: right only if the surface is closed and outward.
double enclosed_volume(const TetMesh& mesh) {
  double v = 0;
  for (const Tri& t : boundary_surface(mesh.tets).triangles)
    v += mesh.nodes[t[0]].dot(cross(mesh.nodes[t[1]], mesh.nodes[t[2]])) / 6;
  return v;
}

// V - E + F of the boundary: 2 for a ball, 0 for a torus.
long euler_characteristic(const TetMesh& mesh) {
  const BoundarySurface s = boundary_surface(mesh.tets);
  std::set<Index> nodes;
  for (const Tri& t : s.triangles) nodes.insert(t.begin(), t.end());
  return long(nodes.size()) - long(surface_edges(s.triangles).edges.size()) + long(s.triangles.size());
}

// No problem at all, one piece, fair elements, closed outward boundary.
void expect_sound(const TetMesh& mesh, double least_quality) {
  const MeshReport report = check_mesh(mesh);
  for (const MeshProblem& p : report.problems) ADD_FAILURE() << p.message;
  EXPECT_EQ(report.components, 1);
  EXPECT_GE(summarize_quality(mesh).least, least_quality);
  EXPECT_NEAR(enclosed_volume(mesh), mesh_volume(mesh), 1e-12 * mesh_volume(mesh));
}

TEST(Generate, BarOfThePaperHasItsCounts) {
  const TetMesh bar = make_box({0.06, 0.06, 0.2}, {7, 7, 21});
  EXPECT_EQ(bar.nodes.size(), 1029u);
  EXPECT_EQ(bar.tets.size(), 4320u);
  expect_sound(bar, 0.5);
  EXPECT_NEAR(mesh_volume(bar), 0.06 * 0.06 * 0.2, 1e-15);
  EXPECT_EQ(bar.nodes[1], Vec3(0.06 / 6, 0, 0));
  EXPECT_EQ(bar.nodes[7], Vec3(0, 0.06 / 6, 0));
  EXPECT_EQ(bar.nodes.back(), Vec3(0.06, 0.06, 0.2));
  EXPECT_EQ(bar.node_sets.at("z1").size(), 49u);
  EXPECT_EQ(bar.node_sets.at("x0").size(), 147u);
  for (const Index i : bar.node_sets.at("x0")) EXPECT_EQ(bar.nodes[i][0], 0);
  for (const Index i : bar.node_sets.at("y1")) EXPECT_EQ(bar.nodes[i][1], 0.06);
  // Two triangles per square of the six sides.
  EXPECT_EQ(boundary_surface(bar.tets).triangles.size(), 2u * (2 * 6 * 6 + 4 * 6 * 20));
}

TEST(Generate, SphereConvergesToItsVolume) {
  double error[2];
  int i = 0;
  for (const double edge : {0.02, 0.01}) {
    const TetMesh mesh = make_sphere(0.1, edge);
    expect_sound(mesh, 0.45);
    EXPECT_EQ(euler_characteristic(mesh), 2);
    for (const Index k : mesh.node_sets.at("surface")) EXPECT_NEAR(mesh.nodes[k].norm(), 0.1, 1e-15);
    error[i++] = 4 * std::numbers::pi / 3 * 1e-3 - mesh_volume(mesh);
  }
  EXPECT_GT(error[1], 0);  // inscribed
  EXPECT_NEAR(error[0] / error[1], 4, 0.2);
}

TEST(Generate, CapsuleConvergesToItsVolume) {
  double error[2];
  int i = 0;
  for (const double edge : {0.01, 0.005}) {
    const TetMesh mesh = make_capsule(0.04, 0.1, edge);
    expect_sound(mesh, 0.3);
    EXPECT_EQ(euler_characteristic(mesh), 2);
    const Box box = bounding_box(mesh.nodes);
    EXPECT_NEAR(box.size()[2], 0.18, 1e-15);
    error[i++] = std::numbers::pi * 0.04 * 0.04 * (0.1 + 4.0 / 3 * 0.04) - mesh_volume(mesh);
  }
  EXPECT_GT(error[1], 0);
  EXPECT_NEAR(error[0] / error[1], 4, 0.2);
}

TEST(Generate, CylinderConvergesToItsVolume) {
  double error[2];
  int i = 0;
  for (const double edge : {0.01, 0.005}) {
    const TetMesh mesh = make_cylinder(0.04, 0.1, edge);
    expect_sound(mesh, 0.45);
    EXPECT_EQ(euler_characteristic(mesh), 2);
    for (const Index k : mesh.node_sets.at("z1")) EXPECT_DOUBLE_EQ(mesh.nodes[k][2], 0.05);
    EXPECT_EQ(mesh.node_sets.at("z0").size(), mesh.node_sets.at("z1").size());
    error[i++] = std::numbers::pi * 0.04 * 0.04 * 0.1 - mesh_volume(mesh);
  }
  EXPECT_GT(error[1], 0);
  EXPECT_NEAR(error[0] / error[1], 4, 0.2);
}

TEST(Generate, TorusConvergesToItsVolume) {
  double error[2];
  int i = 0;
  for (const double edge : {0.01, 0.005}) {
    const TetMesh mesh = make_torus(0.1, 0.03, edge);
    expect_sound(mesh, 0.35);
    EXPECT_EQ(euler_characteristic(mesh), 0);
    error[i++] = 2 * std::numbers::pi * std::numbers::pi * 0.1 * 0.03 * 0.03 - mesh_volume(mesh);
  }
  EXPECT_GT(error[1], 0);
  EXPECT_NEAR(error[0] / error[1], 4, 0.3);
}

TEST(Generate, CoarsestShapesAreSound) {
  expect_sound(make_sphere(0.1, 10), 0.4);
  expect_sound(make_capsule(0.1, 0.1, 10), 0.1);
  expect_sound(make_cylinder(0.1, 0.1, 10), 0.1);
  EXPECT_EQ(euler_characteristic(make_torus(0.1, 0.02, 10)), 0);
}

TEST(Generate, EdgesHaveTheWantedLength) {
  for (const TetMesh& mesh : {make_sphere(0.1, 0.01), make_capsule(0.05, 0.1, 0.01),
                              make_cylinder(0.05, 0.1, 0.01), make_torus(0.1, 0.03, 0.01)}) {
    const QualitySummary q = summarize_quality(mesh);
    EXPECT_NEAR(q.edge_mean, 0.01, 0.0035);
    EXPECT_GT(q.edge_least, 0.004);
    EXPECT_LT(q.edge_most, 0.025);
  }
}

TEST(Generate, RectangleIsPlaneAndCounterClockwise) {
  const TriMesh mesh = make_rectangle({2, 1}, {9, 5});
  EXPECT_EQ(mesh.nodes.size(), 45u);
  EXPECT_EQ(mesh.triangles.size(), 64u);
  EXPECT_EQ(guess_role(mesh), TriRole::kPlane);
  const MeshReport report = check_mesh(mesh, TriRole::kPlane);
  for (const MeshProblem& p : report.problems) ADD_FAILURE() << p.message;
  EXPECT_NEAR(summarize_quality(mesh).volume, 2, 1e-14);
  EXPECT_EQ(mesh.node_sets.at("x1").size(), 5u);
}

TEST(Generate, NonsenseIsRefused) {
  EXPECT_THROW(make_box({1, 1, 0}, {2, 2, 2}), Error);
  EXPECT_THROW(make_box({1, 1, 1}, {2, 1, 2}), Error);
  EXPECT_THROW(make_box({1, 1, 1}, {100000, 100000, 100000}), Error);
  EXPECT_THROW(make_sphere(1, 1e-9), Error);
  EXPECT_THROW(make_sphere(1, std::nan("")), Error);
  EXPECT_THROW(make_torus(1, 1, 0.1), Error);
}

}  // namespace
}  // namespace limber
