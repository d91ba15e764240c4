#include <limber/cloth/insert.hpp>
#include <limber/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace limber {
namespace {

constexpr double kOnEdge = 1e-3;  // a least barycentric coordinate below: on the edge, not in the face
// Once on a feature, a vertex may come closer to the border than when it was put there, or it would go to and
// fro.
constexpr double kStay = 0.5;
// A chord along a line may be this much shorter than the line between its ends; else it goes across a bend.
constexpr double kChord = 0.7;
constexpr double kFold = 0.01;  // of the smallest edge: how high a fold over a wire begins
constexpr double kLeastAspect =
    0.01;  // of triangles that a collapse of the clean-up leaves, if it was better before

class FeatureInserter {
 public:
  FeatureInserter(const Sheet& sheet, const FeatureSet& set, std::span<const Obstacle> obstacles, double t,
                  const InsertOptions& options)
      : before_(sheet), set_(set), o_(options), e_(sheet) {
    for (const Obstacle& o : obstacles) placement_.push_back(placement_at(o, t));
    e_.place_on_feature = feature_placer(set, obstacles, t);
    find_border();
  }

  Insertion run(std::span<const FeatureContact> contacts) {
    follow_features();
    std::vector<const FeatureContact*> order;
    for (const FeatureContact& c : contacts) order.push_back(&c);
    // Corners and nails first: lines then end there.
    std::stable_partition(order.begin(), order.end(), [](const FeatureContact* c) { return c->count == 3; });
    for (const FeatureContact* c : order) put(*c);
    forget_lines();
    connect();
    clean_up();
    connect();
    return finish();
  }

 private:
  const Sheet& s() const { return e_.sheet(); }
  Index feature(Index v) const { return static_cast<Index>(s().feature[v]); }
  const Placement& placement(Index f) const { return placement_[set_[f].obstacle]; }
  double length(Index a, Index b) const { return e_.material_length(a, b); }

  // --- The border of the cloth ---

  struct BorderSide {
    Vec2 a, b;
    std::int64_t patch;
  };

  void find_border() {
    const SheetBorder border = sheet_border(before_);
    for (Index i = 0; i < before_.vertices(); ++i)
      if (border.on(i)) sides_.push_back({before_.X[i], before_.X[border.after[i]], before_.patch[i]});
  }

  // A feature at X that runs along `d` in the material (zero: a point) is too close to the border to be
  // followed.
  bool spoils_border(const Vec2& X, std::int64_t patch, const Vec2& d, double share) const {
    const double band = share * o_.border_band * o_.size;
    const double least_sin = std::sin(share * o_.border_angle * std::numbers::pi / 180);
    Vec2 first = Vec2::Zero();
    for (const BorderSide& side : sides_) {
      if (side.patch != patch) continue;
      const Vec2 along = side.b - side.a;
      const double u = std::clamp((X - side.a).dot(along) / along.squaredNorm(), 0.0, 1.0);
      if ((side.a + u * along - X).squaredNorm() > band * band) continue;
      if (d.squaredNorm() == 0) return true;
      if (std::abs(cross2(d, along)) < least_sin * d.norm() * along.norm()) return true;
      if (first.squaredNorm() == 0) first = along;
      // Two sides of the cloth that meet at more than 30 degrees: a corner of it.
      if (std::abs(cross2(first, along)) > 0.5 * first.norm() * along.norm()) return true;
    }
    return false;
  }

  // The direction in the material of a line at a place of the sheet: the least |F d - tangent|.
  Vec2 pulled_back(Index triangle, const Vec3& tangent) const {
    const Mat32 F = deformation_gradient(s(), s().triangles[triangle]);
    const Mat2 G = F.transpose() * F;
    const Vec2 r = F.transpose() * tangent;
    const double det = G(0, 0) * G(1, 1) - G(0, 1) * G(1, 0);
    if (!(det > 1e-12 * G.trace() * G.trace())) return r;
    return Vec2(G(1, 1) * r[0] - G(0, 1) * r[1], G(0, 0) * r[1] - G(1, 0) * r[0]) / det;
  }

  // --- Vertices that are on features already ---

  void stop(Index v) {
    e_.data().feature[v] = -1;
    e_.data().parameter[v] = 0;
    e_.data().age[v] = 0;
  }

