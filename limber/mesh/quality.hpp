// How well shaped elements are.
#pragma once

#include <limber/mesh/mesh.hpp>

#include <array>
#include <span>
#include <vector>

namespace limber {

// 3 r / R with r the inscribed and R the circumscribed radius: 1 for the regular tet, 0 for a flat one,
// negative for an inverted one.
double radius_ratio(std::span<const Vec3> x, const Tet& t);
// 2 r / R of a triangle: 1 for the equilateral one, 0 for a needle.
double radius_ratio(std::span<const Vec3> x, const Tri& t);
// Least angle between two faces [degrees]; 70.5 for the regular tet.
double least_dihedral_angle(std::span<const Vec3> x, const Tet& t);

struct QualitySummary {
  Index elements = 0;
  double volume = 0;                                    // total volume [m^3], or area [m^2] of triangles
  double least = 0, mean = 0;                           // of the radius ratio
  Index worst = -1;                                     // the element with the least
  double least_angle = 0;                               // [degrees]; tets only
  std::array<Index, 10> histogram{};                    // of the radius ratio, in tenths
  double edge_least = 0, edge_mean = 0, edge_most = 0;  // edge lengths [m]
};

QualitySummary summarize_quality(const TetMesh& mesh);
QualitySummary summarize_quality(const TriMesh& mesh);

}  // namespace limber
