// Adaptive remeshing of a sheet in the material (Narain, Samii and O'Brien 2012): a metric from curvature,
// gradient of velocity and compression says how long edges may be.
#pragma once

#include <limber/mesh/sheet_edit.hpp>

namespace limber {

struct AdaptOptions {
  double size_min = 0, size_max = 0;  // [m]: edges are never wanted shorter or longer
  double refine_angle = 0.3;          // an edge may span this turn of the normal [rad]
  double refine_velocity = 0.5;       // an edge may span this difference of velocity [m/s]
  double refine_compression = 0.005;  // [m]: an edge may be this long times 1/sqrt(compressive strain)
  double aspect_min = 0.2;            // of the metric, and of triangles that a collapse leaves
  // Lengths, aspects and curvature are those of x, and the material is only a map of it: for surfaces that
  // are no cloth (sheet_surface.hpp). Velocity and compression do not count.
  bool in_space = false;
};

// Throws Error(kInput), its message beginning with `where`, for options that make no sense.
void check_options(const AdaptOptions& options, const std::string& where);

// The metric at each vertex [1/m^2]: for every triangle the least tensor above curvature^2 / refine_angle^2,
// grad v^T grad v / refine_velocity^2 and that of compression, its eigenvalues between 1/size_max^2 and
// 1/size_min^2 and no further apart than aspect_min^2; then averaged by area. Hinges at preserved edges have
// no curvature: the mesh resolves them as they are.
std::vector<Mat2> vertex_metric(const Sheet& s, const AdaptOptions& options);

// Length of a material edge in the metric of its ends (root of the mean square): 1 is as long as wanted.
double metric_length(const Vec2& d, const Mat2& a, const Mat2& b);

// Flips (Bossen and Heckbert 1996, in the metric), splits every edge longer than 1, the longest first, and
// collapses edges where all new ones are at most 0.9 long. EOL vertices are never removed; `place_on_feature`
// is that of the SheetEditor.
SheetChange adapted(const Sheet& s, const AdaptOptions& options, const PlaceOnFeature& place_on_feature = {});

}  // namespace limber
