#include <limber/core/error.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/geometry.hpp>
#include <limber/mesh/surface.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <utility>

namespace limber {
namespace {

constexpr double kPi = std::numbers::pi;
// Far beyond what fits in memory as a simulation; catches a mistyped edge length before the allocation does.
constexpr double kMaxNodes = 5e7;

void require(bool ok, const std::string& message) {
  if (!ok) throw Error(ErrorKind::kInput, message);
}

void require_length(const char* shape, const char* name, double value) {
  require(value > 0 && std::isfinite(value),
          fmt::format("{}: {} is {}, expected a positive length in metres", shape, name, value));
}

void require_count(const char* shape, double nodes) {
  require(
      nodes <= kMaxNodes,
      fmt::format("{}: would have about {:.3g} nodes, expected at most {:.0e}; is the edge length in metres?",
                  shape, nodes, kMaxNodes));
}

void orient(const std::vector<Vec3>& nodes, Tet& t) {
  if (tet_volume(nodes, t) < 0) std::swap(t[2], t[3]);
}

void add_surface_set(TetMesh& mesh) {
  std::vector<Index>& set = mesh.node_sets["surface"];
  for (const Tri& t : boundary_surface(mesh.tets).triangles) set.insert(set.end(), t.begin(), t.end());
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
}

// A prism (bottom a b c, top above them) into three tets. The diagonals start at the node with the least
// index of each side face, so that neighbours agree without knowing each other (Dompierre et al., "How to
// subdivide pyramids, prisms and hexahedra into tetrahedra", 1999).
void split_prism(const std::array<Index, 6>& v, TetMesh& mesh) {
  static constexpr int kTurn[6][6] = {{0, 1, 2, 3, 4, 5}, {1, 2, 0, 4, 5, 3}, {2, 0, 1, 5, 3, 4},
                                      {3, 5, 4, 0, 2, 1}, {4, 3, 5, 1, 0, 2}, {5, 4, 3, 2, 1, 0}};
  const auto least = std::min_element(v.begin(), v.end()) - v.begin();
  std::array<Index, 6> p;
  for (int i = 0; i < 6; ++i) p[i] = v[kTurn[least][i]];
  std::array<Tet, 3> tets;
  if (std::min(p[1], p[5]) < std::min(p[2], p[4]))
    tets = {Tet{p[0], p[1], p[2], p[5]}, Tet{p[0], p[1], p[5], p[4]}, Tet{p[0], p[4], p[5], p[3]}};
  else
    tets = {Tet{p[0], p[1], p[2], p[4]}, Tet{p[0], p[4], p[2], p[5]}, Tet{p[0], p[4], p[5], p[3]}};
  for (Tet& t : tets) {
    orient(mesh.nodes, t);
    mesh.tets.push_back(t);
  }
}

struct Disc {
  std::vector<Vec2> nodes;  // ring r = 0..n holds max(1, 6r) nodes
  std::vector<Tri> triangles;
};

// A disc of rings with 6r nodes: six sectors of nearly equilateral triangles.
Disc make_disc(double radius, Index rings) {
  Disc disc;
  disc.nodes.push_back(Vec2::Zero());
  for (Index r = 1; r <= rings; ++r)
    for (Index k = 0; k < 6 * r; ++k) {
      const double angle = kPi * k / (3.0 * r);
      disc.nodes.push_back(radius * r / rings * Vec2(std::cos(angle), std::sin(angle)));
    }
  const auto at = [](Index r, Index k) { return r == 0 ? 0 : 1 + 3 * r * (r - 1) + k % (6 * r); };
  for (Index r = 1; r <= rings; ++r)
    for (Index s = 0; s < 6; ++s)
      for (Index j = 0; j < r; ++j) {
        const Index out = s * r + j, in = s * (r - 1) + j;
        disc.triangles.push_back({at(r, out), at(r, out + 1), at(r - 1, in)});
        if (j + 1 < r) disc.triangles.push_back({at(r - 1, in), at(r, out + 1), at(r - 1, in + 1)});
      }
  return disc;
}

Index steps(double length, double edge) {
  return static_cast<Index>(std::clamp(std::round(length / edge), 1.0, 1e8));
}

// Part of a ball as wedges (centre, A, B, C), each cut regularly into n^3 tets whose lattice layers are bent
// onto spheres. `corners` are unit directions.
class BallWedges {
 public:
  BallWedges(TetMesh& mesh, std::vector<Vec3> corners, double radius, Index layers, const Vec3& center)
      : mesh_(mesh), corners_(std::move(corners)), radius_(radius), n_(layers), center_(center) {}

