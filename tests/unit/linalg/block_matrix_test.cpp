#include "unit/linalg/matrices.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

TEST(BlockPattern, HoldsEachPairOfAnElementOnceAndEveryDiagonal) {
  const std::vector<std::array<Index, 4>> cliques{{0, 2, 3, 5}, {5, 3, 1, -1}};
  const BlockPattern p = make_block_pattern(7, cliques);
  EXPECT_EQ(p.row, (std::vector<Index>{0, 2, 3, 5, 1, 3, 5, 2, 3, 5, 3, 5, 4, 5, 6}));
  EXPECT_EQ(p.col_begin, (std::vector<Index>{0, 4, 7, 10, 12, 13, 14, 15}));
  EXPECT_EQ(p.find(5, 1), 6);
  EXPECT_EQ(p.find(4, 4), 12);
  EXPECT_EQ(p.find(4, 0), -1);
  EXPECT_EQ(p.find(6, 5), -1);
}

TEST(BlockPattern, RowsAndColumnsNameTheSameBlocks) {
  const BlockPattern p = test::random_pattern(60, 150, 3);
  Index seen = 0;
  for (Index i = 0; i < p.n; ++i)
    for (Index k = p.rows.begin[i]; k < p.rows.begin[i + 1]; ++k, ++seen) {
      EXPECT_EQ(p.rows.block[k], p.find(i, p.rows.col[k]));
      if (k > p.rows.begin[i]) {
        EXPECT_LT(p.rows.col[k - 1], p.rows.col[k]);
      }
    }
  EXPECT_EQ(seen + p.n, p.blocks());
}

TEST(BlockPattern, RejectsNodesAndColumnsThatCannotBe) {
  const std::vector<std::array<Index, 4>> cliques{{0, 1, 2, 4}};
  EXPECT_THROW(make_block_pattern(4, cliques), Error);
  EXPECT_THROW(make_block_pattern({0, 1, 3}, {0, 1, 2}), Error);  // row outside
  EXPECT_THROW(make_block_pattern({0, 2, 3}, {1, 0, 1}), Error);  // diagonal not first
  EXPECT_THROW(make_block_pattern({0, 2, 1}, {0, 1}), Error);     // not ascending
  EXPECT_EQ(make_block_pattern({0, 2, 3}, {0, 1, 1}).n, 2);
  EXPECT_EQ(make_block_pattern(std::vector<Index>{0}, {}).n, 0);
}

TEST(BlockMatrix, TimesVectorIsTheDenseProductForAnyThreadCount) {
  const BlockMatrix A = test::random_spd(test::random_pattern(1500, 6000, 5), 7);
  const VecX x = VecX::Random(3 * A.pattern->n);
  VecX y1, y3;
  set_threads(1);
  multiply(A, x, y1);
  set_threads(3);
  multiply(A, x, y3);
  set_threads(0);
  EXPECT_EQ(y1, y3);
  EXPECT_LT((y1 - test::dense(A) * x).norm(), 1e-12 * y1.norm());
}

}  // namespace
}  // namespace limber
