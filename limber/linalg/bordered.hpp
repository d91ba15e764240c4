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
  // The same with the factor of K in single precision, for preconditioners: half of the time, and half of the
  // memory that solves read. Where that is too coarse to tell whether the matrix is positive definite, it is
  // made in double precision after all, and in_single() is false.
  [[nodiscard]] bool factor_coarsely(const BlockMatrix& K, const MatX& C, const MatX& D);
  bool in_single() const { return single_; }
  const FactorStatus& status() const { return status_; }

  // One pass over the factor of K for each half.
  void solve(const VecX& f, const VecX& g, VecX& u, VecX& q) const;

  const CholeskyStats& stats() const { return cholesky_.stats(); }

 private:
  bool factor_in(bool single, const BlockMatrix& K, const MatX& C, const MatX& D);

  CholeskyOptions options_;
  Cholesky cholesky_;
  Index blocks_ = 0;
  bool single_ = false;
  FactorStatus status_;
  std::vector<Eigen::Index> columns_;  // of C that are not zero
  MatX Z_;                             // L^-1 P C of these, rows in the order of elimination
  DenseCholesky<Eigen::Dynamic> schur_;
};

}  // namespace limber
