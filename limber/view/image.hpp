// Pictures in memory, their PNG form, and lettering.
#pragma once

#include <limber/view/color.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace limber::view {

struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // 3 * width * height, rows from the top

  Image() = default;
  Image(int w, int h)
      : width(w), height(h), rgb(3 * static_cast<std::size_t>(w) * static_cast<std::size_t>(h)) {}
  std::uint8_t* at(int x, int y) {
    return &rgb[3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                     static_cast<std::size_t>(x))];
  }
};

std::string png_bytes(const Image& image);
void write_png(const std::filesystem::path& path, const Image& image);

// A rectangle, mixed over the picture with `opacity`.
void fill_rect(Image& image, double x, double y, double w, double h, const Rgb& color, double opacity);
// One line of text (ASCII) in a plain line font; (x, y) is the left end of the base line, `size` the height
// of a capital letter in pixels.
void draw_text(Image& image, double x, double y, double size, const std::string& text, const Rgb& color);
double text_width(double size, const std::string& text);

}  // namespace limber::view
