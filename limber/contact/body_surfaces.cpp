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
constexpr double kInside = 1e-9;         // of a tetrahedron: a node so near its faces is on them
constexpr double kCrossing = -1e-3;      // and of a point where a node goes through a face
constexpr double kSameWay = 0.5;         // cosine between faces that look the same way
constexpr double kOpposed = -0.3;  // cosine between a node's normal and a face of its own piece it can meet
constexpr double kThrough = 0.5;   // margins: so far behind a face a node has gone through, not round
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
  for (const Tet& t : tets_) tet_box_.push_back(box_of(t, at_rest));
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
    piece.tets.build(std::span(tet_box_).subspan(piece.tet_begin, tet - piece.tet_begin));
  }
  for (Index i = 0; i < static_cast<Index>(rest_.size()); ++i)
    if (piece_of_node_[i] >= 0) pieces_[piece_of_node_[i]].nodes.push_back(i);
  for (const Index i : sites_) pieces_[piece_of_node_[i]].sites.push_back(i);
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
  for (const Piece& piece : pieces_)
    if (piece.asked)
      parallel_for(piece.tet_end - piece.tet_begin, 512, [&](std::ptrdiff_t k) {
        const std::ptrdiff_t e = piece.tet_begin + k;
        tet_box_[e] = box_of(tets_[e], now);
      });
  parallel_for(static_cast<std::ptrdiff_t>(pieces_.size()), 1, [&](std::ptrdiff_t p) {
    Piece& piece = pieces_[p];
    if (piece.asked)
      piece.tets.fit(std::span(tet_box_).subspan(piece.tet_begin, piece.tet_end - piece.tet_begin));
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
    for (const Index i : piece.sites) normal_[i].setZero();
    for (Index f = piece.face_begin; f < piece.face_end; ++f) {
      const Vec3 n = normal(corners(faces_[f], x1));
      for (const Index i : faces_[f]) normal_[i] += n;
    }
  });
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

// The face of node v, at p, if it is inside the piece; else -1.
Index BodySurfaces::holds_node(Index v, const Vec3& p, const Piece& piece, const VecX& x,
                               std::vector<Index>& near) const {
  Box point;
  point.add(p);
  piece.tets.find(point, 0, near);
  std::erase_if(near, [&](Index local) {
    const Index e = piece.tet_begin + local;
    return !overlap(tet_box_[e], point) || std::find(tets_[e].begin(), tets_[e].end(), v) != tets_[e].end();
  });
  std::sort(near.begin(), near.end());
  const bool own = &pieces_[piece_of_node_[v]] == &piece;
  for (const Index local : near) {
    const Index e = piece.tet_begin + local;
    const Tet& t = tets_[e];
    const Vec3 a = node(x, t[0]), b = node(x, t[1]), c = node(x, t[2]), d = node(x, t[3]);
    const double det = tet_det(a, b, c, d);
    if (!(det > 0)) continue;
    const double l[4] = {tet_det(p, b, c, d) / det, tet_det(a, p, c, d) / det, tet_det(a, b, p, d) / det,
                         tet_det(a, b, c, p) / det};
    // On a face between two tetrahedra is inside (bodies of the same grid have their nodes there), on the
    // surface is not.
    if (!(*std::min_element(l, l + 4) > -kInside)) continue;
    Vec3 X = Vec3::Zero();
    for (int i = 0; i < 4; ++i) X += l[i] * rest_[t[i]];
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
  const auto n = static_cast<std::ptrdiff_t>(sites_.size());
  std::vector<std::vector<Inside>> found(static_cast<std::size_t>((n + kStretch - 1) / kStretch));
  parallel_ranges(n, kStretch, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    auto& out = found[static_cast<std::size_t>(begin / kStretch)];
    std::vector<Index> near;
    for (auto k = static_cast<Index>(begin); k < end; ++k) {
      const Index v = sites_[k];
      const Vec3 p = node(x, v);
      for (const Index q : pieces_[piece_of_node_[v]].others) {
        const Index f = holds_node(v, p, pieces_[q], x, near);
        if (f >= 0) out.push_back({k, q, f});
      }
    }
  });
  std::vector<Inside> all;
  for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
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
  piece.faces.find(box, margin, near);
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
