// Where a sheet meets sharp features during a step: edges of the cloth and lines, triangles of the cloth and
// points.
#pragma once

#include <limber/contact/features.hpp>
#include <limber/mesh/sheet.hpp>

namespace limber {

// A point of the sheet at a point of a feature.
struct FeatureContact {
  Index feature = -1;
  double parameter = 0;  // on a line
  Index triangle = -1;   // of the sheet: that of a point; one beside the edge of a line
  int count = 0;         // 2: an edge of the sheet and a line; 3: a triangle and a point
  std::array<Index, 3> vertices{-1, -1, -1};
  std::array<double, 3> weights{};  // not negative, sum 1
  Vec3 x = Vec3::Zero();            // the feature's point at the start of the step [m]
  Vec3 n = Vec3::Zero();            // unit, from the feature to the side of the sheet, at the end of the step
  double gap = 0,
         gap_end = 0;  // along the normal at the start and at the end of the step [m]; negative: through
  Vec3 velocity = Vec3::Zero();  // of the feature's point over the step [m/s]
};

struct FeatureContactOptions {
  double threshold = 5e-3;  // [m]: at the start, edges may be 2 of it deep, corners and nails 5
  double slop = 0.02;       // of the threshold: a gap that counts as touching
};

// Contacts of the step from t to t + h: those that are closed at its end if every vertex keeps the velocity
// of its material (v - F V, the mean over its triangles), and the obstacles move as scripted; where they
// touch is where they are above each other at its start. Features of
// faces count on their outward side; wires on both. Edges of the sheet within 2 degrees of a line, or where
// the line stands up from the cloth by more than 70 degrees, do not count. Not listed: features that a vertex
// of the edge or, for points, of the same patch is on already. Ordered by feature, then by vertices.
std::vector<FeatureContact> detect_features(const FeatureSet& set, std::span<const Obstacle> obstacles,
                                            const Sheet& sheet, double t, double h,
                                            const FeatureContactOptions& options);

}  // namespace limber
