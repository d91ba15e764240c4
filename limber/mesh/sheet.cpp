#include <limber/core/error.hpp>
#include <limber/mesh/sheet.hpp>
#include <limber/mesh/surface.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

struct SheetDefect {
  Index count = 0;
  std::string first;
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    if (count++ == 0) first = fmt::format(text, std::forward<Args>(args)...);
  }
  void tell(std::vector<std::string>& out) const {
    if (count == 1) out.push_back(first);
    if (count > 1) out.push_back(fmt::format("{} (and {} more)", first, count - 1));
  }
};

std::string in_material(const Vec2& X) { return fmt::format("({:.6g}, {:.6g})", X[0], X[1]); }

// A vertex whose triangles do not form one fan: the border passes through it twice, or a fan closes beside
// another.
void find_pinched(const Sheet& s, std::vector<std::string>& out) {
  // In a manifold fan every triangle at i but one (at the border) has the next one beside it.
  std::vector<std::array<Index, 3>> half;  // at a: b, c of triangle (a, b, c)
  for (const Tri& t : s.triangles)
    for (int k = 0; k < 3; ++k) half.push_back({t[k], t[(k + 1) % 3], t[(k + 2) % 3]});
  std::sort(half.begin(), half.end());
  SheetDefect pinched;
  for (std::size_t begin = 0; begin < half.size();) {
    std::size_t end = begin;
    while (end < half.size() && half[end][0] == half[begin][0]) ++end;
    const auto next = [&](Index c) {
      const auto it = std::lower_bound(half.begin() + begin, half.begin() + end,
                                       std::array<Index, 3>{half[begin][0], c, -1});
      return it != half.begin() + end && (*it)[1] == c ? &*it : nullptr;
    };
    // Start where nobody comes before; else anywhere.
    std::vector<Index> seconds;
    for (std::size_t k = begin; k < end; ++k) seconds.push_back(half[k][2]);
    std::sort(seconds.begin(), seconds.end());
    const std::array<Index, 3>* first = nullptr;
    int fans = 0;
    for (std::size_t k = begin; k < end; ++k)
      if (!std::binary_search(seconds.begin(), seconds.end(), half[k][1])) {
        ++fans;
        first = &half[k];
      }
    if (!first) first = &half[begin];
    std::size_t seen = 0;
    for (const auto* h = first; h && seen <= end - begin; h = next((*h)[2])) {
      ++seen;
      if ((*h)[2] == (*first)[1]) break;
    }
    if (fans > 1 || seen != end - begin)
      pinched.add("vertex {} at {}: its triangles meet in a point only; give each fan a vertex of its own",
                  half[begin][0], in_material(s.X[half[begin][0]]));
    begin = end;
  }
  pinched.tell(out);
}

}  // namespace

double material_area(const Sheet& s) {
  double twice = 0;
  for (const Tri& t : s.triangles) twice += material_det(s, t);
  return 0.5 * twice;
}

Sheet make_sheet(std::vector<Vec3> x, std::vector<Vec2> X, std::vector<Tri> triangles) {
  Sheet s;
  const std::size_t n = x.size();
  s.x = std::move(x);
  s.X = std::move(X);
  s.triangles = std::move(triangles);
  s.v.assign(n, Vec3::Zero());
  s.V.assign(n, Vec2::Zero());
  s.tag.assign(n, -1);
  s.feature.assign(n, -1);
  s.parameter.assign(n, 0.0);
  s.age.assign(n, 0);
  s.patch.assign(n, 0);
  return s;
}

Sheet joined(const Sheet& a, const Sheet& b) {
  Sheet s = a;
  const Index n = a.vertices();
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(s.x, b.x);
  append(s.X, b.X);
  append(s.v, b.v);
  append(s.V, b.V);
  append(s.tag, b.tag);
  append(s.feature, b.feature);
  append(s.parameter, b.parameter);
  append(s.age, b.age);
  append(s.patch, b.patch);
  for (const Tri& t : b.triangles) s.triangles.push_back({t[0] + n, t[1] + n, t[2] + n});
  for (const auto& e : b.preserved) s.preserved.push_back({e[0] + n, e[1] + n});
  return s;
}

