// A small software renderer for pictures without a display: triangles with smooth normals, one sun with soft
// shadows, light from the surroundings with occlusion, a floor, anti-aliasing by supersampling. The same bits
// for any number of threads.
#pragma once

#include <limber/view/image.hpp>

#include <Eigen/Core>

#include <cstdint>
#include <vector>

namespace limber::view {

using Vec3f = Eigen::Vector3f;

// How a group of triangles is coloured.
struct Paint {
  enum Mode { kPlain, kNumbers, kCategories } mode = kPlain;
  Rgb base{0.8f, 0.75f, 0.65f};  // sRGB, of kPlain
  double low = 0, high = 1;      // of kNumbers (logarithms if `log`)
  bool log = false;
  bool highlight = false;  // of kCategories: 1 in red, all others as kPlain
  double tick = 0;         // distance of contour lines; 0: none
  bool edges = false;      // draw the edges of triangles
  float gloss = 0.35f;
  bool shadow = true;  // casts one
  float behind = 0;    // is seen as if it were this share further away: what lies on it covers it
};

// Triangles in stage coordinates: +y is up, the scene has about size 1 and lies around the origin.
struct Triangles {
  std::vector<Vec3f> position, normal;  // 3 per triangle
  std::vector<float> value;             // 3 per triangle
  std::vector<std::uint8_t> paint;      // 1 per triangle, index into the list of paints
  std::vector<std::uint8_t> hidden;     // 1 per triangle, bit k: the edge opposite to corner k is never drawn

  void add(const std::array<Vec3f, 3>& p, const std::array<Vec3f, 3>& n, const std::array<float, 3>& v,
           std::uint8_t paint_index, std::uint8_t hidden_edges = 0);
  std::size_t size() const { return paint.size(); }
};

struct Camera {
  Vec3f eye{1, 1, 2}, target{0, 0, 0};
  double fov = 32;  // vertical [degrees]
};

struct Floor {
  Vec3f point{0, -0.5f, 0}, normal{0, 1, 0};
  double grid = 0.1;  // spacing of its lines
};

struct Lighting {
  Rgb background_inner, background_outer;  // sRGB; a radial gradient
  Rgb floor, floor_line;
  float sun = 1, ambient = 1;
};
Lighting lighting(bool dark);

Image render(const Triangles& triangles, const std::vector<Paint>& paints, const Camera& camera,
             const std::vector<Floor>& floors, const Lighting& lighting, int width, int height, int samples);

}  // namespace limber::view
