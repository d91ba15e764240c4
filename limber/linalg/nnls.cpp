#include <limber/linalg/nnls.hpp>

#include <limber/linalg/dense.hpp>

#include <vector>

namespace limber {

VecX nnls(const MatX& G, const VecX& c, const VecX& start) {
  const Eigen::Index n = c.size();
  VecX x = start.size() == n ? start.cwiseMax(0).eval() : VecX::Zero(n).eval();
  std::vector<bool> free(static_cast<std::size_t>(n));
  for (Eigen::Index i = 0; i < n; ++i) free[static_cast<std::size_t>(i)] = x[i] > 0;
  const double tolerance = 1e-12 * (c.cwiseAbs().maxCoeff() + 1e-300);
  // Steps from x towards the least squares solution on the free columns and frees a column at the bound that
  // would shorten the residual, until none is left.
  for (Eigen::Index round = 0; round < 3 * n + 10; ++round) {
    for (;;) {
      std::vector<Eigen::Index> set;
      for (Eigen::Index i = 0; i < n; ++i)
        if (free[static_cast<std::size_t>(i)]) set.push_back(i);
      if (set.empty()) break;
      MatX sub(set.size(), set.size());
      VecX rhs(set.size());
      for (std::size_t a = 0; a < set.size(); ++a) {
        rhs[static_cast<Eigen::Index>(a)] = c[set[a]];
        for (std::size_t b = 0; b < set.size(); ++b)
          sub(static_cast<Eigen::Index>(a), static_cast<Eigen::Index>(b)) = G(set[a], set[b]);
      }
      const VecX y = solve_semidefinite(sub, rhs);
      double step = 1;
      for (std::size_t a = 0; a < set.size(); ++a) {
        const double to = y[static_cast<Eigen::Index>(a)], from = x[set[a]];
        if (to <= 0) step = std::min(step, from > to ? from / (from - to) : 0.0);
      }
      bool blocked = false;
      for (std::size_t a = 0; a < set.size(); ++a) {
        double& value = x[set[a]];
        value += step * (y[static_cast<Eigen::Index>(a)] - value);
        if (step < 1 && value <= 1e-14 * (1 + std::abs(y[static_cast<Eigen::Index>(a)])) &&
            y[static_cast<Eigen::Index>(a)] <= 0) {
          value = 0;
          free[static_cast<std::size_t>(set[a])] = false;
          blocked = true;
        }
      }
      if (!blocked) break;
    }
    const VecX slope = c - G * x;
    Eigen::Index best = -1;
    for (Eigen::Index i = 0; i < n; ++i)
      if (!free[static_cast<std::size_t>(i)] && slope[i] > tolerance && (best < 0 || slope[i] > slope[best]))
        best = i;
    if (best < 0) break;
    free[static_cast<std::size_t>(best)] = true;
  }
  return x;
}

}  // namespace limber
