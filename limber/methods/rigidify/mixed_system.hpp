// The system of a step in mixed unknowns: a block of three numbers for every elastic node, two blocks
// (velocity of the centre of mass, angular velocity) for every rigid piece that moves, v = G u (Eq. 8):
//   A = Gᵀ (m M + k K) G,   K of the elastic elements alone (Eqs. 9, 10).
// Unknowns are eliminated in the order of the whole mesh, found once; a piece stands where the last of its
// nodes stood. So a new mask needs no new ordering, and elastic nodes fill no more than they do in the whole
// mesh.
//
// Objects that touch nobody are systems of their own (islands), and objects between which there are contacts
// form one together: another mask or another contact costs an analysis of its island alone, and when contacts
// open and close within a step, only islands in which one did are solved again, with the factor that they
// have where few did. A system with one island for the whole mesh as long as nothing is rigid, and no
// corrections, is the one of `vanilla`.
#pragma once

#include <limber/fem/dof.hpp>
#include <limber/fem/plan.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/methods/rigidify/pieces.hpp>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace limber::rigidify {

class MixedSystem {
 public:
  // kNone: with nothing rigid, one system for the whole mesh, and none is corrected.
  enum class Economy { kNone, kAll };
  explicit MixedSystem(const Model& model, Economy economy = Economy::kAll);

  // New unknowns. Nothing happens when they are those that it has.
  void set_pieces(const PieceAssignment& assignment);
  // Nodes of contacts between bodies, four each, that are coupled besides those of elements.
  void set_couplings(const std::vector<std::array<Index, 4>>& couplings);

  const std::vector<Index>& order() const { return order_; }  // of elimination of the whole mesh
  Index blocks() const { return blocks_; }
  const std::vector<Index>& elastic_elements() const { return list_; }  // object by object

  // What the elastic elements amount to at x; assemble() has their K as well.
  struct Elastic {
    double energy = 0;     // [J]
    Index inverted = 0;    // elements
    Index first_bad = -1;  // element whose force or stiffness is not finite; -1: none
  };
  const Elastic& assemble(const VecX& x, std::span<const double> activation);
  const Elastic& assemble_force(const VecX& x, std::span<const double> activation);
  const Elastic& elastic() const { return elastic_; }
  // f += scale times the forces of the last assembly; and scale K v, without K.
  void add_force(double scale, VecX& f) const;
  void add_stiffness_times(double scale, const VecX& x, std::span<const double> activation, const VecX& v,
                           VecX& f);
  // Squared strain rates of the elastic elements (fem::strain_rates), in the order of elastic_elements().
  void strain_rates(const VecX& x, const VecX& v, std::vector<double>& rate);

  // Patterns and analyses of these unknowns and couplings, where they are not those of the last time.
  void prepare();
  // A = Gᵀ (m M + k K) G with the K of the last assemble(), which is used up unless it is to be kept. `x`:
  // where arms of pieces are taken. Of islands that are to be factored: all after assemble(), and those that
  // touch() names.
  void form(double m, double k, const VecX& x, std::span<const RigidPiece> pieces, bool keep);
  void touch(Index node);
  // The same where a spring s (w·v)² / 2 has come to the matrix that was factored, or gone (s < 0), in which
  // w·v is the sum of the nodes' weights times d·v: while few have, the island's next solve corrects what the
  // factor gives (Woodbury) and nothing is formed or factored. Nodes of several islands: false, and nothing
  // is noted.
  bool change_spring(std::span<const Index> nodes, std::span<const double> weights, const Vec3& d, double s,
                     const VecX& x, std::span<const RigidPiece> pieces);
  // Whether the island's changes are few enough for that; others are formed anew.
  bool corrects(Index node) { return corrects(island_of(node)); }
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

  // Takes the held degrees of freedom out, whose velocities go to the right, and factors what is formed.
  [[nodiscard]] FactorStatus factor(const StepInput& in, VecX& rhs);
  // The same in parts: which are held, u there, and the factor of a system in which they do not change.
  void set_fixed(const StepInput& in);
  void impose_fixed(VecX& u) const;
  [[nodiscard]] FactorStatus factor_held();
  // u = A^-1 rhs in the islands that were factored last, or are corrected; elsewhere u stays what it is.
  // False: a correction lost its digits, and its island is to be formed and factored.
  [[nodiscard]] bool solve_factored(const VecX& rhs, VecX& u);
  void solve(VecX& b) const;
  void solve_many(Eigen::Ref<MatX> B) const;
  const std::vector<std::uint8_t>& fixed() const { return fixed_; }  // of the unknowns, after factor()
  // A u with the rows of held degrees of freedom, of which factor() keeps a copy if it is asked to.
  void keep_whole() { keeps_whole_ = true; }
  VecX times_whole(const VecX& u) const;

  // About what things take [ns], by counts alone, so that who decides by them decides the same in every run:
  // a step of an object with nothing rigid; of the same with the pieces that it has (after prepare()); and
  // another mask of it, if all of it were elastic.
  double full_cost(std::size_t object) const;
  double present_cost(std::size_t object) const;
  double mask_cost(std::size_t object) const;

  Index piece_block(std::size_t piece) const { return piece_block_[piece]; }  // -1: held
  Index node_block(Index i) const { return node_block_[at(i)]; }              // -1: of a held piece
  bool rigid(Index i) const { return node_piece_[at(i)] >= 0; }
  std::int32_t piece_of(Index i) const { return node_piece_[at(i)]; }
  Index free_unknowns() const;
  long analyses() const { return analyses_; }
  long factorizations() const { return factorizations_; }  // of islands
  long corrections() const { return corrections_; }        // solves of islands with changed springs
  std::size_t islands() const { return islands_.size(); }
  const BlockMatrix& matrix() const { return islands_.front()->A; }  // of the first island
  const std::vector<std::uint8_t>& plane_nodes() const { return plane_node_; }

