#include <limber/sim/embedded_surface.hpp>

#include <limber/core/parallel.hpp>
#include <limber/mesh/box_tree.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/mesh/surface_tree.hpp>

#include <Eigen/Geometry>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

std::array<double, 4> barycentric(std::span<const Vec3> rest, const Tet& t, const Vec3& p) {
  const Vec3 a = rest[at(t[0])], b = rest[at(t[1])] - a, c = rest[at(t[2])] - a, d = rest[at(t[3])] - a,
             x = p - a;
  const double volume = b.dot(c.cross(d));
  std::array<double, 4> w{0, x.dot(c.cross(d)) / volume, b.dot(x.cross(d)) / volume,
                          b.dot(c.cross(x)) / volume};
  w[0] = 1 - w[1] - w[2] - w[3];
  return w;
}

}  // namespace

EmbeddedSurface embed(std::shared_ptr<const TexturedSurface> surface, std::span<const Vec3> rest,
                      std::span<const Tet> elements, Index begin, Index end) {
  EmbeddedSurface out;
  out.surface = std::move(surface);
  const std::vector<Vec3>& points = out.surface->points;
  out.element.assign(points.size(), begin);
  out.weight.assign(points.size(), {1, 0, 0, 0});
  std::vector<Box> boxes;
  std::vector<Tet> own;
  for (Index e = begin; e < end; ++e) {
    Box box;
    for (const Index i : elements[at(e)]) box.add(rest[at(i)]);
    boxes.push_back(box);
    own.push_back(elements[at(e)]);
  }
  BoxTree tree;
  tree.build(boxes);
  const BoundarySurface boundary = boundary_surface(own);
  const SurfaceTree skin(rest, boundary.triangles);
  std::vector<double> distance(points.size(), 0.0);
  parallel_for(static_cast<std::ptrdiff_t>(points.size()), 64, [&](std::ptrdiff_t k) {
    const auto i = static_cast<std::size_t>(k);
    Box box;
    box.add(points[i]);
    std::vector<Index> near;
    tree.find(box, 0, near);
    double inside = -1;  // least weight of the best one
    for (const Index e : near) {
      const std::array<double, 4> w = barycentric(rest, own[at(e)], points[i]);
      const double least = *std::min_element(w.begin(), w.end());
      if (least > inside) {
        inside = least;
        out.element[i] = begin + e;
        out.weight[i] = w;
      }
    }
    if (inside >= -1e-9) return;
    const SurfaceTree::Nearest nearest = skin.nearest(points[i]);
    const Index e = boundary.elements[at(nearest.triangle)];
    out.element[i] = begin + e;
    out.weight[i] = barycentric(rest, own[at(e)], points[i]);
    distance[i] = std::max(nearest.distance, 1e-300);
  });
  std::vector<std::uint8_t> used(points.size(), 0);  // files may have points that no face has
  for (const Index i : out.surface->corner_point) used[at(i)] = 1;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!used[i]) continue;
    out.outside += distance[i] > 0;
    out.farthest = std::max(out.farthest, distance[i]);
  }
  return out;
}

std::vector<Vec3> carried(const EmbeddedSurface& e, std::span<const Tet> elements, const VecX& x) {
  std::vector<Vec3> out(e.element.size(), Vec3::Zero());
  for (std::size_t i = 0; i < out.size(); ++i)
    for (std::size_t c = 0; c < 4; ++c) out[i] += e.weight[i][c] * node(x, elements[at(e.element[i])][c]);
  return out;
}

}  // namespace limber
