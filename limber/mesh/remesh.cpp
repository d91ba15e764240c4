#include <limber/core/error.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/quality.hpp>
#include <limber/mesh/remesh.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/mesh/surface_tree.hpp>

#include <numbers>

namespace limber {
namespace {

// A triangle mesh under local operations. Vertices and triangles die and are swept out at the end of a round.
class Remesher {
 public:
  Remesher(const TriMesh& surface, const RemeshOptions& options)
      : tree_(surface.nodes, surface.triangles),
        x_(surface.nodes),
        t_(surface.triangles),
        edge_(options.edge),
        cos_feature_(std::cos(options.feature_angle * std::numbers::pi / 180)) {
    for (int round = 0; round < options.rounds; ++round) {
      index();
      classify();
      split_long();
      collapse_short(0.8 * edge_, false);
      sweep();
      classify();
      flip();
      relax();
    }
    untangle();
    // Last, the few bad triangles that are left.
    for (int round = 0; round < 3; ++round) {
      index();
      classify();
      flip();
      collapse_short(edge_, true);
      sweep();
    }
    untangle();
  }

  TriMesh result() && {
    TriMesh out;
    out.nodes = std::move(x_);
    out.triangles = std::move(t_);
    return out;
  }

 private:
  enum Kind : std::uint8_t { kFree, kCrease, kCorner };

  void index() {
    around_.assign(x_.size(), {});
    for (std::size_t i = 0; i < t_.size(); ++i)
      for (const Index v : t_[i]) around_[v].push_back(static_cast<Index>(i));
    dead_vertex_.assign(x_.size(), 0);
    dead_.assign(t_.size(), 0);
  }

  void sweep() {
    std::vector<Index> place(x_.size(), -1);
    std::vector<Vec3> x;
    for (std::size_t i = 0; i < x_.size(); ++i)
      if (!dead_vertex_[i]) {
        place[i] = static_cast<Index>(x.size());
        x.push_back(x_[i]);
      }
    std::vector<Tri> t;
    for (std::size_t i = 0; i < t_.size(); ++i)
      if (!dead_[i]) t.push_back({place[t_[i][0]], place[t_[i][1]], place[t_[i][2]]});
    x_ = std::move(x);
    t_ = std::move(t);
    drop_specks();
    index();
  }

  // Closed parts smaller than a cube of one edge, such as cutting a neck leaves.
  void drop_specks() {
    Index parts = 0;
    const auto part = connected_components(static_cast<Index>(x_.size()), t_, &parts);
    if (parts <= 1) return;
    std::vector<double> volume(parts, 0.0);
    for (const Tri& t : t_) volume[part[t[0]]] += x_[t[0]].dot(cross(x_[t[1]], x_[t[2]])) / 6;
    const double largest = *std::max_element(volume.begin(), volume.end());
    const double least = std::min(std::pow(edge_, 3), largest);
    TriMesh kept;
    for (const Tri& t : t_)
      if (std::abs(volume[part[t[0]]]) >= least) kept.triangles.push_back(t);
    if (kept.triangles.size() == t_.size()) return;
    kept.nodes = std::move(x_);
    fix_mesh(kept, TriRole::kSurface);
    x_ = std::move(kept.nodes);
    t_ = std::move(kept.triangles);
  }

  Vec3 normal(const Tri& t) const { return triangle_normal(x_, t); }

  // Triangles on both sides of edge ab. False unless there are exactly two.
  bool sides(Index a, Index b, std::array<Index, 2>& out) const {
    int n = 0;
    for (const Index i : around_[a]) {
      const Tri& t = t_[i];
      if (t[0] != b && t[1] != b && t[2] != b) continue;
      if (n == 2) return false;
      out[n++] = i;
    }
    return n == 2;
  }

  static Index third(const Tri& t, Index a, Index b) {
    for (const Index v : t)
      if (v != a && v != b) return v;
    return -1;
  }

  bool sharp(const std::array<Index, 2>& pair) const {
    const Vec3 n = normal(t_[pair[0]]), m = normal(t_[pair[1]]);
    return n.dot(m) < cos_feature_ * n.norm() * m.norm();
  }

  std::vector<std::array<Index, 2>> edges() const {
    std::vector<std::array<Index, 2>> list;
    for (const auto& e : surface_edges(t_).edges) list.push_back(e.nodes);
    return list;
  }

