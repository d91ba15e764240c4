#include <limber/core/error.hpp>
#include <limber/mesh/sheet_adapt.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>

namespace limber {
namespace {

constexpr double kFlipThreshold = 0.01;  // of the flip criterion: below, it would go to and fro
const double kFlipCos =
    std::cos(40 * M_PI / 180);  // sharper hinges are not flipped: that would move the cloth
constexpr double kCollapseBelow = 0.9;

// f of a symmetric 2x2 matrix.
template <class F>
Mat2 of_eigenvalues(const Mat2& A, const F& f) {
  const double mean = 0.5 * (A(0, 0) + A(1, 1));
  const double p = 0.5 * (A(0, 0) - A(1, 1)), q = A(0, 1), r = std::hypot(p, q);
  const double hi = f(mean + r, mean + r), lo = f(mean - r, mean + r);  // with the largest beside
  Mat2 B;
  const double c = r > 0 ? p / r : 0, s = r > 0 ? q / r : 0;  // cos, sin of twice the angle
  B(0, 0) = 0.5 * (hi + lo) + 0.5 * (hi - lo) * c;
  B(1, 1) = 0.5 * (hi + lo) - 0.5 * (hi - lo) * c;
  B(0, 1) = B(1, 0) = 0.5 * (hi - lo) * s;
  return B;
}

Mat2 positive_part(const Mat2& A) {
  return of_eigenvalues(A, [](double l, double) { return std::max(l, 0.0); });
}

// Of all matrices above both the one of least trace.
Mat2 least_above(const Mat2& A, const Mat2& B) { return A + positive_part(B - A); }

// Compression e = F^T F - 1 < 0 buckles; with wrinkles that are there already (curvature S) it buckles less.
Mat2 compression_metric(const Mat2& e, const Mat2& S2, double c) {
  Mat2 across;  // S^2 turned by a right angle: ribs stiffen along themselves
  across << S2(1, 1), -S2(0, 1), -S2(1, 0), S2(0, 0);
  const Mat2 D = e * e - 4 * c * c * across;
  const Mat2 root = of_eigenvalues(D, [](double l, double) { return std::sqrt(std::max(l, 0.0)); });
  return positive_part(root - e) / (2 * c * c);
}

double aspect_in_space(const Sheet& s, const Tri& t) {
  const Vec3 &a = s.x[t[0]], &b = s.x[t[1]], &c = s.x[t[2]];
  const double perimeter = (b - a).norm() + (c - b).norm() + (a - c).norm();
  return 6 * std::sqrt(3.0) * cross(b - a, c - a).norm() / (perimeter * perimeter);
}

class SheetAdapter {
 public:
  SheetAdapter(SheetEditor& editor, const AdaptOptions& options)
      : e_(editor), o_(options), metric_(vertex_metric(editor.sheet(), options)) {}

  void run() {
    flip_all();
    split_long();
    collapse_short();
    flip_all();
  }

 private:
  struct Long {
    double length;
    Index a, b;                            // a < b
    bool operator<(const Long& o) const {  // the top of the heap: the longest, then the lowest numbers
      return length != o.length ? length < o.length : a != o.a ? a > o.a : b > o.b;
    }
  };
  using Edge = std::array<Index, 2>;

  const Sheet& s() const { return e_.sheet(); }
  double length(Index a, Index b) const { return metric_length(s().X[b] - s().X[a], metric_[a], metric_[b]); }

  std::vector<Edge> all_edges() const {
    std::vector<Edge> edges;
    edges.reserve(s().triangles.size() * 3 / 2 + 64);
    for (Index i = 0; i < e_.faces(); ++i) {
      if (!e_.alive_face(i)) continue;
      const Tri& t = s().triangles[i];
      for (int k = 0; k < 3; ++k) {
        const Index a = t[k], b = t[(k + 1) % 3];
        if (a < b || e_.sides(a, b)[1] < 0) edges.push_back({std::min(a, b), std::max(a, b)});
      }
    }
    return edges;
  }

