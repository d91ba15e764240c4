// Cholesky against dense Eigen.
#include "unit/linalg/matrices.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/cholesky.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace limber {
namespace {

// The dense matrix split by a tail.
struct Split {
  std::vector<Index> q, t;  // scalar indices
  MatX Aqq, Aqt, Att;
};

Split split(const MatX& D, const std::vector<Index>& tail) {
  Split s;
  std::vector<char> in_tail(D.rows(), 0);
  for (const Index n : tail)
    for (Index a = 0; a < 3; ++a) {
      s.t.push_back(3 * n + a);
      in_tail[3 * n + a] = 1;
    }
  for (Index i = 0; i < D.rows(); ++i)
    if (!in_tail[i]) s.q.push_back(i);
  s.Aqq = D(s.q, s.q);
  s.Aqt = D(s.q, s.t);
  s.Att = D(s.t, s.t);
  return s;
}

// The back ends, and the native one with factors in single precision: errors of 1e-16 are 6e-8 there.
class CholeskyOf : public testing::TestWithParam<std::string> {
 protected:
  bool single() const { return GetParam() == "single"; }
  double loose() const { return single() ? 1e8 : 1; }
  std::string backend() const { return single() ? "native" : GetParam(); }
  CholeskyOptions options(const char* ordering = "auto") const { return {backend(), ordering, single()}; }
};
std::vector<std::string> kinds() {
  std::vector<std::string> all = cholesky_backends();
  all.push_back("single");
  return all;
}
INSTANTIATE_TEST_SUITE_P(Backends, CholeskyOf, testing::ValuesIn(kinds()),
                         [](const auto& info) { return info.param; });
// Copies of the values are doubles.
using CholeskyValuesOf = CholeskyOf;
INSTANTIATE_TEST_SUITE_P(Backends, CholeskyValuesOf, testing::ValuesIn(cholesky_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(CholeskyOf, SolvesLikeDense) {
  for (const char* ordering : {"amd", "metis", "auto"}) {
    const BlockMatrix A = test::random_spd(test::random_pattern(80, 200, 1), 2);
    const MatX D = test::dense(A);
    Cholesky chol(options(ordering));
    chol.analyze(*A.pattern);
    ASSERT_TRUE(chol.factor(A).ok);
    const MatX B = MatX::Random(D.rows(), 37), X = D.llt().solve(B);
    MatX Y = B;
    chol.solve_many(Y);
    EXPECT_LT((Y - X).norm(), loose() * 1e-12 * X.norm());
    VecX y = B.col(5);
    chol.solve(y);
    EXPECT_LT((y - X.col(5)).norm(), loose() * 1e-12 * X.col(5).norm());
    MatX Z = B;
    chol.condense_to_tail(Z);  // half of a solve, without a tail
    EXPECT_NEAR(Z.squaredNorm(), B.cwiseProduct(X).sum(), loose() * 1e-10 * Z.squaredNorm());  // b^T A^-1 b
    MatX W;
    RowMatX J;
    chol.extend_from_tail(MatX(0, 0), Z, J, W);
    EXPECT_LT((W - X).norm(), loose() * 1e-12 * X.norm());
  }
}

TEST_P(CholeskyOf, TailHoldsTheSchurComplementAndTheCondensation) {
  const std::vector<Index> tail{17, 3, 59, 58, 20};
  const BlockMatrix A = test::random_spd(test::random_pattern(60, 130, 4), 5);
  const Split s = split(test::dense(A), tail);
  Cholesky chol(options());
  chol.analyze(*A.pattern, tail);
  ASSERT_TRUE(chol.factor(A).ok);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), chol.order().end() - 5));

  const MatX map = -s.Aqq.llt().solve(s.Aqt), schur = s.Att + s.Aqt.transpose() * map;
  MatX S;
  chol.tail_schur(S);
  EXPECT_LT((S - schur).norm(), loose() * 1e-13 * schur.norm());

