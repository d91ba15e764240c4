#include <limber/rigid/link_obstacles.hpp>

#include <limber/rigid/link_surfaces.hpp>

#include <fmt/format.h>

namespace limber::rigid {
namespace {

Obstacle obstacle_of_shape(const Link& link, const Shape& shape) {
  Obstacle o;
  o.name = link.name;
  o.interpolation = "linear";
  switch (shape.kind) {
    case ShapeKind::kBox:
      o.shape = ObstacleShape::kBox;
      o.half_size = 0.5 * shape.size;
      break;
    case ShapeKind::kSphere:
      o.shape = ObstacleShape::kSphere;
      o.radius = shape.radius;
      break;
    case ShapeKind::kCapsule:
      o.shape = ObstacleShape::kCapsule;
      o.radius = shape.radius;
      o.half_length = 0.5 * shape.length;
      break;
    case ShapeKind::kCylinder:
    case ShapeKind::kMesh: {
      Shape centred = shape;
      centred.pose = {};
      o.shape = ObstacleShape::kMesh;
      o.surface = std::make_shared<const ClosedSurface>(
          shape_surface(centred), fmt::format("the shape of the link \"{}\" for contact", link.name));
      break;
    }
  }
  return o;
}

}  // namespace

std::vector<LinkObstacle> link_obstacles(const Mechanism& mechanism, double friction) {
  std::vector<LinkObstacle> out;
  for (Index i = 0; i < mechanism.size(); ++i)
    for (const Shape& shape : mechanism.links[static_cast<std::size_t>(i)].shapes) {
      if (!shape.contact) continue;
      out.push_back({obstacle_of_shape(mechanism.links[static_cast<std::size_t>(i)], shape), i, shape.pose});
      out.back().obstacle.friction = friction;
    }
  return out;
}

Index count_link_obstacles(const Mechanism& mechanism) {
  Index count = 0;
  for (const Link& link : mechanism.links)
    for (const Shape& shape : link.shapes) count += shape.contact;
  return count;
}

void set_motion(const Pose& from, const Pose& to, double t, double h, Obstacle& obstacle) {
  obstacle.start.origin = from.p;
  obstacle.start.R = from.R;
  MotionKey end;
  end.t = t + h;
  end.translation = to.p - from.p;
  end.rotation = log_quat(Quat(Mat3(to.R * from.R.transpose())));
  obstacle.motion = {MotionKey{.t = t}, end};
}

}  // namespace limber::rigid
