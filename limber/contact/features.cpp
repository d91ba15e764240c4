#include <limber/contact/features.hpp>
#include <limber/mesh/surface.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace limber {
namespace {

// A sharp edge before it is joined to others.
struct SharpEdge {
  Index a = -1, b = -1;
  std::array<Vec3, 2> sides;  // normals of the faces to the left and right of a -> b; empty ones for wires
};

// Sharp edges and the points they connect, and for corners the normals of all faces around.
struct SharpGraph {
  std::vector<Vec3> points;
  std::vector<SharpEdge> edges;
  std::vector<std::vector<Vec3>> normals;  // of the faces at each point; empty lists for wires
};

SharpGraph graph_of_box(const Vec3& half) {
  SharpGraph g;
  const auto corner = [](int x, int y, int z) { return x + 2 * y + 4 * z; };
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 2; ++x) {
        const Vec3 sign(2.0 * x - 1, 2.0 * y - 1, 2.0 * z - 1);
        g.points.push_back(half.cwiseProduct(sign));
        g.normals.push_back({sign[0] * Vec3::UnitX(), sign[1] * Vec3::UnitY(), sign[2] * Vec3::UnitZ()});
      }
  for (int axis = 0; axis < 3; ++axis)
    for (int v = 0; v < 2; ++v)
      for (int u = 0; u < 2; ++u) {
        std::array<int, 3> p{}, q{};
        const int i = (axis + 1) % 3, j = (axis + 2) % 3;
        p[axis] = 0;
        q[axis] = 1;
        p[i] = q[i] = u;
        p[j] = q[j] = v;
        g.edges.push_back({corner(p[0], p[1], p[2]),
                           corner(q[0], q[1], q[2]),
                           {(2.0 * u - 1) * Vec3::Unit(i), (2.0 * v - 1) * Vec3::Unit(j)}});
      }
  return g;
}

void add_distinct(std::vector<Vec3>& normals, const Vec3& n) {
  for (const Vec3& m : normals)
    if (m.dot(n) > 0.9986) return;  // within 3 degrees: triangles of one face
  normals.push_back(n);
}

SharpGraph graph_of_mesh(const TriMesh& mesh, double cos_sharp) {
  SharpGraph g;
  g.points = mesh.nodes;
  g.normals.resize(mesh.nodes.size());
  std::vector<Vec3> normal;
  for (const Tri& t : mesh.triangles) normal.push_back(triangle_normal(mesh.nodes, t).normalized());
  const SurfaceEdges all = surface_edges(mesh.triangles);
  for (const auto& e : all.edges) {
    if (e.end - e.begin != 2) continue;
    Index left = all.triangles[e.begin], right = all.triangles[e.begin + 1];
    const auto runs = [&](Index t) {  // from nodes[0] to nodes[1]
      const Tri& tri = mesh.triangles[t];
      for (int k = 0; k < 3; ++k)
        if (tri[k] == e.nodes[0] && tri[(k + 1) % 3] == e.nodes[1]) return true;
      return false;
    };
    if (!runs(left)) std::swap(left, right);
    const Vec3 &n = normal[left], &m = normal[right];
    if (n.dot(m) >= cos_sharp) continue;
    // Outward: the other triangle's far vertex lies below this one's plane.
    const Tri& t = mesh.triangles[right];
    const Index far = t[0] + t[1] + t[2] - e.nodes[0] - e.nodes[1];
    if (n.dot(mesh.nodes[far] - mesh.nodes[e.nodes[0]]) >= 0) continue;
    g.edges.push_back({e.nodes[0], e.nodes[1], {n, m}});
  }
  std::vector<char> used(mesh.nodes.size(), 0);
  for (const SharpEdge& e : g.edges) used[e.a] = used[e.b] = 1;
  for (std::size_t i = 0; i < mesh.triangles.size(); ++i)
    for (const Index v : mesh.triangles[i])
      if (used[v]) add_distinct(g.normals[v], normal[i]);
  return g;
}

SharpGraph graph_of_wire(const std::vector<Vec3>& points) {
  SharpGraph g;
  g.points = points;
  const auto n = static_cast<Index>(points.size());
  const bool closed = n > 3 && points.front() == points.back();
  if (closed) g.points.pop_back();
  g.normals.resize(g.points.size());
  for (Index i = 0; i + 1 < n; ++i)
    g.edges.push_back({i, closed && i + 2 == n ? 0 : i + 1, {Vec3::Zero(), Vec3::Zero()}});
  return g;
}