  // Any number of columns of either kind: both fit into one sweep, or straddle two.
  for (const auto& [extended, given] : {std::pair{23, 2}, {0, 1}, {1, 0}, {31, 5}, {40, 30}}) {
    const MatX C = MatX::Random(15, extended), B = MatX::Random(180, given), moved = MatX::Random(15, given);
    MatX Y = B, X;
    RowMatX J;
    chol.condense_to_tail(Y);
    const MatX loads = B(s.t, Eigen::all) + map.transpose() * B(s.q, Eigen::all);
    EXPECT_LE((Y.bottomRows(15) - loads).norm(), loose() * 1e-12 * loads.norm());
    Y.bottomRows(15) = moved;
    chol.extend_from_tail(C, Y, J, X);
    ASSERT_EQ(J.cols(), extended);
    ASSERT_EQ(X.cols(), given);
    EXPECT_LE((J(s.q, Eigen::all) - map * C).norm(), loose() * 1e-12 * (map * C).norm());
    EXPECT_LE((J(s.t, Eigen::all) - C).norm(), loose() * 1e-13 * C.norm());
    const MatX expected = s.Aqq.llt().solve(B(s.q, Eigen::all)) + map * moved;
    EXPECT_LE((X(s.q, Eigen::all) - expected).norm(), loose() * 1e-12 * expected.norm());
    EXPECT_LE((X(s.t, Eigen::all) - moved).norm(), loose() * 1e-13 * moved.norm());
  }
}

TEST_P(CholeskyOf, RightHandSidesGoAlongWithTheFactorisation) {
  for (const std::vector<Index>& tail : {std::vector<Index>{}, {17, 3, 59, 58, 20}}) {
    const BlockMatrix A = test::random_spd(test::random_pattern(60, 130, 4), 5);
    const MatX D = test::dense(A);
    const auto t = static_cast<Eigen::Index>(3 * tail.size());
    Cholesky plain(options()), chol(options());
    plain.analyze(*A.pattern, tail);
    ASSERT_TRUE(plain.factor(A).ok);
    chol.analyze(*A.pattern, tail);
    MatX X, expected;
    RowMatX J, unused;
    for (const auto& [extended, given] : {std::pair{0, 1}, {6, 2}, {0, 9}, {20, 20}, {3, 40}, {0, 1}}) {
      if (tail.empty() && extended > 0) continue;
      chol.carry(*A.pattern, given);
      const MatX B = MatX::Random(180, given), C = MatX::Random(t, extended), moved = MatX::Random(t, given);
      ASSERT_TRUE(chol.factor(A, B).ok);
      MatX Y = B;
      plain.condense_to_tail(Y);
      EXPECT_LE((chol.carried_to_tail() - Y.bottomRows(t)).norm(), loose() * 1e-12 * B.norm());
      Y.bottomRows(t) = moved;
      plain.extend_from_tail(C, Y, unused, expected);
      chol.extend_carried(C, moved, J, X);
      EXPECT_LE((X - expected).norm(), loose() * 1e-12 * expected.norm());
      EXPECT_EQ(J, unused);  // the factor itself is the same
      if (tail.empty()) {
        EXPECT_LE((D * chol.solve_carried() - B).norm(), loose() * 1e-11 * B.norm());
      }
      VecX x = B.col(0), y = x;  // and solves as ever
      chol.solve(x);
      plain.solve(y);
      EXPECT_EQ(x, y);
    }
    EXPECT_THROW((void)chol.factor(A, MatX::Zero(180, 41)), Error);
    EXPECT_THROW((void)chol.factor(A, MatX::Zero(179, 1)), Error);
  }
}

