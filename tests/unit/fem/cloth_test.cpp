// Cloth triangles: membranes in space.
#include "bars.hpp"

#include <limber/core/error.hpp>
#include <limber/material/lame.hpp>

#include <Eigen/Eigenvalues>

#include <gtest/gtest.h>

namespace limber::fem {
namespace {

constexpr double kThickness = 2e-3;

ElementMaterial fabric(int model, bool fibre = false) {
  ElementMaterial m;
  m.model = static_cast<MaterialModel>(model);
  m.young = 4e4;
  m.poisson = 0.3;
  m.density = 300;
  if (fibre) {
    m.fibre = FibreModel::kStVenantKirchhoff;
    m.fibre_stiffness = 1e4;
    m.fibre_direction = Vec3(2, 1, 0).normalized();
  }
  return m;
}

ElementInput sheet(int model, bool fibre = false) {
  return bars::plate(4, 3, 0.1, fabric(model, fibre), kThickness, ElementKind::kClothTriangle);
}

// A sheet that is stretched, bent into space and crumpled a little.
VecX crumpled(const ElementInput& input, unsigned seed) {
  VecX x = bars::perturbed(input, 0.02, seed);
  for (Eigen::Index i = 0; i < x.size(); i += 3) {
    const double u = x[i];
    x[i] = 0.3 * std::sin(1.2 * u / 0.3);
    x[i + 2] += 0.3 * (1 - std::cos(1.2 * u / 0.3));
    x[i + 1] *= 1.1;
  }
  return x;
}

TEST(Cloth, ForceAndStiffnessAreDerivativesOfTheEnergy) {
  const double h = 1e-7;
  for (int model = 0; model < 6; ++model)
    for (const bool fibre : {false, true}) {
      const ElementInput input = sheet(model, fibre);
      const auto cloth = make_elements(input);
      const VecX x = crumpled(input, 3);
      StrainTerm strain{0.3, {}};
      green_strains(*cloth, crumpled(input, 4), strain.history);
      for (const StrainTerm* term : {static_cast<const StrainTerm*>(nullptr), &std::as_const(strain)}) {
        Assembled a, plus, minus;
        assemble(*cloth, x, {}, a, Projection::kNone, term);
        const MatX K = bars::dense(a.K);
        VecX f(x.size());
        MatX D(x.size(), x.size());
        for (Eigen::Index i = 0; i < x.size(); ++i) {
          VecX y = x;
          y[i] += h;
          assemble_force(*cloth, y, {}, plus, term);
          y[i] -= 2 * h;
          assemble_force(*cloth, y, {}, minus, term);
          f[i] = -(plus.energy - minus.energy) / (2 * h);
          D.col(i) = -(plus.f - minus.f) / (2 * h);
        }
        EXPECT_LT((a.f - f).norm(), 1e-6 * f.norm()) << model;
        EXPECT_LT((K - D).norm(), 1e-6 * D.norm()) << model;
        assemble(*cloth, x, {}, a, Projection::kPsd, term);
        const Eigen::SelfAdjointEigenSolver<MatX> eigen(bars::dense(a.K));
        EXPECT_GT(eigen.eigenvalues()[0], -1e-10 * eigen.eigenvalues()[x.size() - 1]) << model;
      }
    }
}

TEST(Cloth, RigidMotionsCostNothing) {
  const Mat3 R = Eigen::AngleAxisd(2.1, Vec3(1, -2, 0.5).normalized()).toRotationMatrix();
  for (int model = 0; model < 6; ++model) {
    const ElementInput input = sheet(model);
    const auto cloth = make_elements(input);
    VecX x = bars::positions(input);
    for (Eigen::Index i = 0; i < x.size(); i += 3) x.segment<3>(i) = R * x.segment<3>(i) + Vec3(1, 2, 3);
    Assembled a;
    assemble(*cloth, x, {}, a, Projection::kNone);
    EXPECT_LT(a.f.norm(), 1e-10 * fabric(0).young * kThickness * 0.1);
    std::vector<Mat3> F, S;
    deformation_gradients(*cloth, x, F);
    for (const Mat3& f : F) EXPECT_LT((f - R).norm(), 1e-12);
    // A flat sheet does not resist motion out of its plane, at first.
    const VecX n = (R * Vec3::UnitZ())
                       .replicate(x.size() / 3, 1)
                       .cwiseProduct(VecX::Random(x.size() / 3).replicate(1, 3).transpose().reshaped());
    VecX y;
    multiply(a.K, n, y);
    EXPECT_LT(y.norm(), 1e-9 * fabric(0).young * kThickness);
    VecX v(x.size());
    for (Eigen::Index i = 0; i < x.size(); i += 3)
      v.segment<3>(i) = Vec3(1, 2, 3).cross(Vec3(x.segment<3>(i)));
    stretch_rates(*cloth, x, v, S);
    for (const Mat3& s : S) EXPECT_LT(s.norm(), 1e-11);
  }
}

// In its plane cloth is a plane-strain body whose Lame constants are those of plane stress.
TEST(Cloth, InItsPlaneIsAPlaneBody) {
  for (int model = 0; model < 6; ++model) {
    const ElementInput input = sheet(model);
    ElementInput plane = input;
    const material::Lame l = material::lame(input.material[0].young, input.material[0].poisson);
    const double lambda = 2 * l.lambda * l.mu / (l.lambda + 2 * l.mu);
    for (ElementMaterial& m : plane.material) {
      m.poisson = lambda / (2 * (lambda + l.mu));
      m.young = 2 * l.mu * (1 + m.poisson);
    }
    plane.kinds.assign(plane.elements.size(), ElementKind::kPlaneTriangle);
    VecX x = bars::perturbed(input, 0.02, 7);
    for (Eigen::Index i = 2; i < x.size(); i += 3) x[i] = 0;
    Assembled a, b;
    assemble(*make_elements(input), x, {}, a, Projection::kNone);
    assemble(*make_elements(plane), x, {}, b, Projection::kNone);
    EXPECT_NEAR(a.energy, b.energy, 1e-12 * b.energy);
    EXPECT_LT((a.f - b.f).norm(), 1e-12 * b.f.norm());
    MatX Ka = bars::dense(a.K);
    const MatX Kb = bars::dense(b.K);
    for (Eigen::Index i = 2; i < x.size(); i += 3) {
      Ka.row(i).setZero();
      Ka.col(i).setZero();
    }
    EXPECT_LT((Ka - Kb).norm(), 1e-12 * Kb.norm());
    EXPECT_EQ(lumped_mass(*make_elements(input)), lumped_mass(*make_elements(plane)));
  }
}

// Pulled by a small strain, with its sides free, a strip narrows by nu and holds E times the strain.
TEST(Cloth, SmallStrainIsPlaneStress) {
  const double strain = 1e-5;
  for (int model = 0; model < 6; ++model) {
    if (static_cast<MaterialModel>(model) == MaterialModel::kArap) continue;  // has no lambda
    const ElementInput input = sheet(model);
    const auto cloth = make_elements(input);
    VecX x = bars::positions(input);
    for (Eigen::Index i = 0; i < x.size(); i += 3) {
      x[i] *= 1 + strain;
      x[i + 1] *= 1 - 0.3 * strain;
    }
    Assembled a;
    assemble_force(*cloth, x, {}, a);
    const double volume = 0.4 * 0.3 * kThickness;
    EXPECT_NEAR(a.energy, 0.5 * 4e4 * strain * strain * volume, 1e-3 * a.energy) << model;
    double pull = 0;
    for (std::size_t i = 0; i < input.rest.size(); ++i)
      if (input.rest[i].x() > 0.39) pull -= a.f[3 * static_cast<Eigen::Index>(i)];
    EXPECT_NEAR(pull, 4e4 * strain * 0.3 * kThickness, 1e-3 * pull) << model;
  }
}

TEST(Cloth, CollapsedTrianglesStayFinite) {
  for (int model = 0; model < 6; ++model) {
    const ElementInput input = sheet(model);
    const auto cloth = make_elements(input);
    VecX x = bars::positions(input);
    for (Eigen::Index i = 0; i < x.size(); i += 3) x[i + 1] = 0;  // to a line
    Assembled a;
    assemble(*cloth, x, {}, a);
    EXPECT_TRUE(a.finite) << model;
    assemble(*cloth, VecX::Zero(x.size()), {}, a);  // to a point
    EXPECT_TRUE(a.finite) << model;
  }
}

TEST(Cloth, FibresRunInIt) {
  ElementInput input = sheet(0, true);
  input.material[5].fibre_direction = Vec3::UnitZ();
  try {
    make_elements(input);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("element 5"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace limber::fem
