// Meshes as plain data: nodes, elements, and named sets of them.
#pragma once

#include <limber/core/types.hpp>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace limber {

using Tet = std::array<Index, 4>;  // positively oriented: det(x1-x0, x2-x0, x3-x0) > 0 in the rest shape
using Tri = std::array<Index, 3>;  // counter-clockwise seen from outside (surface) or from +z (plane body)

// Names from physical groups, region attributes or the scene -> sorted, unique indices.
using IndexSets = std::map<std::string, std::vector<Index>>;
// Per-element (or per-node) numbers that came with the file: name -> (components, values).
struct Field {
  int components = 1;
  std::vector<double> values;  // components * count, element-major
};
using Fields = std::map<std::string, Field>;

struct TetMesh {
  std::vector<Vec3> nodes;  // [m]
  std::vector<Tet> tets;
  IndexSets node_sets;
  IndexSets element_sets;  // sets of tets
  Fields element_fields;
  Fields node_fields;
};

struct TriMesh {
  std::vector<Vec3> nodes;  // [m]
  std::vector<Tri> triangles;
  IndexSets node_sets;
  IndexSets element_sets;  // sets of triangles
  Fields element_fields;
  Fields node_fields;
};

}  // namespace limber
