// Lines over numbers as an SVG file: linear or logarithmic axes, ticks, a legend.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace limber {

struct Plot {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;
    bool dashed = false;
  };
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<Line> lines;

  // Writes folder/name.svg. Points that an axis cannot show (zero on a logarithmic one) are left out.
  void write(const std::string& folder, const std::string& name) const {
    const Axis x = axis(log_x, [](const auto&p) { return p.first; }),
               y = axis(log_y, [](const auto&p) { return p.second; });
    constexpr double kWidth = 720, kHeight = 400, kLeft = 70, kTop = 36, kRight = 220, kBottom = 48;
    const auto px = [&](double v) { return kLeft + x.share(v) * (kWidth - kLeft - kRight); };
    const auto py = [&](double v) { return kHeight - kBottom - y.share(v) * (kHeight - kTop - kBottom); };
    std::string s = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
        "font-size=\"12\" fill=\"#333\"><rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/><text x=\"{2}\" "
        "y=\"20\" font-size=\"14\">{3}</text>\n",
        kWidth, kHeight, kLeft, escaped(title));
    for (const double v : x.ticks)
      s += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#ddd\"/><text x=\"{0:.1f}\" "
          "y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
          px(v), kTop, kHeight - kBottom, kHeight - kBottom + 16, v);
    for (const double v : y.ticks)
      s += fmt::format(
          "<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"#ddd\"/><text x=\"{3}\" "
          "y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
          kLeft, py(v), kWidth - kRight, kLeft - 6, py(v) + 4, v);
    s += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     (kLeft + kWidth - kRight) / 2, kHeight - 10, escaped(x_label));
    s += fmt::format(
        "<text x=\"14\" y=\"{0:.1f}\" text-anchor=\"middle\" transform=\"rotate(-90 14 "
        "{0:.1f})\">{1}</text>\n",
        (kTop + kHeight - kBottom) / 2, escaped(y_label));
    static const char* kColors[] = {"#0b6fa4", "#d1495b", "#3a7d44", "#8f5db7",
                                    "#c77f0a", "#444444", "#1b998b", "#a05195"};
    for (std::size_t k = lines.size(); k-- > 0;) {  // the first line on top
      const char* color = kColors[k % 8];
      const char* dash = lines[k].dashed ? " stroke-dasharray=\"5 4\"" : "";
      std::string path;
      for (const auto& p : lines[k].points)
        if (shown(p))
          path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", px(p.first), py(p.second));
      if (!path.empty())
        s += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n", path, color,
                         dash);
      if (lines[k].points.size() <= 40)
        for (const auto& p : lines[k].points)
          if (shown(p))
            s += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n", px(p.first),
                             py(p.second), color);
      const double at = kTop + 12 + 18 * static_cast<double>(k);
      s += fmt::format(
          "<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"{3}\" stroke-width=\"2.5\"{4}/><text "
          "x=\"{5}\" "
          "y=\"{6}\">{7}</text>\n",
          kWidth - kRight + 12, at, kWidth - kRight + 34, color, dash, kWidth - kRight + 40, at + 4,
          escaped(lines[k].name));
    }
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + name + ".svg") << s << "</svg>\n";
    fmt::print("{}/{}.svg\n", folder, name);
  }

 private:
  struct Axis {
    bool log = false;
    double low = 0, high = 1;  // of the number, or of its logarithm
    std::vector<double> ticks;
    double share(double v) const { return ((log ? std::log10(v) : v) - low) / (high - low); }
  };

  bool shown(const std::pair<double, double>& p) const {
    return std::isfinite(p.first) && std::isfinite(p.second) && (!log_x || p.first > 0) &&
           (!log_y || p.second > 0);
  }

  template <class Of>
  Axis axis(bool log, Of&& of) const {
    Axis a;
    a.log = log;
    bool any = false;
    for (const Line& line : lines)
      for (const auto& p : line.points) {
        if (!shown(p)) continue;
        const double v = log ? std::log10(of(p)) : of(p);
        a.low = any ? std::min(a.low, v) : v;
        a.high = any ? std::max(a.high, v) : v;
        any = true;
      }
    if (log) {
      a.low = std::floor(a.low + 1e-9);
      a.high = std::max(a.low + 1, std::ceil(a.high - 1e-9));
      const double step = std::max(1.0, std::ceil((a.high - a.low) / 8));
      for (double e = a.low; e <= a.high + 1e-9; e += step) a.ticks.push_back(std::pow(10.0, e));
      return a;
    }
    if (!(a.high > a.low)) a.high = a.low + 1;
    const double raw = (a.high - a.low) / 6, power = std::pow(10.0, std::floor(std::log10(raw)));
    double step = power;
    for (const double m : {1.0, 2.0, 5.0, 10.0})
      if (m * power >= raw) {
        step = m * power;
        break;
      }
    a.low = step * std::floor(a.low / step + 1e-9);
    a.high = step * std::ceil(a.high / step - 1e-9);
    for (double k = 0; a.low + k * step <= a.high + 1e-9 * step; ++k) {
      const double v = a.low + k * step;
      a.ticks.push_back(std::abs(v) < 1e-9 * step ? 0 : v);
    }
    return a;
  }

  static std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return out;
  }
};

}  // namespace limber