 private:
  // A block of K on its way to A: Pᵢᵀ K P_j, P = I or -[r]x.
  struct Entry {
    Index block = 0, to = 0;  // of K; row of A, then block of A
    Index i = 0, j = 0;       // nodes of the mesh
    Index source = 0;         // which of the island's objects has K
    bool turns_i = false, turns_j = false, transposed = false, twice = false;
  };
  struct Island;
  // An object: its elements, and those of them that are elastic.
  struct Object {
    std::vector<Index> elements;      // ascending
    std::vector<Index> order;         // its nodes, in the order of elimination
    fem::Plan all;                    // of its elements; none yet, or not needed: it is the whole mesh
    std::shared_ptr<Island> elastic;  // with no piece and no contact: analysed once
    std::vector<std::int32_t> mask;   // of its elements: pieces, numbered in the object; -1: elastic
    std::vector<std::uint8_t> held;   // of these pieces
    long version = 0;                 // of the mask: no two are the same
    std::vector<Index> list;          // elastic elements of the mesh
    fem::Plan plan;                   // of them, with the mesh's nodes
    fem::Assembled assembled;
    Index begin = 0, end = 0;  // its blocks
  };
  // A row of the unknowns: at most two blocks for each of four nodes.
  struct SparseRow {
    std::array<Index, 8> block{};
    std::array<Vec3, 8> value{};
    std::size_t count = 0;
  };
  struct Change {
    SparseRow w;
    double s = 0;
  };
  struct Island {
    explicit Island(const Model& model) : solver({model.scene->solver, model.scene->ordering}) {}
    // What it was made of:
    std::vector<Index> objects;
    std::vector<long> versions;
    std::vector<std::array<Index, 4>> couplings;
    bool bare = false;  // one object without piece and contact: blocks are those of its plan
    Index blocks = 0;
    std::vector<Index> start;  // of each object: its first block here
    std::shared_ptr<const BlockPattern> pattern;
    std::vector<Index> entry_begin;  // of columns
    std::vector<Entry> entries;
    BlockMatrix A;
    std::vector<double> formed;  // the values of A without springs; empty: not yet in this step
    BlockMatrix all_rows;        // A before held degrees of freedom were taken out, if that is kept
    std::optional<fem::DofEliminator> eliminator;
    Cholesky solver;
    bool changed = true;          // to be solved
    bool anew = true;             // to be factored, whatever has changed
    std::vector<Change> changes;  // of the springs, since it was factored
    VecX known;                   // what held degrees of freedom took from the right-hand side then
  };
  bool plain() const { return whole_ && couplings_.empty(); }  // A has the pattern of the mesh
  void update_object(Object& object, const PieceAssignment& a);
  void make_islands();
  void make_pattern(Island& island);
  void analyze(Island& island);
  void form_island(Island& island, double m, double k, const VecX& x, std::span<const RigidPiece> pieces);
  bool corrects(const Island& island) const;
  void hold_corrected(const Island& island, VecX& rhs) const;
  bool solve_corrected(Island& island, VecX& own);
  FactorStatus factor_island(Island& island, VecX* rhs);
  Island& island_of(Index node) { return *islands_[at(island_of_[at(model_.piece_of_node[at(node)])])]; }
  // Calls visit(first block of the system, first block of the island, count) for an island's stretches.
  template <class Visit>
  void for_stretches(const Island& island, Visit&& visit) const {
    if (whole_) {
      visit(Index{0}, Index{0}, blocks_);
      return;
    }
    for (std::size_t k = 0; k < island.objects.size(); ++k) {
      const Object& o = objects_[at(island.objects[k])];
      visit(o.begin, island.start[k], o.end - o.begin);
    }
  }
  Vec3 arm(Index i, const VecX& x, std::span<const RigidPiece> pieces) const {
    return node(x, i) - pieces[at(node_piece_[at(i)])].c;
  }

  const Model& model_;
  const bool by_object_, by_change_;
  std::vector<std::uint8_t> plane_node_;
  std::vector<Index> order_;     // of elimination of the whole mesh
  std::vector<Index> position_;  // of nodes in it
  std::vector<Object> objects_;
  long versions_ = 0, analyses_ = 0, factorizations_ = 0, corrections_ = 0;
  std::vector<std::int32_t> element_piece_, node_piece_;
  std::vector<std::uint8_t> held_;
  std::vector<std::uint8_t> plane_piece_;
  std::vector<Index> node_block_, piece_block_;
  std::vector<Index> place_;  // of blocks: position of their node, or of the last of their piece
  std::vector<Index> list_;   // elastic elements
  bool whole_ = true;         // blocks are the mesh's nodes, in one system
  bool keeps_whole_ = false;
  bool stale_ = true;  // islands are not those of the unknowns
  Index blocks_ = 0;
  std::vector<std::array<Index, 4>> couplings_;
  std::shared_ptr<Island> mesh_island_;  // of the whole mesh without couplings: analysed once
  std::vector<std::shared_ptr<Island>> islands_;
  std::vector<Index> island_of_;  // of objects
  std::vector<Index> offset_;     // of objects: from blocks of the system to blocks of the island
  fem::Assembled assembled_;      // of the whole mesh
  Elastic elastic_;
  std::vector<std::uint8_t> fixed_;
  VecX fixed_velocity_;
};

std::string bad_element(const MixedSystem::Elastic& elastic);

}  // namespace limber::rigidify
