#include <limber/mesh/sheet_edit.hpp>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

// Sine of the turn at which a border, or a line of preserved edges, counts as straight: far above what
// sliding along it for thousands of steps rounds off, far below what changes an area.
constexpr double kStraight = 1e-8;
// A triangle below this share of the square of its longest edge has no area left.
constexpr double kFlatFace = 1e-9;

bool straight(const Vec2& a, const Vec2& b, const Vec2& c) {
  const Vec2 in = b - a, out = c - b;
  return in.dot(out) > 0 && std::abs(cross2(in, out)) <= kStraight * in.norm() * out.norm();
}

bool has(const Tri& t, Index v) { return t[0] == v || t[1] == v || t[2] == v; }

bool sound(const Vec2& a, const Vec2& b, const Vec2& c) {
  const double longest2 = std::max({(b - a).squaredNorm(), (c - b).squaredNorm(), (a - c).squaredNorm()});
  return cross2(b - a, c - a) > kFlatFace * longest2;
}

}  // namespace

double material_aspect(const Sheet& s, const Tri& t) {
  const Vec2 &a = s.X[t[0]], &b = s.X[t[1]], &c = s.X[t[2]];
  const double perimeter = (b - a).norm() + (c - b).norm() + (a - c).norm();
  return 6 * std::sqrt(3.0) * cross2(b - a, c - a) / (perimeter * perimeter);
}

SheetEditor::SheetEditor(Sheet sheet) : s_(std::move(sheet)), old_vertices_(s_.vertices()) {
  around_.resize(s_.x.size());
  kept_.resize(s_.x.size());
  dead_vertex_.assign(s_.x.size(), 0);
  dead_.assign(s_.triangles.size(), 0);
  for (auto& list : around_) list.reserve(8);
  for (Index k = 0; k < s_.faces(); ++k)
    for (const Index v : s_.triangles[k]) around_[v].push_back(k);
  for (const auto& [a, b] : s_.preserved) {
    kept_[a].push_back(b);
    kept_[b].push_back(a);
  }
  const SheetBorder border = sheet_border(s_);
  border_.resize(s_.x.size());
  for (Index i = 0; i < s_.vertices(); ++i) border_[i] = border.on(i);
}

std::array<Index, 2> SheetEditor::sides(Index a, Index b) const {
  std::array<Index, 2> out{-1, -1};
  for (const Index i : around_[a]) {
    const Tri& t = s_.triangles[i];
    for (int k = 0; k < 3; ++k) {
      if (t[k] != a) continue;
      if (t[(k + 1) % 3] == b) out[0] = i;
      if (t[(k + 2) % 3] == b) out[1] = i;
    }
  }
  return out;
}

Index SheetEditor::opposite(Index t, Index a, Index b) const {
  const Tri& tri = s_.triangles[t];
  return tri[0] != a && tri[0] != b ? tri[0] : tri[1] != a && tri[1] != b ? tri[1] : tri[2];
}

bool SheetEditor::is_edge(Index a, Index b) const {
  for (const Index i : around_[a])
    if (has(s_.triangles[i], b)) return true;
  return false;
}

bool SheetEditor::border_edge(Index a, Index b) const {
  if (!border_[a] || !border_[b]) return false;
  const auto t = sides(a, b);
  return (t[0] < 0) != (t[1] < 0);
}

bool SheetEditor::border_corner(Index v) const {
  if (!border_[v]) return false;
  std::array<Index, 2> ends{-1, -1};
  int n = 0;
  for (const Index i : around_[v])
    for (const Index w : s_.triangles[i])
      if (w != v && border_edge(v, w) && n < 2 && ends[0] != w) ends[n++] = w;
  return n < 2 || !straight(s_.X[ends[0]], s_.X[v], s_.X[ends[1]]);
}

bool SheetEditor::preserved(Index a, Index b) const {
  return std::find(kept_[a].begin(), kept_[a].end(), b) != kept_[a].end();
}

void SheetEditor::preserve(Index a, Index b) {
  if (preserved(a, b)) return;
  kept_[a].push_back(b);
  kept_[b].push_back(a);
}

void SheetEditor::release(Index a, Index b) {
  std::erase(kept_[a], b);
  std::erase(kept_[b], a);
}