  void sit(Index v, Index f, double parameter, const Vec3& x) {
    e_.data().feature[v] = f;
    e_.data().parameter[v] = parameter;
    e_.data().x[v] = x;
  }

  Index vertex_on_point(Index f, std::int64_t patch) const {
    for (Index v = 0; v < e_.vertices(); ++v)
      if (e_.alive(v) && feature(v) == f && s().patch[v] == patch) return v;
    return -1;
  }

  void follow_features() {
    for (Index v = 0; v < before_.vertices(); ++v) {
      if (!s().eol(v)) continue;
      const Index f = feature(v);
      const NearestOnFeature near = nearest_on_feature(set_[f], placement(f), s().x[v]);
      if (near.beyond > 0) {
        const Index corner = set_[f].ends[near.parameter < 0.5 ? 0 : 1];
        const Index there = corner >= 0 ? vertex_on_point(corner, s().patch[v]) : -1;
        if (corner >= 0 && there < 0 && !e_.on_border(v)) {
          sit(v, corner, 0, feature_point(set_[corner], placement(corner), 0));
        } else if (there >= 0 && e_.preserved(v, there) && e_.can_collapse(v, there, true)) {
          e_.collapse(v, there);
        } else {
          stop(v);
        }
        continue;
      }
      // One that nothing presses (a negative age) may lift off: it stays where it is.
      sit(v, f, near.parameter, s().age[v] < 0 ? s().x[v] : near.x);
    }
    // In a second pass, because directions need all of them in place.
    for (Index v = 0; v < before_.vertices(); ++v) {
      if (!e_.alive(v) || !s().eol(v)) continue;
      const Index f = feature(v);
      Vec2 d = Vec2::Zero();
      if (set_[f].line()) {
        const Vec3 tangent = feature_place(set_[f], placement(f), s().parameter[v]).tangent;
        for (const Index w : e_.partners(v)) {  // the material's own tangent, where there is one
          const Vec2 chord = s().X[w] - s().X[v];
          d += (s().x[w] - s().x[v]).dot(tangent) < 0 ? Vec2(-chord) : chord;
        }
        if (d.squaredNorm() == 0) d = pulled_back(e_.around(v).front(), tangent);
      }
      if (spoils_border(s().X[v], s().patch[v], d, kStay)) stop(v);
    }
  }

  // --- New ones ---

  // The triangle at a material point, walking from one that was near.
  Index locate(Index from, const Vec2& X, std::array<double, 3>& w) const {
    Index t = from;
    for (int step = 0; step < 256; ++step) {
      const Tri& tri = s().triangles[t];
      w = barycentric(s(), tri, X);
      int k = 0;
      for (int c = 1; c < 3; ++c)
        if (w[c] < w[k]) k = c;
      if (w[k] >= -1e-12) break;
      const auto pair = e_.sides(tri[(k + 1) % 3], tri[(k + 2) % 3]);
      const Index next = pair[0] == t ? pair[1] : pair[0];
      if (next < 0) break;  // outside by rounding
      t = next;
    }
    return t;
  }

  bool may_sit(Index v, Index f) const {
    if (s().tag[v] >= 0 || s().eol(v) || e_.border_corner(v)) return false;
    return set_[f].line() || !e_.on_border(v);
  }

  void put(const FeatureContact& c) {
    Vec2 X = Vec2::Zero();
    for (int k = 0; k < c.count; ++k) X += c.weights[k] * before_.X[c.vertices[k]];
    const Feature& f = set_[c.feature];
    const std::int64_t patch = before_.patch[c.vertices[0]];
    std::array<double, 3> w{};
    const Index t = locate(c.triangle, X, w);
    Vec2 d = Vec2::Zero();
    if (f.line()) d = pulled_back(t, feature_place(f, placement_[f.obstacle], c.parameter).tangent);
    if (spoils_border(X, patch, d, 1)) {
      ++refused_;
      return;
    }
    const Tri tri = s().triangles[t];
    int least = 0, most = 0;
    for (int k = 1; k < 3; ++k) {
      if (w[k] < w[least]) least = k;
      if (w[k] > w[most]) most = k;
    }
    Index v = -1;
    if (w[most] > 1 - kOnEdge) {
      v = tri[most];
      if (!may_sit(v, c.feature)) {
        ++skipped_;
        return;
      }
    } else if (w[least] < kOnEdge) {
      const Index a = tri[(least + 1) % 3], b = tri[(least + 2) % 3];
      if (e_.preserved(a, b) || (!f.line() && e_.border_edge(a, b))) {  // it follows another feature
        ++skipped_;
        return;
      }
      const double wa = std::max(w[(least + 1) % 3], 0.0), wb = std::max(w[(least + 2) % 3], 0.0);
      v = e_.split_edge(a, b, wb / (wa + wb));
    } else {
      v = e_.split_face(t, w);
    }
    // A wire has no faces that say where its outside is: the fold over it does, and must begin on the side
    // from which the cloth comes. So the vertex waits there, and is drawn onto the wire when the cloth around
    // it has come further.
    const bool sided = f.kind != FeatureKind::kWire;
    sit(v, c.feature, c.parameter, sided ? c.x : Vec3(c.x + (std::max(c.gap, 0.0) + kFold * o_.size) * c.n));
    e_.data().age[v] = 0;
  }

