#include <limber/contact/feature_contact.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace limber {
namespace {

const double kParallelSin = std::sin(2 * M_PI / 180);
const double kStandingCos = std::cos(70 * M_PI / 180);
constexpr double kOutside = 1e-3;  // a point this far outside a triangle, in its own measure, is still tried

// A piece of a feature that moves: a segment, or a point (with both ends the same).
struct MovingPiece {
  Index feature = -1;
  std::size_t segment = 0;
  std::array<Vec3, 2> a, b;  // ends at the start and at the end of the step: a[0], a[1] of its first end
  std::array<Vec3, 2> side;  // edge: outward normals at the end of the step
  double limit = 0;          // how deep it may be at the start
};

// Two segments p + s d and q + u e as if they were lines: the parameters of the nearest points. False if
// parallel.
bool nearest_of_lines(const Vec3& p, const Vec3& d, const Vec3& q, const Vec3& e, double& s, double& u) {
  const double dd = d.squaredNorm(), ee = e.squaredNorm(), de = d.dot(e);
  const double det = dd * ee - de * de;  // |d x e|^2
  if (!(det > kParallelSin * kParallelSin * dd * ee)) return false;
  const Vec3 r = q - p;
  s = (r.dot(d) * ee - r.dot(e) * de) / det;
  u = (r.dot(d) * de - r.dot(e) * dd) / det;
  return true;
}

// m lies between the normals of an edge's faces, or within 2 degrees of that; all are perpendicular to the
// edge.
bool in_cone_of_edge(const std::array<Vec3, 2>& side, const Vec3& m) {
  const Vec3 t = cross(side[0], side[1]);
  const double l = t.norm();
  return t.dot(cross(side[0], m)) >= -kParallelSin * l && t.dot(cross(m, side[1])) >= -kParallelSin * l;
}

class FeatureDetector {
 public:
  FeatureDetector(const FeatureSet& set, std::span<const Obstacle> obstacles, const Sheet& sheet, double t,
                  double h, const FeatureContactOptions& o)
      : set_(set), s_(sheet), h_(h), slop_(o.slop * o.threshold) {
    for (const Obstacle& obstacle : obstacles) {
      now_.push_back(placement_at(obstacle, t));
      then_.push_back(placement_at(obstacle, t + h));
    }
    for (std::size_t f = 0; f < set.size(); ++f) {
      const Feature& feature = set[f];
      const Placement &now = now_[feature.obstacle], &then = then_[feature.obstacle];
      // Thin obstacles: the far side's edges are not deep, they are elsewhere.
      const double thin = 0.25 * then.scale * thickness(obstacles[feature.obstacle]);
      const std::size_t n = feature.line() ? feature.points.size() - 1 : 1;
      for (std::size_t k = 0; k < n; ++k) {
        MovingPiece piece;
        piece.feature = static_cast<Index>(f);
        piece.segment = k;
        const Vec3 &a = feature.points[k], &b = feature.points[feature.line() ? k + 1 : k];
        piece.a = {now.to_world(a), then.to_world(a)};
        piece.b = {now.to_world(b), then.to_world(b)};
        if (feature.kind == FeatureKind::kEdge)
          piece.side = {Vec3(then.R * feature.sides[k][0]), Vec3(then.R * feature.sides[k][1])};
        piece.limit = std::min((feature.line() ? 2 : 5) * o.threshold, thin);
        (feature.line() ? lines_ : points_).push_back(piece);
      }
    }
    move_sheet();
    margin_ = 5 * o.threshold;
  }

  std::vector<FeatureContact> run() {
    find_lines();
    find_points();
    std::sort(out_.begin(), out_.end(), [](const FeatureContact& a, const FeatureContact& b) {
      return std::tie(a.feature, a.vertices) < std::tie(b.feature, b.vertices);
    });
    return std::move(out_);
  }