  void classify() {
    std::vector<int> creases(x_.size(), 0);
    for (const auto& [a, b] : edges()) {
      std::array<Index, 2> pair;
      if (!sides(a, b, pair) || sharp(pair)) {
        ++creases[a];
        ++creases[b];
      }
    }
    kind_.assign(x_.size(), kFree);
    for (std::size_t i = 0; i < x_.size(); ++i)
      kind_[i] = creases[i] == 0 ? kFree : creases[i] == 2 ? kCrease : kCorner;
  }

  double length(Index a, Index b) const { return (x_[a] - x_[b]).norm(); }

  void replace(Tri& t, Index from, Index to) {
    for (Index& v : t)
      if (v == from) v = to;
  }

  void split_long() {
    // Longest first would be better for very uneven input; halving all in a few rounds is enough here.
    for (const auto& [a, b] : edges()) {
      std::array<Index, 2> pair;
      if (length(a, b) <= 4.0 / 3 * edge_ || !sides(a, b, pair)) continue;
      const bool crease = sharp(pair);
      const auto m = static_cast<Index>(x_.size());
      x_.push_back((x_[a] + x_[b]) / 2);
      dead_vertex_.push_back(0);
      kind_.push_back(crease ? kCrease : kFree);
      around_.emplace_back();
      for (const Index i : pair) {
        Tri fresh = t_[i];
        replace(fresh, a, m);  // keeps b
        replace(t_[i], b, m);  // keeps a
        const auto j = static_cast<Index>(t_.size());
        t_.push_back(fresh);
        dead_.push_back(0);
        std::erase(around_[b], i);
        around_[b].push_back(j);
        around_[third(fresh, m, b)].push_back(j);
        around_[m].push_back(i);
        around_[m].push_back(j);
      }
    }
  }

  void neighbours(Index v, std::vector<Index>& out) const {
    out.clear();
    for (const Index i : around_[v])
      for (const Index w : t_[i])
        if (w != v) out.push_back(w);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }

  // Would the triangles at `v` (but for those that also have `gone`) keep their sides if it moved to p?
  bool keeps_sides(Index v, Index gone, const Vec3& p) const {
    for (const Index i : around_[v]) {
      Tri t = t_[i];
      if (t[0] == gone || t[1] == gone || t[2] == gone) continue;
      while (t[0] != v) t = {t[1], t[2], t[0]};
      const Vec3 before = normal(t);
      if (before.norm() < 0.02 * edge_ * edge_) continue;  // too small to have a side
      const Vec3 after = cross(x_[t[1]] - p, x_[t[2]] - p);
      if (before.dot(after) < 0.3 * before.norm() * after.norm() || after.norm() == 0) return false;
      // No needles: height over longest side.
      const double longest2 = std::max(
          {(x_[t[1]] - p).squaredNorm(), (x_[t[2]] - p).squaredNorm(), (x_[t[1]] - x_[t[2]]).squaredNorm()});
      if (after.norm() < 0.05 * longest2 && after.norm() < before.norm()) return false;
    }
    return true;
  }

  // Triangles at v that can be reached from `start` without crossing edges va and vb.
  std::vector<Index> fan_side(Index v, Index a, Index b, Index start) const {
    std::vector<Index> side{start};
    for (std::size_t k = 0; k < side.size(); ++k)
      for (const Index w : t_[side[k]]) {
        if (w == v || w == a || w == b) continue;
        for (const Index i : around_[v])
          if (contains(t_[i], w) && std::find(side.begin(), side.end(), i) == side.end()) side.push_back(i);
      }
    return side;
  }

  // The triangle that runs from a to b along its border.
  Index along(Index a, Index b) const {
    for (const Index i : around_[a])
      for (int e = 0; e < 3; ++e)
        if (t_[i][e] == a && t_[i][(e + 1) % 3] == b) return i;
    return -1;
  }

  // Cuts the surface along the three edges abc, which are no triangle, and closes both ends with one each: a
  // thin neck parts, a thin handle opens. Only where the loop is small.
  bool cut_neck(Index a, Index b, Index c) {
    if (length(a, b) + length(b, c) + length(c, a) > 3 * edge_) return false;
    const std::array<Index, 3> loop{a, b, c};
    std::array<std::vector<Index>, 3> side;  // of the triangles that run from b to a, c to b, a to c
    for (int k = 0; k < 3; ++k) {
      const Index v = loop[k], next = loop[(k + 1) % 3], previous = loop[(k + 2) % 3];
      const Index start = along(next, v), other = along(v, next);
      if (start < 0 || other < 0) return false;
      side[k] = fan_side(v, next, previous, start);
      if (std::find(side[k].begin(), side[k].end(), other) != side[k].end())
        return false;  // does not separate
    }
    Tri twin;
    for (int k = 0; k < 3; ++k) {
      const Index v = loop[k];
      twin[k] = static_cast<Index>(x_.size());
      x_.push_back(x_[v]);
      kind_.push_back(kind_[v]);
      dead_vertex_.push_back(0);
      around_.push_back(side[k]);
      for (const Index i : side[k]) {
        replace(t_[i], v, twin[k]);
        std::erase(around_[v], i);
      }
    }
    for (const Tri& cap : {Tri{a, c, b}, twin}) {
      for (const Index v : cap) around_[v].push_back(static_cast<Index>(t_.size()));
      t_.push_back(cap);
      dead_.push_back(0);
    }
    return true;
  }

