// Rigid things that bodies touch: planes, spheres, capsules, boxes, closed surfaces, wires and nails, still
// or scripted.
#pragma once

#include <limber/contact/closed_surface.hpp>
#include <limber/core/motion.hpp>

#include <memory>
#include <string>
#include <vector>

namespace limber {

enum class ObstacleShape { kPlane, kSphere, kCapsule, kBox, kMesh, kWire, kPoints };

// From an obstacle's own frame to the world: x = origin + scale R y.
struct Placement {
  Vec3 origin = Vec3::Zero();  // [m]
  Mat3 R = Mat3::Identity();
  double scale = 1;

  Vec3 to_world(const Vec3& y) const { return origin + scale * (R * y); }
  Vec3 to_local(const Vec3& x) const { return R.transpose() * (x - origin) / scale; }
};

// In its own frame: the half-space z < 0; the ball, the capsule along z, the box around the origin; the
// surface; a polyline and points, which have no inside and touch nothing but cloth.
struct Obstacle {
  std::string name;
  ObstacleShape shape = ObstacleShape::kPlane;
  double radius = 0;                             // sphere, capsule [m]
  double half_length = 0;                        // capsule: from the origin to the centre of each cap [m]
  Vec3 half_size = Vec3::Zero();                 // box [m]
  std::shared_ptr<const ClosedSurface> surface;  // mesh
  std::vector<Vec3> points;                      // wire: corners in order; points: tips of nails [m]
  Vec3 axis = Vec3::UnitY();                     // points: where the nails point
  Placement start;                               // before it moves
  std::vector<MotionKey> motion;                 // about the origin of its own frame
  std::string interpolation = "smooth";
  double friction = 0;  // Coulomb's mu
};

Placement placement_at(const Obstacle& obstacle, double t);

// In the obstacle's own frame.
SurfacePoint closest_local(const Obstacle& obstacle, const Vec3& y);
// In the world.
SurfacePoint closest_point(const Obstacle& obstacle, const Placement& at, const Vec3& x);

// The box of a placed obstacle in the world; a plane's is the whole space.
Box bounds(const Obstacle& obstacle, const Placement& at);

// The smallest extent, by which one can tell whether it can slip between the nodes of a body [m]; infinite
// for a plane.
double thickness(const Obstacle& obstacle);

}  // namespace limber
