// The native Cholesky on stiffness matrices, against CHOLMOD where it is there, and on any number of threads.
#include "unit/linalg/matrices.hpp"

#include <limber/core/error.hpp>
#include <limber/core/instruction_set.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/mesh/generate.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

struct Body {
  std::array<Index, 3> nodes{9, 4, 4};
  double poisson = 0.4;
  double ratio = 1;    // of the stiffness of one half to the other
  double squeeze = 1;  // of the layers of nodes in the middle: slivers
};

// M + h^2 K, bent a little.
BlockMatrix step_matrix(const Body& body) {
  TetMesh mesh = make_box(Vec3(1, 0.3, 0.3), body.nodes);
  for (Vec3& p : mesh.nodes)
    if (body.squeeze != 1 && p.x() > 0.45) p.x() = 0.45 + (p.x() - 0.45) * body.squeeze;
  fem::ElementInput input;
  input.rest = mesh.nodes;
  input.elements.assign(mesh.tets.begin(), mesh.tets.end());
  for (const Tet& t : mesh.tets) {
    ElementMaterial material;
    material.poisson = body.poisson;
    if (mesh.nodes[t[0]].x() < 0.4) material.young *= body.ratio;
    input.material.push_back(material);
  }
  const auto elements = fem::make_elements(input);
  VecX x(3 * static_cast<Eigen::Index>(mesh.nodes.size()));
  for (std::size_t i = 0; i < mesh.nodes.size(); ++i)
    node(x, static_cast<Index>(i)) = mesh.nodes[i] + Vec3(0, 0.02 * std::sin(3 * mesh.nodes[i].x()), 0);
  fem::Assembled out;
  fem::assemble(*elements, x, {}, out);
  const double h = 0.01;
  for (double& v : out.K.values) v *= h * h;
  for (Index i = 0; i < out.K.pattern->n; ++i)
    out.K.block(out.K.pattern->col_begin[i]).diagonal().array() += fem::lumped_mass(*elements)[i];
  return std::move(out.K);
}

// |A x - b| / (|A| |x| + |b|): the backward error, which does not depend on the condition of A.
double backward_error(const BlockMatrix& A, const VecX& x, const VecX& b) {
  VecX y;
  multiply(A, x, y);
  double norm = 0;
  for (const double v : A.values) norm += v * v;
  return (y - b).norm() / (std::sqrt(norm) * x.norm() + b.norm());
}

TEST(CholeskyFem, ResidualsAreAsSmallAsCholmods) {
  const Body bodies[] = {{},
                         {.poisson = 0.499},
                         {.ratio = 1e6},
                         {.squeeze = 1e-3},
                         {.nodes = {30, 6, 6}, .poisson = 0.499, .ratio = 1e6, .squeeze = 0.01}};
  for (const Body& body : bodies) {
    const BlockMatrix A = step_matrix(body);
    const VecX b = VecX::LinSpaced(3 * A.pattern->n, -1, 1);
    std::map<std::string, double> error;
    for (const std::string& backend : cholesky_backends()) {
      Cholesky chol({backend, "auto"});
      chol.analyze(*A.pattern);
      ASSERT_TRUE(chol.factor(A).ok);
      VecX x = b;
      chol.solve(x);
      error[backend] = backward_error(A, x, b);
    }
    EXPECT_LT(error["native"], 1e-15);
    if (error.count("cholmod")) {
      EXPECT_LT(error["native"], 2 * error["cholmod"] + 1e-17);
    }
  }
}

// Large enough for several units and for fronts in tiles.
TEST(CholeskyFem, SameBitsForAnyThreadCount) {
  const BlockMatrix A = step_matrix({.nodes = {41, 9, 9}});
  const Eigen::Index n = 3 * A.pattern->n;
  const std::vector<Index> tail{0, 100, 1500, 3000};
  std::vector<double> L;
  MatX many, carried;
  RowMatX J;
  VecX one;
  const MatX loads = MatX::Random(n, 9);
  for (const int threads : {1, 2, 4, 8}) {
    set_threads(threads);
    Cholesky chol({"native", "metis"});
    chol.analyze(*A.pattern, tail);
    ASSERT_TRUE(chol.factor(A).ok);
    ASSERT_TRUE(chol.factor(A).ok);
    MatX X = MatX::Ones(n, 35), none(n, 0), empty;
    RowMatX E;
    chol.solve_many(X);
    chol.extend_from_tail(MatX::Ones(12, 12), none, E, empty);
    VecX x = VecX::Ones(n);
    chol.solve(x);
    Cholesky along({"native", "metis"});
    along.analyze(*A.pattern, tail);
    along.carry(*A.pattern, 9 + threads);  // the room makes no difference
    ASSERT_TRUE(along.factor(A, loads).ok);
    MatX W;
    RowMatX unused;
    along.extend_carried(MatX(12, 0), MatX::Ones(12, 9), unused, W);
    const auto values = chol.factor_values();
    if (threads == 1) {
      carried = W;
      L.assign(values.begin(), values.end());
      many = X;
      J = E;
      one = x;
      EXPECT_LT(backward_error(A, x, VecX::Ones(n)), 1e-15);
    }
    EXPECT_TRUE(std::equal(L.begin(), L.end(), values.begin(), values.end())) << threads;
    EXPECT_EQ(X, many) << threads;
    EXPECT_EQ(W, carried) << threads;
    EXPECT_EQ(E, J) << threads;
    EXPECT_EQ(x, one) << threads;
  }
  set_threads(0);
}

