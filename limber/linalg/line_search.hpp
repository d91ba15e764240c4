// How far to go along a direction in which an energy falls: Armijo's rule, with a parabola to guess the next
// length, and with slopes where energies no longer tell.
#pragma once

#include <algorithm>
#include <cmath>

namespace limber {

// A point on the line x + length d.
struct LinePoint {
  double energy = 0;  // E [J]
  double slope = 0;   // dE/d(length) [J]
  double scale = 0;   // size of the terms that E is the sum of, for its rounding error [J]
  bool finite = true;
};

// Calls evaluate(length), which returns a LinePoint, for length = 1 and then shorter ones, until the energy
// has fallen enough. Where it is flat to rounding, the mean of the two slopes stands for its difference.
// Returns the length, that of the last call; 0 when none down to `shortest` will do, or when d does not lead
// down at all.
template <class Evaluate>
double line_search(const LinePoint& start, double shortest, Evaluate&& evaluate) {
  constexpr double kArmijo = 1e-4;
  const double slope = start.slope;
  if (!(slope < 0)) return 0;
  for (double length = 1; length >= shortest;) {
    const LinePoint end = evaluate(length);
    double shorter = 0.5 * length;
    if (end.finite) {
      const double difference = end.energy - start.energy;
      const double noise = 1e-14 * std::max(start.scale, end.scale);
      const bool enough = std::abs(difference) > 10 * noise ? difference <= kArmijo * length * slope
                                                            : 0.5 * (slope + end.slope) <= kArmijo * slope;
      if (enough) return length;
      // The minimum of the parabola through what is known.
      const double guess = end.slope > 0 ? length * slope / (slope - end.slope)
                                         : -0.5 * slope * length * length / (difference - slope * length);
      shorter = std::clamp(guess, 0.1 * length, 0.5 * length);
    }
    length = shorter;
  }
  return 0;
}

}  // namespace limber
