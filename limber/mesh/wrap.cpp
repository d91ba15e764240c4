// wrap_surface: marching tetrahedra over the cells through which the surface passes, and on from there.
#include <limber/core/error.hpp>
#include <limber/mesh/remesh.hpp>
#include <limber/mesh/surface_tree.hpp>

#include <fmt/format.h>

#include <deque>
#include <optional>
#include <unordered_map>

namespace limber {
namespace {

constexpr double kMaxCells = 4e8;

constexpr double kThickness =
    1.25;                        // on each side of thin parts, in spacings: what is left has room for tets
constexpr double kProbe = 0.25;  // in spacings: where a part is looked at to see if it is thin

class Wrapper {
 public:
  Wrapper(const TriMesh& surface, double spacing, bool thin)
      : surface_(surface), tree_(surface.nodes, surface.triangles), h_(spacing) {
    if (thin) find_thin_parts();
    const Box box = bounding_box(surface.nodes);
    origin_ = box.lo.array() - 2.5 * h_;
    double cells = 1;
    for (int a = 0; a < 3; ++a) {
      const double n = std::ceil(box.size()[a] / h_) + 6;
      cells *= n;
      if (!(cells < kMaxCells))
        throw Error(ErrorKind::kInput,
                    fmt::format("wrapping at a spacing of {:.3g} m needs more than {:.0e} cells, "
                                "expected a coarser mesh",
                                h_, kMaxCells));
      n_[a] = static_cast<Index>(n);
    }
    sign_.assign(static_cast<std::size_t>(cells), kUnknown);
    seen_.assign(static_cast<std::size_t>(cells), 0);
  }

  TriMesh run() {
    for (std::size_t t = 0; t < surface_.triangles.size(); ++t) {
      Box box;
      for (const Index v : surface_.triangles[t]) box.add(surface_.nodes[v]);
      const auto lo = cell_of(box.lo), hi = cell_of(box.hi);
      for (Index k = lo[2]; k <= hi[2]; ++k)
        for (Index j = lo[1]; j <= hi[1]; ++j)
          for (Index i = lo[0]; i <= hi[0]; ++i) push({i, j, k});
    }
    for (const Tri& t : thin_) {
      Box box;
      for (const Index v : t) box.add(surface_.nodes[v]);
      const Vec3 room = Vec3::Constant((kThickness + 1) * h_);
      const auto lo = cell_of(box.lo - room), hi = cell_of(box.hi + room);
      for (Index k = lo[2]; k <= hi[2]; ++k)
        for (Index j = lo[1]; j <= hi[1]; ++j)
          for (Index i = lo[0]; i <= hi[0]; ++i) push({i, j, k});
    }
    // A cell that is cut leads to its neighbours: this is how holes, which no triangle touches, are crossed.
    while (!queue_.empty()) {
      const std::array<Index, 3> c = queue_.front();
      queue_.pop_front();
      if (!march(c)) continue;
      for (Index k = -1; k <= 1; ++k)
        for (Index j = -1; j <= 1; ++j)
          for (Index i = -1; i <= 1; ++i) push({c[0] + i, c[1] + j, c[2] + k});
    }
    return std::move(out_);
  }

 private:
  static constexpr std::int8_t kUnknown = -1;

  std::array<Index, 3> cell_of(const Vec3& p) const {
    std::array<Index, 3> c;
    for (int a = 0; a < 3; ++a) c[a] = static_cast<Index>((p[a] - origin_[a]) / h_);
    return c;
  }
  std::int64_t id(const std::array<Index, 3>& c) const {
    return c[0] + std::int64_t{n_[0]} * (c[1] + std::int64_t{n_[1]} * c[2]);
  }
  Vec3 position(const std::array<Index, 3>& c) const { return origin_ + h_ * Vec3(c[0], c[1], c[2]); }

  void push(const std::array<Index, 3>& c) {
    for (int a = 0; a < 3; ++a)
      if (c[a] < 0 || c[a] + 1 >= n_[a]) return;
    std::uint8_t& seen = seen_[id(c)];
    if (!seen) queue_.push_back(c);
    seen = 1;
  }

  // Those that have no inside on either side: sheets, fins, hair.
  void find_thin_parts() {
    for (const Tri& t : surface_.triangles) {
      const Vec3 &a = surface_.nodes[t[0]], &b = surface_.nodes[t[1]], &c = surface_.nodes[t[2]];
      const Vec3 middle = (a + b + c) / 3, normal = (b - a).cross(c - a).normalized();
      const auto full = [&](double side) {
        return tree_.winding(middle + side * kProbe * h_ * normal) > 0.5;
      };
      if (!full(-1) && !full(1)) thin_.push_back(t);
    }
    if (!thin_.empty()) thin_tree_.emplace(surface_.nodes, thin_);
  }

  bool inside(const Vec3& p) const {
    return tree_.winding(p) > 0.5 || (thin_tree_ && thin_tree_->nearest(p).distance < kThickness * h_);
  }
  bool inside(const std::array<Index, 3>& c) {
    std::int8_t& s = sign_[id(c)];
    if (s == kUnknown) s = inside(position(c)) ? 1 : 0;
    return s == 1;
  }