void SheetEditor::neighbours(Index v, std::vector<Index>& out) const {
  out.clear();
  for (const Index i : around_[v])
    for (const Index w : s_.triangles[i])
      if (w != v) out.push_back(w);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

void SheetEditor::replace_around(Index v, Index from, Index to) {
  *std::find(around_[v].begin(), around_[v].end(), from) = to;
}

Index SheetEditor::new_vertex(const std::array<Index, 3>& from, const std::array<double, 3>& weights) {
  Vec3 x = Vec3::Zero();
  Vec2 X = Vec2::Zero();
  for (int k = 0; k < 3; ++k)
    if (weights[k] != 0) {
      x += weights[k] * s_.x[from[k]];
      X += weights[k] * s_.X[from[k]];
    }
  s_.x.push_back(x);
  s_.X.push_back(X);
  s_.v.push_back(Vec3::Zero());
  s_.V.push_back(Vec2::Zero());
  s_.tag.push_back(-1);
  s_.feature.push_back(-1);
  s_.parameter.push_back(0);
  s_.age.push_back(0);
  s_.patch.push_back(s_.patch[from[0]]);
  around_.emplace_back().reserve(8);
  kept_.emplace_back();
  border_.push_back(0);
  dead_vertex_.push_back(0);
  ++splits_;
  return s_.vertices() - 1;
}

bool SheetEditor::can_split(Index a, Index b) const {
  if (!preserved(a, b) || !s_.eol(a) || !s_.eol(b)) return true;
  return s_.feature[a] == s_.feature[b] || place_on_feature;
}

Index SheetEditor::split_edge(Index a, Index b, double s) {
  const auto pair = sides(a, b);
  const bool kept = preserved(a, b);
  const bool on_feature = kept && s_.eol(a) && s_.eol(b);
  // v of the material before the triangles change.
  Vec3 v = Vec3::Zero();
  int n = 0;
  for (const Index i : pair) {
    if (i < 0) continue;
    const Tri& t = s_.triangles[i];
    const Mat32 F = deformation_gradient(s_, t);
    for (int k = 0; k < 3; ++k)
      if (t[k] == a || t[k] == b) v += (t[k] == a ? 1 - s : s) * material_velocity(s_, t, F, k);
    ++n;
  }
  const Index m = new_vertex({a, b, b}, {1 - s, s, 0});
  border_[m] = n == 1;
  s_.v[m] = v / n;
  if (on_feature) {
    s_.v[m] = (1 - s) * s_.v[a] + s * s_.v[b];
    s_.V[m] = (1 - s) * s_.V[a] + s * s_.V[b];
    s_.feature[m] = s_.feature[a];
    s_.parameter[m] = (1 - s) * s_.parameter[a] + s * s_.parameter[b];
    s_.age[m] = std::min(s_.age[a], s_.age[b]);
    if (place_on_feature) place_on_feature(s_, a, b, m);
  }
  for (const Index i : pair) {
    if (i < 0) continue;
    const Index c = opposite(i, a, b);
    Tri fresh = s_.triangles[i];
    for (Index& w : fresh)
      if (w == a) w = m;  // keeps b
    for (Index& w : s_.triangles[i])
      if (w == b) w = m;  // keeps a
    const Index j = s_.faces();
    s_.triangles.push_back(fresh);
    dead_.push_back(0);
    replace_around(b, i, j);
    around_[c].push_back(j);
    around_[m].push_back(i);
    around_[m].push_back(j);
  }
  if (kept) {
    release(a, b);
    preserve(a, m);
    preserve(m, b);
  }
  return m;
}

Index SheetEditor::split_face(Index i, const std::array<double, 3>& weights) {
  const Tri t = s_.triangles[i];
  const Mat32 F = deformation_gradient(s_, t);
  Vec3 v = Vec3::Zero();
  for (int k = 0; k < 3; ++k) v += weights[k] * material_velocity(s_, t, F, k);
  const Index m = new_vertex(t, weights);
  s_.v[m] = v;
  const Index j = s_.faces();
  s_.triangles[i] = {t[0], t[1], m};
  s_.triangles.push_back({t[1], t[2], m});
  s_.triangles.push_back({t[2], t[0], m});
  dead_.push_back(0);
  dead_.push_back(0);
  around_[t[1]].push_back(j);
  replace_around(t[2], i, j);
  around_[t[2]].push_back(j + 1);
  around_[t[0]].push_back(j + 1);
  around_[m] = {i, j, j + 1};
  return m;
}

bool SheetEditor::can_flip(Index a, Index b) const {
  const auto pair = sides(a, b);
  if (pair[0] < 0 || pair[1] < 0 || preserved(a, b)) return false;
  const Index c = opposite(pair[0], a, b), d = opposite(pair[1], a, b);
  // (a, b, c) and (b, a, d) become (a, d, c) and (d, b, c).
  return c != d && !is_edge(c, d) && sound(s_.X[a], s_.X[d], s_.X[c]) && sound(s_.X[d], s_.X[b], s_.X[c]);
}

void SheetEditor::flip(Index a, Index b) {
  const auto [i, j] = sides(a, b);
  const Index c = opposite(i, a, b), d = opposite(j, a, b);
  s_.triangles[i] = {a, d, c};
  s_.triangles[j] = {d, b, c};
  std::erase(around_[a], j);
  std::erase(around_[b], i);
  around_[c].push_back(j);
  around_[d].push_back(i);
  ++flips_;
}

bool SheetEditor::can_collapse(Index a, Index b, bool conformal) const {
  if (s_.tag[a] >= 0) return false;
  const auto& kept = kept_[a];
  if (s_.eol(a) && kept.empty()) return false;
  if (!kept.empty()) {
    // Along a line that goes on: a in its middle, or (EOL) at its end.
    if (!preserved(a, b) || kept.size() > 2) return false;
    const Index c = kept.size() == 2 ? (kept[0] == b ? kept[1] : kept[0]) : -1;
    if (!conformal && (c < 0 || s_.eol(a) || !straight(s_.X[c], s_.X[a], s_.X[b]))) return false;
    if (c >= 0 && preserved(b, c)) return false;  // a loop of three
  }
  const auto pair = sides(a, b);
  const bool ab_border = (pair[0] < 0) != (pair[1] < 0);
  if (border_[a]) {
    if (!ab_border) return false;
    Index before = -1;  // the other neighbour along the border
    for (const Index i : around_[a])
      for (const Index w : s_.triangles[i])
        if (w != a && w != b && before < 0 && border_edge(a, w)) before = w;
    if (before < 0 || !straight(s_.X[before], s_.X[a], s_.X[b])) return false;
  }
  // Link condition: no other neighbour in common than those opposite to the edge.
  int common = 0;
  std::array<Index, 16> seen;
  std::size_t n = 0;
  for (const Index i : around_[a])
    for (const Index w : s_.triangles[i]) {
      if (w == a || w == b || std::find(seen.begin(), seen.begin() + n, w) != seen.begin() + n) continue;
      if (n == seen.size()) return false;  // a crowded vertex: leave it
      seen[n++] = w;
      common += is_edge(b, w);
    }
  if (common != (pair[0] >= 0) + (pair[1] >= 0)) return false;
  bool ok = true;
  after_collapse(a, b, [&](const Tri& t) { ok = ok && sound(s_.X[t[0]], s_.X[t[1]], s_.X[t[2]]); });
  return ok;
}

void SheetEditor::collapse(Index a, Index b) {
  for (const Index i : std::vector<Index>(around_[a])) {
    Tri& t = s_.triangles[i];
    if (has(t, b)) {
      dead_[i] = 1;
      for (const Index w : t)
        if (w != a) std::erase(around_[w], i);
    } else {
      for (Index& w : t)
        if (w == a) w = b;
      around_[b].push_back(i);
    }
  }
  around_[a].clear();
  dead_vertex_[a] = 1;
  for (const Index c : std::vector<Index>(kept_[a])) {
    release(a, c);
    if (c != b) preserve(b, c);
  }
  ++collapses_;
}

SheetChange SheetEditor::finish() && {
  SheetChange out;
  out.splits = splits_;
  out.flips = flips_;
  out.collapses = collapses_;
  std::vector<Index> place(s_.x.size(), -1);
  Index n = 0;
  for (Index i = 0; i < s_.vertices(); ++i) {
    if (dead_vertex_[i]) continue;
    place[i] = n;
    out.origin.push_back(i < old_vertices_ ? i : -1);
    if (n != i) {
      s_.x[n] = s_.x[i];
      s_.X[n] = s_.X[i];
      s_.v[n] = s_.v[i];
      s_.V[n] = s_.V[i];
      s_.tag[n] = s_.tag[i];
      s_.feature[n] = s_.feature[i];
      s_.parameter[n] = s_.parameter[i];
      s_.age[n] = s_.age[i];
      s_.patch[n] = s_.patch[i];
    }
    ++n;
  }
  const auto cut = [n](auto&... list) { (list.resize(n), ...); };
  cut(s_.x, s_.X, s_.v, s_.V, s_.tag, s_.feature, s_.parameter, s_.age, s_.patch);
  Index f = 0;
  for (std::size_t i = 0; i < dead_.size(); ++i) {
    if (dead_[i]) continue;
    const Tri t = s_.triangles[i];
    s_.triangles[f++] = {place[t[0]], place[t[1]], place[t[2]]};
  }
  s_.triangles.resize(f);
  s_.preserved.clear();
  for (std::size_t a = 0; a < kept_.size(); ++a)
    for (const Index b : kept_[a])
      if (place[a] < place[b]) s_.preserved.push_back({place[a], place[b]});
  std::sort(s_.preserved.begin(), s_.preserved.end());
  out.sheet = std::move(s_);
  return out;
}

SheetChange then(const SheetChange& first, SheetChange second) {
  for (Index& o : second.origin)
    if (o >= 0) o = first.origin[o];
  second.splits += first.splits;
  second.flips += first.flips;
  second.collapses += first.collapses;
  return second;
}

}  // namespace limber
