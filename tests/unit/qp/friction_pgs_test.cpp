#include <limber/core/error.hpp>
#include <limber/qp/box_qp.hpp>
#include <limber/qp/friction_pgs.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace limber::qp {
namespace {

// m contacts on a system with `freedoms` degrees of freedom.
FrictionProblem random_contacts(int m, int freedoms, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal;
  MatX J(3 * m, freedoms);
  for (auto& j : J.reshaped()) j = normal(rng);
  FrictionProblem q;
  q.W = J * J.transpose();
  q.u.resize(3 * m);
  for (auto& u : q.u) u = normal(rng);
  q.target = VecX::Zero(m);
  for (auto& t : q.target) t = 0.1 * normal(rng);
  q.compliance = VecX::Constant(m, 1e-3);
  q.friction = VecX::Constant(m, 0.4);
  return q;
}

TEST(FrictionPgs, WithoutFrictionIsTheBoxQp) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    FrictionProblem q = random_contacts(8, 40, seed);
    q.friction.setZero();
    VecX p;
    FrictionPgsOptions tight{20000, 1e-12};
    ASSERT_TRUE(solve_friction_pgs(q, p, tight).converged) << seed;
    MatX H(8, 8);
    VecX g(8), x;
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 8; ++j) H(i, j) = q.W(3 * i, 3 * j);
      H(i, i) += q.compliance[i];
      g[i] = q.u[3 * i] - q.target[i];
    }
    BoxQpOptions exact;
    exact.compliance = 0;
    ASSERT_TRUE(solve_box_qp(H, g, VecX::Zero(8), VecX::Constant(8, std::numeric_limits<double>::infinity()),
                             x, exact)
                    .converged);
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(p[3 * i], x[i], 1e-9 * x.cwiseAbs().maxCoeff()) << seed;
  }
}

// Where the second tangent of every contact is at rest and coupled with nothing, the disc is an interval:
// with the normal impulses held at the solution, the tangential ones solve a box QP, and the other way round.
TEST(FrictionPgs, InThePlaneEachHalfIsABoxQp) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const int m = 6;
    FrictionProblem q = random_contacts(m, 60, 100 + seed);
    for (int c = 0; c < m; ++c) {
      q.W.row(3 * c + 2).setZero();
      q.W.col(3 * c + 2).setZero();
      q.W(3 * c + 2, 3 * c + 2) = 1;
      q.u[3 * c + 2] = 0;
    }
    VecX p;
    ASSERT_TRUE(solve_friction_pgs(q, p, {100000, 1e-13}).converged) << seed;
    const VecX w = q.W * p + q.u;
    MatX N(m, m), T(m, m);
    VecX gn(m), gt(m), n(m), t(m), limit(m), x, y;
    for (int i = 0; i < m; ++i) {
      n[i] = p[3 * i];
      t[i] = p[3 * i + 1];
      limit[i] = q.friction[i] * n[i];
      EXPECT_EQ(p[3 * i + 2], 0);
      for (int j = 0; j < m; ++j) {
        N(i, j) = q.W(3 * i, 3 * j);
        T(i, j) = q.W(3 * i + 1, 3 * j + 1);
      }
      N(i, i) += q.compliance[i];
    }
    for (int i = 0; i < m; ++i) {
      gn[i] = w[3 * i] + q.compliance[i] * n[i] - q.target[i] - N.row(i).dot(n);
      gt[i] = w[3 * i + 1] - T.row(i).dot(t);
    }
    BoxQpOptions exact;
    exact.compliance = 0;
    const VecX inf = VecX::Constant(m, std::numeric_limits<double>::infinity());
    ASSERT_TRUE(solve_box_qp(N, gn, VecX::Zero(m), inf, x, exact).converged);
    ASSERT_TRUE(solve_box_qp(T, gt, -limit, limit, y, exact).converged);
    EXPECT_LT((x - n).cwiseAbs().maxCoeff(), 1e-9 * n.maxCoeff());
    EXPECT_LT((y - t).cwiseAbs().maxCoeff(), 1e-9 * n.maxCoeff());
  }
}

// Coulomb's law, contact by contact.
TEST(FrictionPgs, ObeysCoulomb) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const int m = 7;
    const FrictionProblem q = random_contacts(m, 50, 200 + seed);
    VecX p;
    ASSERT_TRUE(solve_friction_pgs(q, p, {100000, 1e-12}).converged) << seed;
    EXPECT_LT(friction_residual(q, p), 1e-10);
    const VecX w = q.W * p + q.u;
    for (int c = 0; c < m; ++c) {
      const double normal = w[3 * c] + q.compliance[c] * p[3 * c] - q.target[c];
      const Vec2 pt = p.segment<2>(3 * c + 1), wt = w.segment<2>(3 * c + 1);
      EXPECT_GE(p[3 * c], 0);
      EXPECT_GE(normal, -1e-8);
      EXPECT_LT(p[3 * c] * normal, 1e-8);
      EXPECT_LE(pt.norm(), q.friction[c] * p[3 * c] * (1 + 1e-12) + 1e-12);
      if (wt.norm() > 1e-6) {
        EXPECT_LT((pt + q.friction[c] * p[3 * c] / wt.norm() * wt).norm(), 1e-5) << seed << " " << c;
      }
    }
  }
}

TEST(FrictionPgs, StartsFromWhatItIsGiven) {
  const FrictionProblem q = random_contacts(12, 80, 3);
  VecX p;
  const FrictionPgsReport cold = solve_friction_pgs(q, p);
  ASSERT_TRUE(cold.converged);
  EXPECT_GT(cold.sweeps, 3);
  const VecX first = p;
  EXPECT_EQ(solve_friction_pgs(q, p).sweeps, 0);
  EXPECT_LT((p - first).norm(), 1e-15);
}

// More contacts than the body has freedoms: impulses are not unique, what they do is.
TEST(FrictionPgs, RedundantContactsStopTheBodyAllTheSame) {
  const int m = 10;
  FrictionProblem q = random_contacts(m, 6, 5);
  q.compliance.setZero();
  q.friction.setZero();
  q.target.setZero();
  VecX p;
  const FrictionPgsReport report = solve_friction_pgs(q, p, {200000, 1e-10});
  EXPECT_TRUE(report.converged);
  const VecX w = q.W * p + q.u;
  for (int c = 0; c < m; ++c) EXPECT_GT(w[3 * c], -1e-7);
}

TEST(FrictionPgs, SaysWhenItIsNotSolved) {
  FrictionProblem q = random_contacts(12, 80, 3);
  VecX p;
  const FrictionPgsReport report = solve_friction_pgs(q, p, {1, 1e-12});
  EXPECT_FALSE(report.converged);
  EXPECT_EQ(report.sweeps, 1);
  q.u[4] = std::numeric_limits<double>::quiet_NaN();
  p.resize(0);
  EXPECT_FALSE(solve_friction_pgs(q, p).converged);
  q.friction[2] = -0.1;
  EXPECT_THROW(solve_friction_pgs(q, p), Error);
  q.friction.resize(3);
  EXPECT_THROW(solve_friction_pgs(q, p), Error);
}

}  // namespace
}  // namespace limber::qp
