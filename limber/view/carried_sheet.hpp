// A carried surface as triangles to draw: sorted by material, with what is smooth together.
#pragma once

#include <limber/io/textured_surface.hpp>
#include <limber/view/shapes.hpp>

#include <vector>

namespace limber::view {

struct CarriedSheet {
  std::vector<Tri> triangles;  // of points
  std::vector<Tri> corners;    // the same as corners of the surface
  SmoothGroups groups;         // as the file's normals say; by the angle between faces where it has none
  struct Piece {
    std::size_t first, last;  // triangles
    Index material;           // -1: none
  };
  std::vector<Piece> pieces;
};
CarriedSheet carried_sheet(const TexturedSurface& surface);

}  // namespace limber::view
