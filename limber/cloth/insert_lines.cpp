#include <limber/cloth/feature_inserter.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace limber {
namespace {

// A chord along a line may be this much shorter than the line between its ends; else it goes across a bend.
constexpr double kChord = 0.7;

}  // namespace

void FeatureInserter::forget_lines() {
  std::vector<Index> partners;
  for (Index v = 0; v < e_.vertices(); ++v) {
    partners = e_.partners(v);
    for (const Index w : partners)
      if (v < w) e_.release(v, w);
  }
}

// Of the line that both lie on: parameters of a and b, the nearer way around a closed one.
bool FeatureInserter::span_on_line(Index line, Index a, Index b, double& pa, double& pb) const {
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
bool FeatureInserter::follows(Index a, Index b) const {
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

void FeatureInserter::connect() {
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
bool FeatureInserter::next_to(Index v, Index b, Index line) const {
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

}  // namespace limber
