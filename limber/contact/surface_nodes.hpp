// The nodes of bodies that can touch something.
#pragma once

#include <limber/fem/elements.hpp>

#include <vector>

namespace limber {

// Nodes on the boundary, ascending, with their shares of its area [m^2]. The boundary of a plane body is its
// border times its thickness, that of cloth its one area, which is touched from both sides.
struct SurfaceNodes {
  std::vector<Index> nodes;
  std::vector<double> area;
};
SurfaceNodes surface_nodes(const fem::ElementInput& mesh);

}  // namespace limber
