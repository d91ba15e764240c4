#include <limber/mesh/check.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/quality.hpp>
#include <limber/mesh/surface.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

using Kind = MeshProblemKind;

TetMesh small_box() { return make_box({0.1, 0.1, 0.1}, {3, 3, 3}); }

// The problem of this kind, which must be the only kind found.
MeshProblem only(const MeshReport& report, Kind kind) {
  EXPECT_EQ(report.problems.size(), 1u);
  const MeshProblem* p = report.find(kind);
  if (!p) {
    for (const MeshProblem& q : report.problems) ADD_FAILURE() << "instead: " << q.message;
    return {};
  }
  return *p;
}

TEST(CheckMesh, FindsAndTurnsInvertedTets) {
  TetMesh mesh = small_box();
  std::swap(mesh.tets[7][0], mesh.tets[7][1]);
  std::swap(mesh.tets[9][2], mesh.tets[9][3]);
  const MeshProblem p = only(check_mesh(mesh), Kind::kInverted);
  EXPECT_TRUE(p.fatal);
  EXPECT_EQ(p.count, 2);
  EXPECT_EQ(p.first, (std::vector<Index>{7, 9}));
  const auto notices = fix_mesh(mesh);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0], "turned 2 tets that were inverted");
  EXPECT_TRUE(check_mesh(mesh).problems.empty());
}

TEST(CheckMesh, FindsDegenerateTets) {
  TetMesh mesh = small_box();
  mesh.tets.push_back({0, 1, 2, 3});  // 0, 1, 2 lie on a line
  const MeshReport report = check_mesh(mesh);
  ASSERT_NE(report.find(Kind::kDegenerate), nullptr);
  EXPECT_FALSE(report.usable());
  EXPECT_EQ(report.find(Kind::kDegenerate)->first, (std::vector<Index>{48}));
  mesh.tets.back() = {0, 1, 1, 5};
  EXPECT_NE(check_mesh(mesh).find(Kind::kDegenerate), nullptr);
}

TEST(CheckMesh, FindsDuplicateTets) {
  TetMesh mesh = small_box();
  Tet t = mesh.tets[3];
  mesh.tets.push_back({t[1], t[2], t[0], t[3]});
  const MeshProblem p = *check_mesh(mesh).find(Kind::kDuplicateElement);
  EXPECT_TRUE(p.fatal);
  EXPECT_EQ(p.first, (std::vector<Index>{48}));
}

TEST(CheckMesh, DropsUnusedNodesAndKeepsSetsAndFields) {
  TetMesh mesh = small_box();
  mesh.nodes.insert(mesh.nodes.begin(), Vec3(5, 5, 5));
  for (Tet& t : mesh.tets)
    for (Index& v : t) ++v;
  for (auto& [name, set] : mesh.node_sets)
    for (Index& v : set) ++v;
  mesh.node_sets["x0"].insert(mesh.node_sets["x0"].begin(), 0);
  Field field{3, {}};
  for (const Vec3& p : mesh.nodes) field.values.insert(field.values.end(), p.data(), p.data() + 3);
  mesh.node_fields["rest"] = field;
  EXPECT_EQ(only(check_mesh(mesh), Kind::kUnusedNode).first, (std::vector<Index>{0}));
  EXPECT_TRUE(check_mesh(mesh).usable());
  EXPECT_EQ(fix_mesh(mesh), (std::vector<std::string>{"dropped 1 node that no tet uses"}));
  const TetMesh box = small_box();
  EXPECT_EQ(mesh.nodes, box.nodes);
  EXPECT_EQ(mesh.tets, box.tets);
  EXPECT_EQ(mesh.node_sets, box.node_sets);
  for (std::size_t i = 0; i < box.nodes.size(); ++i)
    for (int a = 0; a < 3; ++a) EXPECT_EQ(mesh.node_fields["rest"].values[3 * i + a], box.nodes[i][a]);
  EXPECT_TRUE(fix_mesh(mesh).empty());
}

TEST(CheckMesh, FindsDuplicateNodesAndParts) {
  TetMesh mesh = small_box(), other = small_box();
  const auto n = static_cast<Index>(mesh.nodes.size());
  for (const Vec3& p : other.nodes) mesh.nodes.push_back(p + Vec3(0.1, 0, 0));
  for (Tet t : other.tets) {
    for (Index& v : t) v += n;
    mesh.tets.push_back(t);
  }
  MeshReport report = check_mesh(mesh);
  EXPECT_EQ(report.components, 2);
  ASSERT_NE(report.find(Kind::kSeveralComponents), nullptr);
  EXPECT_EQ(report.find(Kind::kSeveralComponents)->first, (std::vector<Index>{0, n}));
  ASSERT_NE(report.find(Kind::kDuplicateNode), nullptr);
  EXPECT_EQ(report.find(Kind::kDuplicateNode)->count, 9);
  EXPECT_EQ(report.find(Kind::kDuplicateNode)->first[0], n);
  EXPECT_TRUE(report.usable());
  // A hair apart is still a twin, a hundredth of the size is not.
  for (Index i = n; i < 2 * n; ++i) mesh.nodes[i][0] += 1e-12;
  EXPECT_NE(check_mesh(mesh).find(Kind::kDuplicateNode), nullptr);
  for (Index i = n; i < 2 * n; ++i) mesh.nodes[i][0] += 1e-3;
  EXPECT_EQ(check_mesh(mesh).find(Kind::kDuplicateNode), nullptr);
}