  // --- Edges along features ---

  void forget_lines() {
    std::vector<Index> partners;
    for (Index v = 0; v < e_.vertices(); ++v) {
      partners = e_.partners(v);
      for (const Index w : partners)
        if (v < w) e_.release(v, w);
    }
  }

  // Of the line that both lie on: parameters of a and b, the nearer way around a closed one.
  bool span_on_line(Index line, Index a, Index b, double& pa, double& pb) const {
    pa = parameter_on(set_, line, feature(a), s().parameter[a], s().parameter[b]);
    pb = parameter_on(set_, line, feature(b), s().parameter[b], s().parameter[a]);
    if (set_[line].closed) {
      if (pb - pa > 0.5) pb -= 1;
      if (pa - pb > 0.5) pa -= 1;
    }
    double length = 0;
    const Feature& f = set_[line];
    for (std::size_t k = 1; k < f.points.size(); ++k) length += (f.points[k] - f.points[k - 1]).norm();
    length *= placement_[f.obstacle].scale * std::abs(pb - pa);
    return (s().x[a] - s().x[b]).norm() >= kChord * length;
  }

  // Edge ab follows a line, and no third vertex of its triangles lies between them on it.
  bool follows(Index a, Index b) const {
    const Index line = common_line(set_, feature(a), feature(b));
    double pa = 0, pb = 0;
    if (line < 0 || !span_on_line(line, a, b, pa, pb)) return false;
    for (const Index t : e_.sides(a, b)) {
      if (t < 0) continue;
      const Index c = e_.opposite(t, a, b);
      if (feature(c) < 0 || common_line(set_, feature(c), feature(a)) != line ||
          common_line(set_, feature(c), feature(b)) != line)
        continue;
      double pc = parameter_on(set_, line, feature(c), s().parameter[c], pa);
      if (set_[line].closed && pc - std::max(pa, pb) > 0.5) pc -= 1;
      if ((pc - pa) * (pc - pb) < 0) return false;
    }
    return true;
  }

  void connect() {
    for (Index t = 0; t < e_.faces(); ++t) {
      if (!e_.alive_face(t)) continue;
      const Tri tri = s().triangles[t];
      for (int k = 0; k < 3; ++k) {
        const Index a = tri[k], b = tri[(k + 1) % 3];
        if (s().eol(a) && s().eol(b) && !e_.preserved(a, b) && follows(a, b)) e_.preserve(a, b);
      }
    }
    // Neighbours on a line that are across one edge from each other.
    for (Index v = 0; v < e_.vertices(); ++v) {
      if (!e_.alive(v) || !s().eol(v)) continue;
      const std::vector<Index> fan = e_.around(v);
      for (const Index t : fan) {
        const Tri tri = s().triangles[t];
        const int k = tri[0] == v ? 0 : tri[1] == v ? 1 : tri[2] == v ? 2 : -1;
        if (k < 0) continue;  // flipped away
        const Index c = tri[(k + 1) % 3], d = tri[(k + 2) % 3];
        const auto pair = e_.sides(c, d);
        const Index across = pair[0] == t ? pair[1] : pair[0];
        if (across < 0) continue;
        const Index b = e_.opposite(across, c, d);
        if (b < v || !s().eol(b)) continue;
        const Index line = common_line(set_, feature(v), feature(b));
        if (line < 0 || next_to(v, b, line) || !e_.can_flip(c, d)) continue;
        double pa = 0, pb = 0;
        if (!span_on_line(line, v, b, pa, pb)) continue;
        e_.flip(c, d);
        e_.preserve(v, b);
      }
    }
  }

