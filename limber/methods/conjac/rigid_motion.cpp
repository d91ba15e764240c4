#include <limber/methods/conjac/rigid_motion.hpp>

#include <limber/linalg/dense.hpp>

#include <Eigen/Geometry>

#include <utility>

namespace limber {
namespace {

Mat3 cross_matrix(const Vec3& r) {
  Mat3 m;
  m << 0, -r.z(), r.y(), r.z(), 0, -r.x(), -r.y(), r.x(), 0;
  return m;
}

}  // namespace

Vec3 mass_mean(const Model& model, const Piece& piece, const VecX& a) {
  Vec3 sum = Vec3::Zero();
  for (const Index i : piece.nodes) sum += model.mass[3 * i] * node(a, i);
  return sum / piece.mass;
}

Eigen::Matrix<double, 3, 6> rigid_modes(const Vec3& r, double length) {
  Eigen::Matrix<double, 3, 6> R;
  R.leftCols<3>().setIdentity();
  R.rightCols<3>() = -cross_matrix(r) / length;
  return R;
}

Eigen::Matrix<double, 6, Eigen::Dynamic> free_rigid_motions(const Model& model, const Piece& piece,
                                                            const VecX& x, std::span<const std::uint8_t> held,
                                                            Vec3& center) {
  center = mass_mean(model, piece, x);
  Mat6 gram = Mat6::Zero();
  for (Index i : piece.nodes) {
    const auto d = 3 * static_cast<std::size_t>(i);
    if (!(held[d] | held[d + 1] | held[d + 2])) continue;
    const auto R = rigid_modes(node(x, i) - center, model.size);
    for (int k = 0; k < 3; ++k)
      if (held[d + static_cast<std::size_t>(k)]) gram += R.row(k).transpose() * R.row(k);
  }
  const DenseEigen eigen = symmetric_eigen(MatX(gram));
  // A held direction has an eigenvalue of the order of (distance between held nodes / size)^2.
  const double tolerance = 1e-10 * std::max(1.0, eigen.values[5]);
  Eigen::Index k = 0;
  while (k < 6 && eigen.values[k] <= tolerance) ++k;
  return eigen.vectors.leftCols(k);
}

// Inertia and momentum of a piece that moves with v, in its six rigid modes about c.
static std::pair<Mat6, Vec6> rigid_momentum(const Model& model, const Piece& piece, const VecX& x,
                                            const VecX& v, const Vec3& c) {
  std::pair<Mat6, Vec6> out{Mat6::Zero(), Vec6::Zero()};
  for (Index i : piece.nodes) {
    const auto R = rigid_modes(node(x, i) - c, model.size);
    out.first += model.mass[3 * i] * R.transpose() * R;
    out.second += model.mass[3 * i] * R.transpose() * Vec3(node(v, i));
  }
  return out;
}

void relieve_inertia(const Model& model, const VecX& x, const VecX& v, std::span<const std::uint8_t> held,
                     const VecX& moving, VecX& f) {
  for (const Piece& piece : model.pieces) {
    Vec3 c;
    const auto N = free_rigid_motions(model, piece, x, held, c);
    if (N.cols() == 0) continue;
    const auto [inertia, momentum] = rigid_momentum(model, piece, x, v, c);
    const MatX free_inertia = N.transpose() * inertia * N;
    const auto along_free = [&](const Vec6& b) -> Vec6 {
      return N * solve_semidefinite(free_inertia, VecX(N.transpose() * b));
    };
    Vec3 omega = Vec3::Zero();
    if (N.cols() == 6) omega = along_free(momentum).tail<3>() / model.size;
    Vec6 force = Vec6::Zero();
    for (Index i : piece.nodes) {
      const Vec3 r = node(x, i) - c;
      force += rigid_modes(r, model.size).transpose() *
               (node(moving, i) - model.mass[3 * i] * omega.cross(omega.cross(r)));
    }
    const Vec6 acceleration = along_free(force);
    for (Index i : piece.nodes) {
      const Vec3 r = node(x, i) - c;
      node(f, i) -=
          model.mass[3 * i] * (rigid_modes(r, model.size) * acceleration + omega.cross(omega.cross(r)));
    }
  }
}

VecX rigid_velocity(const Model& model, const VecX& x, const VecX& v, std::span<const std::uint8_t> held) {
  VecX rigid = VecX::Zero(v.size());
  for (const Piece& piece : model.pieces) {
    Vec3 c;
    const auto N = free_rigid_motions(model, piece, x, held, c);
    if (N.cols() == 0) continue;
    const auto [inertia, momentum] = rigid_momentum(model, piece, x, v, c);
    const Vec6 motion = N * solve_semidefinite(N.transpose() * inertia * N, VecX(N.transpose() * momentum));
    for (Index i : piece.nodes) node(rigid, i) = rigid_modes(node(x, i) - c, model.size) * motion;
  }
  return rigid;
}

}  // namespace limber
