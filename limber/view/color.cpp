#include <limber/view/color.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace limber::view {
namespace {

// OKLCh to linear sRGB (Ottosson's matrices).
std::array<double, 3> oklch(double L, double C, double h) {
  const double a = C * std::cos(h), b = C * std::sin(h);
  const double l = std::pow(L + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(L - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(L - 0.0894841775 * a - 1.291485548 * b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s};
}

}  // namespace

float srgb_to_linear(float v) { return v <= 0.04045f ? v / 12.92f : std::pow((v + 0.055f) / 1.055f, 2.4f); }
float linear_to_srgb(float v) {
  return v <= 0.0031308f ? 12.92f * v : 1.055f * std::pow(v, 1 / 2.4f) - 0.055f;
}

Rgb sequential_color(double t) {
  t = std::clamp(t, 0.0, 1.0);
  const double L = 0.3 + 0.63 * t, h = (300 - 195 * t) * std::numbers::pi / 180;
  // The largest chroma, up to 0.14, that a screen can show.
  double low = 0, high = 0.14;
  for (int k = 0; k < 20; ++k) {
    const double mid = (low + high) / 2;
    const auto c = oklch(L, mid, h);
    (std::all_of(c.begin(), c.end(), [](double v) { return v >= 0 && v <= 1; }) ? low : high) = mid;
  }
  const auto c = oklch(L, low, h);
  Rgb out;
  for (std::size_t d = 0; d < 3; ++d) out[d] = linear_to_srgb(static_cast<float>(std::clamp(c[d], 0.0, 1.0)));
  return out;
}

Rgb from_hex(unsigned rgb) {
  return {static_cast<float>(rgb >> 16 & 255) / 255, static_cast<float>(rgb >> 8 & 255) / 255,
          static_cast<float>(rgb & 255) / 255};
}

Rgb highlight_color() { return from_hex(0xd7261e); }

Rgb category_color(std::size_t k) {
  static constexpr std::array<unsigned, 8> kPalette{0xe69f00, 0x56b4e9, 0x009e73, 0xf0e442,
                                                    0x4f7fd9, 0xd55e00, 0xcc79a7, 0x9aa5b1};
  return from_hex(kPalette[k % kPalette.size()]);
}

}  // namespace limber::view
