#include <limber/rigid/inner_contacts.hpp>

#include <limber/linalg/dense.hpp>

#include <numbers>

namespace limber::rigid {
namespace {

// P = N (N^T N)^+ with N the wrenches of unit impulses along the normals.
MatX smallest_impulses(const std::vector<InnerPoint>& points, const Vec3& centre) {
  Eigen::Index rows = 0;
  double size = 0;
  for (const InnerPoint& p : points) {
    rows += static_cast<Eigen::Index>(p.normals.size());
    size = std::max(size, (p.x - centre).norm());
  }
  MatX N(rows, 6);
  Eigen::Index r = 0;
  for (const InnerPoint& p : points)
    for (const Vec3& n : p.normals) {
      // Torques in units of force x size, so that "no direction" below does not depend on the units.
      N.row(r++) << ((p.x - centre).cross(n) / size).transpose(), n.transpose();
    }
  const DenseEigen eigen = symmetric_eigen(N.transpose() * N);
  Mat6 inverse = Mat6::Zero();
  for (int k = 0; k < 6; ++k)
    if (eigen.values[k] > 1e-9 * eigen.values[5])
      inverse += eigen.vectors.col(k) * eigen.vectors.col(k).transpose() / eigen.values[k];
  MatX P = N * inverse;
  P.leftCols<3>() /= size;
  return P;
}

InnerSurface surface_of_joint(const Mechanism& m, Index i) {
  const Joint& j = m.joints[at(i)];
  InnerSurface s;
  s.name = j.name;
  s.owner = i;
  s.a = i;
  s.b = j.parent_link;
  s.mu = j.friction.mu;
  // The child's frame has its origin in the joint.
  if (j.type == JointType::kRevolute) s.points = pin_points(s.centre, j.axis, j.friction);
  if (j.type == JointType::kPrismatic) s.points = slider_points(s.centre, j.axis, j.friction.box);
  if (j.type == JointType::kSpherical) s.points = ball_points(s.centre, j.friction.radius);
  s.P = smallest_impulses(s.points, s.centre);
  return s;
}

}  // namespace

std::vector<InnerPoint> pin_points(const Vec3& centre, const Vec3& axis, const JointFriction& f) {
  Vec3 t1, t2;
  tangents(axis, t1, t2);
  if (const Vec3 side = f.side - axis.dot(f.side) * axis; side.norm() > 1e-9) {
    t1 = side.normalized();
    t2 = axis.cross(t1);
  }
  std::vector<InnerPoint> points;
  for (int k = 0; k < f.angles; ++k) {
    const double angle = 2 * std::numbers::pi * k / f.angles;
    const Vec3 out = std::cos(angle) * t1 + std::sin(angle) * t2;
    for (const double end : {-0.5, 0.5}) {
      InnerPoint p;
      p.x = centre + f.radius * out + end * f.height * axis;
      p.normals = {-out, end < 0 ? axis : Vec3(-axis)};
      p.tangents = {axis.cross(out)};
      points.push_back(p);
    }
  }
  return points;
}

std::vector<InnerPoint> slider_points(const Vec3& centre, const Vec3& axis, const Vec3& box) {
  Vec3 t1, t2;
  tangents(axis, t1, t2);
  std::vector<InnerPoint> points;
  for (const double x : {-0.5, 0.5})
    for (const double y : {-0.5, 0.5})
      for (const double z : {-0.5, 0.5}) {
        InnerPoint p;
        p.x = centre + x * box[0] * axis + y * box[1] * t1 + z * box[2] * t2;
        p.normals = {y < 0 ? t1 : Vec3(-t1), z < 0 ? t2 : Vec3(-t2)};
        p.tangents = {axis};
        points.push_back(p);
      }
  return points;
}

std::vector<InnerPoint> ball_points(const Vec3& centre, double radius) {
  std::vector<InnerPoint> points;
  for (int k = 0; k < 3; ++k)
    for (const double side : {-1.0, 1.0}) {
      const Vec3 out = side * Vec3::Unit(k);
      InnerPoint p;
      p.x = centre + radius * out;
      p.normals = {-out};
      p.tangents = {Vec3::Unit((k + 1) % 3), Vec3::Unit((k + 2) % 3)};
      points.push_back(p);
    }
  return points;
}

std::vector<InnerSurface> inner_surfaces(const Mechanism& m) {
  std::vector<InnerSurface> surfaces;
  for (Index i = 0; i < m.size(); ++i)
    if (m.joints[at(i)].friction.mu > 0) surfaces.push_back(surface_of_joint(m, i));
  for (std::size_t i = 0; i < m.loops.size(); ++i) {
    const Loop& l = m.loops[i];
    if (!(l.friction.mu > 0)) continue;
    InnerSurface s;
    s.name = l.name;
    s.loop = true;
    s.owner = static_cast<Index>(i);
    s.a = l.a;
    s.b = l.b;
    s.mu = l.friction.mu;
    s.centre = l.point_a;
    s.points = pin_points(l.point_a, l.axis_a, l.friction);
    s.P = smallest_impulses(s.points, s.centre);
    surfaces.push_back(s);
  }
  return surfaces;
}

Row inner_row(const Motion& motion, const InnerSurface& s, const Vec3& x, const Vec3& d) {
  Row r;
  r.a = s.a;
  r.b = s.b;
  r.ja = point_wrench(x - motion.links[at(s.a)].com, d);
  if (s.b >= 0) r.jb = -point_wrench(x - motion.links[at(s.b)].com, d);
  return r;
}

}  // namespace limber::rigid
