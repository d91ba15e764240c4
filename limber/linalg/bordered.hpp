// A sparse symmetric matrix with a dense border,
//
//   [ K   C ] [u]   [f]
//   [ C^T D ] [q] = [g],
//
// by the Cholesky factor of K and the Schur complement of the border, S = D - C^T K^-1 C. K has 3x3 blocks,
// the border few columns; those of C that are zero cost nothing. Either part may be empty.
//
// Nodes whose stiffness changes more often than a new factor is worth (contacts that open and close) may be a
// tail, which is eliminated last. With K = [Kqq Kqt; Ktq Ktt] what is left for tail and border is a small
// bordered matrix of the same form,
//
//   [ Ktt - Ktq Kqq^-1 Kqt   Ct - Ktq Kqq^-1 Cq ]
//   [ ...                    D - Cq^T Kqq^-1 Cq ],
//
// so that another Ktt costs the factor of that one alone (change_tail).
#pragma once

#include <limber/linalg/cholesky.hpp>
#include <limber/linalg/dense.hpp>

#include <memory>

namespace limber {

class BorderedSolver {
 public:
  explicit BorderedSolver(const CholeskyOptions& options = {}) : options_(options), cholesky_(options) {}

  // The pattern of K, and an order of elimination for its nodes; none: one is looked for. No tail.
  void analyze(const BlockPattern& pattern, std::span<const Index> order = {});
  // The same pattern, and the order that analyze() found, but with these nodes at the end.
  void set_tail(const BlockPattern& pattern, std::span<const Index> tail);
  Index tail_nodes() const { return static_cast<Index>(tail_.size()); }

  // False: the matrix is not positive definite; status() says where: a node of K, or -1 for the border.
  [[nodiscard]] bool factor(const BlockMatrix& K, const MatX& C, const MatX& D);
  // The same with the factor of K in single precision, for preconditioners: half of the time, and half of the
  // memory that solves read. Where that is too coarse to tell whether the matrix is positive definite, it is
  // made in double precision after all, and in_single() is false.
  [[nodiscard]] bool factor_coarsely(const BlockMatrix& K, const MatX& C, const MatX& D);
  bool in_single() const { return single_; }
  const FactorStatus& status() const { return status_; }

  // What is added to the K that was factored, in place of what was added by the last call: a block of two
  // nodes of the tail, i >= j by their places in it; of i and j = i all of it, of others once. False: the
  // matrix is not positive definite with it, and stays the factored one.
  struct TailBlock {
    Index i, j;
    Mat3 value;
  };
  [[nodiscard]] bool change_tail(std::span<const TailBlock> change);

  // One pass over the factor of K for each half.
  void solve(const VecX& f, const VecX& g, VecX& u, VecX& q) const;

  const CholeskyStats& stats() const { return cholesky_.stats(); }

 private:
  bool factor_in(bool single, const BlockMatrix& K, const MatX& C, const MatX& D);
  void condense_border(const MatX& C, const MatX& D);
  bool factor_end(const BlockMatrix& K);

  CholeskyOptions options_;
  Cholesky cholesky_;
  Index blocks_ = 0;
  std::vector<Index> order_;  // that analyze() found
  bool single_ = false;
  FactorStatus status_;
  std::vector<Eigen::Index> columns_;  // of C that are not zero
  MatX Z_;  // Lqq^-1 P C of these, rows in the order of elimination; the tail's rows: see above
  MatX D_;  // of the border: what is left for it
  DenseCholesky<Eigen::Dynamic> schur_;  // of D_, without a tail

  // Of tail and border.
  std::vector<Index> tail_;
  std::unique_ptr<BorderedSolver> end_;
  BlockMatrix end_K_;
  MatX end_C_;
};

}  // namespace limber
