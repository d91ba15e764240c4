// Plain cloth against theory.
#include <limber/methods/methods.hpp>
#include <limber/sim/simulation.hpp>

#include <limber/core/parallel.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/hash.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <fmt/format.h>

namespace limber::cloth::test {
namespace {

void run(Simulation& sim, int steps) {
  for (int k = 0; k < steps; ++k) sim.step();
}

// A rectangle of cloth, a metre wide by default; `more` are further keys of the scene.
Simulation plain(const std::string& mesh, const std::string& body, const std::string& method,
                 const std::string& more) {
  const std::string text = fmt::format(
      R"({{"limber": 1, "time": {{"step": 0.002, "end": 100}}, "gravity": [0, 0, -10],
          "method": {{"type": "cloth"{}}},
          "bodies": [{{"name": "cloth", "elements": "cloth", "thickness": 0.001, "area_density": 0.1,
                      "mesh": {{"shape": "rectangle", {}}},
                      "material": {{"model": "corotational", "young": 1e5, "poisson": 0}}{}}}]{}}})",
      method, mesh, body, more);
  return Simulation(std::make_shared<const Scene>(read_scene(text, "cloth.json")));
}

// Implicit Euler: x falls by h^2 g n (n + 1)/2, and nothing else happens.
TEST(ClothPhysics, FreeFallIsExactToTheIntegrator) {
  Simulation sim =
      plain(R"("size": [1, 1], "nodes": [6, 6], "pattern": "irregular")", R"(, "bending": 1e-3)", "", "");
  run(sim, 50);
  const double fallen = 10 * 0.002 * 0.002 * 50 * 51 / 2;
  for (Index i = 0; i < sim.model().nodes(); ++i) {
    EXPECT_NEAR(sim.state().x[3 * i + 2], -fallen, 1e-12);
    EXPECT_NEAR(sim.state().x[3 * i], sim.model().mesh.rest[at(i)][0], 1e-12);
  }
  EXPECT_NEAR(sim.measured({}).momentum[2], -0.1 * 10 * 0.1, 1e-12);
}

// A curtain under its own weight is longer by rho g L^2/(2 E) per width (linear stress and strain).
TEST(ClothPhysics, AHangingSheetStretchesAsItShould) {
  const auto longer = [](int n) {
    Simulation sim = plain(fmt::format(R"("size": [0.2, 1], "nodes": [3, {}])", n + 1),
                           R"(, "rotation": [1.5707963267948966, 0, 0])", "",
                           R"(, "damping": {"mass": 6, "stiffness": 0.002},
                              "constraints": [{"nodes": {"formula": "z > 0.99"}}])");
    run(sim, 2500);
    double lowest = 1;
    for (Index i = 0; i < sim.model().nodes(); ++i) lowest = std::min(lowest, sim.state().x[3 * i + 2]);
    return -lowest;
  };
  // Each element has the load of its middle: the mean of linear stress is exact.
  EXPECT_NEAR(longer(8), 0.1 * 10 / (2 * 100), 0.02 * 0.005);
}

// On a slope of tan 0.5: friction below it lets the sheet slide with g (sin - mu cos), above it holds it.
TEST(ClothPhysics, FrictionOnASlope) {
  const double slope = std::atan(0.5), c = std::cos(slope), s = std::sin(slope);
  const auto speed = [&](double mu, const std::string& pattern, const std::string& method) {
    Simulation sim =
        plain(fmt::format(R"("size": [0.5, 0.5], "nodes": [9, 9], "pattern": "{}")", pattern),
              fmt::format(R"(, "rotation": [0, {}, 0])", slope), method,
              fmt::format(R"(, "obstacles": [{{"shape": "plane", "normal": [{}, 0, {}], "friction": {}}}])",
                          s, c, mu));
    for (int k = 0; k < 200; ++k) {
      const StepReport report = sim.step();
      EXPECT_EQ(report.fallbacks.count("friction-frozen"), 0u) << "step " << k;
    }
    return Vec3(c, 0, -s).dot(sim.measured({}).momentum) / (0.1 * 0.25);
  };
  const std::string adaptive = R"(, "mesh": "adaptive", "size_min": 0.03, "size_max": 0.1)";
  for (const auto& [pattern, method] :
       {std::pair<std::string, std::string>{"irregular", ""}, {"crossed", adaptive}}) {
    SCOPED_TRACE(pattern);
    EXPECT_NEAR(speed(0, pattern, method), 10 * s * 0.4, 1e-9);
    EXPECT_NEAR(speed(0.2, pattern, method), 10 * (s - 0.2 * c) * 0.4, 2e-3 * 10 * s * 0.4);
    EXPECT_NEAR(speed(0.49, pattern, method), 10 * (s - 0.49 * c) * 0.4, 2e-3 * 10 * s * 0.4);
    // What sticks is a spring: it may creep by a ten thousandth of a millimetre per second.
    EXPECT_NEAR(speed(0.51, pattern, method), 0, 1e-7);
    EXPECT_NEAR(speed(0.8, pattern, method), 0, 1e-7);
  }
}

