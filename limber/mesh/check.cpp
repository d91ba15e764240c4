#include <limber/mesh/check.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/mesh/weld.hpp>

#include <fmt/format.h>

#include <numeric>

namespace limber {
namespace {

constexpr std::size_t kFirst = 5;
// |V| / L^3 (or A / L^2) with L the longest edge; the regular tet has 0.118, the triangle 0.43.
constexpr double kFlat = 1e-9;

std::string place(const Vec3& p) { return fmt::format("({:.4g}, {:.4g}, {:.4g})", p[0], p[1], p[2]); }

template <std::size_t N>
Vec3 centroid(std::span<const Vec3> x, const std::array<Index, N>& t) {
  Vec3 c = Vec3::Zero();
  for (const Index v : t) c += x[v];
  return c / double(N);
}

template <std::size_t N>
double longest_edge(std::span<const Vec3> x, const std::array<Index, N>& t) {
  double longest = 0;
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = i + 1; j < N; ++j) longest = std::max(longest, (x[t[i]] - x[t[j]]).norm());
  return longest;
}

// Signed size over the longest edge to the power of the dimension. Surfaces have no sign.
double relative_size(std::span<const Vec3> x, const Tet& t, TriRole) {
  const double L = longest_edge(x, t);
  return L > 0 ? tet_volume(x, t) / (L * L * L) : 0;
}
double relative_size(std::span<const Vec3> x, const Tri& t, TriRole role) {
  const double L = longest_edge(x, t);
  const Vec3 n = triangle_normal(x, t);
  return L > 0 ? (role == TriRole::kPlane ? n[2] : n.norm()) / (2 * L * L) : 0;
}

const std::vector<Tet>& elements_of(const TetMesh& m) { return m.tets; }
const std::vector<Tri>& elements_of(const TriMesh& m) { return m.triangles; }
std::vector<Tet>& elements_of(TetMesh& m) { return m.tets; }
std::vector<Tri>& elements_of(TriMesh& m) { return m.triangles; }
const char* word(const TetMesh&) { return "tet"; }
const char* word(const TriMesh&) { return "triangle"; }

class Collector {
 public:
  explicit Collector(MeshReport& report) : report_(report) {}

  void add(MeshProblemKind kind, bool fatal, const std::vector<Index>& offenders, const std::string& message,
           std::size_t per_item = 1) {
    if (offenders.empty()) return;
    MeshProblem p{kind, fatal, static_cast<Index>(offenders.size() / per_item), {}, message};
    p.first.assign(offenders.begin(), offenders.begin() + std::min(offenders.size(), kFirst * per_item));
    report_.problems.push_back(std::move(p));
  }

