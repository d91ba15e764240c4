#include <limber/io/file.hpp>
#include <limber/view/codec.hpp>
#include <limber/view/image.hpp>

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace limber::view {
namespace {

void put_big(std::string& out, std::uint32_t v) {
  for (int shift : {24, 16, 8, 0}) out += static_cast<char>(v >> shift);
}

void put_chunk(std::string& out, const char* tag, std::string_view data) {
  put_big(out, static_cast<std::uint32_t>(data.size()));
  const std::size_t start = out.size();
  out += tag;
  out += data;
  put_big(out, static_cast<std::uint32_t>(
                   crc32_z(0, reinterpret_cast<const Bytef*>(out.data() + start), out.size() - start)));
}

// A line font: strokes are runs of points, two characters each (x, y up from the base line; a and b are -1
// and -2), separated by blanks. Capitals are 6 high, small letters 4.
struct Glyph {
  char letter;
  int width;
  std::string_view strokes;
};
constexpr Glyph kFont[] = {
    {'0', 4, "100105163645413010"},
    {'1', 4, "142620 1030"},
    {'2', 4, "05163645440040"},
    {'3', 4, "05163645443313 334241301001"},
    {'4', 4, "30360242"},
    {'5', 4, "460603334241301001"},
    {'6', 4, "453616050110304142331302"},
    {'7', 4, "064610"},
    {'8', 4, "13040516364544331302011030414233"},
    {'9', 4, "011030414536160504133344"},
    {'a', 4, "0314344340 421201103041"},
    {'b', 4, "0600 0314344341301001"},
    {'c', 4, "4334140301103041"},
    {'d', 4, "4640 4334140301103041"},
    {'e', 4, "02424334140301103041"},
    {'f', 3, "36261510 0434"},
    {'g', 4, "444a3b1b 4334140301103041"},
    {'h', 4, "0600 0314344340"},
    {'i', 0, "0004 0606"},
    {'j', 1, "141a0b 1616"},
    {'k', 3, "0600 0134 1230"},
    {'l', 0, "0600"},
    {'m', 6, "0400 0314243330 3344546360"},
    {'n', 4, "0400 0314344340"},
    {'o', 4, "100103143443413010"},
    {'p', 4, "040b 0314344341301001"},
    {'q', 4, "444b 4334140301103041"},
    {'r', 3, "0400 03142434"},
    {'s', 4, "43341403123241301001"},
    {'t', 3, "16112030 0434"},
    {'u', 4, "0401103041 4440"},
    {'v', 4, "042044"},
    {'w', 6, "0410345064"},
    {'x', 4, "0044 0440"},
    {'y', 4, "0420 44201b"},
    {'z', 4, "04440040"},
    {'A', 4, "002640 1232"},
    {'B', 4, "00063645443303 3342413000"},
    {'C', 4, "4536160501103041"},
    {'D', 4, "00062645412000"},
    {'E', 4, "46060040 0333"},
    {'F', 4, "460600 0333"},
    {'G', 4, "45361605011030414323"},
    {'H', 4, "0006 4046 0343"},
    {'I', 0, "0006"},
    {'J', 4, "4641301001"},
    {'K', 4, "0006 0246 1340"},
    {'L', 4, "060040"},
    {'M', 6, "0006336660"},
    {'N', 4, "00064046"},
    {'O', 4, "100105163645413010"},
    {'P', 4, "00063645443303"},
    {'Q', 4, "100105163645413010 2240"},
    {'R', 4, "00063645443303 2340"},
    {'S', 4, "453616050413334241301001"},
    {'T', 4, "0646 2620"},
    {'U', 4, "060110304146"},
    {'V', 4, "062046"},
    {'W', 6, "0610345066"},
    {'X', 4, "0046 0640"},
    {'Y', 4, "0623 462320"},
    {'Z', 4, "06460040"},
    {' ', 1, ""},
    {'.', 0, "0000"},
    {',', 0, "000a"},
    {':', 0, "0000 0303"},
    {'-', 3, "0333"},
    {'+', 4, "0343 2125"},
    {'=', 4, "0242 0444"},
    {'/', 3, "0a37"},
    {'(', 1, "1705010a1a"},
    {')', 1, "0715110a"},
    {'[', 1, "17070a1a"},
    {']', 1, "07171a0a"},
    {'^', 2, "041624"},
    {'\'', 0, "0604"},
    {'%', 4, "0046 0605 4140"},
    {'_', 4, "0a4a"},
    {'*', 4, "2125 0244 0442"},
};

const Glyph* find_glyph(char c) {
  for (const Glyph& g : kFont)
    if (g.letter == c) return &g;
  return nullptr;
}

constexpr double kGap = 1.7;  // between letters, in units of the grid

double segment_distance(double px, double py, double ax, double ay, double bx, double by) {
  const double ux = bx - ax, uy = by - ay, length = ux * ux + uy * uy;
  const double s = length > 0 ? std::clamp(((px - ax) * ux + (py - ay) * uy) / length, 0.0, 1.0) : 0;
  return std::hypot(px - ax - s * ux, py - ay - s * uy);
}

void mix(std::uint8_t* pixel, const Rgb& color, double opacity) {
  for (std::size_t d = 0; d < 3; ++d)
    pixel[d] = static_cast<std::uint8_t>(
        std::lround((1 - opacity) * pixel[d] + opacity * 255 * static_cast<double>(color[d])));
}

}  // namespace

std::string png_bytes(const Image& image) {
  std::string out("\x89PNG\r\n\x1a\n", 8);
  std::string head;
  put_big(head, static_cast<std::uint32_t>(image.width));
  put_big(head, static_cast<std::uint32_t>(image.height));
  head += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits, RGB, deflate, filters, not interlaced
  put_chunk(out, "IHDR", head);
  // Every row by the filter that leaves the smallest differences: none, left, up.
  const auto row = 3 * static_cast<std::size_t>(image.width);
  std::string filtered;
  filtered.reserve((row + 1) * static_cast<std::size_t>(image.height));
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y) {
    const std::uint8_t* now = image.rgb.data() + y * row;
    const std::uint8_t* up = y > 0 ? now - row : nullptr;
    std::string best;
    long best_cost = -1;
    for (int filter : {2, 1, 0}) {
      std::string line(1, static_cast<char>(filter));
      long cost = 0;
      for (std::size_t i = 0; i < row; ++i) {
        const int p = filter == 0 ? 0 : filter == 1 ? (i >= 3 ? now[i - 3] : 0) : (up ? up[i] : 0);
        line += static_cast<char>(now[i] - p);
        cost += std::abs(static_cast<std::int8_t>(line.back()));
      }
      if (best_cost < 0 || cost < best_cost) {
        best_cost = cost;
        best = std::move(line);
      }
    }
    filtered += best;
  }
  put_chunk(out, "IDAT", deflated(filtered, 6));
  put_chunk(out, "IEND", {});
  return out;
}

