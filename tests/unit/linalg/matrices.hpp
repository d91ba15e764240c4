// Matrices for the tests of linalg/, and their dense form as the oracle.
#pragma once

#include <limber/linalg/block_matrix.hpp>

#include <Eigen/Dense>

#include <memory>
#include <random>

namespace limber::test {

inline MatX dense(const BlockMatrix& A) {
  const BlockPattern& p = *A.pattern;
  MatX D = MatX::Zero(3 * p.n, 3 * p.n);
  for (Index j = 0; j < p.n; ++j)
    for (Index b = p.col_begin[j]; b < p.col_begin[j + 1]; ++b) {
      D.block<3, 3>(3 * p.row[b], 3 * j) = A.block(b);
      D.block<3, 3>(3 * j, 3 * p.row[b]) = A.block(b).transpose();
    }
  return D;
}

// n nodes, about `edges` random pairs.
inline BlockPattern random_pattern(Index n, Index edges, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::array<Index, 4>> cliques;
  if (n > 0) {
    std::uniform_int_distribution<Index> pick(0, n - 1);
    for (Index e = 0; e < edges; ++e) cliques.push_back({pick(rng), pick(rng), -1, -1});
  }
  return make_block_pattern(n, cliques);
}

// Random values, made positive definite by row sums on the diagonal.
inline BlockMatrix random_spd(BlockPattern pattern, unsigned seed) {
  BlockMatrix A(std::make_shared<const BlockPattern>(std::move(pattern)));
  const BlockPattern& p = *A.pattern;
  std::mt19937 rng(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  for (double& v : A.values) v = value(rng);
  VecX sums = VecX::Zero(3 * p.n);
  for (Index j = 0; j < p.n; ++j) {
    auto d = A.block(p.col_begin[j]);
    const Mat3 sym = 0.5 * (d + d.transpose());
    d = sym;
    for (Index b = p.col_begin[j]; b < p.col_begin[j + 1]; ++b) {
      const Index i = p.row[b];
      node(sums, i) += A.block(b).cwiseAbs().rowwise().sum();
      if (i != j) node(sums, j) += A.block(b).cwiseAbs().colwise().sum().transpose();
    }
  }
  for (Index j = 0; j < p.n; ++j)
    A.block(p.col_begin[j]).diagonal() += 1.05 * Vec3(node(sums, j)) + Vec3::Constant(0.1);
  return A;
}

}  // namespace limber::test
