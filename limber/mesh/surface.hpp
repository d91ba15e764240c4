// The boundary of a mesh.
#pragma once

#include <limber/mesh/mesh.hpp>

#include <span>
#include <vector>

namespace limber {

struct BoundarySurface {
  std::vector<Tri> triangles;   // outward (for positively oriented tets), in the mesh's node numbers
  std::vector<Index> elements;  // which element each triangle belongs to
};

// Faces that belong to one tet only, in element order. An entry with -1 in last place is a plane triangle and
// is its own surface.
BoundarySurface boundary_surface(std::span<const Tet> elements);

// The same as a mesh of its own that has only the nodes it needs; `origin` (if given) receives the old node
// of each new one. Node sets and node fields come along.
TriMesh surface_mesh(const TetMesh& mesh, std::vector<Index>* origin = nullptr);

// Edges of a triangle mesh, for questions about closedness. Each with its triangles, in a fixed order.
struct SurfaceEdges {
  struct Edge {
    std::array<Index, 2> nodes;  // ascending
    Index begin, end;            // range in `triangles`
  };
  std::vector<Edge> edges;
  std::vector<Index> triangles;
};
SurfaceEdges surface_edges(std::span<const Tri> triangles);

}  // namespace limber
