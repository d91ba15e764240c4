#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>

#include "bars.hpp"

#include <gtest/gtest.h>
#include <Eigen/Eigenvalues>
#include <Eigen/Geometry>

#include <algorithm>

namespace limber::fem {
namespace {

ElementMaterial soft(MaterialModel model = MaterialModel::kStableNeoHookean) {
  ElementMaterial m;
  m.model = model;
  m.young = 2e4;
  m.poisson = 0.45;
  m.density = 900;
  return m;
}

// Every model, fibre model, stiffness and direction side by side, in an order that mixes the batches.
ElementInput mixture(int nx = 3, int ny = 3, int nz = 4) {
  ElementInput input = bars::block(nx, ny, nz, 0.1, soft());
  std::mt19937 rng(9);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (ElementMaterial& m : input.material) {
    m.model = static_cast<MaterialModel>(static_cast<int>(6 * uniform(rng)));
    m.fibre = static_cast<FibreModel>(static_cast<int>(3 * uniform(rng)));
    m.young = 1e4 * (1 + uniform(rng));
    m.poisson = 0.49 * uniform(rng);
    m.density = 500 + 1000 * uniform(rng);
    m.fibre_stiffness = 1e4 * uniform(rng);
    m.fibre_direction = Vec3(uniform(rng) - 0.5, uniform(rng) - 0.5, uniform(rng)).normalized();
    m.activation_channel = static_cast<Index>(3 * uniform(rng)) - 1;
  }
  return input;
}

const std::vector<double> kActivation = {0.1, 0.25};

void expect_equal(const Assembled& a, const bars::Reference& r, double tolerance) {
  EXPECT_NEAR(a.energy, r.energy, tolerance * std::abs(r.energy));
  EXPECT_LE((a.f - r.f).norm(), tolerance * r.f.norm());
  EXPECT_LE((bars::dense(a.K) - r.K).norm(), tolerance * r.K.norm());
}

TEST(Assemble, AgreesWithReference) {
  const ElementInput input = mixture();
  const auto elements = make_elements(input);
  for (double amplitude : {0.005, 0.02, 0.1}) {  // of cells of 0.1 m: mild, strong, most elements inverted
    const VecX x = bars::perturbed(input, amplitude, 4);
    Assembled out;
    for (bool projected : {true, false}) {
      assemble(*elements, x, kActivation, out, projected ? Projection::kPsd : Projection::kNone);
      expect_equal(out, bars::reference(input, x, kActivation, projected), 1e-12);
    }
    Assembled force;
    assemble_force(*elements, x, kActivation, force);
    EXPECT_EQ(force.f, out.f);  // the same bits with K and without
    EXPECT_EQ(force.energy, out.energy);
    EXPECT_EQ(force.inverted, out.inverted);
    EXPECT_NEAR(elastic_energy(*elements, x, kActivation), out.energy, 1e-13 * out.energy);
  }
}

TEST(Assemble, ForceAndStiffnessAreDerivatives) {
  const ElementInput input = mixture(2, 2, 2);
  const auto elements = make_elements(input);
  const VecX x = bars::perturbed(input, 0.01, 5);
  Assembled out, plus, minus;
  assemble(*elements, x, kActivation, out, Projection::kNone);
  const MatX K = bars::dense(out.K);
  std::mt19937 rng(6);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int trial = 0; trial < 5; ++trial) {
    const VecX d = VecX::NullaryExpr(x.size(), [&] { return uniform(rng); });
    double force_error[4], stiffness_error[4];
    for (int k = 0; k < 4; ++k) {
      const double h = 5e-5 * std::pow(0.5, k);
      assemble_force(*elements, x + h * d, kActivation, plus);
      assemble_force(*elements, x - h * d, kActivation, minus);
      force_error[k] =
          std::abs((plus.energy - minus.energy) / (2 * h) + out.f.dot(d)) / std::abs(out.f.dot(d));
      stiffness_error[k] = ((minus.f - plus.f) / (2 * h) - K * d).norm() / (K * d).norm();
    }
    EXPECT_LT(force_error[3], 1e-6);
    EXPECT_LT(stiffness_error[3], 1e-6);
    EXPECT_NEAR(std::log2(stiffness_error[0] / stiffness_error[1]), 2, 0.1);
    EXPECT_NEAR(std::log2(force_error[0] / force_error[1]), 2, 0.1);
  }
}

TEST(Assemble, ProjectedStiffnessIsPositiveSemiDefinite) {
  const ElementInput input = mixture(2, 2, 2);
  const auto elements = make_elements(input);
  Assembled out;
  assemble(*elements, bars::perturbed(input, 0.06, 7), kActivation, out);
  const MatX K = bars::dense(out.K);
  EXPECT_GE(Eigen::SelfAdjointEigenSolver<MatX>(K, Eigen::EigenvaluesOnly).eigenvalues()[0],
            -1e-12 * K.norm());
  assemble(*elements, bars::perturbed(input, 0.06, 7), kActivation, out, Projection::kNone);
  EXPECT_LT(Eigen::SelfAdjointEigenSolver<MatX>(bars::dense(out.K), Eigen::EigenvaluesOnly).eigenvalues()[0],
            -1e-2);
}

TEST(Assemble, RestShapeAndRigidMotionsAreFreeOfForce) {
  for (int model = 0; model < 6; ++model) {
    const ElementInput input = bars::block(3, 2, 2, 0.05, soft(static_cast<MaterialModel>(model)));
    const auto elements = make_elements(input);
    const VecX rest = bars::positions(input);
    const Mat3 R = Eigen::AngleAxisd(2.1, Vec3(1, -2, 0.5).normalized()).toRotationMatrix();
    VecX moved(rest.size());
    for (Index i = 0; i < node_count(*elements); ++i) node(moved, i) = R * node(rest, i) + Vec3(3, -1, 2);
    Assembled out;
    for (const VecX& x : {rest, moved}) {
      assemble(*elements, x, {}, out);
      const double scale = 2e4 * 0.05 * 0.05 / 0.1;  // modulus x face
      EXPECT_LE(out.f.cwiseAbs().maxCoeff(), 1e-11 * scale);
      EXPECT_NEAR(out.energy, 0, 1e-13);
      // Six rigid motions and no more cost nothing.
      const VecX values =
          Eigen::SelfAdjointEigenSolver<MatX>(bars::dense(out.K), Eigen::EigenvaluesOnly).eigenvalues();
      EXPECT_LE(std::abs(values[5]), 1e-10 * values[values.size() - 1]);
      EXPECT_GE(values[6], 1e-5 * values[values.size() - 1]);
      EXPECT_EQ(out.inverted, 0);
      EXPECT_TRUE(out.finite);
    }
  }
}

TEST(Assemble, ForcesAndTorquesOfAFreeBodyCancel) {
  const ElementInput input = mixture();
  const auto elements = make_elements(input);
  const VecX x = bars::perturbed(input, 0.03, 8);
  Assembled out;
  assemble_force(*elements, x, kActivation, out);
  Vec3 force = Vec3::Zero(), torque = Vec3::Zero();
  for (Index i = 0; i < node_count(*elements); ++i) {
    force += node(out.f, i);
    torque += Vec3(node(x, i)).cross(Vec3(node(out.f, i)));
  }
  EXPECT_LE(force.norm(), 1e-12 * out.f.norm());
  EXPECT_LE(torque.norm(), 1e-12 * out.f.norm());
}

TEST(Assemble, SameBitsForAnyThreadCount) {
  const ElementInput input = mixture(6, 6, 16);  // several chunks, shared nodes and blocks
  const auto elements = make_elements(input);
  const VecX x = bars::perturbed(input, 0.03, 10);
  Assembled one, other;
  set_threads(1);
  assemble(*elements, x, kActivation, one);
  const double energy = elastic_energy(*elements, x, kActivation);
  for (int threads : {2, 3, 7}) {
    set_threads(threads);
    for (int repeat = 0; repeat < 3; ++repeat) {
      assemble(*elements, x, kActivation, other);
      EXPECT_EQ(one.energy, other.energy);
      EXPECT_TRUE((one.f.array() == other.f.array()).all());
      EXPECT_EQ(one.K.values, other.K.values);
      EXPECT_EQ(one.inverted, other.inverted);
      EXPECT_EQ(energy, elastic_energy(*elements, x, kActivation));
    }
  }
  set_threads(0);
}

TEST(Assemble, AnElementDoesNotDependOnItsNeighboursInTheBatch) {
  ElementInput input = mixture(4, 4, 4);
  const auto all = make_elements(input);
  const VecX x = bars::perturbed(input, 0.03, 12);
  std::vector<double> psi;
  energy_densities(*all, x, kActivation, psi);
  const std::vector<double> volume = rest_volume(*all);
  for (std::size_t e = 0; e < input.elements.size(); e += 17) {
    ElementInput one = input;
    one.elements = {input.elements[e]};
    one.material = {input.material[e]};
    EXPECT_EQ(elastic_energy(*make_elements(one), x, kActivation), volume[e] * psi[e]);
  }
}

TEST(Assemble, NamesTheElementThatIsNotFinite) {
  const ElementInput input = bars::block(4, 4, 8, 0.1, soft());
  const auto elements = make_elements(input);
  VecX x = bars::positions(input);
  const Index bad_node = 77;
  x[3 * bad_node + 1] = std::nan("");
  Index expected = -1;
  for (std::size_t e = 0; e < input.elements.size() && expected < 0; ++e)
    if (std::count(input.elements[e].begin(), input.elements[e].end(), bad_node))
      expected = static_cast<Index>(e);
  Assembled out;
  assemble(*elements, x, {}, out);
  EXPECT_FALSE(out.finite);
  EXPECT_EQ(out.first_bad, expected);
  assemble_force(*elements, x, {}, out);
  EXPECT_FALSE(out.finite);
  EXPECT_EQ(out.first_bad, expected);
  assemble(*elements, bars::positions(input), {}, out);  // and the next call is clean again
  EXPECT_TRUE(out.finite);
  EXPECT_EQ(out.first_bad, -1);
  x[3 * bad_node + 1] = 1e200;  // overflows
  assemble(*elements, x, {}, out);
  EXPECT_FALSE(out.finite);
}

TEST(Assemble, CountsInvertedElements) {
  const ElementInput input = bars::block(3, 3, 3, 0.1, soft());
  const auto elements = make_elements(input);
  const VecX x = bars::perturbed(input, 0.08, 3);
  std::vector<Mat3> F;
  deformation_gradients(*elements, x, F);
  const auto count = std::count_if(F.begin(), F.end(), [](const Mat3& f) { return f.determinant() <= 0; });
  Assembled out;
  assemble(*elements, x, {}, out);
  EXPECT_GT(count, 3);
  EXPECT_EQ(out.inverted, count);
}

TEST(Assemble, GradientsAndDensitiesPerElement) {
  const ElementInput input = mixture();
  const auto elements = make_elements(input);
  Mat3 A;
  A << 1.1, 0.2, 0, -0.1, 0.9, 0.3, 0.05, 0, 1.2;
  VecX x = bars::positions(input);
  for (Index i = 0; i < node_count(*elements); ++i) node(x, i) = A * input.rest[i];
  std::vector<Mat3> F;
  std::vector<double> psi;
  deformation_gradients(*elements, x, F);
  energy_densities(*elements, x, kActivation, psi);
  ASSERT_EQ(F.size(), input.elements.size());
  for (std::size_t e = 0; e < F.size(); ++e) {
    EXPECT_LE((F[e] - A).norm(), 1e-13);
    const ElementMaterial& m = input.material[e];
    const double a = m.activation_channel < 0 ? 0 : kActivation[m.activation_channel];
    EXPECT_NEAR(psi[e], material::psi(m, A, a), 1e-11 * psi[e]);
  }
}

TEST(Assemble, NodesWithoutElementsGetZeros) {
  ElementInput input = bars::block(1, 1, 1, 0.1, soft());
  input.rest.insert(input.rest.begin(), Vec3(5, 5, 5));
  input.rest.emplace_back(6, 6, 6);
  for (Tet& t : input.elements)
    for (Index& i : t) ++i;
  const auto elements = make_elements(input);
  Assembled out;
  out.f = VecX::Ones(3 * 10);
  assemble(*elements, bars::perturbed(input, 0.02, 1), {}, out);
  EXPECT_EQ(out.f.head<3>().norm(), 0);
  EXPECT_EQ(out.f.tail<3>().norm(), 0);
  const MatX K = bars::dense(out.K);
  EXPECT_EQ(K.topRows<3>().norm(), 0);
  EXPECT_EQ(K.bottomRows<3>().norm(), 0);
}

TEST(Assemble, ChecksItsArguments) {
  const ElementInput input = mixture(1, 1, 1);
  const auto elements = make_elements(input);
  Assembled out;
  EXPECT_THROW(assemble(*elements, VecX::Zero(6), kActivation, out), Error);
  EXPECT_THROW(assemble(*elements, bars::positions(input), {}, out), Error);
  const std::vector<double> too_much = {0.1, 1.0};
  EXPECT_THROW(assemble(*elements, bars::positions(input), too_much, out), Error);
}

TEST(Elements, MassAndVolume) {
  const ElementInput input = bars::block(3, 2, 5, 0.1, soft());
  const auto elements = make_elements(input);
  EXPECT_NEAR(lumped_mass(*elements).sum(), 900 * 0.3 * 0.2 * 0.5, 1e-12);
  EXPECT_GT(lumped_mass(*elements).minCoeff(), 0);
  for (double v : rest_volume(*elements)) EXPECT_NEAR(v, 1e-3 / 6, 1e-17);
  EXPECT_EQ(element_count(*elements), 180);
  EXPECT_EQ(node_count(*elements), 4 * 3 * 6);
}

void expect_refused(const ElementInput& input, const std::string& word) {
  try {
    make_elements(input);
    FAIL() << "accepted, expected a message about " << word;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput) << e.what();
    EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("element 3"), std::string::npos) << e.what();
  }
}

