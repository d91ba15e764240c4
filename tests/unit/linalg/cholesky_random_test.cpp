// Thousands of small matrices of all kinds, native against dense Eigen.
#include "unit/linalg/matrices.hpp"

#include <limber/core/parallel.hpp>
#include <limber/linalg/cholesky.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace limber {
namespace {

using Cliques = std::vector<std::array<Index, 4>>;

// Patterns by kind: random pairs, elements, pieces without connection, a path, a star, a few dense rows, a
// grid, nothing but the diagonal.
BlockPattern some_pattern(int kind, Index n, std::mt19937& rng) {
  Cliques cliques;
  const auto pick = [&](Index limit) { return static_cast<Index>(rng() % static_cast<unsigned>(limit)); };
  switch (kind) {
    case 0:
      for (Index e = 0; e < 2 * n; ++e) cliques.push_back({pick(n), pick(n), -1, -1});
      break;
    case 1:
      for (Index e = 0; e < n; ++e) cliques.push_back({pick(n), pick(n), pick(n), pick(n)});
      break;
    case 2:
      for (Index e = 0; e < n; ++e) {
        const Index base = pick((n + 4) / 5) * 5, width = std::min<Index>(5, n - base);
        if (width > 0) cliques.push_back({base + pick(width), base + pick(width), -1, -1});
      }
      break;
    case 3:
      for (Index i = 0; i + 1 < n; ++i) cliques.push_back({i, i + 1, -1, -1});
      break;
    case 4:
      for (Index i = 1; i < n; ++i) cliques.push_back({0, i, -1, -1});
      break;
    case 5:
      for (Index i = 0; i < n; ++i) {
        cliques.push_back({i, pick(std::min<Index>(n, 3)), -1, -1});
        cliques.push_back({i, std::max<Index>(0, i - 1 - pick(4)), -1, -1});
      }
      break;
    case 6: {
      const Index w = std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(n))));
      for (Index i = 0; i + 1 < n; ++i) {
        if ((i + 1) % w != 0) cliques.push_back({i, i + 1, -1, -1});
        if (i + w < n) cliques.push_back({i, i + w, -1, -1});
      }
      break;
    }
    default:
      break;
  }
  return make_block_pattern(n, cliques);
}

std::vector<Index> some_tail(Index n, std::mt19937& rng) {
  std::vector<Index> all(n);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), rng);
  all.resize(rng() % 3 == 0 ? rng() % static_cast<unsigned>(n + 1)
                            : rng() % static_cast<unsigned>(std::min(n, 4) + 1));
  return all;
}

TEST(CholeskyRandom, ThousandsOfSmallMatrices) {
  std::mt19937 rng(1);
  const char* orderings[] = {"amd", "metis", "auto"};
  for (int trial = 0; trial < 4000; ++trial) {
    const int kind = trial % 8;
    const Index n = 1 + static_cast<Index>(rng() % (trial % 100 == 0 ? 120 : 24));
    const BlockMatrix A = test::random_spd(some_pattern(kind, n, rng), rng());
    const std::vector<Index> tail = some_tail(n, rng);
    const MatX D = test::dense(A);
    SCOPED_TRACE(testing::Message() << "trial " << trial << ", kind " << kind << ", " << n
                                    << " nodes, tail of " << tail.size());
    Cholesky chol({"native", orderings[trial % 3]});
    chol.analyze(*A.pattern, tail);
    ASSERT_TRUE(chol.factor(A).ok);
    const Eigen::Index k = 1 + static_cast<Eigen::Index>(rng() % 40);
    const MatX B = MatX::Random(3 * n, k);
    MatX X = B;
    chol.solve_many(X);
    ASSERT_LT((D * X - B).norm(), 1e-12 * B.norm());

    MatX one = B.leftCols(1);
    chol.solve_many(one);
    ASSERT_LT((D * one - B.leftCols(1)).norm(), 1e-12 * B.norm());

    // J solves the rows that are not in the tail: A [J; I] = [0; S].
    const Eigen::Index t = 3 * static_cast<Eigen::Index>(tail.size());
    MatX S, none(3 * n, 0), empty;
    RowMatX J;
    chol.extend_from_tail(MatX::Identity(t, t), none, J, empty);
    chol.tail_schur(S);
    MatX expected = MatX::Zero(3 * n, t);
    for (std::size_t i = 0; i < tail.size(); ++i)
      expected.middleRows<3>(3 * tail[i]) = S.middleRows<3>(3 * i);
    ASSERT_LE((D * J - expected).norm(), 1e-12 * D.norm());
  }
}

TEST(CholeskyRandom, IndefiniteAndSingularMatricesAreNoticed) {
  std::mt19937 rng(2);
  for (int trial = 0; trial < 500; ++trial) {
    const Index n = 2 + static_cast<Index>(rng() % 30);
    BlockMatrix A = test::random_spd(some_pattern(trial % 8, n, rng), rng());
    const Index bad = static_cast<Index>(rng() % static_cast<unsigned>(n));
    auto diagonal = A.block(A.pattern->col_begin[bad]);
    Cholesky chol({"native", "auto"});
    chol.analyze(*A.pattern);
    if (trial % 2 == 0) {
      diagonal(1, 1) = -diagonal(1, 1);
    } else {
      // A row and column of zeros.
      for (Index j = 0; j <= bad; ++j)
        if (const Index b = A.pattern->find(bad, j); b >= 0) A.block(b).row(2).setZero();
      for (Index b = A.pattern->col_begin[bad]; b < A.pattern->col_begin[bad + 1]; ++b)
        A.block(b).col(2).setZero();
    }
    const FactorStatus status = chol.factor(A);
    ASSERT_FALSE(status.ok);
    const MatX D = test::dense(A);
    ASSERT_LT(D.selfadjointView<Eigen::Lower>().eigenvalues()(0), 1e-12 * D.norm());
    if (trial % 2 == 1) {
      ASSERT_EQ(status.node, bad);
      ASSERT_EQ(status.axis, 2);
      ASSERT_EQ(status.pivot, 0);
    } else {
      ASSERT_LE(status.pivot, 0);
    }
  }
}

// Two nodes and a spring between them: singular, and no entry says so. The pivot that should be zero is
// noise.
TEST(CholeskyRandom, LostPivotsAreNoticed) {
  const Cliques cliques{{0, 1, -1, -1}};
  BlockMatrix A(std::make_shared<const BlockPattern>(make_block_pattern(2, cliques)));
  for (int i = 1; i < 200; ++i) {
    const Mat3 k = 0.37 * i * Mat3::Identity();
    A.block(0) = k;
    A.block(1) = -k;
    A.block(2) = k;
    for (const std::string& backend : cholesky_backends()) {
      Cholesky chol({backend, "amd"});
      chol.analyze(*A.pattern);
      EXPECT_FALSE(chol.factor(A).ok) << backend << ", k = " << k(0, 0);
      A.block(2) = (1 + 1e-12) * k;
      EXPECT_TRUE(chol.factor(A).ok) << backend << ", k = " << k(0, 0);
      A.block(2) = k;
    }
  }
}

}  // namespace
}  // namespace limber
