#include <limber/cloth/feature_inserter.hpp>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

// Of triangles that a collapse of the clean-up leaves, if it was better before.
constexpr double kLeastAspect = 0.01;

}  // namespace

bool FeatureInserter::collapse_is_sound(Index a, Index b, bool conformal) const {
  if (!e_.can_collapse(a, b, conformal)) return false;
  double worst = kLeastAspect;
  for (const Index t : e_.around(a)) worst = std::min(worst, material_aspect(s(), s().triangles[t]));
  bool ok = true;
  e_.after_collapse(a, b, [&](const Tri& t) { ok = ok && material_aspect(s(), t) >= worst; });
  return ok;
}

// Edges between an EOL vertex and another: the other goes.
bool FeatureInserter::collapse_towards() {
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
bool FeatureInserter::goes_before(Index a, Index b) const {
  const bool fixed_a = !set_[feature(a)].line() || e_.on_border(a),
             fixed_b = !set_[feature(b)].line() || e_.on_border(b);
  if (fixed_a != fixed_b) return fixed_b;
  if (s().age[a] != s().age[b]) return s().age[a] < s().age[b];
  return a > b;
}

bool FeatureInserter::collapse_along() {
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
bool FeatureInserter::part_strangers() {
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

void FeatureInserter::release_all(Index v) {
  const std::vector<Index> partners = e_.partners(v);
  for (const Index w : partners) e_.release(v, w);
}

Index FeatureInserter::common_corner(Index f, Index g) const {
  for (const Index corner : set_[f].ends)
    if (corner >= 0 && set_[g].line() && (set_[g].ends[0] == corner || set_[g].ends[1] == corner))
      return corner;
  return -1;
}

// The split of section 2.6.1 and at once the collapse that it is for; taken back if that cannot be.
bool FeatureInserter::pull_in(Index a, Index b, Index apex) {
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

bool FeatureInserter::mend_flat() {
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

void FeatureInserter::clean_up() {
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

Index FeatureInserter::count_flat() const {
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

Insertion FeatureInserter::finish() {
  Insertion out;
  out.refused = refused_;
  out.skipped = skipped_;
  out.rounds = rounds_;
  out.clean = clean_;
  out.flat = count_flat();
  out.change = std::move(e_).finish();
  return out;
}

}  // namespace limber
