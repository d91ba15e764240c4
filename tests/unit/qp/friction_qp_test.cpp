#include <limber/qp/friction_qp.hpp>

#include <gtest/gtest.h>

#include <random>

namespace limber::qp {
namespace {

struct FrictionProblem {
  MatX H;
  VecX g, bound;
  std::vector<Eigen::Index> pairs;
};

// `pairs` disks and two single entries, of rank `rank`.
FrictionProblem random_friction_problem(unsigned seed, Eigen::Index pairs, Eigen::Index rank) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal;
  const Eigen::Index n = 2 * pairs + 2;
  FrictionProblem p;
  MatX B(rank, n);
  for (auto& x : B.reshaped()) x = normal(rng);
  p.H = B.transpose() * B;
  p.g = VecX(n);
  for (auto& x : p.g) x = 3 * normal(rng);
  p.bound = VecX(n);
  for (auto& x : p.bound) x = std::abs(normal(rng));
  for (Eigen::Index k = 0; k < pairs; ++k) {
    p.pairs.push_back(2 * k);
    p.bound[2 * k + 1] = p.bound[2 * k];
  }
  return p;
}

double value(const FrictionProblem& p, const VecX& x) { return 0.5 * x.dot(p.H * x) + p.g.dot(x); }

TEST(FrictionQp, OneDiskOnPaper) {
  // H = I: the point of the disk that is nearest to -g.
  const MatX H = MatX::Identity(2, 2);
  for (const double angle : {0.0, 0.3, 0.7853981633974483, 2.0, 4.0}) {
    const VecX g = 5 * Vec2(std::cos(angle), std::sin(angle));
    VecX x = VecX::Zero(2);
    EXPECT_TRUE(solve_friction_qp(H, g, VecX::Constant(2, 1.5), {0}, x).converged);
    EXPECT_LT((x + 0.3 * g).norm(), 1e-8) << angle;
    x.setZero();
    EXPECT_TRUE(solve_friction_qp(H, g, VecX::Constant(2, 7.0), {0}, x).converged);
    EXPECT_LT((x + g).norm(), 1e-7) << angle;  // inside: compliance 1e-9
  }
}

TEST(FrictionQp, IsOptimalAndAdmissibleForRandomProblems) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Eigen::Index pairs = 1 + seed % 8;
    const FrictionProblem p =
        random_friction_problem(seed, pairs, seed % 3 == 0 ? 3 : 2 * pairs + 4);  // some are singular
    VecX x = VecX::Zero(p.g.size());
    BoxQpOptions options;
    options.compliance = 1e-5;
    const BoxQpReport report = solve_friction_qp(p.H, p.g, p.bound, p.pairs, x, options);
    EXPECT_TRUE(report.converged) << seed << " " << report.solver << " " << report.residual;
    for (const Eigen::Index i : p.pairs) EXPECT_LE(x.segment<2>(i).norm(), p.bound[i] * (1 + 1e-12)) << seed;
    // No admissible point nearby, and none of many far away, is better.
    std::mt19937 rng(seed);
    std::normal_distribution<double> normal;
    for (int k = 0; k < 50; ++k) {
      VecX y = x;
      for (auto& e : y) e += (k % 2 ? 1.0 : 1e-3) * normal(rng);
      y = y.cwiseMin(p.bound).cwiseMax(-p.bound);
      for (const Eigen::Index i : p.pairs)
        if (y.segment<2>(i).norm() > p.bound[i]) y.segment<2>(i) *= p.bound[i] / y.segment<2>(i).norm();
      EXPECT_GE(value(p, y), value(p, x) - 1e-4 * (1 + std::abs(value(p, x)))) << seed;
    }
  }
}

TEST(FrictionQp, DoesNotDependOnTheAxes) {
  const FrictionProblem p = random_friction_problem(7, 4, 12);
  VecX x = VecX::Zero(p.g.size()), y = x;
  solve_friction_qp(p.H, p.g, p.bound, p.pairs, x);
  MatX T = MatX::Identity(p.g.size(), p.g.size());
  for (const Eigen::Index i : p.pairs) T.block<2, 2>(i, i) << 0.6, -0.8, 0.8, 0.6;
  solve_friction_qp(T.transpose() * p.H * T, T.transpose() * p.g, p.bound, p.pairs, y);
  EXPECT_LT((x - T * y).norm(), 1e-6);
}

}  // namespace
}  // namespace limber::qp
