#include <limber/reduction/bone_skinning.hpp>

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/laplacian.hpp>
#include <limber/mesh/check.hpp>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {
namespace {

constexpr double kLeastWeight = 1e-6;

struct DualQuaternion {
  Eigen::Vector4d real, dual;  // x y z w
};

DualQuaternion dual_quaternion(const BonePose& pose) {
  const Eigen::Quaterniond r(pose.R);
  const Eigen::Quaterniond t(0, pose.t[0], pose.t[1], pose.t[2]);
  return {r.coeffs(), 0.5 * (t * r).coeffs()};
}

}  // namespace

MatX heat_weights(const fem::ElementInput& mesh, const std::shared_ptr<const BlockPattern>& pattern,
                  std::span<const Index> bone_of_node, Index bones) {
  const Index n = pattern->n;
  Index pieces = 0;
  const std::vector<Index> piece = connected_components(n, mesh.elements, &pieces);
  std::vector<std::uint8_t> held(at(pieces), 0);
  for (Index i = 0; i < n; ++i)
    if (bone_of_node[at(i)] >= 0 && piece[at(i)] >= 0) held[at(piece[at(i)])] = 1;
  for (Index i = 0; i < n; ++i)
    if (piece[at(i)] >= 0 && !held[at(piece[at(i)])])
      throw Error(
          ErrorKind::kInput,
          fmt::format("no bone holds the piece of the mesh that node {} belongs to: expected nodes of every "
                      "piece that are fixed to a bone (a greater radius, or a bone inside it)",
                      i));
  const std::vector<Mat3> D(mesh.elements.size(), Mat3::Identity());
  ScalarMatrix L = fem::laplacian(mesh, pattern, D);
  double mean = 0;
  for (Index j = 0; j < n; ++j) mean += L.values[at(pattern->col_begin[at(j)])] / n;
  // Rows of fixed nodes are identities, and what their warmth gives to others goes to the right side.
  MatX W = MatX::Zero(n, bones);
  for (Index j = 0; j < n; ++j)
    for (Index b = pattern->col_begin[at(j)]; b < pattern->col_begin[at(j) + 1]; ++b) {
      const Index i = pattern->row[at(b)], of_i = bone_of_node[at(i)], of_j = bone_of_node[at(j)];
      double& value = L.values[at(b)];
      if (of_i < 0 && of_j < 0) continue;
      if (i == j) {
        value = mean;
        W(i, of_i) = mean;
        continue;
      }
      if (of_i < 0) W(i, of_j) -= value;
      if (of_j < 0) W(j, of_i) -= value;
      value = 0;
    }
  ScalarCholesky cholesky;
  cholesky.analyze(*pattern);
  const FactorStatus status = cholesky.factor(L);
  if (!status.ok)
    throw Error(ErrorKind::kInput,
                fmt::format("the Laplacian of the mesh is not positive definite at node {} (pivot {:.3g})",
                            status.node, status.pivot));
  cholesky.solve(W);
  // Obtuse elements can lead a little beyond 0 and 1.
  parallel_for(n, 4096, [&](std::ptrdiff_t i) {
    if (const Index bone = bone_of_node[static_cast<std::size_t>(i)]; bone >= 0)
      W.row(i) = VecX::Unit(bones, bone).transpose();
    W.row(i) = W.row(i).cwiseMax(0.0);
    W.row(i) /= W.row(i).sum();
  });
  return W;
}

BoneSkinning::BoneSkinning(std::span<const Vec3> rest, const MatX& weights, Blend blend)
    : rest_(rest.begin(), rest.end()), blend_(blend), bones_(static_cast<Index>(weights.cols())), begin_{0} {
  std::vector<std::pair<double, Index>> row;
  for (Index i = 0; i < nodes(); ++i) {
    row.clear();
    double sum = 0;
    for (Index b = 0; b < bones_; ++b)
      if (weights(i, b) > kLeastWeight) {
        row.push_back({weights(i, b), b});
        sum += weights(i, b);
      }
    std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [w, b] : row) {
      weight_.push_back(w / sum);
      bone_.push_back(b);
    }
    begin_.push_back(static_cast<Index>(bone_.size()));
  }
}

void BoneSkinning::pose(std::span<const BonePose> bones, SkinnedBody& out) const {
  const Index n = nodes();
  out.x.resize(3 * n);
  out.R.resize(at(n));
  std::vector<DualQuaternion> dq;
  for (const BonePose& pose : bones) dq.push_back(dual_quaternion(pose));
  parallel_for(n, 1024, [&](std::ptrdiff_t node_index) {
    const Index i = static_cast<Index>(node_index), first = begin_[at(i)], last = begin_[at(i) + 1];
    const Vec3& X = rest_[at(i)];
    if (last == first + 1) {
      const BonePose& only = bones[at(bone_[at(first)])];
      out.R[at(i)] = only.R;
      node(out.x, i) = only.R * X + only.t;
      return;
    }
    // q and -q are the same rotation: all on the side of the heaviest bone's.
    const Eigen::Vector4d& side = dq[at(bone_[at(first)])].real;
    Eigen::Vector4d real = Eigen::Vector4d::Zero(), dual = Eigen::Vector4d::Zero();
    Vec3 linear = Vec3::Zero();
    for (Index k = first; k < last; ++k) {
      const DualQuaternion& q = dq[at(bone_[at(k)])];
      const double w = q.real.dot(side) < 0 ? -weight_[at(k)] : weight_[at(k)];
      real += w * q.real;
      dual += w * q.dual;
      if (blend_ == Blend::kLinear) {
        const BonePose& bone = bones[at(bone_[at(k)])];
        linear += weight_[at(k)] * (bone.R * X + bone.t);
      }
    }
    const double length = real.norm();
    const Eigen::Quaterniond r(Eigen::Vector4d(real / length));
    const Eigen::Quaterniond d(Eigen::Vector4d(dual / length));
    out.R[at(i)] = r.toRotationMatrix();
    // The translation of a dual quaternion; its part along r vanishes where it is a unit one, and is left
    // out.
    node(out.x, i) =
        blend_ == Blend::kLinear ? linear : Vec3(out.R[at(i)] * X + 2 * (d * r.conjugate()).vec());
  });
}

}  // namespace limber