 private:
  void move_sheet() {
    // Of the material: mean over the triangles, by area.
    std::vector<Vec3> sum(s_.x.size(), Vec3::Zero());
    std::vector<double> area(s_.x.size(), 0.0);
    for (const Tri& t : s_.triangles) {
      const double A = material_det(s_, t);
      const bool still = s_.V[t[0]].isZero(0) && s_.V[t[1]].isZero(0) && s_.V[t[2]].isZero(0);
      const Mat32 F = still ? Mat32(Mat32::Zero()) : deformation_gradient(s_, t);
      for (int k = 0; k < 3; ++k) {
        sum[t[k]] += A * material_velocity(s_, t, F, k);
        area[t[k]] += A;
      }
    }
    next_.resize(s_.x.size());
    for (std::size_t i = 0; i < next_.size(); ++i) next_[i] = s_.x[i] + (h_ / area[i]) * sum[i];
  }

  // The tree over the pieces, whose boxes it leaves in `boxes`.
  static BoxTree tree_of(const std::vector<MovingPiece>& pieces, std::vector<Box>& boxes) {
    for (const MovingPiece& p : pieces) {
      Box box;
      for (int k = 0; k < 2; ++k) {
        box.add(p.a[k]);
        box.add(p.b[k]);
      }
      boxes.push_back(box);
    }
    BoxTree tree;
    tree.build(boxes);
    return tree;
  }

  Box swept(std::initializer_list<Index> vertices) const {
    Box box;
    for (const Index i : vertices) {
      box.add(s_.x[i]);
      box.add(next_[i]);
    }
    return box;
  }

  void find_lines() {
    if (lines_.empty()) return;
    std::vector<Box> boxes;
    const BoxTree tree = tree_of(lines_, boxes);
    std::vector<Index> found;
    // Every edge once: from its lower side, or from the only one.
    struct Half {
      Index a, b, face;
    };
    std::vector<Half> halves;
    for (Index f = 0; f < s_.faces(); ++f) {
      const Tri& t = s_.triangles[f];
      if (!overlap(tree.box(), swept({t[0], t[1], t[2]}), margin_)) continue;
      for (int k = 0; k < 3; ++k)
        halves.push_back({std::min(t[k], t[(k + 1) % 3]), std::max(t[k], t[(k + 1) % 3]), f});
    }
    std::sort(halves.begin(), halves.end(), [](const Half& x, const Half& y) {
      return std::tie(x.a, x.b, x.face) < std::tie(y.a, y.b, y.face);
    });
    for (std::size_t k = 0; k < halves.size(); ++k) {
      const Half& e = halves[k];
      if (k > 0 && halves[k - 1].a == e.a && halves[k - 1].b == e.b) continue;
      const Box box = swept({e.a, e.b});
      tree.find(box, margin_, found);
      std::erase_if(found, [&](Index i) { return !overlap(boxes[i], box, margin_); });
      if (found.empty()) continue;
      const bool two = k + 1 < halves.size() && halves[k + 1].a == e.a && halves[k + 1].b == e.b;
      std::sort(found.begin(), found.end());
      for (const Index i : found) try_line(lines_[i], e.a, e.b, e.face, two ? halves[k + 1].face : -1);
    }
  }

  bool is_on(Index vertex, Index line) const {
    const auto f = static_cast<Index>(s_.feature[vertex]);
    return f >= 0 && (f == line || set_[line].ends[0] == f || set_[line].ends[1] == f);
  }

  Vec3 normal_at_end(Index face) const {
    const Tri& t = s_.triangles[face];
    return cross(next_[t[1]] - next_[t[0]], next_[t[2]] - next_[t[0]]);
  }

