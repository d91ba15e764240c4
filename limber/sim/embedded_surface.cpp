#include <limber/sim/embedded_surface.hpp>

#include <limber/core/parallel.hpp>
#include <limber/mesh/box_tree.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/mesh/surface_tree.hpp>

#include <Eigen/Geometry>

#include <algorithm>
#include <cmath>
#include <numeric>

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

std::vector<Box> element_boxes(std::span<const Vec3> rest, std::span<const Tet> elements, Index begin,
                               Index end) {
  std::vector<Box> out;
  for (Index e = begin; e < end; ++e) {
    Box box;
    for (const Index i : elements[at(e)]) box.add(rest[at(i)]);
    out.push_back(box);
  }
  return out;
}

// Whether elements that share nodes lead from each of `ends` to the others; `among` holds `ends`, and
// `number` tells which nodes are the same.
template <class Number>
bool hang_together(std::span<const Index> ends, std::span<const Index> among, std::span<const Tet> elements,
                   Number number) {
  std::vector<std::pair<Index, Index>> around;  // node, place in `among`
  for (Index k = 0; k < static_cast<Index>(among.size()); ++k)
    for (const Index i : elements[at(among[at(k)])]) around.emplace_back(number(i), k);
  std::sort(around.begin(), around.end());
  std::vector<Index> parent(among.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](Index k) {
    while (parent[at(k)] != k) k = parent[at(k)] = parent[at(parent[at(k)])];
    return k;
  };
  for (std::size_t j = 1; j < around.size(); ++j)
    if (around[j].first == around[j - 1].first)
      parent[at(root(around[j].second))] = root(around[j - 1].second);
  const auto root_of = [&](Index e) {
    return root(static_cast<Index>(std::find(among.begin(), among.end(), e) - among.begin()));
  };
  return std::all_of(ends.begin(), ends.end(), [&](Index e) { return root_of(e) == root_of(ends.front()); });
}

}  // namespace

EmbeddedSurface embed(std::shared_ptr<const TexturedSurface> surface, std::span<const Vec3> rest,
                      std::span<const Tet> elements, Index begin, Index end) {
  EmbeddedSurface out;
  out.surface = std::move(surface);
  const std::vector<Vec3>& points = out.surface->points;
  out.element.assign(points.size(), begin);
  out.weight.assign(points.size(), {1, 0, 0, 0});
  const std::span<const Tet> own = elements.subspan(at(begin), at(end - begin));
  BoxTree tree;
  tree.build(element_boxes(rest, elements, begin, end));
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

std::shared_ptr<const TexturedSurface> without_torn_faces(const EmbeddedSurface& e,
                                                          std::span<const Vec3> rest,
                                                          std::span<const Tet> elements,
                                                          std::span<const Index> origin, Index begin,
                                                          Index end) {
  const TexturedSurface& s = *e.surface;
  const std::vector<Box> boxes = element_boxes(rest, elements, begin, end);
  BoxTree tree;
  tree.build(boxes);
  std::vector<std::uint8_t> torn(at(s.faces()), 0);
  parallel_for(static_cast<std::ptrdiff_t>(torn.size()), 256, [&](std::ptrdiff_t f) {
    Box box;
    std::vector<Index> ends;
    for (Index c = s.face_begin[at(f)]; c < s.face_begin[at(f + 1)]; ++c) {
      const Index point = s.corner_point[at(c)], element = e.element[at(point)];
      box.add(s.points[at(point)]);
      if (std::find(ends.begin(), ends.end(), element) == ends.end()) ends.push_back(element);
    }
    const auto same = [](Index i) { return i; };
    const auto before = [&](Index i) { return origin[at(i)]; };
    if (ends.size() < 2 || hang_together(ends, ends, elements, same)) return;
    // The way from one to the other may be a few elements long: as far as the face and its elements reach.
    for (const Index element : ends) {
      box.add(boxes[at(element - begin)].lo);
      box.add(boxes[at(element - begin)].hi);
    }
    std::vector<Index> among;
    tree.find(box, 0, among);
    for (Index& element : among) element += begin;
    torn[at(f)] = hang_together(ends, among, elements, before) && !hang_together(ends, among, elements, same);
  });
  if (std::find(torn.begin(), torn.end(), 1) == torn.end()) return e.surface;
  auto out = std::make_shared<TexturedSurface>(s);
  out->face_begin = {0};
  for (std::vector<Index>* list :
       {&out->corner_point, &out->corner_uv, &out->corner_normal, &out->face_material})
    list->clear();
  for (Index f = 0; f < s.faces(); ++f) {
    if (torn[at(f)]) continue;
    for (Index c = s.face_begin[at(f)]; c < s.face_begin[at(f) + 1]; ++c) {
      out->corner_point.push_back(s.corner_point[at(c)]);
      out->corner_uv.push_back(s.corner_uv[at(c)]);
      out->corner_normal.push_back(s.corner_normal[at(c)]);
    }
    out->face_begin.push_back(static_cast<Index>(out->corner_point.size()));
    out->face_material.push_back(s.face_material[at(f)]);
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
