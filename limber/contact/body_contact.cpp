#include <limber/contact/body_contact.hpp>

#include <limber/contact/ramp.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/mesh/surface_tree.hpp>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

using Inside = BodySurfaces::Inside;
using Near = BodySurfaces::Near;

constexpr double kBodyStiffness = 4;  // times E sqrt(area): both bodies usually have nodes in the contact
constexpr double kMargin = 0.25;   // sizes of a face: how near a node must come to be looked at in any case
constexpr double kSoft = 0.01;     // sizes of a face: depth over which a contact grows stiff
constexpr double kShallow = 0.05;  // sizes of a face: what is wrong by less is left to the next stage
constexpr double kFar = 3;         // greatest coordinate of a projection that a face still gives friction to
constexpr double kBeyond = 0.3;    // barycentric: so far beyond an edge a face does not press any more
constexpr int kLongestWalk = 16;   // faces that a node is followed over
constexpr double kOnSurface = 1e-9;  // sizes of a face: a node so near has the side and normal of its face
constexpr double kOnEdge = 1e-9;     // barycentric: less of a corner is none

template <class A, class B>
bool before(const A& a, const B& b) {
  return std::pair(a.site, a.piece) < std::pair(b.site, b.piece);
}

template <class List, class Key>
auto* find(List& list, const Key& key) {
  const auto it = std::lower_bound(list.begin(), list.end(), key,
                                   [](const auto& a, const auto& b) { return before(a, b); });
  return it != list.end() && !before(key, *it) ? &*it : nullptr;
}

// Gradients of the barycentric coordinates of corners 1 to 3 along the face with sides ab and ac.
std::array<Vec3, 4> in_plane(const Vec3& ab, const Vec3& ac, const Vec3& n) {
  const double area = cross(ab, ac).norm();
  const Vec3 b = cross(ac, n) / area, c = cross(n, ab) / area;
  return {Vec3::Zero(), Vec3(-b - c), b, c};
}

using Mat12 = Eigen::Matrix<double, 12, 12>;

// Where the pattern lacks a block, the node and the face are left uncoupled.
void add_blocks(const Mat12& H, std::array<Index, 4> own, std::span<const Index> place, BlockMatrix& A) {
  if (!place.empty())
    for (Index& i : own) i = place[static_cast<std::size_t>(i)];
  bool coupled = true;
  for (int i = 1; i < 4; ++i)
    coupled = coupled && (own[0] < 0 || own[i] < 0 ||
                          A.pattern->find(std::max(own[0], own[i]), std::min(own[0], own[i])) >= 0);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      if (own[i] >= own[j] && own[j] >= 0 && (coupled || (i == 0) == (j == 0)))
        A.block(A.pattern->find(own[i], own[j])) += H.block<3, 3>(3 * i, 3 * j);
}

}  // namespace

BodyContact::BodyContact(const fem::ElementInput& mesh, const BodyContactOptions& options)
    : options_(options), surfaces_(mesh), margin_(kMargin * surfaces_.edge()) {
  std::vector<double> young(mesh.rest.size(), 0.0);
  for (std::size_t e = 0; e < mesh.elements.size(); ++e)
    for (const Index i : mesh.elements[e])
      if (i >= 0) young[i] = std::max(young[i], mesh.material[e].young);
  for (std::size_t k = 0; k < surfaces_.sites().size(); ++k)
    K_.push_back(options.stiffness > 0
                     ? options.stiffness
                     : kBodyStiffness * young[surfaces_.sites()[k]] * std::sqrt(surfaces_.site_area()[k]));
}

BodyContact::Pair BodyContact::make_pair(Index site, Index piece, Index face) const {
  const Tri& t = surfaces_.faces()[face];
  Pair pair;
  pair.site = site;
  pair.piece = piece;
  pair.face = face;
  pair.nodes = pair.grip = {surfaces_.sites()[site], t[0], t[1], t[2]};
  pair.stiffness = K_[site];
  pair.near_at_rest =
      surfaces_.piece_of_site(site) == piece && !surfaces_.far_at_rest(surfaces_.sites()[site], t);
  return pair;
}

std::vector<BodyContact::Pair> BodyContact::detect(const VecX& x) {
  std::vector<Pair> out;
  for (const Inside& i : surfaces_.inside(x)) out.push_back(make_pair(i.site, i.piece, i.face));
  return out;
}

