// Tetrahedra inside an implicit surface, by isosurface stuffing (Labelle and Shewchuk 2007): a body-centred
// cubic lattice whose vertices near the surface are warped onto it and whose tetrahedra across it are cut. No
// element is a sliver, whatever the surface, as long as it is smooth on the scale of the lattice; details
// that are finer are lost.
#pragma once

#include <limber/mesh/geometry.hpp>
#include <limber/mesh/mesh.hpp>

#include <functional>
#include <string>
#include <vector>

namespace limber {

struct StuffOptions {
  double spacing = 0.01;  // of the lattice [m]; about 12 tetrahedra per cube of this size
  // Names of regions: `label(centroid)` gives the number of an element's, or -1; each becomes an element set.
  std::vector<std::string> regions;
  std::function<int(const Vec3&)> label;
};

// `depth(x)`: positive inside, negative outside, continuous; a signed distance is best. `box`: where the body
// is. Elements are positively oriented. The node set "surface" has the nodes of the boundary. Throws
// Error(kInput) when nothing is inside, or when the lattice would have more than 2e8 vertices.
TetMesh stuff_isosurface(const std::function<double(const Vec3&)>& depth, const Box& box,
                         const StuffOptions& options);

// Signed distance to a closed surface, positive inside, for stuff_isosurface; keeps references to the
// surface.
std::function<double(const Vec3&)> surface_depth(const TriMesh& surface);

}  // namespace limber
