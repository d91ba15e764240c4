#include <limber/contact/body_surfaces.hpp>

#include <limber/contact/surface_nodes.hpp>
#include <limber/core/parallel.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/mesh/surface_tree.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace limber {
namespace {

constexpr std::ptrdiff_t kStretch = 64;  // nodes per piece of work
constexpr Index kTreeStretch = 1024;     // the same of a tree
constexpr Index kCluster = 8;  // sites at most whose tetrahedra are searched for together; a leaf's at least
constexpr std::ptrdiff_t kClusters = 8;  // clusters per piece of work
constexpr double kInside = 1e-9;         // of a tetrahedron: a node so near its faces is on them
constexpr double kCrossing = -1e-3;      // and of a point where a node goes through a face
constexpr double kSameWay = 0.5;         // cosine between faces that look the same way
constexpr double kOpposed = -0.3;  // cosine between a node's normal and a face of its own piece it can meet
constexpr double kConeRounding = 1e-9;  // of a cosine
constexpr double kThrough = 0.5;        // margins: so far behind a face a node has gone through, not round
constexpr int kOwnEdges = 2;       // of the surface, between a node and a face that it cannot be inside of
constexpr double kOwnFaces = 2.5;  // sizes of a face: what is nearer to it at rest cannot meet it

struct Triangle {
  Vec3 a, b, c;
};
Triangle corners(const Tri& t, const VecX& x) { return {node(x, t[0]), node(x, t[1]), node(x, t[2])}; }
Vec3 normal(const Triangle& t) { return cross(t.b - t.a, t.c - t.a); }

Triangle between(const Triangle& s, const Triangle& e, double t) {
  return {s.a + t * (e.a - s.a), s.b + t * (e.b - s.b), s.c + t * (e.c - s.c)};
}

// Side of the plane of the triangle that p is on, not normalised.
double side(const Triangle& t, const Vec3& p) { return normal(t).dot(p - t.a); }

// Time at which a node passes the plane of a face, when it is on different sides of it at the ends.
double passing(const Triangle& s, const Triangle& e, const Vec3& p, const Vec3& q, double at0, double at1) {
  double lo = 0, hi = 1;
  for (int k = 0; k < 40 && hi - lo > 1e-9; ++k) {  // Illinois: the side is a cubic of time
    double t = (lo * at1 - hi * at0) / (at1 - at0);
    if (!(t > lo && t < hi)) t = 0.5 * (lo + hi);
    const double at = side(between(s, e, t), p + t * (q - p));
    if (at == 0) return t;
    if ((at > 0) == (at1 > 0)) {
      hi = t;
      at1 = at;
      at0 *= 0.5;
    } else {
      lo = t;
      at0 = at;
      at1 *= 0.5;
    }
  }
  return 0.5 * (lo + hi);
}

// The least barycentric coordinate of p's projection.
double least_coordinate(const Triangle& t, const Vec3& p) {
  const Vec3 n = normal(t);
  const double nn = n.squaredNorm();
  if (!(nn > 0)) return -1;
  const double v = cross(p - t.a, t.c - t.a).dot(n) / nn, w = cross(t.b - t.a, p - t.a).dot(n) / nn;
  return std::min({v, w, 1 - v - w});
}

Box box_of(std::span<const Index> corners, auto&& place) {
  Box box;
  for (const Index i : corners) box.add(place(i));
  return box;
}

// By numbers, like overlap(): there are many tetrahedra.
Box tet_box(const Tet& t, const VecX& x) {
  const double *a = x.data() + 3 * t[0], *b = x.data() + 3 * t[1], *c = x.data() + 3 * t[2],
               *d = x.data() + 3 * t[3];
  Box box;
  for (int k = 0; k < 3; ++k) {
    box.lo[k] = std::min(std::min(a[k], b[k]), std::min(c[k], d[k]));
    box.hi[k] = std::max(std::max(a[k], b[k]), std::max(c[k], d[k]));
  }
  return box;
}

}  // namespace