BodyContact::Gap BodyContact::plane_gap(const std::array<Index, 4>& nodes, const VecX& x) {
  Gap out;
  out.nodes = nodes;
  const Vec3 p = node(x, nodes[0]), a = node(x, nodes[1]), b = node(x, nodes[2]), c = node(x, nodes[3]);
  const Vec3 n = cross(b - a, c - a);
  const double area = n.norm();
  if (!(area > 0)) return out;
  out.n = n / area;
  out.value = out.n.dot(p - a);
  const double wb = cross(p - a, c - a).dot(out.n) / area, wc = cross(b - a, p - a).dot(out.n) / area;
  out.w = {1, -(1 - wb - wc), -wb, -wc};
  return out;
}

BodyContact::Gap BodyContact::gap(const Pair& pair, const VecX& x) const {
  if (options_.nearest && pair.counts) return distance(pair, x);
  Gap out = plane_gap(pair.nodes, x);
  out.face = pair.face;
  return out;
}

// Whether the energy has its full share at a node of the surface. A pair that was found on a face so near at
// rest that bending alone would do (parts of a coarse mesh) has only the faces around the node for its own.
bool BodyContact::can_meet(const Pair& pair, Index node) const {
  if (surfaces_.piece_of_site(pair.site) != pair.piece) return true;
  return pair.near_at_rest ? !surfaces_.joined(pair.nodes[0], node, 1)
                           : surfaces_.apart_at_rest(pair.nodes[0], node);
}

bool BodyContact::reachable(const Pair& pair, Index face) const {
  const Tri& t = surfaces_.faces()[face];
  if (!may_.empty() && !std::all_of(t.begin(), t.end(), [&](Index i) { return may_[i] != 0; })) return false;
  // The way must not lead back to the node's own neighbourhood: beyond its border there is no energy.
  return std::any_of(t.begin(), t.end(), [&](Index i) { return can_meet(pair, i); });
}

// share = s(phi), s = 3 phi^2 - 2 phi^3 without kinks at its ends, phi = sum of b_i phi_i with the
// coordinates b of the nearest point and phi_i = 1 at corners that the node can meet. Moves of the node
// change b_i by G_i . dx, those of corner j by (-b_j G_i + gap (G_i . G_j) n) . dx, G_i as in add_stiffness;
// on an edge e from corner a to b with r from the nearest point to the node, and s = b_b, the gradients of s
// are e, -r - (1 - s) e and r - s e, divided by |e|^2.
void BodyContact::fade(const Pair& pair, const VecX& x, Gap& at) const {
  std::array<double, 4> phi{0, 0, 0, 0};
  int whole = 0;
  for (std::size_t i = 1; i < 4; ++i) whole += (phi[i] = can_meet(pair, at.nodes[i]) ? 1.0 : 0.0) > 0;
  if (whole == 3) return;
  double sum = 0;
  for (std::size_t i = 1; i < 4; ++i) sum -= at.w[i] * phi[i];
  sum = std::clamp(sum, 0.0, 1.0);
  at.share = sum * sum * (3 - 2 * sum);
  const double rate = 6 * sum * (1 - sum);
  if (at.corners == 3) {
    const Vec3 a = node(x, at.nodes[1]), ab = Vec3(node(x, at.nodes[2])) - a,
               ac = Vec3(node(x, at.nodes[3])) - a;
    const std::array<Vec3, 4> G = in_plane(ab, ac, at.n);
    const Vec3 along = phi[1] * G[1] + phi[2] * G[2] + phi[3] * G[3];
    at.slope[0] = rate * along;
    for (std::size_t j = 1; j < 4; ++j)
      at.slope[j] = rate * (at.w[j] * along + at.value * along.dot(G[j]) * at.n);
  } else if (at.corners == 2) {
    std::size_t from = 0, to = 0;
    for (std::size_t i = 1; i < 4; ++i)
      if (at.w[i] < -kOnEdge) (from == 0 ? from : to) = i;
    const Vec3 e = Vec3(node(x, at.nodes[to])) - Vec3(node(x, at.nodes[from])), r = at.value * at.n;
    const double s = -at.w[to], by = rate * (phi[to] - phi[from]) / e.squaredNorm();
    at.slope[0] = by * e;
    at.slope[from] = by * (-r - (1 - s) * e);
    at.slope[to] = by * (r - s * e);
  }
}