  // v or b is joined already to a vertex of the line that lies in the direction of the other.
  bool next_to(Index v, Index b, Index line) const {
    double pv = 0, pb = 0;
    span_on_line(line, v, b, pv, pb);
    for (const auto& [from, p, q] : {std::tuple{v, pv, pb}, {b, pb, pv}})
      for (const Index w : e_.partners(from)) {
        if (common_line(set_, feature(from), feature(w)) != line) continue;
        double pw = parameter_on(set_, line, feature(w), s().parameter[w], q);
        if (set_[line].closed && pw - p > 0.5) pw -= 1;
        if (set_[line].closed && p - pw > 0.5) pw += 1;
        if ((pw - p) * (q - p) > 0) return true;
      }
    return false;
  }

  // --- Clean-up ---

  bool collapse_is_sound(Index a, Index b, bool conformal) const {
    if (!e_.can_collapse(a, b, conformal)) return false;
    double worst = kLeastAspect;
    for (const Index t : e_.around(a)) worst = std::min(worst, material_aspect(s(), s().triangles[t]));
    bool ok = true;
    e_.after_collapse(a, b, [&](const Tri& t) { ok = ok && material_aspect(s(), t) >= worst; });
    return ok;
  }

  // Edges between an EOL vertex and another: the other goes.
  bool collapse_towards() {
    bool changed = false;
    std::vector<Index> ring;
    for (Index v = 0; v < e_.vertices(); ++v) {
      if (!e_.alive(v) || !s().eol(v)) continue;
      for (bool again = true; again;) {
        again = false;
        e_.neighbours(v, ring);
        for (const Index w : ring)
          if (!s().eol(w) && length(v, w) < o_.collapse * o_.size && collapse_is_sound(w, v, false)) {
            e_.collapse(w, v);
            changed = again = true;
            break;
          }
      }
    }
    return changed;
  }

  // Which end of an edge along a feature may go: not corners, not the border; the younger, then the later.
  bool goes_before(Index a, Index b) const {
    const bool fixed_a = !set_[feature(a)].line() || e_.on_border(a),
               fixed_b = !set_[feature(b)].line() || e_.on_border(b);
    if (fixed_a != fixed_b) return fixed_b;
    if (s().age[a] != s().age[b]) return s().age[a] < s().age[b];
    return a > b;
  }

  bool collapse_along() {
    bool changed = false;
    for (Index v = 0; v < e_.vertices(); ++v) {
      if (!e_.alive(v) || !s().eol(v)) continue;
      for (bool again = true; again && e_.alive(v);) {
        again = false;
        std::vector<Index> partners = e_.partners(v);
        std::sort(partners.begin(), partners.end());
        for (const Index w : partners) {
          if (length(v, w) >= o_.conformal * o_.size) continue;
          const Index a = goes_before(v, w) ? v : w, b = a == v ? w : v;
          Index gone = -1;
          for (const auto& [from, to] : {std::pair{a, b}, {b, a}}) {
            if (!set_[feature(from)].line() || e_.border_corner(from))
              continue;  // a corner of the obstacle stays
            if (!collapse_is_sound(from, to, true)) continue;
            e_.collapse(from, to);
            gone = from;
            break;
          }
          if (gone < 0) continue;
          changed = true;
          again = gone != v;
          break;
        }
      }
    }
    return changed;
  }

  // Vertices on different lines that are close to each other: on the corner where these meet, if it is near
  // and has no vertex yet; else the one that may go is on its line no longer.
  bool part_strangers() {
    bool changed = false;
    std::vector<Index> ring;
    for (Index v = 0; v < e_.vertices(); ++v) {
      if (!e_.alive(v) || !s().eol(v)) continue;
      e_.neighbours(v, ring);
      for (const Index w : ring) {
        if (w < v || !s().eol(w) || e_.preserved(v, w) || length(v, w) >= o_.collapse * o_.size) continue;
        const Index a = goes_before(v, w) ? v : w, b = a == v ? w : v;
        if (!set_[feature(a)].line()) continue;  // two corners, or nails
        changed = true;
        const Index corner = common_corner(feature(a), feature(b));
        if (corner >= 0 && !e_.on_border(b) && vertex_on_point(corner, s().patch[b]) < 0) {
          const Vec3 x = feature_point(set_[corner], placement(corner), 0);
          if ((s().x[b] - x).norm() < o_.conformal * o_.size) {
            release_all(b);
            sit(b, corner, 0, x);
            break;
          }
        }
        release_all(a);
        stop(a);
        if (a == v) break;
      }
    }
    return changed;
  }