  bool wants_flip(Index a, Index b) const {
    const auto pair = e_.sides(a, b);
    if (pair[0] < 0 || pair[1] < 0 || e_.preserved(a, b)) return false;
    const Index c = e_.opposite(pair[0], a, b), d = e_.opposite(pair[1], a, b);
    const Vec2 &x = s().X[a], &z = s().X[b], &w = s().X[c], &y = s().X[d];
    const Mat2 M = 0.25 * (metric_[a] + metric_[b] + metric_[c] + metric_[d]);
    const double below = cross2(z - y, x - y), above = cross2(x - w, z - w);
    // Cotangents of the two angles at the edge, times twice the areas: negative sum, not Delaunay.
    const double sum = below * (x - w).dot(M * (z - w)) + above * (z - y).dot(M * (x - y));
    if (!(sum < -kFlipThreshold * (below + above))) return false;
    const Vec3 n = triangle_normal(s().x, s().triangles[pair[0]]),
               m = triangle_normal(s().x, s().triangles[pair[1]]);
    return n.dot(m) > kFlipCos * n.norm() * m.norm();
  }

  void flip_from(std::vector<Edge>& stack, bool push_long) {
    // The metric varies, so that flips might go in circles: an end that is never met in good order.
    std::size_t budget = 8 * stack.size() + 64;
    for (std::size_t k = 0; k < stack.size() && budget > 0; ++k) {
      const auto [a, b] = stack[k];
      if (!e_.alive(a) || !e_.alive(b) || !wants_flip(a, b) || !e_.can_flip(a, b)) continue;
      const auto pair = e_.sides(a, b);
      const Index c = e_.opposite(pair[0], a, b), d = e_.opposite(pair[1], a, b);
      e_.flip(a, b);
      --budget;
      for (const Edge& next : {Edge{a, c}, Edge{c, b}, Edge{b, d}, Edge{d, a}}) stack.push_back(next);
      if (push_long) offer(c, d);
    }
  }

  void flip_all() {
    std::vector<Edge> stack = all_edges();
    flip_from(stack, false);
  }

  void offer(Index a, Index b) {
    const double l = length(a, b);
    if (l > 1) heap_.push({l, std::min(a, b), std::max(a, b)});
  }

  void split_long() {
    for (const auto& [a, b] : all_edges()) offer(a, b);
    std::vector<Edge> stack;
    std::vector<Index> ring;
    while (!heap_.empty()) {
      const auto [l, a, b] = heap_.top();
      heap_.pop();
      if (!e_.is_edge(a, b) || !e_.can_split(a, b)) continue;  // flipped away
      const Index m = e_.split_edge(a, b, 0.5);
      metric_.push_back(0.5 * (metric_[a] + metric_[b]));
      stack.clear();
      for (const Index i : e_.around(m)) {  // the edges around the quadrilateral
        const Tri& t = s().triangles[i];
        const int k = t[0] == m ? 0 : t[1] == m ? 1 : 2;
        stack.push_back({t[(k + 1) % 3], t[(k + 2) % 3]});
      }
      e_.neighbours(m, ring);
      for (const Index w : ring) offer(m, w);
      flip_from(stack, true);
    }
  }

  double aspect(const Tri& t) const {
    return o_.in_space ? aspect_in_space(s(), t) : material_aspect(s(), t);
  }

  // In space, the sides of triangles must stay what they are.
  bool turns_in_space(Index a, Index b) const {
    bool turns = false;
    for (const Index i : e_.around(a)) {
      Tri t = s().triangles[i];
      if (t[0] == b || t[1] == b || t[2] == b) continue;
      const Vec3 n = triangle_normal(s().x, t);
      for (Index& v : t)
        if (v == a) v = b;
      const Vec3 m = triangle_normal(s().x, t);
      turns = turns || !(n.dot(m) > 0.7 * n.norm() * m.norm());
    }
    return turns;
  }

