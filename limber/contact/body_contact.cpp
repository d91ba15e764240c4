#include <limber/contact/body_contact.hpp>

#include <limber/contact/penalty.hpp>
#include <limber/contact/surface_nodes.hpp>
#include <limber/core/parallel.hpp>
#include <limber/mesh/surface.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace limber {
namespace {

constexpr Index kLeaf = 4;
constexpr std::ptrdiff_t kStretch = 64;  // nodes per piece of work
constexpr double kInside = 1e-9;         // least barycentric coordinate of a node that is inside
constexpr double kFar = 3;               // greatest one of a projection that a face still answers for

bool holds(const Box& box, const Vec3& p, double distance) {
  return ((p - box.lo).array() >= -distance).all() && ((box.hi - p).array() >= -distance).all();
}

double min0(double a) { return std::min(0.0, a); }

bool same_pair(const BodyContact::Pair& a, const BodyContact::Pair& b) { return a.nodes == b.nodes; }
bool pair_before(const BodyContact::Pair& a, const BodyContact::Pair& b) { return a.nodes < b.nodes; }

double squared_distance(const Vec3& p, const Vec3& a, const Vec3& b, const Vec3& c) {
  const Vec3 ab = b - a, ac = c - a, n = cross(ab, ac);
  const double nn = n.squaredNorm();
  if (nn > 0) {
    const double v = cross(p - a, ac).dot(n) / nn, w = cross(ab, p - a).dot(n) / nn;
    if (v >= 0 && w >= 0 && v + w <= 1) {
      const double h = (p - a).dot(n);
      return h * h / nn;
    }
  }
  auto segment = [&](const Vec3& s, const Vec3& e) {
    const Vec3 d = e - s;
    const double length = d.squaredNorm(), t = length > 0 ? std::clamp((p - s).dot(d) / length, 0.0, 1.0) : 0;
    return (p - s - t * d).squaredNorm();
  };
  return std::min({segment(a, b), segment(b, c), segment(c, a)});
}

Box box_of(std::span<const Index> corners, auto&& place) {
  Box box;
  for (const Index i : corners) box.add(place(i));
  return box;
}

}  // namespace

