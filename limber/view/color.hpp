// The colours of pictures: the same map and palette as the page (web/src/colors.ts).
#pragma once

#include <array>
#include <cstddef>

namespace limber::view {

using Rgb = std::array<float, 3>;

// From dark violet through teal to light yellow, t in 0..1; sRGB, each 0..1. Lightness grows evenly, so that
// order is visible without hue.
Rgb sequential_color(double t);
// What is pointed out in a body that is otherwise plain; sRGB.
Rgb highlight_color();
// Category k (repeats after 8); sRGB.
Rgb category_color(std::size_t k);

Rgb from_hex(unsigned rgb);
float srgb_to_linear(float v);
float linear_to_srgb(float v);
inline Rgb to_linear(const Rgb& c) {
  return {srgb_to_linear(c[0]), srgb_to_linear(c[1]), srgb_to_linear(c[2])};
}

}  // namespace limber::view