  bool collapse_pays(Index a, Index b) const {
    double worst_before = o_.aspect_min;
    for (const Index i : e_.around(a)) worst_before = std::min(worst_before, aspect(s().triangles[i]));
    bool ok = true;
    e_.after_collapse(a, b, [&](const Tri& t) {
      for (const Index w : t) ok = ok && (w == b || length(b, w) <= kCollapseBelow);
      ok = ok && aspect(t) >= worst_before;
    });
    return ok && !(o_.in_space && turns_in_space(a, b));
  }

  void collapse_short() {
    std::vector<Edge> list = all_edges();
    std::vector<Index> ring;
    for (std::size_t k = 0; k < list.size(); ++k) {
      auto [a, b] = list[k];
      if (!e_.alive(a) || !e_.alive(b) || !e_.is_edge(a, b) || length(a, b) > kCollapseBelow) continue;
      for (int way = 0; way < 2; ++way, std::swap(a, b)) {
        // The cheap and most likely refusals first.
        if (!collapse_pays(a, b) || !e_.can_collapse(a, b)) continue;
        e_.collapse(a, b);
        e_.neighbours(b, ring);
        for (const Index w : ring) list.push_back({std::min(b, w), std::max(b, w)});
        break;
      }
    }
  }

  SheetEditor& e_;
  AdaptOptions o_;
  std::vector<Mat2> metric_;
  std::priority_queue<Long> heap_;
};

}  // namespace

void check_options(const AdaptOptions& o, const std::string& where) {
  const auto refuse = [&](const char* name, double value, const char* expected) {
    throw Error(ErrorKind::kInput, fmt::format("{}/{}: {}, expected {}", where, name, value, expected));
  };
  const auto positive = [&](const char* name, double value) {
    if (!(value > 0) || !std::isfinite(value)) refuse(name, value, "a positive number");
  };
  positive("size_min", o.size_min);
  positive("size_max", o.size_max);
  if (o.size_max < o.size_min) refuse("size_max", o.size_max, "at least size_min");
  positive("refine_angle", o.refine_angle);
  positive("refine_velocity", o.refine_velocity);
  positive("refine_compression", o.refine_compression);
  if (!(o.aspect_min > 0 && o.aspect_min < 1)) refuse("aspect_min", o.aspect_min, "between 0 and 1");
}

double metric_length(const Vec2& d, const Mat2& a, const Mat2& b) {
  return std::sqrt(0.5 * (d.dot(a * d) + d.dot(b * d)));
}

std::vector<Mat2> vertex_metric(const Sheet& s, const AdaptOptions& o) {
  const double least = 1 / (o.size_max * o.size_max), most = 1 / (o.size_min * o.size_min);
  const std::size_t faces = s.triangles.size();
  std::vector<Vec3> normal(faces);
  for (std::size_t i = 0; i < faces; ++i) normal[i] = triangle_normal(s.x, s.triangles[i]).normalized();
  // In space, every triangle has axes of its own.
  std::vector<Mat32> axes(o.in_space ? faces : 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Tri& t = s.triangles[i];
    const Vec3 e = (s.x[t[1]] - s.x[t[0]]).normalized();
    axes[i] << e, cross(normal[i], e);
  }
  const auto along = [&](Index face, Index a, Index b) {
    return o.in_space ? Vec2(axes[face].transpose() * (s.x[b] - s.x[a])) : Vec2(s.X[b] - s.X[a]);
  };
  const auto det = [&](Index face) {  // twice the area
    const Tri& t = s.triangles[face];
    return o.in_space ? triangle_normal(s.x, t).norm() : material_det(s, t);
  };
  // The triangle on the other side of each edge, by bucketing half-edges at their lower vertex.
  std::vector<Mat2> S(faces, Mat2::Zero());
  std::vector<Index> begin(s.x.size() + 1, 0);
  for (const Tri& t : s.triangles)
    for (int k = 0; k < 3; ++k) ++begin[std::min(t[k], t[(k + 1) % 3]) + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  struct Half {
    Index other, face;
  };
  std::vector<Half> half(3 * faces);
  std::vector<Index> fill(begin.begin(), begin.end() - 1);
  for (std::size_t i = 0; i < faces; ++i) {
    const Tri& t = s.triangles[i];
    for (int k = 0; k < 3; ++k) {
      const Index a = std::min(t[k], t[(k + 1) % 3]), b = std::max(t[k], t[(k + 1) % 3]);
      half[fill[a]++] = {b, static_cast<Index>(i)};
    }
  }
  for (std::size_t a = 0; a + 1 < begin.size(); ++a)
    for (Index p = begin[a]; p < begin[a + 1]; ++p)
      for (Index q = p + 1; q < begin[a + 1]; ++q) {
        if (half[p].other != half[q].other) continue;
        const std::array<Index, 2> edge{static_cast<Index>(a), half[p].other};
        if (std::binary_search(s.preserved.begin(), s.preserved.end(), edge)) continue;
        const Vec3 &n = normal[half[p].face], &m = normal[half[q].face];
        const double angle = std::atan2(cross(n, m).norm(), n.dot(m));
        // Convex or concave: does the second triangle rise above the first?
        const Tri& t = s.triangles[half[q].face];
        const Index c = t[0] + t[1] + t[2] - edge[0] - edge[1];
        const double sign = n.dot(s.x[c] - s.x[edge[0]]) > 0 ? -1 : 1;
        // Half of the hinge's angle belongs to each triangle: S += angle/2 |e| t t^T / area.
        for (const Index f : {half[p].face, half[q].face}) {
          const Vec2 d = along(f, edge[0], edge[1]), across(-d[1], d[0]);
          S[f] +=
              (sign * angle / std::max(d.norm() * std::abs(det(f)), 1e-300)) * (across * across.transpose());
        }
      }
  std::vector<Mat2> metric(s.x.size(), Mat2::Zero());
  std::vector<double> area(s.x.size(), 0.0);
  for (std::size_t i = 0; i < faces; ++i) {
    const Tri& t = s.triangles[i];
    const double A = det(static_cast<Index>(i));
    if (!(A > 0) || !(material_det(s, t) > 0))
      continue;  // what it says is without sense, and might be without bounds
    const auto g = shape_gradients(s, t);
    Mat32 F = Mat32::Zero(), dv = Mat32::Zero();
    for (int k = 0; k < 3; ++k) F += s.x[t[k]] * g[k].transpose();
    for (int k = 0; k < 3; ++k) dv += material_velocity(s, t, F, k) * g[k].transpose();
    const Mat2 S2 = S[i] * S[i];
    Mat2 M = S2 / (o.refine_angle * o.refine_angle);
    if (!o.in_space) {
      M = least_above(M, dv.transpose() * dv / (o.refine_velocity * o.refine_velocity));
      M = least_above(M, compression_metric(F.transpose() * F - Mat2::Identity(), S2, o.refine_compression));
    }
    M = of_eigenvalues(M, [&](double l, double largest) {
      const double top = std::clamp(largest, least, most);
      return std::max(std::clamp(l, least, most), top * o.aspect_min * o.aspect_min);
    });
    if (o.in_space) {  // pulled back to the map
      const Mat2 G = axes[i].transpose() * F;
      M = G.transpose() * M * G;
    }
    if (!M.allFinite()) continue;
    for (const Index v : t) {
      metric[v] += A * M;
      area[v] += A;
    }
  }
  for (std::size_t i = 0; i < metric.size(); ++i)
    metric[i] = area[i] > 0 ? Mat2(metric[i] / area[i]) : Mat2(least * Mat2::Identity());
  return metric;
}

SheetChange adapted(const Sheet& s, const AdaptOptions& options, const PlaceOnFeature& place_on_feature) {
  SheetEditor editor(s);
  editor.place_on_feature = place_on_feature;
  SheetAdapter(editor, options).run();
  return std::move(editor).finish();
}

}  // namespace limber