// The signed distance, from face to face over the surface to where it is least. Where the way leads to faces
// that may not be looked at, and for faces that are known to be few (trained ones), it is that from the
// plane.
BodyContact::Gap BodyContact::distance(const Pair& pair, const VecX& x) const {
  const Vec3 p = node(x, pair.nodes[0]);
  const auto nearest_on = [&](Index f) {
    const Tri& t = surfaces_.faces()[f];
    return nearest_on_triangle(p, node(x, t[0]), node(x, t[1]), node(x, t[2]));
  };
  Index face = pair.face;
  Vec3 c = nearest_on(face);
  double least = (p - c).squaredNorm();
  std::vector<Index> around;
  for (int steps = 0; steps < kLongestWalk; ++steps) {
    around = surfaces_.around(face);
    const Index from = face;
    for (const Index f : around) {
      if (!reachable(pair, f)) continue;
      const Vec3 there = nearest_on(f);
      // At an edge several faces are equally near: the one before stays.
      if (const double d = (p - there).squaredNorm(); d < (1 - 1e-12) * least) {
        least = d;
        c = there;
        face = f;
      }
    }
    if (face == from) break;
  }
  const Tri& t = surfaces_.faces()[face];
  Gap out = plane_gap({pair.nodes[0], t[0], t[1], t[2]}, x);
  out.face = face;
  const double length = std::sqrt(least);
  if (!(length > kOnSurface * surfaces_.edge())) {
    fade(pair, x, out);
    return out;
  }
  // The corners that hold the nearest point, which is nearest_on_triangle's own.
  const Gap there = [&] {
    const Vec3 a = node(x, t[0]), ab = Vec3(node(x, t[1])) - a, ac = Vec3(node(x, t[2])) - a;
    Gap g;
    const double wb = cross(c - a, ac).dot(out.n) / cross(ab, ac).norm(),
                 wc = cross(ab, c - a).dot(out.n) / cross(ab, ac).norm();
    g.w = {1, -std::clamp(1 - wb - wc, 0.0, 1.0), -std::clamp(wb, 0.0, 1.0), -std::clamp(wc, 0.0, 1.0)};
    return g;
  }();
  std::vector<Index> feature;
  for (int i = 1; i < 4; ++i)
    if (there.w[i] < -kOnEdge) feature.push_back(t[static_cast<std::size_t>(i - 1)]);
  if (feature.size() == 3 || feature.empty() || out.n.isZero(0)) {
    fade(pair, x, out);
    return out;
  }
  // At the border of the node's own neighbourhood.
  if (std::none_of(feature.begin(), feature.end(), [&](Index i) { return can_meet(pair, i); })) {
    out.share = 0;
    return out;
  }
  // Which side of an edge or a node it is on: by the sum of the normals there, weighted with angles.
  const auto angle_at = [&](const Tri& f) {
    if (feature.size() == 2) return 1.0;
    const auto k = static_cast<std::size_t>(std::find(f.begin(), f.end(), feature[0]) - f.begin());
    const Vec3 o = node(x, f[k]), u = Vec3(node(x, f[(k + 1) % 3])) - o,
               v = Vec3(node(x, f[(k + 2) % 3])) - o;
    return std::atan2(cross(u, v).norm(), u.dot(v));
  };
  Vec3 outward = angle_at(t) * out.n;
  for (const Index f : surfaces_.around(face)) {
    const Tri& other = surfaces_.faces()[f];
    if (!std::all_of(feature.begin(), feature.end(),
                     [&](Index i) { return std::find(other.begin(), other.end(), i) != other.end(); }))
      continue;
    if (!reachable(pair, f)) return out;
    outward += angle_at(other) * plane_gap({pair.nodes[0], other[0], other[1], other[2]}, x).n;
  }
  const double side = outward.dot(p - c) > 0 ? 1 : -1;
  out.value = side * length;
  out.n = side / length * (p - c);
  out.w = there.w;
  out.corners = static_cast<int>(feature.size());
  if (feature.size() == 2) out.along = (Vec3(node(x, feature[1])) - Vec3(node(x, feature[0]))).normalized();
  fade(pair, x, out);
  return out;
}

