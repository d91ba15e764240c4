#include <limber/linalg/shifted_factor.hpp>

#include <algorithm>

namespace limber {

double mean_diagonal(const BlockMatrix& A) {
  double sum = 0;
  for (Index j = 0; j < A.pattern->n; ++j) sum += A.block(A.pattern->col_begin[j]).trace();
  return sum / std::max<Index>(1, 3 * A.pattern->n);
}

FactorStatus factor_with_shift(std::initializer_list<BlockMatrix*> matrices, double unit, const VecX& weight,
                               const std::function<FactorStatus()>& factor, int& shifts) {
  shifts = 0;
  FactorStatus status = factor();
  if (status.ok) return status;
  std::vector<std::vector<double>> unshifted;
  for (const BlockMatrix* A : matrices) unshifted.push_back(A->values);
  const double mean = weight.mean();
  for (double shift = 1e-8; !status.ok && shift < 1; shift *= 100) {
    ++shifts;
    auto values = unshifted.begin();
    for (BlockMatrix* A : matrices) {
      A->values = *values++;
      for (Index j = 0; j < A->pattern->n; ++j)
        for (int k = 0; k < 3; ++k)
          A->block(A->pattern->col_begin[j])(k, k) += shift * unit * weight[3 * j + k] / mean;
    }
    status = factor();
  }
  return status;
}

}  // namespace limber
