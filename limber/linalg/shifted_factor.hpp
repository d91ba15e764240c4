// A matrix that ought to be positive definite and just is not: it is shifted as little as it takes.
#pragma once

#include <limber/linalg/cholesky.hpp>

#include <functional>
#include <initializer_list>

namespace limber {

// Mean of the diagonal entries: what "small" means for the matrix.
double mean_diagonal(const BlockMatrix& A);

// Calls `factor`. While that fails, again with s unit W added to each of the `matrices` as they were at
// first, s = 1e-8, 1e-6, ... below 1, W = diag(weight) over its mean: with masses as weights the shift is a
// small inertia, and a body that nothing holds is moved as a whole. `shifts` receives how often that was
// done. The matrices stay shifted.
FactorStatus factor_with_shift(std::initializer_list<BlockMatrix*> matrices, double unit, const VecX& weight,
                               const std::function<FactorStatus()>& factor, int& shifts);

}  // namespace limber