  void add(const Tri& wedge) {
    const auto id = [&](Index i, Index j, Index k) { return node(wedge, {i, j, k}); };
    for (Index i = 0; i < n_; ++i)
      for (Index j = 0; i + j < n_; ++j)
        for (Index k = 0; i + j + k < n_; ++k) {
          push({id(i, j, k), id(i + 1, j, k), id(i, j + 1, k), id(i, j, k + 1)});
          if (i + j + k <= n_ - 2)
            octahedron({id(i + 1, j, k), id(i, j + 1, k), id(i, j, k + 1), id(i, j + 1, k + 1),
                        id(i + 1, j, k + 1), id(i + 1, j + 1, k)});
          if (i + j + k <= n_ - 3)
            push({id(i + 1, j + 1, k), id(i + 1, j, k + 1), id(i, j + 1, k + 1), id(i + 1, j + 1, k + 1)});
        }
  }

  // The node with weight w on a corner; used to weld neighbours to the ball.
  Index node(const Tri& wedge, const std::array<Index, 3>& weight) {
    std::array<std::pair<Index, Index>, 3> key;  // (corner, weight), without the corners that do not matter
    for (int c = 0; c < 3; ++c)
      key[c] = weight[c] > 0 ? std::pair{wedge[c], weight[c]} : std::pair{Index{-1}, Index{0}};
    std::sort(key.begin(), key.end());
    const auto [place, is_new] = ids_.emplace(key, static_cast<Index>(mesh_.nodes.size()));
    if (is_new) {
      const Index r = weight[0] + weight[1] + weight[2];
      Vec3 p = Vec3::Zero();
      if (r > 0) {
        // Sines of the weights (not the weights) spread the nodes evenly along arcs of 60 degrees.
        for (int c = 0; c < 3; ++c) p += std::sin(kPi / 3 * weight[c] / r) * corners_[wedge[c]];
        p *= radius_ * r / n_ / p.norm();
      }
      mesh_.nodes.push_back(center_ + p);
    }
    return place->second;
  }

 private:
  void push(Tet t) {
    orient(mesh_.nodes, t);
    mesh_.tets.push_back(t);
  }

  // Six nodes, v[c] opposite to v[c + 3]; four tets around the shortest diagonal.
  void octahedron(const std::array<Index, 6>& v) {
    int axis = 0;
    double shortest = std::numeric_limits<double>::infinity();
    for (int c = 0; c < 3; ++c) {
      const double length = (mesh_.nodes[v[c]] - mesh_.nodes[v[c + 3]]).norm();
      if (length < shortest * (1 - 1e-9)) {
        shortest = length;
        axis = c;
      }
    }
    const int b = (axis + 1) % 3, c = (axis + 2) % 3;
    const std::array<Index, 4> rim{v[b], v[c], v[b + 3], v[c + 3]};
    for (int e = 0; e < 4; ++e) push({v[axis], v[axis + 3], rim[e], rim[(e + 1) % 4]});
  }

