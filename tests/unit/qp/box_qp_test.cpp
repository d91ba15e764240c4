#include <limber/core/error.hpp>
#include <limber/qp/box_qp.hpp>

#include <gtest/gtest.h>
#include <Eigen/LU>

#include <fstream>
#include <limits>
#include <random>
#include <sstream>

namespace limber::qp {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Problem {
  MatX H;
  VecX g, lo, hi;
};

double objective(const Problem& p, const VecX& x) { return x.dot(0.5 * p.H * x + p.g); }

// Tries all 3^n sets of {free, at the lower, at the upper bound}: slow and plainly right.
VecX enumerate(const Problem& p) {
  const Eigen::Index n = p.g.size();
  VecX best;
  double least = kInf;
  std::vector<int> where(static_cast<std::size_t>(n), 0);
  for (;;) {
    VecX x = VecX::Zero(n);
    std::vector<Eigen::Index> free;
    bool usable = true;
    for (Eigen::Index i = 0; i < n; ++i) {
      const int w = where[static_cast<std::size_t>(i)];
      if (w == 0) free.push_back(i);
      if (w == 1) x[i] = p.lo[i];
      if (w == 2) x[i] = p.hi[i];
      usable = usable && std::isfinite(x[i]);
    }
    if (usable) {
      const auto m = static_cast<Eigen::Index>(free.size());
      MatX A(m, m);
      VecX b(m);
      const VecX w = p.H * x + p.g;
      for (Eigen::Index r = 0; r < m; ++r) {
        b[r] = -w[free[r]];
        for (Eigen::Index c = 0; c < m; ++c) A(r, c) = p.H(free[r], free[c]);
      }
      if (m) b = A.fullPivLu().solve(b).eval();
      for (Eigen::Index r = 0; r < m; ++r) x[free[r]] = b[r];
      const double e = objective(p, x);
      if ((x.array() >= p.lo.array() - 1e-9).all() && (x.array() <= p.hi.array() + 1e-9).all() && e < least) {
        least = e;
        best = x;
      }
    }
    std::size_t k = 0;
    while (k < where.size() && where[k] == 2) where[k++] = 0;
    if (k == where.size()) return best;
    ++where[k];
  }
}

Problem random_problem(int n, int rank, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal;
  Problem p;
  MatX B(rank, n);
  for (auto& b : B.reshaped()) b = normal(rng);
  p.H = B.transpose() * B;
  p.g.resize(n);
  p.lo.resize(n);
  p.hi.resize(n);
  for (int i = 0; i < n; ++i) {
    p.g[i] = normal(rng);
    p.lo[i] = -std::abs(normal(rng));
    p.hi[i] = std::abs(normal(rng));
    if (i % 3 == 1) p.lo[i] = 0, p.hi[i] = kInf;
  }
  return p;
}

// Another way to the solution, which pays no heed to singular H: one entry after the other.
VecX gauss_seidel(const Problem& p) {
  VecX x = VecX::Zero(p.g.size()).cwiseMax(p.lo).cwiseMin(p.hi);
  for (int sweep = 0; sweep < 20000; ++sweep)
    for (Eigen::Index i = 0; i < x.size(); ++i)
      x[i] = std::clamp(x[i] - (p.H.col(i).dot(x) + p.g[i]) / p.H(i, i), p.lo[i], p.hi[i]);
  return x;
}

TEST(BoxQp, AgreesWithEnumerationOfAllActiveSets) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Problem p = random_problem(2 + static_cast<int>(seed) % 6, 9, seed);
    const VecX exact = enumerate(p);
    VecX x;
    EXPECT_TRUE(solve_box_qp(p.H, p.g, p.lo, p.hi, x).converged);
    EXPECT_LT((x - exact).cwiseAbs().maxCoeff(), 1e-6 * (1 + exact.cwiseAbs().maxCoeff())) << "seed " << seed;
  }
}

// The generator of make_reference.py.
struct Lcg {
  std::uint64_t x;
  double operator()() {
    x = (1664525 * x + 1013904223) % 4294967296ull;
    return static_cast<double>(x) / 2147483648.0 - 1.0;
  }
};

