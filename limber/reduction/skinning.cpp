#include <limber/reduction/skinning.hpp>

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/laplacian.hpp>
#include <limber/linalg/eigenpairs.hpp>
#include <limber/linalg/tall.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/geometry.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace limber {
namespace {

void report_progress(const PrepareProgress& progress, const char* what, double fraction) {
  if (progress) progress(what, fraction);
}

std::vector<Mat3> coefficients(const fem::ElementInput& mesh, bool homogeneous) {
  std::vector<Mat3> D(mesh.elements.size());
  const auto same = [](const ElementMaterial& a, const ElementMaterial& b) {
    return a.model == b.model && a.young == b.young && a.poisson == b.poisson &&
           a.fibre == FibreModel::kNone && b.fibre == FibreModel::kNone;
  };
  parallel_ranges(static_cast<std::ptrdiff_t>(D.size()), 4096, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    for (std::ptrdiff_t i = begin; i < end; ++i) {
      const auto e = static_cast<std::size_t>(i);
      if (homogeneous)
        D[e] = Mat3::Identity() * mesh.material.front().young;
      else if (i > begin && same(mesh.material[e], mesh.material[e - 1]))
        D[e] = D[e - 1];
      else
        D[e] = fem::laplacian_coefficient(mesh.material[e]);
    }
  });
  return D;
}

// Rows and columns of pinned nodes become those of the identity.
void pin_rows(const std::vector<std::uint8_t>& pinned, ScalarMatrix& A) {
  if (pinned.empty()) return;
  const BlockPattern& p = *A.pattern;
  for (Index j = 0; j < p.n; ++j)
    for (Index b = p.col_begin[at(j)]; b < p.col_begin[at(j) + 1]; ++b)
      if (pinned[at(j)] || pinned[at(p.row[at(b)])])
        A.values[at(b)] = p.row[at(b)] == j ? std::abs(A.values[at(b)]) : 0;
}

VecX node_volumes(const fem::ElementInput& mesh, Index n) {
  VecX volume = VecX::Zero(n);
  for (const Tet& t : mesh.elements)
    for (const Index i : t) volume[i] += tet_volume(mesh.rest, t) / 4;
  return volume;
}

void factor_or_throw(ScalarCholesky& cholesky, const ScalarMatrix& A) {
  cholesky.analyze(*A.pattern);
  const FactorStatus status = cholesky.factor(A);
  if (!status.ok)
    throw Error(
        ErrorKind::kInput,
        fmt::format("the elastic energy Laplacian is not positive definite at node {} (pivot {:.3g}): "
                    "does an element hang on by nothing, or has a material no stiffness?",
                    status.node, status.pivot));
}

}  // namespace

SkinningWeights skinning_eigenmodes(const fem::ElementInput& mesh,
                                    const std::shared_ptr<const BlockPattern>& pattern, const VecX& mass,
                                    const std::vector<std::uint8_t>& pinned, Index modes, bool homogeneous,
                                    const PrepareProgress& progress) {
  report_progress(progress, "elastic Laplacian", 0);
  const std::vector<Mat3> D = coefficients(mesh, homogeneous);
  ScalarMatrix A = fem::laplacian(mesh, pattern, D);
  VecX m = mass;
  if (homogeneous) m = mesh.material.front().density * node_volumes(mesh, pattern->n);
  // About the first eigenvalue of a bar of the softest material, (4 mu + lambda) / rho (pi / L)^2, below
  // zero: never singular, and it leaves the small eigenvalues apart.
  double softest = std::numeric_limits<double>::infinity();
  for (std::size_t e = 0; e < D.size(); ++e)
    softest = std::min(softest, D[e].trace() / 3 / mesh.material[e].density);
  const double length = bounding_box(mesh.rest).size().norm();
  EigenOptions options;
  options.shift = -0.1 * softest * std::pow(M_PI / length, 2);
  Index pieces = 0;
  connected_components(pattern->n, mesh.elements, &pieces);
  options.block = std::clamp<int>(pieces, 4, 32);
  for (Index j = 0; j < pattern->n; ++j) A.values[at(pattern->col_begin[at(j)])] -= options.shift * m[j];
  pin_rows(pinned, A);
  report_progress(progress, "factorisation", 0.1);
  ScalarCholesky cholesky;
  factor_or_throw(cholesky, A);
  report_progress(progress, "eigenmodes", 0.4);
  std::vector<std::uint8_t> active;
  for (const std::uint8_t p : pinned) active.push_back(!p);
  Eigenpairs pairs = smallest_eigenpairs(
      m, active, [&](Eigen::Ref<MatX> B) { cholesky.solve(B); }, modes, options);
  return {std::move(pairs.vectors), std::move(pairs.values), pairs.solves, pairs.error};
}

