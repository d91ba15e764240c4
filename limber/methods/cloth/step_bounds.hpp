// Line 4 of Alg. 2.1: obstacles and held vertices as bounds on the velocities of a step.
#pragma once

#include <limber/methods/cloth/cloth_mesh.hpp>
#include <limber/sim/stepper.hpp>

#include <span>

namespace limber::cloth {

// What the bounds of a step depend on.
struct StepSituation {
  const Sheet& sheet;
  const ClothBody& body;
  const ClothPattern& pattern;
  const std::vector<std::uint8_t>& side;
  const std::vector<std::int64_t>& on_feature;  // conformal without eol: what vertices lie on
  const std::vector<double>& on_parameter;
  const FeatureSet& features;
  const std::vector<std::uint8_t>& too_short;
  std::span<const Obstacle> obstacles;
  double t;
  const StepInput& in;
  const ClothOptions& options;
};

// A vertex that nothing else holds and that an obstacle may press, whose normal there is n.
struct Touch {
  Index vertex = -1, obstacle = -1;
  Vec3 n = Vec3::UnitZ();
};

struct StepContacts {
  std::vector<EolVertex> eol;
  std::vector<EolGeometry> geometry;  // of each of them
  std::vector<Touch> touches;         // by vertex
  Index contacts = 0;
  int short_edges = 0;  // contacts with features that are too short for vertices
};

// Bounds, bases, friction and rows of a problem that has its A and b; these get what EOL vertices need.
StepContacts set_bounds(const StepSituation& situation, BoundProblem& problem);

}  // namespace limber::cloth