void BoxTree::build(const std::vector<Box>& boxes) {
  nodes_.clear();
  order_.resize(boxes.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::vector<Vec3> center;
  for (const Box& b : boxes) center.push_back(0.5 * (b.lo + b.hi));
  if (!boxes.empty()) split(center, 0, static_cast<Index>(boxes.size()));
  fit(boxes);
}

Index BoxTree::split(const std::vector<Vec3>& center, Index begin, Index end) {
  const auto self = static_cast<Index>(nodes_.size());
  nodes_.push_back({{}, begin, end, -1});
  if (end - begin <= kLeaf) return self;
  Box box;
  for (Index k = begin; k < end; ++k) box.add(center[order_[k]]);
  Eigen::Index axis = 0;
  box.size().maxCoeff(&axis);
  const Index middle = (begin + end) / 2;
  std::nth_element(order_.begin() + begin, order_.begin() + middle, order_.begin() + end,
                   [&](Index a, Index b) {
                     return center[a][axis] != center[b][axis] ? center[a][axis] < center[b][axis] : a < b;
                   });
  split(center, begin, middle);
  const Index right = split(center, middle, end);
  nodes_[self].right = right;
  return self;
}

void BoxTree::fit(const std::vector<Box>& boxes) {
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {  // children come after their parents
    node->box = {};
    if (node->right < 0) {
      for (Index k = node->begin; k < node->end; ++k) {
        node->box.add(boxes[order_[k]].lo);
        node->box.add(boxes[order_[k]].hi);
      }
    } else {
      for (const Node* child : {&*node + 1, &nodes_[node->right]}) {
        node->box.add(child->box.lo);
        node->box.add(child->box.hi);
      }
    }
  }
}

void BoxTree::find(const Vec3& p, double distance, std::vector<Index>& out) const {
  out.clear();
  std::array<Index, 64> stack{};
  int top = 0;
  if (!nodes_.empty()) stack[top++] = 0;
  while (top > 0) {
    const Index i = stack[--top];
    const Node& node = nodes_[i];
    if (!holds(node.box, p, distance)) continue;
    if (node.right < 0) {
      out.insert(out.end(), order_.begin() + node.begin, order_.begin() + node.end);
    } else {
      stack[top++] = node.right;
      stack[top++] = i + 1;
    }
  }
}

BodyContact::BodyContact(const fem::ElementInput& mesh, const BodyContactOptions& options)
    : options_(options), rest_(mesh.rest) {
  std::vector<double> young(rest_.size(), 0.0);
  for (std::size_t e = 0; e < mesh.elements.size(); ++e) {
    const Tet& t = mesh.elements[e];
    if (t[3] < 0) continue;
    tets_.push_back(t);
    for (const Index i : t) young[i] = std::max(young[i], mesh.material[e].young);
  }
  faces_ = boundary_surface(tets_).triangles;
  const SurfaceNodes surface = surface_nodes(mesh);
  for (std::size_t k = 0; k < surface.nodes.size(); ++k) {
    surface_.push_back(surface.nodes[k]);
    K_.push_back(options.stiffness > 0
                     ? options.stiffness
                     : kDefaultStiffness * young[surface.nodes[k]] * std::sqrt(surface.area[k]));
  }
  piece_.resize(rest_.size());
  std::iota(piece_.begin(), piece_.end(), 0);
  auto root = [&](Index i) {
    while (piece_[i] != i) i = piece_[i] = piece_[piece_[i]];
    return i;
  };
  for (const Tet& t : tets_)
    for (int k = 1; k < 4; ++k) {
      const Index a = root(t[0]), b = root(t[k]);
      piece_[std::max(a, b)] = std::min(a, b);
    }
  for (Index i = 0; i < static_cast<Index>(rest_.size()); ++i) piece_[i] = root(i);

  auto at_rest = [&](Index i) { return rest_[i]; };
  std::vector<Box> boxes;
  for (const Tri& t : faces_) {
    boxes.push_back(box_of(t, at_rest));
    edge_ += std::sqrt(triangle_normal(rest_, t).norm()) / static_cast<double>(faces_.size());
  }
  face_tree_.build(boxes);
  boxes.clear();
  for (const Tet& t : tets_) boxes.push_back(box_of(t, at_rest));
  tet_tree_.build(boxes);
}

Index BodyContact::nearest_face(const Vec3& X, Index tet) const {
  std::vector<Index> near;
  for (double reach = edge_;; reach *= 2) {
    face_tree_.find(X, reach, near);
    Index best = -1;
    double least = reach * reach;
    for (const Index f : near) {
      const Tri& t = faces_[f];
      if (piece_[t[0]] != piece_[tets_[tet][0]]) continue;
      const double d = squared_distance(X, rest_[t[0]], rest_[t[1]], rest_[t[2]]);
      if (d < least || (d == least && f < best)) {
        least = d;
        best = f;
      }
    }
    if (best >= 0) return best;
    if (near.size() == faces_.size()) return -1;
  }
}

std::vector<BodyContact::Pair> BodyContact::detect(const VecX& x) {
  std::vector<Box> boxes(tets_.size());
  auto now = [&](Index i) { return Vec3(node(x, i)); };
  parallel_for(static_cast<std::ptrdiff_t>(tets_.size()), 512,
               [&](std::ptrdiff_t e) { boxes[e] = box_of(tets_[e], now); });
  tet_tree_.fit(boxes);
  const auto n = static_cast<std::ptrdiff_t>(surface_.size());
  std::vector<std::vector<Pair>> found(static_cast<std::size_t>((n + kStretch - 1) / kStretch));
  parallel_ranges(n, kStretch, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    std::vector<Index> near;
    for (std::ptrdiff_t k = begin; k < end; ++k) {
      const Index v = surface_[k];
      const Vec3 p = node(x, v);
      tet_tree_.find(p, 0, near);
      std::sort(near.begin(), near.end());
      std::vector<Index> pieces;  // that v is in: one pair for each
      for (const Index e : near) {
        const Tet& t = tets_[e];
        if (std::find(t.begin(), t.end(), v) != t.end() || !holds(boxes[e], p, 0)) continue;
        if (std::find(pieces.begin(), pieces.end(), piece_[t[0]]) != pieces.end()) continue;
        const Vec3 a = now(t[0]), b = now(t[1]), c = now(t[2]), d = now(t[3]);
        const double det = tet_det(a, b, c, d);
        if (!(det > 0)) continue;
        const double l[4] = {tet_det(p, b, c, d) / det, tet_det(a, p, c, d) / det, tet_det(a, b, p, d) / det,
                             tet_det(a, b, c, p) / det};
        if (!(*std::min_element(l, l + 4) > kInside)) continue;
        Vec3 X = Vec3::Zero();
        for (int i = 0; i < 4; ++i) X += l[i] * rest_[t[i]];
        const Index f = nearest_face(X, e);
        if (f < 0) continue;
        const Tri& face = faces_[f];
        if (std::find(face.begin(), face.end(), v) != face.end()) continue;
        pieces.push_back(piece_[t[0]]);
        Pair pair;
        pair.nodes = {v, face[0], face[1], face[2]};
        pair.stiffness = K_[k];
        found[static_cast<std::size_t>(begin / kStretch)].push_back(pair);
      }
    }
  });
  std::vector<Pair> all;
  for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end(), pair_before);
  return all;
}

