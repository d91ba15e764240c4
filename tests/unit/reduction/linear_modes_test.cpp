// Linear modes and modal derivatives.
#include "unit/reduction/jointed_bar.hpp"

#include <limber/fem/assemble.hpp>
#include <limber/fem/dof.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/reduction/linear_modes.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

struct Bar {
  JointedBar bar{1, {17, 3, 3}, MaterialModel::kStableNeoHookean, 0.3};
  std::shared_ptr<const fem::Elements> elements = fem::make_elements(bar.mesh);
  Index n = static_cast<Index>(bar.mesh.rest.size());
  VecX X = VecX(3 * n), mass = VecX(3 * n);
  std::vector<std::uint8_t> held;

  Bar() {
    for (Index i = 0; i < n; ++i) {
      node(X, i) = bar.mesh.rest[at(i)];
      node(mass, i).setConstant(bar.mass[i]);
      held.insert(held.end(), 3, bar.pinned[at(i)]);
    }
  }
  void clear_held(VecX& v) const {
    for (Eigen::Index d = 0; d < v.size(); ++d)
      if (held[static_cast<std::size_t>(d)]) v[d] = 0;
  }
  VecX stiffness_times(const VecX& v) const {
    fem::Assembled out;
    fem::multiply_stiffness(*elements, X, {}, v, out, fem::Projection::kNone);
    VecX f = out.f;
    clear_held(f);
    return f;
  }
  // Where the load holds the balance, by Newton's method.
  VecX balance(const VecX& load, VecX u) const {
    for (int k = 0; k < 12; ++k) {
      fem::Assembled at;
      fem::assemble(*elements, X + u, {}, at, fem::Projection::kNone);
      VecX r = load + at.f;
      clear_held(r);
      fem::DofEliminator(*at.K.pattern).eliminate(at.K, held, 1.0);
      Cholesky cholesky({"native", "auto"});
      cholesky.analyze(*at.K.pattern);
      EXPECT_TRUE(cholesky.factor(at.K).ok);
      MatX step = r;
      cholesky.solve_many(step);
      u += step.col(0);
      if (step.norm() < 1e-13 * u.norm()) break;
    }
    return u;
  }
};

TEST(LinearModes, AreEigenvectorsAndMassOrthonormal) {
  const Bar b;
  const LinearModes modes = linear_modes(b.bar.mesh, b.bar.mass, b.bar.pinned, 48);
  const Eigen::Index r = modes.U.cols(), k = r - modes.derivatives;
  EXPECT_EQ(r % 3, 0);
  EXPECT_EQ(modes.omega2.size(), 8);  // 8 + 36 columns of 48, of which 42 are whole blocks
  EXPECT_EQ(k, 8);
  EXPECT_LT(
      (modes.U.transpose() * b.mass.asDiagonal() * modes.U - MatX::Identity(r, r)).cwiseAbs().maxCoeff(),
      1e-9);
  for (Eigen::Index j = 0; j < k; ++j) {
    const VecX force = b.stiffness_times(modes.U.col(j));
    const VecX inertia = modes.omega2[j] * b.mass.cwiseProduct(modes.U.col(j));
    EXPECT_LT((force - inertia).norm(), 1e-6 * inertia.norm()) << j;
  }
  for (Eigen::Index d = 0; d < b.X.size(); ++d)
    if (b.held[static_cast<std::size_t>(d)]) {
      ASSERT_TRUE(modes.U.row(d).isZero());
    }
}

// A load that bends the bar as its first mode does: what the exact answer lacks in the span is of third order
// in the load; of second order without the derivatives.
TEST(LinearModes, WithDerivativesHoldTheSecondOrder) {
  const Bar b;
  const LinearModes modes = linear_modes(b.bar.mesh, b.bar.mass, b.bar.pinned, 48);
  const Eigen::Index k = modes.U.cols() - modes.derivatives;
  const VecX first = modes.U.col(0) / modes.U.col(0).cwiseAbs().maxCoeff();
  const VecX force = b.stiffness_times(first);
  double lacking[2][2];
  for (int half = 0; half < 2; ++half) {
    const double load = half ? 0.02 : 0.04;  // [m] of deflection
    const VecX u = b.balance(load * force, load * first);
    for (int with = 0; with < 2; ++with) {
      const MatX U = with ? modes.U : MatX(modes.U.leftCols(k));
      const VecX rest = u - U * (U.transpose() * b.mass.cwiseProduct(u));
      lacking[with][half] = std::sqrt(rest.dot(b.mass.cwiseProduct(rest)));
    }
  }
  EXPECT_NEAR(std::log2(lacking[0][0] / lacking[0][1]), 2, 0.1);
  EXPECT_GT(std::log2(lacking[1][0] / lacking[1][1]), 2.8);
  EXPECT_LT(lacking[1][1], 0.05 * lacking[0][1]);
}

}  // namespace
}  // namespace limber
