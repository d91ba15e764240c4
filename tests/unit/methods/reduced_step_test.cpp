// The condensed system's time rules against the closed solution of an oscillator.
#include <limber/methods/conjac/reduced_step.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace limber {
namespace {

// Two uncoupled oscillators m x'' + (a m + b k) x' + k x = p, x(0) = 0, x'(0) = v0.
ReducedSystem oscillators(double h, double a, double b) {
  ReducedSystem s;
  s.h = h;
  s.M = Vec2(2, .5).asDiagonal();
  s.S = Vec2(8, 50).asDiagonal();
  s.damping_mass = a;
  s.damping_stiffness = b;
  s.force = Vec2(1, -2);
  s.momentum = s.M * Vec2(.3, 1);
  s.k_w = s.m_w = VecX::Zero(2);
  s.k_p = VecX::Zero(2);
  s.prepare();
  return s;
}

Vec2 exact(double t, double a, double b) {
  const double m[] = {2, .5}, k[] = {8, 50}, p[] = {1, -2}, v[] = {.3, 1};
  Vec2 x;
  for (int i = 0; i < 2; ++i) {
    const double w2 = k[i] / m[i], c = .5 * (a + b * w2), w = std::sqrt(w2 - c * c), rest = p[i] / k[i];
    x[i] = rest + std::exp(-c * t) * (-rest * std::cos(w * t) + (v[i] - rest * c) / w * std::sin(w * t));
  }
  return x;
}

TEST(ReducedStep, ModalIsExact) {
  for (double a : {0., .7})
    for (double b : {0., .02}) {
      const ReducedMotion m = oscillators(.3, a, b).modal();
      EXPECT_LT((m.displacement - exact(.3, a, b)).norm(), 1e-13) << a << " " << b;
      const Vec2 rate = (exact(.3 + 1e-6, a, b) - exact(.3 - 1e-6, a, b)) / 2e-6;
      EXPECT_LT((m.velocity - rate).norm(), 1e-8);
    }
}

TEST(ReducedStep, ModalMovesFreeBodiesUniformly) {
  ReducedSystem s = oscillators(.3, 0, 0);
  s.S.setZero();
  s.prepare();
  const ReducedMotion m = s.modal();
  EXPECT_NEAR(m.displacement[0], .3 * .3 + .5 * .5 * .09, 1e-14);
  EXPECT_NEAR(m.velocity[1], 1 - 4 * .3, 1e-14);
}

// Errors of one step: third order for theta = 1/2, second for theta = 1 and for the paper's rule.
TEST(ReducedStep, OrdersOfTheRules) {
  auto error = [](double h, int rule) {
    const ReducedSystem s = oscillators(h, .3, .01);
    const ReducedMotion m = rule == 0 ? s.theta(.5) : rule == 1 ? s.theta(1) : s.linear_implicit(1);
    return (m.displacement - exact(h, .3, .01)).norm();
  };
  EXPECT_NEAR(std::log2(error(.02, 0) / error(.01, 0)), 3, .15);
  EXPECT_NEAR(std::log2(error(.004, 1) / error(.002, 1)), 2, .2);
  EXPECT_NEAR(std::log2(error(.004, 2) / error(.002, 2)), 2, .2);
}

TEST(ReducedStep, HalfThetaKeepsEnergyAndDampingIsAccountedFor) {
  ReducedSystem s = oscillators(.2, 0, 0);
  s.force.setZero();
  s.prepare();
  auto energy = [&](const VecX& x, const VecX& v) { return .5 * v.dot(s.M * v) + .5 * x.dot(s.S * x); };
  const VecX none = VecX::Zero(2);
  ReducedMotion m = s.theta(.5);
  EXPECT_NEAR(energy(m.displacement, m.velocity), energy(none, s.v0), 1e-14);
  EXPECT_EQ(s.dissipation(m), 0);
  s.damping_mass = .4;
  s.damping_stiffness = .03;
  m = s.theta(.5);
  EXPECT_NEAR(energy(m.displacement, m.velocity) + s.dissipation(m), energy(none, s.v0), 1e-14);
}

// A constant force makes the midpoint linearisation exact, wherever the predictor pointed.
TEST(ReducedStep, PredictorDropsOutOfALinearSystem) {
  ReducedSystem start = oscillators(.1, 0, 0), middle = start;
  middle.fraction = .5;
  middle.k_p = middle.S * Vec2(5, -3);
  middle.force = start.force - .5 * middle.h * middle.k_p;
  middle.prepare();
  EXPECT_LT((start.theta(.5).displacement - middle.theta(.5).displacement).norm(), 1e-14);
}

}  // namespace
}  // namespace limber
