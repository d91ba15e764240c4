// Energies of the invariants: against the built-in models of the same formula, and against differences.
#include "samples.hpp"

#include <limber/core/error.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/material/energy_formula.hpp>
#include <limber/material/lame.hpp>
#include <limber/material/own_energy.hpp>
#include <limber/mesh/generate.hpp>

#include <gtest/gtest.h>

namespace limber::material {
namespace {

constexpr const char* kStable = "mu/2*(I1 - 3) - mu*(J - 1) + (lambda + mu)/2*(J - 1)^2";
// mu |E|^2 + lambda/2 tr(E)^2: |C|^2 = I1^2 - 2 I2.
constexpr const char* kStVk = "mu/4*(I1^2 - 2*I2 - 2*I1 + 3) + lambda/8*(I1 - 3)^2";

ElementMaterial with_energy(const std::string& text, double poisson = 0.4) {
  ElementMaterial m = samples::make(MaterialModel::kInvariants, poisson);
  m.energy = parse_energy(text);
  return m;
}

std::string message_of(const std::string& text) {
  try {
    parse_energy(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(EnergyFormula, EqualsTheBuiltInModelOfTheSameFormula) {
  for (const auto& [text, model] : {std::pair{kStable, MaterialModel::kStableNeoHookean},
                                    std::pair{kStVk, MaterialModel::kStVenantKirchhoff}}) {
    const ElementMaterial own = with_energy(text), known = samples::make(model);
    for (const samples::Sample& s : samples::regular()) {
      const double scale = 1e5 * (1 + std::pow(s.F.norm(), 4));
      EXPECT_NEAR(psi(own, s.F), psi(known, s.F), 1e-12 * scale) << s.name;
      EXPECT_LT((pk1(own, s.F) - pk1(known, s.F)).norm(), 1e-12 * scale) << s.name;
      EXPECT_LT((dpk1(own, s.F) - dpk1(known, s.F)).norm(), 1e-11 * scale) << s.name;
      EXPECT_LT((dpk1(own, s.F, 0, true) - dpk1(known, s.F, 0, true)).norm(), 1e-11 * scale) << s.name;
    }
  }
}

// Over a mesh, in batches of the kernels: forces and stiffness.
TEST(EnergyFormula, AssemblesTheSameForcesAndStiffness) {
  const TetMesh box = make_box({1, 1, 1}, {4, 4, 4});
  fem::ElementInput input;
  input.rest = box.nodes;
  input.elements = box.tets;
  VecX x(3 * static_cast<Eigen::Index>(box.nodes.size()));
  for (Index i = 0; i < x.size() / 3; ++i) {
    const Vec3& p = box.nodes[at(i)];
    node(x, i) = Vec3(p.x() + 0.1 * p.y() * p.y(), 1.1 * p.y() - 0.05 * p.z(), p.z() + 0.2 * p.x() * p.y());
  }
  fem::Assembled system[2];
  for (int k = 0; k < 2; ++k) {
    input.material.assign(box.tets.size(),
                          k == 0 ? samples::make(MaterialModel::kStableNeoHookean) : with_energy(kStable));
    fem::assemble(*fem::make_elements(input), x, {}, system[k]);
  }
  EXPECT_NEAR(system[0].energy, system[1].energy, 1e-12 * system[0].energy);
  EXPECT_LT((system[0].f - system[1].f).norm(), 1e-12 * system[0].f.norm());
  double worst = 0, size = 0;
  for (std::size_t i = 0; i < system[0].K.values.size(); ++i) {
    worst = std::max(worst, std::abs(system[0].K.values[i] - system[1].K.values[i]));
    size = std::max(size, std::abs(system[0].K.values[i]));
  }
  EXPECT_LT(worst, 1e-12 * size);
}

// All that formulas may hold, by differences: psi -> pk1 -> dpk1.
TEST(EnergyFormula, IsDifferentiatedExactly) {
  for (const char* text : {"mu/2*(I1*J^(-2/3) - 3) + lambda/2*log(J)^2 + mu/10*(I2*J^(-4/3) - 3)^2",
                           "mu/2*(exp(I1 - 3 - 2*log(J)) - 1) + lambda*(J - log(J) - 1)",
                           "mu*(sqrt(I2/3)^3 - J^2) + lambda/4*(J^2 - 2*log(J) - 1)"}) {
    const ElementMaterial m = with_energy(text);
    std::mt19937 rng(3);
    for (int k = 0; k < 5; ++k) {
      const Mat3 F = Mat3::Identity() + 0.2 * samples::noise(rng), dF = samples::noise(rng);
      const double h = 1e-5;
      const double slope = (psi(m, F + h * dF) - psi(m, F - h * dF)) / (2 * h);
      EXPECT_NEAR((pk1(m, F).array() * dF.array()).sum(), slope, 1e-6 * m.young) << text;
      const Mat3 change = (pk1(m, F + h * dF) - pk1(m, F - h * dF)) / (2 * h);
      const Eigen::Matrix<double, 9, 1> product =
          dpk1(m, F) * Eigen::Map<const Eigen::Matrix<double, 9, 1>>(dF.data());
      EXPECT_LT((product - Eigen::Map<const Eigen::Matrix<double, 9, 1>>(change.data())).norm(),
                1e-5 * m.young)
          << text;
    }
  }
}

TEST(EnergyFormula, DoesNotDependOnTheFrameAndIsZeroAtRest) {
  // With a constant that the formula itself does not take off.
  const ElementMaterial m = with_energy("mu/2*(I1 - 3) + (lambda + mu)/2*(J - 1 - mu/(lambda + mu))^2");
  std::mt19937 rng(5);
  EXPECT_NEAR(psi(m, Mat3::Identity()), 0, 1e-9);
  EXPECT_LT(pk1(m, Mat3::Identity()).norm(), 1e-9 * m.young);
  for (int k = 0; k < 10; ++k) {
    const Mat3 F = Mat3::Identity() + 0.5 * samples::noise(rng), R = samples::rotation(rng),
               Q = samples::rotation(rng);
    EXPECT_NEAR(psi(m, R * F), psi(m, F), 1e-9 * m.young);
    EXPECT_NEAR(psi(m, F * Q), psi(m, F), 1e-9 * m.young);
    EXPECT_LT((pk1(m, R * F) - R * pk1(m, F)).norm(), 1e-9 * m.young);
  }
}

TEST(EnergyFormula, SaysWhereItStopsMakingSense) {
  EXPECT_NE(message_of("mu/2*(I1 - 3) + foo").find("unknown name \"foo\""), std::string::npos);
  EXPECT_NE(message_of("mu/2*(I1 - 3) + foo").find("at character 17"), std::string::npos);
  EXPECT_NE(message_of("mu*(I1 - 3").find("expected ) at the end"), std::string::npos);
  EXPECT_NE(message_of("2 mu").find("expected an operator"), std::string::npos);
  EXPECT_NE(message_of("mu*Ic").find("it is called I1"), std::string::npos);
  EXPECT_NE(message_of("mu*x").find("let young vary"), std::string::npos);
  EXPECT_NE(message_of("mu**2").find("a power is written ^"), std::string::npos);
  EXPECT_NE(message_of("").find("empty"), std::string::npos);
  EXPECT_NE(message_of(std::string(100, '(') + "1").find("nested too deeply"), std::string::npos);
}

TEST(EnergyFormula, SaysWhatIsWrongAtRest) {
  const auto misfit = [](const char* text) { return rest_misfit(rest_state(*parse_energy(text), 1e5, 1e5)); };
  EXPECT_EQ(misfit(kStable), "");
  EXPECT_EQ(misfit(kStVk), "");
  EXPECT_NE(misfit("mu/2*(I1 - 3) + lambda/2*(J - 1)^2").find("not free of stress"), std::string::npos);
  EXPECT_NE(misfit("lambda/2*(J - 1)^2").find("not stable"), std::string::npos);
  EXPECT_NE(misfit("mu - lambda").find("resists nothing"), std::string::npos);
  EXPECT_NE(misfit("mu*log(J - 1)").find("no finite value"), std::string::npos);
  // Small strain: Lame's constants come out.
  const RestState rest = rest_state(*parse_energy(kStable), 3e4, 7e4);
  EXPECT_NEAR(rest.mu, 3e4, 1e-6);
  EXPECT_NEAR(rest.lambda, 7e4, 1e-6);
}

struct TwiceStable {
  static constexpr const char* kName = "twice-stable";
  static constexpr const char* kSummary = "stable neo-Hookean, twice";
  template <class T>
  static T psi(const T& I1, const T&, const T& J, double mu, double lambda) {
    return mu * (I1 - 3) - 2 * mu * (J - 1) + (lambda + mu) * (J - 1) * (J - 1);
  }
};
struct UnderStress {
  static constexpr const char* kName = "under-stress";
  static constexpr const char* kSummary = "not at rest";
  template <class T>
  static T psi(const T& I1, const T&, const T&, double mu, double) {
    return mu * (I1 - 3);
  }
};

TEST(OwnMaterial, IsRegisteredWithOneLine) {
  register_material<TwiceStable>();
  const OwnEnergy* own = find_own_energy("twice-stable");
  ASSERT_NE(own, nullptr);
  ElementMaterial m = samples::make(MaterialModel::kInvariants);
  m.energy = {std::shared_ptr<void>(), own->energy};
  for (const samples::Sample& s : samples::regular())
    EXPECT_LT((pk1(m, s.F) - 2 * pk1(samples::make(MaterialModel::kStableNeoHookean), s.F)).norm(),
              1e-12 * 1e5 * (1 + std::pow(s.F.norm(), 4)));
  EXPECT_THROW(register_material<TwiceStable>(), Error);
  EXPECT_THROW(register_material<UnderStress>(), Error);
}

}  // namespace
}  // namespace limber::material
