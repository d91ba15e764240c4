#include <limber/methods/rigidify/pieces.hpp>

#include <limber/core/motion.hpp>
#include <limber/core/point_inertia.hpp>
#include <limber/mesh/geometry.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace limber::rigidify {
namespace {

// A piece of fewer elements than this has hardly fewer unknowns than its nodes.
constexpr Index kLeastElements = 4;

struct FaceKey {
  std::array<Index, 3> node;
  bool operator==(const FaceKey&) const = default;
};
struct FaceHash {
  std::size_t operator()(const FaceKey& k) const {
    std::size_t h = 0;
    for (const Index i : k.node) h = h * 0x9E3779B97F4A7C15u + static_cast<std::size_t>(i + 1);
    return h ^ (h >> 29);
  }
};

// A^-1 b of a symmetric matrix, by cofactors.
Vec3 solve_inertia(const Mat3& A, const Vec3& b) {
  const Vec3 a0 = A.col(0), a1 = A.col(1), a2 = A.col(2);
  const Vec3 n0 = cross(a1, a2), n1 = cross(a2, a0), n2 = cross(a0, a1);
  return Vec3(n0.dot(b), n1.dot(b), n2.dot(b)) / a0.dot(n0);
}

void list_nodes(const Connectivity& mesh, PieceAssignment& a) {
  a.rigid_elements.assign(mesh.object_elements.size(), 0);
  for (std::size_t e = 0; e < a.element.size(); ++e)
    a.rigid_elements[at(mesh.object_of[e])] += a.element[e] >= 0;
  a.piece_nodes.assign(a.held.size(), {});
  for (std::size_t i = 0; i < a.node.size(); ++i)
    if (a.node[i] >= 0) a.piece_nodes[at(a.node[i])].push_back(static_cast<Index>(i));
}

int nodes_of_kind(const Tet& t, std::span<const std::uint8_t> hold, std::uint8_t kind) {
  int count = 0;
  for (int a = 0; a < corners(t); ++a) count += hold[at(t[static_cast<std::size_t>(a)])] == kind;
  return count;
}

// The rigid motion that takes three points to where they go, if they are a triangle.
bool motion_of(const std::array<Vec3, 3>& from, const std::array<Vec3, 3>& to, RigidMotion& out) {
  const auto frame = [](const std::array<Vec3, 3>& p) {
    Mat3 F;
    F.col(0) = (p[1] - p[0]).normalized();
    F.col(2) = cross(F.col(0), p[2] - p[0]).normalized();
    F.col(1) = cross(F.col(2), F.col(0));
    return F;
  };
  const double base = (from[1] - from[0]).norm();
  if (!(cross(from[1] - from[0], from[2] - from[0]).norm() > 1e-6 * base * base)) return false;
  out.c = from[0];
  out.R = frame(to) * frame(from).transpose();
  out.d = to[0] - from[0];
  return out.R.allFinite();
}

}  // namespace

Holds find_holds(const Model& model, const std::vector<std::uint8_t>& plane_node, const VecX& x,
                 const StepInput& in) {
  Holds out;
  out.kind.assign(at(model.nodes()), 0);
  out.driven.resize(model.pieces.size());
  bool moving = false;
  for (Index i = 0; i < model.nodes(); ++i) {
    const int axes = plane_node[at(i)] ? 2 : 3;
    int held = 0;
    bool moves = false;
    for (int k = 0; k < axes; ++k) {
      const Eigen::Index d = 3 * static_cast<Eigen::Index>(i) + k;
      if (!in.fixed[static_cast<std::size_t>(d)]) continue;
      ++held;
      moves |= in.fixed_velocity[d] != 0;
    }
    if (held == 0) continue;
    const HoldKind kind = held < axes ? HoldKind::kMoving : moves ? HoldKind::kDriven : HoldKind::kStill;
    out.kind[at(i)] = static_cast<std::uint8_t>(kind);
    moving |= moves;
  }
  if (!moving) return out;
  const auto driven = static_cast<std::uint8_t>(HoldKind::kDriven);
  const auto target = [&](Index i) -> Vec3 { return node(x, i) + in.h * node(in.fixed_velocity, i); };
  for (std::size_t o = 0; o < model.pieces.size(); ++o) {
    std::vector<Index> nodes;
    for (const Index i : model.pieces[o].nodes)
      if (out.kind[at(i)] == driven) nodes.push_back(i);
    if (nodes.empty()) continue;
    // The first, the one farthest from it, and the one farthest from the line through both.
    Index far = nodes[0], off = nodes[0];
    const auto distance = [&](Index i) { return (node(x, i) - node(x, nodes[0])).norm(); };
    for (const Index i : nodes)
      if (distance(i) > distance(far)) far = i;
    const Vec3 line = node(x, far) - node(x, nodes[0]);
    const auto aside = [&](Index i) { return cross(line, node(x, i) - node(x, nodes[0])).norm(); };
    for (const Index i : nodes)
      if (aside(i) > aside(off)) off = i;
    std::array<Vec3, 3> from{node(x, nodes[0]), node(x, far), node(x, off)};
    std::array<Vec3, 3> to{target(nodes[0]), target(far), target(off)};
    if (plane_node[at(nodes[0])]) {
      from[2] = from[0] + Vec3::UnitZ();
      to[2] = to[0] + Vec3::UnitZ();
    }
    RigidMotion motion;
    bool rigid = nodes.size() > 1 && motion_of(from, to, motion);
    for (const Index i : nodes)
      rigid = rigid && (node(x, i) + motion.displacement(node(x, i)) - target(i)).norm() < 1e-9 * model.size;
    if (rigid)
      out.driven[o] = motion;
    else
      for (const Index i : nodes) out.kind[at(i)] = static_cast<std::uint8_t>(HoldKind::kMoving);
  }
  return out;
}

