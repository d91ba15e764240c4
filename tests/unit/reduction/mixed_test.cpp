// Mixed FEM: its derivatives, its algebra, and what it converges to.
#include "unit/linalg/matrices.hpp"
#include "unit/reduction/jointed_bar.hpp"

#include <limber/core/parallel.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/material/lame.hpp>
#include <limber/methods/mixed/stretch.hpp>

#include <gtest/gtest.h>

#include <Eigen/Dense>

namespace limber {
namespace {

using material::from_eigen;
using material::to_eigen;
using mixed::RowTensor;
using Symmetric = material::Sym3<double>;

Mat3 matrix_of(const Symmetric& a) { return to_eigen(mixed::full(a)); }
Symmetric symmetric_of(const Mat3& A) { return mixed::symmetric(from_eigen(A)); }
Mat3 stretch(const Mat3& F) { return matrix_of(mixed::stretch_matrix(material::svd(from_eigen(F)))); }

const MaterialModel kAllModels[] = {MaterialModel::kStableNeoHookean,
                                    MaterialModel::kStableNeoHookeanLog,
                                    MaterialModel::kCorotational,
                                    MaterialModel::kFixedCorotated,
                                    MaterialModel::kArap,
                                    MaterialModel::kStVenantKirchhoff};

Mat3 some_gradient(unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> number;
  return Mat3::Identity() + 0.35 * Mat3::NullaryExpr([&] { return number(rng); });
}

// Facts, test 1.
TEST(MixedPoint, StretchAndItsDerivativesByDifferences) {
  for (unsigned seed = 1; seed < 40; ++seed) {
    const Mat3 F = some_gradient(seed), A = some_gradient(seed + 1000), N = some_gradient(seed + 2000);
    const mixed::Stretch<double> at = mixed::stretch_of(from_eigen(F));
    const double gap = at.svd.s[1] + at.svd.s[2];
    if (gap < 0.3) continue;  // near the kink differences say nothing
    EXPECT_LT((stretch(F) * stretch(F) - F.transpose() * F).norm(), 1e-13 * F.squaredNorm());
    const double e = 1e-5;
    const Mat3 rate = matrix_of(mixed::stretch_rate(at, from_eigen(A)));
    const Mat3 difference = (stretch(F + e * A) - stretch(F - e * A)) / (2 * e);
    EXPECT_LT((rate - difference).norm(), 1e-8 * (1 + rate.norm()) / (gap * gap)) << seed;
    const Symmetric n = symmetric_of(N);
    const Mat3 adjoint = to_eigen(mixed::stretch_adjoint(at, n));
    EXPECT_NEAR(adjoint.cwiseProduct(A).sum(), matrix_of(n).cwiseProduct(rate).sum(),
                1e-12 * N.norm() * A.norm());
    // Lambda : d2S, by differences of the adjoint.
    RowTensor<double> H{};
    mixed::add_geometric_hessian(at, n, H);
    const Mat3 up = to_eigen(mixed::stretch_adjoint(mixed::stretch_of(from_eigen(F + e * A)), n));
    const Mat3 down = to_eigen(mixed::stretch_adjoint(mixed::stretch_of(from_eigen(F - e * A)), n));
    Mat3 product = Mat3::Zero();
    for (int t = 0; t < 6; ++t)
      for (int j = 0; j < 3; ++j)
        for (int l = 0; l < 3; ++l) {
          const int i = mixed::kTensorRow[t], k = mixed::kTensorCol[t];
          product(i, j) += H.block[t](j, l) * A(k, l);
          if (i != k) product(k, l) += H.block[t](j, l) * A(i, j);
        }
    EXPECT_LT((product - (up - down) / (2 * e)).norm(), 1e-7 * (1 + product.norm()) / std::pow(gap, 3))
        << seed;
  }
}

TEST(MixedPoint, StrainEnergyOfAStretchIsThatOfItsDeformation) {
  for (const MaterialModel model : kAllModels)
    for (const FibreModel fibre : {FibreModel::kNone, FibreModel::kStVenantKirchhoff, FibreModel::kFung})
      for (unsigned seed = 1; seed < 12; ++seed) {
        ElementMaterial m;
        m.model = model;
        m.young = 10;
        m.poisson = 0.3;
        m.fibre = fibre;
        m.fibre_stiffness = 3;
        m.fibre_direction = Vec3(1, 2, 2) / 3;
        const material::Lame l{10 / 2.6, 10 * 0.3 / (1.3 * 0.4)};
        const mixed::PointMaterial<double> p{l.mu, l.lambda, 3, {{1 / 3.0, 2 / 3.0, 2 / 3.0}}};
        const Mat3 F = some_gradient(seed);
        if (F.determinant() < 0.05) continue;
        const Mat3 S = stretch(F), dZ = matrix_of(symmetric_of(some_gradient(seed + 50)));
        material::with_model(model, l.mu, l.lambda, [&](const auto& energy) {
          const auto at = [&](const Mat3& Z) { return mixed::strain_of(energy, fibre, p, symmetric_of(Z)); };
          const mixed::Strain<double> strain = at(S);
          EXPECT_NEAR(strain.psi, material::psi(m, F), 1e-12 * (1 + strain.psi));
          EXPECT_NEAR(strain.psi, mixed::strain_psi(energy, fibre, p, symmetric_of(S)),
                      1e-12 * (1 + strain.psi));
          // dpsi/dF = dS^T (dpsi/dZ)
          const Mat3 P = to_eigen(mixed::stretch_adjoint(mixed::stretch_of(from_eigen(F)), strain.stress));
          EXPECT_LT((P - material::pk1(m, F)).norm(), 1e-11 * (1 + P.norm()));
          const double e = 1e-5;
          const Mat3 difference =
              (matrix_of(at(S + e * dZ).stress) - matrix_of(at(S - e * dZ).stress)) / (2 * e);
          EXPECT_NEAR((at(S + e * dZ).psi - at(S - e * dZ).psi) / (2 * e),
                      matrix_of(strain.stress).cwiseProduct(dZ).sum(), 1e-7 * (1 + strain.psi));
          // H_z is the second derivative where that is positive semi-definite, up to the floor.
          const Mat3 applied =
              matrix_of(mixed::apply_hessian(strain, fibre != FibreModel::kNone, symmetric_of(dZ)));
          EXPECT_GE(applied.cwiseProduct(dZ).sum(), difference.cwiseProduct(dZ).sum() - 1e-4);
        });
      }
}

TEST(MixedPoint, HessianIsExactNearRest) {
  for (const MaterialModel model : kAllModels)
    for (const FibreModel fibre : {FibreModel::kNone, FibreModel::kStVenantKirchhoff}) {
      const material::Lame l{10 / 2.6, 10 * 0.3 / (1.3 * 0.4)};
      const mixed::PointMaterial<double> p{l.mu, l.lambda, 3, {{1 / 3.0, 2 / 3.0, 2 / 3.0}}};
      const Vec3 d(1 / 3.0, 2 / 3.0, 2 / 3.0);  // stretched: a fibre in compression is projected
      const Mat3 S = stretch(Mat3::Identity() + 0.02 * (some_gradient(3) - Mat3::Identity())) +
                     0.1 * d * d.transpose(),
                 dZ = matrix_of(symmetric_of(some_gradient(50)));
      material::with_model(model, l.mu, l.lambda, [&](const auto& energy) {
        const auto at = [&](const Mat3& Z) { return mixed::strain_of(energy, fibre, p, symmetric_of(Z)); };
        const double e = 1e-5;
        const Mat3 difference =
            (matrix_of(at(S + e * dZ).stress) - matrix_of(at(S - e * dZ).stress)) / (2 * e);
        const Mat3 applied =
            matrix_of(mixed::apply_hessian(at(S), fibre != FibreModel::kNone, symmetric_of(dZ)));
        EXPECT_LT((applied - difference).norm(), 1e-5 * applied.norm()) << static_cast<int>(model);
      });
    }
}

// A problem of one implicit Euler step from the bent state.
struct BentStep {
  JointedBar bar;
  ReducedBar reduced;
  double h = 0.01;
  BlockMatrix Hu;
  mixed::StepProblem problem;
  mixed::Sqp sqp;
  VecX u0;

