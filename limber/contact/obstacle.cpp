#include <limber/contact/obstacle.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace limber {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Distance to the ball of the given radius about `center`.
SurfacePoint from_ball(const Vec3& y, const Vec3& center, double radius) {
  const Vec3 d = y - center;
  const double length = d.norm();
  const Vec3 n =
      length > 0 ? Vec3(d / length) : Vec3(Vec3::UnitX());  // at the centre all directions are as good
  return {center + radius * n, n, length - radius};
}

SurfacePoint closest_on_box(const Vec3& half, const Vec3& y) {
  const Vec3 excess = y.cwiseAbs() - half;
  int axis = 0;
  if (excess.maxCoeff(&axis) <= 0) {
    SurfacePoint p{y, Vec3::Zero(), excess[axis]};
    p.n[axis] = y[axis] < 0 ? -1 : 1;
    p.x[axis] = p.n[axis] * half[axis];
    return p;
  }
  const Vec3 x = y.cwiseMax(-half).cwiseMin(half);
  const double d = (y - x).norm();
  return {x, (y - x) / d, d};
}

// Nothing is inside a wire or a nail.
SurfacePoint closest_on_points(const Obstacle& o, const Vec3& y) {
  Vec3 best = o.points.front();
  const auto offer = [&](const Vec3& p) {
    if ((y - p).squaredNorm() < (y - best).squaredNorm()) best = p;
  };
  for (std::size_t k = 0; k < o.points.size(); ++k) {
    offer(o.points[k]);
    if (o.shape != ObstacleShape::kWire || k == 0) continue;
    const Vec3 a = o.points[k - 1], d = o.points[k] - a;
    const double length2 = d.squaredNorm();
    if (length2 > 0) offer(a + std::clamp((y - a).dot(d) / length2, 0.0, 1.0) * d);
  }
  return from_ball(y, best, 0);
}

}  // namespace

Placement placement_at(const Obstacle& obstacle, double t) {
  if (obstacle.motion.empty()) return obstacle.start;
  const KeyPose m = key_pose(obstacle.motion, obstacle.interpolation, t);
  const Placement& s = obstacle.start;
  return {s.origin + m.translation, m.R * s.R, m.scale * s.scale};
}

SurfacePoint closest_local(const Obstacle& o, const Vec3& y) {
  switch (o.shape) {
    case ObstacleShape::kPlane:
      return {{y[0], y[1], 0}, Vec3::UnitZ(), y[2]};
    case ObstacleShape::kSphere:
      return from_ball(y, Vec3::Zero(), o.radius);
    case ObstacleShape::kCapsule:
      return from_ball(y, {0, 0, std::clamp(y[2], -o.half_length, o.half_length)}, o.radius);
    case ObstacleShape::kBox:
      return closest_on_box(o.half_size, y);
    case ObstacleShape::kMesh:
      return o.surface->closest(y);
    case ObstacleShape::kWire:
    case ObstacleShape::kPoints:
      return closest_on_points(o, y);
  }
  return {};
}

SurfacePoint closest_point(const Obstacle& obstacle, const Placement& at, const Vec3& x) {
  const SurfacePoint p = closest_local(obstacle, at.to_local(x));
  return {at.to_world(p.x), at.R * p.n, at.scale * p.distance};
}

Box bounds(const Obstacle& o, const Placement& at) {
  Box local;
  switch (o.shape) {
    case ObstacleShape::kPlane:
      return {Vec3::Constant(-kInfinity), Vec3::Constant(kInfinity)};
    case ObstacleShape::kSphere:
      local = {Vec3::Constant(-o.radius), Vec3::Constant(o.radius)};
      break;
    case ObstacleShape::kCapsule:
      local.hi = {o.radius, o.radius, o.radius + o.half_length};
      local.lo = -local.hi;
      break;
    case ObstacleShape::kBox:
      local = {-o.half_size, o.half_size};
      break;
    case ObstacleShape::kMesh:
      local = o.surface->box();
      break;
    case ObstacleShape::kWire:
    case ObstacleShape::kPoints:
      local = bounding_box(o.points);
      break;
  }
  const Vec3 center = at.to_world(0.5 * (local.lo + local.hi));
  const Vec3 half = at.scale * (at.R.cwiseAbs() * (0.5 * local.size()));
  return {center - half, center + half};
}

double thickness(const Obstacle& o) {
  switch (o.shape) {
    case ObstacleShape::kPlane:
      return kInfinity;
    case ObstacleShape::kSphere:
    case ObstacleShape::kCapsule:
      return 2 * o.radius;
    case ObstacleShape::kBox:
      return 2 * o.half_size.minCoeff();
    case ObstacleShape::kMesh:
      return o.surface->box().size().minCoeff();
    case ObstacleShape::kWire:
    case ObstacleShape::kPoints:
      return kInfinity;  // those who touch it look for it
  }
  return 0;
}

}  // namespace limber
