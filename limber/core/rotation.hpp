// The shortest rotation from one direction to another.
#pragma once

#include <Eigen/Geometry>
#include <cmath>

namespace limber {

// Turns `from` towards `to`, vectors of any length but 0. Eigen's own FromTwoVectors brings a singular value
// decomposition into every file, for the one case of opposite directions, where any axis across them will do.
template <class Scalar>
Eigen::Quaternion<Scalar> turn_between(const Eigen::Matrix<Scalar, 3, 1>& from,
                                       const Eigen::Matrix<Scalar, 3, 1>& to) {
  const Eigen::Matrix<Scalar, 3, 1> a = from.normalized(), b = to.normalized();
  const Scalar c = b.dot(a);
  Eigen::Quaternion<Scalar> q;
  if (c < -1 + Eigen::NumTraits<Scalar>::dummy_precision()) {
    int least = 0;
    a.cwiseAbs().minCoeff(&least);
    Eigen::Matrix<Scalar, 3, 1> across = Eigen::Matrix<Scalar, 3, 1>::Zero();
    across[least] = 1;
    q.vec() = a.cross(across).normalized();
    q.w() = 0;
    return q;
  }
  const Scalar s = std::sqrt((1 + c) * 2);
  q.vec() = a.cross(b) * (1 / s);
  q.w() = s / 2;
  return q;
}

}  // namespace limber