TEST_P(CholeskyOf, NamesTheNodeOfABadPivot) {
  BlockMatrix A = test::random_spd(test::random_pattern(50, 110, 8), 9);
  Cholesky chol(options());
  chol.analyze(*A.pattern);
  ASSERT_TRUE(chol.factor(A).ok);
  // Indefinite: the pivots before the bad one are those of the dense factorisation in the same order.
  A.block(A.pattern->find(23, 23))(1, 1) = -4;
  const FactorStatus status = chol.factor(A);
  ASSERT_FALSE(status.ok);
  const MatX D = test::dense(A);
  std::vector<Index> order;
  for (const Index n : chol.order())
    for (Index a = 0; a < 3; ++a) order.push_back(3 * n + a);
  const MatX P = D(order, order);
  Index bad = 0;
  double pivot = 0;
  for (; bad < P.rows(); ++bad) {
    const VecX w = bad == 0 ? VecX() : VecX(P.topLeftCorner(bad, bad).llt().solve(P.col(bad).head(bad)));
    pivot = P(bad, bad) - (bad == 0 ? 0.0 : w.dot(P.col(bad).head(bad)));
    if (pivot <= 0) break;
  }
  EXPECT_EQ(status.node, order[bad] / 3);
  EXPECT_EQ(status.axis, order[bad] % 3);
  EXPECT_NEAR(status.pivot, pivot, loose() * 1e-10 * (1 + std::abs(pivot)));
  VecX b = VecX::Zero(150);
  EXPECT_THROW(chol.solve(b), Error);

  A.block(A.pattern->find(23, 23))(1, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(chol.factor(A).ok);
  A.block(A.pattern->find(23, 23)) = 1e3 * Mat3::Identity();
  EXPECT_TRUE(chol.factor(A).ok);
  chol.solve(b);
}

TEST_P(CholeskyOf, TakesEmptyOneNodeAndAllTail) {
  Cholesky chol(options());
  const BlockMatrix none = test::random_spd(make_block_pattern(0, {}), 1);
  chol.analyze(*none.pattern);
  EXPECT_TRUE(chol.factor(none).ok);
  VecX b(0);
  chol.solve(b);

  const BlockMatrix one = test::random_spd(make_block_pattern(1, {}), 1);
  chol.analyze(*one.pattern);
  ASSERT_TRUE(chol.factor(one).ok);
  b = VecX::Ones(3);
  chol.solve(b);
  EXPECT_LT((test::dense(one) * b - VecX::Ones(3)).norm(), loose() * 1e-14);

  const BlockMatrix A = test::random_spd(test::random_pattern(12, 20, 3), 4);
  std::vector<Index> all(12);
  std::iota(all.rbegin(), all.rend(), 0);
  chol.analyze(*A.pattern, all);
  ASSERT_TRUE(chol.factor(A).ok);
  MatX S;
  chol.tail_schur(S);
  EXPECT_LT((S - split(test::dense(A), all).Att).norm(), loose() * 1e-13 * S.norm());
}

TEST_P(CholeskyOf, RejectsWrongCalls) {
  const BlockMatrix A = test::random_spd(test::random_pattern(12, 20, 3), 4);
  Cholesky chol(options());
  EXPECT_THROW((void)chol.factor(A), Error);
  const std::vector<Index> twice{3, 3}, outside{12};
  EXPECT_THROW(chol.analyze(*A.pattern, twice), Error);
  EXPECT_THROW(chol.analyze(*A.pattern, outside), Error);
  chol.analyze(*A.pattern);
  VecX b = VecX::Zero(36), c = VecX::Zero(33);
  EXPECT_THROW(chol.solve(b), Error);
  ASSERT_TRUE(chol.factor(A).ok);
  EXPECT_THROW(chol.solve(c), Error);
  EXPECT_THROW(Cholesky({"pardiso", "auto"}), Error);
  Cholesky wrong(options("random"));
  EXPECT_THROW(wrong.analyze(*A.pattern), Error);
}

TEST_P(CholeskyValuesOf, CopiesOfTheValuesAreTheFactor) {
  const BlockMatrix A = test::random_spd(test::random_pattern(40, 90, 6), 7);
  BlockMatrix B = A;
  for (double& v : B.values) v *= 4;
  Cholesky chol(options());
  chol.analyze(*A.pattern);
  ASSERT_TRUE(chol.factor(A).ok);
  const std::vector<double> La(chol.factor_values().begin(), chol.factor_values().end());
  VecX x = VecX::Ones(120), y = x, z = x;
  chol.solve(x);
  ASSERT_TRUE(chol.factor(B).ok);
  chol.solve(y);
  EXPECT_EQ(x, 4 * y);
  std::copy(La.begin(), La.end(), chol.factor_values().begin());
  chol.solve(z);
  EXPECT_EQ(x, z);
}

TEST_P(CholeskyOf, SameBitsForAnyThreadCount) {
  const BlockMatrix A = test::random_spd(test::random_pattern(400, 900, 6), 7);
  const std::vector<Index> tail{5, 6, 200};
  MatX first, first_x;
  RowMatX first_j;
  for (const int threads : {1, 2, 4, 8}) {
    set_threads(threads);
    Cholesky chol(options());
    chol.analyze(*A.pattern, tail);
    ASSERT_TRUE(chol.factor(A).ok);
    MatX B = MatX::Ones(1200, 40), X, Y = MatX::Ones(1200, 2);
    RowMatX J;
    chol.solve_many(B);
    chol.condense_to_tail(Y);
    chol.extend_from_tail(MatX::Ones(9, 31), Y, J, X);
    if (threads == 1) {
      first = B;
      first_x = X;
      first_j = J;
    }
    EXPECT_EQ(B, first) << threads << " threads";
    EXPECT_EQ(X, first_x) << threads << " threads";
    EXPECT_EQ(J, first_j) << threads << " threads";
  }
  set_threads(0);
}

}  // namespace
}  // namespace limber
