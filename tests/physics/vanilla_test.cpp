// The full-space method against theory.
#include "scenes.hpp"

#include <limber/core/parallel.hpp>
#include <limber/sim/static_solve.hpp>

#include <gtest/gtest.h>
#include <Eigen/Geometry>

#include <cmath>

namespace limber::test {
namespace {

constexpr double kPi = 3.14159265358979;

TEST(Vanilla, FreeFallIsExactToTheIntegrator) {
  auto s = bar({.04, .04, .14}, {3, 3, 5}, 1e4, .4, false);
  s->gravity = {0, -9.81, 0};
  use_vanilla(*s, 1);
  Simulation sim = simulate(s);
  run(sim, 100);
  // Implicit Euler: v_n = -n h g, x_n = -h^2 g n (n + 1) / 2.
  const double fallen = 9.81 * s->h * s->h * 100 * 101 / 2;
  for (Index i = 0; i < sim.model().nodes(); ++i) {
    ASSERT_NEAR(sim.state().x[3 * i + 1], sim.model().mesh.rest[i].y() - fallen, 1e-10);
    ASSERT_NEAR(sim.state().x[3 * i], sim.model().mesh.rest[i].x(), 1e-10);
  }
}

TEST(Vanilla, FreeBodyKeepsLinearMomentumExactlyAndSpinTheBetterTheSmallerTheStep) {
  auto spin_lost = [](double h) {
    auto s = bar({.04, .04, .14}, {3, 3, 5}, 1e5, .4, false);
    s->h = h;
    s->bodies[0].velocity = {.2, 0, .1};
    s->bodies[0].angular_velocity = {0, 2, 0};
    use_vanilla(*s, 1);
    Simulation sim = simulate(s);
    const Diagnostics a = measure(sim.model(), sim.state(), {});
    run(sim, static_cast<int>(std::lround(.5 / h)));
    const Diagnostics b = measure(sim.model(), sim.state(), {});
    EXPECT_LT((a.momentum - b.momentum).norm(), 1e-11 * a.momentum.norm());
    // About the centre of mass, so that rounding of the position does not enter.
    const Vec3 la = a.angular_momentum - a.center_of_mass.cross(a.momentum);
    const Vec3 lb = b.angular_momentum - b.center_of_mass.cross(b.momentum);
    return (la - lb).norm() / la.norm();
  };
  const double coarse = spin_lost(4e-3), fine = spin_lost(2e-3);
  EXPECT_LT(coarse, .1);
  EXPECT_LT(fine, .7 * coarse);
}

// A cantilever under its own weight: tip deflection w L^4 / (8 E I), with the shear term of Timoshenko.
// Poisson's ratio 0, so that beam theory holds and linear tetrahedra do not lock; what is left is the bending
// stiffness of linear elements, second order in the size.
TEST(Vanilla, CantileverDeflectionConvergesToBeamTheory) {
  const double L = .4, a = .04, E = 1e6, rho = 1000, g = .05;
  const double I = a * a * a * a / 12, w = rho * a * a * g;
  const double theory = w * std::pow(L, 4) / (8 * E * I) + w * L * L / (2 * (5. / 6) * (E / 2) * a * a);
  auto deflection = [&](Index cells) {
    auto s = bar({a, a, L}, {cells + 1, cells + 1, static_cast<Index>(10 * cells + 1)}, E, 0);
    s->gravity = {0, -g, 0};
    Simulation sim = simulate(s);
    StepInput in;
    State state = sim.state();
    script_input(sim.model(), state, 1e-2, in);
    EXPECT_TRUE(solve_static(sim.model(), in, state.x, 1e-9).converged);
    double sum = 0;
    int count = 0;
    for (Index i = 0; i < sim.model().nodes(); ++i)
      if (sim.model().mesh.rest[i].z() > L - 1e-9) {
        sum += sim.model().mesh.rest[i].y() - state.x[3 * i + 1];
        ++count;
      }
    return sum / count;
  };
  const double e3 = std::abs(deflection(3) / theory - 1), e4 = std::abs(deflection(4) / theory - 1),
               e6 = std::abs(deflection(6) / theory - 1);
  EXPECT_LT(e6, .1);
  EXPECT_GT(std::log(e3 / e4) / std::log(4. / 3), 1.5);  // observed order
  EXPECT_GT(std::log(e4 / e6) / std::log(1.5), 1.5);
}

TEST(Vanilla, CantileverPeriodMatchesBeamTheory) {
  const double L = .4, a = .04, E = 1e6, rho = 1000;
  const double I = a * a * a * a / 12;
  const double theory = 2 * kPi * L * L / (1.8751 * 1.8751) / std::sqrt(E * I / (rho * a * a));
  auto period = [&](Index cells) {
    auto s = bar({a, a, L}, {cells + 1, cells + 1, static_cast<Index>(10 * cells + 1)}, E, 0);
    s->h = theory / 200;
    s->end = 3 * theory;
    use_vanilla(*s, .5);
    Simulation sim = simulate(s);
    State state = sim.state();
    for (Index i = 0; i < sim.model().nodes(); ++i) {
      const double z = sim.model().mesh.rest[i].z() / L;
      state.v[3 * i] = 1e-3 * z * z * (6 - 4 * z + z * z) / 3;
    }
    sim.restore(state);
    const Index tip = sim.model().nodes() - 1;
    double before = 0, crossing = 0;
    while (!sim.done()) {
      sim.step();
      const double x = sim.state().x[3 * tip] - sim.model().mesh.rest[tip].x();
      if (before < 0 && x >= 0) {
        crossing = sim.state().t - s->h * x / (x - before);
        break;
      }
      before = x;
    }
    return crossing;  // one period after the start at zero
  };
  const double e2 = std::abs(period(2) / theory - 1), e4 = std::abs(period(4) / theory - 1);
  EXPECT_LT(e4, .1);
  EXPECT_LT(e4, .45 * e2);  // about second order in the element size
}

TEST(Vanilla, RotatedRestShapeStaysAtRest) {
  auto s = bar({.04, .04, .14}, {3, 3, 5}, 1e5, .45, false);
  s->bodies[0].rotation = {.4, 1.2, -.7};
  use_vanilla(*s, 1);
  Simulation sim = simulate(s);
  run(sim, 50);
  const Diagnostics d = measure(sim.model(), sim.state(), {});
  EXPECT_LT(d.max_speed, 1e-9);
  EXPECT_LT(d.elastic, 1e-14 * 1e5 * .04 * .04 * .14);  // rounding of E times volume
}

TEST(Vanilla, StepperIsScratchAndThreadsDoNotMatter) {
  auto s = bar({.04, .04, .14}, {4, 4, 9}, 1e4, .45);
  s->gravity = {0, -9.81, 0};
  use_vanilla(*s, 1);
  set_threads(1);
  Simulation one = simulate(s);
  run(one, 20);
  set_threads(2);
  Simulation two = simulate(s);
  for (int k = 0; k < 20; ++k) {
    Simulation fresh = simulate(s);
    fresh.restore(two.state());
    two.step();
    fresh.step();
    ASSERT_TRUE(fresh.state().x == two.state().x);
  }
  set_threads(0);
  EXPECT_TRUE(one.state().x == two.state().x);
  EXPECT_TRUE(one.state().v == two.state().v);
}

TEST(Vanilla, AnalysesOncePerEpoch) {
  auto s = bar({.04, .04, .14}, {3, 3, 5}, 1e4, .4);
  s->gravity = {0, -9.81, 0};
  use_vanilla(*s, 1);
  Simulation sim = simulate(s);
  for (int k = 0; k < 10; ++k) EXPECT_EQ(sim.step().symbolic_analyses, 1);
}

TEST(Vanilla, BlowUpIsReportedAndTheStateStays) {
  auto s = bar({.04, .04, .14}, {3, 3, 5}, 1e4, .4);
  ForceSpec pull;
  pull.force = {1e12, 0, 0};
  s->forces.push_back(pull);
  use_vanilla(*s, 1);
  Simulation sim = simulate(s);
  try {
    run(sim, 20);
    FAIL() << "a force of 1e12 N should have been noticed";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("step "), std::string::npos) << e.what();
    EXPECT_TRUE(sim.state().x.allFinite());
  }
}

}  // namespace
}  // namespace limber::test
