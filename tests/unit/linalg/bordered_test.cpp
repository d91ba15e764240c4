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
