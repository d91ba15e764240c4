// Scalar Cholesky, shift-invert Lanczos, non-negative least squares.
#include "unit/linalg/matrices.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/eigenpairs.hpp>
#include <limber/linalg/nnls.hpp>
#include <limber/linalg/scalar_cholesky.hpp>
#include <limber/linalg/tall.hpp>

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <random>

namespace limber {
namespace {

std::shared_ptr<const BlockPattern> pattern_of(Index n, const std::vector<std::array<Index, 4>>& cliques) {
  return std::make_shared<const BlockPattern>(make_block_pattern(n, cliques));
}

MatX dense_of(const ScalarMatrix& A) {
  MatX D = MatX::Zero(A.pattern->n, A.pattern->n);
  for (Index j = 0; j < A.pattern->n; ++j)
    for (Index b = A.pattern->col_begin[at(j)]; b < A.pattern->col_begin[at(j) + 1]; ++b) {
      D(A.pattern->row[at(b)], j) = A.values[at(b)];
      D(j, A.pattern->row[at(b)]) = A.values[at(b)];
    }
  return D;
}

// The Laplacian of a grid of nx x ny x nz points with unit edges, plus `shift` on the diagonal.
ScalarMatrix grid_laplacian(Index nx, Index ny, Index nz, double shift) {
  const auto id = [&](Index i, Index j, Index k) { return i + nx * (j + ny * k); };
  std::vector<std::array<Index, 4>> edges;
  for (Index k = 0; k < nz; ++k)
    for (Index j = 0; j < ny; ++j)
      for (Index i = 0; i < nx; ++i) {
        if (i + 1 < nx) edges.push_back({id(i, j, k), id(i + 1, j, k), -1, -1});
        if (j + 1 < ny) edges.push_back({id(i, j, k), id(i, j + 1, k), -1, -1});
        if (k + 1 < nz) edges.push_back({id(i, j, k), id(i, j, k + 1), -1, -1});
      }
  ScalarMatrix A(pattern_of(nx * ny * nz, edges));
  const BlockPattern& p = *A.pattern;
  for (const auto& e : edges) {
    const Index a = std::min(e[0], e[1]), b = std::max(e[0], e[1]);
    A.values[at(p.find(b, a))] -= 1;
    A.values[at(p.find(a, a))] += 1;
    A.values[at(p.find(b, b))] += 1;
  }
  for (Index j = 0; j < p.n; ++j) A.values[at(p.col_begin[at(j)])] += shift;
  return A;
}

TEST(ScalarCholesky, SolvesRandomMatricesLikeDenseEigen) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<double> number(-1, 1);
  for (int trial = 0; trial < 300; ++trial) {
    const Index n = 1 + static_cast<Index>(rng() % 120);
    std::vector<std::array<Index, 4>> cliques;
    for (Index e = 0; e < n; ++e) {
      const auto pick = [&] { return static_cast<Index>(rng() % static_cast<unsigned>(n)); };
      cliques.push_back({pick(), pick(), pick(), trial % 2 ? pick() : -1});
    }
    ScalarMatrix A(pattern_of(n, cliques));
    for (double& v : A.values) v = number(rng);
    for (Index j = 0; j < n; ++j) A.values[at(A.pattern->col_begin[at(j)])] = 12 + number(rng);
    const MatX D = dense_of(A);
    MatX B = MatX::NullaryExpr(n, 1 + trial % 11, [&] { return number(rng); }), X = B;
    if (Eigen::LLT<MatX>(D).info() != Eigen::Success) continue;
    for (const char* ordering : {"amd", "metis"}) {
      ScalarCholesky cholesky(ordering);
      cholesky.analyze(*A.pattern);
      ASSERT_TRUE(cholesky.factor(A).ok);
      X = B;
      cholesky.solve(X);
      EXPECT_LT((D * X - B).norm(), 1e-11 * B.norm()) << "trial " << trial;
    }
    VecX y;
    multiply(A, VecX(B.col(0)), y);
    EXPECT_LT((y - D * B.col(0)).norm(), 1e-12 * (1 + y.norm()));
  }
}

TEST(ScalarCholesky, SameBitsForAnyThreadCountAndCountsItsWork) {
  const ScalarMatrix A = grid_laplacian(30, 20, 20, 0.01);
  MatX first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    ScalarCholesky cholesky;
    cholesky.analyze(*A.pattern);
    ASSERT_TRUE(cholesky.factor(A).ok);
    MatX X = MatX::Ones(A.pattern->n, 5);
    for (Eigen::Index i = 0; i < X.rows(); ++i) X(i, 2) = std::sin(static_cast<double>(i));
    cholesky.solve(X);
    if (count == 1) {
      first = X;
      VecX y;
      multiply(A, VecX(X.col(2)), y);
      double worst = 0;
      for (Eigen::Index i = 0; i < X.rows(); ++i)
        worst = std::max(worst, std::abs(y[i] - std::sin(static_cast<double>(i))));
      EXPECT_LT(worst, 1e-11);
      EXPECT_GT(cholesky.stats().nnz, 12000);
      EXPECT_LT(cholesky.stats().nnz, 12000 * 400.0);
    }
    EXPECT_TRUE(first == X) << count << " threads";
  }
  set_threads(0);
}

