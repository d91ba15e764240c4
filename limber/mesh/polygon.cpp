#include <limber/mesh/geometry.hpp>
#include <limber/mesh/polygon.hpp>

#include <numeric>

namespace limber {
namespace {

constexpr std::size_t kMostCorners = 5000;  // cutting ears takes their square; larger ones become fans
constexpr double kFlatTurn = 1e-12;         // of the polygon's area: a corner that is none

}  // namespace

std::vector<Tri> cut_polygon(std::span<const Vec3> x) {
  std::vector<Tri> out;
  std::vector<Index> left(x.size());
  std::iota(left.begin(), left.end(), 0);
  Vec3 normal = Vec3::Zero();  // twice the area vector (Newell)
  for (std::size_t k = 1; k + 1 < x.size(); ++k) normal += cross(x[k] - x[0], x[k + 1] - x[0]);
  const double flat = kFlatTurn * normal.squaredNorm();
  // Twice the area of a, b, c seen along the normal, times its length.
  const auto turn = [&](Index a, Index b, Index c) { return triangle_normal(x, {a, b, c}).dot(normal); };
  const auto at_corner = [&](std::size_t k) {
    const std::size_t n = left.size();
    return Tri{left[(k + n - 1) % n], left[k], left[(k + 1) % n]};
  };
  const auto is_ear = [&](std::size_t k) {
    const Tri t = at_corner(k);
    if (!(turn(t[0], t[1], t[2]) > flat)) return false;
    return std::none_of(left.begin(), left.end(), [&](Index i) {
      if (i == t[0] || i == t[1] || i == t[2]) return false;
      if (x[at(i)] == x[at(t[0])] || x[at(i)] == x[at(t[1])] || x[at(i)] == x[at(t[2])]) return false;
      return turn(t[0], t[1], i) >= 0 && turn(t[1], t[2], i) >= 0 && turn(t[2], t[0], i) >= 0;
    });
  };
  bool convex = x.size() > kMostCorners;
  if (!convex) {
    convex = true;
    for (std::size_t k = 0; k < left.size(); ++k) {
      const Tri t = at_corner(k);
      convex = convex && !(turn(t[0], t[1], t[2]) < -flat);
    }
  }
  std::size_t from = 0;  // ears are looked for where the last one was, so that no corner gets them all
  while (!convex && left.size() > 3) {
    std::size_t k = 0;
    while (k < left.size() && !is_ear((from + k) % left.size())) ++k;
    if (k == left.size()) break;
    k = (from + k) % left.size();
    out.push_back(at_corner(k));
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(k));
    from = k;
  }
  for (std::size_t k = 1; k + 1 < left.size(); ++k) out.push_back({left[0], left[k], left[k + 1]});
  return out;
}

}  // namespace limber