TEST(Elements, RefusesBadInput) {
  const ElementInput good = bars::block(1, 1, 1, 0.1, soft());
  ElementInput bad = good;
  std::swap(bad.elements[3][0], bad.elements[3][1]);
  expect_refused(bad, "inverted");
  bad = good;
  bad.elements[3][1] = 99;
  expect_refused(bad, "node 99");
  bad = good;
  bad.elements[3][1] = bad.elements[3][0];
  expect_refused(bad, "twice");
  bad = good;
  bad.material[3].poisson = 0.5;
  expect_refused(bad, "poisson");
  bad = good;
  bad.material[3].young = -1;
  expect_refused(bad, "young");
  bad = good;
  bad.material[3].density = 0;
  expect_refused(bad, "density");
  bad = good;
  bad.material[3].fibre = FibreModel::kFung;
  bad.material[3].fibre_direction = Vec3(1, 1, 0);
  expect_refused(bad, "unit");
  bad = good;
  bad.elements[3] = {0, 1, 3, -1};
  expect_refused(bad, "node -1");  // a triangle must say which kind it is
  bad.kinds.assign(bad.elements.size(), ElementKind::kTetrahedron);
  bad.kinds[3] = ElementKind::kPlaneTriangle;
  expect_refused(bad, "thickness");
  bad.material[3].thickness = 0.01;
  bad.elements[3] = good.elements[3];
  expect_refused(bad, "plane-triangle with a fourth node");
}

}  // namespace
}  // namespace limber::fem