Sheet sheet_from_mesh(const TriMesh& mesh, const std::string& where) {
  std::vector<Vec2> X(mesh.nodes.size(), Vec2::Zero());
  const auto uv = mesh.node_fields.find("uv");
  if (uv != mesh.node_fields.end()) {
    const Field& f = uv->second;
    if (f.components != 2 || f.values.size() != 2 * mesh.nodes.size())
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: the node field \"uv\" has {} components and {} values, expected 2 and {}",
                              where, f.components, f.values.size(), 2 * mesh.nodes.size()));
    for (std::size_t i = 0; i < X.size(); ++i) X[i] = {f.values[2 * i], f.values[2 * i + 1]};
  } else {
    // The plane's normal is the sum of the triangles'; its axes are the world's where they can be.
    Vec3 n = Vec3::Zero();
    for (const Tri& t : mesh.triangles) {
      for (const Index i : t)
        if (i < 0 || at(i) >= mesh.nodes.size())
          throw Error(ErrorKind::kInput, fmt::format("{}: a triangle names node {}, but there are {}", where,
                                                     i, mesh.nodes.size()));
      const Vec3 m = triangle_normal(mesh.nodes, t);
      n += n.dot(m) < 0 ? Vec3(-m) : m;  // clockwise ones are turned below
    }
    if (!(n.norm() > 0)) throw Error(ErrorKind::kInput, fmt::format("{}: the triangles have no area", where));
    n.normalize();
    int most = 0;
    n.cwiseAbs().maxCoeff(&most);
    // e1: the axis after the dominant one, made perpendicular; so z = 0 gives X = (x, y).
    Vec3 e1 = Vec3::Unit((most + 1) % 3);
    e1 = (e1 - n.dot(e1) * n).normalized();
    const Vec3 e2 = cross(n, e1);
    const Vec3 o = mesh.nodes.empty() ? Vec3(Vec3::Zero()) : mesh.nodes.front();
    const double size = bounding_box(mesh.nodes).size().maxCoeff();
    for (std::size_t i = 0; i < X.size(); ++i) {
      const Vec3& p = mesh.nodes[i];
      if (std::abs(n.dot(p - o)) > 1e-6 * size)
        throw Error(
            ErrorKind::kInput,
            fmt::format(
                "{}: node {} is {:.3g} m away from the plane of the others, and there are no material "
                "coordinates: give a mesh with texture coordinates (OBJ \"vt\") in metres, or a plane one",
                where, i, std::abs(n.dot(p - o))));
      X[i] = {e1.dot(p), e2.dot(p)};
    }
  }
  Sheet s = make_sheet(mesh.nodes, std::move(X), mesh.triangles);
  for (Tri& t : s.triangles)
    if (std::all_of(t.begin(), t.end(), [&](Index i) { return i >= 0 && i < s.vertices(); }) &&
        material_det(s, t) < 0)
      std::swap(t[1], t[2]);
  check_sheet(s, where);
  return s;
}

