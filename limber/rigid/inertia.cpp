#include <limber/rigid/inertia.hpp>

#include <limber/core/error.hpp>
#include <limber/core/point_inertia.hpp>
#include <limber/linalg/dense.hpp>

#include <fmt/core.h>

#include <map>
#include <numbers>

namespace limber::rigid {
namespace {

Inertia diagonal(double mass, double ix, double iy, double iz) {
  Inertia s;
  s.mass = mass;
  s.I = Vec3(ix, iy, iz).asDiagonal();
  return s;
}

}  // namespace

Inertia box_inertia(const Vec3& s, double density) {
  const double m = density * s.prod();
  const Vec3 q = s.cwiseProduct(s);
  return diagonal(m, m / 12 * (q[1] + q[2]), m / 12 * (q[0] + q[2]), m / 12 * (q[0] + q[1]));
}

Inertia sphere_inertia(double r, double density) {
  const double m = density * 4.0 / 3.0 * std::numbers::pi * r * r * r;
  const double i = 0.4 * m * r * r;
  return diagonal(m, i, i, i);
}

Inertia cylinder_inertia(double r, double l, double density) {
  const double m = density * std::numbers::pi * r * r * l;
  const double side = m / 12 * (3 * r * r + l * l);
  return diagonal(m, side, side, 0.5 * m * r * r);
}

Inertia capsule_inertia(double r, double l, double density) {
  Inertia s = cylinder_inertia(r, l, density);
  const Inertia ball = sphere_inertia(r, density);
  // Two half balls: their centres of mass lie 3r/8 above the cylinder's ends.
  const double half = 0.5 * ball.mass, c = 3.0 / 8.0 * r;
  const double side = 2 * (0.5 * ball.I(0, 0) - half * c * c + half * (0.5 * l + c) * (0.5 * l + c));
  s.mass += ball.mass;
  s.I += Vec3(side, side, ball.I(2, 2)).asDiagonal();
  return s;
}

Inertia mesh_inertia(const TriMesh& surface, double density) {
  // Every edge must be used once in each direction, else "inside" has no meaning.
  std::map<std::pair<Index, Index>, int> edges;
  for (const Tri& t : surface.triangles)
    for (std::size_t k = 0; k < 3; ++k) ++edges[{t[k], t[(k + 1) % 3]}];
  for (const auto& [edge, count] : edges) {
    const auto back = edges.find({edge.second, edge.first});
    if (count != 1 || back == edges.end() || back->second != 1)
      throw Error(
          ErrorKind::kInput,
          fmt::format("the surface is not closed: its edge between nodes {} and {} does not have exactly two "
                      "triangles of the same orientation; a mesh inertia needs a watertight surface",
                      edge.first, edge.second));
  }
  // Signed tetrahedra from the origin: exact moments of linear shapes.
  double volume = 0;
  Vec3 first = Vec3::Zero();
  Mat3 second = Mat3::Zero();  // integral of x x^T
  for (const Tri& t : surface.triangles) {
    const Vec3& a = surface.nodes[static_cast<std::size_t>(t[0])];
    const Vec3& b = surface.nodes[static_cast<std::size_t>(t[1])];
    const Vec3& c = surface.nodes[static_cast<std::size_t>(t[2])];
    const double v = a.dot(b.cross(c)) / 6;
    const Vec3 sum = a + b + c;
    volume += v;
    first += v / 4 * sum;
    second += v / 20 * (a * a.transpose() + b * b.transpose() + c * c.transpose() + sum * sum.transpose());
  }
  if (!(volume > 0))
    throw Error(
        ErrorKind::kInput,
        fmt::format("the surface encloses the volume {:g} m^3: its triangles point inwards; reverse them",
                    volume));
  Inertia s;
  s.mass = density * volume;
  s.com = first / volume;
  const Mat3 about_origin = density * (second.trace() * Mat3::Identity() - second);
  s.I = about_origin - point_inertia(s.mass, s.com);
  return s;
}

Inertia moved(const Inertia& s, const Pose& pose) {
  return {s.mass, pose * s.com, pose.R * s.I * pose.R.transpose()};
}

Inertia combined(const Inertia& a, const Inertia& b) {
  Inertia s;
  s.mass = a.mass + b.mass;
  if (s.mass == 0) return s;
  s.com = (a.mass * a.com + b.mass * b.com) / s.mass;
  s.I = a.I + point_inertia(a.mass, a.com - s.com) + b.I + point_inertia(b.mass, b.com - s.com);
  return s;
}

std::string inertia_fault(const Inertia& s) {
  if (!std::isfinite(s.mass) || !s.com.allFinite() || !s.I.allFinite()) return "it is not a finite number";
  if (!(s.mass > 0)) return fmt::format("the mass is {:g} kg, it must be greater than 0", s.mass);
  if ((s.I - s.I.transpose()).cwiseAbs().maxCoeff() > 1e-9 * s.I.cwiseAbs().maxCoeff())
    return "the inertia matrix is not symmetric";
  const Vec3 e = symmetric_eigen(s.I).values;
  if (!(e[0] > 0))
    return fmt::format("the smallest principal inertia is {:g} kg m^2, it must be greater than 0", e[0]);
  return {};
}

}  // namespace limber::rigid
