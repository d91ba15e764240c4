// Finer meshes of the same shape.
#pragma once

#include <limber/mesh/mesh.hpp>

namespace limber {

// Every tet becomes eight (the inner octahedron is cut along its shortest diagonal), every triangle four, by
// nodes in the middle of all edges. Old nodes keep their numbers; the children of element e are 8e .. 8e + 7
// (4e .. 4e + 3). Element sets and fields go to the children, node fields are averaged. The middle of an edge
// joins the node sets that both ends belong to; in a set of boundary nodes only, it must lie on the boundary
// too.
TetMesh refined(const TetMesh& mesh);
TriMesh refined(const TriMesh& mesh);

}  // namespace limber
