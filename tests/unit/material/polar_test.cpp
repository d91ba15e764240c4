#include <limber/material/polar.hpp>

#include "samples.hpp"

#include <gtest/gtest.h>

namespace limber::material {
namespace {

Svd<double> decompose(const Mat3& F) { return svd(from_eigen(F)); }

TEST(Polar, RotationTimesStretch) {
  for (const auto& s : samples::regular()) {
    const Mat3 R = to_eigen(rotation(decompose(s.F))), S = to_eigen(stretch(decompose(s.F)));
    EXPECT_LE((R * S - s.F).norm(), 1e-14 * s.F.norm()) << s.name;
    EXPECT_LE((R.transpose() * R - Mat3::Identity()).norm(), 1e-14) << s.name;
    EXPECT_LE((S - S.transpose()).norm(), 1e-14 * s.F.norm()) << s.name;
  }
}

// Central differences of R and S along F + t Fdot, second order in the step.
TEST(Polar, RatesAreDerivatives) {
  std::mt19937 rng(1);
  for (const auto& s : samples::regular()) {
    const Mat3 Fdot = samples::noise(rng);
    const Svd<double> d = decompose(s.F);
    const Mat3 Rdot = to_eigen(rotation_rate(d, from_eigen(Fdot)));
    const Mat3 Sdot = to_eigen(stretch_rate(d, from_eigen(Fdot)));
    EXPECT_LE((Rdot * to_eigen(stretch(d)) + to_eigen(rotation(d)) * Sdot - Fdot).norm(),
              1e-13 * (1 + Rdot.norm()))
        << s.name;
    double error[3];
    for (int k = 0; k < 3; ++k) {
      const double h = 1e-3 * std::pow(0.25, k);
      const Svd<double> plus = decompose(s.F + h * Fdot), minus = decompose(s.F - h * Fdot);
      const Mat3 dR = (to_eigen(rotation(plus)) - to_eigen(rotation(minus))) / (2 * h);
      const Mat3 dS = (to_eigen(stretch(plus)) - to_eigen(stretch(minus))) / (2 * h);
      error[k] = (dR - Rdot).norm() / (1 + Rdot.norm()) + (dS - Sdot).norm() / (1 + Sdot.norm());
    }
    EXPECT_LT(error[2], 1e-5) << s.name;
    if (error[0] > 1e-8) {
      EXPECT_NEAR(std::log(error[0] / error[1]) / std::log(4), 2, 0.2) << s.name << " " << error[0];
    }
  }
}

TEST(Polar, RigidMotionDoesNotStretch) {
  std::mt19937 rng(2);
  std::uniform_real_distribution<double> uniform(-50, 50);
  for (const auto& s : samples::regular()) {
    Mat3 spin;  // [rad/s]
    const Vec3 w(uniform(rng), uniform(rng), uniform(rng));
    spin << 0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0;
    const Svd<double> d = decompose(s.F);
    EXPECT_LE(to_eigen(stretch_rate(d, from_eigen(spin * s.F))).norm(), 1e-13 * w.norm() * s.F.norm())
        << s.name;
    EXPECT_LE((to_eigen(rotation_rate(d, from_eigen(spin * s.F))) - spin * to_eigen(rotation(d))).norm(),
              1e-12 * w.norm() * (1 + s.F.norm()))
        << s.name;
  }
}

}  // namespace
}  // namespace limber::material