// A cloth that has fallen crooked onto a slope and an edge, wrinkled and stretched: it comes to rest, and
// stays.
TEST(ClothPhysics, DrapedClothDoesNotCreep) {
  const double slope = 0.35;  // tan 0.365
  Simulation sim =
      plain(R"("size": [0.6, 0.6], "nodes": [15, 15], "pattern": "irregular")",
            R"(, "rotation": [0.2, 0.1, 0], "translation": [-0.3, -0.3, 0.25])", R"(, "air_density": 1.2)",
            fmt::format(R"(, "damping": {{"mass": 0, "stiffness": 0.001}},
      "obstacles": [{{"shape": "plane", "normal": [{}, 0, {}], "friction": 0.6}},
                    {{"shape": "sphere", "point": [0, 0, 0], "radius": 0.12, "friction": 0.6}}])",
                        std::sin(slope), std::cos(slope)));
  int frozen = 0;
  for (int k = 0; k < 1500; ++k) {
    const StepReport report = sim.step();
    frozen += report.fallbacks.count("friction-frozen") + report.fallbacks.count("contact-unsettled");
  }
  EXPECT_EQ(frozen, 0);
  const VecX before = sim.state().x;
  run(sim, 500);
  const double creep = (sim.state().x - before).lpNorm<Eigen::Infinity>();  // in a second [m]
  EXPECT_LT(creep, 1e-5);
  RecordProperty("creep", fmt::format("{}", creep));
}

// A beam of cloth, clamped at its end: w L^4/(8 B). The bending stiffness B of hinges depends on the mesh:
// 3/2 beta on a grid with parallel diagonals, less where they alternate.
TEST(ClothPhysics, BendingHoldsACantilever) {
  const auto deflection = [](double beta) {
    Simulation sim =
        plain(R"("size": [0.2, 0.05], "nodes": [17, 5])", fmt::format(R"(, "bending": {})", beta), "",
              R"(, "damping": {"mass": 20},
                              "constraints": [{"nodes": {"formula": "x < 0.013"}}])");
    run(sim, 1500);
    double lowest = 0;
    for (Index i = 0; i < sim.model().nodes(); ++i) lowest = std::min(lowest, sim.state().x[3 * i + 2]);
    return -lowest;
  };
  const double stiff = deflection(8e-3), soft = deflection(4e-3);
  EXPECT_NEAR(soft / stiff, 2, 0.05);  // linear
  const double L = 0.2 - 0.0125, plate = 0.1 * 10 * std::pow(L, 4) / 8;
  EXPECT_GT(stiff, plate / (1.5 * 8e-3));
  EXPECT_LT(stiff, plate / (1.0 * 8e-3));
}

// The drag of still air, 1/2 rho v^2 per area, balances the weight.
TEST(ClothPhysics, FallsNoFasterThanTheAirLetsIt) {
  Simulation sim = plain(R"("size": [1, 1], "nodes": [3, 3])", "", R"(, "air_density": 1.25)", "");
  run(sim, 2000);
  EXPECT_NEAR(sim.measured({}).momentum[2] / 0.1, -std::sqrt(2 * 0.1 * 10 / 1.25), 1e-6);
}

// The same bits for any number of threads, and from a state that was put into another simulation.
TEST(ClothPhysics, SameBits) {
  const auto make = [] {
    return plain(R"("size": [1, 1], "nodes": [13, 13], "pattern": "irregular")",
                 R"(, "translation": [-0.4, -0.45, 0.31], "bending": 1e-5)", R"(, "air_density": 1.2)",
                 R"(, "obstacles": [{"shape": "sphere", "radius": 0.3, "friction": 0.4}])");
  };
  const int before = threads();
  std::uint64_t hash[3];
  for (const int n : {1, 2}) {
    set_threads(n);
    Simulation sim = make();
    run(sim, 120);
    hash[n - 1] = hash_state(sim.state());
  }
  set_threads(before);
  Simulation first = make();
  run(first, 70);
  Simulation second = make();
  second.restore(first.state());
  run(second, 50);
  hash[2] = hash_state(second.state());
  EXPECT_EQ(hash[0], hash[1]);
  EXPECT_EQ(hash[0], hash[2]);
}

TEST(ClothPhysics, RefusesWhatItCannotDo) {
  EXPECT_THROW(plain(R"("size": [1, 1], "nodes": [3, 3])", R"(, "elements": "auto")", "", ""), Error);
}

}  // namespace
}  // namespace limber::cloth::test
