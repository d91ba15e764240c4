// Surfaces with a border in space, remeshed as sheets.
#pragma once

#include <limber/mesh/sheet_adapt.hpp>

namespace limber {

// A surface as a sheet: as `sheet_from_mesh` has it; or, if it is curved and has no "uv", with a map to a
// disk as its material (Tutte 1963: the border on a circle by its length, every other vertex in the middle of
// its neighbours; no triangle is turned over). Such a material is for remeshing with AdaptOptions::in_space
// only. Throws Error(kInput), its message beginning with `where`, if it is closed, has several borders, parts
// or handles, or is no manifold.
Sheet sheet_of_surface(const TriMesh& surface, const std::string& where);

struct SurfaceAdaptOptions {
  AdaptOptions adapt;
  double feature_angle = 60;  // edges between triangles at more than this [degrees] are kept
  int rounds = 10;
};

struct SurfaceAdaptReport {
  Index splits = 0, flips = 0, collapses = 0;
  int rounds = 0;  // until nothing changed
};

// New triangles for a surface with a border: short edges where it bends, long ones where it is flat. All new
// vertices lie on the triangles of the old ones. Nodes of sets stay, and the sets with them; corners of the
// border stay.
TriMesh adapted_surface(const TriMesh& surface, const SurfaceAdaptOptions& options, const std::string& where,
                        SurfaceAdaptReport* report = nullptr);

}  // namespace limber