Problem shared_problem(int n, int rank, std::uint64_t seed) {
  Lcg r{seed};
  MatX B(rank, n);
  for (int i = 0; i < rank; ++i)
    for (int j = 0; j < n; ++j) B(i, j) = r();
  Problem p;
  p.H = B.transpose() * B + 0.01 * MatX::Identity(n, n);
  p.g.resize(n);
  p.lo.resize(n);
  p.hi.resize(n);
  for (int i = 0; i < n; ++i) p.g[i] = r();
  for (int i = 0; i < n; ++i) {
    const double a = std::abs(r()), b = std::abs(r());
    p.lo[i] = i % 4 == 0 ? -a : i % 4 == 1 ? 0.0 : i % 4 == 2 ? -kInf : -0.1 * a;
    p.hi[i] = i % 4 == 0 ? b : i % 4 == 3 ? 0.1 * b : kInf;
  }
  return p;
}

TEST(BoxQp, AgreesWithCvxopt) {
  std::ifstream file(LIMBER_SOURCE_DIR "/tests/unit/qp/data/box_qp.txt");
  ASSERT_TRUE(file);
  std::string line;
  int problems = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream in(line);
    int n = 0, rank = 0;
    std::uint64_t seed = 0;
    double best = 0;
    in >> n >> rank >> seed >> best;
    VecX reference(n);
    for (auto& v : reference) in >> v;
    ASSERT_TRUE(in);
    const Problem p = shared_problem(n, rank, seed);
    VecX x;
    const BoxQpReport report = solve_box_qp(p.H, p.g, p.lo, p.hi, x);
    EXPECT_TRUE(report.converged);
    EXPECT_STREQ(report.solver, "pivoting");
    EXPECT_LT((x - reference).cwiseAbs().maxCoeff(), 1e-6 * (1 + reference.cwiseAbs().maxCoeff()))
        << "n " << n << " rank " << rank;
    EXPECT_NEAR(objective(p, x), best, 1e-8 * (1 + std::abs(best)));
    ++problems;
  }
  EXPECT_EQ(problems, 6);
}

// Redundant contacts: more rows than directions. The split between rows is not unique, what they do is.
TEST(BoxQp, SingularMatrixGivesTheUniqueForce) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const int n = 16, rank = 5;
    std::mt19937 rng(seed + 100);
    std::normal_distribution<double> normal;
    MatX B(rank, n);
    for (auto& b : B.reshaped()) b = normal(rng);
    // Opposite normals, as around a pin.
    B.rightCols(8) = -B.leftCols(8);
    VecX v(rank);
    for (auto& c : v) c = normal(rng);
    Problem p{B.transpose() * B, B.transpose() * v, VecX::Zero(n), VecX::Constant(n, kInf)};
    VecX x;
    EXPECT_TRUE(solve_box_qp(p.H, p.g, p.lo, p.hi, x).converged) << seed;
    EXPECT_LT((B * x + v).norm(), 1e-6 * v.norm());  // all of the velocity is removed
    EXPECT_LT((B * (x - gauss_seidel(p))).norm(), 1e-5 * v.norm());
  }
}

TEST(BoxQp, AWarmStartAtTheSolutionNeedsOneStep) {
  const Problem p = random_problem(20, 25, 7);
  VecX x;
  solve_box_qp(p.H, p.g, p.lo, p.hi, x);
  const VecX first = x;
  const BoxQpReport again = solve_box_qp(p.H, p.g, p.lo, p.hi, x);
  EXPECT_LE(again.iterations, 2);
  EXPECT_LT((x - first).norm(), 1e-12);
}

TEST(BoxQp, ResidualIsZeroOnlyAtTheSolution) {
  const Problem p = random_problem(10, 12, 8);
  VecX x;
  solve_box_qp(p.H, p.g, p.lo, p.hi, x);
  EXPECT_LT(box_qp_residual(p.H, p.g, p.lo, p.hi, x), 1e-7);
  x[0] += 0.01;
  EXPECT_GT(box_qp_residual(p.H, p.g, p.lo, p.hi, x), 1e-3);
}

TEST(BoxQp, NumbersThatAreNoneAreNotSolved) {
  const VecX lo = VecX::Constant(3, -1), hi = VecX::Constant(3, 1);
  VecX g = VecX::Ones(3), x;
  g[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(solve_box_qp(MatX::Identity(3, 3), g, lo, hi, x).converged);
}

TEST(BoxQp, RefusesCrossedBounds) {
  const MatX H = MatX::Identity(1, 1);
  const VecX one = VecX::Ones(1), zero = VecX::Zero(1);
  VecX x;
  EXPECT_THROW(solve_box_qp(H, zero, one, zero, x), Error);
}

}  // namespace
}  // namespace limber::qp