  void release_all(Index v) {
    const std::vector<Index> partners = e_.partners(v);
    for (const Index w : partners) e_.release(v, w);
  }

  Index common_corner(Index f, Index g) const {
    for (const Index corner : set_[f].ends)
      if (corner >= 0 && set_[g].line() && (set_[g].ends[0] == corner || set_[g].ends[1] == corner))
        return corner;
    return -1;
  }

  double altitude_over(Index a, Index b, Index c) const {  // of c over ab
    const Vec2 d = s().X[b] - s().X[a];
    return std::abs(cross2(d, s().X[c] - s().X[a])) / d.norm();
  }

  // The split of section 2.6.1 and at once the collapse that it is for; taken back if that cannot be.
  bool pull_in(Index a, Index b, Index apex) {
    const Vec2 d = s().X[b] - s().X[a];
    const double u = (s().X[apex] - s().X[a]).dot(d) / d.squaredNorm();
    if (u < 0.02 || u > 0.98 || e_.border_edge(a, b) || !e_.can_split(a, b)) return false;
    const bool apex_goes = e_.preserved(a, b);
    if (apex_goes && s().eol(apex)) return false;
    const Index m = e_.split_edge(a, b, u);
    const Index from = apex_goes ? apex : m, to = apex_goes ? m : apex;
    if (collapse_is_sound(from, to, false)) {
      e_.collapse(from, to);
      return true;
    }
    const Index back = u < 0.5 ? a : b, forth = back == a ? b : a;
    for (const Index end : {back, forth})
      if (e_.can_collapse(m, end, apex_goes)) {
        e_.collapse(m, end);
        return false;
      }
    return true;  // it stays: something has changed
  }

  bool mend_flat() {
    bool changed = false;
    const double least = o_.altitude * o_.size;
    const Index faces = e_.faces();  // not those that are made here: the next round sees them
    for (Index t = 0; t < faces; ++t) {
      if (!e_.alive_face(t)) continue;
      const Tri tri = s().triangles[t];
      std::array<Index, 3> v = tri;  // EOL vertices first, in the triangle's order
      std::stable_partition(v.begin(), v.end(), [&](Index i) { return s().eol(i); });
      const int n = static_cast<int>(s().eol(tri[0])) + s().eol(tri[1]) + s().eol(tri[2]);
      if (n == 1 && altitude_over(v[1], v[2], v[0]) < least) {
        if (e_.border_edge(v[1], v[2]) &&
            !e_.on_border(v[0])) {  // the border cannot come to it: it leaves its feature
          release_all(v[0]);
          stop(v[0]);
          changed = true;
          continue;
        }
        changed = pull_in(v[1], v[2], v[0]) || changed;
      } else if (n == 2 && e_.preserved(v[0], v[1])) {
        if (altitude_over(v[0], v[1], v[2]) < least) changed = pull_in(v[0], v[1], v[2]) || changed;
      } else if (n == 3) {
        for (int k = 0; k < 3; ++k) {
          const Index a = tri[k], b = tri[(k + 1) % 3], c = tri[(k + 2) % 3];
          if (e_.preserved(a, b) || altitude_over(a, b, c) >= least) continue;
          changed = pull_in(a, b, c) || changed;
          break;
        }
      }
    }
    return changed;
  }

  void clean_up() {
    for (rounds_ = 0; rounds_ < o_.rounds; ++rounds_) {
      bool changed = part_strangers();
      changed = collapse_towards() || changed;
      connect();
      changed = collapse_along() || changed;
      changed = mend_flat() || changed;
      if (!changed) return;
      connect();
    }
    clean_ = false;
  }

  Index count_flat() const {
    Index n = 0;
    for (Index t = 0; t < e_.faces(); ++t) {
      if (!e_.alive_face(t)) continue;
      const Tri& tri = s().triangles[t];
      if (!s().eol(tri[0]) && !s().eol(tri[1]) && !s().eol(tri[2])) continue;
      double longest = 0;
      for (int k = 0; k < 3; ++k) longest = std::max(longest, length(tri[k], tri[(k + 1) % 3]));
      n += material_det(s(), tri) / longest < o_.altitude * o_.size;
    }
    return n;
  }