SkinningWeights diffused_handles(const fem::ElementInput& mesh,
                                 const std::shared_ptr<const BlockPattern>& pattern,
                                 const std::vector<std::uint8_t>& pinned, Index handles, double radius) {
  const Index n = pattern->n;
  // Farthest points from the centre, then from each other.
  std::vector<Index> chosen;
  VecX distance = VecX::Constant(n, std::numeric_limits<double>::infinity());
  const Box box = bounding_box(mesh.rest);
  Vec3 from = 0.5 * (box.lo + box.hi);
  while (static_cast<Index>(chosen.size()) < handles) {
    Index best = -1;
    for (Index i = 0; i < n; ++i) {
      const double d = (mesh.rest[at(i)] - from).squaredNorm();
      distance[i] = chosen.empty() ? d : std::min(distance[i], d);
      if (!(pinned.empty() || !pinned[at(i)])) continue;
      if (best < 0 || distance[i] > distance[best]) best = i;
    }
    if (best < 0 || (!chosen.empty() && distance[best] == 0))
      throw Error(
          ErrorKind::kInput,
          fmt::format("{} handles were asked for, but only {} free nodes are apart", handles, chosen.size()));
    if (chosen.empty()) distance.setConstant(std::numeric_limits<double>::infinity());
    chosen.push_back(best);
    from = mesh.rest[at(best)];
  }
  const std::vector<Mat3> D(mesh.elements.size(), Mat3::Identity());
  ScalarMatrix A = fem::laplacian(mesh, pattern, D);
  const VecX volume = node_volumes(mesh, n);
  const double time = std::pow(radius * box.size().norm(), 2) / 2;
  for (double& v : A.values) v *= time;
  for (Index j = 0; j < n; ++j) A.values[at(pattern->col_begin[at(j)])] += volume[j];
  pin_rows(pinned, A);
  ScalarCholesky cholesky;
  factor_or_throw(cholesky, A);
  MatX W = MatX::Zero(n, handles);
  for (Index k = 0; k < handles; ++k) W(chosen[at(k)], k) = 1;
  for (int pass = 0; pass < 2; ++pass) {
    if (pass > 0) W = volume.asDiagonal() * W;
    for (Index i = 0; i < n && !pinned.empty(); ++i)
      if (pinned[at(i)]) W.row(i).setZero();
    cholesky.solve(W);
  }
  // Heat reaches every node, in theory; far away only rounding errors do.
  for (Index i = 0; i < n; ++i) {
    W.row(i) = W.row(i).cwiseMax(0);
    const double sum = W.row(i).sum();
    if (sum > 0) W.row(i) /= sum;
  }
  // Pinned nodes have zero weights; their neighbours fade in with the heat that is left of a unit everywhere.
  if (!pinned.empty()) {
    MatX fade = volume;
    for (Index i = 0; i < n; ++i)
      if (pinned[at(i)]) fade(i, 0) = 0;
    cholesky.solve(fade);
    const double most = fade.maxCoeff();
    for (Index i = 0; i < n; ++i) W.row(i) *= fade(i, 0) / most;
  }
  return {std::move(W), {}, 0, 0};
}

ScalarBasis skinning_basis(const MatX& W, std::span<const Vec3> rest, const VecX& mass) {
  const Eigen::Index n = W.rows(), m = W.cols();
  ScalarBasis out;
  for (Eigen::Index i = 0; i < n; ++i) out.center += mass[i] * rest[static_cast<std::size_t>(i)];
  out.center /= mass.sum();
  const VecX root = mass.cwiseSqrt();
  MatX raw(n, 4 * m);
  for (Eigen::Index k = 0; k < m; ++k)
    parallel_for(n, 8192, [&](std::ptrdiff_t i) {
      const Vec3 X = rest[static_cast<std::size_t>(i)] - out.center;
      const double w = W(i, k) * root[i];
      raw.block<1, 4>(i, 4 * k) << w * X[0], w * X[1], w * X[2], w;
    });
  std::vector<Index> kept;
  const MatX R = orthonormalize(raw, 1e-9, kept);
  const Eigen::Index p = raw.cols();
  MatX square(p, p);
  for (Eigen::Index j = 0; j < p; ++j) square.col(j) = R.col(kept[static_cast<std::size_t>(j)]);
  const MatX inverse = square.triangularView<Eigen::Upper>().solve(MatX::Identity(p, p));
  out.affine = MatX::Zero(4 * m, p);
  for (Eigen::Index j = 0; j < p; ++j) out.affine.row(kept[static_cast<std::size_t>(j)]) = inverse.row(j);
  out.dropped = static_cast<Index>(4 * m - p);
  out.Phi = std::move(raw);
  parallel_for(n, 8192, [&](std::ptrdiff_t i) { out.Phi.row(i) /= root[i]; });
  return out;
}

MatX basis_gradients(const MatX& Phi, const fem::ElementInput& mesh, std::span<const Index> elements) {
  MatX b = MatX::Zero(Phi.cols(), 3 * static_cast<Eigen::Index>(elements.size()));
  for (std::size_t c = 0; c < elements.size(); ++c) {
    const Tet& t = mesh.elements[at(elements[c])];
    const Eigen::Matrix<double, 3, 4> g = fem::shape_gradients(mesh.rest, t);
    for (int a = 0; a < 4; ++a)
      b.middleCols(3 * static_cast<Eigen::Index>(c), 3) += Phi.row(t[a]).transpose() * g.col(a).transpose();
  }
  return b;
}

}  // namespace limber
