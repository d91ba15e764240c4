#include "unit/linalg/matrices.hpp"

#include <limber/linalg/bordered.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

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

}  // namespace
}  // namespace limber
