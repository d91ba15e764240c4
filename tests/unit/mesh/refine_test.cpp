#include <limber/mesh/check.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/quality.hpp>
#include <limber/mesh/refine.hpp>
#include <limber/mesh/surface.hpp>

#include <gtest/gtest.h>

#include <set>

namespace limber {
namespace {

std::vector<Index> sorted(std::vector<Index> v) {
  std::sort(v.begin(), v.end());
  return v;
}

// A refined box has the nodes of the box with twice the cells, and its sides the nodes of those sides.
TEST(Refine, BoxIsTheBoxOfHalfTheEdge) {
  const Vec3 size(0.3, 0.2, 0.1);
  const TetMesh fine = refined(make_box(size, {4, 3, 2})), expected = make_box(size, {7, 5, 3});
  EXPECT_EQ(fine.tets.size(), expected.tets.size());
  auto places = [](const TetMesh& m, const std::vector<Index>& ids) {
    std::set<std::array<long, 3>> s;
    for (const Index i : ids)
      s.insert({std::lround(1e6 * m.nodes[i][0]), std::lround(1e6 * m.nodes[i][1]),
                std::lround(1e6 * m.nodes[i][2])});
    return s;
  };
  auto all = [](const TetMesh& m) {
    std::vector<Index> ids(m.nodes.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Index>(i);
    return ids;
  };
  ASSERT_EQ(fine.nodes.size(), expected.nodes.size());
  EXPECT_EQ(places(fine, all(fine)), places(expected, all(expected)));
  for (const char* side : {"x0", "x1", "y0", "y1", "z0", "z1"}) {
    EXPECT_EQ(fine.node_sets.at(side).size(), expected.node_sets.at(side).size());
    EXPECT_EQ(places(fine, fine.node_sets.at(side)), places(expected, expected.node_sets.at(side))) << side;
  }
}

// On a ball of one layer many inner edges join surface nodes: their middles are not on the surface.
TEST(Refine, KeepsVolumeOrientationSurfaceAndQuality) {
  const TetMesh ball = make_sphere(1, 0.6), fine = refined(refined(ball));
  EXPECT_EQ(fine.tets.size(), 64 * ball.tets.size());
  EXPECT_TRUE(check_mesh(fine).usable());
  double before = 0, after = 0;
  for (const Tet& t : ball.tets) before += tet_volume(ball.nodes, t);
  for (const Tet& t : fine.tets) {
    const double v = tet_volume(fine.nodes, t);
    EXPECT_GT(v, 0);
    after += v;
  }
  EXPECT_NEAR(after, before, 1e-12);
  // Bounded below however often it is done; the corners are scaled copies.
  EXPECT_GT(summarize_quality(fine).least, 0.5 * summarize_quality(ball).least);

  std::set<Index> surface;
  for (const Tri& t : boundary_surface(fine.tets).triangles) surface.insert(t.begin(), t.end());
  EXPECT_EQ(sorted(fine.node_sets.at("surface")), std::vector<Index>(surface.begin(), surface.end()));
}

TEST(Refine, SetsAndFieldsGoToTheChildren) {
  TetMesh mesh = make_box({1, 1, 1}, {3, 3, 3});
  for (std::size_t e = 0; e < mesh.tets.size(); ++e)
    mesh.element_fields["number"].values.push_back(static_cast<double>(e));
  for (const Vec3& p : mesh.nodes) mesh.node_fields["x"].values.push_back(p[0]);
  mesh.element_sets["some"] = {0, 5};
  std::vector<Index>& lower = mesh.node_sets["lower"];  // not on the boundary alone
  for (std::size_t i = 0; i < mesh.nodes.size(); ++i)
    if (mesh.nodes[i][2] < 0.6) lower.push_back(static_cast<Index>(i));

  const TetMesh fine = refined(mesh);
  for (std::size_t e = 0; e < fine.tets.size(); ++e)
    EXPECT_EQ(fine.element_fields.at("number").values[e], static_cast<double>(e / 8));
  for (std::size_t i = 0; i < fine.nodes.size(); ++i)
    EXPECT_NEAR(fine.node_fields.at("x").values[i], fine.nodes[i][0], 1e-15);
  EXPECT_EQ(fine.element_sets.at("some").size(), 16u);
  std::size_t count = 0;
  for (const Vec3& p : fine.nodes) count += p[2] < 0.6;
  EXPECT_EQ(fine.node_sets.at("lower").size(), count);
}

TEST(Refine, Triangles) {
  const TriMesh fine = refined(make_rectangle({2, 1}, {5, 3})), expected = make_rectangle({2, 1}, {9, 5});
  EXPECT_EQ(fine.nodes.size(), expected.nodes.size());
  EXPECT_EQ(fine.triangles.size(), expected.triangles.size());
  for (const char* side : {"x0", "x1", "y0", "y1"})
    EXPECT_EQ(fine.node_sets.at(side).size(), expected.node_sets.at(side).size()) << side;
  double area = 0;
  for (const Tri& t : fine.triangles) {
    const Vec3 a = fine.nodes[t[1]] - fine.nodes[t[0]], b = fine.nodes[t[2]] - fine.nodes[t[0]];
    EXPECT_GT(a[0] * b[1] - a[1] * b[0], 0);
    area += 0.5 * (a[0] * b[1] - a[1] * b[0]);
  }
  EXPECT_NEAR(area, 2, 1e-12);
}

}  // namespace
}  // namespace limber
