// Obstacles for tests, in odd places and sizes.
#pragma once

#include <limber/contact/detect.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/surface.hpp>

#include <random>

namespace limber::test {

inline Obstacle base(ObstacleShape shape) {
  Obstacle o;
  o.shape = shape;
  o.start = {{0.02, -0.03, 0.05}, rotation_of({0.4, -0.9, 0.3}), 1.3};
  o.friction = 0.3;
  return o;
}

inline std::vector<Obstacle> all_shapes() {
  std::vector<Obstacle> all;
  all.push_back(base(ObstacleShape::kPlane));
  all.push_back(base(ObstacleShape::kSphere));
  all.back().radius = 0.1;
  all.push_back(base(ObstacleShape::kCapsule));
  all.back().radius = 0.06;
  all.back().half_length = 0.08;
  all.push_back(base(ObstacleShape::kBox));
  all.back().half_size = {0.1, 0.05, 0.08};
  all.push_back(base(ObstacleShape::kMesh));
  all.back().surface = std::make_shared<const ClosedSurface>(surface_mesh(make_torus(0.1, 0.04, 0.02)));
  return all;
}

inline Vec3 random_point(std::mt19937& random, double extent) {
  std::uniform_real_distribution<double> u(-extent, extent);
  const double x = u(random), y = u(random), z = u(random);
  return {x, y, z};
}

// A model in which every node may touch every one of the obstacles.
inline ContactModel free_nodes(std::vector<Obstacle> obstacles, Index nodes, double stiffness = 1000) {
  ContactModel model;
  model.obstacles = std::move(obstacles);
  for (Index i = 0; i < nodes; ++i) model.nodes.push_back(i);
  model.stiffness.assign(static_cast<std::size_t>(nodes), stiffness);
  model.elastic.assign(static_cast<std::size_t>(nodes), 0.1 * stiffness);
  return model;
}

}  // namespace limber::test
