// Points that are one.
#pragma once

#include <limber/core/types.hpp>

#include <span>
#include <vector>

namespace limber {

// For every point the first point within `tolerance` of it that is not itself such a follower; its own index
// when there is none. A tolerance that is not positive and finite gives the identity.
std::vector<Index> weld_map(std::span<const Vec3> points, double tolerance);

}  // namespace limber