BodySurfaces::BodySurfaces(const fem::ElementInput& mesh) : rest_(mesh.rest) {
  for (std::size_t e = 0; e < mesh.elements.size(); ++e)
    if (!is_triangle(mesh.kind(e))) tets_.push_back(mesh.elements[e]);
  faces_ = boundary_surface(tets_).triangles;
  const SurfaceNodes surface = surface_nodes(mesh);
  sites_ = surface.nodes;
  site_area_ = surface.area;

  // Pieces: named by their least node at first, then numbered.
  std::vector<Index> root(rest_.size());
  std::iota(root.begin(), root.end(), 0);
  auto root_of = [&](Index i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  for (const Tet& t : tets_)
    for (int k = 1; k < 4; ++k) {
      const Index a = root_of(t[0]), b = root_of(t[k]);
      root[std::max(a, b)] = std::min(a, b);
    }
  std::vector<Index> number(rest_.size(), -1);
  for (const Tet& t : tets_) number[root_of(t[0])] = 0;
  Index count = 0;
  for (Index& n : number)
    if (n == 0) n = count++;
  piece_of_node_.resize(rest_.size());
  for (Index i = 0; i < static_cast<Index>(rest_.size()); ++i) piece_of_node_[i] = number[root_of(i)];
  auto by_piece = [&](const auto& a, const auto& b) { return piece_of_node_[a[0]] < piece_of_node_[b[0]]; };
  std::stable_sort(tets_.begin(), tets_.end(), by_piece);
  std::stable_sort(faces_.begin(), faces_.end(), by_piece);
  face_begin_.assign(rest_.size() + 1, 0);
  for (const Tri& t : faces_)
    for (const Index i : t) ++face_begin_[i + 1];
  std::partial_sum(face_begin_.begin(), face_begin_.end(), face_begin_.begin());
  face_of_node_.resize(3 * faces_.size());
  std::vector<Index> next(face_begin_.begin(), face_begin_.end() - 1);
  for (std::size_t f = 0; f < faces_.size(); ++f)
    for (const Index i : faces_[f]) face_of_node_[next[i]++] = static_cast<Index>(f);
  own_reach_.assign(rest_.size(), 0);
  for (const Tri& t : faces_) {
    const double longest = std::max({(rest_[t[0]] - rest_[t[1]]).norm(), (rest_[t[1]] - rest_[t[2]]).norm(),
                                     (rest_[t[2]] - rest_[t[0]]).norm()});
    const double own = kOwnFaces * std::sqrt(triangle_normal(rest_, t).norm()) + longest;
    for (const Index i : t) own_reach_[i] = std::max(own_reach_[i], own);
  }
  // Nodes of plane bodies, and nodes without elements, meet nobody.
  std::vector<Index> sites;
  std::vector<double> areas;
  for (std::size_t k = 0; k < sites_.size(); ++k)
    if (piece_of_node_[sites_[k]] >= 0) {
      sites.push_back(sites_[k]);
      areas.push_back(site_area_[k]);
    }
  sites_ = std::move(sites);
  site_area_ = std::move(areas);

  auto at_rest = [&](Index i) { return rest_[i]; };
  for (const Tri& t : faces_) {
    face_box_.push_back(box_of(t, at_rest));
    edge_ += std::sqrt(triangle_normal(rest_, t).norm()) / static_cast<double>(faces_.size());
  }
  std::vector<Box> tet_boxes;
  for (const Tet& t : tets_) tet_boxes.push_back(box_of(t, at_rest));
  pieces_.resize(static_cast<std::size_t>(count));
  Index face = 0, tet = 0;
  for (Index p = 0; p < count; ++p) {
    Piece& piece = pieces_[p];
    piece.face_begin = face;
    piece.tet_begin = tet;
    while (face < static_cast<Index>(faces_.size()) && piece_of_node_[faces_[face][0]] == p) ++face;
    while (tet < static_cast<Index>(tets_.size()) && piece_of_node_[tets_[tet][0]] == p) ++tet;
    piece.face_end = face;
    piece.tet_end = tet;
    const auto faces = std::span(face_box_).subspan(piece.face_begin, face - piece.face_begin);
    piece.rest_faces.build(faces);
    piece.faces.build(faces);
    piece.tets.build(std::span(tet_boxes).subspan(piece.tet_begin, tet - piece.tet_begin));
    const auto size = static_cast<Index>(piece.tets.nodes().size());
    for (Index k = 0; k < size; k += kTreeStretch)
      tree_stretches_.push_back({p, k, std::min(size, k + kTreeStretch)});
  }
  for (Index i = 0; i < static_cast<Index>(rest_.size()); ++i)
    if (piece_of_node_[i] >= 0) pieces_[piece_of_node_[i]].nodes.push_back(i);
  std::vector<std::vector<Index>> sites_of(pieces_.size());
  for (Index k = 0; k < static_cast<Index>(sites_.size()); ++k) {
    pieces_[piece_of_site(k)].sites.push_back(sites_[k]);
    sites_of[piece_of_site(k)].push_back(k);
  }
  for (Index p = 0; p < count; ++p) {
    std::vector<Box> places;
    for (const Index k : sites_of[p]) places.push_back(box_of(std::span(&sites_[k], 1), at_rest));
    BoxTree tree;
    tree.build(places);
    const auto first = static_cast<Index>(clustered_.size());
    for (const Index k : tree.order()) clustered_.push_back(sites_of[p][k]);
    Index done = 0;  // of the tree's order; subtrees of a cluster begin before it
    for (const BoxTree::Node& own : tree.nodes())
      if (own.begin >= done && own.end - own.begin <= kCluster) {
        clusters_.push_back({p, first + own.begin, first + own.end});
        done = own.end;
      }
  }
}

std::vector<Index> BodySurfaces::around(Index face) const {
  std::vector<Index> out;
  for (const Index i : faces_[face])
    for (Index k = face_begin_[i]; k < face_begin_[i + 1]; ++k)
      if (face_of_node_[k] != face) out.push_back(face_of_node_[k]);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void BodySurfaces::leave_alone(const std::vector<Index>& nodes) {
  for (Piece& piece : pieces_) piece.alone = false;
  for (const Index i : nodes)
    if (piece_of_node_[i] >= 0) pieces_[piece_of_node_[i]].alone = true;
}

void BodySurfaces::skip_pairs_among(const std::vector<Index>& nodes) {
  for (Piece& piece : pieces_) piece.left_out = false;
  for (const Index i : nodes)
    if (piece_of_node_[i] >= 0) pieces_[piece_of_node_[i]].left_out = true;
}

void BodySurfaces::find_others(double distance) {
  for (Piece& piece : pieces_) piece.asked = false;
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    pieces_[p].others.clear();
    for (std::size_t q = 0; q < pieces_.size(); ++q) {
      if (p == q ? pieces_[p].alone : !overlap(pieces_[p].box, pieces_[q].box, distance)) continue;
      if (p != q && pieces_[p].left_out && pieces_[q].left_out) continue;
      pieces_[p].others.push_back(static_cast<Index>(q));
      pieces_[q].asked = true;
    }
  }
}

void BodySurfaces::fit_tets(const VecX& x) {
  auto now = [&](Index i) { return Vec3(node(x, i)); };
  for (Piece& piece : pieces_) piece.box = box_of(piece.nodes, now);
  find_others(0);
  parallel_for(static_cast<std::ptrdiff_t>(tree_stretches_.size()), 1, [&](std::ptrdiff_t k) {
    const Stretch& s = tree_stretches_[k];
    Piece& piece = pieces_[s.piece];
    if (piece.asked)
      piece.tets.fit_leaves(s.begin, s.end,
                            [&](Index local) { return tet_box(tets_[piece.tet_begin + local], x); });
  });
  parallel_for(static_cast<std::ptrdiff_t>(pieces_.size()), 1, [&](std::ptrdiff_t p) {
    if (pieces_[p].asked) pieces_[p].tets.fit_above();
  });
}

void BodySurfaces::fit_faces(const VecX& x0, const VecX& x1, double margin) {
  for (Piece& piece : pieces_) {
    piece.box = box_of(piece.sites, [&](Index i) { return Vec3(node(x0, i)); });
    for (const Index i : piece.sites) piece.box.add(node(x1, i));
  }
  find_others(margin);
  normal_.resize(rest_.size());
  for (const Piece& piece : pieces_)
    if (piece.asked)
      parallel_for(piece.face_end - piece.face_begin, 512, [&](std::ptrdiff_t k) {
        const std::ptrdiff_t f = piece.face_begin + k;
        Box box;
        for (const Index i : faces_[f]) {
          box.add(node(x0, i));
          box.add(node(x1, i));
        }
        face_box_[f] = box;
      });
  parallel_for(static_cast<std::ptrdiff_t>(pieces_.size()), 1, [&](std::ptrdiff_t p) {
    Piece& piece = pieces_[p];
    if (!piece.asked) return;
    piece.faces.fit(std::span(face_box_).subspan(piece.face_begin, piece.face_end - piece.face_begin));
    if (piece.alone) return;
    fit_cones(piece, x1);
    for (const Index i : piece.sites) normal_[i].setZero();
    for (Index f = piece.face_begin; f < piece.face_end; ++f) {
      const Vec3 n = normal(corners(faces_[f], x1));
      for (const Index i : faces_[f]) normal_[i] += n;
    }
  });
}

BodySurfaces::Cone BodySurfaces::around(const Cone& a, const Cone& b) {
  Cone out;
  const Vec3 sum = a.axis + b.axis;
  const double length = sum.norm();
  if (a.cosine <= -1 || b.cosine <= -1 || !(length > 0)) return out;
  out.axis = sum / length;
  double least = 1;
  for (const Cone* cone : {&a, &b}) {
    const double c = out.axis.dot(cone->axis), s = std::sqrt(std::max(0.0, 1 - c * c));
    if (!(c + cone->cosine > 0)) return {};  // the sum of the angles is two right ones or more
    least = std::min(least, c * cone->cosine - s * cone->sine - kConeRounding);
  }
  if (!(least > -1)) return {};
  out.cosine = least;
  out.sine = std::sqrt(1 - least * least);
  return out;
}

// Of all nodes of the tree; children come after their parents.
void BodySurfaces::fit_cones(Piece& piece, const VecX& x) {
  const std::span<const BoxTree::Node> nodes = piece.faces.nodes();
  piece.cones.resize(nodes.size());
  for (auto k = static_cast<Index>(nodes.size()) - 1; k >= 0; --k) {
    const BoxTree::Node& own = nodes[k];
    if (!own.leaf()) {
      piece.cones[k] = around(piece.cones[k + 1], piece.cones[own.right]);
      continue;
    }
    for (Index i = own.begin; i < own.end; ++i) {
      const Vec3 n = normal(corners(faces_[piece.face_begin + piece.faces.order()[i]], x));
      const double length = n.norm();
      const Cone one =
          length > 0 ? Cone{n / length, 1 - kConeRounding, std::sqrt(2 * kConeRounding)} : Cone{};
      piece.cones[k] = i == own.begin ? one : around(piece.cones[k], one);
    }
  }
}

Index BodySurfaces::rest_face(const Vec3& X, const Piece& piece) const {
  std::vector<Index> near;
  Box box;
  box.add(X);
  for (double reach = edge_;; reach *= 2) {
    piece.rest_faces.find(box, reach, near);
    Index best = -1;
    double least = reach * reach;
    for (const Index local : near) {
      const Index f = piece.face_begin + local;
      const Tri& t = faces_[f];
      const double d = (X - nearest_on_triangle(X, rest_[t[0]], rest_[t[1]], rest_[t[2]])).squaredNorm();
      if (d < least || (d == least && f < best)) {
        least = d;
        best = f;
      }
    }
    if (best >= 0) return best;
    if (static_cast<Index>(near.size()) == piece.face_end - piece.face_begin) return -1;
  }
}

// The tetrahedra of the piece whose boxes meet this one.
void BodySurfaces::find_tets(const Piece& piece, const Box& box, const VecX& x, std::vector<Index>& near,
                             std::vector<Candidate>& found) const {
  piece.tets.find(box, 0, near);
  found.clear();
  for (const Index local : near) {
    const Index e = piece.tet_begin + local;
    const Box own = tet_box(tets_[e], x);
    if (overlap(own, box)) found.push_back({e, own});
  }
}

// The face of node v, at p, if it is inside one of these tetrahedra of the piece; else -1.
Index BodySurfaces::holds_node(Index v, const Vec3& p, const Piece& piece, const VecX& x,
                               std::span<const Candidate> tets) const {
  Box point;
  point.add(p);
  struct Holding {
    Index tet;
    Vec3 X;  // the place at rest
  };
  std::vector<Holding> holding;
  for (const Candidate& candidate : tets) {
    if (!overlap(candidate.box, point)) continue;
    const Tet& t = tets_[candidate.tet];
    if (std::find(t.begin(), t.end(), v) != t.end()) continue;
    const Vec3 a = node(x, t[0]), b = node(x, t[1]), c = node(x, t[2]), d = node(x, t[3]);
    const double det = tet_det(a, b, c, d);
    if (!(det > 0)) continue;
    // Nearly all are told by the first face or two. Twice: rounding of the divisions below is much less.
    const double least = -2 * kInside * det;
    double l[4];
    if (!((l[0] = tet_det(p, b, c, d)) > least && (l[1] = tet_det(a, p, c, d)) > least &&
          (l[2] = tet_det(a, b, p, d)) > least && (l[3] = tet_det(a, b, c, p)) > least))
      continue;
    for (double& share : l) share /= det;
    // On a face between two tetrahedra is inside (bodies of the same grid have their nodes there), on the
    // surface is not.
    if (!(*std::min_element(l, l + 4) > -kInside)) continue;
    Vec3 X = Vec3::Zero();
    for (int i = 0; i < 4; ++i) X += l[i] * rest_[t[i]];
    holding.push_back({candidate.tet, X});
  }
  std::sort(holding.begin(), holding.end(), [](const Holding& a, const Holding& b) { return a.tet < b.tet; });
  const bool own = &pieces_[piece_of_node_[v]] == &piece;
  for (const auto& [tet, X] : holding) {
    const Index f = rest_face(X, piece);
    if (f < 0 || std::find(faces_[f].begin(), faces_[f].end(), v) != faces_[f].end()) continue;
    const Tri& s = faces_[f];
    // Crumpled skin is no contact. Distances at rest do not tell: a coarse mesh has other parts as near.
    if (own && std::any_of(s.begin(), s.end(), [&](Index i) { return joined(i, v, kOwnEdges); })) continue;
    const Vec3 surface = nearest_on_triangle(X, rest_[s[0]], rest_[s[1]], rest_[s[2]]);
    if ((X - surface).norm() > kInside * edge_) return f;
  }
  return -1;
}

std::vector<BodySurfaces::Inside> BodySurfaces::inside(const VecX& x) {
  fit_tets(x);
  const auto n = static_cast<std::ptrdiff_t>(clusters_.size());
  std::vector<std::vector<Inside>> found(static_cast<std::size_t>((n + kClusters - 1) / kClusters));
  parallel_ranges(n, kClusters, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    auto& out = found[static_cast<std::size_t>(begin / kClusters)];
    std::vector<Index> near;
    std::vector<Candidate> tets;
    for (std::ptrdiff_t c = begin; c < end; ++c) {
      const std::span<const Index> cluster(clustered_.data() + clusters_[c].begin,
                                           clustered_.data() + clusters_[c].end);
      const Box box = box_of(cluster, [&](Index k) { return Vec3(node(x, sites_[k])); });
      for (const Index q : pieces_[clusters_[c].piece].others) {
        find_tets(pieces_[q], box, x, near, tets);
        for (const Index k : cluster) {
          const Index f = holds_node(sites_[k], node(x, sites_[k]), pieces_[q], x, tets);
          if (f >= 0) out.push_back({k, q, f});
        }
      }
    }
  });
  std::vector<Inside> all;
  for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end(), [](const Inside& a, const Inside& b) {
    return std::pair(a.site, a.piece) < std::pair(b.site, b.piece);
  });
  return all;
}

