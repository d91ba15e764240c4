// What is wrong with a mesh, said before a simulation says it forty calls later.
#pragma once

#include <limber/mesh/geometry.hpp>
#include <limber/mesh/mesh.hpp>

#include <string>
#include <vector>

namespace limber {

enum class MeshProblemKind {
  kEmpty,               // no elements
  kNonFinite,           // a coordinate that is not a finite number
  kIndexRange,          // an element or set names a node or element that does not exist
  kInverted,            // negative volume, or clockwise plane triangle
  kDegenerate,          // no volume or area, or a repeated node
  kDuplicateElement,    // two elements on the same nodes
  kUnusedNode,          // a node without element
  kDuplicateNode,       // two nodes in one place
  kSeveralComponents,   // parts that share no node
  kOpenSurface,         // an edge with one triangle (surfaces only)
  kNonManifoldSurface,  // a surface edge with more than two triangles
  kOrientation,         // neighbouring surface triangles that turn opposite ways
  kScale,               // a size that smells of millimetres, or of kilometres
  kFieldSize,           // a field whose length does not fit the mesh
};

struct MeshProblem {
  MeshProblemKind kind{};
  bool fatal = false;        // a simulation cannot use the mesh
  Index count = 0;           // how many
  std::vector<Index> first;  // the first few: elements, nodes, or node pairs of edges
  std::string message;       // one line: what, how many, where
};

struct MeshReport {
  std::vector<MeshProblem> problems;
  Index nodes = 0, elements = 0, components = 0;
  Box box;

  const MeshProblem* find(MeshProblemKind kind) const;
  bool usable() const;  // no fatal problem
  // The fatal problems, one line each.
  std::string errors() const;
};

// kSurface: a closed or open surface in space. kPlane: a body of plane-strain triangles in z = constant,
// whose triangles must be counter-clockwise and whose border is open by nature.
enum class TriRole { kSurface, kPlane };

MeshReport check_mesh(const TetMesh& mesh);
MeshReport check_mesh(const TriMesh& mesh, TriRole role);

// kPlane when all triangles lie in one plane z = constant, otherwise kSurface.
TriRole guess_role(const TriMesh& mesh);

// Mends what can be mended without guessing: turns inverted elements, and drops nodes that no element uses.
// Returns one line about each kind of change. The mesh must have no index out of range.
std::vector<std::string> fix_mesh(TetMesh& mesh);
std::vector<std::string> fix_mesh(TriMesh& mesh, TriRole role);

// For each node the number of its connected part (parts are numbered by their least node); `count` receives
// how many there are. Nodes without element get -1. An entry -1 in an element is skipped.
std::vector<Index> connected_components(Index nodes, std::span<const Tet> elements, Index* count = nullptr);
std::vector<Index> connected_components(Index nodes, std::span<const Tri> elements, Index* count = nullptr);

}  // namespace limber
