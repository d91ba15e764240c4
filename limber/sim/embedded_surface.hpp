// A surface to look at that the tetrahedra of a body carry along: every point moves with one tetrahedron, by
// its barycentric coordinates in the rest shape. A point outside the body goes with the nearest tetrahedron,
// whose affine motion it continues.
#pragma once

#include <limber/io/textured_surface.hpp>
#include <limber/mesh/mesh.hpp>

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace limber {

struct EmbeddedSurface {
  Index body = 0;                                  // index into Model::bodies
  std::shared_ptr<const TexturedSurface> surface;  // in the rest shape, placed as the body is
  std::vector<Index> element;                      // of every point
  std::vector<std::array<double, 4>> weight;       // of the element's nodes; they sum to one
  Index outside = 0;                               // points outside the body
  double farthest = 0;                             // of those [m]
};

// `begin`, `end`: elements of the body.
EmbeddedSurface embed(std::shared_ptr<const TexturedSurface> surface, std::span<const Vec3> rest,
                      std::span<const Tet> elements, Index begin, Index end);

// The surface without the faces that a cut goes through: those whose points are carried by elements that hung
// together near the face before it, and do not any more. `origin`: of every node, its number before all cuts.
std::shared_ptr<const TexturedSurface> without_torn_faces(const EmbeddedSurface& e,
                                                          std::span<const Vec3> rest,
                                                          std::span<const Tet> elements,
                                                          std::span<const Index> origin, Index begin,
                                                          Index end);

// Where the points are for nodes at x, 3n.
std::vector<Vec3> carried(const EmbeddedSurface& e, std::span<const Tet> elements, const VecX& x);

}  // namespace limber