BodyContact::Gap BodyContact::gap(const Pair& pair, const VecX& x) {
  Gap out;
  const Vec3 p = node(x, pair.nodes[0]), a = node(x, pair.nodes[1]), b = node(x, pair.nodes[2]),
             c = node(x, pair.nodes[3]);
  const Vec3 n = cross(b - a, c - a);
  const double area = n.norm();
  if (!(area > 0)) return out;
  out.n = n / area;
  out.value = out.n.dot(p - a);
  const double wb = cross(p - a, c - a).dot(out.n) / area, wc = cross(b - a, p - a).dot(out.n) / area;
  out.w = {1, -(1 - wb - wc), -wb, -wc};
  return out;
}

void BodyContact::start(Pair& pair, const VecX& x0, const VecX& c) const {
  const Gap at = gap(pair, x0);
  pair.start = min0(at.value);
  pair.limit = options_.friction * -pair.stiffness * pair.start;
  pair.n = at.n;
  pair.weight = at.w;
  pair.origin.setZero();
  for (int i = 0; i < 4; ++i) {
    pair.origin += pair.weight[i] * Vec3(node(c, pair.nodes[i]));
    if (std::abs(pair.weight[i]) > kFar) pair.limit = 0;
  }
}

bool BodyContact::add_missing(const std::vector<Pair>& found) {
  std::vector<Pair> fresh;
  for (const Pair& pair : found)
    if (!std::binary_search(pairs_.begin(), pairs_.end(), pair, pair_before)) fresh.push_back(pair);
  for (Pair& pair : fresh) start(pair, x0_, c_);
  pairs_.insert(pairs_.end(), fresh.begin(), fresh.end());
  std::sort(pairs_.begin(), pairs_.end(), pair_before);
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end(), same_pair), pairs_.end());
  return !fresh.empty();
}

void BodyContact::pose(const VecX& x0, const VecX& guess, const VecX& c, double g) {
  x0_ = x0;
  c_ = c;
  g_ = g;
  pairs_.clear();
  add_missing(detect(x0));
  add_missing(detect(guess));
}

