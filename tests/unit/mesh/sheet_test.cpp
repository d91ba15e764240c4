#include <limber/core/error.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/sheet.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

Sheet square_sheet(Index n) { return sheet_from_mesh(make_rectangle({1, 1}, {n, n}), "square"); }

std::string first_defect(const Sheet& s) {
  const auto d = sheet_defects(s);
  return d.empty() ? "" : d.front();
}

TEST(Sheet, PlaneMeshIsItsOwnMaterial) {
  const Sheet s = square_sheet(5);
  EXPECT_TRUE(sheet_defects(s).empty());
  EXPECT_NEAR(material_area(s), 1, 1e-15);
  EXPECT_EQ(euler_characteristic(s), 1);
  for (Index i = 0; i < s.vertices(); ++i) EXPECT_LT((s.X[i] - s.x[i].head<2>()).norm(), 1e-15);
  const Mat32 F = deformation_gradient(s, s.triangles[7]);
  EXPECT_LT((F - Mat32::Identity()).norm(), 1e-14);
  const SheetBorder border = sheet_border(s);
  int on = 0, corners = 0;
  for (Index i = 0; i < s.vertices(); ++i) {
    on += border.on(i);
    corners += border.corner(s, i);
    if (border.on(i)) {
      EXPECT_EQ(border.before[border.after[i]], i);
      // Counter-clockwise: the middle lies to the left.
      EXPECT_GT(cross2(s.X[border.after[i]] - s.X[i], Vec2(0.5, 0.5) - s.X[i]), 0);
    }
  }
  EXPECT_EQ(on, 16);
  EXPECT_EQ(corners, 4);
}

TEST(Sheet, TiltedMeshIsUnrolledWithoutStretch) {
  TriMesh mesh = make_rectangle({2, 1}, {4, 3});
  for (Vec3& p : mesh.nodes) p = {0.3 + 0.6 * p[0], p[1], 0.8 * p[0]};
  const Sheet s = sheet_from_mesh(mesh, "tilted");
  EXPECT_NEAR(material_area(s), 2, 1e-14);
  for (const Tri& t : s.triangles) {
    const Mat32 F = deformation_gradient(s, t);
    EXPECT_LT((F.transpose() * F - Mat2::Identity()).norm(), 1e-13);
  }
}

TEST(Sheet, DefectsAreNamed) {
  const Sheet good = square_sheet(4);
  Sheet s = good;
  s.triangles.push_back(s.triangles.front());
  EXPECT_NE(first_defect(s).find("triangles, expected one or two"), std::string::npos) << first_defect(s);
  s = good;
  std::swap(s.triangles[3][0], s.triangles[3][1]);
  EXPECT_NE(first_defect(s).find("turn opposite ways"), std::string::npos) << first_defect(s);
  s = good;
  s.X[5] = s.X[0];
  EXPECT_FALSE(sheet_defects(s).empty());
  s = good;
  s.x[2][1] = std::nan("");
  EXPECT_NE(first_defect(s).find("finite"), std::string::npos);
  s = good;
  s.tag.pop_back();
  EXPECT_NE(first_defect(s).find("tag has 15 entries, expected 16"), std::string::npos) << first_defect(s);
  s = good;
  s.preserved = {{0, 15}};
  EXPECT_NE(first_defect(s).find("preserved edge 0-15 is no edge"), std::string::npos) << first_defect(s);
  s = good;
  s.preserved = {{1, 2}, {0, 1}};
  EXPECT_NE(first_defect(s).find("out of order"), std::string::npos) << first_defect(s);
  s = good;
  s.patch[3] = 1;
  EXPECT_NE(first_defect(s).find("different patches"), std::string::npos) << first_defect(s);
  // Two triangles that touch in a point.
  s = make_sheet({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {-1, 0, 0}, {0, -1, 0}},
                 {{0, 0}, {1, 0}, {0, 1}, {-1, 0}, {0, -1}}, {{0, 1, 2}, {0, 3, 4}});
  EXPECT_NE(first_defect(s).find("meet in a point only"), std::string::npos) << first_defect(s);
  EXPECT_THROW(check_sheet(s, "cloth"), Error);
  // Curved without coordinates of the material.
  TriMesh bent = make_rectangle({1, 1}, {4, 4});
  for (Vec3& p : bent.nodes) p[2] = p[0] * p[0];
  try {
    sheet_from_mesh(bent, "bent.obj");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find("bent.obj: node"), std::string::npos) << e.what();
  }
}

TEST(Sheet, LocatorFindsEveryPoint) {
  Sheet a = square_sheet(6), b = a;
  for (auto& p : b.patch) p = 1;
  for (Vec2& X : b.X) X = 0.5 * X + Vec2(0.25, 0.1);  // overlaps in the material
  const Sheet s = joined(a, b);
  ASSERT_TRUE(sheet_defects(s).empty());
  const SheetLocator locator(s);
  for (int k = 0; k < 200; ++k) {
    const Vec2 p(std::fmod(0.37 * k, 1.0), std::fmod(0.61 * k, 1.0));
    for (int patch = 0; patch < 2; ++patch) {
      const Vec2 q = patch ? Vec2(0.5 * p + Vec2(0.25, 0.1)) : p;
      const auto place = locator.find(q, patch);
      ASSERT_GE(place.triangle, 0);
      const Tri& t = s.triangles[place.triangle];
      EXPECT_EQ(s.patch[t[0]], patch);
      Vec2 r = Vec2::Zero();
      for (int c = 0; c < 3; ++c) r += place.weights[c] * s.X[t[c]];
      EXPECT_LT((r - q).norm(), 1e-14);
    }
  }
  // Outside: on the border.
  const auto out = locator.find({1.01, 0.5}, 0);
  ASSERT_GE(out.triangle, 0);
  double sum = 0;
  for (const double w : out.weights) {
    EXPECT_GE(w, 0);
    sum += w;
  }
  EXPECT_NEAR(sum, 1, 1e-14);
}

}  // namespace
}  // namespace limber
