// Preconditioned conjugate gradients on a symmetric positive definite block matrix.
#pragma once

#include <limber/linalg/block_matrix.hpp>

#include <functional>
#include <vector>

namespace limber {

// z <- P^-1 z for a symmetric positive definite P near A.
using Preconditioner = std::function<void(VecX& z)>;

struct PcgResult {
  bool converged = false;
  int iterations = 0;   // products with A
  double residual = 0;  // |b - A x| / |b|
};

// Solves A x = b from x = 0 until |b - A x| <= tolerance |b|. Stops early, with the best x so far, when a
// direction of non-positive curvature shows that A is not positive definite.
PcgResult pcg(const BlockMatrix& A, const VecX& b, const Preconditioner& precondition, double tolerance,
              int max_iterations, VecX& x);

// The same for an A that is only known by its products, y = A x.
using Product = std::function<void(const VecX& x, VecX& y)>;
PcgResult pcg(const Product& A, const VecX& b, const Preconditioner& precondition, double tolerance,
              int max_iterations, VecX& x);

// The inverse of the 3x3 diagonal blocks.
class BlockJacobi {
 public:
  // A diagonal block that is not positive definite is replaced by the identity.
  explicit BlockJacobi(const BlockMatrix& A);
  void operator()(VecX& z) const;

 private:
  std::vector<Mat3> inverse_;
};

}  // namespace limber
