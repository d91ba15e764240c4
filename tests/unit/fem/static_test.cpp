// A block pulled along z between smooth plates, solved by Newton's method, against closed forms; and strain
// rates of moving bodies.
#include <limber/fem/dof.hpp>

#include "bars.hpp"

#include <gtest/gtest.h>
#include <Eigen/Cholesky>
#include <Eigen/Geometry>

namespace limber::fem {
namespace {

constexpr double kCell = 0.05;
constexpr int kWidth = 2, kHeight = 3;

// The pulling force [N] at the stretch `s`.
double pulling_force(const ElementMaterial& m, double s) {
  const ElementInput input = bars::block(kWidth, kWidth, kHeight, kCell, m);
  const auto elements = make_elements(input);
  VecX x = bars::positions(input);
  const double top = kHeight * kCell;
  std::vector<std::uint8_t> fixed(x.size(), 0);
  for (std::size_t i = 0; i < input.rest.size(); ++i) {
    for (int d = 0; d < 3; ++d) fixed[3 * i + d] = input.rest[i][d] == 0;       // three smooth walls
    if (std::abs(input.rest[i][2] - top) < 1e-9) fixed[3 * i + 2] = 1;          // and the plate that pulls
    x.segment<2>(3 * static_cast<Eigen::Index>(i)) *= std::pow(s, -m.poisson);  // a guess
    x[3 * i + 2] *= s;
  }
  const DofEliminator eliminator(*pattern(*elements));
  Assembled out;
  for (int iteration = 0; iteration < 30; ++iteration) {
    assemble(*elements, x, {}, out);
    VecX r = out.f;
    for (Eigen::Index i = 0; i < r.size(); ++i)
      if (fixed[i]) r[i] = 0;
    if (r.norm() < 1e-10 * m.young * kCell * kCell) break;
    eliminator.eliminate(out.K, fixed, 1);
    x += bars::dense(out.K).llt().solve(r);
  }
  double force = 0;
  for (std::size_t i = 0; i < input.rest.size(); ++i)
    if (input.rest[i][2] == 0) force += out.f[3 * i + 2];  // the wall holds what the plate pulls
  return force;
}

TEST(UniaxialStretch, StVenantKirchhoff) {
  ElementMaterial m;
  m.model = MaterialModel::kStVenantKirchhoff;
  m.young = 2e4;
  m.poisson = 0.3;
  const double area = std::pow(kWidth * kCell, 2);
  for (double s : {0.9, 1.1, 1.4})  // nominal stress: young * s * (s^2 - 1) / 2
    EXPECT_NEAR(pulling_force(m, s), area * m.young * s * (s * s - 1) / 2, 1e-8 * area * m.young) << s;
}

TEST(UniaxialStretch, NearlyIncompressibleNeoHookean) {
  ElementMaterial m;
  m.young = 3e4;
  m.poisson = 0.49999;
  const double area = std::pow(kWidth * kCell, 2), mu = m.young / 3;
  for (double s : {0.8, 1.3, 2.0})  // nominal stress: mu (s - 1 / s^2) when the volume stays
    EXPECT_NEAR(pulling_force(m, s), area * mu * (s - 1 / (s * s)), 2e-4 * area * mu) << s;
}

TEST(UniaxialStretch, SmallStrainGivesYoungsModulus) {
  const double area = std::pow(kWidth * kCell, 2), strain = 1e-6;
  for (int model = 0; model < 6; ++model) {
    ElementMaterial m;
    m.model = static_cast<MaterialModel>(model);
    m.young = 5e4;
    m.poisson = 0.35;
    const double young = m.model == MaterialModel::kArap ? m.young / (1 + m.poisson) : m.young;  // 2 mu
    EXPECT_NEAR(pulling_force(m, 1 + strain) / (area * strain), young, 1e-4 * young) << model;
  }
}

TEST(StretchRates, OfRigidAndAffineMotions) {
  const ElementInput input = bars::block(2, 3, 2, 0.1, ElementMaterial{});
  const auto elements = make_elements(input);
  Mat3 A, L;
  A << 1.1, 0.2, 0, -0.1, 0.9, 0.3, 0.05, 0, 1.2;
  L << 0, -3, 1, 3, 0, 2, -1, -2, 0;  // a spin
  VecX x = bars::positions(input), v = x;
  for (Index i = 0; i < node_count(*elements); ++i) {
    node(x, i) = A * input.rest[i];
    node(v, i) = L * node(x, i) + Vec3(1, 2, 3);
  }
  std::vector<Mat3> Sdot;
  stretch_rates(*elements, x, v, Sdot);
  ASSERT_EQ(Sdot.size(), input.elements.size());
  for (const Mat3& s : Sdot) EXPECT_LE(s.norm(), 1e-12);
  // From the rest shape S-dot is the symmetric part of the velocity gradient.
  L << 1, 0.5, 0, -0.2, 2, 0.3, 0.7, 0, -1;
  for (Index i = 0; i < node_count(*elements); ++i) node(v, i) = L * input.rest[i];
  stretch_rates(*elements, bars::positions(input), v, Sdot);
  for (const Mat3& s : Sdot) EXPECT_LE((s - 0.5 * (L + L.transpose())).norm(), 1e-12);
}

TEST(StretchRates, OfAPlateHasNoZ) {
  const ElementInput input = bars::plate(3, 2, 0.1, ElementMaterial{}, 0.01);
  const auto elements = make_elements(input);
  const VecX x = bars::perturbed(input, 0.01, 1);
  VecX v = bars::perturbed(input, 1, 2);
  std::vector<Mat3> Sdot;
  stretch_rates(*elements, x, v, Sdot);
  for (const Mat3& s : Sdot) {
    EXPECT_GT((s.topLeftCorner<2, 2>().norm()), 1e-3);
    EXPECT_LE(s.row(2).norm() + s.col(2).norm(), 1e-13 * s.norm());
  }
}

}  // namespace
}  // namespace limber::fem
