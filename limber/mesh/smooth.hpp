// Better shaped tets by moving nodes.
#pragma once

#include <limber/mesh/mesh.hpp>

namespace limber {

// Moves nodes whose worst tet has a poor radius ratio, so that the worst tet around each gets better; never
// makes one worse. Inner nodes move when it is below `enough`; nodes of the boundary only when it is below
// `bad`, and not farther than a tenth of their edges.
void smooth_nodes(TetMesh& mesh, int rounds = 4, double enough = 0.5, double bad = 0.2);

}  // namespace limber