TEST(CholeskyFem, BadPivotIsTheSameForAnyThreadCount) {
  BlockMatrix A = step_matrix({.nodes = {41, 9, 9}});
  for (const Index bad : {17, 1600, 3300}) A.block(A.pattern->col_begin[bad])(1, 1) *= -1;
  FactorStatus first;
  for (const int threads : {1, 2, 4, 8}) {
    set_threads(threads);
    Cholesky chol({"native", "metis"});
    chol.analyze(*A.pattern);
    const FactorStatus status = chol.factor(A);
    EXPECT_FALSE(status.ok);
    if (threads == 1) first = status;
    EXPECT_EQ(status.node, first.node);
    EXPECT_EQ(status.axis, first.axis);
    EXPECT_EQ(status.pivot, first.pivot);
  }
  set_threads(0);
}

// One dense front, larger than the blocks in which kernels go, with each set of kernels that this machine
// runs.
TEST(CholeskyFem, EverySetOfKernelsSolvesLikeDense) {
  const InstructionSet best = instruction_set();
  for (const InstructionSet set : instruction_sets()) {
    SCOPED_TRACE(name(set));
    choose_instruction_set(set);
    for (const Index n : {1, 2, 3, 5, 8, 13, 21, 64, 65, 150}) {
      std::vector<std::array<Index, 4>> pairs;
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < i; ++j) pairs.push_back({i, j, -1, -1});
      const BlockMatrix A = test::random_spd(make_block_pattern(n, pairs), static_cast<unsigned>(n));
      const MatX D = test::dense(A);
      for (const Index t : {0, 1, n / 3}) {
        std::vector<Index> tail;
        for (Index k = 0; k < t; ++k) tail.push_back(2 * k);
        Cholesky chol({"native", "amd"});
        chol.analyze(*A.pattern, tail);
        ASSERT_TRUE(chol.factor(A).ok);
        for (const Eigen::Index cols : {1, 7, 16, 20, 33}) {
          const MatX B = MatX::Random(3 * n, cols);
          MatX X = B;
          chol.solve_many(X);
          EXPECT_LT((D * X - B).norm(), 1e-12 * B.norm()) << n << " nodes, tail of " << t << ", " << cols;
        }
      }
    }
    const BlockMatrix A = step_matrix({.nodes = {21, 5, 5}});
    const VecX b = VecX::LinSpaced(3 * A.pattern->n, -1, 1);
    Cholesky chol({"native", "auto"});
    chol.analyze(*A.pattern);
    ASSERT_TRUE(chol.factor(A).ok);
    VecX x = b;
    chol.solve(x);
    EXPECT_LT(backward_error(A, x, b), 1e-15);
  }
  choose_instruction_set(best);
}

// A solve with L rounded to single precision is a solve with the values rounded in place; fronts of all
// sizes, those that threads share among them.
TEST(CholeskyFem, RoundedFactorSolvesLikeRoundedValues) {
  std::vector<std::array<Index, 4>> pairs;
  for (Index i = 0; i < 200; ++i)
    for (Index j = 0; j < i; ++j) pairs.push_back({i, j, -1, -1});
  const InstructionSet best = instruction_set();
  for (const InstructionSet set : instruction_sets()) {
    SCOPED_TRACE(name(set));
    choose_instruction_set(set);
    for (const BlockMatrix& A :
         {test::random_spd(make_block_pattern(200, pairs), 5), step_matrix({.nodes = {21, 5, 5}})}) {
      const VecX b = VecX::LinSpaced(3 * A.pattern->n, -1, 1);
      VecX rounded = b, x = b, exact = b;
      Cholesky chol({"native", "auto"});
      chol.analyze(*A.pattern);
      EXPECT_THROW(chol.round_to_single(), Error);
      ASSERT_TRUE(chol.factor(A).ok);
      EXPECT_THROW(chol.solve_rounded(rounded), Error);
      chol.round_to_single();
      chol.solve_rounded(rounded);
      chol.solve(exact);
      for (double& v : chol.factor_values()) v = static_cast<float>(v);
      chol.solve(x);
      EXPECT_LT((rounded - x).norm(), 1e-13 * x.norm());
      EXPECT_LT((rounded - exact).norm(), 1e-3 * exact.norm());
      EXPECT_GT((rounded - exact).norm(), 1e-11 * exact.norm());
    }
  }
  choose_instruction_set(best);
}

