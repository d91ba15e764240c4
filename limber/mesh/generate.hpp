// Meshes of simple shapes. All lengths in metres.
#pragma once

#include <limber/mesh/mesh.hpp>

namespace limber {

// A box with its least corner at the origin, `nodes` per edge (two or more each), and six tets per cube (Kuhn
// split, all around the diagonal from least to greatest corner). Node (i, j, k) has index i + nx (j + ny k):
// x runs fastest. Node sets x0, x1, y0, y1, z0, z1 are the six sides.
TetMesh make_box(const Vec3& size, const std::array<Index, 3>& nodes);

// The round shapes are centred at the origin with their axis along z and inscribed: boundary nodes lie on the
// shape, so that the volume is a little small. `edge` is the wanted edge length; at least one layer is made
// whatever it is. All have the node set "surface"; those with flat ends also z0 and z1.
TetMesh make_sphere(double radius, double edge);
// `length` is that of the straight part; the whole is length + 2 radius long.
TetMesh make_capsule(double radius, double length, double edge);
TetMesh make_cylinder(double radius, double length, double edge);
// `radius` from the axis to the middle of the tube.
TetMesh make_torus(double radius, double tube_radius, double edge);

// A plane rectangle in z = 0 with its least corner at the origin, two triangles per cell with alternating
// diagonals, counter-clockwise seen from +z. Node (i, j) has index i + nx j. Node sets x0, x1, y0, y1.
enum class RectanglePattern {
  kRegular,
  kCrossed,    // four triangles per cell, around a node in its middle; these nodes come last
  kIrregular,  // nodes inside moved by up to a third of a cell, always the same way, and Delaunay triangles
};
TriMesh make_rectangle(const Vec2& size, const std::array<Index, 2>& nodes,
                       RectanglePattern pattern = RectanglePattern::kRegular);

}  // namespace limber
