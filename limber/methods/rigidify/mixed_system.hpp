// The system of a step in mixed unknowns: a block of three numbers for every elastic node, two blocks
// (velocity of the centre of mass, angular velocity) for every rigid piece that moves, v = G u (Eq. 8):
//   A = Gᵀ (m M + k K) G,   K of the elastic elements alone (Eqs. 9, 10).
// Unknowns are eliminated in the order of the whole mesh, found once; a piece stands where the last of its
// nodes stood. So a new mask needs no new ordering, and elastic nodes fill no more than they do in the whole
// mesh.
#pragma once

#include <limber/fem/dof.hpp>
#include <limber/fem/plan.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/methods/rigidify/pieces.hpp>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace limber::rigidify {

class MixedSystem {
 public:
  explicit MixedSystem(const Model& model);

  // New unknowns. Nothing happens when they are those that it has.
  void set_pieces(const PieceAssignment& assignment);
  // Nodes of contacts between bodies, four each, that are coupled besides those of elements.
  void set_couplings(const std::vector<std::array<Index, 4>>& couplings);

  Index blocks() const { return blocks_; }
  bool whole() const { return whole_; }  // no rigid piece: blocks are nodes
  const std::vector<Index>& elastic_elements() const { return list_; }
  const fem::Elements& elements() const { return whole_ ? *model_.elements : *plan_.elements; }
  const VecX& gather(const VecX& of_all, VecX& own) const;
  void scatter_add(const VecX& own, VecX& of_all) const;

  // Forces and K of the elastic elements at x.
  const fem::Assembled& assemble(const VecX& x, std::span<const double> activation);
  const fem::Assembled& assemble_force(const VecX& x, std::span<const double> activation);
  const fem::Assembled& assembled() const { return assembled_; }
  // Pattern and analysis of these unknowns and couplings, where they are not those of the last time.
  void prepare();
  // A = Gᵀ (m M + k K) G with the K of the last assemble(), which is used up unless it is to be kept. `x`:
  // where arms of pieces are taken.
  void form(double m, double k, const VecX& x, std::span<const RigidPiece> pieces, bool keep);
  // What nodes with the known velocities `v` (those of driven pieces, 3n; zero elsewhere) take from the
  // right-hand side: k Gᵀ K v, with the K of the last assemble(). Before form().
  VecX known_drag(double k, const VecX& v, const VecX& x, std::span<const RigidPiece> pieces) const;
  // A += Gᵀ (w wᵀ ⊗ S) G for the nodes and weights of a contact.
  void add_spring(std::span<const Index> nodes, std::span<const double> weights, const Mat3& S, const VecX& x,
                  std::span<const RigidPiece> pieces);

  // Gᵀ f, and what G makes of u. Nodes of held pieces do not move.
  VecX reduce(const VecX& f, const VecX& x, std::span<const RigidPiece> pieces) const;
  VecX expand(const VecX& u, const VecX& x, std::span<const RigidPiece> pieces) const;
  // The momenta of the unknowns: M v of elastic nodes, p and L of pieces; and the velocities that belong to
  // them.
  VecX momenta(const VecX& v, std::span<const RigidPiece> pieces) const;
  VecX velocities(const VecX& v, std::span<const RigidPiece> pieces) const;
  // Gᵀ M G u
  VecX multiply_mass(const VecX& u, std::span<const RigidPiece> pieces) const;

  // Takes the held degrees of freedom out, whose velocities go to the right, and factors.
  [[nodiscard]] FactorStatus factor(const StepInput& in, VecX& rhs);
  // The same in parts: which are held, u there, and the factor of a system in which they do not change.
  void set_fixed(const StepInput& in);
  void impose_fixed(VecX& u) const;
  [[nodiscard]] FactorStatus factor_held();
  void solve(VecX& b) const { solver().solve(b); }
  void solve_many(Eigen::Ref<MatX> B) const { solver().solve_many(B); }
  const std::vector<std::uint8_t>& fixed() const { return fixed_; }  // of the unknowns, after factor()

  Index piece_block(std::size_t piece) const { return piece_block_[piece]; }  // -1: held
  Index node_block(Index i) const { return node_block_[at(i)]; }              // -1: of a held piece
  bool rigid(Index i) const { return node_piece_[at(i)] >= 0; }
  std::int32_t piece_of(Index i) const { return node_piece_[at(i)]; }
  Index free_unknowns() const;
  long analyses() const { return whole_solver_.stats().analyses + mixed_solver_.stats().analyses; }
  const BlockMatrix& matrix() const { return A_; }
  const std::vector<std::uint8_t>& plane_nodes() const { return plane_node_; }

 private:
  // A block of K on its way to A: Pᵢᵀ K P_j, P = I or -[r]x.
  struct Entry {
    Index block = 0, to = 0;  // of K; row of A, then block of A
    Index i = 0, j = 0;       // nodes of the mesh
    bool turns_i = false, turns_j = false, transposed = false, twice = false;
  };
  bool plain() const { return whole_ && couplings_.empty(); }  // A has the pattern of the mesh
  const Cholesky& solver() const { return plain() ? whole_solver_ : mixed_solver_; }
  fem::DofEliminator& eliminator() { return plain() ? whole_eliminator_ : *mixed_eliminator_; }
  void make_pattern();
  Vec3 arm(Index i, const VecX& x, std::span<const RigidPiece> pieces) const {
    return node(x, i) - pieces[at(node_piece_[at(i)])].c;
  }

  const Model& model_;
  std::vector<std::uint8_t> plane_node_;
  std::vector<Index> order_;  // of elimination of the whole mesh
  std::vector<std::int32_t> element_piece_, node_piece_;
  std::vector<std::uint8_t> held_;
  std::vector<std::uint8_t> plane_piece_;
  std::vector<Index> node_block_, piece_block_;
  std::vector<Index> list_;  // elastic elements
  bool whole_ = true;
  bool stale_ = true;  // the pattern is not that of the unknowns
  Index blocks_ = 0;
  fem::Plan plan_;
  std::vector<std::array<Index, 4>> couplings_;
  std::shared_ptr<const BlockPattern> pattern_;
  std::vector<Index> entry_begin_;  // of columns
  std::vector<Entry> entries_;
  fem::DofEliminator whole_eliminator_;
  std::optional<fem::DofEliminator> mixed_eliminator_;
  fem::Assembled assembled_;
  VecX own_x_;
  BlockMatrix A_;
  std::vector<std::uint8_t> fixed_;
  VecX fixed_velocity_;
  Cholesky whole_solver_, mixed_solver_;  // that of the whole mesh is analysed once
};

}  // namespace limber::rigidify
