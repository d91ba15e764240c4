// Bodies made of round cones that flow into each other: limbs, tails, trunks, and the bones in them.
#pragma once

#include <limber/mesh/stuff.hpp>

#include <map>

namespace limber {

// All points nearer to a point of the segment from a to b than a radius that goes from ra to rb along it.
struct RoundCone {
  Vec3 a = Vec3::Zero(), b = Vec3::Zero();
  double ra = 0.1, rb = 0.1;
};

// How deep x is inside the cone [m]; negative outside.
double depth(const RoundCone& cone, const Vec3& x);

struct RoundConeBody {
  double blend = 0;              // radius over which cones flow into each other [m]
  std::vector<RoundCone> cones;  // the body is their union
  std::vector<std::pair<std::string, RoundCone>>
      regions;  // later ones win; an element belongs by its centroid
};

Box bounding_box(const RoundConeBody& body);
double depth(const RoundConeBody& body, const Vec3& x);
// The body as tetrahedra; regions become element sets.
TetMesh mesh_body(const RoundConeBody& body, double spacing);

// A spacing that gives about `tets` elements, found with coarser meshes.
double spacing_for(const RoundConeBody& body, double tets);

}  // namespace limber
