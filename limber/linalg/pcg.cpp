#include <limber/linalg/pcg.hpp>

#include <Eigen/Cholesky>

namespace limber {

PcgResult pcg(const BlockMatrix& A, const VecX& b, const Preconditioner& precondition, double tolerance,
              int max_iterations, VecX& x) {
  return pcg([&](const VecX& p, VecX& Ap) { multiply(A, p, Ap); }, b, precondition, tolerance, max_iterations,
             x);
}

PcgResult pcg(const Product& A, const VecX& b, const Preconditioner& precondition, double tolerance,
              int max_iterations, VecX& x) {
  PcgResult result;
  x.setZero(b.size());
  const double norm = b.norm();
  if (norm == 0) {
    result.converged = true;
    return result;
  }
  VecX r = b, z = b, p, Ap(b.size());
  precondition(z);
  p = z;
  double rz = r.dot(z);
  result.residual = 1;
  while (result.iterations < max_iterations && rz > 0) {
    A(p, Ap);
    ++result.iterations;
    const double curvature = p.dot(Ap);
    if (!(curvature > 0)) break;
    const double a = rz / curvature;
    x += a * p;
    r -= a * Ap;
    result.residual = r.norm() / norm;
    if (result.residual <= tolerance) {
      result.converged = true;
      break;
    }
    z = r;
    precondition(z);
    const double next = r.dot(z);
    p = z + (next / rz) * p;
    rz = next;
  }
  return result;
}

BlockJacobi::BlockJacobi(const BlockMatrix& A) {
  const BlockPattern& p = *A.pattern;
  inverse_.resize(static_cast<std::size_t>(p.n), Mat3::Identity());
  for (Index j = 0; j < p.n; ++j) {
    const Eigen::LLT<Mat3> factor(A.block(p.col_begin[j]));
    if (factor.info() == Eigen::Success) inverse_[j] = factor.solve(Mat3::Identity());
  }
}

void BlockJacobi::operator()(VecX& z) const {
  for (Index j = 0; j < static_cast<Index>(inverse_.size()); ++j) node(z, j) = inverse_[j] * Vec3(node(z, j));
}

}  // namespace limber
