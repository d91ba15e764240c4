#include <limber/cloth/hinge.hpp>

#include <limber/mesh/geometry.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace limber::cloth {

std::vector<Hinge> find_hinges(const std::vector<Tri>& triangles) {
  // (lower end, higher end, triangle, opposite), sorted: the two sides of an edge come together.
  std::vector<std::tuple<Index, Index, Index, Index>> sides;
  sides.reserve(3 * triangles.size());
  for (std::size_t t = 0; t < triangles.size(); ++t)
    for (std::size_t k = 0; k < 3; ++k) {
      const Index a = triangles[t][k], b = triangles[t][(k + 1) % 3], c = triangles[t][(k + 2) % 3];
      sides.emplace_back(std::min(a, b), std::max(a, b), static_cast<Index>(t), c);
    }
  std::sort(sides.begin(), sides.end());
  std::vector<Hinge> out;
  for (std::size_t s = 0; s + 1 < sides.size(); ++s) {
    const auto& [a, b, t0, c0] = sides[s];
    const auto& [a1, b1, t1, c1] = sides[s + 1];
    if (a != a1 || b != b1) continue;
    // The first triangle is the one that runs from a to b.
    const Tri& t = triangles[static_cast<std::size_t>(t0)];
    bool forward = false;
    for (std::size_t k = 0; k < 3; ++k) forward = forward || (t[k] == a && t[(k + 1) % 3] == b);
    if (forward)
      out.push_back({{a, b, c0, c1}, {t0, t1}});
    else
      out.push_back({{a, b, c1, c0}, {t1, t0}});
  }
  return out;
}

namespace {

struct HingeFrame {
  Vec3 e, n0, n1;
  double length, height0, height1;  // of the edge; of the opposite vertices above it
};

HingeFrame frame_of(const std::array<Vec3, 4>& x) {
  HingeFrame f;
  f.e = x[1] - x[0];
  f.length = f.e.norm();
  const Vec3 a0 = cross(f.e, x[2] - x[0]), a1 = cross(x[3] - x[0], f.e);
  const double l0 = a0.norm(), l1 = a1.norm();
  f.n0 = l0 > 0 ? Vec3(a0 / l0) : Vec3(Vec3::Zero());
  f.n1 = l1 > 0 ? Vec3(a1 / l1) : Vec3(Vec3::Zero());
  f.height0 = l0 / f.length;
  f.height1 = l1 / f.length;
  return f;
}

double angle_of(const HingeFrame& f) {
  return std::atan2(cross(f.n1, f.n0).dot(f.e) / f.length, f.n0.dot(f.n1));
}

}  // namespace

double hinge_angle(const std::array<Vec3, 4>& x) { return angle_of(frame_of(x)); }

double hinge_angle(const std::array<Vec3, 4>& x, std::array<Vec3, 4>& g) {
  const HingeFrame f = frame_of(x);
  // An opposite vertex turns its triangle about the edge by its motion along the normal over its height; the
  // ends of the edge take this back by the lever rule, so that no rigid motion changes the angle. A triangle
  // that has collapsed has no normal, and no say.
  const double least = 1e-9 * f.length;
  g[2] = f.height0 > least ? Vec3(f.n0 / f.height0) : Vec3(Vec3::Zero());
  g[3] = f.height1 > least ? Vec3(f.n1 / f.height1) : Vec3(Vec3::Zero());
  const double length2 = f.length * f.length;
  const double s0 = (x[2] - x[0]).dot(f.e) / length2, s1 = (x[3] - x[0]).dot(f.e) / length2;
  g[0] = -(1 - s0) * g[2] - (1 - s1) * g[3];
  g[1] = -s0 * g[2] - s1 * g[3];
  return angle_of(f);
}

HingeResponse hinge(double coefficient, double rest_angle, const std::array<Vec3, 4>& x) {
  HingeResponse out;
  const double turn = hinge_angle(x, out.gradient) - rest_angle, s = std::sin(0.5 * turn);
  out.energy = coefficient * s * s;
  out.moment = 0.5 * coefficient * std::sin(turn);
  // W'' = coefficient/2 cos(turn) with what is negative left out, and with it theta's own curvature.
  out.stiffness = 0.5 * coefficient * std::max(0.0, std::cos(turn));
  return out;
}

double hinge_energy(double coefficient, double rest_angle, const std::array<Vec3, 4>& x) {
  const double s = std::sin(0.5 * (hinge_angle(x) - rest_angle));
  return coefficient * s * s;
}

}  // namespace limber::cloth