// What a pair remembers of the start of the step. A node that was outside has neither depth nor friction
// there, on whichever side of the face's plane it was.
BodyContact::Pair BodyContact::start(Pair pair, bool inside) const {
  if (!inside) return pair;
  const Gap at = gap(pair, x0_);
  pair.start = std::min(0.0, options_.damping > 0 ? gap(pair, c_).value : at.value);
  pair.limit =
      options_.friction * at.share * -pair.stiffness * ramp(at.value, kSoft * surfaces_.edge()).first;
  rub(at, pair);
  return pair;
}

// Where friction acts.
void BodyContact::rub(const Gap& at, Pair& pair) const {
  pair.n = at.n;
  pair.weight = at.w;
  pair.grip = at.nodes;
  pair.origin.setZero();
  for (int i = 0; i < 4; ++i) {
    pair.origin += pair.weight[i] * Vec3(node(c_, pair.grip[i]));
    if (std::abs(pair.weight[i]) > kFar) pair.limit = 0;
  }
}

double BodyContact::normal_force(const Pair& pair, double gap) const {
  const Ramp in = ramp(gap, kSoft * surfaces_.edge()),
             deeper = ramp(gap - pair.start, g_ * options_.slip_speed);
  return -pair.stiffness * (in.first + options_.damping / g_ * deeper.first);
}

ContactEnergy::Revision BodyContact::revise_friction(const VecX& x) {
  ContactEnergy::Revision out;
  if (!(options_.friction > 0)) return out;
  for (Pair& pair : pairs_) {
    if (!pair.counts) continue;
    const Gap at = gap(pair, x);
    const double before = pair.limit;
    pair.limit = options_.friction * at.share * normal_force(pair, at.value);
    if (before == 0 && pair.limit > 0) rub(at, pair);
    for (int i = 0; i < 4; ++i)
      if (std::abs(pair.weight[i]) > kFar) pair.limit = 0;
    out.change += std::abs(pair.limit - before);
    out.sum += pair.limit;
  }
  return out;
}

void BodyContact::skip_pairs_among(const std::vector<Index>& nodes) {
  if (nodes == left_out_) return;
  left_out_ = nodes;
  surfaces_.skip_pairs_among(nodes);
  x0_.resize(0);  // who is inside is no longer known
  x1_.resize(0);
}

void BodyContact::pose(const VecX& x0, const VecX& guess, const VecX& c, double g) {
  if (x0_.size() != x0.size() || x0_ != x0) {
    x0_ = x0;
    inside0_ = x1_.size() == x0.size() && x1_ == x0 ? inside1_ : surfaces_.inside(x0);
  }
  c_ = c;
  g_ = g;
  pairs_.clear();
  may_.clear();
  for (const Near& s : surfaces_.sweep(x0, guess, margin_, inside0_)) {
    const Inside* was = find(inside0_, s);
    const Index face =
        was ? (s.nearest >= 0 ? s.nearest : was->face) : (s.entered >= 0 ? s.entered : s.nearest);
    pairs_.push_back(start(make_pair(s.site, s.piece, face), was));
  }
}

bool BodyContact::revise(const VecX& x) {
  x1_ = x;
  inside1_ = surfaces_.inside(x);
  const std::vector<Inside>& inside1 = inside1_;
  const std::vector<Near> near = surfaces_.sweep(x0_, x, margin_, inside0_);
  const double tolerance = kShallow * surfaces_.edge();
  bool changed = false;
  tunnelled_.clear();
  // Nodes that are inside, and not held back.
  std::vector<Pair> added;
  for (const Inside& i : inside1) {
    Pair* pair = find(pairs_, i);
    if (pair && gap(*pair, x).value < 0) continue;
    const Inside* was = find(inside0_, i);
    const Near* s = find(near, i);
    Index face = i.face;
    if (was)
      face = s && s->nearest >= 0 ? s->nearest : was->face;
    else if (s && s->entered >= 0 && !(pair && pair->face == s->entered))
      face = s->entered;
    if (pair && pair->face == face) continue;
    const Pair fresh = start(make_pair(i.site, i.piece, face), was);
    if (gap(fresh, x).value > -tolerance) continue;
    if (pair)
      *pair = fresh;
    else
      added.push_back(fresh);
    changed = true;
  }
  // Nodes that have gone right through, and were not held back.
  for (const Near& s : near) {
    if (!s.opposite || find(inside1, s)) continue;
    tunnelled_.push_back(surfaces_.sites()[s.site]);
    const Inside* was = find(inside0_, s);
    Pair* pair = find(pairs_, s);
    const Index face = was ? was->face : s.entered;
    if (face < 0 || (pair && pair->face == face)) continue;
    const Pair fresh = start(make_pair(s.site, s.piece, face), was);
    if (pair)
      *pair = fresh;
    else
      added.push_back(fresh);
    changed = true;
  }
  // Nodes that are outside, and held back by the plane of a face that they have left behind.
  for (Pair& pair : pairs_) {
    const Gap at = gap(pair, x);
    if (!(at.value < -tolerance && at.share > 0) || -std::max({at.w[1], at.w[2], at.w[3]}) >= -kBeyond ||
        find(inside1, pair))
      continue;
    const Near* s = find(near, pair);
    if (s && s->opposite) continue;
    changed = true;
    if (s && s->nearest >= 0 && s->nearest != pair.face)
      pair = start(make_pair(pair.site, pair.piece, s->nearest), find(inside0_, pair));
    else
      pair.site = -1;
  }
  std::erase_if(pairs_, [](const Pair& pair) { return pair.site < 0; });
  pairs_.insert(pairs_.end(), added.begin(), added.end());
  std::sort(pairs_.begin(), pairs_.end(), before<Pair, Pair>);
  return changed;
}