  Insertion finish() {
    Insertion out;
    out.refused = refused_;
    out.skipped = skipped_;
    out.rounds = rounds_;
    out.clean = clean_;
    out.flat = count_flat();
    out.change = std::move(e_).finish();
    return out;
  }

  const Sheet& before_;
  const FeatureSet& set_;
  InsertOptions o_;
  SheetEditor e_;
  std::vector<Placement> placement_;
  std::vector<BorderSide> sides_;
  Index refused_ = 0, skipped_ = 0;
  int rounds_ = 0;
  bool clean_ = true;
};

void list_kinds(const Sheet& before, Insertion& in) {
  in.became.clear();
  in.stopped.clear();
  const Sheet& s = in.change.sheet;
  for (Index v = 0; v < s.vertices(); ++v) {
    const Index o = in.change.origin[v];
    // A vertex that splits an edge along a feature has its neighbours' rates: it is not new to it.
    const bool was = o >= 0 ? before.eol(o) : s.eol(v) && s.age[v] != 0;
    if (s.eol(v) && !was) in.became.push_back(v);
    if (!s.eol(v) && was) in.stopped.push_back(v);
  }
}

}  // namespace

void check_options(const InsertOptions& o, const std::string& where) {
  const auto positive = [&](const char* name, double value) {
    if (!(value > 0) || !std::isfinite(value))
      throw Error(ErrorKind::kInput,
                  fmt::format("{}/{}: {}, expected a positive number", where, name, value));
  };
  positive("size", o.size);
  positive("collapse", o.collapse);
  positive("conformal", o.conformal);
  positive("altitude", o.altitude);
  positive("border_band", o.border_band);
  positive("border_angle", o.border_angle);
  if (o.border_angle >= 90)
    throw Error(ErrorKind::kInput,
                fmt::format("{}/border_angle: {}, expected less than 90", where, o.border_angle));
  if (o.altitude > o.collapse)
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "{}/altitude: {}, expected at most collapse ({}): what mends a flat triangle is a collapse",
            where, o.altitude, o.collapse));
}

Insertion insert_features(const Sheet& sheet, const FeatureSet& set, std::span<const Obstacle> obstacles,
                          double t, std::span<const FeatureContact> contacts, const InsertOptions& options) {
  Insertion in = FeatureInserter(sheet, set, obstacles, t, options).run(contacts);
  list_kinds(sheet, in);
  return in;
}

PlaceOnFeature feature_placer(const FeatureSet& set, std::span<const Obstacle> obstacles, double t) {
  std::vector<Placement> placement;
  for (const Obstacle& o : obstacles) placement.push_back(placement_at(o, t));
  return [&set, placement = std::move(placement)](Sheet& s, Index a, Index b, Index fresh) {
    const auto fa = static_cast<Index>(s.feature[a]), fb = static_cast<Index>(s.feature[b]);
    const Index line = common_line(set, fa, fb);
    s.feature[fresh] = line;
    s.parameter[fresh] = 0;
    if (line < 0) return;
    // By the share of the edge at which it is split.
    const double u = (s.X[fresh] - s.X[a]).norm() / std::max((s.X[b] - s.X[a]).norm(), 1e-300);
    double pa = parameter_on(set, line, fa, s.parameter[a], s.parameter[b]);
    double pb = parameter_on(set, line, fb, s.parameter[b], s.parameter[a]);
    if (set[line].closed && std::abs(pa - pb) > 0.5) (pa < pb ? pa : pb) += 1;
    double p = (1 - u) * pa + u * pb;
    if (p > 1) p -= 1;
    s.parameter[fresh] = p;
    s.x[fresh] = feature_point(set[line], placement[set[line].obstacle], p);
  };
}

Insertion insert_and_adapt(const Sheet& sheet, const FeatureSet& set, std::span<const Obstacle> obstacles,
                           double t, std::span<const FeatureContact> contacts, const InsertOptions& insert,
                           const AdaptOptions& adapt) {
  Insertion in = insert_features(sheet, set, obstacles, t, contacts, insert);
  in.change = then(in.change, adapted(in.change.sheet, adapt, feature_placer(set, obstacles, t)));
  list_kinds(sheet, in);
  return in;
}

}  // namespace limber
