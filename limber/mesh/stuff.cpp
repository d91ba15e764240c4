#include <limber/mesh/stuff.hpp>

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/mesh/surface_tree.hpp>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include <fmt/format.h>

namespace limber {
namespace {

// A lattice vertex is warped when the surface cuts one of its edges nearer than this share of the edge's
// length.
constexpr double kWarpLong = 0.24999, kWarpShort = 0.41189;

using Id = std::int64_t;

// The corners of cubes, then the centres of cubes.
struct Lattice {
  Vec3 origin;
  double spacing;
  std::array<Id, 3> cells;

  Id corners() const { return (cells[0] + 1) * (cells[1] + 1) * (cells[2] + 1); }
  Id size() const { return corners() + cells[0] * cells[1] * cells[2]; }
  Id corner(Id i, Id j, Id k) const { return i + (cells[0] + 1) * (j + (cells[1] + 1) * k); }
  Id centre(Id i, Id j, Id k) const { return corners() + i + cells[0] * (j + cells[1] * k); }

  struct Place {
    std::array<Id, 3> at;
    bool is_centre;
  };
  Place place(Id v) const {
    const bool is_centre = v >= corners();
    const Id nx = cells[0] + !is_centre, ny = cells[1] + !is_centre;
    if (is_centre) v -= corners();
    return {{v % nx, v / nx % ny, v / (nx * ny)}, is_centre};
  }
  Vec3 position(Id v) const {
    const Place p = place(v);
    const double half = p.is_centre ? 0.5 : 0.0;
    Vec3 x;
    for (int d = 0; d < 3; ++d)
      x[d] = origin[d] + spacing * (static_cast<double>(p.at[static_cast<std::size_t>(d)]) + half);
    return x;
  }
  // Calls visit(neighbour, is the edge long).
  template <class Visit>
  void for_edges(Id v, Visit&& visit) const {
    const Place p = place(v);
    const auto inside = [&](const std::array<Id, 3>& a, bool centre) {
      for (std::size_t d = 0; d < 3; ++d)
        if (a[d] < 0 || a[d] > cells[d] - centre) return false;
      return true;
    };
    const auto id = [&](const std::array<Id, 3>& a, bool centre) {
      return centre ? this->centre(a[0], a[1], a[2]) : corner(a[0], a[1], a[2]);
    };
    for (std::size_t d = 0; d < 3; ++d)
      for (const Id step : {Id(-1), Id(1)}) {
        std::array<Id, 3> a = p.at;
        a[d] += step;
        if (inside(a, p.is_centre)) visit(id(a, p.is_centre), true);
      }
    for (Id c = 0; c < 8; ++c) {
      const Id sign = p.is_centre ? 0 : -1;
      const std::array<Id, 3> a{p.at[0] + (c & 1) + sign, p.at[1] + (c >> 1 & 1) + sign,
                                p.at[2] + (c >> 2) + sign};
      if (inside(a, !p.is_centre)) visit(id(a, !p.is_centre), false);
    }
  }
};

class Stuffing {
 public:
  Stuffing(const std::function<double(const Vec3&)>& depth, const Lattice& lattice,
           const StuffOptions& options)
      : depth_(depth),
        lattice_(lattice),
        options_(options),
        value_(static_cast<std::size_t>(lattice.size())) {
    parallel_for(lattice.size(), 4096, [&](std::ptrdiff_t v) {
      value_[static_cast<std::size_t>(v)] = depth_(lattice_.position(v));
    });
  }

  TetMesh run() {
    warp();
    const auto [nx, ny, nz] = lattice_.cells;
    for (Id k = 0; k < nz; ++k)
      for (Id j = 0; j < ny; ++j)
        for (Id i = 0; i < nx; ++i)
          for (int d = 0; d < 3; ++d) faces_of(i, j, k, d);
    finish();
    return std::move(mesh_);
  }

 private:
  double& value(Id v) { return value_[static_cast<std::size_t>(v)]; }

