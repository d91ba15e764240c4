// Decompositions of small dense matrices, compiled once: each costs a compiler 2 to 7 s in every file that
// names Eigen's template. For N unknowns known when compiling (those instantiated in dense.cpp), or
// Eigen::Dynamic.
#pragma once

#include <limber/core/types.hpp>

#include <Eigen/Cholesky>

namespace limber {

// A = L L^T of a symmetric positive definite matrix.
template <int N>
class DenseCholesky {
 public:
  using Matrix = Eigen::Matrix<double, N, N>;
  using Vector = Eigen::Matrix<double, N, 1>;

  DenseCholesky() = default;
  explicit DenseCholesky(const Matrix& A) { factor(A); }

  // False if A is not positive definite.
  bool factor(const Matrix& A);
  bool ok() const { return ok_; }
  Vector solve(const Vector& b) const;
  MatX solve_all(const MatX& B) const;
  double rcond() const;  // estimate of 1 / (|A| |A^-1|), 1-norm
  Matrix inverse() const;
  Matrix L() const;

 private:
  Eigen::LLT<Matrix> llt_;
  bool ok_ = false;
};

// A v_k = values[k] v_k, or A v_k = values[k] B v_k with V^T B V = 1; values ascend.
struct DenseEigen {
  VecX values;
  MatX vectors;
  bool ok = true;  // false: the iteration did not converge
};
DenseEigen symmetric_eigen(const MatX& A);
DenseEigen symmetric_eigen(const MatX& A, const MatX& B);

// The orthogonal factor of A = Q R, square.
MatX orthogonal_factor(const MatX& A);
// The x of least |A x - b|; of all such x the shortest where `rank_deficient`, else A has full column rank.
VecX least_squares(const MatX& A, const VecX& b, bool rank_deficient = false);
// A^-1 B of a symmetric semidefinite A (L D L^T with pivots).
MatX solve_semidefinite(const MatX& A, const MatX& B);
VecX solve_semidefinite(const MatX& A, const VecX& b);

}  // namespace limber
