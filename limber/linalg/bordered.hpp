// A sparse symmetric matrix with a dense border,
//
//   [ K   C ] [u]   [f]
//   [ C^T D ] [q] = [g],
//
// by the Cholesky factor of K and the Schur complement of the border, S = D - C^T K^-1 C. K has 3x3 blocks,
// the border few columns; those of C that are zero cost nothing. Either part may be empty.
#pragma once

#include <limber/linalg/cholesky.hpp>
#include <limber/linalg/dense.hpp>

namespace limber {

class BorderedSolver {
 public:
  explicit BorderedSolver(const CholeskyOptions& options = {}) : options_(options), cholesky_(options) {}

  // The pattern of K, and an order of elimination for its nodes; none: one is looked for.
  void analyze(const BlockPattern& pattern, std::span<const Index> order = {});
  // False: the matrix is not positive definite; status() says where: a node of K, or -1 for the border.
  [[nodiscard]] bool factor(const BlockMatrix& K, const MatX& C, const MatX& D);
  const FactorStatus& status() const { return status_; }

  // One pass over the factor of K for each half.
  void solve(const VecX& f, const VecX& g, VecX& u, VecX& q) const;
  // The same with the factor of K rounded to single precision, for preconditioners: half of the memory to
  // read. round_to_single() first, after every change of the factor.
  void round_to_single();
  void solve_rounded(const VecX& f, const VecX& g, VecX& u, VecX& q) const;

  const CholeskyStats& stats() const { return cholesky_.stats(); }

 private:
  CholeskyOptions options_;
  Cholesky cholesky_;
  Index blocks_ = 0;
  FactorStatus status_;
  std::vector<Eigen::Index> columns_;  // of C that are not zero
  MatX Z_;                             // L^-1 P C of these, rows in the order of elimination
  MatX X_;                             // K^-1 C of these, if asked for
  DenseCholesky<Eigen::Dynamic> schur_;
};

}  // namespace limber