int BodyContact::follow(const VecX& x) {
  int changed = 0;
  if (!options_.nearest) return changed;
  for (Pair& pair : pairs_) {
    if (!pair.counts) continue;
    const Gap at = gap(pair, x);
    // In its own neighbourhood: without an energy (unless it rubs), and from there the nearest point may jump
    // to a place that has one. revise() looks whether the node is inside the body there.
    if (at.share == 0 && pair.limit == 0) {
      pair.counts = false;
      continue;
    }
    if (at.face == pair.face) continue;
    pair.face = at.face;
    pair.nodes = at.nodes;
    ++changed;
  }
  return changed;
}

int BodyContact::drop_fading(const VecX& x) {
  int dropped = 0;
  if (!options_.nearest) return dropped;
  for (Pair& pair : pairs_) {
    if (!pair.counts || pair.limit > 0 || gap(pair, x).share >= 1) continue;
    pair.counts = false;
    ++dropped;
  }
  return dropped;
}

std::vector<ContactRow> BodyContact::rows(std::span<const Pair> pairs, const VecX& x) const {
  std::vector<ContactRow> out;
  for (const Pair& pair : pairs) {
    const Gap at = gap(pair, x);
    if (at.n.isZero(0)) continue;
    ContactRow row;
    row.node = at.nodes[0];
    row.face = {at.nodes[1], at.nodes[2], at.nodes[3]};
    row.weight = {-at.w[1], -at.w[2], -at.w[3]};
    row.n = at.n;
    row.gap = at.value;
    row.friction = options_.friction;
    row.id = body_contact_id(row.node, pair.piece);
    set_tangents(row);
    out.push_back(row);
  }
  return out;
}

double BodyContact::add_force(const VecX& x, VecX& f) const {
  double energy = 0;
  const double slip = g_ * options_.slip_speed, soft = kSoft * surfaces_.edge();
  for (const Pair& pair : pairs_) {
    if (!pair.counts) continue;
    const Gap at = gap(pair, x);
    const double damping = options_.damping * pair.stiffness / g_;
    const Ramp in = ramp(at.value, soft), deeper = ramp(at.value - pair.start, slip);
    const double whole = pair.stiffness * in.value + damping * deeper.value;
    energy += at.share * whole;
    const Vec3 normal = -at.share * (pair.stiffness * in.first + damping * deeper.first) * at.n;
    if (at.share < 1 && whole > 0)
      for (int i = 0; i < 4; ++i) node(f, at.nodes[i]) -= whole * at.slope[i];
    Vec3 tangential = Vec3::Zero();
    if (pair.limit > 0) {
      Vec3 u = -pair.origin;
      for (int i = 0; i < 4; ++i) u += pair.weight[i] * Vec3(node(x, pair.grip[i]));
      u -= pair.n.dot(u) * pair.n;
      const Ramp s = slide(u.norm(), slip);
      energy += pair.limit * s.value;
      tangential = -pair.limit * s.first * u;
    }
    if (pair.grip == at.nodes) {
      for (int i = 0; i < 4; ++i) node(f, at.nodes[i]) += at.w[i] * normal + pair.weight[i] * tangential;
    } else {
      for (int i = 0; i < 4; ++i) node(f, at.nodes[i]) += at.w[i] * normal;
      if (pair.limit > 0)
        for (int i = 0; i < 4; ++i) node(f, pair.grip[i]) += pair.weight[i] * tangential;
    }
  }
  return energy;
}

