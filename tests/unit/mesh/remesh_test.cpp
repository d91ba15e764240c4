#include <limber/core/error.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/quality.hpp>
#include <limber/mesh/remesh.hpp>
#include <limber/mesh/smooth.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/mesh/surface_tree.hpp>

#include <gtest/gtest.h>

#include <numbers>
#include <random>

namespace limber {
namespace {

TriMesh sphere(double radius, double edge, const Vec3& center = Vec3::Zero()) {
  TriMesh s = surface_mesh(make_sphere(radius, edge));
  for (Vec3& p : s.nodes) p += center;
  s.node_sets.clear();
  return s;
}

void append(TriMesh& a, const TriMesh& b) {
  const auto n = static_cast<Index>(a.nodes.size());
  a.nodes.insert(a.nodes.end(), b.nodes.begin(), b.nodes.end());
  for (const Tri& t : b.triangles) a.triangles.push_back({t[0] + n, t[1] + n, t[2] + n});
}

// V - E + F.
long euler_characteristic(const TriMesh& s) {
  return long(s.nodes.size()) - long(surface_edges(s.triangles).edges.size()) + long(s.triangles.size());
}

TEST(SurfaceTree, NearestPointAgreesWithBruteForce) {
  const TriMesh s = surface_mesh(make_torus(0.1, 0.03, 0.01));
  const SurfaceTree tree(s.nodes, s.triangles);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> u(-0.2, 0.2);
  for (int k = 0; k < 50; ++k) {
    const Vec3 p(u(random), u(random), u(random));
    double best = 1e9;
    for (const Tri& t : s.triangles) {
      // The least distance over a fine grid of barycentric coordinates is an upper bound close to the truth.
      const Vec3 q = nearest_on_triangle(p, s.nodes[t[0]], s.nodes[t[1]], s.nodes[t[2]]);
      best = std::min(best, (q - p).norm());
      for (int i = 0; i <= 4; ++i)
        for (int j = 0; i + j <= 4; ++j) {
          const Vec3 grid = (i * s.nodes[t[0]] + j * s.nodes[t[1]] + (4 - i - j) * s.nodes[t[2]]) / 4;
          ASSERT_GE((grid - p).norm(), (q - p).norm() * (1 - 1e-12));
        }
    }
    EXPECT_DOUBLE_EQ(tree.nearest(p).distance, best);
  }
}

TEST(SurfaceTree, WindingNumberTellsInsideAndFadesInHoles) {
  TriMesh s = sphere(0.1, 0.01);
  {
    const SurfaceTree tree(s.nodes, s.triangles);
    for (const double r : {0.0, 0.05, 0.09}) EXPECT_NEAR(tree.winding({r, 0.01, 0}), 1, 0.05);
    for (const double r : {0.12, 0.2, 3.0}) EXPECT_NEAR(tree.winding({0, r, 0}), 0, 0.05);
  }
  // Without the upper half its middle sees half of the full angle.
  std::erase_if(s.triangles,
                [&](const Tri& t) { return (s.nodes[t[0]] + s.nodes[t[1]] + s.nodes[t[2]])[2] > 0; });
  const SurfaceTree half(s.nodes, s.triangles);
  EXPECT_NEAR(half.winding({0, 0, 0}), 0.5, 0.05);
}

TEST(SurfaceTree, FindsIntersections) {
  const std::vector<Vec3> x{{0, 0, 0},     {1, 0, 0},     {0, 1, 0}, {0.2, 0.2, -1},
                            {0.3, 0.2, 1}, {0.2, 0.3, 1}, {0, 0, 1}};
  EXPECT_TRUE(triangles_intersect(x, {0, 1, 2}, {3, 4, 5}));
  EXPECT_FALSE(triangles_intersect(x, {0, 1, 2}, {6, 4, 5}));  // above it
  EXPECT_FALSE(triangles_intersect(x, {0, 1, 2}, {0, 4, 6}));  // shares a corner and leaves
  EXPECT_FALSE(triangles_intersect(x, {0, 1, 2}, {1, 0, 6}));  // shares an edge
  EXPECT_TRUE(triangles_intersect(x, {0, 1, 2}, {0, 3, 4}));   // shares a corner and comes through

  TriMesh s = sphere(0.1, 0.03);
  EXPECT_TRUE(SurfaceTree(s.nodes, s.triangles).self_intersections(100).empty());
  const auto n = static_cast<Index>(s.triangles.size());
  append(s, sphere(0.1, 0.03, {0.1, 0.003, 0.007}));
  const auto pairs = SurfaceTree(s.nodes, s.triangles).self_intersections(10000);
  EXPECT_GT(pairs.size(), 10u);
  for (const auto& [a, b] : pairs) {
    EXPECT_LT(a, n);
    EXPECT_GE(b, n);
    EXPECT_NEAR(s.nodes[s.triangles[a][0]][0], 0.05, 0.04);  // around the circle x = 0.05
  }
}

TEST(Repair, CleansAndNamesDefects) {
  TriMesh s = surface_mesh(make_box({0.1, 0.1, 0.1}, {3, 3, 3}));
  EXPECT_TRUE(surface_defects(s).empty());
  // As a soup, with a repeated and a flat triangle: the same surface after cleaning.
  TriMesh soup;
  for (const Tri& t : s.triangles) {
    const auto n = static_cast<Index>(soup.nodes.size());
    for (const Index v : t) soup.nodes.push_back(s.nodes[v]);
    soup.triangles.push_back({n, n + 1, n + 2});
  }
  soup.triangles.push_back(soup.triangles[3]);
  soup.triangles.push_back({0, 1, 1});
  EXPECT_FALSE(surface_defects(soup).empty());
  EXPECT_EQ(clean_surface(soup).size(), 3u);
  EXPECT_EQ(soup.nodes.size(), s.nodes.size());
  EXPECT_EQ(soup.triangles.size(), s.triangles.size());
  EXPECT_TRUE(surface_defects(soup).empty());

  TriMesh open = s;
  open.triangles.pop_back();
  ASSERT_EQ(surface_defects(open).size(), 1u);
  EXPECT_NE(
      surface_defects(open)[0].find("the surface is open: 3 edges with one triangle, first between nodes"),
      std::string::npos)
      << surface_defects(open)[0];
  TriMesh crossing = sphere(0.1, 0.03);
  append(crossing, sphere(0.1, 0.03, {0.1, 0.003, 0.007}));
  ASSERT_EQ(surface_defects(crossing).size(), 1u);
  EXPECT_NE(surface_defects(crossing)[0].find("intersects itself"), std::string::npos);
}

void turn(TriMesh& s, std::size_t begin = 0) {
  for (std::size_t i = begin; i < s.triangles.size(); ++i) std::swap(s.triangles[i][1], s.triangles[i][2]);
}

TriMesh cube(double size, const Vec3& corner, bool inward = false) {
  TriMesh s = surface_mesh(make_box({size, size, size}, {4, 4, 4}));
  for (Vec3& p : s.nodes) p += corner;
  if (inward) turn(s);
  return s;
}

TEST(Orient, TurnsPartsAndTrianglesOutwards) {
  TriMesh good = cube(0.2, {0, 0, 0});
  const std::vector<Tri> before = good.triangles;
  EXPECT_TRUE(orient_surface(good).empty());
  EXPECT_EQ(good.triangles, before);

  TriMesh inward = cube(0.2, {3, 0, 0}, true);
  EXPECT_EQ(orient_surface(inward), std::vector<std::string>{"turned the surface, which faced inwards"});
  EXPECT_NEAR(enclosed_volume(inward), 0.008, 1e-12);

  TriMesh two = cube(0.2, {0, 0, 0});
  append(two, cube(0.2, {0.5, 0, 0}, true));
  EXPECT_EQ(orient_surface(two).size(), 1u);
  EXPECT_NEAR(enclosed_volume(two), 0.016, 1e-12);
  EXPECT_NEAR(enclosed_volume(wrap_surface(two, 0.01, true)), 0.016, 0.0005);

  TriMesh alternate = cube(0.2, {0, 0, 0});
  for (std::size_t i = 0; i < alternate.triangles.size(); i += 3)
    std::swap(alternate.triangles[i][1], alternate.triangles[i][2]);
  EXPECT_EQ(orient_surface(alternate).size(), 1u);
  EXPECT_TRUE(surface_defects(alternate).empty());
  EXPECT_NEAR(enclosed_volume(alternate), 0.008, 1e-12);

  TriMesh hole = sphere(0.1, 0.01);
  std::erase_if(hole.triangles, [&](const Tri& t) { return hole.nodes[at(t[0])][2] > 0.09; });
  turn(hole);
  EXPECT_EQ(orient_surface(hole).size(), 1u);
  EXPECT_GT(SurfaceTree(hole.nodes, hole.triangles).winding(Vec3::Zero()), 0.5);
}

TEST(Orient, LeavesCavitiesAndSheets) {
  for (const bool inward : {false, true}) {
    TriMesh hollow = cube(0.2, {0, 0, 0});
    append(hollow, cube(0.1, {0.05, 0.05, 0.05}, true));
    if (inward) turn(hollow);
    EXPECT_EQ(orient_surface(hollow).empty(), !inward);
    EXPECT_NEAR(enclosed_volume(hollow), 0.007, 1e-12);
  }
  TriMesh bowl = sphere(0.1, 0.01);
  std::erase_if(bowl.triangles, [&](const Tri& t) { return bowl.nodes[at(t[0])][2] > 0; });
  turn(bowl);
  const std::vector<Tri> before = bowl.triangles;
  EXPECT_TRUE(orient_surface(bowl).empty());
  EXPECT_EQ(bowl.triangles, before);
}

TEST(Wrap, ClosesHolesAndUnites) {
  // Two balls that overlap, both with a hole: the union's volume is known.
  const double r = 0.1, d = 0.12;
  TriMesh s = sphere(r, 0.01);
  append(s, sphere(r, 0.01, {d, 0, 0}));
  std::erase_if(s.triangles, [&](const Tri& t) { return s.nodes[t[0]][2] > 0.097; });
  EXPECT_FALSE(surface_defects(s).empty());
  const TriMesh w = wrap_surface(s, 0.005);
  const MeshReport report = check_mesh(w, TriRole::kSurface);
  EXPECT_EQ(report.components, 1);
  EXPECT_EQ(report.find(MeshProblemKind::kOpenSurface), nullptr);
  EXPECT_EQ(report.find(MeshProblemKind::kNonManifoldSurface), nullptr);
  EXPECT_EQ(report.find(MeshProblemKind::kOrientation), nullptr);
  EXPECT_EQ(euler_characteristic(w), 2);
  const double lens = std::numbers::pi * (4 * r + d) * (2 * r - d) * (2 * r - d) / 12;
  EXPECT_NEAR(enclosed_volume(w), 2 * 4 * std::numbers::pi / 3 * r * r * r - lens, 0.02 * 8e-3);
  EXPECT_THROW(wrap_surface(s, 1e-6), Error);
  EXPECT_THROW(wrap_surface(s, 0), Error);
}

TEST(Remesh, GivesEdgesOfOneLength) {
  const TriMesh fine = sphere(0.1, 0.006);
  for (const double edge : {0.02, 0.012, 0.005}) {
    const TriMesh s = remesh_surface(fine, {edge, 8, 60});
    SCOPED_TRACE(edge);
    EXPECT_TRUE(surface_defects(s).empty());
    EXPECT_EQ(euler_characteristic(s), 2);
    const QualitySummary q = summarize_quality(s);
    EXPECT_NEAR(q.edge_mean, edge, 0.1 * edge);
    EXPECT_GT(q.edge_least, 0.5 * edge);
    EXPECT_LT(q.edge_most, 1.9 * edge);
    EXPECT_GT(q.mean, 0.95);
    EXPECT_NEAR(enclosed_volume(s), 4 * std::numbers::pi / 3 * 1e-3, 0.03 * 4 * std::numbers::pi / 3 * 1e-3);
  }
}

TEST(Remesh, KeepsSharpEdgesAndTopology) {
  const TriMesh box = surface_mesh(make_box({0.1, 0.1, 0.2}, {11, 11, 21}));
  const TriMesh s = remesh_surface(box, {0.021, 8, 60});
  EXPECT_TRUE(surface_defects(s).empty());
  EXPECT_NEAR(enclosed_volume(s), 0.002, 1e-12);
  EXPECT_NEAR(surface_area(s), 0.1, 1e-12);
  EXPECT_LT(s.triangles.size(), box.triangles.size() / 2);
  EXPECT_GT(summarize_quality(s).least, 0.3);
  const TriMesh ring = surface_mesh(make_torus(0.1, 0.03, 0.006));
  EXPECT_EQ(euler_characteristic(remesh_surface(ring, {0.012, 8, 60})), 0);
}

TEST(Remesh, OpensHandlesThinnerThanTriangles) {
  // Two balls joined by a wire: at this edge length the wire cannot be, and parts.
  TriMesh s = sphere(0.05, 0.01, {-0.06, 0, 0});
  append(s, sphere(0.05, 0.01, {0.06, 0, 0}));
  TriMesh wire = surface_mesh(make_cylinder(0.003, 0.06, 0.003));
  for (Vec3& p : wire.nodes) p = Vec3(p[2], p[0] + 0.0003, p[1] + 0.0002);
  append(s, wire);
  const TriMesh w = wrap_surface(s, 0.002);
  ASSERT_EQ(check_mesh(w, TriRole::kSurface).components, 1);
  const TriMesh coarse = remesh_surface(w, {0.015, 8, 180});
  EXPECT_TRUE(surface_defects(coarse).empty());
  EXPECT_EQ(check_mesh(coarse, TriRole::kSurface).components, 2);
  EXPECT_GT(summarize_quality(coarse).least, 0.2);
}

TEST(Repair, DropsSmallParts) {
  TriMesh s = sphere(0.1, 0.02);
  const std::size_t n = s.triangles.size();
  append(s, sphere(0.005, 0.002, {0.3, 0, 0}));
  append(s, sphere(0.08, 0.02, {-0.3, 0, 0}));
  EXPECT_EQ(drop_small_parts(s, 0.01), 1);
  EXPECT_GT(s.triangles.size(), n);
  EXPECT_EQ(check_mesh(s, TriRole::kSurface).components, 2);
  EXPECT_EQ(drop_small_parts(s, 0.01), 0);
}

TEST(Smooth, ImprovesTheWorstAndKeepsTheBoundary) {
  TetMesh mesh = make_box({0.1, 0.1, 0.1}, {6, 6, 6});
  std::mt19937 random(3);
  std::uniform_real_distribution<double> u(-0.004, 0.004);
  for (Vec3& p : mesh.nodes)
    if ((p.array() > 0.001).all() && (p.array() < 0.099).all()) p += Vec3(u(random), u(random), u(random));
  const TetMesh before = mesh;
  smooth_nodes(mesh, 4, 0.5, 0);
  EXPECT_GT(summarize_quality(mesh).least, summarize_quality(before).least + 0.1);
  for (std::size_t i = 0; i < mesh.nodes.size(); ++i)
    if (!(before.nodes[i].array() > 0.001).all()) {
      EXPECT_EQ(mesh.nodes[i], before.nodes[i]);
    }
}

}  // namespace
}  // namespace limber
