// Small measures of points, triangles and tetrahedra. Hand-written so that headers need only Eigen/Core.
#pragma once

#include <limber/mesh/mesh.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace limber {

inline Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

// Six times the signed volume [m^3]; positive when d lies on the side that sees a, b, c clockwise.
inline double tet_det(const Vec3& a, const Vec3& b, const Vec3& c, const Vec3& d) {
  return cross(b - a, c - a).dot(d - a);
}

inline double tet_volume(std::span<const Vec3> x, const Tet& t) {
  return tet_det(x[t[0]], x[t[1]], x[t[2]], x[t[3]]) / 6;
}

// Twice the area, along the normal.
inline Vec3 triangle_normal(std::span<const Vec3> x, const Tri& t) {
  return cross(x[t[1]] - x[t[0]], x[t[2]] - x[t[0]]);
}

struct Box {
  Vec3 lo = Vec3::Constant(std::numeric_limits<double>::infinity());
  Vec3 hi = Vec3::Constant(-std::numeric_limits<double>::infinity());

  bool empty() const { return !(lo[0] <= hi[0]); }
  Vec3 size() const { return empty() ? Vec3::Zero().eval() : (hi - lo).eval(); }
  void add(const Vec3& p) {
    lo = lo.cwiseMin(p);
    hi = hi.cwiseMax(p);
  }
};

inline Box bounding_box(std::span<const Vec3> points) {
  Box box;
  for (const Vec3& p : points) box.add(p);
  return box;
}

}  // namespace limber