void BodyContact::add_stiffness(const VecX& x, bool exact, BlockMatrix& A,
                                std::span<const Index> place) const {
  const double slip = g_ * options_.slip_speed, soft = kSoft * surfaces_.edge();
  for (const Pair& pair : pairs_) {
    if (!pair.counts) continue;
    const Gap at = gap(pair, x);
    const double damping = options_.damping * pair.stiffness / g_;
    const Ramp in = ramp(at.value, soft), deeper = ramp(at.value - pair.start, slip);
    const double fading = pair.stiffness * in.first + damping * deeper.first;
    const double first = at.share * fading;  // dE/dgap
    const double second = at.share * (pair.stiffness * in.second + damping * deeper.second);
    if (second == 0 && pair.limit == 0) continue;
    Mat12 H = Mat12::Zero();
    if (second > 0 && at.corners < 3) {
      // Distance from an edge or a node; that an edge turns is left out, what is left is positive.
      const Mat3 across = Mat3::Identity() - at.n * at.n.transpose() - at.along * at.along.transpose();
      const Mat3 N = second * at.n * at.n.transpose() + first / at.value * across;
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) H.block<3, 3>(3 * i, 3 * j) = at.w[i] * at.w[j] * N;
    } else if (second > 0) {
      const Vec3 a = node(x, at.nodes[1]), ab = Vec3(node(x, at.nodes[2])) - a,
                 ac = Vec3(node(x, at.nodes[3])) - a;
      const std::array<Vec3, 4> G = in_plane(ab, ac, at.n);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          H.block<3, 3>(3 * i, 3 * j) =
              (second * at.w[i] * at.w[j] - first * at.value * G[i].dot(G[j])) * at.n * at.n.transpose() -
              first * (at.w[j] * at.n * G[i].transpose() + at.w[i] * G[j] * at.n.transpose());
      // What the share's change adds; that it bends is left out, it goes with the energy alone.
      if (exact && at.share < 1)
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j)
            H.block<3, 3>(3 * i, 3 * j) += fading * (at.w[j] * at.slope[i] * at.n.transpose() +
                                                     at.w[i] * at.n * at.slope[j].transpose());
      if (!exact) {
        const DenseEigen eigen = symmetric_eigen(H);
        H = eigen.vectors * eigen.values.cwiseMax(0).asDiagonal() * eigen.vectors.transpose();
      }
    }
    if (pair.limit > 0) {
      if (pair.grip != at.nodes) {
        add_blocks(H, at.nodes, place, A);
        H.setZero();
      }
      const Mat3 P = Mat3::Identity() - pair.n * pair.n.transpose();
      Vec3 u = -pair.origin;
      for (int i = 0; i < 4; ++i) u += pair.weight[i] * Vec3(node(x, pair.grip[i]));
      u = P * u;
      const double length = u.norm();
      const Ramp s = slide(length, slip);
      Mat3 T = pair.limit * s.first * P;
      if (length > 0) T += pair.limit * (s.second - s.first) / (length * length) * u * u.transpose();
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) H.block<3, 3>(3 * i, 3 * j) += pair.weight[i] * pair.weight[j] * T;
    }
    add_blocks(H, pair.limit > 0 ? pair.grip : at.nodes, place, A);
  }
}

bool BodyContact::touching(const VecX& x) const {
  return std::any_of(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return presses(pair, x); });
}

bool BodyContact::presses(const Pair& pair, const VecX& x) const {
  if (pair.limit > 0) return true;  // start <= 0
  const Gap at = options_.nearest ? distance(pair, x) : plane_gap(pair.nodes, x);
  return at.value < 0 && at.share > 0;
}

BodyContact::Summary BodyContact::summary(const VecX& x) const {
  Summary out;
  for (const Pair& pair : pairs_) {
    const Gap at = gap(pair, x);
    if (!(at.value < 0 && at.share > 0)) continue;
    ++out.active;
    out.depth = std::max(out.depth, -at.value);
  }
  return out;
}

}  // namespace limber
