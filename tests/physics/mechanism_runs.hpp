// Running a mechanism without a scene.
#pragma once

#include "../unit/rigid/mechanisms.hpp"

#include <limber/rigid/sp.hpp>

#include <cmath>
#include <numbers>

namespace limber::rigid::testing {

constexpr double kPi = std::numbers::pi;

inline JointState start(const Mechanism& m) { return {initial_positions(m), initial_velocities(m), {}}; }

inline StepSettings settings(double h, const Vec3& gravity = Vec3(0, -9.81, 0)) {
  StepSettings s;
  s.h = h;
  s.gravity = gravity;
  return s;
}

inline void run(const Mechanism& m, const StepSettings& s, double end, JointState& state) {
  const std::vector<InnerSurface> surfaces = inner_surfaces(m);
  const int n = static_cast<int>(std::lround(end / s.h));
  for (int k = 0; k < n; ++k) step_bisp(m, surfaces, {}, {}, k * s.h, s, state);
}

}  // namespace limber::rigid::testing
