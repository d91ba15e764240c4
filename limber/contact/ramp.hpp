// Springs that push only, with a second derivative that is continuous, so that Newton's method sees them
// coming.
#pragma once

namespace limber {

// u^2/2 for u far below zero and 0 above it, joined by a cubic of width `e`; and its derivatives.
struct Ramp {
  double value = 0, first = 0, second = 0;
};

inline Ramp ramp(double u, double e) {
  if (u >= 0) return {};
  if (u <= -e) return {0.5 * u * u + 0.5 * e * u + e * e / 6, u + 0.5 * e, 1};
  return {-u * u * u / (6 * e), -0.5 * u * u / e, -u / e};
}

// Friction: |u| beyond the slip length e, smooth below it. `value`, and the first and second derivatives
// divided by what keeps them finite at u = 0: s'/|u| and s''.
inline Ramp slide(double u, double e) {
  if (u >= e) return {u - e / 3, 1 / u, 0};
  return {u * u / e - u * u * u / (3 * e * e), 2 / e - u / (e * e), 2 / e - 2 * u / (e * e)};
}

}  // namespace limber
