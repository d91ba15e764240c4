#include "unit/linalg/matrices.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/linalg/velocity_map.hpp>

#include <Eigen/Geometry>

#include <gtest/gtest.h>

#include <numeric>

namespace limber {
namespace {

// 40 nodes: 0..14 free, 15..27 and 28..35 bodies, 36..39 on columns alone; a second set of columns moves free
// nodes as well; some degrees of freedom of every kind are held.
struct Everything {
  VecX x = VecX::Random(120);
  VelocityMap G{40};
  std::vector<std::uint8_t> held = std::vector<std::uint8_t>(120, 0);

  Everything() {
    for (Index i = 0; i < 15; ++i) G.add_node(i);
    std::vector<Index> a(13), b(8), tail(4), some{3, 4, 36};
    std::iota(a.begin(), a.end(), 15);
    std::iota(b.begin(), b.end(), 28);
    std::iota(tail.begin(), tail.end(), 36);
    EXPECT_EQ(G.add_rigid_body(a, x, {0.1, 0.2, 0.3}), 15);
    EXPECT_EQ(G.add_rigid_body(b, x, {-0.1, 0, 0.4}), 17);
    EXPECT_EQ(G.add_columns(tail, MatX::Random(12, 5)), 0);
    EXPECT_EQ(G.add_columns(some, MatX::Random(9, 2)), 5);
    for (const int d : {0, 4, 5, 50, 86, 110}) held[static_cast<std::size_t>(d)] = 1;
    G.hold(held);
    G.bias = VecX::Random(120);
  }
};

TEST(VelocityMap, TransposeIsAdjoint) {
  std::srand(1);
  const Everything e;
  EXPECT_EQ(e.G.unknowns(), 3 * 19 + 7);
  for (int k = 0; k < 10; ++k) {
    const VecX u = VecX::Random(e.G.unknowns()), f = VecX::Random(120);
    VecX v, g;
    e.G.multiply(u, v);
    e.G.multiply_transpose(f, g);
    EXPECT_NEAR(v.dot(f), u.dot(g), 1e-13 * v.norm() * f.norm());
    EXPECT_LT((e.G.velocity(u) - v - e.G.bias).norm(), 1e-15 * v.norm());
    for (std::size_t d = 0; d < e.held.size(); ++d)
      if (e.held[d]) {
        EXPECT_EQ(v[static_cast<Eigen::Index>(d)], 0);
      }
  }
}

TEST(VelocityMap, CongruenceIsTheDenseProductForAnyThreadCount) {
  std::srand(2);
  const Everything e;
  const BlockMatrix A = test::random_spd(test::random_pattern(40, 150, 5), 7);
  const VecX mass = VecX::Random(120).cwiseAbs();
  ReducedMatrix R, R3;
  set_threads(1);
  congruence(e.G, A, R);
  add_mass(e.G, mass, R);
  set_threads(3);
  congruence(e.G, A, R3);
  add_mass(e.G, mass, R3);
  set_threads(0);
  EXPECT_EQ(R.K.values, R3.K.values);
  EXPECT_EQ(R.C, R3.C);
  EXPECT_EQ(R.D, R3.D);
  const MatX G = e.G.dense();
  const MatX expected = G.transpose() * (test::dense(A) + MatX(mass.asDiagonal())) * G;
  EXPECT_LT((dense(R) - expected).norm(), 1e-13 * expected.norm());
}

TEST(VelocityMap, IdentityChangesNothing) {
  const BlockMatrix A = test::random_spd(test::random_pattern(50, 200, 3), 4);
  ReducedMatrix R;
  congruence(VelocityMap::identity(50), A, R);
  EXPECT_EQ(R.K.pattern->row, A.pattern->row);
  EXPECT_EQ(R.K.values, A.values);
  VecX u = VecX::Random(150), v;
  VelocityMap::identity(50).multiply(u, v);
  EXPECT_EQ(u, v);
}

TEST(VelocityMap, BodyHasTheMomentumAndInertiaOfItsNodes) {
  std::srand(3);
  const Index n = 20;
  const VecX x = VecX::Random(3 * n),
             mass = VecX::Random(n).cwiseAbs().replicate(1, 3).transpose().reshaped();
  Vec3 c = Vec3::Zero();
  for (Index i = 0; i < n; ++i) c += mass[3 * i] * node(x, i);
  c /= mass.sum() / 3;
  std::vector<Index> all(n);
  std::iota(all.begin(), all.end(), 0);
  VelocityMap G(n);
  G.add_rigid_body(all, x, c);
  ReducedMatrix R;
  R.K = BlockMatrix(std::make_shared<const BlockPattern>(
      reduced_pattern(G, make_block_pattern(n, std::vector<std::array<Index, 4>>{}))));
  R.C.resize(6, 0);
  R.D.resize(0, 0);
  add_mass(G, mass, R);
  Mat3 inertia = Mat3::Zero();
  for (Index i = 0; i < n; ++i) {
    const Vec3 r = node(x, i) - c;
    inertia += mass[3 * i] * (r.squaredNorm() * Mat3::Identity() - r * r.transpose());
  }
  const MatX M = dense(R);
  EXPECT_LT((M.topLeftCorner(3, 3) - mass.sum() / 3 * Mat3::Identity()).norm(), 1e-13);
  EXPECT_LT((M.bottomRightCorner(3, 3) - inertia).norm(), 1e-13);
  EXPECT_LT(M.topRightCorner(3, 3).norm(), 1e-13);  // about the centre of mass they are independent
  // A turning body: v = omega x r, seen from outside.
  VecX v;
  const Vec3 omega(1, -2, 0.5);
  G.multiply((VecX(6) << 0, 0, 0, omega).finished(), v);
  for (Index i = 0; i < n; ++i) EXPECT_LT((node(v, i) - omega.cross(node(x, i) - c)).norm(), 1e-14);
}

// One step that moves half of the nodes as a body: the sparse factor of GᵀAG gives what the dense one gives.
TEST(VelocityMap, ReducedSystemCanBeFactored) {
  std::srand(4);
  const Index n = 60;
  const BlockMatrix A = test::random_spd(test::random_pattern(n, 240, 8), 9);
  const VecX x = VecX::Random(3 * n), r = VecX::Random(3 * n);
  std::vector<Index> body;
  VelocityMap G(n);
  for (Index i = 0; i < n; ++i) {
    if (i % 2)
      body.push_back(i);
    else
      G.add_node(i);
  }
  G.add_rigid_body(body, x, Vec3::Zero());
  ReducedMatrix R;
  congruence(G, A, R);
  Cholesky solver;
  solver.analyze(*R.K.pattern);
  ASSERT_TRUE(solver.factor(R.K).ok);
  VecX u;
  G.multiply_transpose(r, u);
  const MatX D = G.dense();
  const VecX expected = (D.transpose() * test::dense(A) * D).llt().solve(u);
  solver.solve(u);
  EXPECT_LT((u - expected).norm(), 1e-12 * expected.norm());
}

TEST(VelocityMap, RefusesWhatDoesNotFit) {
  VelocityMap G(3);
  G.add_node(1);
  const std::vector<Index> body{0, 1};
  EXPECT_THROW(G.add_node(1), Error);
  EXPECT_THROW(G.add_node(3), Error);
  EXPECT_THROW(G.add_rigid_body(body, VecX::Zero(9), Vec3::Zero()), Error);
  EXPECT_THROW(G.add_columns(body, MatX::Zero(5, 1)), Error);
  EXPECT_THROW(G.hold(std::vector<std::uint8_t>(8, 0)), Error);
  VecX v;
  EXPECT_THROW(G.multiply(VecX::Zero(4), v), Error);
}

}  // namespace
}  // namespace limber
