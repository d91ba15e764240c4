// Cutting: separates elements along the faces between them and gives each side its own nodes.
#pragma once

#include <limber/mesh/mesh.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace limber {

// Three node ids of a tet's face, or two and -1 for a triangle's edge; in any order.
using Face = std::array<Index, 3>;

struct CutMesh {
  std::vector<Tet> elements;   // with the new node numbers; the old nodes keep theirs, copies come after them
  std::vector<Index> copy_of;  // for each node: itself, or the old node that it is a copy of
  Index faces = 0;             // that came apart: their two elements no longer share all its nodes
};

// Separates every face between elements of different `side`. A node is copied only where the elements around
// it fall apart, so a cut may end inside the body; elements that met in the node alone stay together there.
// The elements with the first of them keep the node. Elements with -1 in the last place are triangles, whose
// faces are their edges.
CutMesh cut_by_side(Index nodes, std::span<const Tet> elements, std::span<const std::uint8_t> side);

// Separates the given faces; faces on the boundary or not in the mesh are passed over and not counted.
CutMesh cut_by_faces(Index nodes, std::span<const Tet> elements, std::span<const Face> faces);

}  // namespace limber
