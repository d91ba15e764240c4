// Triangles for things that are not the body: marks and obstacles; and the normals and cut face of the body.
#pragma once

#include <limber/io/replay.hpp>
#include <limber/view/raster.hpp>

#include <Eigen/Geometry>

#include <functional>
#include <span>
#include <vector>

namespace limber::view {

// For every corner of every triangle the group whose normal it shares: corners of one node, unless the rest
// shape has a sharp edge between them.
struct SmoothGroups {
  std::vector<Index> of_corner;  // 3 per triangle
  Index count = 0;
};
SmoothGroups smooth_groups(const std::vector<float>& rest, const std::vector<Tri>& triangles);
std::vector<Vec3f> group_normals(const SmoothGroups& groups, const std::vector<Tri>& triangles,
                                 const std::vector<Vec3f>& x);

// What lies at normal . x > offset is cut away.
struct CutPlane {
  Vec3f normal;
  float offset;
  float side(const Vec3f& p) const { return normal.dot(p) - offset; }
};
// Adds the kept part of a triangle.
void add_clipped(Triangles& out, const std::array<Vec3f, 3>& p, const std::array<Vec3f, 3>& n,
                 const std::array<float, 3>& v, std::uint8_t paint, const CutPlane* cut);
// Adds the face on which the plane cuts the tetrahedra; `value(element, node)`.
void add_cap(Triangles& out, const std::vector<Tet>& elements, const std::vector<Vec3f>& x,
             const std::function<float(std::size_t, Index)>& value, std::uint8_t paint, const CutPlane& cut);

void add_sphere(Triangles& out, const Vec3f& center, float radius, int detail, std::uint8_t paint);
void add_octahedron(Triangles& out, const Vec3f& center, float radius, std::uint8_t paint);
// A thin line from a to b.
void add_stick(Triangles& out, const Vec3f& a, const Vec3f& b, float radius, std::uint8_t paint);
// An obstacle other than a plane, at its pose, moved to the stage.
void add_obstacle(Triangles& out, const ReplayObstacle& obstacle, const ReplayPose& pose,
                  const std::function<Vec3f(const Vec3f&)>& to_stage, std::uint8_t paint);
Vec3f posed(const ReplayPose& pose, const Vec3f& p);
Vec3f posed_direction(const ReplayPose& pose, const Vec3f& d);

}  // namespace limber::view