Connectivity::Connectivity(const Model& model)
    : nodes(model.mesh.elements), plane_node(at(model.nodes()), 0), object_elements(model.pieces.size()) {
  for (const Piece& object : model.pieces) object_nodes.push_back(object.nodes);
  neighbour.assign(nodes.size(), {-1, -1, -1, -1});
  std::unordered_map<FaceKey, std::pair<Index, int>, FaceHash> open;
  open.reserve(2 * nodes.size());
  for (std::size_t e = 0; e < nodes.size(); ++e) {
    const Tet& t = nodes[e];
    const int n = corners(t);
    object_of.push_back(model.piece_of_node[at(t[0])]);
    object_elements[at(object_of.back())].push_back(static_cast<Index>(e));
    if (moves_in_plane(model.mesh.kind(e)))
      for (int a = 0; a < n; ++a) plane_node[at(t[static_cast<std::size_t>(a)])] = 1;
    for (int a = 0; a < n; ++a) {  // the face opposite to node a
      FaceKey key{{-1, -1, -1}};
      for (int b = 0, k = 0; b < n; ++b)
        if (b != a) key.node[static_cast<std::size_t>(k++)] = t[static_cast<std::size_t>(b)];
      std::sort(key.node.begin(), key.node.end());
      const auto [it, fresh] = open.try_emplace(key, static_cast<Index>(e), a);
      if (fresh) continue;
      const auto [other, face] = it->second;
      neighbour[e][static_cast<std::size_t>(a)] = other;
      neighbour[at(other)][static_cast<std::size_t>(face)] = static_cast<Index>(e);
      open.erase(it);
    }
  }
}