  // Collapses edges shorter than `limit`, or those of bad triangles that are their shortest.
  void collapse_short(double limit, bool bad_only) {
    std::vector<Index> na, nb, common;
    for (const auto& [first, second] : edges()) {
      Index a = first, b = second;  // b goes into a
      if (dead_vertex_[a] || dead_vertex_[b] || length(a, b) >= limit) continue;
      std::array<Index, 2> pair;
      if (!sides(a, b, pair) || (bad_only && worst(t_[pair[0]], t_[pair[1]]) > 0.3)) continue;
      if (kind_[b] > kind_[a]) std::swap(a, b);
      if (kind_[b] == kCorner) continue;
      if (kind_[b] == kCrease && !sharp(pair)) continue;  // only along the crease
      neighbours(a, na);
      neighbours(b, nb);
      common.clear();
      std::set_intersection(na.begin(), na.end(), nb.begin(), nb.end(), std::back_inserter(common));
      if (common.size() > 2) {  // would pinch the surface: it is thinner here than triangles can be
        for (const Index c : common)
          if (c != third(t_[pair[0]], a, b) && c != third(t_[pair[1]], a, b) && cut_neck(a, b, c)) break;
        continue;
      }
      if (common.size() != 2 || na.size() + nb.size() - 4 < 4) continue;
      // Neither may a third corner be left with two triangles.
      if (around_[common[0]].size() <= 3 || around_[common[1]].size() <= 3) continue;
      const Vec3 p = kind_[a] == kFree ? ((x_[a] + x_[b]) / 2).eval() : x_[a];
      bool fits = true;
      for (const auto* list : {&na, &nb})
        for (const Index v : *list) fits = fits && (v == a || v == b || (x_[v] - p).norm() < 4.0 / 3 * edge_);
      if (!fits || !keeps_sides(a, b, p) || !keeps_sides(b, a, p)) continue;
      for (const Index i : pair) {
        dead_[i] = 1;
        for (const Index v : t_[i]) std::erase(around_[v], i);
      }
      for (const Index i : around_[b]) {
        replace(t_[i], b, a);
        around_[a].push_back(i);
      }
      around_[b].clear();
      dead_vertex_[b] = 1;
      x_[a] = p;
    }
  }

  // The two triangles that edge ab would become if it were flipped. False when the surface forbids it.
  bool flipped(Index a, Index b, const std::array<Index, 2>& pair, std::array<Tri, 2>& out) const {
    const Index c = third(t_[pair[0]], a, b), d = third(t_[pair[1]], a, b);
    if (c == d || around_[a].size() <= 3 || around_[b].size() <= 3) return false;
    for (const Index i : around_[c])
      if (contains(t_[i], d)) return false;  // the new edge exists already
    Tri p = t_[pair[0]];
    while (p[2] != c) p = {p[1], p[2], p[0]};
    out = {Tri{p[0], d, c}, Tri{d, p[1], c}};
    const Vec3 n = normal(t_[pair[0]]) + normal(t_[pair[1]]), m0 = normal(out[0]), m1 = normal(out[1]);
    return m0.dot(n) > 0.5 * m0.norm() * n.norm() && m1.dot(n) > 0.5 * m1.norm() * n.norm();
  }

  void apply_flip(const std::array<Index, 2>& pair, const std::array<Tri, 2>& fresh) {
    for (int k = 0; k < 2; ++k) {
      for (const Index v : t_[pair[k]]) std::erase(around_[v], pair[k]);
      t_[pair[k]] = fresh[k];
      for (const Index v : fresh[k]) around_[v].push_back(pair[k]);
    }
  }

  double worst(const Tri& s, const Tri& t) const {
    return std::min(radius_ratio(x_, s), radius_ratio(x_, t));
  }

