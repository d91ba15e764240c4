// The whole method, remeshing included: a strip that hangs over a frictionless edge runs off it.
#include <limber/core/parallel.hpp>
#include <limber/methods/cloth/memory.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <fmt/format.h>

namespace limber::cloth {
namespace {

constexpr double kGravity = 9.8;

// A strip of 1 m x 0.2 m on a box whose edge is at x = 0, b0 of it hanging down.
Simulation falling(double b0, double h, double bending = 0, double young = 5e4, int cells = 10) {
  const std::string text = fmt::format(
      R"({{"limber": 1, "time": {{"step": {}, "end": 100}}, "gravity": [0, 0, -{}],
          "method": {{"type": "cloth", "eol": true, "size_min": {}, "size_max": {}, "refine_angle": 10,
                      "refine_velocity": 100, "refine_compression": 100}},
          "bodies": [{{"name": "strip", "elements": "cloth", "thickness": 0.001, "area_density": 0.05, "bending": {},
                      "mesh": {{"shape": "rectangle", "size": [1, 0.2], "nodes": [{}, {}]}}, "translation": [{}, 0, 0],
                      "material": {{"model": "st-venant-kirchhoff", "young": {}, "poisson": 0}}}}],
          "obstacles": [{{"shape": "box", "point": [-2, 0, -1], "size": [4, 4, 2], "friction": 0}}],
          "contact": {{"overlap": "accept"}}}})",
      h, kGravity, 0.7 / cells, 1.0 / cells, bending, cells + 1, cells / 5 + 1, b0 - 1, young);
  Simulation sim(std::make_shared<const Scene>(read_scene(text, "falling.json")));
  VecX x = sim.state().x;
  for (Index i = 0; i < sim.model().nodes(); ++i)
    if (x[3 * i] > 0) {
      x[3 * i + 2] = -x[3 * i];
      x[3 * i] = 0;
    }
  sim.set_motion(x, VecX::Zero(x.size()));
  return sim;
}

// How much hangs down: from the material coordinates of the vertices on the edge; negative: there are none.
double hanging(const Simulation& sim, double b0) {
  const ClothMemory* m = memory_of<ClothMemory>(sim.state());
  if (!m) return b0;
  double sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < m->feature.size(); ++i)
    if (m->feature[i] >= 0) {
      sum += b0 - m->X[2 * i];  // the sheet ends at the material coordinate b0
      ++count;
    }
  return count > 0 ? sum / count : -1;
}

TEST(FallingStrip, RunsOffTheEdgeAsItShould) {
  const double h = 1e-3, b0 = 0.3;
  Simulation sim = falling(b0, h);
  const double start = sim.measured({}).total();
  for (int k = 0; k < 400; ++k) sim.step();
  const double expected = b0 * std::cosh(std::sqrt(kGravity) * 0.4);
  EXPECT_NEAR(expected, 0.5676, 1e-4);
  EXPECT_NEAR(hanging(sim, b0), expected, 3e-3 * expected);
  const Diagnostics d = sim.measured({});
  EXPECT_LT(std::abs(start - d.total()) / d.kinetic, 6e-3);
}

// Half of it hangs: the first step of 5 ms gives all of it g h/2, if it cannot stretch. From then on the set
// of bounds is that of the step before, but for what remeshing brings.
TEST(FallingStrip, BeginsToSlideAsItShould) {
  Simulation sim = falling(0.5, 5e-3, 0, 5e8);
  sim.step();
  const ClothMemory* m = memory_of<ClothMemory>(sim.state());
  ASSERT_NE(m, nullptr);
  int eol = 0;
  for (std::size_t i = 0; i < m->feature.size(); ++i)
    if (m->feature[i] >= 0) {
      EXPECT_NEAR(std::hypot(m->V[2 * i], m->V[2 * i + 1]), 0.0245, 0.0245 * 0.01);
      ++eol;
    }
  EXPECT_GT(eol, 1);
  int iterations = 0, parts = 0;
  for (int k = 0; k < 20; ++k) {
    const StepReport report = sim.step();
    iterations += report.iterations;
    parts += static_cast<int>(report.extra.at("parts"));
  }
  EXPECT_LE(iterations, 2 * parts);
}

// It leaves the edge where the tension is no more than rho u^2: b/L = (1 + sqrt(1 + 8 (b0/L)^2))/4. Remeshing
// makes the reaction swing a little, so that the place where it ends is that of the line through it: the
// reaction is sqrt(2) rho g (b0^2 + b - 2 b^2) per width. And it does end: the vertices become Lagrangian.
TEST(FallingStrip, LiftsOffWhereTheoryHasIt) {
  for (const double b0 : {0.3, 0.1}) {
    const double expected = (1 + std::sqrt(1 + 8 * b0 * b0)) / 4;
    // Stiff: it does not swing along itself. Fine: the vertices on the edge carry half an element of the
    // cloth that lies on the box, rho g l/2, which delays it by about l/7.
    Simulation sim = falling(b0, 1e-3, 0, 3e6, 30);
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, last = b0;
    for (int k = 0; k < 1500; ++k) {
      const StepReport report = sim.step();
      const double b = hanging(sim, b0);
      if (b < 0) break;
      last = b;
      if (b < 0.7 * expected || b > 0.98 * expected) continue;
      const double x = b - 2 * b * b, y = report.extra.at("eol_force");
      n += 1;
      sx += x;
      sy += y;
      sxx += x * x;
      sxy += x * y;
    }
    const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx), offset = (sy - slope * sx) / n;
    const double x = -offset / slope;  // of the line's zero: b - 2 b^2
    EXPECT_NEAR((1 + std::sqrt(1 - 8 * x)) / 4, expected, 0.01) << b0;
    EXPECT_NEAR(slope, 0.2 * 0.05 * std::sqrt(2) * kGravity, 0.15 * 0.2 * 0.05 * std::sqrt(2) * kGravity)
        << b0;
    EXPECT_LT(last, 1) << b0;
  }
}

TEST(FallingStrip, BendingStiffnessDoesNotStopIt) {
  double b[2];
  for (const double bending : {0.0, 1e-4}) {
    Simulation sim = falling(0.3, 1e-3, bending);
    for (int k = 0; k < 400; ++k) sim.step();
    b[bending > 0] = hanging(sim, 0.3);
  }
  EXPECT_NEAR(b[0], b[1], 1e-4);
}

// The same bits for any number of threads, and from a state that was put into another simulation.
TEST(FallingStrip, SameBits) {
  const int before = threads();
  std::uint64_t hash[3];
  for (const int n : {1, 2}) {
    set_threads(n);
    Simulation sim = falling(0.3, 2e-3);
    for (int k = 0; k < 150; ++k) sim.step();
    hash[n - 1] = hash_state(sim.state());
  }
  set_threads(before);
  Simulation first = falling(0.3, 2e-3);
  for (int k = 0; k < 90; ++k) first.step();
  Simulation second = falling(0.3, 2e-3);
  second.restore(first.state());
  for (int k = 0; k < 60; ++k) second.step();
  hash[2] = hash_state(second.state());
  EXPECT_EQ(hash[0], hash[1]);
  EXPECT_EQ(hash[0], hash[2]);
}

}  // namespace
}  // namespace limber::cloth
