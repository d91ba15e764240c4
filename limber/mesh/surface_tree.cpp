#include <limber/mesh/surface_tree.hpp>

#include <numbers>
#include <numeric>

namespace limber {
namespace {

// Solid angle of a triangle seen from p (van Oosterom and Strackee 1983).
double solid_angle(const Vec3& p, const Vec3& a, const Vec3& b, const Vec3& c) {
  const Vec3 u = a - p, v = b - p, w = c - p;
  const double lu = u.norm(), lv = v.norm(), lw = w.norm();
  const double numerator = u.dot(cross(v, w));
  const double denominator = lu * lv * lw + u.dot(v) * lw + v.dot(w) * lu + w.dot(u) * lv;
  return 2 * std::atan2(numerator, denominator);
}

// Whether segment pq passes through triangle abc, touching included.
bool segment_meets_triangle(const Vec3& p, const Vec3& q, const Vec3& a, const Vec3& b, const Vec3& c) {
  const double dp = tet_det(a, b, c, p), dq = tet_det(a, b, c, q);
  if ((dp > 0 && dq > 0) || (dp < 0 && dq < 0) || (dp == 0 && dq == 0)) return false;
  const double s = tet_det(p, q, a, b), t = tet_det(p, q, b, c), u = tet_det(p, q, c, a);
  return (s >= 0 && t >= 0 && u >= 0) || (s <= 0 && t <= 0 && u <= 0);
}

}  // namespace

Vec3 nearest_on_triangle(const Vec3& p, const Vec3& a, const Vec3& b, const Vec3& c) {
  // By the region of the plane that p projects into (Ericson, Real-Time Collision Detection, 5.1.5).
  const Vec3 ab = b - a, ac = c - a, ap = p - a;
  const double d1 = ab.dot(ap), d2 = ac.dot(ap);
  if (d1 <= 0 && d2 <= 0) return a;
  const Vec3 bp = p - b;
  const double d3 = ab.dot(bp), d4 = ac.dot(bp);
  if (d3 >= 0 && d4 <= d3) return b;
  const double vc = d1 * d4 - d3 * d2;
  if (vc <= 0 && d1 >= 0 && d3 <= 0) return a + d1 / (d1 - d3) * ab;
  const Vec3 cp = p - c;
  const double d5 = ab.dot(cp), d6 = ac.dot(cp);
  if (d6 >= 0 && d5 <= d6) return c;
  const double vb = d5 * d2 - d1 * d6;
  if (vb <= 0 && d2 >= 0 && d6 <= 0) return a + d2 / (d2 - d6) * ac;
  const double va = d3 * d6 - d5 * d4;
  if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) return b + (d4 - d3) / ((d4 - d3) + (d5 - d6)) * (c - b);
  const double sum = va + vb + vc;
  if (!(sum > 0)) return a;  // no area and none of the above
  return a + (vb / sum) * ab + (vc / sum) * ac;
}

bool triangles_intersect(std::span<const Vec3> x, const Tri& s, const Tri& t) {
  std::array<bool, 3> s_shared{}, t_shared{};
  int shared = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      if (s[i] == t[j]) {
        s_shared[i] = t_shared[j] = true;
        ++shared;
      }
  if (shared >= 2) {
    // Folded back onto each other: the free corners on the same side of the common edge, in one plane.
    if (shared == 3) return true;
    int i = 0, j = 0;
    while (s_shared[i]) ++i;
    while (t_shared[j]) ++j;
    const Vec3 &a = x[s[(i + 1) % 3]], &b = x[s[(i + 2) % 3]], &c = x[s[i]], &d = x[t[j]];
    const Vec3 n = cross(b - a, c - a), m = cross(b - a, d - a);
    return n.dot(m) > 0 && cross(n, m).norm() <= 1e-9 * n.norm() * m.norm();
  }
  // Each edge of one against the other; an edge that ends in the shared corner touches there by right.
  const auto edges_meet = [&](const Tri& p, const std::array<bool, 3>& p_shared, const Tri& q) {
    for (int e = 0; e < 3; ++e) {
      if (p_shared[e] || p_shared[(e + 1) % 3]) continue;
      if (segment_meets_triangle(x[p[e]], x[p[(e + 1) % 3]], x[q[0]], x[q[1]], x[q[2]])) return true;
    }
    return false;
  };
  return edges_meet(s, s_shared, t) || edges_meet(t, t_shared, s);
}

SurfaceTree::SurfaceTree(std::span<const Vec3> points, std::span<const Tri> triangles)
    : points_(points), triangles_(triangles) {
  std::vector<Box> boxes;
  std::vector<Vec3> centroids;
  for (const Tri& t : triangles) {
    boxes.push_back(triangle_box(points, t));
    centroids.push_back((points[t[0]] + points[t[1]] + points[t[2]]) / 3);
  }
  tree_.build(boxes, centroids);
  for (const BoxTree::Node& node : tree_.nodes()) clusters_.push_back(cluster(node, centroids));
}

