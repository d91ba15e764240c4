#include <limber/sim/contact_model.hpp>

#include <limber/contact/penalty.hpp>
#include <limber/contact/surface_nodes.hpp>
#include <limber/core/error.hpp>
#include <limber/core/rotation.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/scene/scene.hpp>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

namespace limber {

namespace {

std::string describe(const ObstacleSpec& spec) {
  return spec.name.empty() ? fmt::format("obstacle ({})", spec.shape)
                           : fmt::format("obstacle \"{}\"", spec.name);
}

Mat3 rotation_from_z(const Vec3& direction, const std::string& what) {
  const double length = direction.norm();
  if (!(length > 0) || !std::isfinite(length))
    throw Error(ErrorKind::kInput, fmt::format("{} is ({}, {}, {}): it must have a direction", what,
                                               direction[0], direction[1], direction[2]));
  return turn_between<double>(Vec3::UnitZ(), direction / length).toRotationMatrix();
}

}  // namespace

Obstacle make_obstacle(const ObstacleSpec& spec, const std::string& folder, double friction) {
  Obstacle o;
  o.name = spec.name.empty() ? spec.shape : spec.name;
  o.motion = spec.motion;
  o.interpolation = spec.interpolation;
  o.friction = spec.friction.value_or(friction);
  o.start.origin = spec.point;
  if (spec.shape == "plane") {
    o.shape = ObstacleShape::kPlane;
    o.start.R = rotation_from_z(spec.normal, describe(spec) + ": its normal");
  } else if (spec.shape == "sphere") {
    o.shape = ObstacleShape::kSphere;
    o.radius = spec.radius;
  } else if (spec.shape == "capsule") {
    o.shape = ObstacleShape::kCapsule;
    o.radius = spec.radius;
    o.half_length = 0.5 * (spec.end - spec.point).norm();
    o.start.origin = 0.5 * (spec.point + spec.end);
    if (o.half_length > 0) o.start.R = rotation_from_z(spec.end - spec.point, describe(spec));
  } else if (spec.shape == "box") {
    o.shape = ObstacleShape::kBox;
    o.half_size = 0.5 * spec.size;
    o.start.R = rotation_of(spec.rotation);
  } else if (spec.shape == "mesh") {
    o.shape = ObstacleShape::kMesh;
    TriMesh mesh = read_surface((std::filesystem::path(folder) / spec.mesh_file).string());
    for (Vec3& x : mesh.nodes) x = spec.scale.cwiseProduct(x);
    o.surface = std::make_shared<const ClosedSurface>(
        std::move(mesh), fmt::format("{}: mesh \"{}\"", describe(spec), spec.mesh_file));
    o.start.R = rotation_of(spec.rotation);
    o.start.origin = spec.translation;
  } else if (spec.shape == "wire" || spec.shape == "points") {
    o.shape = spec.shape == "wire" ? ObstacleShape::kWire : ObstacleShape::kPoints;
    o.points = spec.points;
    o.start.origin.setZero();
    if (spec.points.empty() || (spec.shape == "wire" && spec.points.size() < 2))
      throw Error(ErrorKind::kInput, fmt::format("{}: found {} points, expected at least {}", describe(spec),
                                                 spec.points.size(), spec.shape == "wire" ? 2 : 1));
    for (std::size_t k = 1; k < spec.points.size() && spec.shape == "wire"; ++k)
      if (!((spec.points[k] - spec.points[k - 1]).norm() > 0))
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: its points {} and {} are the same, expected a wire of "
                                "pieces that have a length",
                                describe(spec), k - 1, k));
    if (!(spec.normal.norm() > 0))
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: its normal is zero: nails must point somewhere", describe(spec)));
    o.axis = spec.normal.normalized();
  } else {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: \"{}\" is not a shape; expected plane, sphere, capsule, box, mesh, wire or points",
                    describe(spec), spec.shape));
  }
  return o;
}

void set_touching_nodes(const ContactSpec& spec, const fem::ElementInput& mesh, ContactModel& model,
                        std::vector<std::string>* notices) {
  model.alpha = spec.alpha;
  model.rule = spec.rule == "filter" ? FrictionRule::kFilter : FrictionRule::kAnchored;
  model.nodes.clear();
  model.stiffness.clear();
  if (model.obstacles.empty()) return;
  SurfaceNodes surface = surface_nodes(mesh);
  std::vector<double> young(mesh.rest.size(), 0.0);
  for (std::size_t e = 0; e < mesh.elements.size(); ++e)
    for (const Index i : mesh.elements[e])
      if (i >= 0) young[i] = std::max(young[i], mesh.material[e].young);
  model.elastic.clear();
  for (std::size_t k = 0; k < surface.nodes.size(); ++k) {
    model.elastic.push_back(young[surface.nodes[k]] * std::sqrt(surface.area[k]));
    model.stiffness.push_back(spec.stiffness > 0 ? spec.stiffness : kDefaultStiffness * model.elastic.back());
  }
  double largest = 0;
  for (const double a : surface.area) largest = std::max(largest, a);
  model.nodes = std::move(surface.nodes);

  const double spacing = std::sqrt(largest);
  for (const Obstacle& o : model.obstacles)
    if (notices && thickness(o) < spacing)
      notices->push_back(fmt::format(
          "obstacle \"{}\" is {:.3g} m thin, and surface nodes are up to {:.3g} m apart: only nodes touch "
          "obstacles, so it can slip between them; refine the mesh or thicken the obstacle",
          o.name, thickness(o), spacing));
}

}  // namespace limber
