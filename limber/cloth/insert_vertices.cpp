#include <limber/cloth/feature_inserter.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace limber {
namespace {

constexpr double kOnEdge = 1e-3;  // a least barycentric coordinate below: on the edge, not in the face
// Once on a feature, a vertex may come closer to the border than when it was put there, or it would go to and
// fro.
constexpr double kStay = 0.5;
constexpr double kSamePlace = 0.1;  // of the smallest edge: contacts of one feature that are one
constexpr double kFold = 0.01;      // of the smallest edge: how high a fold over a wire begins

}  // namespace

void FeatureInserter::find_border() {
  const SheetBorder border = sheet_border(before_);
  for (Index i = 0; i < before_.vertices(); ++i)
    if (border.on(i)) sides_.push_back({before_.X[i], before_.X[border.after[i]], before_.patch[i]});
}

// A feature at X that runs along `d` in the material (zero: a point) is too close to the border to be
// followed.
bool FeatureInserter::spoils_border(const Vec2& X, std::int64_t patch, const Vec2& d, double share) const {
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
Vec2 FeatureInserter::pulled_back(Index triangle, const Vec3& tangent) const {
  const Mat32 F = deformation_gradient(s(), s().triangles[triangle]);
  const Mat2 G = F.transpose() * F;
  const Vec2 r = F.transpose() * tangent;
  const double det = G(0, 0) * G(1, 1) - G(0, 1) * G(1, 0);
  if (!(det > 1e-12 * G.trace() * G.trace())) return r;
  return Vec2(G(1, 1) * r[0] - G(0, 1) * r[1], G(0, 0) * r[1] - G(1, 0) * r[0]) / det;
}

void FeatureInserter::stop(Index v) {
  e_.data().feature[v] = -1;
  e_.data().parameter[v] = 0;
  e_.data().age[v] = 0;
}

void FeatureInserter::sit(Index v, Index f, double parameter, const Vec3& x) {
  e_.data().feature[v] = f;
  e_.data().parameter[v] = parameter;
  e_.data().x[v] = x;
}

Index FeatureInserter::vertex_on_point(Index f, std::int64_t patch) const {
  for (Index v = 0; v < e_.vertices(); ++v)
    if (e_.alive(v) && feature(v) == f && s().patch[v] == patch) return v;
  return -1;
}

void FeatureInserter::follow_features() {
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

// The triangle at a material point, walking from one that was near.
Index FeatureInserter::locate(Index from, const Vec2& X, std::array<double, 3>& w) const {
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

bool FeatureInserter::may_sit(Index v, Index f) const {
  if (s().tag[v] >= 0 || s().eol(v) || e_.border_corner(v)) return false;
  return set_[f].line() || !e_.on_border(v);
}

void FeatureInserter::put(const FeatureContact& c) {
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
  // One of the feature is there already: two so close to each other move as one, and what is between them has
  // no say in the step's matrix.
  for (const Index v : tri)
    if (feature(v) == c.feature && (s().X[v] - X).norm() < kSamePlace * o_.size) {
      ++skipped_;
      return;
    }
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

}  // namespace limber
