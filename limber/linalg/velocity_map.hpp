// The sentence that all methods say: the velocities of all nodes are an affine function of fewer unknowns,
//   v = G u + b.
//
// u is a row of blocks of three numbers, and after them single numbers, the columns. The three rows of G that
// belong to a node are made of
//   a free node          v_i = u_k                                one block
//   a rigid body         v_i = u_k + u_(k+1) x (x_i - c)          two blocks: velocity of c, angular velocity
//   dense columns        v_i = D_i q                              subspaces, joint velocities
// in any sum. A degree of freedom that is held has zero rows in G, and its velocity is in b. Node blocks and
// rigid bodies keep the 3x3 blocks of BlockMatrix and Cholesky; columns border them.
// Plane bodies use three of a body's six numbers: hold the other three in the reduced system, as one holds z
// of their nodes.
#pragma once

#include <limber/linalg/block_matrix.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace limber {

class VelocityMap {
 public:
  explicit VelocityMap(Index nodes = 0);                     // no unknowns: v = b = 0
  static VelocityMap identity(Index nodes);                  // u = v
  static VelocityMap from_columns(MatX columns, VecX bias);  // v = D q + b, D 3n x m

  // The node is free: v_i = u_k. Returns k.
  Index add_node(Index node);
  // The nodes, which are at x now, move as one body. Returns k: blocks k and k + 1.
  Index add_rigid_body(std::span<const Index> nodes, const VecX& x, const Vec3& center);
  // v_i += D_i q for these nodes, D with three rows for each of them. Returns the first of the new columns.
  Index add_columns(std::span<const Index> nodes, MatX D);
  // Degrees of freedom (3n entries, 1: held) that G does not move.
  void hold(std::span<const std::uint8_t> held);
  VecX bias;  // b [m/s]

  Index nodes() const { return static_cast<Index>(terms_.size()); }
  Index blocks() const { return blocks_; }
  Index columns() const { return columns_; }
  Eigen::Index unknowns() const { return 3 * static_cast<Eigen::Index>(blocks_) + columns_; }

  void multiply(const VecX& u, VecX& v) const;            // v = G u
  void multiply_transpose(const VecX& f, VecX& g) const;  // g = Gᵀ f: forces on the unknowns
  VecX velocity(const VecX& u) const;                     // G u + b
  MatX dense() const;                                     // G, for small systems and tests

 private:
  friend struct VelocityMapProducts;

  // v_i += P u_block, P = I, or -[r]x of a body's angular velocity.
  struct Term {
    Index block = -1;  // -1: none
    bool turns = false;
    Vec3 r = Vec3::Zero();  // x_i - c [m]
  };
  struct Group {  // of columns
    std::vector<Index> nodes;
    MatX D;
    Index first = 0;
  };
  void claim(Index node) const;
  Mat3 matrix(Index node, const Term& term) const;  // P with held rows zero

  std::vector<std::array<Term, 2>> terms_;  // of each node
  std::vector<Group> groups_;
  std::vector<std::uint8_t> held_;
  Index blocks_ = 0, columns_ = 0;
};

// Gᵀ A G = [K C; Cᵀ D], symmetric: K between blocks, D between columns.
struct ReducedMatrix {
  BlockMatrix K;
  MatX C, D;
};
MatX dense(const ReducedMatrix& A);

// Where GᵀAG has blocks for an A of this pattern; the two blocks of a body are always coupled.
BlockPattern reduced_pattern(const VelocityMap& G, const BlockPattern& pattern);

// out = Gᵀ A G. `out.K` must have reduced_pattern(G, A's); it is made when it is missing. The same bits for
// any thread count.
void congruence(const VelocityMap& G, const BlockMatrix& A, ReducedMatrix& out);
// out += Gᵀ diag(mass) G, mass with three entries for each node.
void add_mass(const VelocityMap& G, const VecX& mass, ReducedMatrix& out);

}  // namespace limber