TEST(ScalarCholesky, NamesTheNodeWhereTheMatrixIsNotPositiveDefinite) {
  ScalarMatrix A = grid_laplacian(4, 4, 1, 1);
  A.values[at(A.pattern->col_begin[9])] = -3;
  ScalarCholesky cholesky;
  cholesky.analyze(*A.pattern);
  const FactorStatus status = cholesky.factor(A);
  EXPECT_FALSE(status.ok);
  EXPECT_EQ(status.axis, 0);
  MatX X = MatX::Ones(16, 1);
  EXPECT_THROW(cholesky.solve(X), Error);
}

Eigenpairs pairs_of(ScalarMatrix A, const VecX& mass, Index count, double shift, int block = 4) {
  for (Index j = 0; j < A.pattern->n; ++j) A.values[at(A.pattern->col_begin[at(j)])] -= shift * mass[j];
  ScalarCholesky cholesky;
  cholesky.analyze(*A.pattern);
  EXPECT_TRUE(cholesky.factor(A).ok);
  EigenOptions options;
  options.shift = shift;
  options.block = block;
  return smallest_eigenpairs(
      mass, {}, [&](Eigen::Ref<MatX> B) { cholesky.solve(B); }, count, options);
}

TEST(Eigenpairs, OfACubeWithAllItsMultiplicities) {
  // Eigenvalues 2 (3 - cos a - cos b - cos c): the first after 0 has multiplicity 3, the next too.
  const Index n = 9;
  const ScalarMatrix A = grid_laplacian(n, n, n, 0);
  const Eigenpairs pairs = pairs_of(A, VecX::Ones(n * n * n), 20, -0.01);
  std::vector<double> exact;
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b)
      for (int c = 0; c < n; ++c)
        exact.push_back(6 - 2 * (std::cos(M_PI * a / n) + std::cos(M_PI * b / n) + std::cos(M_PI * c / n)));
  std::sort(exact.begin(), exact.end());
  for (int k = 0; k < 20; ++k) EXPECT_NEAR(pairs.values[k], exact[static_cast<std::size_t>(k)], 1e-10) << k;
  EXPECT_LT((pairs.vectors.transpose() * pairs.vectors - MatX::Identity(20, 20)).norm(), 1e-10);
  for (int k = 0; k < 20; ++k) {
    VecX y;
    multiply(A, VecX(pairs.vectors.col(k)), y);
    EXPECT_LT((y - pairs.values[k] * pairs.vectors.col(k)).norm(), 1e-8) << k;
  }
}

TEST(Eigenpairs, WithMassesMatchDenseAndUseAllVectorsOfASmallProblem) {
  const ScalarMatrix A = grid_laplacian(4, 3, 2, 0);
  VecX mass(24);
  for (Index i = 0; i < 24; ++i) mass[i] = 0.5 + 0.1 * static_cast<double>(i % 7);
  const Eigenpairs pairs = pairs_of(A, mass, 24, -0.2);
  const VecX root = mass.cwiseSqrt().cwiseInverse();
  const Eigen::SelfAdjointEigenSolver<MatX> dense(MatX(root.asDiagonal() * dense_of(A) * root.asDiagonal()));
  EXPECT_LT((pairs.values - dense.eigenvalues()).norm(), 1e-10);
  EXPECT_LT((pairs.vectors.transpose() * mass.asDiagonal() * pairs.vectors - MatX::Identity(24, 24)).norm(),
            1e-9);
}

TEST(Eigenpairs, RefusesMoreThanThereAre) {
  EXPECT_THROW(pairs_of(grid_laplacian(3, 1, 1, 0), VecX::Ones(3), 4, -0.1), Error);
}

TEST(Nnls, MeetsItsOptimalityConditions) {
  std::mt19937 rng(3);
  std::normal_distribution<double> number;
  for (int trial = 0; trial < 50; ++trial) {
    const MatX A = MatX::NullaryExpr(30, 12, [&] { return number(rng); });
    const VecX b = VecX::NullaryExpr(30, [&] { return number(rng); });
    const MatX G = A.transpose() * A;
    const VecX c = A.transpose() * b;
    const VecX x = nnls(G, c);
    const VecX slope = c - G * x;  // zero where x > 0, not positive where x = 0
    for (Eigen::Index i = 0; i < 12; ++i) {
      EXPECT_GE(x[i], 0);
      if (x[i] > 0)
        EXPECT_NEAR(slope[i], 0, 1e-9);
      else
        EXPECT_LE(slope[i], 1e-9);
    }
    EXPECT_LT((nnls(G, c, x) - x).norm(), 1e-9);  // a warm start changes nothing
  }
}

TEST(Orthonormalize, KeepsTheSpanAndLeavesOutWhatDepends) {
  MatX A(50, 4);
  for (Eigen::Index i = 0; i < 50; ++i) {
    const double t = static_cast<double>(i) / 50;
    A.row(i) << 1, 1e6 * t, 3 - 2e6 * t, t * t;
  }
  const MatX before = A;
  std::vector<Index> kept;
  const MatX R = orthonormalize(A, 1e-10, kept);
  EXPECT_EQ(kept, (std::vector<Index>{0, 1, 3}));
  EXPECT_LT((A.transpose() * A - MatX::Identity(3, 3)).norm(), 1e-13);
  for (const Index j : kept) EXPECT_LT((A * R.col(j) - before.col(j)).norm(), 1e-13 * before.col(j).norm());
}

}  // namespace
}  // namespace limber
