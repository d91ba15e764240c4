// The surfaces inside joints and loop closures as a few contact points at fixed places (section 3.3.2):
//   pin (revolute joint, loop)  4 (or more) angles x 2 ends of a cylinder; a radial and an axial normal, one
//   tangent around slider (prismatic)          8 corners of a box; two wall normals, one tangent along the
//   axis ball (spherical)            6 points on the axes; one normal, two tangents
// Each point carries the impulse |a| summed over its normals; friction at it is bounded by mu times that.
#pragma once

#include <limber/rigid/constraints.hpp>

namespace limber::rigid {

struct InnerPoint {
  Vec3 x = Vec3::Zero();                // in the frame of link a [m]
  std::vector<Vec3> normals, tangents;  // unit vectors in the frame of link a
};

struct InnerSurface {
  std::string name;  // of the joint or loop
  bool loop = false;
  Index owner = 0;      // joint (= link) or loop
  Index a = 0, b = -1;  // child and parent, or the links of the loop; -1: the world
  double mu = 0;
  std::vector<InnerPoint> points;
  // Multipliers from the wrench on a about the joint's centre in the frame of a: a = P h w, the smallest
  // impulses that produce w. This is Eq. 3.7 in the limit of no regularisation, where the masses drop out.
  MatX P;                      // normals x 6
  Vec3 centre = Vec3::Zero();  // in the frame of a [m]

  bool one_tangent() const { return points[0].tangents.size() == 1; }
};

// Surfaces of all joints and loops with mu > 0.
std::vector<InnerSurface> inner_surfaces(const Mechanism& mechanism);
// The points of one pin: also used for joints without friction in maximal coordinates.
std::vector<InnerPoint> pin_points(const Vec3& centre, const Vec3& axis, const JointFriction& friction);
std::vector<InnerPoint> slider_points(const Vec3& centre, const Vec3& axis, const Vec3& box);
std::vector<InnerPoint> ball_points(const Vec3& centre, double radius);

// The relative velocity at a point along d (world vector), a less b, as a row on the links.
Row inner_row(const Motion& motion, const InnerSurface& surface, const Vec3& x_world, const Vec3& d_world);

}  // namespace limber::rigid