TEST(CheckMesh, FindsNumbersAndIndicesThatAreNone) {
  TetMesh mesh = small_box();
  mesh.nodes[4][1] = std::nan("");
  mesh.nodes[6][2] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(only(check_mesh(mesh), Kind::kNonFinite).first, (std::vector<Index>{4, 6}));
  mesh = small_box();
  mesh.tets[5][2] = 27;
  EXPECT_EQ(only(check_mesh(mesh), Kind::kIndexRange).first, (std::vector<Index>{5}));
  mesh.tets[5][2] = -1;
  EXPECT_FALSE(check_mesh(mesh).usable());
  mesh = small_box();
  mesh.node_sets["bad"] = {27};
  EXPECT_FALSE(check_mesh(mesh).usable());
  mesh = small_box();
  mesh.element_fields["young"] = {1, {1, 2, 3}};
  EXPECT_TRUE(only(check_mesh(mesh), Kind::kFieldSize).fatal);
  EXPECT_TRUE(only(check_mesh(TetMesh{}), Kind::kEmpty).fatal);
}

TEST(CheckMesh, FindsScaleAndNonManifoldSurface) {
  TetMesh mesh = small_box();
  for (Vec3& p : mesh.nodes) p *= 1e4;
  EXPECT_FALSE(only(check_mesh(mesh), Kind::kScale).fatal);
  // Two tets that share one edge only.
  mesh = {};
  mesh.nodes = {{0, 0, 0}, {0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {-1, 0, 0}, {0, -1, 0}};
  mesh.tets = {{0, 1, 3, 2}, {0, 1, 5, 4}};
  fix_mesh(mesh);
  const MeshProblem p = only(check_mesh(mesh), Kind::kNonManifoldSurface);
  EXPECT_EQ(p.first, (std::vector<Index>{0, 1}));
}

TEST(CheckMesh, SurfacesOpenAndTurned) {
  TriMesh surface = surface_mesh(small_box());
  EXPECT_TRUE(check_mesh(surface, TriRole::kSurface).problems.empty());
  std::swap(surface.triangles[0][0], surface.triangles[0][1]);
  EXPECT_EQ(only(check_mesh(surface, TriRole::kSurface), Kind::kOrientation).count, 3);
  surface.triangles.erase(surface.triangles.begin());
  EXPECT_EQ(only(check_mesh(surface, TriRole::kSurface), Kind::kOpenSurface).count, 3);

  TriMesh plane = make_rectangle({1, 1}, {3, 3});
  std::swap(plane.triangles[2][0], plane.triangles[2][1]);
  EXPECT_FALSE(check_mesh(plane, TriRole::kPlane).usable());
  EXPECT_EQ(fix_mesh(plane, TriRole::kPlane).size(), 1u);
  EXPECT_TRUE(check_mesh(plane, TriRole::kPlane).problems.empty());
}

TEST(Surface, KeepsElementsAndPlaneTriangles) {
  const TetMesh mesh = small_box();
  const BoundarySurface s = boundary_surface(mesh.tets);
  for (std::size_t i = 0; i < s.triangles.size(); ++i) {
    const Tet& t = mesh.tets[s.elements[i]];
    for (const Index v : s.triangles[i]) EXPECT_NE(std::find(t.begin(), t.end(), v), t.end());
  }
  const std::vector<Tet> mixed{{0, 1, 2, 3}, {4, 5, 6, -1}};
  const BoundarySurface m = boundary_surface(mixed);
  ASSERT_EQ(m.triangles.size(), 5u);
  EXPECT_EQ(m.triangles[4], (Tri{4, 5, 6}));
  EXPECT_EQ(m.elements[4], 1);
  std::vector<Index> origin;
  const TriMesh surface = surface_mesh(mesh, &origin);
  EXPECT_EQ(surface.nodes.size(), 26u);  // the middle node is inside
  for (std::size_t i = 0; i < origin.size(); ++i) EXPECT_EQ(surface.nodes[i], mesh.nodes[origin[i]]);
  EXPECT_EQ(surface.node_sets.at("x0").size(), 9u);
}

TEST(Quality, KnownElements) {
  const std::vector<Vec3> regular{{1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}};
  EXPECT_NEAR(std::abs(radius_ratio(regular, Tet{0, 1, 2, 3})), 1, 1e-14);
  EXPECT_NEAR(radius_ratio(regular, Tet{0, 1, 2, 3}), -radius_ratio(regular, Tet{1, 0, 2, 3}), 1e-14);
  EXPECT_NEAR(least_dihedral_angle(regular, Tet{0, 1, 2, 3}), 70.528779, 1e-6);
  // Corner of a cube: r = (3 - sqrt 3)/6, R = sqrt(3)/2.
  const std::vector<Vec3> corner{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  EXPECT_NEAR(radius_ratio(corner, Tet{0, 1, 2, 3}), 3 * (3 - std::sqrt(3)) / 6 / (std::sqrt(3) / 2), 1e-14);
  EXPECT_NEAR(least_dihedral_angle(corner, Tet{0, 1, 2, 3}), 54.735610, 1e-6);
  EXPECT_EQ(radius_ratio(corner, Tet{0, 1, 2, 2}), 0);
  // 3-4-5: r = 1, R = 2.5.
  const std::vector<Vec3> triangle{{0, 0, 0}, {3, 0, 0}, {0, 4, 0}};
  EXPECT_NEAR(radius_ratio(triangle, Tri{0, 1, 2}), 0.8, 1e-14);
}

}  // namespace
}  // namespace limber
