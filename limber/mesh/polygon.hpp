// Faces with more than three corners, as triangles.
#pragma once

#include <limber/mesh/mesh.hpp>

#include <span>
#include <vector>

namespace limber {

// Corners - 2 triangles of a polygon that is about flat, in numbers of its corners: a fan from the first one
// where it is convex, else by cutting off ears. A polygon that crosses itself gives some triangles.
std::vector<Tri> cut_polygon(std::span<const Vec3> corners);

}  // namespace limber
