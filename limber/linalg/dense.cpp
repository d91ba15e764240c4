#include <limber/linalg/dense.hpp>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>

namespace limber {

template <int N>
bool DenseCholesky<N>::factor(const Matrix& A) {
  llt_.compute(A);
  return ok_ = llt_.info() == Eigen::Success;
}

template <int N>
auto DenseCholesky<N>::solve(const Vector& b) const -> Vector {
  return llt_.solve(b);
}

template <int N>
MatX DenseCholesky<N>::solve_all(const MatX& B) const {
  return llt_.solve(B);
}

template <int N>
double DenseCholesky<N>::rcond() const {
  return llt_.rcond();
}

template <int N>
auto DenseCholesky<N>::inverse() const -> Matrix {
  return llt_.solve(Matrix::Identity(llt_.rows(), llt_.cols()));
}

template <int N>
auto DenseCholesky<N>::L() const -> Matrix {
  return llt_.matrixL();
}

template class DenseCholesky<6>;
template class DenseCholesky<Eigen::Dynamic>;

DenseEigen symmetric_eigen(const MatX& A) {
  const Eigen::SelfAdjointEigenSolver<MatX> eigen(A);
  return {eigen.eigenvalues(), eigen.eigenvectors(), eigen.info() == Eigen::Success};
}

DenseEigen symmetric_eigen(const MatX& A, const MatX& B) {
  const Eigen::GeneralizedSelfAdjointEigenSolver<MatX> eigen(A, B);
  return {eigen.eigenvalues(), eigen.eigenvectors(), eigen.info() == Eigen::Success};
}

MatX orthogonal_factor(const MatX& A) { return Eigen::HouseholderQR<MatX>(A).householderQ(); }

VecX least_squares(const MatX& A, const VecX& b, bool rank_deficient) {
  if (rank_deficient) return A.completeOrthogonalDecomposition().solve(b);
  return A.householderQr().solve(b);
}

MatX solve_semidefinite(const MatX& A, const MatX& B) { return A.ldlt().solve(B); }
VecX solve_semidefinite(const MatX& A, const VecX& b) { return A.ldlt().solve(b); }

}  // namespace limber
