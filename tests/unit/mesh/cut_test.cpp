#include <limber/mesh/check.hpp>
#include <limber/mesh/cut.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/surface.hpp>

#include <gtest/gtest.h>

#include <set>

namespace limber {
namespace {

struct Cut {
  CutMesh mesh;
  Index parts_before = 0, parts_after = 0;
};

Index parts(Index nodes, const std::vector<Tet>& elements) {
  Index n = 0;
  connected_components(nodes, elements, &n);
  return n;
}

Cut with_parts(Index nodes, const std::vector<Tet>& elements, CutMesh mesh) {
  Cut cut;
  cut.parts_before = parts(nodes, elements);
  cut.parts_after = parts(static_cast<Index>(mesh.copy_of.size()), mesh.elements);
  cut.mesh = std::move(mesh);
  return cut;
}

// Every element goes to the side of its centroid; `begin` to the end of the elements take part.
Cut cut_by_plane(const std::vector<Vec3>& x, const std::vector<Tet>& elements, const Vec3& point,
                 const Vec3& normal, std::size_t begin = 0) {
  std::vector<std::uint8_t> side(elements.size(), 0);
  for (std::size_t e = begin; e < elements.size(); ++e) {
    Vec3 c = Vec3::Zero();
    const int n = elements[e][3] < 0 ? 3 : 4;
    for (int k = 0; k < n; ++k) c += x[elements[e][k]] / n;
    side[e] = (c - point).dot(normal) >= 0;
  }
  const auto nodes = static_cast<Index>(x.size());
  return with_parts(nodes, elements, cut_by_side(nodes, elements, side));
}

Cut cut_along_faces(Index nodes, const std::vector<Tet>& elements, const std::vector<Face>& faces) {
  return with_parts(nodes, elements, cut_by_faces(nodes, elements, faces));
}

// A mesh after a cut, as a caller would rebuild it.
TetMesh apply(const TetMesh& mesh, const Cut& cut) {
  TetMesh out;
  for (const Index i : cut.mesh.copy_of) out.nodes.push_back(mesh.nodes[i]);
  out.tets = cut.mesh.elements;
  return out;
}

double volume(const TetMesh& mesh) {
  double v = 0;
  for (const Tet& t : mesh.tets) v += tet_volume(mesh.nodes, t);
  return v;
}

std::vector<Tet> as_elements(const TriMesh& mesh) {
  std::vector<Tet> out;
  for (const Tri& t : mesh.triangles) out.push_back({t[0], t[1], t[2], -1});
  return out;
}

TEST(Cut, PlaneThroughABarAtANodeLayer) {
  const TetMesh bar = make_box({0.1, 0.1, 0.4}, {3, 4, 9});
  // At z = 0.2 the plane lies on element faces: exactly the 3 x 4 nodes of that layer are doubled.
  const Cut cut = cut_by_plane(bar.nodes, bar.tets, {0, 0, 0.2}, {0, 0, 1});
  EXPECT_EQ(cut.mesh.copy_of.size(), bar.nodes.size() + 12);
  EXPECT_EQ(cut.mesh.faces, 2 * 2 * 3);
  EXPECT_EQ(cut.parts_before, 1);
  EXPECT_EQ(cut.parts_after, 2);
  for (std::size_t i = 0; i < bar.nodes.size(); ++i) EXPECT_EQ(cut.mesh.copy_of[i], static_cast<Index>(i));
  for (std::size_t i = bar.nodes.size(); i < cut.mesh.copy_of.size(); ++i)
    EXPECT_DOUBLE_EQ(bar.nodes[cut.mesh.copy_of[i]][2], 0.2);
  const TetMesh after = apply(bar, cut);
  EXPECT_EQ(boundary_surface(after.tets).triangles.size(),
            boundary_surface(bar.tets).triangles.size() + 2 * cut.mesh.faces);
  EXPECT_DOUBLE_EQ(volume(after), volume(bar));
  // Elements stay in place and name copies of their own nodes.
  for (std::size_t e = 0; e < bar.tets.size(); ++e)
    for (int k = 0; k < 4; ++k) EXPECT_EQ(cut.mesh.copy_of[after.tets[e][k]], bar.tets[e][k]);
  const MeshReport report = check_mesh(after);
  EXPECT_TRUE(report.usable());
  EXPECT_EQ(report.find(MeshProblemKind::kDuplicateNode)->count, 12);
}

TEST(Cut, ObliquePlaneSeparatesByCentroids) {
  const TetMesh bar = make_box({0.1, 0.1, 0.4}, {5, 5, 17});
  const Vec3 point(0.05, 0.05, 0.19), normal = Vec3(0.3, -0.5, 0.8).normalized();
  const Cut cut = cut_by_plane(bar.nodes, bar.tets, point, normal);
  EXPECT_EQ(cut.parts_after, 2);
  const auto part = connected_components(static_cast<Index>(cut.mesh.copy_of.size()), cut.mesh.elements);
  for (std::size_t e = 0; e < bar.tets.size(); ++e) {
    Vec3 c = Vec3::Zero();
    for (const Index v : bar.tets[e]) c += bar.nodes[v] / 4;
    const bool above = (c - point).dot(normal) >= 0;
    EXPECT_EQ(part[cut.mesh.elements[e][0]] == part[cut.mesh.elements.back()[0]], above);
  }
}

TEST(Cut, NothingToSeparate) {
  const TetMesh box = make_box({1, 1, 1}, {3, 3, 3});
  const Cut cut = cut_by_plane(box.nodes, box.tets, {0, 0, 5}, {0, 0, 1});
  EXPECT_EQ(cut.mesh.faces, 0);
  EXPECT_EQ(cut.mesh.copy_of.size(), box.nodes.size());
  EXPECT_EQ(cut.mesh.elements, box.tets);
  EXPECT_EQ(cut.parts_after, 1);
  EXPECT_EQ(cut_along_faces(27, box.tets, {}).mesh.faces, 0);
  EXPECT_EQ(cut_along_faces(27, box.tets, std::vector<Face>{{0, 1, 26}}).mesh.faces, 0);  // no such face
  EXPECT_EQ(cut_along_faces(27, box.tets, std::vector<Face>{{0, 1, 4}}).mesh.faces,
            0);  // on the boundary
}

TEST(Cut, PartOfTheWayThrough) {
  const TetMesh box = make_box({1, 1, 1}, {5, 5, 5});
  // Only the half x < 0.5 of the plane z = 0.5: the front of the cut, the line x = 0.5, stays whole.
  std::vector<Face> faces;
  const Cut whole = cut_by_plane(box.nodes, box.tets, {0, 0, 0.5}, {0, 0, 1});
  for (const Tri& t : boundary_surface(whole.mesh.elements).triangles) {
    Tri f;
    for (int k = 0; k < 3; ++k) f[k] = whole.mesh.copy_of[t[k]];
    bool in = true;
    for (const Index v : f) in = in && box.nodes[v][2] == 0.5 && box.nodes[v][0] <= 0.5;
    if (in) faces.push_back(f);
  }
  EXPECT_EQ(faces.size(), 2u * 16);  // both sides of 2 x 4 squares of two triangles
  const Cut cut = cut_along_faces(125, box.tets, faces);
  EXPECT_EQ(cut.mesh.faces, 16);
  EXPECT_EQ(cut.parts_after, 1);
  EXPECT_EQ(cut.mesh.copy_of.size(), 125u + 2 * 5);  // x = 0 and x = 0.25
  for (std::size_t i = 125; i < cut.mesh.copy_of.size(); ++i)
    EXPECT_LT(box.nodes[cut.mesh.copy_of[i]][0], 0.5);
  // One face in the middle opens nothing: no fan falls apart.
  const Cut one = cut_along_faces(125, box.tets, std::vector<Face>{{62, 63, 68}});
  EXPECT_EQ(one.mesh.copy_of.size(), 125u);
  EXPECT_EQ(one.mesh.faces, 0);
}

TEST(Cut, ManyCutsInARow) {
  TetMesh mesh = make_box({0.2, 0.2, 0.5}, {5, 5, 11});
  const double v = volume(mesh);
  // Three planes that cross: 2, 4, 8 pieces; then the same again, which does nothing.
  const std::array<Vec3, 3> normals{Vec3::UnitZ(), Vec3::UnitX(), Vec3::UnitY()};
  for (int k = 0; k < 3; ++k) {
    const Cut cut = cut_by_plane(mesh.nodes, mesh.tets, {0.1, 0.1, 0.25}, normals[k]);
    EXPECT_EQ(cut.parts_before, 1 << k);
    EXPECT_EQ(cut.parts_after, 2 << k);
    EXPECT_GT(cut.mesh.faces, 0);
    mesh = apply(mesh, cut);
  }
  EXPECT_NEAR(volume(mesh), v, 1e-15);
  for (const Vec3& n : normals) {
    const Cut cut = cut_by_plane(mesh.nodes, mesh.tets, {0.1, 0.1, 0.25}, n);
    EXPECT_EQ(cut.mesh.faces, 0);
    EXPECT_EQ(cut.mesh.elements, mesh.tets);
  }
  // Every tet for itself.
  std::vector<Face> all;
  for (const Tet& t : mesh.tets)
    for (int k = 0; k < 4; ++k) all.push_back({t[k], t[(k + 1) % 4], t[(k + 2) % 4]});
  const Cut dust = cut_along_faces(static_cast<Index>(mesh.nodes.size()), mesh.tets, all);
  EXPECT_EQ(dust.parts_after, static_cast<Index>(mesh.tets.size()));
  EXPECT_EQ(dust.mesh.copy_of.size(), 4 * mesh.tets.size());
}

TEST(Cut, LeavesOtherBodiesAlone) {
  TetMesh two = make_box({1, 1, 1}, {3, 3, 3});
  const auto n = static_cast<Index>(two.nodes.size());
  const std::size_t m = two.tets.size();
  for (Index i = 0; i < n; ++i) two.nodes.push_back(two.nodes[i] + Vec3(5, 0, 0));
  for (std::size_t e = 0; e < m; ++e) {
    Tet t = two.tets[e];
    for (Index& v : t) v += n;
    two.tets.push_back(t);
  }
  const Cut cut = cut_by_plane(two.nodes, two.tets, {0, 0, 0.5}, Vec3::UnitZ(), m);
  EXPECT_EQ(cut.parts_before, 2);
  EXPECT_EQ(cut.parts_after, 3);
  for (std::size_t e = 0; e < m; ++e) EXPECT_EQ(cut.mesh.elements[e], two.tets[e]);
}

TEST(Cut, BodiesThatTouchInAnEdgeStayTogether) {
  // Two cubes of tets that share one edge of nodes; cutting the first must not part them from each other.
  const TetMesh box = make_box({1, 1, 1}, {3, 3, 3});
  std::vector<Vec3> nodes = box.nodes;
  std::vector<Tet> tets = box.tets;
  std::vector<Index> map(27);
  for (Index i = 0; i < 27; ++i) {
    const Vec3 p = box.nodes[i] + Vec3(1, 1, 0);
    Index at = -1;
    for (Index k = 0; k < 27; ++k)
      if ((box.nodes[k] - p).norm() < 1e-12) at = k;
    if (at < 0) {
      at = static_cast<Index>(nodes.size());
      nodes.push_back(p);
    }
    map[i] = at;
  }
  for (Tet t : box.tets) {
    for (Index& v : t) v = map[v];
    tets.push_back(t);
  }
  ASSERT_EQ(nodes.size(), 51u);
  std::vector<std::uint8_t> side(tets.size(), 0);
  for (std::size_t e = 0; e < box.tets.size(); ++e) {
    Vec3 c = Vec3::Zero();
    for (const Index v : tets[e]) c += nodes[v] / 4;
    side[e] = c[2] < 0.5;
  }
  const Cut cut = with_parts(51, tets, cut_by_side(51, tets, side));
  EXPECT_EQ(cut.mesh.copy_of.size(), 51u + 9);
  EXPECT_EQ(cut.parts_before, 1);
  EXPECT_EQ(cut.parts_after, 1);  // both halves still hang on the second cube
}

TEST(Cut, TrianglesComeApartAlongEdges) {
  const TriMesh sheet = make_rectangle({1, 1}, {5, 5});
  const std::vector<Tet> elements = as_elements(sheet);
  const Cut cut = cut_by_plane(sheet.nodes, elements, {0.5, 0, 0}, {1, 0, 0});
  EXPECT_EQ(cut.mesh.faces, 4);
  EXPECT_EQ(cut.mesh.copy_of.size(), 25u + 5);
  EXPECT_EQ(cut.parts_after, 2);
  for (const Tet& t : cut.mesh.elements) EXPECT_EQ(t[3], -1);
  // From the border half way: the last node of the cut stays whole.
  const std::vector<Face> half{{2, 7, -1}, {12, 7, -1}};
  const Cut slit = cut_along_faces(25, elements, half);
  EXPECT_EQ(slit.mesh.faces, 2);
  EXPECT_EQ(slit.parts_after, 1);
  EXPECT_EQ(slit.mesh.copy_of.size(), 25u + 2);
  EXPECT_EQ((std::set<Index>{slit.mesh.copy_of[25], slit.mesh.copy_of[26]}), (std::set<Index>{2, 7}));
}

}  // namespace
}  // namespace limber
