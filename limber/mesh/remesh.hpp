// Closed surfaces made fit for tetrahedra: mended, rebuilt, and given triangles of one size.
#pragma once

#include <limber/mesh/mesh.hpp>

#include <string>
#include <vector>

namespace limber {

// Merges vertices in one place, and drops triangles without area, repeated triangles and unused vertices.
// Returns one line about each kind of change.
std::vector<std::string> clean_surface(TriMesh& surface);

// Turns triangles so that neighbours agree, and parts so that they face outwards. A part inside another one
// is turned with that one only: it may be a cavity. Sheets are left as they are but for the neighbours.
// Returns one line about each kind of change. Vertices in one place must be one (clean_surface()).
std::vector<std::string> orient_surface(TriMesh& surface);

// What keeps a surface from having an inside: open edges, edges with more than two triangles, neighbours that
// turn opposite ways, intersections; one line each, with places. Empty when it can be filled with tets.
std::vector<std::string> surface_defects(const TriMesh& surface);

// A closed surface around the inside of `surface`, which may have holes, cracks, doubled and crossing parts:
// the points whose winding number exceeds one half, seen on a grid with this spacing [m]. Details smaller
// than the spacing are lost. With `thin`, parts that have an inside on neither side (sheets, fins) become
// bodies that are some spacings thick.
TriMesh wrap_surface(const TriMesh& surface, double spacing, bool thin = false);

struct RemeshOptions {
  double edge = 0;  // wanted edge length [m]
  int rounds = 8;
  double feature_angle = 60;  // edges between faces at more than this angle [degrees] are kept sharp
};

// Triangles with edges of nearly one length on a closed manifold surface (Botsch and Kobbelt 2004: split long
// edges, collapse short ones, flip to even valences, relax in the surface). The result is closed, manifold
// and as far as it can be helped free of intersections.
TriMesh remesh_surface(const TriMesh& surface, const RemeshOptions& options);

// Connected parts whose volume is below `share` of the largest are dropped; returns how many.
int drop_small_parts(TriMesh& surface, double share);

double surface_area(const TriMesh& surface);     // [m^2]
double enclosed_volume(const TriMesh& surface);  // [m^3], positive when outward

}  // namespace limber
