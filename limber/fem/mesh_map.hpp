// The whole mesh as a DeformationMap: unknowns are the displacements of the nodes, points the elements.
#pragma once

#include <limber/fem/elements.hpp>
#include <limber/linalg/deformation_map.hpp>

namespace limber::fem {

// Tetrahedra only. `pattern`: that of the mesh.
std::unique_ptr<DeformationMap> make_mesh_map(const ElementInput& mesh,
                                              std::shared_ptr<const BlockPattern> pattern);

}  // namespace limber::fem
