// The Cholesky factor as a function of time: A(t) = L(t) L(t)^T, and what L does when A changes.
//
// Dense: the derivative of the algorithm (dissertation, Algorithm 5.2 and appendix C.1). Sparse: a finite
// difference of two factors with the same ordering and pattern (Eq. 5.8), from which L + dt dL/dt
// extrapolates (Eq. 5.4).
#pragma once

#include <limber/linalg/cholesky.hpp>

#include <span>
#include <utility>
#include <vector>

namespace limber {

// Algorithm 5.2, in place: the lower triangles of A and dA become L and dL, the rest zero. The text's last
// loop runs over all rows; it must run below the diagonal. False when A is not positive definite.
[[nodiscard]] bool dchol(MatX& A, MatX& dA);

// The same by column blocks (appendix C.1), as a supernodal factorisation works: matrix products for the
// updates, `dchol` for the diagonal blocks, triangular solves below them. The sizes add up to the rows of A.
[[nodiscard]] bool dchol_blocked(MatX& A, MatX& dA, std::span<const Index> block_sizes);

// dL = L phi(L^-1 dA L^-T), phi = lower triangle with half the diagonal; dA is the whole symmetric matrix.
MatX dchol_phi(const MatX& L, const MatX& dA);

// A sparse factor that may be extrapolated in time. One symbolic analysis serves both factors.
class TimeFactor {
 public:
  explicit TimeFactor(CholeskyOptions options = {}) : cholesky_(std::move(options)) {}

  void analyze(const BlockPattern& pattern);
  // L at time 0, and no derivative.
  [[nodiscard]] FactorStatus factor(const BlockMatrix& A);
  // L at time 0, and dL/dt = (chol(A_later) - chol(A)) / epsilon, where A_later is A at time epsilon.
  [[nodiscard]] FactorStatus factor(const BlockMatrix& A, const BlockMatrix& A_later, double epsilon);
  // From now on solves use L + dt dL/dt (L, when there is no derivative). False, and L itself is used, when a
  // diagonal entry would shrink below a tenth of what it was: the product L L^T is then useless or singular.
  bool extrapolate(double dt);

  bool has_derivative() const { return !rate_.empty(); }
  void solve(Eigen::Ref<VecX> b) const { cholesky_.solve(b); }
  // The same with L rounded to single precision, in about half the time.
  void precondition(Eigen::Ref<VecX> b) {
    if (!std::exchange(rounded_, true)) cholesky_.round_to_single();
    cholesky_.solve_rounded(b);
  }
  const CholeskyStats& stats() const { return cholesky_.stats(); }
  std::span<const double> values() const { return cholesky_.factor_values(); }
  std::span<const double> rate() const { return rate_; }
  std::span<const Index> order() const { return cholesky_.order(); }
  const Cholesky& cholesky() const { return cholesky_; }

 private:
  void find_diagonal(const BlockMatrix& A);

  Cholesky cholesky_;
  bool rounded_ = false;
  std::vector<double> base_, rate_;    // L and dL/dt, as Cholesky::factor_values() lays them out
  std::vector<std::size_t> diagonal_;  // where the diagonal of L is in that array
};

}  // namespace limber
