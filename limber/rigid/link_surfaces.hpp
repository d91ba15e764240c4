// Links and pins as triangles, for recordings and pictures.
#pragma once

#include <limber/rigid/articulation.hpp>

namespace limber::rigid {

struct LinkPart {
  std::string name;  // of the link, joint or loop
  Index link = 0;    // that carries it
  Index joint = -1;  // whose torque it shows: the link's own joint; -1 for the pin of a loop
  Index nodes_begin = 0, triangles_begin = 0, triangles_end = 0;
};

struct LinkSurfaces {
  std::vector<LinkPart> parts;      // links with shapes, then pins of joints and loops
  std::vector<Vec3> x;              // nodes in the frames of their links [m]
  std::vector<Index> part_of_node;  // index into parts
  std::vector<Tri> triangles;       // counter-clockwise seen from outside
};

LinkSurfaces link_surfaces(const Articulation& articulation);
// One shape, in the frame of its link.
TriMesh shape_surface(const Shape& shape);

// Positions [m] and velocities [m/s] of the nodes, three numbers each.
void place_surfaces(const LinkSurfaces& surfaces, const Motion& motion, VecX& x, VecX& v);

}  // namespace limber::rigid
