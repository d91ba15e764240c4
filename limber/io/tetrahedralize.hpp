// From a closed surface to tets, with the program TetGen (Debian package tetgen) run as a process.
#pragma once

#include <limber/mesh/mesh.hpp>

#include <functional>
#include <string>
#include <vector>

namespace limber {

struct TetrahedralizeOptions {
  Index vertices = 5000;  // wanted number of nodes; reached to about two per cent
  bool wrap = false;      // rebuild a closed surface first; for scans with holes, cracks and crossings
  bool thin = false;      // and make sheets, which have no inside, bodies as thick as the elements are long
  double feature_angle = 60;  // edges sharper than this [degrees] are kept; 180: none
  double ratio = 1.4;         // most circumradius over shortest edge of a tet (TetGen -q)
  double angle = 10;          // least dihedral angle aimed at [degrees]
  std::function<void(const std::string&)> progress;  // one line per stage; may be empty
};

// Remeshes the surface to triangles of one size and fills it; the size is searched until the number of nodes
// is as wanted. Throws Error(kInput) that says where the surface is open or intersects itself, Error(kIo)
// when TetGen is not installed. `notices` receives what was changed on the way.
TetMesh tetrahedralize(const TriMesh& surface, const TetrahedralizeOptions& options,
                       std::vector<std::string>* notices = nullptr);

// Fills a closed surface as it is: the nodes of the result begin with the surface's own.
TetMesh run_tetgen(const TriMesh& surface, double ratio, double angle);

}  // namespace limber