namespace {

// Algorithm 2 on some elements, beside the pieces that there are.
void grow_among(const Connectivity& mesh, std::span<const Index> elements,
                std::span<const std::uint8_t> candidate, std::span<const std::uint8_t> loose,
                std::span<const std::uint8_t> hold, PieceAssignment& out) {
  std::vector<std::uint8_t> visited(mesh.nodes.size(), 0);
  std::vector<Index> queue, taken;
  // Held nodes of a kind are numbered as the pieces that they make: kStill, kDriven.
  const auto stable = [&](std::size_t e, std::uint8_t held) {
    return nodes_of_kind(mesh.nodes[e], hold, held) >= corners(mesh.nodes[e]) - 1;
  };
  const auto grow = [&](Index root, std::uint8_t held) {
    const auto j = static_cast<std::int32_t>(out.held.size());
    queue.assign(1, root);
    taken.clear();
    visited[at(root)] = 1;
    for (std::size_t q = 0; q < queue.size(); ++q) {
      const std::size_t e = at(queue[q]);
      const Tet& t = mesh.nodes[e];
      const int n = corners(t);
      bool refused = false;
      for (int a = 0; a < n; ++a) {
        const std::size_t i = at(t[static_cast<std::size_t>(a)]);
        refused |= loose[i] != 0 || (hold[i] != 0 && hold[i] != held) ||
                   (out.node[i] >= 0 && out.node[i] != j);  // avoid hinges
      }
      if (refused) {
        if (held != 0) visited[e] = 0;  // a free piece may have it
        continue;
      }
      out.element[e] = j;
      taken.push_back(queue[q]);
      for (int a = 0; a < n; ++a) out.node[at(t[static_cast<std::size_t>(a)])] = j;
      for (int a = 0; a < n; ++a) {
        const Index next = mesh.neighbour[e][static_cast<std::size_t>(a)];
        if (next < 0 || visited[at(next)] || !candidate[at(next)]) continue;
        visited[at(next)] = 1;
        queue.push_back(next);
      }
    }
    if (static_cast<Index>(taken.size()) >= kLeastElements) {
      out.held.push_back(held);
      return;
    }
    for (const Index e : taken) {
      out.element[at(e)] = -1;
      for (int a = 0; a < corners(mesh.nodes[at(e)]); ++a)
        out.node[at(mesh.nodes[at(e)][static_cast<std::size_t>(a)])] = -1;
    }
  };
  bool any = false;
  for (const std::uint8_t kind : hold) any |= kind != 0;
  for (const PieceHold kind : {PieceHold::kStill, PieceHold::kDriven, PieceHold::kFree}) {
    const auto held = static_cast<std::uint8_t>(kind);
    if (held != 0 && !any) continue;
    for (const Index e : elements)
      if (candidate[at(e)] && !visited[at(e)] && (held == 0 || stable(at(e), held))) grow(e, held);
  }
  for (const Index e : elements) {
    if (out.element[at(e)] >= 0) continue;
    const Tet& t = mesh.nodes[at(e)];
    const std::int32_t j = out.node[at(t[0])];
    bool all = j >= 0;
    for (int a = 1; a < corners(t) && all; ++a) all = out.node[at(t[static_cast<std::size_t>(a)])] == j;
    if (all) out.element[at(e)] = j;
  }
}

// Pieces without those whose number is -1, with these numbers.
void renumber(std::span<const std::int32_t> number, PieceAssignment& a) {
  std::vector<std::uint8_t> held;
  for (std::size_t j = 0; j < number.size(); ++j)
    if (number[j] >= 0) held.push_back(a.held[j]);
  a.held = std::move(held);
  for (auto* list : {&a.element, &a.node})
    for (std::int32_t& j : *list)
      if (j >= 0) j = number[at(j)];
}

}  // namespace

PieceAssignment grow_pieces(const Connectivity& mesh, std::span<const std::uint8_t> candidate,
                            std::span<const std::uint8_t> loose, std::span<const std::uint8_t> hold) {
  PieceAssignment out;
  out.element.assign(mesh.nodes.size(), -1);
  out.node.assign(loose.size(), -1);
  std::vector<Index> all(mesh.nodes.size());
  for (std::size_t e = 0; e < all.size(); ++e) all[e] = static_cast<Index>(e);
  grow_among(mesh, all, candidate, loose, hold, out);
  list_nodes(mesh, out);
  return out;
}

Regrowth regrow_pieces(const Connectivity& mesh, const PieceAssignment& before,
                       std::span<const std::uint8_t> objects, double share,
                       std::span<const std::uint8_t> candidate, std::span<const std::uint8_t> loose,
                       std::span<const std::uint8_t> hold) {
  Regrowth out;
  PieceAssignment& a = out.pieces;
  a = before;
  // Pieces of the objects go; a piece is of one object.
  std::vector<std::int32_t> number(before.held.size(), 0);
  for (std::size_t o = 0; o < objects.size(); ++o)
    if (objects[o])
      for (const Index e : mesh.object_elements[o])
        if (before.element[at(e)] >= 0) number[at(before.element[at(e)])] = -1;
  for (std::size_t j = 0; j < number.size(); ++j)
    if (number[j] >= 0) {
      number[j] = static_cast<std::int32_t>(out.kept.size());
      out.kept.push_back(static_cast<std::int32_t>(j));
    }
  renumber(number, a);
  for (std::size_t o = 0; o < objects.size(); ++o) {
    if (!objects[o]) continue;
    const std::size_t first = a.held.size();
    grow_among(mesh, mesh.object_elements[o], candidate, loose, hold, a);
    // So little would cost more than it brings.
    std::size_t nodes = 0, rigid = 0;
    for (const Index i : mesh.object_nodes[o]) {
      ++nodes;
      rigid += a.node[at(i)] >= 0;
    }
    if (static_cast<double>(rigid) >= share * static_cast<double>(nodes)) continue;
    a.held.resize(first);
    for (const Index i : mesh.object_nodes[o]) a.node[at(i)] = -1;
    for (const Index e : mesh.object_elements[o]) a.element[at(e)] = -1;
  }
  out.kept.resize(a.held.size(), -1);
  list_nodes(mesh, a);
  return out;
}