class LineMaker {
 public:
  LineMaker(const SharpGraph& graph, Index obstacle, bool wire, double cos_turn, FeatureSet& out)
      : g_(graph), obstacle_(obstacle), wire_(wire), cos_turn_(cos_turn), out_(out) {
    at_.resize(g_.points.size());
    for (std::size_t k = 0; k < g_.edges.size(); ++k) {
      at_[g_.edges[k].a].push_back(static_cast<Index>(k));
      at_[g_.edges[k].b].push_back(static_cast<Index>(k));
    }
    make_corners();
    done_.assign(g_.edges.size(), 0);
    // Lines from corners and loose ends first, then closed ones.
    for (std::size_t v = 0; v < at_.size(); ++v)
      if (!passes(static_cast<Index>(v)))
        for (const Index k : at_[v])
          if (!done_[k]) walk(static_cast<Index>(v), k);
    for (std::size_t k = 0; k < g_.edges.size(); ++k)
      if (!done_[k]) walk(g_.edges[k].a, static_cast<Index>(k));
  }

 private:
  Index other(Index k, Index v) const { return g_.edges[k].a == v ? g_.edges[k].b : g_.edges[k].a; }
  Vec3 leaving(Index k, Index v) const { return (g_.points[other(k, v)] - g_.points[v]).normalized(); }

  // A line goes through v.
  bool passes(Index v) const {
    return at_[v].size() == 2 && -leaving(at_[v][0], v).dot(leaving(at_[v][1], v)) >= cos_turn_;
  }

  void make_corners() {
    corner_.assign(g_.points.size(), -1);
    for (std::size_t v = 0; v < at_.size(); ++v) {
      if (at_[v].size() < 2 || passes(static_cast<Index>(v))) continue;
      corner_[v] = static_cast<Index>(out_.size());
      Feature f;
      f.kind = FeatureKind::kCorner;
      f.obstacle = obstacle_;
      f.points = {g_.points[v]};
      f.normals = g_.normals[v];
      for (const Index k : at_[v]) f.rays.push_back(leaving(k, static_cast<Index>(v)));
      out_.push_back(std::move(f));
    }
  }

  void walk(Index v, Index k) {
    Feature f;
    f.kind = wire_ ? FeatureKind::kWire : FeatureKind::kEdge;
    f.obstacle = obstacle_;
    f.points = {g_.points[v]};
    f.arc = {0};
    f.ends[0] = corner_[v];
    const Index first = v;
    while (true) {
      done_[k] = 1;
      const SharpEdge& e = g_.edges[k];
      if (!wire_) f.sides.push_back(e.a == v ? e.sides : std::array<Vec3, 2>{e.sides[1], e.sides[0]});
      const Index w = other(k, v);
      f.arc.push_back(f.arc.back() + (g_.points[w] - g_.points[v]).norm());
      f.points.push_back(g_.points[w]);
      v = w;
      if (!passes(v)) break;
      const Index next = at_[v][0] == k ? at_[v][1] : at_[v][0];
      if (done_[next]) break;
      k = next;
    }
    f.ends[1] = corner_[v];
    f.closed = v == first && corner_[v] < 0;
    for (double& a : f.arc) a /= f.arc.back();
    out_.push_back(std::move(f));
  }

  const SharpGraph& g_;
  Index obstacle_;
  bool wire_;
  double cos_turn_;
  FeatureSet& out_;
  std::vector<std::vector<Index>> at_;
  std::vector<Index> corner_;
  std::vector<char> done_;
};

// The segment of a line at a parameter and the share of it.
std::pair<std::size_t, double> segment_at(const Feature& f, double parameter) {
  const double p = std::clamp(parameter, 0.0, 1.0);
  std::size_t k = 0;
  while (k + 2 < f.arc.size() && f.arc[k + 1] <= p) ++k;
  return {k, std::clamp((p - f.arc[k]) / (f.arc[k + 1] - f.arc[k]), 0.0, 1.0)};
}

}  // namespace