std::vector<std::string> sheet_defects(const Sheet& s) {
  std::vector<std::string> out;
  const std::size_t n = s.x.size();
  for (const auto& [name, size] : {std::pair{"X", s.X.size()},
                                   {"v", s.v.size()},
                                   {"V", s.V.size()},
                                   {"tag", s.tag.size()},
                                   {"feature", s.feature.size()},
                                   {"parameter", s.parameter.size()},
                                   {"age", s.age.size()},
                                   {"patch", s.patch.size()}})
    if (size != n)
      out.push_back(fmt::format("{} has {} entries, expected {}, one per vertex", name, size, n));
  if (!out.empty()) return out;
  if (s.triangles.empty()) return {"there is no triangle"};

  SheetDefect finite, range, repeated;
  for (std::size_t i = 0; i < n; ++i)
    if (!s.x[i].allFinite() || !s.X[i].allFinite() || !s.v[i].allFinite() || !s.V[i].allFinite())
      finite.add("vertex {} has a coordinate or velocity that is not a finite number", i);
  for (std::size_t k = 0; k < s.triangles.size(); ++k) {
    const Tri& t = s.triangles[k];
    for (const Index i : t)
      if (i < 0 || at(i) >= n) range.add("triangle {} names vertex {}, but there are {}", k, i, n);
    if (t[0] == t[1] || t[1] == t[2] || t[2] == t[0]) repeated.add("triangle {} names a vertex twice", k);
  }
  finite.tell(out);
  range.tell(out);
  repeated.tell(out);
  if (!out.empty()) return out;

  SheetDefect unused, area, clockwise, patches, crowded, turned, preserved;
  std::vector<char> used(n, 0);
  double largest = 0;
  for (const Tri& t : s.triangles) largest = std::max(largest, std::abs(material_det(s, t)));
  for (std::size_t k = 0; k < s.triangles.size(); ++k) {
    const Tri& t = s.triangles[k];
    for (const Index i : t) used[i] = 1;
    const double d = material_det(s, t);
    if (std::abs(d) <= 1e-14 * largest)
      area.add("triangle {} near {} has no material area", k, in_material(s.X[t[0]]));
    else if (d < 0)
      clockwise.add("triangle {} near {} is clockwise in the material", k, in_material(s.X[t[0]]));
    if (s.patch[t[0]] != s.patch[t[1]] || s.patch[t[0]] != s.patch[t[2]])
      patches.add("triangle {} joins vertices of different patches", k);
  }
  for (std::size_t i = 0; i < n; ++i)
    if (!used[i]) unused.add("vertex {} has no triangle", i);
  std::vector<std::array<Index, 2>> edges;
  for (const Tri& t : s.triangles)
    for (int k = 0; k < 3; ++k) edges.push_back({t[k], t[(k + 1) % 3]});
  std::vector<std::array<Index, 2>> sorted;
  for (const auto& e : edges) sorted.push_back({std::min(e[0], e[1]), std::max(e[0], e[1])});
  std::sort(sorted.begin(), sorted.end());
  std::sort(edges.begin(), edges.end());
  for (std::size_t k = 0; k < sorted.size();) {
    std::size_t end = k;
    while (end < sorted.size() && sorted[end] == sorted[k]) ++end;
    if (end - k > 2)
      crowded.add("edge {}-{} near {} has {} triangles, expected one or two", sorted[k][0], sorted[k][1],
                  in_material(s.X[sorted[k][0]]), end - k);
    k = end;
  }
  for (std::size_t k = 1; k < edges.size(); ++k)
    if (edges[k] == edges[k - 1])
      turned.add("the triangles beside edge {}-{} near {} turn opposite ways or lie twice", edges[k][0],
                 edges[k][1], in_material(s.X[edges[k][0]]));
  for (std::size_t k = 0; k < s.preserved.size(); ++k) {
    const auto& e = s.preserved[k];
    if (e[0] >= e[1] || (k > 0 && !(s.preserved[k - 1] < e)))
      preserved.add("preserved edge {} ({}-{}) is out of order", k, e[0], e[1]);
    else if (!std::binary_search(sorted.begin(), sorted.end(), e))
      preserved.add("preserved edge {}-{} is no edge of the mesh", e[0], e[1]);
  }
  for (const SheetDefect* d : {&unused, &crowded, &turned, &area, &clockwise, &patches, &preserved})
    d->tell(out);
  if (crowded.count == 0 && turned.count == 0) find_pinched(s, out);
  return out;
}

void check_sheet(const Sheet& s, const std::string& where) {
  const auto defects = sheet_defects(s);
  if (!defects.empty()) throw Error(ErrorKind::kInput, fmt::format("{}: {}", where, defects.front()));
}

Index euler_characteristic(const Sheet& s) {
  const auto edges = surface_edges(s.triangles);
  return s.vertices() - static_cast<Index>(edges.edges.size()) + s.faces();
}

