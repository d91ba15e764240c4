// clean_surface, orient_surface, surface_defects, drop_small_parts.
#include <limber/mesh/check.hpp>
#include <limber/mesh/remesh.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/mesh/surface_tree.hpp>
#include <limber/mesh/weld.hpp>

#include <fmt/format.h>

#include <map>
#include <optional>
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

// Whether the triangle runs along the edge from the first to the second of its (ascending) nodes.
bool runs_along(const Tri& t, const std::array<Index, 2>& edge) {
  for (std::size_t c = 0; c < 3; ++c)
    if (t[c] == edge[0] && t[(c + 1) % 3] == edge[1]) return true;
  return false;
}

// Triangles that hang together at edges with two triangles, turned so that neighbours agree.
struct Patches {
  std::vector<Index> of_triangle;
  Index count = 0;
  Index turned = 0;                  // triangles
  std::vector<std::uint8_t> closed;  // of each patch: no border, and nothing else at its edges
};

Patches agree_in_patches(std::vector<Tri>& triangles) {
  const SurfaceEdges edges = surface_edges(triangles);
  std::vector<std::array<std::int64_t, 3>> edges_of(triangles.size(), {-1, -1, -1});
  for (std::size_t e = 0; e < edges.edges.size(); ++e)
    for (Index k = edges.edges[e].begin; k < edges.edges[e].end; ++k) {
      auto& list = edges_of[at(edges.triangles[at(k)])];
      *std::find(list.begin(), list.end() - 1, -1) = static_cast<std::int64_t>(e);
    }
  Patches out;
  out.of_triangle.assign(triangles.size(), -1);
  std::vector<std::uint8_t> turn(triangles.size(), 0);
  for (std::size_t seed = 0; seed < triangles.size(); ++seed) {
    if (out.of_triangle[seed] >= 0) continue;
    std::vector<std::size_t> patch{seed};
    out.of_triangle[seed] = out.count;
    bool closed = true;
    std::size_t turns = 0;
    for (std::size_t next = 0; next < patch.size(); ++next) {
      const std::size_t t = patch[next];
      turns += turn[t];
      for (const std::int64_t e : edges_of[t]) {
        if (e < 0) continue;
        const SurfaceEdges::Edge& edge = edges.edges[static_cast<std::size_t>(e)];
        if (edge.end - edge.begin != 2) {
          closed = false;
          continue;
        }
        const std::size_t first = at(edges.triangles[at(edge.begin)]);
        const std::size_t other = first != t ? first : at(edges.triangles[at(edge.begin + 1)]);
        if (out.of_triangle[other] >= 0) continue;  // a Moebius strip disagrees somewhere, whatever one does
        out.of_triangle[other] = out.count;
        turn[other] =
            turn[t] ^ (runs_along(triangles[t], edge.nodes) == runs_along(triangles[other], edge.nodes));
        patch.push_back(other);
      }
    }
    if (2 * turns > patch.size())  // as most of them were
      for (const std::size_t t : patch) turn[t] ^= 1;
    out.closed.push_back(closed);
    ++out.count;
  }
  for (std::size_t t = 0; t < triangles.size(); ++t)
    if (turn[t]) {
      std::swap(triangles[t][1], triangles[t][2]);
      ++out.turned;
    }
  return out;
}

// What is turned as a whole: a closed patch, or open ones that share nodes.
struct Part {
  std::vector<Tri> triangles;
  Box box;
  double volume = 0;  // about its middle, positive when outward [m^3]
  bool closed = true, has_inside = true;
  Index outermost = -1;  // the largest part that it lies in and that lies in none
};

