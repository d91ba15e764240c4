// A piece of cloth as a mesh: triangles with positions in space and coordinates in the material, with
// borders.
#pragma once

#include <limber/mesh/geometry.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace limber {

using Mat32 = Eigen::Matrix<double, 3, 2>;
using Mat2 = Eigen::Matrix2d;

// Plain data; every vertex array has one entry per vertex. Remeshing takes a sheet and gives a sheet.
struct Sheet {
  std::vector<Vec3> x;         // world positions [m]
  std::vector<Vec2> X;         // material coordinates [m]
  std::vector<Vec3> v;         // rates of x [m/s]
  std::vector<Vec2> V;         // rates of X, zero except at Eulerian-on-Lagrangian (EOL) vertices [m/s]
  std::vector<Tri> triangles;  // counter-clockwise in the material
  std::vector<std::int64_t>
      tag;  // which vertex of the scene it is (pins, script), or -1; never removed or moved
  std::vector<std::int64_t> feature;  // of an EOL vertex: the sharp edge, corner, wire or nail; else -1
  std::vector<double> parameter;      // of an EOL vertex: where on its edge or wire, 0 to 1
  std::vector<std::int64_t> age;      // steps since it became EOL
  std::vector<std::array<Index, 2>> preserved;  // edges that remeshing keeps: each ascending, the list too
  std::vector<std::int64_t> patch;              // which piece of cloth

  Index vertices() const { return static_cast<Index>(x.size()); }
  Index faces() const { return static_cast<Index>(triangles.size()); }
  bool eol(Index i) const { return feature[i] >= 0; }
};

inline double cross2(const Vec2& a, const Vec2& b) { return a[0] * b[1] - a[1] * b[0]; }

// Twice the material area [m^2]; positive when counter-clockwise.
inline double material_det(const Sheet& s, const Tri& t) {
  return cross2(s.X[t[1]] - s.X[t[0]], s.X[t[2]] - s.X[t[0]]);
}

// grad N_k of the three corners in the material [1/m].
inline std::array<Vec2, 3> shape_gradients(const Sheet& s, const Tri& t) {
  const double d = material_det(s, t);
  std::array<Vec2, 3> g;
  for (int k = 0; k < 3; ++k) {
    const Vec2 e = s.X[t[(k + 2) % 3]] - s.X[t[(k + 1) % 3]];  // opposite, counter-clockwise
    g[k] = Vec2(-e[1], e[0]) / d;
  }
  return g;
}

// F = dx/dX of a triangle (Eq. 2.3).
inline Mat32 deformation_gradient(const Sheet& s, const Tri& t) {
  const auto g = shape_gradients(s, t);
  Mat32 F = Mat32::Zero();
  for (int k = 0; k < 3; ++k) F += s.x[t[k]] * g[k].transpose();
  return F;
}

// Velocity of the material in corner k of a triangle (Eq. 2.2), with the triangle's own F.
inline Vec3 material_velocity(const Sheet& s, const Tri& t, const Mat32& F, int k) {
  return s.v[t[k]] - F * s.V[t[k]];
}

// Barycentric coordinates of a material point.
inline std::array<double, 3> barycentric(const Sheet& s, const Tri& t, const Vec2& p) {
  const Vec2 &a = s.X[t[0]], &b = s.X[t[1]], &c = s.X[t[2]];
  const double d = cross2(b - a, c - a);
  const double beta = cross2(p - a, c - a) / d, gamma = cross2(b - a, p - a) / d;
  return {1 - beta - gamma, beta, gamma};
}

double material_area(const Sheet& s);  // [m^2]

// At rest, flat things zero: v, V, no tags, no features, patch 0.
Sheet make_sheet(std::vector<Vec3> x, std::vector<Vec2> X, std::vector<Tri> triangles);

// Two sheets as one; `b` keeps its order behind `a`.
Sheet joined(const Sheet& a, const Sheet& b);

// From a triangle mesh: material coordinates from its node field "uv" (two components, [m]); without one, a
// plane mesh is its own material. Clockwise triangles are turned. Throws Error(kInput), its message beginning
// with `where`, when the mesh is curved and has no "uv", and for everything that `sheet_defects` finds.
Sheet sheet_from_mesh(const TriMesh& mesh, const std::string& where);

// What keeps a sheet from being simulated or remeshed, one line about each kind with its count and first
// place: sizes that do not fit, numbers that are not finite, indices out of range, unused vertices, an edge
// with more than two triangles, a vertex where two fans meet, neighbours that turn opposite ways, triangles
// without material area or clockwise, preserved edges that are no edges of the mesh or out of order. Empty
// when sound.
std::vector<std::string> sheet_defects(const Sheet& s);
// Throws Error(kInput) with the first of them behind `where`.
void check_sheet(const Sheet& s, const std::string& where);

// V - E + F.
Index euler_characteristic(const Sheet& s);

// The border as vertices see it: the neighbours along it, before (counter-clockwise) and after; -1 inside.
struct SheetBorder {
  std::vector<Index> before, after;
  bool on(Index i) const { return after[i] >= 0; }
  // Whether the border turns at i by more than the sine `turn`: such a vertex never moves in the material.
  bool corner(const Sheet& s, Index i, double turn = 1e-6) const;
};
SheetBorder sheet_border(const Sheet& s);

// Finds the triangle of a sheet at a material point, for the transfer of fields from one mesh to another.
// Patches may overlap in the material.
class SheetLocator {
 public:
  explicit SheetLocator(const Sheet& sheet);
  struct Place {
    Index triangle = -1;
    std::array<double, 3> weights{};  // not negative, sum 1: outside the sheet those of the nearest point
  };
  // In the given patch.
  Place find(const Vec2& p, std::int64_t patch) const;

 private:
  const Sheet& sheet_;
  Vec2 lo_ = Vec2::Zero();
  double cell_ = 1;
  Index nx_ = 1, ny_ = 1;
  std::vector<Index> begin_, in_;  // triangles of each cell
};

}  // namespace limber
