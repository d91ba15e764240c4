// The condensation Jacobian of one step: J, JᵀMJ, JᵀKJ and quasistatic solves, all from one factorisation of
// K.
#pragma once

#include <limber/contact/body_springs.hpp>
#include <limber/contact/contact_step.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/fem/dof.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/methods/common/link_contact.hpp>
#include <limber/methods/conjac/memory.hpp>
#include <limber/methods/conjac/modes.hpp>
#include <limber/sim/model.hpp>

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace limber {

// Nodes are split into representative nodes (the tail of the factor), of which some are dynamic now, and the
// rest. With Q all degrees of freedom that are neither held nor dynamic, and signs K = d2E/dx2:
//   J = [-K_QQ^-1 K_Qd; I]                 Eqs. 6, 7 (and 21: switching a node edits values of the small
//   tail, never a pattern) w = [-K_QQ^-1 K_Qk v_k; 0; v_k]        how the body follows its held nodes, which
//   move at v_k M_r = JᵀMJ, S = JᵀKJ                   Eq. 11
//
// With modes (modes.hpp) the columns of J are followed by those of Phi, and S by diag(lambda): JᵀK Phi = 0.
// The quasistatic motions of solve_quasistatic() then leave out what modes carry: b - Phi lambda^-1 Phiᵀ f.
//
// Links that are touched (link_contact.hpp) are dynamic, too: their springs tie the body to their twists, of
// which the last columns of J have six each, W = K_QQ^-1 (S P)_Q, how the body follows when a link moves
// otherwise than predicted. Twists have no rows in J, and rows in all that is made with it.
//
// Connected pieces of material share no entry of K: each has its own factor, its own rows and columns of J
// and its own dense matrices, so that many pieces cost what they cost one by one.
struct CondensedPiece {
  Eigen::Index begin = 0;  // its columns among all unknowns are begin to begin + r
  std::vector<Index>
      dofs;   // its dynamic degrees of freedom: column c of J moves dofs[c]; then come its modes
  RowMatX J;  // 3 nodes of the piece x r
  Eigen::Index twists = 0;  // columns of J that belong to links, the last ones
  MatX M_r, S;              // r x r
  MatX S_contact;           // the contacts' share of S
  VecX k_w, m_w;            // JᵀK w = JᵀK_{:k} v_k, JᵀM w
  VecX f_r, p_r;            // Jᵀf, JᵀM(v - w)
};

class Condensation {
 public:
  // `together`: all pieces in one system, for links and contacts that tie pieces to each other.
  // `modes`: of each piece; empty: none. `options`: with factors in single precision, those of pieces with
  // dynamic nodes, those that do not exist so, and those whose motions are off by more than kTolerableError
  // are made in double precision.
  Condensation(const Model& model, const std::vector<Index>& representatives,
               const std::vector<ModeChoice>& modes, const CholeskyOptions& options, bool together);

  // At the start of a step the modes that condense() begins with, and at its end those that it ended with.
  // Where dynamic and held nodes are others than the modes are of, it makes new ones.
  bool has_modes() const;
  void recall(const ModeMemory& memory);
  void keep(ModeMemory& memory) const;
  std::string misfit(
      const ModeMemory& memory) const;  // what does not fit of one from a file; empty: all does

  // Pairs of nodes and faces (four nodes each) that springs between bodies may tie: they become part of the
  // pattern, which is analysed anew where it changes. Only for pieces that are together.
  void couple(const std::vector<std::int64_t>& nodes);

  // f and K at x, with the stiffness of `contact`, and of `bodies` between bodies, which may be null. What is
  // that of the last call is not made again: K of the elements where only contacts differ, and K with its
  // factor where nothing does. False: not finite; why() tells.
  bool assemble(const VecX& x, const StepInput& in, const ContactStep& contact, const BodySprings* bodies,
                PhaseClock& clock);
  // Factors that K and computes all else, for the force f and the velocities v, and b <- K_QQ^-1 b_Q with it,
  // in one pass over the factor. `dynamic[i]` says whether representative i is dynamic. The velocity of
  // moving obstacles, and of links as predicted, is part of w. `touches`: contacts with links, among those of
  // `contact`. False: the factorisation failed and stayed failed with a shift; why() tells.
  bool condense(const std::vector<std::uint8_t>& dynamic, const ContactStep& contact,
                const LinkTouches& touches, const VecX& force, const VecX& v, VecX& b, PhaseClock& clock);

  // b <- K_QQ^-1 b_Q, zero elsewhere, without what modes carry.
  void solve_quasistatic(VecX& b);

  // J y and Jᵀ x, y over all unknowns; J y by all threads.
  MatX extend(const MatX& y) const;
  VecX restrict_to_unknowns(const VecX& x) const;
  // JᵀK u of velocities u that are zero where nodes are held. JᵀK is S on the dynamic nodes and zero
  // elsewhere; for modes it is Phiᵀ K_QQ of what u has beyond the motion that follows its dynamic nodes.
  VecX restrict_stiffness_times(const VecX& u) const;

  // The slowest free motion that neither nodes nor modes carry, of all pieces at the shape of the last
  // condense(): what is as fast as that follows at once instead of swinging.
  struct Missed {
    double frequency = std::numeric_limits<double>::infinity();  // [Hz]
    Index node = -1;                                             // where it moves most
    VecX shape = {};                                             // 3n
  };
  Missed missed(const std::vector<std::uint8_t>& dynamic);

  std::span<const CondensedPiece> pieces() const { return pieces_; }
  const PieceModes& modes(std::size_t piece) const { return parts_[piece].modes; }
  const std::vector<Index>& nodes(std::size_t piece) const { return parts_[piece].nodes; }
  // Pieces whose modes the last condense() made anew, and those for which it began with old ones.
  int new_modes = 0, modes_from_old = 0;
  // Modes that may fall asleep (adaptive_modes.hpp): the next condense() has the lowest `count` of a piece;
  // it follows the others only if `sweep_all`. Phiᵀ f of all vectors of a piece.
  void use_modes(std::size_t piece, Index count) { parts_[piece].modes.count = count; }
  bool modes_sleep = false, sweep_all = false;
  VecX mode_forces(std::size_t piece, const VecX& f) const;
  Index most_modes() const;                                                      // that any piece may have
  double mass(std::size_t piece) const { return parts_[piece].mass.sum() / 3; }  // [kg]

  VecX w;                     // 3n
  fem::Assembled system;      // f and K of the elements at x; K is edited: contacts, held nodes
  Eigen::Index unknowns = 0;  // dynamic degrees of freedom and modes of all pieces
  int shifts = 0;             // of the last factor: how often K had to be shifted by a multiple of M
  int raised = 0;             // of the last factor: pieces for which single precision did not do

  const std::string& why() const { return why_; }
  long analyses() const { return parts_.empty() ? 0 : parts_.front().chosen.stats().analyses; }
  // Where the values of K and of the first factor are: the same in every step, or something was allocated.
  std::pair<const void*, const void*> storage() const {
    return {system.K.values.data(), parts_.front().chosen.factor_values().data()};
  }

 private:
  // What a piece's system is made of.
  struct Part {
    explicit Part(const CholeskyOptions& options) : chosen(options) {}
    std::vector<Index> nodes;       // of the model, ascending
    std::vector<std::size_t> tail;  // its representatives, as positions among all
    std::vector<Index> blocks;      // of the model's pattern, in the order of K's; -1: only springs are there
    BlockMatrix K;                  // not used where blocks is empty: it is the model's
    VecX mass;                      // 3 per node
    Cholesky chosen;                // of the precision that was asked for
    std::optional<Cholesky> exact;  // in double precision, where single precision does not do:
    bool raised = false;            // the present factor is this one
    bool nodes_move = false;        // some of its representatives are dynamic
    Cholesky& solver() { return raised ? *exact : chosen; }
    std::vector<Index> active, inactive;  // degrees of freedom of the tail, as rows of schur
    MatX schur;                           // of its representative nodes, 3t x 3t
    MatX C;  // 3t x r: the tail's motion for unit motions of the dynamic degrees of freedom
    DenseCholesky<Eigen::Dynamic> schur_inactive;
    MatX loads, motions;   // right-hand sides and solutions of a pass
    MatX at_tail;          // what the loads amount to for the tail, and then how that moves under them
    bool carried = false;  // loads went along with the factorisation: what it left of them is in the factor
    ModeChoice choice;
    PieceModes modes;
    MatX sweep;                              // M times the vectors that are swept in this pass
    std::vector<std::uint8_t> modes_active;  // what Q was for them; empty: there are none yet
    MatX start;                              // what they may look like then
  };

  bool alone() const { return parts_.size() == 1; }
  std::vector<Index> tail_nodes(const Part& part) const;
  MatX gather(const Part& part, const MatX& x) const;
  void scatter(const Part& part, const MatX& y, MatX& x) const;
  bool factor();
  FactorStatus factor(Part& part);
  FactorStatus factor_in_double(Part& part);
  void set_schur(Part& part) const;
  BlockMatrix& matrix(Part& part) { return part.blocks.empty() ? system.K : part.K; }
  bool does_in_single(Part& part);
  double error_of_motion(Part& part);
  const BlockPattern& pattern(const Part& part) const {
    return part.blocks.empty() ? *model_.pattern : *part.K.pattern;
  }
  void split_tail(const std::vector<std::uint8_t>& dynamic, Part& part, CondensedPiece& piece);
  void project(const Part& part, const VecX& force, const VecX& v, CondensedPiece& piece) const;
  void gather_loads(bool sweep);
  static void condense_loads(Part& part);
  static void place_inactive(Part& part);
  static void extend(const MatX& C, RowMatX& J, MatX& motions, Part& part);
  void solve_part(Part& part, MatX& B) const;
  std::vector<std::uint8_t> quasistatic(const std::vector<std::uint8_t>& dynamic, const Part& part) const;
  void begin_sweep(const std::vector<std::uint8_t>& dynamic, Part& part) const;
  void update_modes(const std::vector<std::uint8_t>& dynamic, Part& part);
  static void add_modes(const Part& part, CondensedPiece& piece);
  void leave_out_modes(Part& part) const;
  void add_twists(const LinkTouches& touches, const MatX& W);
  void add_link_forces(const LinkTouches& touches);

  const Model& model_;
  const CholeskyOptions options_;
  std::vector<Index> representatives_;
  std::vector<Part> parts_;
  std::vector<CondensedPiece> pieces_;               // of the parts
  std::vector<Index> part_of_node_, place_of_node_;  // place among the nodes of the part
  fem::DofEliminator eliminator_;
  std::vector<std::int64_t> coupled_;
  const BodySprings* bodies_ = nullptr;  // of the last assemble()
  struct Source {                        // what K was made of
    VecX x;
    std::vector<double> activation;
    std::vector<std::uint8_t> fixed;
    VecX fixed_velocity;
  };
  Source made_of_;
  bool factored_ = false;        // K has been edited and factored
  double mean_ = 0;              // of K's diagonal: the shift of the tail
  MatX pulled_;                  // (K W - S P)_d of links that are touched
  MatX loads_, motions_;         // right-hand sides and solutions of a pass, all nodes
  VecX known_;                   // what held nodes and moving obstacles load K with [N/s]
  std::vector<double> elastic_;  // K of the elements, where there are contacts
  std::string why_;
};

}  // namespace limber