  BentStep(double ratio, Index modes, Index points, MaterialModel model = MaterialModel::kFixedCorotated)
      : bar(ratio, {41, 3, 3}, model),
        reduced(bar, modes, points),
        Hu(diagonal_matrix(reduced.map->pattern(),
                           VecX::Constant(3 * reduced.basis.functions(), 1 / (h * h)))),
        sqp(*reduced.map, bar.points(reduced.cubature)) {
    u0 = reduced.reduced(bar.bent_displacement(86 * M_PI / 180));
    problem.Hu = &Hu;
    problem.anchor = u0;
    problem.gradient = VecX::Zero(u0.size());
    problem.inertia = bar.total_mass / (h * h);
  }

  std::vector<VecX> iterates(mixed::SqpOptions options) {
    mixed::SqpState state;
    state.u = u0;
    sqp.start(state);
    PhaseClock clock;
    std::vector<VecX> out;
    const mixed::SqpResult result =
        sqp.solve(problem, options, state, clock, [&](const VecX& u) { out.push_back(u); });
    EXPECT_TRUE(result.ok) << result.why;
    return out;
  }
};

// Facts, test 2: the condensed solution solves the whole KKT system, Eq. 5.
TEST(MixedSqp, CondensedStepSolvesTheKktSystem) {
  BentStep step(1e4, 3, 40);
  mixed::SqpState state;
  state.u = step.u0;
  step.sqp.start(state);
  for (std::size_t i = 0; i < state.Z.size(); ++i)
    state.Z[i] += 0.05 * std::sin(3.0 * static_cast<double>(i));
  const mixed::Sqp::Linear linear = step.sqp.linear_step(step.problem, state, false);
  // Eq. 5 written out with dense matrices from single points.
  const Index C = step.sqp.points().size();
  std::vector<double> F, dF;
  step.reduced.map->gradients(state.u, F);
  step.reduced.map->gradients(linear.du, dF);
  const VecX f_u = test::dense(step.Hu) * (state.u - step.problem.anchor);
  std::vector<double> P(9 * at(C));
  double worst_z = 0, worst_mu = 0, scale = 0;
  for (Index c = 0; c < C; ++c) {
    const mixed::Point& point = step.sqp.points().points()[at(c)];
    const material::Lame l{point.material.young / (2 * 1.45), point.material.young * 0.45 / (1.45 * 0.1)};
    const mixed::PointMaterial<double> p{l.mu, l.lambda, 0, {}};
    const auto six = [&](const std::vector<double>& a) {
      const double* v = a.data() + 6 * at(c);
      return Symmetric{v[0], v[1], v[2], v[3], v[4], v[5]};
    };
    const Mat3 Fc = Mat3(F.data() + 9 * at(c)) + Mat3::Identity(), dFc = Mat3(dF.data() + 9 * at(c));
    const mixed::Stretch<double> at_F = mixed::stretch_of(from_eigen(Fc));
    const mixed::Strain<double> strain = mixed::strain_of(material::FixedCorotated<double>(l.mu, l.lambda),
                                                          FibreModel::kNone, p, six(state.Z));
    const Mat3 dZ = matrix_of(six(linear.dZ)), Lambda = matrix_of(six(linear.Lambda));
    // second row: H_z dz + G_z mu = -f_z
    worst_z = std::max(worst_z, (matrix_of(mixed::apply_hessian(strain, false, six(linear.dZ))) - Lambda +
                                 matrix_of(strain.stress))
                                        .norm() /
                                    (1 + Lambda.norm()));
    // third row: G_u du + G_z dz = -f_mu
    worst_mu = std::max(worst_mu, (matrix_of(mixed::stretch_rate(at_F, from_eigen(dFc))) - dZ + stretch(Fc) -
                                   matrix_of(six(state.Z)))
                                      .norm());
    Eigen::Map<Mat3>(P.data() + 9 * at(c)) =
        point.weight * to_eigen(mixed::stretch_adjoint(at_F, six(linear.Lambda)));
    scale += point.weight * Lambda.norm();
  }
  EXPECT_LT(worst_z, 1e-12);
  EXPECT_LT(worst_mu, 1e-12);
  // first row: H_u du + G_u^T mu = -f_u
  VecX row = test::dense(step.Hu) * linear.du + f_u;
  const double size = row.norm();
  step.reduced.map->add_transposed(P, row);
  EXPECT_LT(row.norm(), 1e-9 * size) << "stiffness 1e9 against forces of " << scale;
}

TEST(DeformationMaps, OfTheSameBasisAgree) {
  const JointedBar bar(10);
  const ReducedBar reduced(bar, 3, 50);
  const Index r = 3 * reduced.basis.functions(), C = reduced.map->points();
  MatX J = MatX::Zero(9 * C, r);
  std::vector<double> F;
  for (Index k = 0; k < r; ++k) {
    reduced.map->gradients(VecX::Unit(r, k), F);
    J.col(k) = Eigen::Map<const VecX>(F.data(), 9 * C);
  }
  const auto dense = make_dense_map(J);
  std::mt19937 rng(1);
  std::normal_distribution<double> number;
  std::vector<double> P(9 * at(C)), H(54 * at(C), 0.0);
  for (double& v : P) v = number(rng);
  for (double& v : H) v = number(rng);
  for (std::size_t c = 0; c < at(C); ++c)  // blocks on the diagonal are symmetric
    for (int t = 0; t < 3; ++t) {
      Eigen::Map<Mat3> block(H.data() + 54 * c + 9 * static_cast<std::size_t>(t));
      block = (block + block.transpose()).eval();
    }
  VecX a = VecX::Zero(r), b = VecX::Zero(r);
  reduced.map->add_transposed(P, a);
  dense->add_transposed(P, b);
  EXPECT_LT((a - b).norm(), 1e-12 * a.norm());
  EXPECT_LT((a - J.transpose() * Eigen::Map<const VecX>(P.data(), 9 * C)).norm(), 1e-12 * a.norm());
  BlockMatrix A(reduced.map->pattern()), B(dense->pattern());
  reduced.map->add_congruence(H, A);
  dense->add_congruence(H, B);
  MatX whole = MatX::Zero(9 * C, 9 * C);
  for (Index c = 0; c < C; ++c)
    for (int t = 0; t < 6; ++t)
      for (int l = 0; l < 3; ++l)
        for (int j = 0; j < 3; ++j) {
          const double v = H[at(54 * c + 9 * t + j + 3 * l)];
          whole(9 * c + mixed::kTensorRow[t] + 3 * j, 9 * c + mixed::kTensorCol[t] + 3 * l) = v;
          whole(9 * c + mixed::kTensorCol[t] + 3 * l, 9 * c + mixed::kTensorRow[t] + 3 * j) = v;
        }
  const MatX expected = J.transpose() * whole * J;
  EXPECT_LT((test::dense(A) - expected).norm(), 1e-12 * expected.norm());
  EXPECT_LT((test::dense(B) - expected).norm(), 1e-12 * expected.norm());
}

// Facts, test 7: every node an unknown, every element a point: mixed and plain FEM reach the same positions.
TEST(MixedSqp, InFullSpaceEqualsPlainFem) {
  for (const MaterialModel model : kAllModels) {
    const JointedBar bar(100, {13, 3, 3}, model, 0.4);
    const auto map = fem::make_mesh_map(bar.mesh, bar.pattern);
    const Eigen::Index n = 3 * bar.mass.size();
    const double h = 0.01;
    VecX mass(n), force(n);
    std::vector<std::uint8_t> fixed(static_cast<std::size_t>(n));
    for (Eigen::Index k = 0; k < n; ++k) {
      mass[k] = bar.mass[k / 3];
      force[k] = k % 3 == 1 ? -9.81 * mass[k] : 0;
      fixed[static_cast<std::size_t>(k)] = bar.pinned[static_cast<std::size_t>(k / 3)];
    }
    const BlockMatrix Hu = diagonal_matrix(bar.pattern, mass / (h * h));
    VecX ends[2];
    for (const bool is_mixed : {true, false}) {
      mixed::Sqp sqp(*map, bar.all_points());
      mixed::SqpState state;
      state.u = VecX::Zero(n);
      sqp.start(state);
      VecX v = VecX::Zero(n);
      PhaseClock clock;
      for (int k = 0; k < 5; ++k) {
        mixed::StepProblem problem;
        problem.Hu = &Hu;
        problem.anchor = state.u + h * v;
        problem.gradient = -force;
        problem.inertia = bar.total_mass / (h * h);
        problem.fixed = &fixed;
        mixed::SqpOptions options;
        options.mixed = is_mixed;
        options.iterations = 60;
        options.tolerance = 1e-13;
        const VecX before = state.u;
        const mixed::SqpResult result = sqp.solve(problem, options, state, clock);
        EXPECT_TRUE(result.ok) << result.why;
        EXPECT_LT(result.iterations, 25);
        v = (state.u - before) / h;
      }
      ends[is_mixed] = state.u;
    }
    EXPECT_GT(ends[0].lpNorm<Eigen::Infinity>(), 1e-3);
    EXPECT_LT((ends[0] - ends[1]).lpNorm<Eigen::Infinity>(), 1e-10) << static_cast<int>(model);
  }
}

// Facts, test 8. (The twist term is exact here and joins from the second iteration on.)
TEST(MixedSqp, NeedsFewIterationsAtEveryStiffnessRatio) {
  for (const double ratio : {1.0, 1e2, 1e4, 1e6}) {
    BentStep step(ratio, 8, 160);
    mixed::SqpOptions options;
    options.iterations = 40;
    options.tolerance = 1e-14;
    const VecX end = step.iterates(options).back();
    const auto needed = [&](const mixed::SqpOptions& o) {
      const std::vector<VecX> u = step.iterates(o);
      for (std::size_t k = 0; k < u.size(); ++k)
        if ((u[k] - end).norm() < 1e-3 * (step.u0 - end).norm()) return static_cast<int>(k) + 1;
      return 1000;
    };
    options.tolerance = 0;
    EXPECT_LE(needed(options), 6) << ratio;
    options.twist_from = 0;
    EXPECT_LE(needed(options), 60) << ratio;
    options.mixed = false;
    if (ratio == 1e6)
      EXPECT_GT(needed(options), 40);
    else
      EXPECT_LE(needed(options), 40);
  }
}

// Facts, test 9.
TEST(MixedSqp, KeepsTheEnergyOfASwingWhereFemDampsIt) {
  const JointedBar bar(1e4);
  const ReducedBar reduced(bar, 8, 160);
  const double h = 0.01;
  const Eigen::Index n = 3 * reduced.basis.functions();
  const BlockMatrix Hu = diagonal_matrix(reduced.map->pattern(), VecX::Constant(n, 1 / (h * h)));
  VecX g(3 * bar.mass.size());
  for (Index i = 0; i < bar.mass.size(); ++i) node(g, i) = Vec3(0, -9.81, 0);
  const VecX force = reduced.reduced(g);
  mixed::Sqp sqp(*reduced.map, bar.points(reduced.cubature));
  const auto peak = [&](bool is_mixed, int iterations) {
    mixed::SqpState state;
    state.u = VecX::Zero(n);
    sqp.start(state);
    VecX v = VecX::Zero(n);
    PhaseClock clock;
    double most = 0;
    for (int k = 0; k < 80; ++k) {
      mixed::StepProblem problem;
      problem.Hu = &Hu;
      problem.anchor = state.u + h * v;
      problem.gradient = -force;
      problem.inertia = bar.total_mass / (h * h);
      mixed::SqpOptions options;
      options.mixed = is_mixed;
      options.iterations = iterations;
      options.tolerance = iterations > 10 ? 1e-10 : 0;
      const VecX before = state.u;
      EXPECT_TRUE(sqp.solve(problem, options, state, clock).ok);
      v = (state.u - before) / h;
      most = std::max(most, 0.5 * v.squaredNorm());
    }
    return most;
  };
  const double converged = peak(true, 50);
  EXPECT_LT(peak(false, 2) / converged, 0.5);
  EXPECT_NEAR(peak(true, 2) / converged, 1, 0.02);
  EXPECT_GT(peak(true, 1) / converged, 1.03);
}

// Facts, test 10: the work depends on m and C alone.
TEST(MixedSqp, CostsTheSameOnAnyMesh) {
  double flops = 0;
  for (const Index cross : {3, 5}) {
    const JointedBar bar(100, {41, cross, cross});
    const ReducedBar reduced(bar, 5, 100);
    mixed::Sqp sqp(*reduced.map, bar.points(reduced.cubature));
    mixed::SqpState state;
    state.u = VecX::Zero(60);
    sqp.start(state);
    const BlockMatrix Hu = diagonal_matrix(reduced.map->pattern(), VecX::Constant(60, 1e4));
    mixed::StepProblem problem;
    problem.Hu = &Hu;
    problem.anchor = VecX::Ones(60) * 0.01;
    problem.gradient = VecX::Zero(60);
    PhaseClock clock;
    mixed::SqpOptions options;
    options.iterations = 3;
    const double now = sqp.solve(problem, options, state, clock).flops;
    if (flops > 0) {
      EXPECT_EQ(now, flops);
    }
    flops = now;
  }
  EXPECT_GT(flops, 1e5);
}

TEST(MixedSqp, SameBitsForAnyThreadCount) {
  VecX first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    BentStep step(1e4, 6, 120);
    mixed::SqpOptions options;
    options.iterations = 5;
    const VecX end = step.iterates(options).back();
    if (count == 1) first = end;
    EXPECT_TRUE(first == end);
  }
  set_threads(0);
}

}  // namespace
}  // namespace limber