// Factors in single precision, with each set of kernels: as exact as floats are and no more, half of the
// memory, and the same bits for any thread count.
TEST(CholeskyFem, SinglePrecision) {
  const InstructionSet best = instruction_set();
  const std::vector<Index> tail{0, 100, 1500, 3000};
  const BlockMatrix A = step_matrix({.nodes = {41, 9, 9}});
  const Eigen::Index n = 3 * A.pattern->n;
  const MatX loads = MatX::Random(n, 9);
  Cholesky exact({"native", "metis"});
  exact.analyze(*A.pattern, tail);
  exact.carry(*A.pattern, 9);
  ASSERT_TRUE(exact.factor(A, loads).ok);
  MatX X, S;
  RowMatX J;
  exact.extend_carried(MatX::Identity(12, 12), MatX::Zero(12, 9), J, X);
  exact.tail_schur(S);
  for (const InstructionSet set : instruction_sets()) {
    SCOPED_TRACE(name(set));
    choose_instruction_set(set);
    MatX first_x;
    RowMatX first_j;
    VecX first;
    for (const int threads : {1, 2, 4}) {
      set_threads(threads);
      Cholesky chol({"native", "metis", true});
      chol.analyze(*A.pattern, tail);
      chol.carry(*A.pattern, 9);
      ASSERT_TRUE(chol.factor(A, loads).ok);
      MatX Y, T;
      RowMatX E;
      chol.extend_carried(MatX::Identity(12, 12), MatX::Zero(12, 9), E, Y);
      chol.tail_schur(T);
      VecX one = loads.col(0);
      chol.solve(one);
      if (threads == 1) {
        first_x = Y;
        first_j = E;
        first = one;
        EXPECT_LT((Y - X).norm(), 1e-3 * X.norm());
        EXPECT_GT((Y - X).norm(), 1e-9 * X.norm());
        EXPECT_LT((E - J).norm(), 1e-3 * J.norm());
        EXPECT_LT((T - S).norm(), 1e-4 * S.norm());
        EXPECT_LT(backward_error(A, one, loads.col(0)), 1e-6);
        EXPECT_LT(chol.stats().bytes, 0.6 * exact.stats().bytes);
      }
      EXPECT_EQ(Y, first_x) << threads;
      EXPECT_EQ(E, first_j) << threads;
      EXPECT_EQ(one, first) << threads;
    }
  }
  set_threads(0);
  choose_instruction_set(best);

  // What is left of a pivot is rounding error sooner: a matrix that doubles just hold is singular for floats.
  BlockMatrix weak = test::random_spd(make_block_pattern(1, {}), 1);
  weak.block(0) << 1, 1, 0, 1, 1 + 1e-8, 0, 0, 0, 1;
  for (const bool single : {false, true}) {
    Cholesky chol({"native", "auto", single});
    chol.analyze(*weak.pattern);
    EXPECT_EQ(chol.factor(weak).ok, !single);
  }
}

TEST(CholeskyFem, StatisticsAddUp) {
  const BlockMatrix A = step_matrix({.nodes = {21, 5, 5}});
  Cholesky chol({"native", "auto"}), amd({"native", "amd"}), metis({"native", "metis"});
  for (Cholesky* c : {&chol, &amd, &metis}) {
    c->analyze(*A.pattern);
    ASSERT_TRUE(c->factor(A).ok);
  }
  const CholeskyStats& s = chol.stats();
  EXPECT_EQ(s.flops, std::min(amd.stats().flops, metis.stats().flops));
  EXPECT_EQ(s.backend, "native");
  EXPECT_EQ(s.analyses, 1);
  EXPECT_EQ(s.factorizations, 1);
  EXPECT_GT(s.fronts, 1);
  EXPECT_GE(s.stored, s.nnz);
  EXPECT_LT(s.stored, 1.6 * s.nnz);
  EXPECT_GE(s.bytes, 8 * s.stored);
  EXPECT_EQ(chol.factor_values().size(), static_cast<std::size_t>(s.stored));
  // The number of entries is that of the dense factor in the same order, without what is zero by structure.
  std::vector<Index> order;
  Cholesky small({"native", "amd"});
  const BlockMatrix B = test::random_spd(test::random_pattern(40, 60, 3), 4);
  small.analyze(*B.pattern);
  for (const Index n : small.order())
    for (Index a = 0; a < 3; ++a) order.push_back(3 * n + a);
  const MatX D = test::dense(B), P = D(order, order), L = P.llt().matrixL();
  EXPECT_EQ(small.stats().nnz, static_cast<double>((L.array() != 0).count()));
}

}  // namespace
}  // namespace limber
