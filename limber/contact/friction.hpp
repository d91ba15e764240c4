// The friction filter of Bridson, Fedkiw and Anderson (2002).
#pragma once

#include <limber/core/types.hpp>

#include <algorithm>

namespace limber {

// The velocity v of a node after friction. Relative to the obstacle's velocity, the tangential part shrinks
// by mu times the change `dv_normal` >= 0 that the contact made to the normal velocity, and stops at zero.
inline Vec3 filter_friction(const Vec3& v, const Vec3& n, const Vec3& obstacle_velocity, double dv_normal,
                            double mu) {
  const Vec3 relative = v - obstacle_velocity;
  const Vec3 slip = relative - n.dot(relative) * n;
  const double speed = slip.norm();
  if (speed == 0) return v;
  return v - std::min(1.0, mu * dv_normal / speed) * slip;
}

}  // namespace limber