SurfaceTree::Cluster SurfaceTree::cluster(const BoxTree::Node& node, std::span<const Vec3> centroids) const {
  Cluster c;
  double area = 0;
  for (Index i = node.begin; i < node.end; ++i) {
    const Index t = tree_.order()[at(i)];
    const Vec3 n = triangle_normal(points_, triangles_[t]) / 2;
    c.dipole += n;
    c.center += n.norm() * centroids[t];
    area += n.norm();
  }
  c.center = area > 0 ? (c.center / area).eval() : ((node.box.lo + node.box.hi) / 2).eval();
  for (Index i = node.begin; i < node.end; ++i)
    for (const Index v : triangles_[tree_.order()[at(i)]])
      c.radius = std::max(c.radius, (points_[v] - c.center).norm());
  return c;
}

SurfaceTree::Nearest SurfaceTree::nearest(const Vec3& p) const {
  Nearest best;
  const std::span<const BoxTree::Node> nodes = tree_.nodes();
  if (nodes.empty()) return best;
  double best2 = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, Index>> stack{{squared_distance(nodes[0].box, p), 0}};
  while (!stack.empty()) {
    const auto [d2, id] = stack.back();
    stack.pop_back();
    if (d2 >= best2) continue;
    const BoxTree::Node& node = nodes[at(id)];
    if (node.leaf()) {
      for (Index i = node.begin; i < node.end; ++i) {
        const Index triangle = tree_.order()[at(i)];
        const Tri& t = triangles_[triangle];
        const Vec3 q = nearest_on_triangle(p, points_[t[0]], points_[t[1]], points_[t[2]]);
        const double e2 = (q - p).squaredNorm();
        if (e2 < best2) {
          best2 = e2;
          best = {q, triangle, 0};
        }
      }
      continue;
    }
    const Index left = id + 1;
    const double l = squared_distance(nodes[at(left)].box, p),
                 r = squared_distance(nodes[at(node.right)].box, p);
    if (l < r) {  // the nearer one is looked at first
      stack.emplace_back(r, node.right);
      stack.emplace_back(l, left);
    } else {
      stack.emplace_back(l, left);
      stack.emplace_back(r, node.right);
    }
  }
  best.distance = std::sqrt(best2);
  return best;
}

double SurfaceTree::winding(const Vec3& p) const {
  double angle = 0;
  std::vector<Index> stack;
  if (!clusters_.empty()) stack.push_back(0);
  while (!stack.empty()) {
    const Index id = stack.back();
    const BoxTree::Node& node = tree_.nodes()[at(id)];
    const Cluster& cluster = clusters_[at(id)];
    stack.pop_back();
    const Vec3 d = cluster.center - p;
    const double r = d.norm();
    if (r > 2 * cluster.radius && r > 0) {
      angle += d.dot(cluster.dipole) / (r * r * r);
    } else if (node.leaf()) {
      for (Index i = node.begin; i < node.end; ++i) {
        const Tri& t = triangles_[tree_.order()[at(i)]];
        angle += solid_angle(p, points_[t[0]], points_[t[1]], points_[t[2]]);
      }
    } else {
      stack.push_back(id + 1);
      stack.push_back(node.right);
    }
  }
  return angle / (4 * std::numbers::pi);
}

void SurfaceTree::overlapping(const Box& box, const std::function<void(Index)>& visit) const {
  std::vector<Index> stack;
  if (!tree_.nodes().empty()) stack.push_back(0);
  while (!stack.empty()) {
    const Index id = stack.back();
    const BoxTree::Node& node = tree_.nodes()[at(id)];
    stack.pop_back();
    if (!overlap(node.box, box)) continue;
    if (node.leaf()) {
      for (Index i = node.begin; i < node.end; ++i) {
        const Index t = tree_.order()[at(i)];
        if (overlap(triangle_box(points_, triangles_[t]), box)) visit(t);
      }
    } else {
      stack.push_back(id + 1);
      stack.push_back(node.right);
    }
  }
}

std::vector<std::array<Index, 2>> SurfaceTree::self_intersections(std::size_t most) const {
  std::vector<std::array<Index, 2>> found;
  for (Index t = 0; t < static_cast<Index>(triangles_.size()) && found.size() < most; ++t) {
    std::vector<Index> others;
    overlapping(triangle_box(points_, triangles_[t]), [&](Index other) {
      if (other > t && triangles_intersect(points_, triangles_[t], triangles_[other]))
        others.push_back(other);
    });
    std::sort(others.begin(), others.end());
    for (const Index other : others) found.push_back({t, other});
  }
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace limber