  Vec3 position(Id v) const {
    const auto found = moved_.find(v);
    return found == moved_.end() ? lattice_.position(v) : found->second;
  }

  // Where the surface cuts the edge between vertices of different sign.
  Vec3 cut(Id u, Id v) {
    if (u > v) std::swap(u, v);
    const auto found = cuts_.find({u, v});
    if (found != cuts_.end()) return found->second;
    Vec3 a = lattice_.position(u), b = lattice_.position(v);
    double fa = value(u), fb = value(v);
    for (int k = 0; k < 40 && (b - a).norm() > 1e-9 * lattice_.spacing; ++k) {
      // Between false position and bisection: never outside, never stuck at one end.
      const double s = std::clamp(fa / (fa - fb), 0.1, 0.9);
      const Vec3 c = a + s * (b - a);
      const double fc = depth_(c);
      if (fc == 0) {
        a = b = c;
        break;
      }
      (fc > 0) == (fa > 0) ? (a = c, fa = fc) : (b = c, fb = fc);
    }
    return cuts_.emplace(std::pair(u, v), 0.5 * (a + b)).first->second;
  }

  void warp() {
    for (Id v = 0; v < lattice_.size(); ++v) {
      if (value(v) == 0) continue;
      double nearest = 1;
      Vec3 to;
      const Vec3 x = lattice_.position(v);
      lattice_.for_edges(v, [&](Id w, bool is_long) {
        if (value(w) == 0 || (value(w) > 0) == (value(v) > 0)) return;
        const Vec3 c = cut(v, w);
        const double share = (c - x).norm() / (is_long ? 1.0 : std::sqrt(0.75)) / lattice_.spacing;
        if (share >= (is_long ? kWarpLong : kWarpShort)) return;
        const double distance = (c - x).norm() / lattice_.spacing;
        if (distance < nearest) {
          nearest = distance;
          to = c;
        }
      });
      if (nearest == 1) continue;
      moved_[v] = to;
      value(v) = 0;
    }
  }

