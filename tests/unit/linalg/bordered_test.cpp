#include "unit/linalg/matrices.hpp"

#include <limber/linalg/bordered.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

namespace limber {
namespace {

TEST(Bordered, EqualsDense) {
  for (const Index columns : {0, 1, 7, 40}) {
    const BlockMatrix K = test::random_spd(test::random_pattern(60, 150, 3), 4);
    const MatX C = 0.3 * MatX::Random(180, columns);
    const MatX D = 40 * MatX::Identity(columns, columns);
    const VecX f = VecX::Random(180), g = VecX::Random(columns);
    MatX A(180 + columns, 180 + columns);
    A << test::dense(K), C, C.transpose(), D;
    VecX b(180 + columns), u, q, x(180 + columns);
    b << f, g;
    BorderedSolver solver;
    std::vector<Index> order(60);
    std::iota(order.begin(), order.end(), 0);
    std::reverse(order.begin(), order.end());
    for (const bool given : {false, true}) {
      if (given)
        solver.analyze(*K.pattern, order);
      else
        solver.analyze(*K.pattern);
      ASSERT_TRUE(solver.factor(K, C, D));
      solver.solve(f, g, u, q);
      x << u, q;
      EXPECT_LT((A * x - b).norm(), 1e-12 * b.norm());
    }
  }
}

// Nodes that are eliminated last: the same solutions, and another block of theirs without another factor.
TEST(Bordered, TailChangesWithoutAFactor) {
  const BlockMatrix K = test::random_spd(test::random_pattern(60, 150, 3), 4);
  for (const Index columns : {0, 7})
    for (const Index nodes : {1, 4, 40}) {  // the last one above kFewRows of the product that makes S
      const MatX C = 0.3 * MatX::Random(180, columns), D = 40 * MatX::Identity(columns, columns);
      const VecX f = VecX::Random(180), g = VecX::Random(columns);
      std::vector<Index> tail;
      for (Index k = 0; k < nodes; ++k) tail.push_back((7 * k + 5) % 60);
      MatX A(180 + columns, 180 + columns);
      A << test::dense(K), C, C.transpose(), D;
      VecX b(180 + columns);
      b << f, g;
      for (const bool coarse : {false, true}) {
        BorderedSolver solver;
        solver.analyze(*K.pattern);
        solver.set_tail(*K.pattern, tail);
        EXPECT_EQ(solver.tail_nodes(), nodes);
        const auto expect_solves = [&](const MatX& matrix, const char* what) {
          VecX u, q, x(180 + columns);
          solver.solve(f, g, u, q);
          x << u, q;
          EXPECT_LT((matrix * x - b).norm(), (coarse ? 1e-5 : 1e-12) * b.norm())
              << what << ", " << nodes << " nodes, " << columns << " columns, coarse " << coarse;
        };
        ASSERT_TRUE(coarse ? solver.factor_coarsely(K, C, D) : solver.factor(K, C, D));
        expect_solves(A, "as factored");
        // Blocks of the diagonal, and one of two nodes that the pattern need not have.
        std::vector<BorderedSolver::TailBlock> change;
        MatX other = A;
        for (Index k = 0; k < nodes; k += 3) {
          const Vec3 n = Vec3::Random();
          change.push_back({k, k, 30 * n * n.transpose()});
          other.block<3, 3>(3 * tail[at(k)], 3 * tail[at(k)]) += change.back().value;
        }
        if (nodes > 1) {
          change.push_back({1, 0, 0.2 * Mat3::Random()});
          other.block<3, 3>(3 * tail[1], 3 * tail[0]) += change.back().value;
          other.block<3, 3>(3 * tail[0], 3 * tail[1]) += change.back().value.transpose();
        }
        ASSERT_TRUE(solver.change_tail(change));
        expect_solves(other, "changed");
        // Of the factored matrix, not of the changed one; and one that cannot be.
        change.resize(1);
        MatX first = A;
        first.block<3, 3>(3 * tail[0], 3 * tail[0]) += change[0].value;
        ASSERT_TRUE(solver.change_tail(change));
        expect_solves(first, "changed again");
        change[0].value = -1e3 * Mat3::Identity();
        EXPECT_FALSE(solver.change_tail(change));
        expect_solves(A, "refused");
        ASSERT_TRUE(solver.change_tail({}));
        expect_solves(A, "as factored");
      }
    }
}

TEST(Bordered, BorderAlone) {
  const MatX D = 3 * MatX::Identity(5, 5);
  BorderedSolver solver;
  solver.analyze(make_block_pattern(std::vector<Index>{0}, std::vector<Index>{}));
  ASSERT_TRUE(solver.factor(BlockMatrix(), MatX(0, 5), D));
  VecX u, q;
  solver.solve(VecX(), VecX::Ones(5), u, q);
  EXPECT_EQ(u.size(), 0);
  EXPECT_LT((q - VecX::Constant(5, 1.0 / 3)).norm(), 1e-15);
}

TEST(Bordered, SaysWhatIsNotPositiveDefinite) {
  const BlockMatrix K = test::random_spd(test::random_pattern(20, 40, 1), 2);
  BorderedSolver solver;
  solver.analyze(*K.pattern);
  EXPECT_FALSE(solver.factor(K, MatX::Zero(60, 2), -MatX::Identity(2, 2)));
  EXPECT_EQ(solver.status().node, -1);
  BlockMatrix bad = K;
  bad.block(bad.pattern->col_begin[7]) *= -1;
  EXPECT_FALSE(solver.factor(bad, MatX::Zero(60, 2), MatX::Identity(2, 2)));
  EXPECT_GE(solver.status().node, 0);
}

// A factor in single precision has errors of its own, and one in double precision after it has none of them.
TEST(Bordered, CoarseFactorsAreThoseOfFloats) {
  const Index columns = 7;
  const BlockMatrix K = test::random_spd(test::random_pattern(60, 150, 3), 4);
  const MatX C = 0.3 * MatX::Random(180, columns), D = 40 * MatX::Identity(columns, columns);
  const VecX f = VecX::Random(180), g = VecX::Random(columns);
  MatX A(180 + columns, 180 + columns);
  A << test::dense(K), C, C.transpose(), D;
  VecX b(180 + columns), u, q, x(180 + columns);
  b << f, g;
  BorderedSolver solver;
  solver.analyze(*K.pattern);
  const auto error = [&] {
    solver.solve(f, g, u, q);
    x << u, q;
    return (A * x - b).norm() / b.norm();
  };
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(solver.factor_coarsely(K, C, D));
    EXPECT_TRUE(solver.in_single());
    const double coarse = error();
    EXPECT_LT(coarse, 1e-5);
    EXPECT_GT(coarse, 1e-10);
    ASSERT_TRUE(solver.factor(K, C, D));
    EXPECT_FALSE(solver.in_single());
    EXPECT_LT(error(), 1e-12);
  }
}

// What floats cannot tell from singular is factored in double precision; what is clearly negative is not.
TEST(Bordered, CoarseFactorsLeaveCloseCallsToDoubles) {
  BlockMatrix K(std::make_shared<const BlockPattern>(test::random_pattern(1, 0, 1)));
  const auto factor = [&](double smallest) {
    // Two rows that differ by next to nothing: the second pivot is `smallest`.
    K.block(0) << 1, 1, 0, 1, 1 + smallest, 0, 0, 0, 1;
    BorderedSolver solver;
    solver.analyze(*K.pattern);
    const bool positive = solver.factor_coarsely(K, MatX(3, 0), MatX(0, 0));
    return std::pair(positive, solver.in_single());
  };
  EXPECT_EQ(factor(0.5), std::pair(true, true));
  EXPECT_EQ(factor(1e-9), std::pair(true, false));
  EXPECT_EQ(factor(-1e-9), std::pair(false, false));
  EXPECT_EQ(factor(-0.5), std::pair(false, true));
}

}  // namespace
}  // namespace limber
