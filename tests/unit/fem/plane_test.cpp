// Plane-strain triangles against a slab of tetrahedra that is held in plane strain.
#include "bars.hpp"

#include <gtest/gtest.h>

namespace limber::fem {
namespace {

constexpr int kNx = 4, kNy = 3;
constexpr double kSize = 0.1;

ElementMaterial soft(int model, int fibre) {
  ElementMaterial m;
  m.model = static_cast<MaterialModel>(model);
  m.fibre = static_cast<FibreModel>(fibre);
  m.young = 3e4;
  m.poisson = 0.42;
  m.density = 1100;
  m.fibre_stiffness = 2e4;
  m.fibre_direction = Vec3(2, 1, 0).normalized();
  m.activation_channel = 0;
  return m;
}

// In-plane positions of the plate, copied to both layers of the slab.
VecX slab_positions(const ElementInput& slab, const VecX& plate) {
  VecX x = bars::positions(slab);
  const Eigen::Index n = plate.size() / 3;
  for (Eigen::Index i = 0; i < x.size() / 3; ++i) x.segment<2>(3 * i) = plate.segment<2>(3 * (i % n));
  return x;
}

TEST(PlaneStrain, EqualsASlab) {
  const std::vector<double> activation = {0.15};
  for (int model = 0; model < 6; ++model)
    for (int fibre = 0; fibre < 3; ++fibre) {
      const ElementMaterial m = soft(model, fibre);
      const ElementInput plate = bars::plate(kNx, kNy, kSize, m, kSize),
                         slab = bars::block(kNx, kNy, 1, kSize, m);
      const auto flat = make_elements(plate), solid = make_elements(slab);
      VecX x = bars::perturbed(plate, 0.03, 1);
      const VecX X = slab_positions(slab, x);
      Assembled a, b;
      for (Projection projection : {Projection::kNone, Projection::kPsd}) {
        assemble(*flat, x, activation, a, projection);
        assemble(*solid, X, activation, b, projection);
        const Eigen::Index n = x.size() / 3;
        MatX T = MatX::Zero(X.size(), x.size());  // a plate node moves its two slab nodes in x and y
        for (Eigen::Index i = 0; i < 2 * n; ++i) T(3 * i, 3 * (i % n)) = T(3 * i + 1, 3 * (i % n) + 1) = 1;
        EXPECT_NEAR(a.energy, b.energy, 1e-12 * b.energy);
        EXPECT_LE((a.f - T.transpose() * b.f).norm(), 1e-12 * b.f.norm());
        const MatX K = T.transpose() * bars::dense(b.K) * T;
        EXPECT_LE((bars::dense(a.K) - K).norm(), 1e-12 * K.norm());
      }
      EXPECT_NEAR(lumped_mass(*flat).sum(), lumped_mass(*solid).sum(), 1e-12);
    }
}

TEST(PlaneStrain, AgreesWithReferenceAndIgnoresZ) {
  const ElementInput plate = bars::plate(kNx, kNy, kSize, soft(0, 1), 0.02);
  const auto flat = make_elements(plate);
  const std::vector<double> activation = {0.1};
  VecX x = bars::perturbed(plate, 0.02, 2);
  Assembled a;
  assemble(*flat, x, activation, a);
  const auto reference = bars::reference(plate, x, activation, true);
  EXPECT_NEAR(a.energy, reference.energy, 1e-12 * reference.energy);
  EXPECT_LE((a.f - reference.f).norm(), 1e-12 * reference.f.norm());
  EXPECT_LE((bars::dense(a.K) - reference.K).norm(), 1e-12 * reference.K.norm());
  for (Eigen::Index i = 2; i < x.size(); i += 3) {
    EXPECT_EQ(a.f[i], 0);
    EXPECT_EQ(bars::dense(a.K).row(i).norm(), 0);
    x[i] = 17 + static_cast<double>(i);
  }
  Assembled b;
  assemble(*flat, x, activation, b);
  EXPECT_EQ(a.energy, b.energy);
  EXPECT_TRUE((a.f.array() == b.f.array()).all());
  EXPECT_EQ(a.K.values, b.K.values);
}

TEST(PlaneStrain, MixesWithTetrahedra) {
  ElementInput both = bars::plate(2, 2, kSize, soft(2, 0), 0.05);
  const Index offset = static_cast<Index>(both.rest.size());
  const ElementInput solid = bars::block(2, 2, 1, kSize, soft(0, 2));
  both.rest.insert(both.rest.end(), solid.rest.begin(), solid.rest.end());
  for (std::size_t e = 0; e < solid.elements.size(); ++e) {
    Tet t = solid.elements[e];
    for (Index& i : t) i += offset;
    both.elements.push_back(t);
    both.material.push_back(solid.material[e]);
    both.kinds.push_back(ElementKind::kTetrahedron);
  }
  const std::vector<double> activation = {0.1};
  const auto elements = make_elements(both);
  const VecX x = bars::perturbed(both, 0.02, 3);
  Assembled a;
  assemble(*elements, x, activation, a);
  const auto reference = bars::reference(both, x, activation, true);
  EXPECT_LE((a.f - reference.f).norm(), 1e-12 * reference.f.norm());
  EXPECT_LE((bars::dense(a.K) - reference.K).norm(), 1e-12 * reference.K.norm());
}

}  // namespace
}  // namespace limber::fem
