// The few types every module speaks: indices, small vectors, and stacked node vectors.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>

namespace limber {

using Index = std::int32_t;
using Vec2 = Eigen::Vector2d;
using Vec3 = Eigen::Vector3d;
using Mat3 = Eigen::Matrix3d;
// A 3n vector, node-major: (x0 y0 z0 x1 y1 z1 ...). Positions [m], velocities [m/s], forces [N].
using VecX = Eigen::VectorXd;
using MatX = Eigen::MatrixXd;

// The three entries of node `i` in a 3n vector.
template <class V>
auto node(V& v, Index i) {
  return v.template segment<3>(3 * static_cast<Eigen::Index>(i));
}

// An index into a standard container.
constexpr std::size_t at(Index i) { return static_cast<std::size_t>(i); }

}  // namespace limber