  void try_line(const MovingPiece& piece, Index i, Index j, Index face, Index other) {
    if (is_on(i, piece.feature) || is_on(j, piece.feature)) return;
    const Feature& feature = set_[piece.feature];
    // The signed gap at the start and at the end, along the common normal.
    std::array<double, 2> gap{};
    std::array<Vec3, 2> m;
    for (int k = 0; k < 2; ++k) {
      const Vec3 &p = k ? next_[i] : s_.x[i], &q = k ? next_[j] : s_.x[j];
      m[k] = cross(q - p, piece.b[k] - piece.a[k]);
      const double l = m[k].norm();
      if (!(l > kParallelSin * (q - p).norm() * (piece.b[k] - piece.a[k]).norm())) return;
      m[k] /= l;
      gap[k] = (p - piece.a[k]).dot(m[k]);
    }
    if (m[0].dot(m[1]) < 0) {  // turned over during the step
      m[0] = -m[0];
      gap[0] = -gap[0];
    }
    const bool faced = feature.kind == FeatureKind::kEdge;
    if (faced ? m[1].dot(piece.side[0] + piece.side[1]) < 0 : gap[0] < 0) {
      for (int k = 0; k < 2; ++k) {
        m[k] = -m[k];
        gap[k] = -gap[k];
      }
    }
    if (gap[1] > slop_ || gap[0] < -piece.limit) return;
    if (faced && !in_cone_of_edge(piece.side, m[1])) return;
    // The cloth lies across the normal, not along it.
    Vec3 n = normal_at_end(face);
    if (other >= 0) n = n.normalized() + normal_at_end(other).normalized();
    if (std::abs(n.dot(m[1])) < kStandingCos * n.norm()) return;
    // Where they are above each other at the start: for all edges at one and the same moment, or neighbours
    // would see the line in places that do not fit together.
    const Vec3 &p = s_.x[i], &q = piece.a[0];
    const Vec3 d = s_.x[j] - p, e = piece.b[0] - q;
    double s = 0, u = 0;
    if (!nearest_of_lines(p, d, q, e, s, u)) return;
    constexpr double tiny = 1e-9;  // both neighbours of a vertex or joint may see it; none is worse
    if (s < -tiny || s > 1 + tiny || u < -tiny || u > 1 + tiny) return;
    s = std::clamp(s, 0.0, 1.0);
    u = std::clamp(u, 0.0, 1.0);
    FeatureContact c;
    c.feature = piece.feature;
    c.parameter = (1 - u) * feature.arc[piece.segment] + u * feature.arc[piece.segment + 1];
    c.triangle = face;
    c.count = 2;
    c.vertices = {i, j, -1};
    c.weights = {1 - s, s, 0};
    c.x = (1 - u) * piece.a[0] + u * piece.b[0];
    c.n = m[1];
    c.gap = gap[0];
    c.gap_end = gap[1];
    c.velocity = ((1 - u) * piece.a[1] + u * piece.b[1] - c.x) / h_;
    // A joint of two segments: once.
    for (auto it = out_.rbegin(); it != out_.rend() && it->vertices == c.vertices; ++it)
      if (it->feature == c.feature && std::abs(it->parameter - c.parameter) < 1e-9) return;
    out_.push_back(c);
  }

  void find_points() {
    if (points_.empty()) return;
    std::vector<std::vector<std::int64_t>> taken(set_.size());  // patches that have a vertex there
    for (Index i = 0; i < s_.vertices(); ++i)
      if (s_.eol(i) && !set_[s_.feature[i]].line()) taken[s_.feature[i]].push_back(s_.patch[i]);
    std::vector<Box> boxes;
    const BoxTree tree = tree_of(points_, boxes);
    std::vector<Index> found;
    struct Best {
      FeatureContact contact;
      std::int64_t patch;
      double inside;
    };
    std::vector<std::vector<Best>> best(points_.size());
    for (Index f = 0; f < s_.faces(); ++f) {
      const Tri& t = s_.triangles[f];
      const Box box = swept({t[0], t[1], t[2]});
      tree.find(box, margin_, found);
      std::erase_if(found, [&](Index i) { return !overlap(boxes[i], box, margin_); });
      std::sort(found.begin(), found.end());
      for (const Index i : found) {
        const std::int64_t patch = s_.patch[t[0]];
        const auto& gone = taken[points_[i].feature];
        if (std::find(gone.begin(), gone.end(), patch) != gone.end()) continue;
        FeatureContact c;
        double inside = 0;
        if (!try_point(points_[i], f, c, inside)) continue;
        auto it =
            std::find_if(best[i].begin(), best[i].end(), [&](const Best& b) { return b.patch == patch; });
        if (it == best[i].end())
          best[i].push_back({c, patch, inside});
        else if (inside > 0 && it->inside > 0 ? std::abs(c.gap) < std::abs(it->contact.gap)
                                              : inside > it->inside)
          *it = {c, patch, inside};
      }
    }
    for (const auto& list : best)
      for (const Best& b : list) out_.push_back(b.contact);
  }