bool BodySurfaces::joined(Index i, Index j, int edges) const {
  if (i == j) return true;
  for (Index k = face_begin_[i]; edges > 0 && k < face_begin_[i + 1]; ++k)
    for (const Index next : faces_[face_of_node_[k]])
      if (next != i && joined(next, j, edges - 1)) return true;
  return false;
}

bool BodySurfaces::apart_at_rest(Index v, Index i) const {
  if ((rest_[i] - rest_[v]).squaredNorm() > own_reach_[i] * own_reach_[i]) return true;
  if (joined(v, i, 1)) return false;  // by a long edge
  for (Index k = face_begin_[i]; k < face_begin_[i + 1]; ++k)
    if (far_at_rest(v, faces_[face_of_node_[k]])) return true;
  return false;
}

bool BodySurfaces::far_at_rest(Index v, const Tri& face) const {
  const double size = kOwnFaces * kOwnFaces * triangle_normal(rest_, face).norm();
  return std::all_of(face.begin(), face.end(),
                     [&](Index i) { return (rest_[i] - rest_[v]).squaredNorm() > size; });
}

BodySurfaces::Near BodySurfaces::sweep_one(Index site, Index piece_number, const VecX& x0, const VecX& x1,
                                           double margin, Index face0, const Box& box,
                                           std::vector<Index>& near) const {
  const Piece& piece = pieces_[piece_number];
  const Index v = sites_[site];
  const bool own = piece_of_node_[v] == piece_number;
  const Vec3 p = node(x0, v), q = node(x1, v);
  Near out;
  out.site = site;
  out.piece = piece_number;
  Vec3 way_in = Vec3::Zero();  // normal of the face by which it came in
  if (face0 >= 0) way_in = normal(corners(faces_[face0], x1));
  double first = 2, least = margin * margin, front = 0;
  struct Exit {
    double t;
    Vec3 n;
  };
  std::vector<Exit> exits;
  if (own && face0 < 0 && !normal_[v].isZero(0)) {
    // Most of what is around a node looks the same way and is left out as a whole.
    const Vec3 m = normal_[v].normalized();
    piece.faces.find(box, margin, near, [&](Index k) {
      const Cone& cone = piece.cones[k];
      const double c = m.dot(cone.axis);
      return c + cone.cosine > 0 &&
             c * cone.cosine - std::sqrt(std::max(0.0, 1 - c * c)) * cone.sine > kOpposed + kConeRounding;
    });
  } else {
    piece.faces.find(box, margin, near);
  }
  std::erase_if(near, [&](Index local) {
    const Index f = piece.face_begin + local;
    return !overlap(face_box_[f], box, margin) ||
           std::find(faces_[f].begin(), faces_[f].end(), v) != faces_[f].end() ||
           (own && face0 < 0 && !far_at_rest(v, faces_[f]));
  });
  std::sort(near.begin(), near.end());
  for (const Index local : near) {
    const Index f = piece.face_begin + local;
    const Tri& face = faces_[f];
    const Triangle end = corners(face, x1);
    const Vec3 n = normal(end);
    if (own && face0 < 0 && n.dot(normal_[v]) > kOpposed * n.norm() * normal_[v].norm()) continue;
    const double at1 = n.dot(q - end.a);
    const Triangle start = corners(face, x0);
    const double at0 = side(start, p);
    if ((at0 > 0) != (at1 > 0)) {
      const double t = passing(start, end, p, q, at0, at1);
      const Triangle then = between(start, end, t);
      if (least_coordinate(then, p + t * (q - p)) > kCrossing) {
        if (at0 > 0) {
          if (t < first) {
            first = t;
            out.entered = f;
            if (face0 < 0) way_in = n;
          }
        } else {
          exits.push_back({t, n});
        }
      }
    }
    if (face0 >= 0 && n.dot(way_in) < kSameWay * n.norm() * way_in.norm()) continue;
    const double d = (q - nearest_on_triangle(q, end.a, end.b, end.c)).squaredNorm(), gap = at1 / n.norm();
    // At an edge several faces are equally near: the one that the node is farthest in front of.
    const double same = 1e-12 * (d + least);
    if (d < least - same || (d <= least + same && out.nearest >= 0 && gap > front)) {
      least = std::min(d, least);
      front = gap;
      out.nearest = f;
    }
  }
  const Index in = face0 >= 0 ? face0 : out.entered;
  if (in < 0 || exits.empty()) return out;
  // Round a sharp tip a node may also leave by a face that looks the other way, but at no depth.
  const Triangle end = corners(faces_[in], x1);
  if (side(end, q) < -kThrough * margin * normal(end).norm())
    for (const Exit& e : exits)
      if ((face0 >= 0 || e.t > first) && e.n.dot(way_in) < 0) out.opposite = true;
  return out;
}

