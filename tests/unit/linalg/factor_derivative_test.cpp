#include <limber/linalg/factor_derivative.hpp>
#include <limber/linalg/pcg.hpp>

#include <gtest/gtest.h>
#include <unit/linalg/matrices.hpp>

#include <numeric>

namespace limber {
namespace {

MatX random_symmetric(Eigen::Index n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal;
  MatX A(n, n);
  for (Eigen::Index k = 0; k < A.size(); ++k) A.data()[k] = normal(rng);
  return 0.5 * (A + A.transpose());
}

MatX random_definite(Eigen::Index n, unsigned seed) {
  const MatX B = random_symmetric(n, seed);
  return B * B.transpose() + 0.5 * MatX::Identity(n, n);
}

MatX chol(const MatX& A) { return A.llt().matrixL(); }

TEST(FactorDerivative, DenseAgreesWithDifferencesOfEigensFactor) {
  const MatX A = random_definite(17, 1), dA = random_symmetric(17, 2);
  MatX L = A, dL = dA;
  ASSERT_TRUE(dchol(L, dL));
  EXPECT_LT((L - chol(A)).norm(), 1e-12 * L.norm());
  // The error of a central difference falls with the square of the step until rounding takes over.
  auto error = [&](double e) {
    return ((chol(A + e * dA) - chol(A - e * dA)) / (2 * e) - dL).norm() / dL.norm();
  };
  const double coarse = error(1e-3), fine = error(1e-4);
  EXPECT_LT(fine, 1e-5);
  EXPECT_NEAR(std::log10(coarse / fine), 2.0, 0.1);
}

TEST(FactorDerivative, SatisfiesTheProductRule) {
  const MatX A = random_definite(23, 3), dA = random_symmetric(23, 4);
  MatX L = A, dL = dA;
  ASSERT_TRUE(dchol(L, dL));
  EXPECT_LT((dL * L.transpose() + L * dL.transpose() - dA).norm(), 1e-11 * dA.norm());
  EXPECT_EQ(dL.triangularView<Eigen::StrictlyUpper>().toDenseMatrix().norm(), 0);
}

TEST(FactorDerivative, BlockFormAndPhiEqualTheColumnForm) {
  const MatX A = random_definite(24, 5), dA = random_symmetric(24, 6);
  MatX L = A, dL = dA;
  ASSERT_TRUE(dchol(L, dL));
  for (const std::vector<Index>& sizes :
       {std::vector<Index>{24}, {1, 23}, {3, 6, 2, 9, 4}, std::vector<Index>(24, 1)}) {
    MatX B = A, dB = dA;
    ASSERT_TRUE(dchol_blocked(B, dB, sizes));
    EXPECT_LT((B - L).norm(), 1e-12 * L.norm());
    EXPECT_LT((dB - dL).norm(), 1e-11 * dL.norm());
  }
  EXPECT_LT((dchol_phi(L, dA) - dL).norm(), 1e-11 * dL.norm());
}

TEST(FactorDerivative, RefusesWhatHasNoFactor) {
  MatX A = -MatX::Identity(3, 3), dA = MatX::Zero(3, 3);
  EXPECT_FALSE(dchol(A, dA));
  A = -MatX::Identity(3, 3);
  const std::vector<Index> sizes{1, 2};
  EXPECT_FALSE(dchol_blocked(A, dA, sizes));
}

// P A P^T for the order of a factor.
MatX permuted(const MatX& A, std::span<const Index> order) {
  MatX B(A.rows(), A.cols());
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = 0; j < order.size(); ++j)
      B.block<3, 3>(3 * i, 3 * j) = A.block<3, 3>(3 * order[i], 3 * order[j]);
  return B;
}

// L^-1 as the factor applies it, one column per unit vector in elimination order.
MatX lower_inverse(const TimeFactor& factor) {
  const auto order = factor.order();
  const auto n = 3 * static_cast<Eigen::Index>(order.size());
  MatX I = MatX::Zero(n, n);  // P^T, so that half of a solve gives L^-1 P P^T
  for (std::size_t k = 0; k < order.size(); ++k)
    I.block<3, 3>(3 * order[k], 3 * static_cast<Eigen::Index>(k)).setIdentity();
  factor.cholesky().condense_to_tail(I);
  return I;
}

class SparseDerivative : public testing::TestWithParam<const char*> {};

TEST_P(SparseDerivative, EqualsTheDenseOne) {
  const BlockMatrix A = test::random_spd(test::random_pattern(30, 70, 7), 8);
  BlockMatrix dA = A;  // same pattern, other values
  const BlockMatrix other = test::random_spd(*A.pattern, 9);
  for (std::size_t k = 0; k < dA.values.size(); ++k) dA.values[k] = other.values[k] - 0.5 * A.values[k];

  const double epsilon = 1e-6;
  BlockMatrix later = A;
  for (std::size_t k = 0; k < A.values.size(); ++k) later.values[k] += epsilon * dA.values[k];
  TimeFactor factor({.backend = GetParam()});
  factor.analyze(*A.pattern);
  ASSERT_TRUE(factor.factor(A, later, epsilon).ok);
  EXPECT_EQ(factor.stats().analyses, 1);
  ASSERT_TRUE(factor.has_derivative());

  MatX L = permuted(test::dense(A), factor.order()), dL = permuted(test::dense(dA), factor.order());
  ASSERT_TRUE(dchol(L, dL));
  for (const double dt : {0.0, 0.01, 0.1, 0.3}) {
    ASSERT_TRUE(factor.extrapolate(dt));
    const MatX expected = L + dt * dL;
    const MatX product = lower_inverse(factor) * expected;
    EXPECT_LT((product - MatX::Identity(L.rows(), L.cols())).norm(), 1e-5) << "dt = " << dt;
  }
}

TEST_P(SparseDerivative, RefusesToExtrapolateThroughZero) {
  const BlockMatrix A = test::random_spd(test::random_pattern(10, 20, 11), 12);
  BlockMatrix later = A;
  const double epsilon = 1e-6;
  for (double& v : later.values) v *= 1 - epsilon;  // dA = -A: dL = -L / 2, zero at dt = 2
  TimeFactor factor({.backend = GetParam()});
  factor.analyze(*A.pattern);
  ASSERT_TRUE(factor.factor(A, later, epsilon).ok);
  EXPECT_TRUE(factor.extrapolate(1.0));
  EXPECT_FALSE(factor.extrapolate(1.9));
  // What is left is the frozen factor.
  VecX b = VecX::LinSpaced(30, -1, 1), x = b;
  factor.solve(x);
  EXPECT_LT((test::dense(A) * x - b).norm(), 1e-12);
  // A preconditioner follows every change of the factor.
  ASSERT_TRUE(factor.extrapolate(1.0));  // L/2
  VecX y = b;
  factor.precondition(y);
  EXPECT_LT((y - 4 * x).norm(), 1e-4 * y.norm());
  ASSERT_TRUE(factor.extrapolate(0.0));
  y = b;
  factor.precondition(y);
  EXPECT_LT((y - x).norm(), 1e-4 * y.norm());
}

INSTANTIATE_TEST_SUITE_P(Backends, SparseDerivative, testing::Values("cholmod", "auto"));

TEST(Pcg, SolvesWithAnyPreconditioner) {
  const BlockMatrix A = test::random_spd(test::random_pattern(60, 150, 13), 14);
  const VecX b = VecX::LinSpaced(180, -1, 2);
  const VecX exact = test::dense(A).llt().solve(b);
  VecX x;
  const PcgResult plain = pcg(
      A, b, [](VecX&) {}, 1e-10, 500, x);
  EXPECT_TRUE(plain.converged);
  EXPECT_LT((x - exact).norm(), 1e-8 * exact.norm());
  const PcgResult jacobi = pcg(A, b, BlockJacobi(A), 1e-10, 500, x);
  EXPECT_TRUE(jacobi.converged);
  EXPECT_LE(jacobi.iterations, plain.iterations);
  EXPECT_LT((x - exact).norm(), 1e-8 * exact.norm());

  Cholesky factor;
  factor.analyze(*A.pattern);
  ASSERT_TRUE(factor.factor(A).ok);
  const PcgResult direct = pcg(
      A, b, [&](VecX& z) { factor.solve(z); }, 1e-10, 500, x);
  EXPECT_EQ(direct.iterations, 1);
  EXPECT_LT((x - exact).norm(), 1e-9 * exact.norm());
}

TEST(Pcg, StopsAtNegativeCurvature) {
  BlockMatrix A = test::random_spd(test::random_pattern(5, 8, 15), 16);
  for (double& v : A.values) v = -v;
  VecX x;
  const PcgResult r = pcg(
      A, VecX::Ones(15), [](VecX&) {}, 1e-10, 50, x);
  EXPECT_FALSE(r.converged);
  EXPECT_EQ(r.iterations, 1);
  EXPECT_EQ(x.norm(), 0);
}

}  // namespace
}  // namespace limber