void write_png(const std::filesystem::path& path, const Image& image) {
  write_file_atomic(path.string(), png_bytes(image));
}

void fill_rect(Image& image, double x, double y, double w, double h, const Rgb& color, double opacity) {
  // Share of pixel i that lies in [a, b].
  auto cover = [](int i, double a, double b) {
    return std::clamp(std::min(i + 1.0, b) - std::max(static_cast<double>(i), a), 0.0, 1.0);
  };
  for (int j = std::max(0, static_cast<int>(y)); j < std::min<double>(image.height, y + h); ++j)
    for (int i = std::max(0, static_cast<int>(x)); i < std::min<double>(image.width, x + w); ++i)
      mix(image.at(i, j), color, opacity * cover(i, x, x + w) * cover(j, y, y + h));
}

double text_width(double size, const std::string& text) {
  double width = 0;
  for (char c : text)
    if (const Glyph* g = find_glyph(c)) width += (g->width + kGap) * size / 6;
  return std::max(0.0, width - kGap * size / 6);
}

void draw_text(Image& image, double x, double y, double size, const std::string& text, const Rgb& color) {
  const double unit = size / 6, thick = std::max(0.55, 0.068 * size);  // half the width of a stroke
  for (char c : text) {
    const Glyph* g = find_glyph(c);
    if (!g) continue;
    const int left = static_cast<int>(std::floor(x - 2 * thick - 1)),
              right = static_cast<int>(std::ceil(x + g->width * unit + 2 * thick + 1)),
              top = static_cast<int>(std::floor(y - 7 * unit - 2 * thick - 1)),
              bottom = static_cast<int>(std::ceil(y + 2 * unit + 2 * thick + 1));
    for (int j = std::max(0, top); j < std::min(image.height, bottom); ++j)
      for (int i = std::max(0, left); i < std::min(image.width, right); ++i) {
        double distance = 1e9, ax = 0, ay = 0;
        bool pen_down = false;
        for (std::size_t k = 0; k + 1 < g->strokes.size();) {
          if (g->strokes[k] == ' ') {
            pen_down = false;
            ++k;
            continue;
          }
          const char v = g->strokes[k + 1];
          const double bx = x + (g->strokes[k] - '0') * unit,
                       by = y - (v >= 'a' ? 'a' - v - 1 : v - '0') * unit;
          distance = std::min(
              distance, segment_distance(i + 0.5, j + 0.5, pen_down ? ax : bx, pen_down ? ay : by, bx, by));
          ax = bx;
          ay = by;
          pen_down = true;
          k += 2;
        }
        const double cover = std::clamp(thick - distance + 0.5, 0.0, 1.0);
        if (cover > 0) mix(image.at(i, j), color, cover);
      }
    x += (g->width + kGap) * unit;
  }
}

}  // namespace limber::view
