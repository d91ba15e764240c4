#include <limber/mesh/surface.hpp>

#include <limber/mesh/element_kind.hpp>

#include <algorithm>
#include <tuple>

namespace limber {
namespace {

// Faces of a positive tet, seen from outside.
constexpr int kFace[4][3] = {{1, 2, 3}, {0, 3, 2}, {0, 1, 3}, {0, 2, 1}};

}  // namespace

BoundarySurface boundary_surface(std::span<const Tet> elements) {
  // Group faces by their least node (counting sort), then look for twins among the few faces of each group.
  struct Face {
    Index mid, high;
    Index element;
    std::int8_t local;
  };
  Index nodes = 0;
  for (const Tet& t : elements) nodes = std::max(nodes, *std::max_element(t.begin(), t.end()) + 1);
  std::vector<Index> begin(static_cast<std::size_t>(nodes) + 2, 0);
  const auto each_face = [&](auto&& visit) {
    for (std::size_t e = 0; e < elements.size(); ++e) {
      const Tet& t = elements[e];
      if (corners(t) == 3) continue;
      for (int f = 0; f < 4; ++f) {
        std::array<Index, 3> v{t[kFace[f][0]], t[kFace[f][1]], t[kFace[f][2]]};
        std::sort(v.begin(), v.end());
        visit(v, static_cast<Index>(e), f);
      }
    }
  };
  each_face([&](const auto& v, Index, int) { ++begin[v[0] + 2]; });
  for (std::size_t i = 2; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<Face> faces(begin.back());
  each_face([&](const auto& v, Index e, int f) {
    faces[begin[v[0] + 1]++] = {v[1], v[2], e, static_cast<std::int8_t>(f)};
  });

  std::vector<std::int8_t> open(elements.size(), 0);  // bit f: face f is on the boundary
  for (Index i = 0; i < nodes; ++i) {
    const auto first = faces.begin() + begin[i], last = faces.begin() + begin[i + 1];
    std::sort(first, last, [](const Face& a, const Face& b) {
      return std::tie(a.mid, a.high, a.element) < std::tie(b.mid, b.high, b.element);
    });
    for (auto f = first; f != last;) {
      auto g = f + 1;
      while (g != last && g->mid == f->mid && g->high == f->high) ++g;
      if (g - f == 1) open[f->element] |= static_cast<std::int8_t>(1 << f->local);
      f = g;
    }
  }

  BoundarySurface surface;
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const Tet& t = elements[e];
    if (corners(t) == 3) {
      surface.triangles.push_back({t[0], t[1], t[2]});
      surface.elements.push_back(static_cast<Index>(e));
      continue;
    }
    for (int f = 0; f < 4; ++f)
      if (open[e] >> f & 1) {
        surface.triangles.push_back({t[kFace[f][0]], t[kFace[f][1]], t[kFace[f][2]]});
        surface.elements.push_back(static_cast<Index>(e));
      }
  }
  return surface;
}

TriMesh surface_mesh(const TetMesh& mesh, std::vector<Index>* origin) {
  const BoundarySurface surface = boundary_surface(mesh.tets);
  std::vector<Index> kept(mesh.nodes.size(), -1), old;
  for (const Tri& t : surface.triangles)
    for (const Index v : t) kept[v] = 0;
  TriMesh out;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (kept[i] == 0) {
      kept[i] = static_cast<Index>(old.size());
      old.push_back(static_cast<Index>(i));
      out.nodes.push_back(mesh.nodes[i]);
    }
  for (const Tri& t : surface.triangles) out.triangles.push_back({kept[t[0]], kept[t[1]], kept[t[2]]});
  for (const auto& [name, set] : mesh.node_sets) {
    std::vector<Index>& target = out.node_sets[name];
    for (const Index i : set)
      if (kept[i] >= 0) target.push_back(kept[i]);
  }
  for (const auto& [name, field] : mesh.node_fields) {
    Field& target = out.node_fields[name];
    target.components = field.components;
    for (const Index i : old)
      for (int c = 0; c < field.components; ++c)
        target.values.push_back(field.values[static_cast<std::size_t>(i) * field.components + c]);
  }
  if (origin) *origin = std::move(old);
  return out;
}

SurfaceEdges surface_edges(std::span<const Tri> triangles) {
  struct Half {
    Index a, b, triangle;
  };
  std::vector<Half> halves;
  halves.reserve(3 * triangles.size());
  for (std::size_t t = 0; t < triangles.size(); ++t)
    for (int e = 0; e < 3; ++e) {
      const Index a = triangles[t][e], b = triangles[t][(e + 1) % 3];
      halves.push_back({std::min(a, b), std::max(a, b), static_cast<Index>(t)});
    }
  std::sort(halves.begin(), halves.end(), [](const Half& p, const Half& q) {
    return std::tie(p.a, p.b, p.triangle) < std::tie(q.a, q.b, q.triangle);
  });
  SurfaceEdges out;
  out.triangles.reserve(halves.size());
  for (const Half& h : halves) {
    const auto at = static_cast<Index>(out.triangles.size());
    if (out.edges.empty() || out.edges.back().nodes != std::array<Index, 2>{h.a, h.b})
      out.edges.push_back({{h.a, h.b}, at, at});
    out.triangles.push_back(h.triangle);
    out.edges.back().end = at + 1;
  }
  return out;
}

}  // namespace limber
