// Rigid motions and spatial vectors.
//
// The maximal velocity of a link is phi = (omega; v): angular velocity and velocity of its centre of mass,
// both in world axes [rad/s, m/s]; its dual is the wrench (torque about the centre of mass; force) [N m, N].
// The papers write phi in link axes. World axes make all joint and contact rows plain, and every reduced
// quantity (J^T M J, J^T f) is the same in both.
#pragma once

#include <limber/core/types.hpp>

#include <Eigen/Geometry>
#include <cmath>

namespace limber::rigid {

using Vec6 = Eigen::Matrix<double, 6, 1>;
using Mat6 = Eigen::Matrix<double, 6, 6>;
using Quat = Eigen::Quaterniond;

// x_outer = R x_inner + p.
struct Pose {
  Mat3 R = Mat3::Identity();
  Vec3 p = Vec3::Zero();

  Vec3 operator*(const Vec3& x) const { return R * x + p; }
  Pose operator*(const Pose& b) const { return {R * b.R, R * b.p + p}; }
  Pose inverse() const { return {R.transpose(), -(R.transpose() * p)}; }
};

inline Mat3 skew(const Vec3& a) {
  Mat3 S;
  S << 0, -a[2], a[1], a[2], 0, -a[0], -a[1], a[0], 0;
  return S;
}

// The quaternion of the rotation vector e [rad].
inline Quat exp_quat(const Vec3& e) {
  const double angle = e.norm();
  const double s = angle < 1e-4 ? 0.5 - angle * angle / 48 : std::sin(0.5 * angle) / angle;
  return {std::cos(0.5 * angle), s * e[0], s * e[1], s * e[2]};
}

inline Mat3 exp_rotation(const Vec3& e) { return exp_quat(e).toRotationMatrix(); }

// The rotation vector of q, shorter than pi.
inline Vec3 log_quat(Quat q) {
  if (q.w() < 0) q.coeffs() = -q.coeffs();
  const double s = q.vec().norm();
  if (s < 1e-8) return 2 * q.vec();
  return 2 * std::atan2(s, q.w()) / s * q.vec();
}

// Two unit vectors that make a right-handed frame (t1, t2, n) with the unit vector n; t1 is the coordinate
// axis least along n, made perpendicular to it: (x, y) for n = z.
inline void tangents(const Vec3& n, Vec3& t1, Vec3& t2) {
  int least = 0;
  n.cwiseAbs().minCoeff(&least);
  t1 = (Vec3::Unit(least) - n[least] * n).normalized();
  t2 = n.cross(t1);
}

// The velocity of the point at `r` from the centre of mass, of a link with velocity phi.
inline Vec3 point_velocity(const Vec6& phi, const Vec3& r) { return phi.tail<3>() + phi.head<3>().cross(r); }

// The wrench of force f at `r` from the centre of mass; also the row that measures a point's velocity along
// f.
inline Vec6 point_wrench(const Vec3& r, const Vec3& f) {
  Vec6 w;
  w << r.cross(f), f;
  return w;
}

}  // namespace limber::rigid
