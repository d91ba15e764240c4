#pragma once

#include <limber/core/types.hpp>

namespace limber {

// Inertia about the origin of a point mass at r [kg m^2].
inline Mat3 point_inertia(double mass, const Vec3& r) {
  return mass * (r.squaredNorm() * Mat3::Identity() - r * r.transpose());
}

}  // namespace limber
