#include <limber/contact/surface_nodes.hpp>

#include <limber/mesh/geometry.hpp>
#include <limber/mesh/surface.hpp>

#include <algorithm>
#include <map>

namespace limber {

SurfaceNodes surface_nodes(const fem::ElementInput& mesh) {
  std::vector<double> area(mesh.rest.size(), 0.0);
  std::vector<std::uint8_t> on(mesh.rest.size(), 0);
  std::vector<Tet> tets;
  std::map<std::pair<Index, Index>, std::pair<int, double>> sides;  // of plane elements: count, thickness
  for (std::size_t e = 0; e < mesh.elements.size(); ++e) {
    const Tet& t = mesh.elements[e];
    const ElementKind kind = mesh.kind(e);
    if (!is_triangle(kind)) {
      tets.push_back(t);
      continue;
    }
    if (is_sheet(kind)) {
      const double share = triangle_normal(mesh.rest, {t[0], t[1], t[2]}).norm() / 6;
      for (int k = 0; k < 3; ++k) {
        area[t[k]] += share;
        on[t[k]] = 1;
      }
      continue;
    }
    for (int k = 0; k < 3; ++k) {
      auto& side = sides[std::minmax(t[k], t[(k + 1) % 3])];
      ++side.first;
      side.second = mesh.material[e].thickness;
    }
  }
  for (const Tri& t : boundary_surface(tets).triangles) {
    const double share = triangle_normal(mesh.rest, t).norm() / 6;
    for (const Index i : t) {
      area[i] += share;
      on[i] = 1;
    }
  }
  for (const auto& [ends, side] : sides) {
    if (side.first != 1) continue;
    for (const Index i : {ends.first, ends.second}) {
      area[i] += 0.5 * side.second * (mesh.rest[ends.second] - mesh.rest[ends.first]).norm();
      on[i] = 1;
    }
  }
  SurfaceNodes out;
  for (std::size_t i = 0; i < on.size(); ++i)
    if (on[i]) {
      out.nodes.push_back(static_cast<Index>(i));
      out.area.push_back(area[i]);
    }
  return out;
}

}  // namespace limber