  bool try_point(const MovingPiece& piece, Index f, FeatureContact& c, double& inside) const {
    const Feature& feature = set_[piece.feature];
    const Placement& then = then_[feature.obstacle];
    const Tri& t = s_.triangles[f];
    std::array<Vec3, 2> n{cross(s_.x[t[1]] - s_.x[t[0]], s_.x[t[2]] - s_.x[t[0]]), normal_at_end(f)};
    std::array<double, 2> gap{};
    for (int k = 0; k < 2; ++k) {
      const double l = n[k].norm();
      if (!(l > 0)) return false;
      n[k] /= l;
      gap[k] = ((k ? next_[t[0]] : s_.x[t[0]]) - piece.a[k]).dot(n[k]);
    }
    if (n[0].dot(n[1]) < 0) {
      n[0] = -n[0];
      gap[0] = -gap[0];
    }
    Vec3 out = Vec3::Zero();
    for (const Vec3& m : feature.normals) out += then.R * m;
    const bool faced = out.squaredNorm() > 0;
    if (faced ? n[1].dot(out) < 0 : gap[0] < 0) {
      for (int k = 0; k < 2; ++k) {
        n[k] = -n[k];
        gap[k] = -gap[k];
      }
    }
    if (gap[1] > slop_ || gap[0] < -piece.limit) return false;
    // Nothing of the obstacle may stick out of the cloth beside a corner: then an edge is what it touches.
    if (faced)
      for (const Vec3& ray : feature.rays)
        if (n[1].dot(then.R * ray) > 10 * kParallelSin) return false;
    const std::array<Vec3, 3> p{s_.x[t[0]], s_.x[t[1]], s_.x[t[2]]};
    const Vec3& q = piece.a[0];
    const Vec3 m = cross(p[1] - p[0], p[2] - p[0]);
    const double d = m.squaredNorm();
    std::array<double, 3> w{cross(p[2] - p[1], q - p[1]).dot(m) / d, cross(p[0] - p[2], q - p[2]).dot(m) / d,
                            0};
    w[2] = 1 - w[0] - w[1];
    inside = std::min({w[0], w[1], w[2]});
    if (inside < -kOutside) return false;
    double sum = 0;
    for (double& value : w) sum += value = std::max(value, 0.0);
    for (double& value : w) value /= sum;
    c.feature = piece.feature;
    c.triangle = f;
    c.count = 3;
    c.vertices = t;
    c.weights = w;
    c.x = piece.a[0];
    c.n = n[1];
    c.gap = gap[0];
    c.gap_end = gap[1];
    c.velocity = (piece.a[1] - piece.a[0]) / h_;
    return true;
  }

  const FeatureSet& set_;
  const Sheet& s_;
  double h_, slop_, margin_ = 0;
  std::vector<Placement> now_, then_;
  std::vector<MovingPiece> lines_, points_;
  std::vector<Vec3> next_;  // positions at the end of the step
  std::vector<FeatureContact> out_;
};

}  // namespace

std::vector<FeatureContact> detect_features(const FeatureSet& set, std::span<const Obstacle> obstacles,
                                            const Sheet& sheet, double t, double h,
                                            const FeatureContactOptions& options) {
  if (set.empty() || sheet.triangles.empty()) return {};
  return FeatureDetector(set, obstacles, sheet, t, h, options).run();
}

}  // namespace limber
