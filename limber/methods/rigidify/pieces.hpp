// Rigid pieces: which elements they are made of (Algorithm 2), and how they move.
#pragma once

#include <limber/methods/rigidify/memory.hpp>
#include <limber/sim/model.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace limber::rigidify {

// How the script holds a node, seen from the elements around it. kStill: in all its directions, and it does
// not move. kDriven: it moves, as part of a rigid motion of all held nodes of its object that move. kMoving:
// it moves otherwise, or is held in some directions only; no rigid piece can hold such a node.
enum class HoldKind : std::uint8_t { kFree, kStill, kDriven, kMoving };

// x -> c + R (x - c) + d over a step.
struct RigidMotion {
  Vec3 c = Vec3::Zero(), d = Vec3::Zero();
  Mat3 R = Mat3::Identity();
  Vec3 displacement(const Vec3& x) const { return d + (R * (x - c) - (x - c)); }
};

struct Holds {
  std::vector<std::uint8_t> kind;   // HoldKind of every node
  std::vector<RigidMotion> driven;  // of every object; the identity where none is driven
};
Holds find_holds(const Model& model, const std::vector<std::uint8_t>& plane_node, const VecX& x,
                 const StepInput& in);

// The mesh as pieces grow on it.
struct Connectivity {
  explicit Connectivity(const Model& model);
  std::vector<Tet> nodes;                           // of elements; -1 in the last entry of triangles
  std::vector<std::array<Index, 4>> neighbour;      // elements across faces (edges of triangles); -1: none
  std::vector<std::uint8_t> plane_node;             // of a plane body
  std::vector<Index> object_of;                     // of elements: which of the model's connected pieces
  std::vector<std::vector<Index>> object_elements;  // of each object, ascending
  std::vector<std::vector<Index>> object_nodes;
};

// Of PieceAssignment::held and RigidPiece::held: it moves by itself, stands still, is moved by the script.
enum class PieceHold : std::uint8_t { kFree, kStill, kDriven };

struct PieceAssignment {
  std::vector<std::int32_t> element;  // number of the piece; -1: elastic
  std::vector<std::int32_t> node;
  std::vector<std::uint8_t> held;               // PieceHold of each piece
  std::vector<std::vector<Index>> piece_nodes;  // of each piece, ascending
  std::vector<Index> rigid_elements;            // of each object: how many
};

// Algorithm 2, from every candidate: breadth first over faces. An element with a node of another piece is
// refused, so that no two pieces share a node (which would be a hinge, Figure 2), and so is one with a node
// in `loose`. Pieces that hold still begin at elements with three held nodes (two in the plane); no other
// element with a held node is taken but by them. Elements all of whose nodes are in one piece belong to it.
PieceAssignment grow_pieces(const Connectivity& mesh, std::span<const std::uint8_t> candidate,
                            std::span<const std::uint8_t> loose, std::span<const std::uint8_t> hold);
// The same in some objects only (1: grow anew); the pieces of the others stay. Objects of whose nodes less
// than `share` would be rigid stay elastic. `kept`: the number that each piece had before; -1: it is new.
struct Regrowth {
  PieceAssignment pieces;
  std::vector<std::int32_t> kept;
};
Regrowth regrow_pieces(const Connectivity& mesh, const PieceAssignment& before,
                       std::span<const std::uint8_t> objects, double share,
                       std::span<const std::uint8_t> candidate, std::span<const std::uint8_t> loose,
                       std::span<const std::uint8_t> hold);
// The nodes of pieces that are known by their elements.
PieceAssignment pieces_of(const Connectivity& mesh, const RigidifyMemory& memory, Index nodes);

struct RigidPiece {
  Vec3 p = Vec3::Zero(), L = Vec3::Zero();  // momentum [kg m/s], angular momentum about c [kg m^2/s]
  Vec3 c = Vec3::Zero();                    // centre of mass [m]
  Mat3 I = Mat3::Identity();                // about c, world axes [kg m^2]
  double mass = 0;                          // [kg]
  std::uint8_t held = 0;                    // PieceHold

  Vec3 velocity() const { return p / mass; }
  Vec3 spin() const;  // I^-1 L [rad/s]
};

// Mass, centre, inertia and momenta of nodes at x that move at v: the piece goes on with the momenta of its
// nodes.
RigidPiece start_piece(std::span<const Index> nodes, std::uint8_t held, const VecX& mass, const VecX& x,
                       const VecX& v);
void store_pieces(std::span<const RigidPiece> pieces, RigidifyMemory& memory);
std::vector<RigidPiece> load_pieces(const RigidifyMemory& memory);

// What a step's turn must add to the spin at its start so that a free piece turns as it should to second
// order: I(t + h/2)^-1 L - I(t)^-1 L [rad/s].
Vec3 precession(const RigidPiece& piece, double h);
// The rotation vector of a step at the end of which the piece has the angular momentum I w [rad].
Vec3 turn_of(const RigidPiece& piece, const Vec3& w, double h);
// Moves the piece over a step: by v and the rotation vector `turn` [rad], and gives it the momenta p, L.
// Nodes go along, and their velocities are those of the piece.
void move_piece(RigidPiece& piece, std::span<const Index> nodes, const Vec3& v, const Vec3& turn,
                const Vec3& L, double h, VecX& x, VecX& velocity);

}  // namespace limber::rigidify