bool BodyContact::revise(const VecX& x) { return add_missing(detect(x)); }

double BodyContact::add_force(const VecX& x, VecX& f) const {
  double energy = 0;
  const double slip = g_ * options_.slip_speed;
  for (const Pair& pair : pairs_) {
    const Gap at = gap(pair, x);
    const double damping = options_.damping * pair.stiffness / g_;
    const double in = min0(at.value), deeper = min0(at.value - pair.start);
    energy += 0.5 * pair.stiffness * in * in + 0.5 * damping * deeper * deeper;
    const Vec3 normal = -(pair.stiffness * in + damping * deeper) * at.n;
    Vec3 tangential = Vec3::Zero();
    if (pair.limit > 0) {
      Vec3 u = -pair.origin;
      for (int i = 0; i < 4; ++i) u += pair.weight[i] * Vec3(node(x, pair.nodes[i]));
      u -= pair.n.dot(u) * pair.n;
      const double length = u.norm();
      energy += pair.limit * (length < slip ? 0.5 * length * length / slip : length - 0.5 * slip);
      tangential = -pair.limit / std::max(length, slip) * u;
    }
    for (int i = 0; i < 4; ++i) node(f, pair.nodes[i]) += at.w[i] * normal + pair.weight[i] * tangential;
  }
  return energy;
}

BodyContact::Stiffness BodyContact::stiffness(const Pair& pair, const VecX& x) const {
  Stiffness s;
  const Gap at = gap(pair, x);
  s.w = at.w;
  s.v = pair.weight;
  double k = at.value < 0 ? pair.stiffness : 0.0;
  if (at.value < pair.start) k += options_.damping * pair.stiffness / g_;
  s.N = k * at.n * at.n.transpose();
  if (pair.limit > 0) {
    const double slip = g_ * options_.slip_speed;
    const Mat3 P = Mat3::Identity() - pair.n * pair.n.transpose();
    Vec3 u = -pair.origin;
    for (int i = 0; i < 4; ++i) u += pair.weight[i] * Vec3(node(x, pair.nodes[i]));
    u = P * u;
    const double length = u.norm();
    s.T = length < slip ? Mat3(pair.limit / slip * P)
                        : Mat3(pair.limit / length * (P - u * u.transpose() / (length * length)));
  }
  return s;
}

void BodyContact::add_diagonal(const VecX& x, BlockMatrix& A) const {
  for (const Pair& pair : pairs_) {
    const Stiffness s = stiffness(pair, x);
    for (int i = 0; i < 4; ++i)
      A.block(A.pattern->col_begin[pair.nodes[i]]) += s.w[i] * s.w[i] * s.N + s.v[i] * s.v[i] * s.T;
  }
}

void BodyContact::multiply_rest(const VecX& x, const VecX& p, const std::vector<std::uint8_t>& fixed,
                                VecX& y) const {
  for (const Pair& pair : pairs_) {
    const Stiffness s = stiffness(pair, x);
    auto free_part = [&](const Vec3& a, Index i) {
      Vec3 out = a;
      for (int k = 0; k < 3; ++k)
        if (fixed[static_cast<std::size_t>(3 * i + k)]) out[k] = 0;
      return out;
    };
    Vec3 normal = Vec3::Zero(), tangential = Vec3::Zero();
    std::array<Vec3, 4> d;
    for (int i = 0; i < 4; ++i) {
      d[i] = free_part(node(p, pair.nodes[i]), pair.nodes[i]);
      normal += s.w[i] * d[i];
      tangential += s.v[i] * d[i];
    }
    for (int i = 0; i < 4; ++i)
      node(y, pair.nodes[i]) +=
          free_part(s.w[i] * (s.N * (normal - s.w[i] * d[i])) + s.v[i] * (s.T * (tangential - s.v[i] * d[i])),
                    pair.nodes[i]);
  }
}

}  // namespace limber
