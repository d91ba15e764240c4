#include <limber/mesh/refine.hpp>

#include <limber/mesh/surface.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace limber {
namespace {

using Edge = std::pair<Index, Index>;  // ascending

Edge edge(Index a, Index b) { return {std::min(a, b), std::max(a, b)}; }

// All edges in ascending order; edge k gets the new node old_nodes + k.
class Middles {
 public:
  Middles(std::vector<Edge> edges, std::size_t old_nodes) : edges_(std::move(edges)), first_(old_nodes) {
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
  }
  Index operator()(Index a, Index b) const {
    const auto at = std::lower_bound(edges_.begin(), edges_.end(), edge(a, b));
    return static_cast<Index>(first_ + static_cast<std::size_t>(at - edges_.begin()));
  }
  const std::vector<Edge>& edges() const { return edges_; }
  std::size_t first() const { return first_; }

 private:
  std::vector<Edge> edges_;
  std::size_t first_;
};

// Nodes, node fields, and what comes of sets; the same for tets and triangles. `boundary`: its edges,
// ascending.
template <class Mesh>
void refine_nodes(const Mesh& mesh, const Middles& middle, const std::vector<Edge>& boundary, Mesh& out) {
  out.nodes = mesh.nodes;
  for (const auto& [a, b] : middle.edges()) out.nodes.push_back(0.5 * (mesh.nodes[a] + mesh.nodes[b]));
  for (const auto& [name, field] : mesh.node_fields) {
    Field& fine = out.node_fields[name] = field;
    const auto m = static_cast<std::size_t>(field.components);
    for (const auto& [a, b] : middle.edges())
      for (std::size_t c = 0; c < m; ++c)
        fine.values.push_back(0.5 * (field.values[static_cast<std::size_t>(a) * m + c] +
                                     field.values[static_cast<std::size_t>(b) * m + c]));
  }
  std::vector<std::uint8_t> on_boundary(mesh.nodes.size(), 0), chosen;
  for (const auto& [a, b] : boundary) on_boundary[a] = on_boundary[b] = 1;
  for (const auto& [name, nodes] : mesh.node_sets) {
    std::vector<Index>& fine = out.node_sets[name] = nodes;
    chosen.assign(mesh.nodes.size(), 0);
    for (const Index i : nodes) chosen[i] = 1;
    const bool surface = std::all_of(nodes.begin(), nodes.end(), [&](Index i) { return on_boundary[i]; });
    const std::vector<Edge>& edges = surface ? boundary : middle.edges();
    for (const auto& [a, b] : edges)
      if (chosen[a] && chosen[b]) fine.push_back(middle(a, b));
  }
}

template <class Mesh>
void refine_elements(const Mesh& mesh, Index children, Mesh& out) {
  for (const auto& [name, elements] : mesh.element_sets)
    for (const Index e : elements)
      for (Index k = 0; k < children; ++k) out.element_sets[name].push_back(children * e + k);
  for (const auto& [name, field] : mesh.element_fields) {
    Field& fine = out.element_fields[name];
    fine.components = field.components;
    for (std::size_t at = 0; at < field.values.size(); at += static_cast<std::size_t>(field.components))
      for (Index k = 0; k < children; ++k)
        fine.values.insert(fine.values.end(), field.values.begin() + static_cast<std::ptrdiff_t>(at),
                           field.values.begin() + static_cast<std::ptrdiff_t>(at) + field.components);
  }
}

std::vector<Edge> edges_of(std::span<const Tri> triangles, bool boundary_only) {
  std::vector<Edge> list;
  for (const auto& e : surface_edges(triangles).edges)
    if (!boundary_only || e.end - e.begin == 1) list.push_back({e.nodes[0], e.nodes[1]});
  return list;
}

}  // namespace

TetMesh refined(const TetMesh& mesh) {
  std::vector<Edge> edges;
  edges.reserve(6 * mesh.tets.size());
  for (const Tet& t : mesh.tets)
    for (int i = 0; i < 4; ++i)
      for (int j = i + 1; j < 4; ++j) edges.push_back(edge(t[i], t[j]));
  const Middles middle(std::move(edges), mesh.nodes.size());

  TetMesh out;
  refine_nodes(mesh, middle, edges_of(boundary_surface(mesh.tets).triangles, false), out);
  out.tets.reserve(8 * mesh.tets.size());
  for (const Tet& t : mesh.tets) {
    const auto [a, b, c, d] = t;
    const Index ab = middle(a, b), ac = middle(a, c), ad = middle(a, d);
    const Index bc = middle(b, c), bd = middle(b, d), cd = middle(c, d);
    out.tets.insert(out.tets.end(), {{a, ab, ac, ad}, {ab, b, bc, bd}, {ac, bc, c, cd}, {ad, bd, cd, d}});
    // A diagonal of the octahedron and the ring around it, positively oriented.
    const std::array<std::array<Index, 6>, 3> cuts{
        {{ab, cd, ac, ad, bd, bc}, {ac, bd, ad, ab, bc, cd}, {ad, bc, ab, ac, cd, bd}}};
    const auto& [p, q, r0, r1, r2, r3] =
        *std::min_element(cuts.begin(), cuts.end(), [&](const auto& u, const auto& v) {
          return (out.nodes[u[0]] - out.nodes[u[1]]).squaredNorm() <
                 (out.nodes[v[0]] - out.nodes[v[1]]).squaredNorm();
        });
    out.tets.insert(out.tets.end(), {{p, q, r0, r1}, {p, q, r1, r2}, {p, q, r2, r3}, {p, q, r3, r0}});
  }
  refine_elements(mesh, 8, out);
  return out;
}

TriMesh refined(const TriMesh& mesh) {
  const Middles middle(edges_of(mesh.triangles, false), mesh.nodes.size());
  TriMesh out;
  refine_nodes(mesh, middle, edges_of(mesh.triangles, true), out);
  out.triangles.reserve(4 * mesh.triangles.size());
  for (const auto& [a, b, c] : mesh.triangles) {
    const Index ab = middle(a, b), ac = middle(a, c), bc = middle(b, c);
    out.triangles.insert(out.triangles.end(), {{a, ab, ac}, {ab, b, bc}, {ac, bc, c}, {ab, bc, ac}});
  }
  refine_elements(mesh, 4, out);
  return out;
}

}  // namespace limber
