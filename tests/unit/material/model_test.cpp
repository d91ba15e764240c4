// Every model as a function of F: derivatives, invariance, rest state, projection, small strain, closed
// forms.
#include <limber/core/error.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/material/lame.hpp>

#include "samples.hpp"

#include <gtest/gtest.h>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>

namespace limber::material {
namespace {

using Vec9 = Eigen::Matrix<double, 9, 1>;

// All models, plain and with each kind of fibre.
std::vector<ElementMaterial> materials(double poisson = 0.4) {
  std::vector<ElementMaterial> all;
  for (MaterialModel model : samples::models())
    for (FibreModel fibre : {FibreModel::kNone, FibreModel::kStVenantKirchhoff, FibreModel::kFung}) {
      ElementMaterial m = samples::make(model, poisson);
      m.fibre = fibre;
      m.fibre_stiffness = 4e4;
      m.fibre_direction = Vec3(1, 2, -0.5).normalized();
      all.push_back(m);
    }
  return all;
}

std::string label(const ElementMaterial& m, const samples::Sample& s) {
  return std::string(name(m.model)) + " + " + name(m.fibre) + ", " + s.name;
}

// The error of a central difference must fall like h^2 (fourfold per halving) until rounding takes over: the
// best of the sweep must be small, and over the first steps the order must be two.
template <class Error>
void expect_second_order(Error&& error, double scale, const std::string& where) {
  double best = 1e300, first = 0, later = 0;
  for (int k = 0; k < 7; ++k) {
    const double e = error(1e-2 * std::pow(0.25, k)) / scale;
    if (k == 0) first = e;
    if (k == 2) later = e;
    best = std::min(best, e);
  }
  EXPECT_LT(best, 3e-9) << where;
  if (first > 1e-6) {
    EXPECT_NEAR(std::log(first / later) / std::log(16), 2, 0.3) << where << " first error " << first;
  }
}

double activation_of(const ElementMaterial& m) { return m.fibre == FibreModel::kNone ? 0 : 0.15; }

TEST(Models, StressIsDerivativeOfEnergy) {
  std::mt19937 rng(1);
  for (const ElementMaterial& m : materials())
    for (const auto& s : samples::regular()) {
      if (s.name == "stretched" && m.fibre == FibreModel::kFung) continue;  // exp(60)
      const Mat3 direction = samples::noise(rng);
      const double a = activation_of(m), expected = (pk1(m, s.F, a).array() * direction.array()).sum();
      const double scale = std::max({std::abs(expected), pk1(m, s.F, a).norm(), m.young});
      expect_second_order(
          [&](double h) {
            return std::abs((psi(m, s.F + h * direction, a) - psi(m, s.F - h * direction, a)) / (2 * h) -
                            expected);
          },
          scale, label(m, s));
    }
}

TEST(Models, HessianIsDerivativeOfStress) {
  std::mt19937 rng(2);
  for (const ElementMaterial& m : materials())
    for (const auto& s : samples::regular()) {
      if (s.name == "stretched" && m.fibre == FibreModel::kFung) continue;
      const Mat3 direction = samples::noise(rng);
      const double a = activation_of(m);
      const Mat9 H = dpk1(m, s.F, a);
      const Vec9 expected = H * Eigen::Map<const Vec9>(direction.data());
      expect_second_order(
          [&](double h) {
            const Mat3 d = (pk1(m, s.F + h * direction, a) - pk1(m, s.F - h * direction, a)) / (2 * h);
            return (Eigen::Map<const Vec9>(d.data()) - expected).norm();
          },
          H.norm(), label(m, s));
    }
}

TEST(Models, HessianIsSymmetric) {
  for (const ElementMaterial& m : materials())
    for (const auto& s : samples::regular()) {
      const Mat9 H = dpk1(m, s.F, 0.1);
      EXPECT_LE((H - H.transpose()).norm(), 1e-14 * H.norm()) << label(m, s);
    }
}

TEST(Models, RotationsChangeNothing) {
  std::mt19937 rng(3);
  for (ElementMaterial m : materials())
    for (const auto& s : samples::regular()) {
      const Mat3 R = samples::rotation(rng);
      const double size = std::max(m.young, dpk1(m, s.F).norm());
      EXPECT_NEAR(psi(m, R * s.F), psi(m, s.F), 1e-12 * size * (1 + s.F.squaredNorm())) << label(m, s);
      EXPECT_LE((pk1(m, R * s.F) - R * pk1(m, s.F)).norm(), 1e-12 * size * (1 + s.F.norm())) << label(m, s);
      if (m.fibre != FibreModel::kNone) continue;  // only the base models are isotropic
      EXPECT_NEAR(psi(m, s.F * R), psi(m, s.F), 1e-12 * size * (1 + s.F.squaredNorm())) << label(m, s);
    }
}

TEST(Models, RestShapeIsFreeOfStress) {
  std::mt19937 rng(4);
  for (double poisson : {0.0, 0.3, 0.49})
    for (const ElementMaterial& m : materials(poisson))
      for (const Mat3& R : {Mat3(Mat3::Identity()), samples::rotation(rng)}) {
        const double stiffness = dpk1(m, R).norm();
        EXPECT_NEAR(psi(m, R), 0, 1e-14 * stiffness) << name(m.model);
        EXPECT_LE(pk1(m, R).norm(), 1e-14 * stiffness) << name(m.model);
      }
}

// psi = mu |e|^2 + lambda/2 tr(e)^2 for F = I + e: the Hessian in the rest shape must be that of linear
// elasticity. ARAP is linear elasticity with lambda = 0.
TEST(Models, SmallStrainIsLinearElasticity) {
  for (double poisson : {0.0, 0.25, 0.45, 0.49})
    for (MaterialModel model : samples::models()) {
      const ElementMaterial m = samples::make(model, poisson);
      const double mu = m.young / (2 * (1 + poisson));
      const double lambda =
          model == MaterialModel::kArap ? 0 : m.young * poisson / ((1 + poisson) * (1 - 2 * poisson));
      Mat9 expected = Mat9::Zero();
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          expected(i + 3 * j, i + 3 * j) += mu;
          expected(i + 3 * j, j + 3 * i) += mu;
          expected(4 * i, 4 * j) += lambda;
        }
      EXPECT_LE((dpk1(m, Mat3::Identity()) - expected).norm(), 1e-13 * expected.norm()) << name(model);
      EXPECT_LE((dpk1(m, Mat3::Identity(), 0, true) - expected).norm(), 1e-13 * expected.norm())
          << name(model);
    }
}

// Eigenvalues by the solver for any size: the unrolled 9x9 one takes minutes to compile with sanitizers.
Eigen::SelfAdjointEigenSolver<MatX> eigen(const MatX& H) {
  return Eigen::SelfAdjointEigenSolver<MatX>(0.5 * (H + H.transpose()));
}

double lowest_eigenvalue(const MatX& H) { return eigen(H).eigenvalues()[0]; }

MatX clamped(const MatX& H) {
  const auto e = eigen(H);
  return e.eigenvectors() * e.eigenvalues().cwiseMax(0).asDiagonal() * e.eigenvectors().transpose();
}

void expect_projection(const ElementMaterial& m, const samples::Sample& s) {
  const double a = activation_of(m);
  ElementMaterial base = m;
  base.fibre = FibreModel::kNone;
  const Mat9 H_base = dpk1(base, s.F), H_fibre = dpk1(m, s.F, a) - H_base;
  const Mat9 projected = dpk1(m, s.F, a, true);
  const double scale = std::max(H_base.norm(), dpk1(m, s.F, a).norm());
  EXPECT_LE((projected - clamped(H_base) - clamped(H_fibre)).norm(), 1e-12 * scale) << label(m, s);
  const double lowest = lowest_eigenvalue(projected);
  EXPECT_GE(lowest, -1e-14 * scale) << label(m, s);
}

TEST(Models, ProjectionIsTheNumericOne) {
  for (double poisson : {0.0, 0.4, 0.49})
    for (const ElementMaterial& m : materials(poisson))
      for (const auto& s : samples::regular()) expect_projection(m, s);
}

TEST(Models, ProjectionIsTheNumericOneAtExtremes) {
  for (double poisson : {0.3, 0.49})
    for (const ElementMaterial& m : materials(poisson))
      for (const auto& s : samples::extreme()) {
        if (m.fibre == FibreModel::kFung && s.F.norm() > 20) continue;  // exp overflows
        expect_projection(m, s);
      }
}

TEST(Models, ProjectionLeavesDefiniteHessiansAlone) {
  int definite = 0, indefinite = 0;
  for (const ElementMaterial& m : materials())
    for (const auto& s : samples::regular()) {
      const Mat9 H = dpk1(m, s.F), P = dpk1(m, s.F, 0, true);
      const double lowest = lowest_eigenvalue(H);
      const double base_lowest = [&] {
        ElementMaterial base = m;
        base.fibre = FibreModel::kNone;
        return lowest_eigenvalue(dpk1(base, s.F));
      }();
      if (base_lowest > 0 && m.fibre == FibreModel::kNone) {
        ++definite;
        EXPECT_LE((H - P).norm(), 1e-14 * H.norm()) << label(m, s);
      } else if (lowest < -1e-3 * H.norm()) {
        ++indefinite;
        EXPECT_GT((H - P).norm(), 1e-4 * H.norm()) << label(m, s);
      }
    }
  EXPECT_GT(definite, 10);
  EXPECT_GT(indefinite, 10);
}

// The stable neo-Hookean Hessian written out: mu I + L g g^T + L (J - a) d2J/dF2, without singular values.
TEST(Models, StableNeoHookeanHessianWrittenOut) {
  const ElementMaterial m = samples::make(MaterialModel::kStableNeoHookean, 0.49);
  const Lame l = lame(m.young, m.poisson);
  const double L = l.lambda + l.mu, a = 1 + l.mu / L;
  for (const auto& s : samples::regular()) {
    const auto hat = [](const Vec3& v) {
      Mat3 H;
      H << 0, -v[2], v[1], v[2], 0, -v[0], -v[1], v[0], 0;
      return H;
    };
    Vec9 g;
    for (int c = 0; c < 3; ++c) g.segment<3>(3 * c) = s.F.col((c + 1) % 3).cross(s.F.col((c + 2) % 3));
    Mat9 HJ = Mat9::Zero();
    HJ.block<3, 3>(0, 3) = -hat(s.F.col(2));
    HJ.block<3, 3>(0, 6) = hat(s.F.col(1));
    HJ.block<3, 3>(3, 0) = hat(s.F.col(2));
    HJ.block<3, 3>(3, 6) = -hat(s.F.col(0));
    HJ.block<3, 3>(6, 0) = -hat(s.F.col(1));
    HJ.block<3, 3>(6, 3) = hat(s.F.col(0));
    const Mat9 expected = l.mu * Mat9::Identity() + L * g * g.transpose() + L * (s.F.determinant() - a) * HJ;
    EXPECT_LE((dpk1(m, s.F) - expected).norm(), 1e-13 * expected.norm()) << s.name;
    const double psi0 = L / 2 * (1 - a) * (1 - a);
    const double psi_expected =
        l.mu / 2 * (s.F.squaredNorm() - 3) + L / 2 * std::pow(s.F.determinant() - a, 2) - psi0;
    EXPECT_NEAR(psi(m, s.F), psi_expected, 1e-13 * (expected.norm() + std::abs(psi_expected)));
  }
}

// Uniaxial stress of St Venant-Kirchhoff in closed form: with E2 = E3 = -nu E1 the lateral stress vanishes
// and the nominal stress is young * s * (s^2 - 1) / 2.
TEST(Models, StVenantKirchhoffUniaxialStress) {
  const ElementMaterial m = samples::make(MaterialModel::kStVenantKirchhoff, 0.3);
  for (double s : {0.8, 1.0, 1.2, 1.5}) {
    const double E = (s * s - 1) / 2, lateral = std::sqrt(1 - 2 * m.poisson * E);
    const Mat3 P = pk1(m, Vec3(s, lateral, lateral).asDiagonal());
    EXPECT_NEAR(P(0, 0), m.young * s * E, 1e-9 * m.young);
    EXPECT_NEAR(P(1, 1), 0, 1e-9 * m.young);
  }
}

// Nearly incompressible neo-Hookean in uniaxial tension: nominal stress mu (s - 1/s^2).
TEST(Models, StableNeoHookeanIncompressibleTension) {
  const ElementMaterial m = samples::make(MaterialModel::kStableNeoHookean, 0.499999);
  const double mu = m.young / (2 * (1 + m.poisson));
  for (double s : {0.7, 1.3, 2.0, 3.0}) {
    double lateral = 1 / std::sqrt(s);  // Newton for a lateral stretch without lateral stress
    for (int i = 0; i < 20; ++i) {
      const Mat9 H = dpk1(m, Vec3(s, lateral, lateral).asDiagonal());
      lateral -= pk1(m, Vec3(s, lateral, lateral).asDiagonal())(1, 1) / (H(4, 4) + H(4, 8));
    }
    const Mat3 P = pk1(m, Vec3(s, lateral, lateral).asDiagonal());
    EXPECT_NEAR(P(0, 0), mu * (s - 1 / (s * s)), 1e-4 * mu);
  }
}

TEST(Fibres, ActivationMovesTheRestLength) {
  for (FibreModel fibre : {FibreModel::kStVenantKirchhoff, FibreModel::kFung}) {
    ElementMaterial m = samples::make(MaterialModel::kArap);
    m.fibre = fibre;
    m.fibre_stiffness = 1e5;
    m.fibre_direction = Vec3(0, 1, 0);
    ElementMaterial base = m;
    base.fibre = FibreModel::kNone;
    const double activation = 0.2;
    const auto pull = [&](double s, double a) {  // fibre stress along y at stretch s
      const Mat3 F = Vec3(1, s, 1).asDiagonal();
      return (pk1(m, F, a) - pk1(base, F))(1, 1);
    };
    EXPECT_NEAR(pull(1, 0), 0, 1e-9);
    EXPECT_NEAR(pull(1 - activation, activation), 0, 1e-9);
    EXPECT_GT(pull(1, activation), 0);                     // wants to be shorter
    EXPECT_LT(pull(1 - activation - 0.1, activation), 0);  // and no shorter than that
    // Only along the fibre: stretch across it costs nothing more.
    EXPECT_NEAR(psi(m, Vec3(1.3, 1, 0.8).asDiagonal()), psi(base, Vec3(1.3, 1, 0.8).asDiagonal()), 1e-9);
  }
}

TEST(Fibres, EnergiesAsDefined) {
  ElementMaterial m = samples::make(MaterialModel::kArap);
  m.fibre_stiffness = 3e4;
  m.fibre_direction = Vec3(0, 0, 1);
  const Mat3 F = Vec3(1, 1, 1.25).asDiagonal();
  const double base = psi(m, F), I5 = std::pow(1.25 / 0.9, 2);
  m.fibre = FibreModel::kStVenantKirchhoff;
  EXPECT_NEAR(psi(m, F, 0.1) - base, 0.5 * 3e4 * (I5 - 1) * (I5 - 1), 1e-8);
  m.fibre = FibreModel::kFung;
  EXPECT_NEAR(psi(m, F, 0.1) - base, 3e4 * (std::exp(I5 - 1) - I5), 1e-8);
}

TEST(Lame, ConvertsAndChecks) {
  const Lame l = lame(2.5e5, 0.25);
  EXPECT_DOUBLE_EQ(l.mu, 1e5);
  EXPECT_DOUBLE_EQ(l.lambda, 1e5);
  for (double poisson : {-1.0, 0.5, 1.0, std::nan("")}) EXPECT_THROW(lame(1e5, poisson), Error);
  for (double young : {0.0, -1.0, std::nan(""), HUGE_VAL}) EXPECT_THROW(lame(young, 0.3), Error);
  EXPECT_NO_THROW(lame(1e5, 0));
  EXPECT_LT(lame(1e5, -0.5).lambda, 0);
}

// From least_poisson on no shape has less energy than the rest shape, and where it is more than -1, below it
// some shape has.
TEST(Lame, RestShapeIsTheBestFromTheLeastPoissonOn) {
  const auto least_energy = [](MaterialModel model, double poisson) {
    const ElementMaterial m = samples::make(model, poisson);
    double least = 0;
    for (double a = -3; a <= 3; a += 0.1)
      for (double b = -3; b <= a; b += 0.1)
        for (double c = -3; c <= b; c += 0.1)
          least = std::min(least, psi(m, Vec3(a, b, c).asDiagonal().toDenseMatrix()));
    return least;
  };
  for (const MaterialModel model : samples::models()) {
    const double bound = least_poisson(model), tiny = 1e-9 * 1e5;
    for (const double poisson : {std::max(bound, -0.95), 0.5 * bound, 0.3})
      EXPECT_GE(least_energy(model, poisson), -tiny) << name(model) << " " << poisson;
    if (bound > -1) {
      EXPECT_LT(least_energy(model, bound - 0.11), -tiny) << name(model);
    }
  }
}

// An element shrunk evenly to 5 %: the form without the logarithm goes on to a point (it turns back above the
// root of s^3 + s^2 + s = 1 - 2 nu, 0.17 here), the form with it grows again.
TEST(Models, OnlyTheLogarithmKeepsAnElementFromCollapsing) {
  const auto pressure = [](MaterialModel model, double s) {  // > 0: wants to shrink further
    return pk1(samples::make(model, 0.4), s * Mat3::Identity()).trace();
  };
  EXPECT_GT(pressure(MaterialModel::kStableNeoHookean, 0.05), 0);
  EXPECT_GT(pressure(MaterialModel::kStableNeoHookean, 0.1672), 0);
  EXPECT_LT(pressure(MaterialModel::kStableNeoHookean, 0.1675), 0);
  for (double s : {1e-4, 0.05, 0.5}) EXPECT_LT(pressure(MaterialModel::kStableNeoHookeanLog, s), 0);
}

TEST(Names, RoundTrip) {
  for (MaterialModel model : samples::models()) EXPECT_EQ(parse_material_model(name(model)), model);
  for (FibreModel f : {FibreModel::kNone, FibreModel::kStVenantKirchhoff, FibreModel::kFung})
    EXPECT_EQ(parse_fibre_model(name(f)), f);
  EXPECT_THROW(parse_material_model("neo"), Error);
}

}  // namespace
}  // namespace limber::material
