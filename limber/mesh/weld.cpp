#include <limber/mesh/geometry.hpp>
#include <limber/mesh/weld.hpp>

#include <numeric>
#include <unordered_map>

namespace limber {

std::vector<Index> weld_map(std::span<const Vec3> points, double tolerance) {
  std::vector<Index> map(points.size());
  std::iota(map.begin(), map.end(), 0);
  if (!(tolerance > 0) || !std::isfinite(tolerance)) return map;
  // Cells are twice the tolerance wide, so that a twin is in one of the at most eight cells that the box of
  // the tolerance touches.
  using Cell = std::array<std::int64_t, 3>;
  const double width = 2 * tolerance;
  const Vec3 origin = bounding_box(points).lo;
  const auto cell_of = [&](const Vec3& p) {
    Cell c;
    for (int a = 0; a < 3; ++a) c[a] = static_cast<std::int64_t>(std::floor((p[a] - origin[a]) / width));
    return c;
  };
  const auto key = [](const Cell& c) {
    std::uint64_t h = 0;
    for (const std::int64_t v : c) {
      h = (h ^ static_cast<std::uint64_t>(v)) * 0x9E3779B97F4A7C15ull;
      h ^= h >> 29;
    }
    return h;
  };
  std::unordered_multimap<std::uint64_t, Index> grid;
  grid.reserve(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Vec3& p = points[i];
    const Cell low = cell_of(p.array() - tolerance), high = cell_of(p.array() + tolerance);
    for (std::int64_t a = low[0]; a <= high[0]; ++a)
      for (std::int64_t b = low[1]; b <= high[1]; ++b)
        for (std::int64_t c = low[2]; c <= high[2]; ++c) {
          const auto [begin, end] = grid.equal_range(key({a, b, c}));
          for (auto it = begin; it != end; ++it)
            if ((points[it->second] - p).norm() <= tolerance) map[i] = std::min(map[i], it->second);
        }
    if (map[i] == static_cast<Index>(i)) grid.emplace(key(cell_of(p)), static_cast<Index>(i));
  }
  return map;
}

}  // namespace limber