FeatureSet find_features(std::span<const Obstacle> obstacles, double angle) {
  FeatureSet set;
  const double cosine = std::cos(angle * std::numbers::pi / 180);
  for (std::size_t i = 0; i < obstacles.size(); ++i) {
    const Obstacle& o = obstacles[i];
    const auto index = static_cast<Index>(i);
    if (o.shape == ObstacleShape::kBox) {
      LineMaker(graph_of_box(o.half_size), index, false, cosine, set);
    } else if (o.shape == ObstacleShape::kMesh) {
      LineMaker(graph_of_mesh(o.surface->mesh(), cosine), index, false, cosine, set);
    } else if (o.shape == ObstacleShape::kWire) {
      LineMaker(graph_of_wire(o.points), index, true, cosine, set);
    } else if (o.shape == ObstacleShape::kPoints) {
      for (const Vec3& p : o.points) {
        Feature f;
        f.kind = FeatureKind::kNail;
        f.obstacle = index;
        f.points = {p};
        if (o.axis.squaredNorm() > 0) f.normals = {o.axis.normalized()};
        set.push_back(std::move(f));
      }
    }
  }
  return set;
}

Vec3 feature_point(const Feature& f, const Placement& at, double parameter) {
  if (!f.line()) return at.to_world(f.points.front());
  const auto [k, share] = segment_at(f, parameter);
  return at.to_world((1 - share) * f.points[k] + share * f.points[k + 1]);
}

FeaturePlace feature_place(const Feature& f, const Placement& at, double parameter) {
  FeaturePlace place;
  place.x = feature_point(f, at, parameter);
  if (f.line()) {
    const std::size_t k = segment_at(f, parameter).first;
    place.tangent = at.R * (f.points[k + 1] - f.points[k]).normalized();
    if (f.kind == FeatureKind::kEdge)
      for (const Vec3& n : f.sides[k]) place.normals.push_back(at.R * n);
  } else {
    for (const Vec3& n : f.normals) place.normals.push_back(at.R * n);
  }
  return place;
}

NearestOnFeature nearest_on_feature(const Feature& f, const Placement& at, const Vec3& x) {
  NearestOnFeature best;
  const Vec3 y = at.to_local(x);
  if (!f.line()) {
    best.x = at.to_world(f.points.front());
    best.distance = (x - best.x).norm();
    return best;
  }
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k + 1 < f.points.size(); ++k) {
    const Vec3 d = f.points[k + 1] - f.points[k];
    const double raw = (y - f.points[k]).dot(d) / d.squaredNorm(), share = std::clamp(raw, 0.0, 1.0);
    const Vec3 p = f.points[k] + share * d;
    const double distance2 = (y - p).squaredNorm();
    if (distance2 >= least) continue;
    least = distance2;
    best.parameter = (1 - share) * f.arc[k] + share * f.arc[k + 1];
    best.x = at.to_world(p);
    best.beyond = 0;
    if (!f.closed && k == 0 && raw < 0) best.beyond = -raw * d.norm() * at.scale;
    if (!f.closed && k + 2 == f.points.size() && raw > 1) best.beyond = (raw - 1) * d.norm() * at.scale;
  }
  best.distance = (x - best.x).norm();
  return best;
}

Index common_line(const FeatureSet& set, Index a, Index b) {
  if (a < 0 || b < 0) return -1;
  const bool a_line = set[a].line(), b_line = set[b].line();
  const auto ends_at = [&](Index line, Index corner) {
    return set[line].ends[0] == corner || set[line].ends[1] == corner;
  };
  if (a_line && b_line) return a == b ? a : -1;
  if (a_line) return ends_at(a, b) ? a : -1;
  if (b_line) return ends_at(b, a) ? b : -1;
  if (a == b) return -1;
  for (std::size_t k = 0; k < set.size(); ++k)
    if (set[k].line() && ends_at(static_cast<Index>(k), a) && ends_at(static_cast<Index>(k), b))
      return static_cast<Index>(k);
  return -1;
}

double parameter_on(const FeatureSet& set, Index line, Index f, double parameter, double near) {
  if (f == line) return parameter;
  const auto& ends = set[line].ends;
  if (ends[0] == f && ends[1] == f) return near < 0.5 ? 0 : 1;  // a loop that begins and ends in one corner
  return ends[0] == f ? 0 : 1;
}

}  // namespace limber
