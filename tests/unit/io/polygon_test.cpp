// Faces that are not convex.
#include <limber/io/mesh_io.hpp>
#include <limber/io/textured_surface.hpp>
#include <limber/mesh/geometry.hpp>
#include <limber/mesh/polygon.hpp>
#include <limber/mesh/remesh.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace limber {
namespace {

double area(std::span<const Vec3> x, std::span<const Tri> triangles, const Vec3& normal) {
  double sum = 0;
  for (const Tri& t : triangles) {
    const double part = triangle_normal(x, t).dot(normal) / 2;
    EXPECT_GT(part, 0) << t[0] << " " << t[1] << " " << t[2];  // none is turned over
    sum += part;
  }
  return sum;
}

TEST(Polygon, IsCutWithoutOverlaps) {
  // A comb in a plane that leans; its first corner is between two teeth.
  const Vec3 u = Vec3(1, 0.5, 0).normalized(), v = Vec3(-0.3, 0.6, 1).normalized();
  const Vec3 w = (v - u.dot(v) * u).normalized(), normal = cross(u, w);
  std::vector<Vec3> comb;
  double expected = 0;
  const int teeth = 6;
  for (int k = 0; k < teeth; ++k) {
    comb.push_back((2 * k + 0.0) * u + 1 * w);
    comb.push_back((2 * k + 0.5) * u + 3 * w);
    comb.push_back((2 * k + 1.0) * u + 1 * w);
    expected += 1;
  }
  comb.push_back((2 * teeth - 1) * u);
  comb.push_back(Vec3::Zero());
  expected += 2 * teeth - 1;
  std::reverse(comb.begin(), comb.end());
  std::rotate(comb.begin(), comb.begin() + 2, comb.end());
  const std::vector<Tri> cut = cut_polygon(comb);
  EXPECT_EQ(cut.size(), comb.size() - 2);
  EXPECT_NEAR(area(comb, cut, normal), expected, 1e-12);

  const std::vector<Vec3> square{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}};
  EXPECT_EQ(cut_polygon(square), (std::vector<Tri>{{0, 1, 2}, {0, 2, 3}})) << "a fan, as ever";
  const std::vector<Vec3> arrow{{0, 0, 0}, {1, -1, 0}, {0, 2, 0}, {-1, -1, 0}};
  EXPECT_NEAR(area(arrow, cut_polygon(arrow), Vec3::UnitZ()), 2, 1e-15);
  EXPECT_EQ(cut_polygon(std::vector<Vec3>(7, Vec3::Zero())).size(), 5u);
  const std::vector<Vec3> crossed{{0, 0, 0}, {1, 1, 0}, {1, 0, 0}, {0, 1, 0}, {2, 2, 0}};
  EXPECT_EQ(cut_polygon(crossed).size(), 3u);
}

TEST(Polygon, OfFilesIsCutSo) {
  const std::string arrow = "v 1 -1 0\nv 0 2 0\nv -1 -1 0\nv 0 0 0\nf 1 2 3 4\n";  // fans from 1 overlap
  EXPECT_NEAR(surface_area(parse_mesh("a.obj", arrow, {}, {false}).triangles()), 2, 1e-15);
  const TexturedSurface s = parse_textured_obj("a.obj", arrow, ".");
  EXPECT_NEAR(area(s.points, corner_triangles(s), Vec3::UnitZ()), 2, 1e-15);
}

}  // namespace
}  // namespace limber