std::vector<BodySurfaces::Near> BodySurfaces::sweep(const VecX& x0, const VecX& x1, double margin,
                                                    const std::vector<Inside>& inside0) {
  fit_faces(x0, x1, margin);
  const auto n = static_cast<std::ptrdiff_t>(sites_.size());
  std::vector<std::vector<Near>> found(static_cast<std::size_t>((n + kStretch - 1) / kStretch));
  parallel_ranges(n, kStretch, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    auto& out = found[static_cast<std::size_t>(begin / kStretch)];
    std::vector<Index> near;
    for (auto k = static_cast<Index>(begin); k < end; ++k) {
      Box box;
      box.add(node(x0, sites_[k]));
      box.add(node(x1, sites_[k]));
      for (const Index q : pieces_[piece_of_site(k)].others) {
        const auto was =
            std::lower_bound(inside0.begin(), inside0.end(), std::pair(k, q),
                             [](const Inside& a, const auto& b) { return std::pair(a.site, a.piece) < b; });
        const bool in = was != inside0.end() && was->site == k && was->piece == q;
        const Near one = sweep_one(k, q, x0, x1, margin, in ? was->face : -1, box, near);
        if (in || one.entered >= 0 || one.nearest >= 0) out.push_back(one);
      }
    }
  });
  std::vector<Near> all;
  for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace limber