SheetBorder sheet_border(const Sheet& s) {
  SheetBorder border;
  border.before.assign(s.x.size(), -1);
  border.after.assign(s.x.size(), -1);
  std::vector<std::array<Index, 2>> edges;
  edges.reserve(3 * s.triangles.size());
  for (const Tri& t : s.triangles)
    for (int k = 0; k < 3; ++k) edges.push_back({t[k], t[(k + 1) % 3]});
  // Bucket by the first vertex: cheaper than sorting, and the answer does not depend on the order.
  std::vector<Index> begin(s.x.size() + 1, 0);
  for (const auto& e : edges) ++begin[e[0] + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<Index> to(edges.size()), fill(begin.begin(), begin.end() - 1);
  for (const auto& e : edges) to[fill[e[0]]++] = e[1];
  for (const auto& e : edges) {
    bool inner = false;
    for (Index k = begin[e[1]]; k < begin[e[1] + 1]; ++k) inner = inner || to[k] == e[0];
    if (inner) continue;
    border.after[e[0]] = e[1];
    border.before[e[1]] = e[0];
  }
  return border;
}

bool SheetBorder::corner(const Sheet& s, Index i, double turn) const {
  if (!on(i)) return false;
  const Vec2 in = s.X[i] - s.X[before[i]], out = s.X[after[i]] - s.X[i];
  return in.dot(out) <= 0 || std::abs(cross2(in, out)) > turn * in.norm() * out.norm();
}

SheetLocator::SheetLocator(const Sheet& sheet) : sheet_(sheet) {
  Vec2 hi = sheet.X.front();
  lo_ = hi;
  for (const Vec2& p : sheet.X) {
    lo_ = lo_.cwiseMin(p);
    hi = hi.cwiseMax(p);
  }
  const Vec2 size = hi - lo_;
  cell_ = std::max(std::sqrt(size[0] * size[1] / std::max<Index>(1, sheet.faces())), 1e-300);
  nx_ = static_cast<Index>(size[0] / cell_) + 1;
  ny_ = static_cast<Index>(size[1] / cell_) + 1;
  const auto cells_of = [&](const Tri& t, const auto& use) {
    Vec2 a = sheet_.X[t[0]], b = a;
    for (const Index i : t) {
      a = a.cwiseMin(sheet_.X[i]);
      b = b.cwiseMax(sheet_.X[i]);
    }
    const Vec2 u = (a - lo_) / cell_, w = (b - lo_) / cell_;
    for (auto j = static_cast<Index>(u[1]); j <= std::min(ny_ - 1, static_cast<Index>(w[1])); ++j)
      for (auto i = static_cast<Index>(u[0]); i <= std::min(nx_ - 1, static_cast<Index>(w[0])); ++i)
        use(i + nx_ * j);
  };
  begin_.assign(at(nx_) * at(ny_) + 1, 0);
  for (const Tri& t : sheet.triangles) cells_of(t, [&](Index c) { ++begin_[c + 1]; });
  for (std::size_t c = 1; c < begin_.size(); ++c) begin_[c] += begin_[c - 1];
  in_.resize(at(begin_.back()));
  std::vector<Index> fill(begin_.begin(), begin_.end() - 1);
  for (Index k = 0; k < sheet.faces(); ++k)
    cells_of(sheet.triangles[k], [&](Index c) { in_[fill[c]++] = k; });
}

SheetLocator::Place SheetLocator::find(const Vec2& p, std::int64_t patch) const {
  Place best;
  double least = -1e300;  // the least barycentric coordinate of the best so far
  const auto try_cell = [&](Index c) {
    for (Index q = begin_[c]; q < begin_[c + 1]; ++q) {
      const Index k = in_[q];
      const Tri& t = sheet_.triangles[k];
      if (sheet_.patch[t[0]] != patch) continue;
      const auto w = barycentric(sheet_, t, p);
      const double m = std::min({w[0], w[1], w[2]});
      if (m > least) {
        least = m;
        best = {k, w};
      }
    }
  };
  const Vec2 u = (p - lo_) / cell_;
  const Index i = std::clamp(static_cast<Index>(std::floor(u[0])), Index{0}, nx_ - 1);
  const Index j = std::clamp(static_cast<Index>(std::floor(u[1])), Index{0}, ny_ - 1);
  try_cell(i + nx_ * j);
  // Not inside one of these: look further, ring by ring, until something was found in the ring before.
  for (Index r = 1; least < -1e-9 && r <= std::max(nx_, ny_); ++r) {
    const bool had = best.triangle >= 0;
    for (Index b = std::max<Index>(0, j - r); b <= std::min(ny_ - 1, j + r); ++b)
      for (Index a = std::max<Index>(0, i - r); a <= std::min(nx_ - 1, i + r); ++a)
        if (std::max(std::abs(a - i), std::abs(b - j)) == r) try_cell(a + nx_ * b);
    if (had) break;
  }
  double sum = 0;
  for (double& w : best.weights) sum += w = std::max(w, 0.0);
  for (double& w : best.weights) w /= sum;
  return best;
}

}  // namespace limber