PieceAssignment pieces_of(const Connectivity& mesh, const RigidifyMemory& memory, Index nodes) {
  PieceAssignment out;
  out.element = memory.piece;
  out.node.assign(at(nodes), -1);
  for (std::size_t e = 0; e < out.element.size(); ++e)
    if (out.element[e] >= 0)
      for (int a = 0; a < corners(mesh.nodes[e]); ++a)
        out.node[at(mesh.nodes[e][static_cast<std::size_t>(a)])] = out.element[e];
  for (std::size_t k = 0; k < memory.piece_state.size(); k += kPieceNumbers)
    out.held.push_back(static_cast<std::uint8_t>(memory.piece_state[k + kPieceNumbers - 1]));
  list_nodes(mesh, out);
  return out;
}

Vec3 RigidPiece::spin() const { return solve_inertia(I, L); }

RigidPiece start_piece(std::span<const Index> nodes, std::uint8_t held, const VecX& mass, const VecX& x,
                       const VecX& v) {
  RigidPiece piece;
  piece.held = held;
  for (const Index i : nodes) {
    const double m = mass[3 * i];
    piece.mass += m;
    piece.c += m * node(x, i);
    piece.p += m * node(v, i);
  }
  piece.c /= piece.mass;
  piece.I.setZero();
  const Vec3 mean = piece.p / piece.mass;
  for (const Index i : nodes) {
    const double m = mass[3 * i];
    const Vec3 r = node(x, i) - piece.c, u = node(v, i) - mean;
    piece.L += m * cross(r, u);
    piece.I += point_inertia(m, r);
  }
  if (held != 0) {
    piece.p.setZero();
    piece.L.setZero();
  }
  return piece;
}

void store_pieces(std::span<const RigidPiece> pieces, RigidifyMemory& memory) {
  memory.piece_state.clear();
  for (const RigidPiece& a : pieces) {
    const double numbers[kPieceNumbers] = {a.p[0],
                                           a.p[1],
                                           a.p[2],
                                           a.L[0],
                                           a.L[1],
                                           a.L[2],
                                           a.c[0],
                                           a.c[1],
                                           a.c[2],
                                           a.I(0, 0),
                                           a.I(1, 1),
                                           a.I(2, 2),
                                           a.I(0, 1),
                                           a.I(0, 2),
                                           a.I(1, 2),
                                           a.mass,
                                           static_cast<double>(a.held)};
    memory.piece_state.insert(memory.piece_state.end(), numbers, numbers + kPieceNumbers);
  }
}

std::vector<RigidPiece> load_pieces(const RigidifyMemory& memory) {
  std::vector<RigidPiece> out(memory.piece_state.size() / kPieceNumbers);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const double* s = memory.piece_state.data() + kPieceNumbers * k;
    RigidPiece& a = out[k];
    a.p = {s[0], s[1], s[2]};
    a.L = {s[3], s[4], s[5]};
    a.c = {s[6], s[7], s[8]};
    a.I << s[9], s[12], s[13], s[12], s[10], s[14], s[13], s[14], s[11];
    a.mass = s[15];
    a.held = static_cast<std::uint8_t>(s[16]);
  }
  return out;
}

Vec3 precession(const RigidPiece& piece, double h) {
  const Vec3 w = piece.spin();
  const Mat3 R = rotation_of(0.5 * h * w);
  return R * solve_inertia(piece.I, R.transpose() * piece.L) - w;
}

Vec3 turn_of(const RigidPiece& piece, const Vec3& w, double h) { return h * (w + precession(piece, h)); }

void move_piece(RigidPiece& piece, std::span<const Index> nodes, const Vec3& v, const Vec3& turn,
                const Vec3& L, double h, VecX& x, VecX& velocity) {
  const Mat3 R = rotation_of(turn);
  const Vec3 c1 = piece.c + h * v;
  piece.p = piece.mass * v;
  piece.L = L;
  const Mat3 I1 = R * piece.I * R.transpose();
  piece.I = 0.5 * (I1 + I1.transpose());
  const Vec3 w = piece.spin();
  for (const Index i : nodes) {
    const Vec3 r = R * (node(x, i) - piece.c);
    node(x, i) = c1 + r;
    node(velocity, i) = v + cross(w, r);
  }
  piece.c = c1;
}

}  // namespace limber::rigidify