  // Where the edge from corner a (inside) to b (outside) crosses: by bisection, since the winding number
  // jumps.
  Index crossing(const std::array<Index, 3>& a, const std::array<Index, 3>& b) {
    const std::int64_t ia = id(a), ib = id(b);
    const std::uint64_t key = static_cast<std::uint64_t>(std::min(ia, ib)) * 2654435761ull * 31 +
                              static_cast<std::uint64_t>(std::max(ia, ib)) * 0x9E3779B97F4A7C15ull;
    const auto [begin, end] = vertices_.equal_range(key);
    for (auto it = begin; it != end; ++it)
      if (it->second.first == std::pair{std::min(ia, ib), std::max(ia, ib)}) return it->second.second;
    double low = 0, high = 1;
    const Vec3 pa = position(a), pb = position(b);
    for (int i = 0; i < 7; ++i) {
      const double middle = (low + high) / 2;
      (inside((1 - middle) * pa + middle * pb) ? low : high) = middle;
    }
    const double s = (low + high) / 2;  // never at a corner, where triangles would lose their area
    const auto v = static_cast<Index>(out_.nodes.size());
    out_.nodes.push_back((1 - s) * pa + s * pb);
    vertices_.emplace(key, std::pair{std::pair{std::min(ia, ib), std::max(ia, ib)}, v});
    return v;
  }

  // The triangles of one cell; false when the surface does not pass.
  bool march(const std::array<Index, 3>& c) {
    int in = 0;
    for (Index corner = 0; corner < 8; ++corner)
      in += inside({c[0] + (corner & 1), c[1] + (corner >> 1 & 1), c[2] + (corner >> 2)});
    if (in == 0 || in == 8) return false;
    static constexpr int kPaths[6][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
    for (int path = 0; path < 6; ++path) {
      std::array<std::array<Index, 3>, 4> v;  // a positive tet of the Kuhn split
      v[0] = c;
      for (int s = 0; s < 3; ++s) {
        v[s + 1] = v[s];
        ++v[s + 1][kPaths[path][s]];
      }
      if (path >= 3) std::swap(v[1], v[2]);
      march_tet(v);
    }
    return true;
  }

  void march_tet(const std::array<std::array<Index, 3>, 4>& v) {
    // Faces seen from outside the tet, opposite to each corner; and the even orders (i, j, k, l).
    static constexpr int kFace[4][3] = {{1, 2, 3}, {0, 3, 2}, {0, 1, 3}, {0, 2, 1}};
    static constexpr int kEven[6][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {0, 3, 1, 2},
                                        {1, 2, 0, 3}, {1, 3, 2, 0}, {2, 3, 0, 1}};
    std::array<bool, 4> in;
    int count = 0;
    for (int i = 0; i < 4; ++i) count += in[i] = inside(v[i]);
    if (count == 1 || count == 3) {
      int lone = 0;
      while (in[lone] != (count == 1)) ++lone;
      Tri t;
      for (int k = 0; k < 3; ++k) {
        const auto& other = v[kFace[lone][k]];
        t[k] = count == 1 ? crossing(v[lone], other) : crossing(other, v[lone]);
      }
      if (count == 3) std::swap(t[1], t[2]);
      out_.triangles.push_back(t);
    } else if (count == 2) {
      for (const auto& [i, j, k, l] : kEven) {
        if (!in[i] || !in[j]) continue;
        const Index a = crossing(v[i], v[k]), b = crossing(v[i], v[l]), c = crossing(v[j], v[l]),
                    d = crossing(v[j], v[k]);
        out_.triangles.push_back({a, b, c});
        out_.triangles.push_back({a, c, d});
      }
    }
  }

  const TriMesh& surface_;
  SurfaceTree tree_;
  std::vector<Tri> thin_;
  std::optional<SurfaceTree> thin_tree_;
  double h_;
  Vec3 origin_;
  std::array<Index, 3> n_{};
  std::vector<std::int8_t> sign_;
  std::vector<std::uint8_t> seen_;
  std::deque<std::array<Index, 3>> queue_;
  std::unordered_multimap<std::uint64_t, std::pair<std::pair<std::int64_t, std::int64_t>, Index>> vertices_;
  TriMesh out_;
};

}  // namespace

TriMesh wrap_surface(const TriMesh& surface, double spacing, bool thin) {
  if (!(spacing > 0) || surface.triangles.empty())
    throw Error(ErrorKind::kInput, "wrapping needs a surface and a positive spacing");
  TriMesh wrapped = Wrapper(surface, spacing, thin).run();
  if (wrapped.triangles.empty())
    throw Error(
        ErrorKind::kInput,
        fmt::format("wrapping at a spacing of {:.3g} m found no inside: is the surface closed but for small "
                    "holes, and oriented outwards? (--thin takes sheets for thin bodies)",
                    spacing));
  return wrapped;
}

}  // namespace limber