 private:
  MeshReport& report_;
};

std::string list_first(const std::vector<Index>& offenders) {
  std::string s;
  for (std::size_t i = 0; i < std::min(offenders.size(), kFirst); ++i)
    s += (i ? ", " : "") + std::to_string(offenders[i]);
  return offenders.size() > kFirst ? s + ", ..." : s;
}

std::string plural(std::size_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

void check_surface_edges(std::span<const Tri> triangles, std::span<const Vec3> x, TriRole role, bool of_tets,
                         Collector& out) {
  std::vector<Index> open, crowded, turned;
  const SurfaceEdges edges = surface_edges(triangles);
  for (const auto& edge : edges.edges) {
    const Index n = edge.end - edge.begin;
    auto* list = n == 1 ? &open : n > 2 ? &crowded : nullptr;
    if (list) list->insert(list->end(), edge.nodes.begin(), edge.nodes.end());
    if (n != 2) continue;
    // Two triangles agree when they run along their common edge in opposite directions.
    int forward = 0;
    for (Index k = edge.begin; k < edge.end; ++k) {
      const Tri& t = triangles[edges.triangles[k]];
      for (int e = 0; e < 3; ++e)
        if (t[e] == edge.nodes[0] && t[(e + 1) % 3] == edge.nodes[1]) ++forward;
    }
    if (forward != 1) turned.insert(turned.end(), edge.nodes.begin(), edge.nodes.end());
  }
  const auto where = [&](const std::vector<Index>& pairs) {
    return fmt::format("first between nodes {} {} and {} {}", pairs[0], place(x[pairs[0]]), pairs[1],
                       place(x[pairs[1]]));
  };
  if (role == TriRole::kSurface && !open.empty())
    out.add(MeshProblemKind::kOpenSurface, false, open,
            fmt::format("the surface is open: {} with one triangle, {}", plural(open.size() / 2, "edge"),
                        where(open)),
            2);
  if (!crowded.empty())
    out.add(MeshProblemKind::kNonManifoldSurface, false, crowded,
            fmt::format("the surface is not a manifold: {} with more than two triangles, {}",
                        plural(crowded.size() / 2, "edge"), where(crowded)),
            2);
  if (!turned.empty() && !of_tets)  // for tets it only repeats that some are inverted
    out.add(MeshProblemKind::kOrientation, false, turned,
            fmt::format("neighbouring triangles turn opposite ways at {}, {}",
                        plural(turned.size() / 2, "edge"), where(turned)),
            2);
}

template <class Mesh>
void check_sets_and_fields(const Mesh& mesh, Collector& out) {
  const auto n_nodes = static_cast<Index>(mesh.nodes.size());
  const auto n_elements = static_cast<Index>(elements_of(mesh).size());
  const auto sets = [&](const IndexSets& group, Index count, const char* what) {
    for (const auto& [name, set] : group)
      for (const Index i : set)
        if (i < 0 || i >= count) {
          out.add(MeshProblemKind::kIndexRange, true, {i},
                  fmt::format("{} set \"{}\" names {} {}, expected 0 to {}", what, name, what, i, count - 1));
          break;
        }
  };
  sets(mesh.node_sets, n_nodes, "node");
  sets(mesh.element_sets, n_elements, "element");
  const auto fields = [&](const Fields& group, Index count, const char* what) {
    for (const auto& [name, field] : group)
      if (field.components < 1 || field.values.size() != std::size_t(field.components) * count)
        out.add(MeshProblemKind::kFieldSize, true, {0},
                fmt::format("{} field \"{}\" has {} numbers, expected {} x {}", what, name,
                            field.values.size(), field.components, count));
  };
  fields(mesh.node_fields, n_nodes, "node");
  fields(mesh.element_fields, n_elements, "element");
}

template <class Mesh>
MeshReport check_any(const Mesh& mesh, TriRole role, bool body) {
  const auto& elements = elements_of(mesh);
  const std::span<const Vec3> x = mesh.nodes;
  const auto n = static_cast<Index>(x.size());
  MeshReport report;
  report.nodes = n;
  report.elements = static_cast<Index>(elements.size());
  report.box = bounding_box(x);
  Collector out(report);
  if (elements.empty()) {
    out.add(MeshProblemKind::kEmpty, true, {0}, fmt::format("there are no {}s", word(mesh)));
    return report;
  }

  std::vector<Index> bad;
  for (Index i = 0; i < n; ++i)
    if (!x[i].allFinite()) bad.push_back(i);
  if (!bad.empty())
    out.add(MeshProblemKind::kNonFinite, true, bad,
            fmt::format("{} not finite: {}",
                        bad.size() == 1 ? "1 node is" : fmt::format("{} nodes are", bad.size()),
                        list_first(bad)));
  bad.clear();
  for (std::size_t e = 0; e < elements.size(); ++e)
    for (const Index v : elements[e])
      if (v < 0 || v >= n) {
        bad.push_back(static_cast<Index>(e));
        break;
      }
  if (!bad.empty())
    out.add(MeshProblemKind::kIndexRange, true, bad,
            fmt::format("{} a node that does not exist (there are {}): {} {}",
                        bad.size() == 1 ? "1 element names" : fmt::format("{} elements name", bad.size()), n,
                        word(mesh), list_first(bad)));
  check_sets_and_fields(mesh, out);
  // What follows needs sound indices and numbers.
  if (!report.usable()) return report;

  std::vector<Index> inverted, flat;
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const double s = relative_size(x, elements[e], role);
    if (std::abs(s) < kFlat)
      flat.push_back(static_cast<Index>(e));
    else if (s < 0)
      inverted.push_back(static_cast<Index>(e));
  }
  const auto at = [&](const std::vector<Index>& list) { return place(centroid(x, elements[list[0]])); };
  if (!inverted.empty())
    out.add(MeshProblemKind::kInverted, true, inverted,
            fmt::format("{} inverted: {}; the first at {}", plural(inverted.size(), word(mesh)),
                        list_first(inverted), at(inverted)));
  if (!flat.empty())
    out.add(MeshProblemKind::kDegenerate, body, flat,
            fmt::format("{} without {}: {}; the first at {}", plural(flat.size(), word(mesh)),
                        std::is_same_v<Mesh, TetMesh> ? "volume" : "area", list_first(flat), at(flat)));

  using Element = typename std::remove_cvref_t<decltype(elements)>::value_type;
  std::vector<std::pair<Element, Index>> sorted(elements.size());
  for (std::size_t e = 0; e < elements.size(); ++e) {
    sorted[e] = {elements[e], static_cast<Index>(e)};
    std::sort(sorted[e].first.begin(), sorted[e].first.end());
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<Index> twins;
  for (std::size_t e = 1; e < sorted.size(); ++e)
    if (sorted[e].first == sorted[e - 1].first) twins.push_back(sorted[e].second);
  std::sort(twins.begin(), twins.end());
  if (!twins.empty())
    out.add(MeshProblemKind::kDuplicateElement, body, twins,
            fmt::format("{} on the same nodes as another: {}", plural(twins.size(), word(mesh)),
                        list_first(twins)));

  const std::vector<Index> part = connected_components(n, elements, &report.components);
  std::vector<Index> unused;
  for (Index i = 0; i < n; ++i)
    if (part[i] < 0) unused.push_back(i);
  if (!unused.empty())
    out.add(MeshProblemKind::kUnusedNode, false, unused,
            fmt::format(
                "{} no {}: {}",
                unused.size() == 1 ? "1 node belongs to" : fmt::format("{} nodes belong to", unused.size()),
                word(mesh), list_first(unused)));
  const double diagonal = report.box.size().norm();
  const std::vector<Index> twin = weld_map(x, 1e-9 * diagonal);
  std::vector<Index> same;
  for (Index i = 0; i < n; ++i)
    if (twin[i] != i) same.push_back(i);
  if (!same.empty())
    out.add(MeshProblemKind::kDuplicateNode, false, same,
            fmt::format(
                "{} in the place of another (a crack, or vertices that were not merged): {}; the first at {}",
                same.size() == 1 ? "1 node is" : fmt::format("{} nodes are", same.size()), list_first(same),
                place(x[same[0]])));
  if (report.components > 1) {
    std::vector<Index> firsts;  // the least node of each part
    for (Index i = 0; i < n; ++i)
      if (part[i] == static_cast<Index>(firsts.size())) firsts.push_back(i);
    out.add(MeshProblemKind::kSeveralComponents, false, firsts,
            fmt::format("the mesh has {} parts that share no node; they start at nodes {}", report.components,
                        list_first(firsts)));
  }
  if constexpr (std::is_same_v<Mesh, TetMesh>)
    check_surface_edges(boundary_surface(elements).triangles, x, role, true, out);
  else
    check_surface_edges(elements, x, role, false, out);
  const double size = report.box.size().maxCoeff();
  if (size > 100 || size < 1e-4)
    out.add(MeshProblemKind::kScale, false, {0},
            fmt::format(
                "the longest side is {:.4g} m; lengths are in metres: scale the mesh if it was made in other "
                "units",
                size));
  return report;
}

template <class Mesh>
std::vector<std::string> fix_any(Mesh& mesh, TriRole role) {
  std::vector<std::string> notices;
  auto& elements = elements_of(mesh);
  const std::span<const Vec3> x = mesh.nodes;
  std::vector<Index> turned;
  for (std::size_t e = 0; e < elements.size(); ++e)
    if (relative_size(x, elements[e], role) < -kFlat) {
      std::swap(elements[e][1], elements[e][2]);
      turned.push_back(static_cast<Index>(e));
    }
  if (!turned.empty())
    notices.push_back(fmt::format("turned {} that {} inverted", plural(turned.size(), word(mesh)),
                                  turned.size() == 1 ? "was" : "were"));

  std::vector<Index> target(x.size(), -1);
  for (const auto& t : elements)
    for (const Index v : t) target[v] = 0;
  std::vector<Index> kept;
  for (std::size_t i = 0; i < target.size(); ++i)
    if (target[i] == 0) {
      target[i] = static_cast<Index>(kept.size());
      kept.push_back(static_cast<Index>(i));
    }
  if (kept.size() == x.size()) return notices;
  notices.push_back(
      fmt::format("dropped {} that no {} uses", plural(x.size() - kept.size(), "node"), word(mesh)));
  for (auto& t : elements)
    for (Index& v : t) v = target[v];
  std::vector<Vec3> nodes;
  nodes.reserve(kept.size());
  for (const Index i : kept) nodes.push_back(mesh.nodes[i]);
  mesh.nodes = std::move(nodes);
  for (auto& [name, set] : mesh.node_sets) {
    std::vector<Index> renamed;
    for (const Index i : set)
      if (target[i] >= 0) renamed.push_back(target[i]);
    set = std::move(renamed);
  }
  for (auto& [name, field] : mesh.node_fields) {
    std::vector<double> values;
    for (const Index i : kept)
      for (int c = 0; c < field.components; ++c)
        values.push_back(field.values[static_cast<std::size_t>(i) * field.components + c]);
    field.values = std::move(values);
  }
  return notices;
}

template <std::size_t N>
std::vector<Index> components(Index n, std::span<const std::array<Index, N>> elements, Index* count) {
  std::vector<Index> root(n);
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](Index i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  std::vector<std::uint8_t> used(n, 0);
  for (const auto& t : elements)
    for (const Index v : t) {
      if (v < 0) continue;
      used[v] = 1;
      const Index a = find(t[0]), b = find(v);
      root[std::max(a, b)] = std::min(a, b);
    }
  std::vector<Index> part(n, -1);
  Index parts = 0;
  for (Index i = 0; i < n; ++i) {
    if (!used[i]) continue;
    const Index r = find(i);  // r <= i, so that it has its number already unless it is i
    part[i] = r == i ? parts++ : part[r];
  }
  if (count) *count = parts;
  return part;
}

}  // namespace

const MeshProblem* MeshReport::find(MeshProblemKind kind) const {
  for (const MeshProblem& p : problems)
    if (p.kind == kind) return &p;
  return nullptr;
}

bool MeshReport::usable() const {
  return std::none_of(problems.begin(), problems.end(), [](const MeshProblem& p) { return p.fatal; });
}

std::string MeshReport::errors() const {
  std::string s;
  for (const MeshProblem& p : problems)
    if (p.fatal) s += (s.empty() ? "" : "\n") + p.message;
  return s;
}

MeshReport check_mesh(const TetMesh& mesh) { return check_any(mesh, TriRole::kSurface, true); }
MeshReport check_mesh(const TriMesh& mesh, TriRole role) {
  return check_any(mesh, role, role == TriRole::kPlane);
}

TriRole guess_role(const TriMesh& mesh) {
  if (mesh.triangles.empty()) return TriRole::kSurface;
  const double z = mesh.nodes[mesh.triangles[0][0]][2];
  for (const Tri& t : mesh.triangles)
    for (const Index v : t)
      if (mesh.nodes[v][2] != z) return TriRole::kSurface;
  return TriRole::kPlane;
}

std::vector<std::string> fix_mesh(TetMesh& mesh) { return fix_any(mesh, TriRole::kSurface); }
std::vector<std::string> fix_mesh(TriMesh& mesh, TriRole role) { return fix_any(mesh, role); }

std::vector<Index> connected_components(Index nodes, std::span<const Tet> elements, Index* count) {
  return components(nodes, elements, count);
}
std::vector<Index> connected_components(Index nodes, std::span<const Tri> elements, Index* count) {
  return components(nodes, elements, count);
}

}  // namespace limber