  // The four tetrahedra around the segment from the centre of cell (i, j, k) to that of the next cell along
  // d.
  void faces_of(Id i, Id j, Id k, int d) {
    std::array<Id, 3> a{i, j, k}, b = a;
    if (++b[static_cast<std::size_t>(d)] >= lattice_.cells[static_cast<std::size_t>(d)]) return;
    const Id ca = lattice_.centre(a[0], a[1], a[2]), cb = lattice_.centre(b[0], b[1], b[2]);
    // Corners of the shared face, in order around it.
    const std::size_t e = static_cast<std::size_t>((d + 1) % 3), f = static_cast<std::size_t>((d + 2) % 3);
    std::array<Id, 4> corner;
    constexpr Id kAround[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
    for (std::size_t c = 0; c < 4; ++c) {
      std::array<Id, 3> at = b;
      at[e] += kAround[c][0];
      at[f] += kAround[c][1];
      corner[c] = lattice_.corner(at[0], at[1], at[2]);
    }
    for (std::size_t c = 0; c < 4; ++c) stencil({ca, cb, corner[c], corner[(c + 1) % 4]});
  }

  void stencil(const std::array<Id, 4>& t) {
    std::array<Id, 4> plus, zero, minus;
    std::size_t p = 0, z = 0, m = 0;
    for (const Id v : t) value(v) > 0 ? plus[p++] = v : value(v) == 0 ? zero[z++] = v : minus[m++] = v;
    if (p == 0) return;
    const auto at_cut = [&](std::size_t i, std::size_t j) { return cut_node(plus[i], minus[j]); };
    if (m == 0) {
      add({node_of(t[0]), node_of(t[1]), node_of(t[2]), node_of(t[3])});
    } else if (p == 1) {
      std::array<Index, 4> tet{node_of(plus[0])};
      std::size_t n = 1;
      for (std::size_t k = 0; k < z; ++k) tet[n++] = node_of(zero[k]);
      for (std::size_t k = 0; k < m; ++k) tet[n++] = at_cut(0, k);
      add(tet);
    } else if (p == 2 && z == 1) {  // a pyramid over a quadrilateral
      const std::array<Index, 4> quad{node_of(plus[0]), node_of(plus[1]), at_cut(1, 0), at_cut(0, 0)};
      const Index apex = node_of(zero[0]);
      const int s = diagonal(quad);
      add({quad[s], quad[s + 1], quad[s + 2], apex});
      add({quad[s], quad[s + 2], quad[(s + 3) % 4], apex});
    } else if (p == 2) {
      prism({node_of(plus[0]), at_cut(0, 0), at_cut(0, 1)}, {node_of(plus[1]), at_cut(1, 0), at_cut(1, 1)});
    } else {
      prism({node_of(plus[0]), node_of(plus[1]), node_of(plus[2])},
            {at_cut(0, 0), at_cut(1, 0), at_cut(2, 0)});
    }
  }

  // 0: from quad[0] to quad[2], 1: from quad[1] to quad[3]. The shorter one: both tetrahedra at a face agree.
  int diagonal(const std::array<Index, 4>& q) const {
    const auto& x = mesh_.nodes;
    const double a = (x[at(q[0])] - x[at(q[2])]).squaredNorm(), b = (x[at(q[1])] - x[at(q[3])]).squaredNorm();
    if (std::abs(a - b) > 1e-10 * (a + b)) return a < b ? 0 : 1;
    return std::min(q[0], q[2]) < std::min(q[1], q[3]) ? 0 : 1;
  }

  // Triangles a and b, a_i joined with b_i.
  void prism(const std::array<Index, 3>& a, const std::array<Index, 3>& b) {
    // turns[i]: the face between i and i + 1 is cut from a_i to b_(i+1), otherwise from a_(i+1) to b_i.
    std::array<bool, 3> turns;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t j = (i + 1) % 3;
      turns[i] = diagonal({a[i], a[j], b[j], b[i]}) == 0;
    }
    if (turns[0] == turns[1] && turns[1] == turns[2]) {  // three diagonals in a circle: a node in the middle
      Vec3 middle = Vec3::Zero();
      for (std::size_t i = 0; i < 3; ++i) middle += (mesh_.nodes[at(a[i])] + mesh_.nodes[at(b[i])]) / 6;
      const Index c = static_cast<Index>(mesh_.nodes.size());
      mesh_.nodes.push_back(middle);
      add({a[0], a[1], a[2], c});
      add({b[0], b[1], b[2], c});
      for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t j = (i + 1) % 3;
        if (turns[i]) {
          add({a[i], a[j], b[j], c});
          add({a[i], b[j], b[i], c});
        } else {
          add({a[i], a[j], b[i], c});
          add({a[j], b[j], b[i], c});
        }
      }
      return;
    }
    // An a-corner without a diagonal is the top of the first tetrahedron, with all of b ... of the other
    // side.
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t j = (i + 1) % 3, k = (i + 2) % 3;
      // Both faces at i are cut from a_i: to b_j and to b_k.
      if (!(turns[i] && !turns[k])) continue;
      add({a[i], b[0], b[1], b[2]});
      // Left: a_i over the quadrilateral a_j a_k b_k b_j.
      if (turns[j]) {  // from a_j to b_k
        add({a[i], a[j], a[k], b[k]});
        add({a[i], a[j], b[k], b[j]});
      } else {
        add({a[i], a[j], a[k], b[j]});
        add({a[i], a[k], b[k], b[j]});
      }
      return;
    }
  }

  void add(std::array<Index, 4> t) {
    const auto& x = mesh_.nodes;
    if (tet_det(x[at(t[0])], x[at(t[1])], x[at(t[2])], x[at(t[3])]) < 0) std::swap(t[2], t[3]);
    mesh_.tets.push_back(t);
  }

