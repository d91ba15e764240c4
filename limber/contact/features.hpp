// Sharp features of obstacles: what cloth bends around and slides over. Edges and corners of boxes and closed
// surfaces, wires, nails.
#pragma once

#include <limber/contact/obstacle.hpp>

#include <array>
#include <span>
#include <vector>

namespace limber {

enum class FeatureKind {
  kEdge,    // "edge": a line where two faces meet at an angle, outward
  kCorner,  // "corner": where such lines end or turn
  kWire,    // "wire": a line without faces
  kNail,    // "nail": a point with a direction
};

// In its obstacle's own frame. A line is a polyline, seen by its length: `parameter` runs from 0 to 1.
struct Feature {
  FeatureKind kind = FeatureKind::kEdge;
  Index obstacle = -1;
  std::vector<Vec3> points;                // one, or those of a line [m]
  std::vector<double> arc;                 // line: parameter of each point
  std::vector<std::array<Vec3, 2>> sides;  // edge: outward unit normals of its faces, per segment
  std::vector<Vec3> normals;               // corner: of the faces that meet there; nail: where it points
  std::vector<Vec3> rays;                  // corner: unit directions of the lines that leave it
  std::array<Index, 2> ends{-1, -1};       // line: the corners at parameter 0 and 1, or -1
  bool closed = false;                     // line: its last point is its first

  bool line() const { return points.size() > 1; }
};

// Features of all obstacles: an index in this list names one, for as long as the obstacles are the same.
using FeatureSet = std::vector<Feature>;

// Edges of boxes and closed surfaces between faces that turn outward by more than `angle` [degrees], joined
// to lines where they go on within that angle; corners where they do not. Wires are cut to lines in the same
// way; their own ends are no corners. Planes, spheres and capsules have none.
FeatureSet find_features(std::span<const Obstacle> obstacles, double angle = 30);

// A feature at a place and time.
struct FeaturePlace {
  Vec3 x = Vec3::Zero();        // [m]
  Vec3 tangent = Vec3::Zero();  // unit, towards larger parameters; zero for a point
  std::vector<Vec3>
      normals;  // unit, outward: two of an edge, those of a corner, one of a nail, none of a wire
};
FeaturePlace feature_place(const Feature& feature, const Placement& at, double parameter);
// The point alone.
Vec3 feature_point(const Feature& feature, const Placement& at, double parameter);

// The nearest place of a feature. `beyond`: how far x is past the end of an open line, along it [m]; else 0.
struct NearestOnFeature {
  double parameter = 0;
  Vec3 x = Vec3::Zero();
  double distance = 0, beyond = 0;  // [m]
};
NearestOnFeature nearest_on_feature(const Feature& feature, const Placement& at, const Vec3& x);

// Whether a and b lie on one line: the line (or one of them, if several), or -1. Corners lie on the lines
// that end there.
Index common_line(const FeatureSet& set, Index a, Index b);

// Parameter of a vertex of feature `f` on the line `line`; for a corner that of the line's end nearest to
// `near`.
double parameter_on(const FeatureSet& set, Index line, Index f, double parameter, double near);

}  // namespace limber
