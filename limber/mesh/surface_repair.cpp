// clean_surface, surface_defects, drop_small_parts.
#include <limber/mesh/check.hpp>
#include <limber/mesh/remesh.hpp>
#include <limber/mesh/surface_tree.hpp>
#include <limber/mesh/weld.hpp>

#include <fmt/format.h>

#include <set>

namespace limber {
namespace {

// Small differences from single precision must not keep vertices apart.
constexpr double kWeld = 1e-7;

void erase_triangles(TriMesh& surface, const std::vector<std::uint8_t>& drop) {
  std::vector<Tri> kept;
  for (std::size_t i = 0; i < surface.triangles.size(); ++i)
    if (!drop[i]) kept.push_back(surface.triangles[i]);
  surface.triangles = std::move(kept);
}

}  // namespace

std::vector<std::string> clean_surface(TriMesh& surface) {
  std::vector<std::string> notices;
  surface.element_sets.clear();
  surface.element_fields.clear();
  surface.node_sets.clear();
  surface.node_fields.clear();
  const std::vector<Index> map = weld_map(surface.nodes, kWeld * bounding_box(surface.nodes).size().norm());
  std::size_t welded = 0;
  for (std::size_t i = 0; i < map.size(); ++i) welded += map[i] != static_cast<Index>(i);
  std::vector<std::uint8_t> drop(surface.triangles.size(), 0);
  std::set<Tri> known;
  std::size_t flat = 0, twins = 0;
  for (std::size_t i = 0; i < surface.triangles.size(); ++i) {
    Tri& t = surface.triangles[i];
    for (Index& v : t) v = map[v];
    Tri sorted = t;
    std::sort(sorted.begin(), sorted.end());
    if (t[0] == t[1] || t[1] == t[2] || t[2] == t[0]) {
      drop[i] = 1;
      ++flat;
    } else if (!known.insert(sorted).second) {
      drop[i] = 1;
      ++twins;
    }
  }
  erase_triangles(surface, drop);
  if (welded > 0) notices.push_back(fmt::format("merged {} vertices with others in the same place", welded));
  if (flat > 0) notices.push_back(fmt::format("dropped {} triangles without area", flat));
  if (twins > 0) notices.push_back(fmt::format("dropped {} repeated triangles", twins));
  fix_mesh(surface, TriRole::kSurface);  // unused vertices
  return notices;
}

std::vector<std::string> surface_defects(const TriMesh& surface) {
  std::vector<std::string> lines;
  const MeshReport report = check_mesh(surface, TriRole::kSurface);
  for (const MeshProblem& p : report.problems)
    if (p.fatal || p.kind == MeshProblemKind::kOpenSurface ||
        p.kind == MeshProblemKind::kNonManifoldSurface || p.kind == MeshProblemKind::kOrientation)
      lines.push_back(p.message);
  if (!report.usable()) return lines;
  const auto pairs = SurfaceTree(surface.nodes, surface.triangles).self_intersections(1000);
  if (!pairs.empty()) {
    const Tri& t = surface.triangles[pairs[0][0]];
    const Vec3 p = (surface.nodes[t[0]] + surface.nodes[t[1]] + surface.nodes[t[2]]) / 3;
    lines.push_back(fmt::format(
        "the surface intersects itself: {}{} pairs of triangles, first {} and {} at ({:.4g}, "
        "{:.4g}, {:.4g})",
        pairs.size() == 1000 ? "at least " : "", pairs.size(), pairs[0][0], pairs[0][1], p[0], p[1], p[2]));
  }
  return lines;
}

int drop_small_parts(TriMesh& surface, double share) {
  Index parts = 0;
  const auto part = connected_components(static_cast<Index>(surface.nodes.size()), surface.triangles, &parts);
  if (parts <= 1) return 0;
  std::vector<double> volume(parts, 0.0);
  for (const Tri& t : surface.triangles)
    volume[part[t[0]]] += surface.nodes[t[0]].dot(cross(surface.nodes[t[1]], surface.nodes[t[2]])) / 6;
  // A cavity has a negative volume and is measured like a part.
  double largest = 0;
  for (const double v : volume) largest = std::max(largest, std::abs(v));
  std::vector<std::uint8_t> drop(surface.triangles.size(), 0);
  for (std::size_t i = 0; i < drop.size(); ++i)
    drop[i] = std::abs(volume[part[surface.triangles[i][0]]]) < share * largest;
  int dropped = 0;
  for (const double v : volume) dropped += std::abs(v) < share * largest;
  if (dropped > 0) {
    erase_triangles(surface, drop);
    fix_mesh(surface, TriRole::kSurface);
  }
  return dropped;
}

}  // namespace limber