std::vector<Part> parts_of(const TriMesh& surface, const Patches& patches, std::vector<Index>& part_of) {
  std::vector<Tri> open;
  for (std::size_t t = 0; t < surface.triangles.size(); ++t)
    if (!patches.closed[at(patches.of_triangle[t])]) open.push_back(surface.triangles[t]);
  const std::vector<Index> group = connected_components(static_cast<Index>(surface.nodes.size()), open);
  std::vector<Index> part_of_patch(at(patches.count), -1);
  std::map<Index, Index> part_of_group;
  std::vector<Part> parts;
  part_of.resize(surface.triangles.size());
  for (std::size_t t = 0; t < surface.triangles.size(); ++t) {
    const std::size_t patch = at(patches.of_triangle[t]);
    const auto next = static_cast<Index>(parts.size());
    const Index part =
        patches.closed[patch]
            ? part_of_patch[patch] < 0 ? next : part_of_patch[patch]
            : part_of_group.try_emplace(group[at(surface.triangles[t][0])], next).first->second;
    part_of_patch[patch] = part;
    if (part == next) parts.emplace_back();
    parts[at(part)].triangles.push_back(surface.triangles[t]);
    parts[at(part)].closed = patches.closed[patch];
    part_of[t] = part;
  }
  for (Part& p : parts) {
    for (const Tri& t : p.triangles)
      for (const Index v : t) p.box.add(surface.nodes[at(v)]);
    const Vec3 middle = (p.box.lo + p.box.hi) / 2;
    Vec3 border = Vec3::Zero();  // twice the area vector of what would close it
    double area = 0;
    for (const Tri& t : p.triangles) {
      const Vec3 n = triangle_normal(surface.nodes, t);
      border += n;
      area += n.norm();
      p.volume += n.dot(surface.nodes[at(t[0])] - middle) / 6;
    }
    // Of a sheet or a bowl nobody can say which side is its inside.
    p.has_inside = p.closed || border.norm() < 0.25 * area;
  }
  return parts;
}

void find_outermost(const TriMesh& surface, std::vector<Part>& parts) {
  const auto holds = [](const Box& a, const Box& b) {
    return (a.lo.array() < b.lo.array()).all() && (b.hi.array() < a.hi.array()).all();
  };
  std::vector<std::vector<Index>> around(parts.size());
  for (std::size_t outer = 0; outer < parts.size(); ++outer) {
    if (!parts[outer].has_inside) continue;
    std::optional<SurfaceTree> tree;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (!parts[p].has_inside || !holds(parts[outer].box, parts[p].box)) continue;
      if (!tree) tree.emplace(surface.nodes, parts[outer].triangles);
      const std::vector<Tri>& triangles = parts[p].triangles;
      const std::size_t stride = std::max<std::size_t>(1, triangles.size() / 16);
      bool inside = true;
      for (std::size_t t = 0; t < triangles.size() && inside; t += stride)
        inside = std::abs(tree->winding(surface.nodes[at(triangles[t][0])])) > 0.5;
      if (inside) around[p].push_back(static_cast<Index>(outer));
    }
  }
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (const Index outer : around[p]) {
      Index& best = parts[p].outermost;
      if (around[at(outer)].empty() &&
          (best < 0 || std::abs(parts[at(outer)].volume) > std::abs(parts[at(best)].volume)))
        best = outer;
    }
}

}  // namespace

std::vector<std::string> orient_surface(TriMesh& surface) {
  std::vector<std::string> notices;
  const Patches patches = agree_in_patches(surface.triangles);
  std::vector<Index> part_of;
  std::vector<Part> parts = parts_of(surface, patches, part_of);
  find_outermost(surface, parts);
  Index inward = 0;
  std::vector<std::uint8_t> turn(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Part& judged = parts[parts[p].outermost < 0 ? p : at(parts[p].outermost)];
    turn[p] = judged.has_inside && judged.volume < 0;
    inward += turn[p];
  }
  for (std::size_t t = 0; t < surface.triangles.size(); ++t)
    if (turn[at(part_of[t])]) std::swap(surface.triangles[t][1], surface.triangles[t][2]);
  if (patches.turned > 0)
    notices.push_back(fmt::format("turned {} triangle{} that faced another way than {} neighbours",
                                  patches.turned, patches.turned == 1 ? "" : "s",
                                  patches.turned == 1 ? "its" : "their"));
  if (inward > 0 && inward == static_cast<Index>(parts.size()))
    notices.push_back("turned the surface, which faced inwards");
  else if (inward > 0)
    notices.push_back(
        fmt::format("turned {} of {} parts of the surface, which faced inwards", inward, parts.size()));
  return notices;
}

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