  // Flips edges towards six triangles at every vertex, and wherever it saves a bad triangle.
  void flip() {
    for (const auto& [a, b] : edges()) {
      std::array<Index, 2> pair;
      std::array<Tri, 2> fresh;
      if (!sides(a, b, pair) || sharp(pair) || !flipped(a, b, pair, fresh)) continue;
      const Index c = fresh[0][2], d = fresh[0][1];
      const auto off = [&](Index v, int change) {
        const int e = static_cast<int>(around_[v].size()) + change - 6;
        return e * e;
      };
      const int before = off(a, 0) + off(b, 0) + off(c, 0) + off(d, 0);
      const int after = off(a, -1) + off(b, -1) + off(c, 1) + off(d, 1);
      const double shape_before = worst(t_[pair[0]], t_[pair[1]]), shape_after = worst(fresh[0], fresh[1]);
      if ((after < before && shape_after > 0.3) || (shape_before < 0.3 && shape_after > shape_before))
        apply_flip(pair, fresh);
    }
  }

  static bool contains(const Tri& t, Index v) { return t[0] == v || t[1] == v || t[2] == v; }

  // Moves free vertices towards the middle of their neighbours, within the surface.
  void relax() {
    std::vector<Vec3> target(x_);
    std::vector<Index> list;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      if (kind_[i] != kFree) continue;
      neighbours(static_cast<Index>(i), list);
      Vec3 middle = Vec3::Zero(), n = Vec3::Zero();
      for (const Index v : list) middle += x_[v];
      middle /= double(list.size());
      for (const Index t : around_[i]) n += normal(t_[t]);
      if (n.norm() > 0) n.normalize();
      const Vec3 step = middle - x_[i];
      Vec3 p = x_[i] + step - n * n.dot(step);
      const auto nearest = tree_.nearest(p);
      // Onto the other side of a thin part would be worse than staying.
      if (nearest.distance < 0.5 * edge_) p = nearest.point;
      target[i] = p;
    }
    for (std::size_t i = 0; i < x_.size(); ++i)
      if (kind_[i] == kFree && keeps_sides(static_cast<Index>(i), -1, target[i])) x_[i] = target[i];
  }

  // Where triangles cross, smoothing draws the surface back into itself; what becomes too small on the way is
  // collapsed. The longer it takes, the wider the neighbourhood that is smoothed.
  void untangle() {
    for (int round = 0; round < 60; ++round) {
      const auto pairs = SurfaceTree(x_, t_).self_intersections(100000);
      if (pairs.empty()) return;
      std::vector<std::uint8_t> bad(x_.size(), 0);
      for (const auto& pair : pairs)
        for (const Index i : pair)
          for (const Index v : t_[i]) bad[v] = 1;
      for (int ring = 0; ring < round / 10; ++ring) {
        std::vector<std::uint8_t> wider(bad);
        for (const Tri& t : t_)
          for (const Index v : t)
            if (bad[v])
              for (const Index w : t) wider[w] = 1;
        bad = std::move(wider);
      }
      std::vector<Index> list;
      const std::vector<Vec3> old(x_);
      for (std::size_t i = 0; i < x_.size(); ++i) {
        if (!bad[i]) continue;
        neighbours(static_cast<Index>(i), list);
        Vec3 middle = Vec3::Zero();
        for (const Index v : list) middle += old[v];
        x_[i] = (old[i] + middle / double(list.size())) / 2;
      }
      classify();
      flip();
      collapse_short(0.6 * edge_, false);
      sweep();
    }
  }

  SurfaceTree tree_;
  std::vector<Vec3> x_;
  std::vector<Tri> t_;
  double edge_, cos_feature_;
  std::vector<std::vector<Index>> around_;  // triangles at each vertex
  std::vector<std::uint8_t> dead_, dead_vertex_;
  std::vector<Kind> kind_;
};

}  // namespace

TriMesh remesh_surface(const TriMesh& surface, const RemeshOptions& options) {
  if (!(options.edge > 0)) throw Error(ErrorKind::kInput, "remeshing needs a positive edge length");
  return Remesher(surface, options).result();
}

double surface_area(const TriMesh& surface) {
  double area = 0;
  for (const Tri& t : surface.triangles) area += triangle_normal(surface.nodes, t).norm() / 2;
  return area;
}

double enclosed_volume(const TriMesh& surface) {
  double volume = 0;
  for (const Tri& t : surface.triangles)
    volume += surface.nodes[t[0]].dot(cross(surface.nodes[t[1]], surface.nodes[t[2]])) / 6;
  return volume;
}

}  // namespace limber