  Index node_of(Id v) {
    const auto [found, added] = node_.try_emplace(v, static_cast<Index>(mesh_.nodes.size()));
    if (added) mesh_.nodes.push_back(position(v));
    return found->second;
  }
  Index cut_node(Id u, Id v) {
    if (u > v) std::swap(u, v);
    const auto [found, added] = cut_node_.try_emplace({u, v}, static_cast<Index>(mesh_.nodes.size()));
    if (added) mesh_.nodes.push_back(cut(u, v));
    return found->second;
  }

  void finish() {
    if (mesh_.tets.empty())
      throw Error(ErrorKind::kInput,
                  fmt::format("no lattice point lies inside the surface: is the spacing of {:g} m "
                              "too large, or the surface inside out?",
                              lattice_.spacing));
    std::vector<Index>& surface = mesh_.node_sets["surface"];
    for (const Tri& t : boundary_surface(mesh_.tets).triangles)
      surface.insert(surface.end(), t.begin(), t.end());
    std::sort(surface.begin(), surface.end());
    surface.erase(std::unique(surface.begin(), surface.end()), surface.end());
    if (!options_.label) return;
    for (std::size_t e = 0; e < mesh_.tets.size(); ++e) {
      Vec3 centre = Vec3::Zero();
      for (const Index i : mesh_.tets[e]) centre += mesh_.nodes[at(i)] / 4;
      const int region = options_.label(centre);
      if (region >= 0)
        mesh_.element_sets[options_.regions.at(static_cast<std::size_t>(region))].push_back(
            static_cast<Index>(e));
    }
  }

  struct PairHash {
    std::size_t operator()(const std::pair<Id, Id>& p) const {
      return static_cast<std::size_t>(p.first) * 0x9E3779B97F4A7C15u ^
             static_cast<std::size_t>(p.second) * 0xC2B2AE3D27D4EB4Fu;
    }
  };

  const std::function<double(const Vec3&)>& depth_;
  const Lattice lattice_;
  const StuffOptions& options_;
  std::vector<double> value_;
  std::unordered_map<Id, Vec3> moved_;
  std::unordered_map<std::pair<Id, Id>, Vec3, PairHash> cuts_;
  std::unordered_map<Id, Index> node_;
  std::unordered_map<std::pair<Id, Id>, Index, PairHash> cut_node_;
  TetMesh mesh_;
};

}  // namespace

TetMesh stuff_isosurface(const std::function<double(const Vec3&)>& depth, const Box& box,
                         const StuffOptions& options) {
  if (!(options.spacing > 0) || box.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("isosurface stuffing: spacing {:g} m, expected a positive one and a box "
                            "that is not empty",
                            options.spacing));
  // Two cells around the body: what is inside must not touch the border of the lattice.
  Lattice lattice{box.lo - Vec3::Constant(2 * options.spacing), options.spacing, {}};
  double count = 2;
  for (std::size_t d = 0; d < 3; ++d) {
    const double cells = std::ceil(box.size()[static_cast<Eigen::Index>(d)] / options.spacing) + 4;
    count *= cells;
    lattice.cells[d] = static_cast<Id>(std::min(cells, 1e9));
  }
  if (count > 2e8)
    throw Error(ErrorKind::kInput,
                fmt::format("isosurface stuffing: a lattice of {:.3g} vertices is too large; expected "
                            "at most 2e8: raise the spacing of {:g} m",
                            count, options.spacing));
  return Stuffing(depth, lattice, options).run();
}

std::function<double(const Vec3&)> surface_depth(const TriMesh& surface) {
  const auto tree = std::make_shared<const SurfaceTree>(surface.nodes, surface.triangles);
  return [tree](const Vec3& x) {
    const double distance = tree->nearest(x).distance;
    return tree->winding(x) > 0.5 ? distance : -distance;
  };
}

}  // namespace limber