  TetMesh& mesh_;
  std::vector<Vec3> corners_;
  double radius_;
  Index n_;
  Vec3 center_;
  std::map<std::array<std::pair<Index, Index>, 3>, Index> ids_;
};

}  // namespace

TetMesh make_box(const Vec3& size, const std::array<Index, 3>& n) {
  for (int a = 0; a < 3; ++a) {
    require_length("box", "size", size[a]);
    require(n[a] >= 2, fmt::format("box: {} nodes along {}, expected at least 2", n[a], "xyz"[a]));
  }
  require_count("box", double(n[0]) * n[1] * n[2]);

  TetMesh mesh;
  mesh.nodes.reserve(std::size_t(n[0]) * n[1] * n[2]);
  for (Index k = 0; k < n[2]; ++k)
    for (Index j = 0; j < n[1]; ++j)
      for (Index i = 0; i < n[0]; ++i) {
        const std::array<Index, 3> at{i, j, k};
        const auto id = static_cast<Index>(mesh.nodes.size());
        Vec3 p;
        for (int a = 0; a < 3; ++a) {
          p[a] = size[a] * at[a] / (n[a] - 1);
          if (at[a] == 0) mesh.node_sets[std::string(1, "xyz"[a]) + "0"].push_back(id);
          if (at[a] == n[a] - 1) mesh.node_sets[std::string(1, "xyz"[a]) + "1"].push_back(id);
        }
        mesh.nodes.push_back(p);
      }

  const std::array<Index, 3> stride{1, n[0], n[0] * n[1]};
  static constexpr int kPaths[6][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
  mesh.tets.reserve(std::size_t{6} * (n[0] - 1) * (n[1] - 1) * (n[2] - 1));
  for (Index k = 0; k + 1 < n[2]; ++k)
    for (Index j = 0; j + 1 < n[1]; ++j)
      for (Index i = 0; i + 1 < n[0]; ++i)
        for (int path = 0; path < 6; ++path) {
          // From the least corner to the greatest, one axis after the other; even orders are positive.
          Tet t;
          t[0] = i * stride[0] + j * stride[1] + k * stride[2];
          for (int s = 0; s < 3; ++s) t[s + 1] = t[s] + stride[kPaths[path][s]];
          if (path >= 3) std::swap(t[1], t[2]);
          mesh.tets.push_back(t);
        }
  return mesh;
}

TetMesh make_sphere(double radius, double edge) {
  require_length("sphere", "radius", radius);
  require_length("sphere", "edge", edge);
  require_count("sphere", 10.0 / 3 * std::pow(radius / edge, 3));
  const double g = std::numbers::phi;
  std::vector<Vec3> corners;
  for (const double a : {-1.0, 1.0})
    for (const double b : {-g, g}) {
      corners.push_back(Vec3(0, a, b).normalized());
      corners.push_back(Vec3(a, b, 0).normalized());
      corners.push_back(Vec3(b, 0, a).normalized());
    }
  TetMesh mesh;
  BallWedges ball(mesh, corners, radius, steps(radius, edge), Vec3::Zero());
  const double side = 2 / std::sqrt(g * g + 1);  // icosahedron edge for unit circumradius
  const auto adjacent = [&](Index a, Index b) { return (corners[a] - corners[b]).norm() < 1.1 * side; };
  for (Index a = 0; a < 12; ++a)
    for (Index b = a + 1; b < 12; ++b)
      for (Index c = b + 1; c < 12; ++c)
        if (adjacent(a, b) && adjacent(b, c) && adjacent(a, c)) ball.add({a, b, c});
  add_surface_set(mesh);
  return mesh;
}

TetMesh make_cylinder(double radius, double length, double edge) {
  require_length("cylinder", "radius", radius);
  require_length("cylinder", "length", length);
  require_length("cylinder", "edge", edge);
  require_count("cylinder", kPi * radius * radius * length / std::pow(edge, 3));
  const Disc disc = make_disc(radius, steps(radius, edge));
  const Index layers = steps(length, edge), n = static_cast<Index>(disc.nodes.size());
  TetMesh mesh;
  for (Index k = 0; k <= layers; ++k)
    for (const Vec2& p : disc.nodes) mesh.nodes.emplace_back(p[0], p[1], length * (double(k) / layers - 0.5));
  for (Index k = 0; k < layers; ++k)
    for (const auto& [a, b, c] : disc.triangles)
      split_prism({a + k * n, b + k * n, c + k * n, a + (k + 1) * n, b + (k + 1) * n, c + (k + 1) * n}, mesh);
  for (Index i = 0; i < n; ++i) {
    mesh.node_sets["z0"].push_back(i);
    mesh.node_sets["z1"].push_back(i + layers * n);
  }
  add_surface_set(mesh);
  return mesh;
}

TetMesh make_capsule(double radius, double length, double edge) {
  require_length("capsule", "radius", radius);
  require_length("capsule", "length", length);
  require_length("capsule", "edge", edge);
  require_count("capsule", kPi * radius * radius * (length + radius) / std::pow(edge, 3));
  const Index rings = steps(radius, edge), layers = steps(length, edge);
  std::vector<Vec3> corners;
  for (int c = 0; c < 6; ++c) corners.emplace_back(std::cos(kPi * c / 3), std::sin(kPi * c / 3), 0.0);
  corners.emplace_back(0.0, 0.0, 1.0);
  corners.emplace_back(0.0, 0.0, -1.0);

  TetMesh mesh;
  // Nodes of the two flat faces in the order of make_disc, to which the straight part is joined.
  std::array<std::vector<Index>, 2> rim;
  for (int end = 0; end < 2; ++end) {
    const Vec3 center(0, 0, end == 0 ? length / 2 : -length / 2);
    BallWedges ball(mesh, corners, radius, rings, center);
    const Index pole = 6 + end;
    for (Index s = 0; s < 6; ++s) ball.add({s, (s + 1) % 6, pole});
    rim[end].push_back(ball.node({0, 1, pole}, {0, 0, 0}));
    for (Index r = 1; r <= rings; ++r)
      for (Index s = 0; s < 6; ++s)
        for (Index j = 0; j < r; ++j) rim[end].push_back(ball.node({s, (s + 1) % 6, pole}, {r - j, j, 0}));
  }
  const Disc disc = make_disc(radius, rings);
  std::vector<std::vector<Index>> plane{rim[1]};
  for (Index k = 1; k < layers; ++k) {
    plane.emplace_back();
    for (const Index below : rim[1]) {
      plane.back().push_back(static_cast<Index>(mesh.nodes.size()));
      mesh.nodes.push_back(mesh.nodes[below] + Vec3(0, 0, length * k / layers));
    }
  }
  plane.push_back(rim[0]);
  for (Index k = 0; k < layers; ++k)
    for (const auto& [a, b, c] : disc.triangles)
      split_prism({plane[k][a], plane[k][b], plane[k][c], plane[k + 1][a], plane[k + 1][b], plane[k + 1][c]},
                  mesh);
  add_surface_set(mesh);
  return mesh;
}

TetMesh make_torus(double radius, double tube_radius, double edge) {
  require_length("torus", "radius", radius);
  require_length("torus", "tube_radius", tube_radius);
  require_length("torus", "edge", edge);
  require(tube_radius < radius,
          fmt::format("torus: tube_radius is {}, expected less than the radius {}", tube_radius, radius));
  require_count("torus", 2 * kPi * kPi * radius * tube_radius * tube_radius / std::pow(edge, 3));
  const Disc disc = make_disc(tube_radius, steps(tube_radius, edge));
  const Index segments = std::max<Index>(3, steps(2 * kPi * radius, edge));
  const Index n = static_cast<Index>(disc.nodes.size());
  TetMesh mesh;
  for (Index k = 0; k < segments; ++k) {
    const double angle = 2 * kPi * k / segments;
    for (const Vec2& p : disc.nodes)
      mesh.nodes.emplace_back((radius + p[0]) * std::cos(angle), (radius + p[0]) * std::sin(angle), p[1]);
  }
  for (Index k = 0; k < segments; ++k) {
    const Index here = k * n, next = (k + 1) % segments * n;
    for (const auto& [a, b, c] : disc.triangles)
      split_prism({a + here, b + here, c + here, a + next, b + next, c + next}, mesh);
  }
  add_surface_set(mesh);
  return mesh;
}

namespace {

// A number in [-1, 1] from an index: always the same one.
double scatter(std::uint64_t k) {
  k += 0x9e3779b97f4a7c15u;
  k = (k ^ (k >> 30)) * 0xbf58476d1ce4e5b9u;
  k = (k ^ (k >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((k ^ (k >> 31)) >> 11) / static_cast<double>(1ull << 52) - 1.0;
}

// Twice the area of the triangle a b c in the plane z = 0.
double turn(const Vec3& a, const Vec3& b, const Vec3& c) {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

// Whether d lies in the circle through a, b, c (counter-clockwise), by more than rounding.
bool in_circle(const Vec3& a, const Vec3& b, const Vec3& c, const Vec3& d) {
  const Vec3 p = a - d, q = b - d, r = c - d;
  const double det = p.squaredNorm() * (q[0] * r[1] - q[1] * r[0]) -
                     q.squaredNorm() * (p[0] * r[1] - p[1] * r[0]) +
                     r.squaredNorm() * (p[0] * q[1] - p[1] * q[0]);
  return det > 1e-9 * std::max({p.squaredNorm(), q.squaredNorm(), r.squaredNorm()}) * std::abs(turn(a, b, c));
}

// Flips edges until the triangulation is Delaunay's.
void make_delaunay(TriMesh& mesh) {
  const std::vector<Vec3>& x = mesh.nodes;
  for (bool changed = true; changed;) {
    changed = false;
    std::map<std::pair<Index, Index>, std::size_t> left;  // directed edge -> triangle
    for (std::size_t t = 0; t < mesh.triangles.size(); ++t)
      for (int k = 0; k < 3; ++k) left[{mesh.triangles[t][k], mesh.triangles[t][(k + 1) % 3]}] = t;
    std::vector<std::uint8_t> touched(mesh.triangles.size(), 0);
    for (const auto& [edge, t] : left) {
      const auto other = left.find({edge.second, edge.first});
      if (edge.first > edge.second || other == left.end() || touched[t] || touched[other->second]) continue;
      Tri &one = mesh.triangles[t], &two = mesh.triangles[other->second];
      const Index a = edge.first, b = edge.second;
      const auto apex = [a, b](const Tri& tri) {
        for (const Index i : tri)
          if (i != a && i != b) return i;
        return tri[0];
      };
      const Index c = apex(one), d = apex(two);
      if (!in_circle(x[a], x[b], x[c], x[d])) continue;
      if (!(turn(x[a], x[d], x[c]) > 0 && turn(x[d], x[b], x[c]) > 0)) continue;
      touched[t] = touched[other->second] = 1;
      one = {a, d, c};
      two = {d, b, c};
      changed = true;
    }
  }
}

}  // namespace

TriMesh make_rectangle(const Vec2& size, const std::array<Index, 2>& n, RectanglePattern pattern) {
  for (int a = 0; a < 2; ++a) {
    require_length("rectangle", "size", size[a]);
    require(n[a] >= 2, fmt::format("rectangle: {} nodes along {}, expected at least 2", n[a], "xy"[a]));
  }
  require_count("rectangle", double(n[0]) * n[1]);
  TriMesh mesh;
  for (Index j = 0; j < n[1]; ++j)
    for (Index i = 0; i < n[0]; ++i) {
      const auto id = static_cast<Index>(mesh.nodes.size());
      mesh.nodes.emplace_back(size[0] * i / (n[0] - 1), size[1] * j / (n[1] - 1), 0.0);
      if (i == 0) mesh.node_sets["x0"].push_back(id);
      if (i == n[0] - 1) mesh.node_sets["x1"].push_back(id);
      if (j == 0) mesh.node_sets["y0"].push_back(id);
      if (j == n[1] - 1) mesh.node_sets["y1"].push_back(id);
    }
  if (pattern == RectanglePattern::kIrregular)
    for (Index j = 1; j + 1 < n[1]; ++j)
      for (Index i = 1; i + 1 < n[0]; ++i) {
        const auto k = static_cast<std::uint64_t>(i + n[0] * j);
        mesh.nodes[k][0] += 0.33 * scatter(2 * k) * size[0] / (n[0] - 1);
        mesh.nodes[k][1] += 0.33 * scatter(2 * k + 1) * size[1] / (n[1] - 1);
      }
  for (Index j = 0; j + 1 < n[1]; ++j)
    for (Index i = 0; i + 1 < n[0]; ++i) {
      const Index a = i + n[0] * j, b = a + 1, c = a + n[0], d = c + 1;
      if (pattern == RectanglePattern::kCrossed) {
        const auto m = static_cast<Index>(mesh.nodes.size());
        mesh.nodes.push_back(0.25 * (mesh.nodes[a] + mesh.nodes[b] + mesh.nodes[c] + mesh.nodes[d]));
        for (const auto& side : {std::array{a, b}, std::array{b, d}, std::array{d, c}, std::array{c, a}})
          mesh.triangles.push_back({side[0], side[1], m});
      } else if ((i + j) % 2 == 0) {
        mesh.triangles.push_back({a, b, d});
        mesh.triangles.push_back({a, d, c});
      } else {
        mesh.triangles.push_back({a, b, c});
        mesh.triangles.push_back({b, d, c});
      }
    }
  if (pattern == RectanglePattern::kIrregular) make_delaunay(mesh);
  return mesh;
}

}  // namespace limber
