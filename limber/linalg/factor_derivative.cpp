#include <limber/linalg/factor_derivative.hpp>

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace limber {

bool dchol(MatX& L, MatX& dL) {
  const Eigen::Index n = L.rows();
  for (Eigen::Index j = 0; j < n; ++j) {
    const Eigen::Index m = n - j;
    for (Eigen::Index k = 0; k < j; ++k) {  // row operations
      L.col(j).tail(m) -= L(j, k) * L.col(k).tail(m);
      dL.col(j).tail(m) -= L(j, k) * dL.col(k).tail(m) + dL(j, k) * L.col(k).tail(m);
    }
    if (!(L(j, j) > 0)) return false;
    L(j, j) = std::sqrt(L(j, j));  // define pivot
    dL(j, j) = 0.5 * dL(j, j) / L(j, j);
    L.col(j).tail(m - 1) /= L(j, j);  // adjust subdiagonal
    dL.col(j).tail(m - 1) = (dL.col(j).tail(m - 1) - dL(j, j) * L.col(j).tail(m - 1)) / L(j, j);
    L.col(j).head(j).setZero();
    dL.col(j).head(j).setZero();
  }
  return true;
}

bool dchol_blocked(MatX& L, MatX& dL, std::span<const Index> block_sizes) {
  const Eigen::Index n = L.rows();
  if (std::accumulate(block_sizes.begin(), block_sizes.end(), Eigen::Index{0}) != n)
    throw Error(ErrorKind::kUsage, "dchol_blocked: the block sizes do not add up to the rows of A");
  Eigen::Index j = 0;
  for (const Index size : block_sizes) {
    const Eigen::Index m = n - j, below = m - size;
    auto Lj = L.block(j, j, m, size), dLj = dL.block(j, j, m, size);
    Eigen::Index k = 0;
    for (const Index size_k : block_sizes) {  // (a) block row operation
      if (k == j) break;
      const auto Lk = L.block(j, k, m, size_k), dLk = dL.block(j, k, m, size_k);
      const MatX top = Lk.topRows(size), dtop = dLk.topRows(size);
      Lj.noalias() -= Lk * top.transpose();
      dLj.noalias() -= dLk * top.transpose();
      dLj.noalias() -= Lk * dtop.transpose();
      k += size_k;
    }
    MatX D = Lj.topRows(size), dD = dLj.topRows(size);  // (b) define pivot
    if (!dchol(D, dD)) return false;
    Lj.topRows(size) = D;
    dLj.topRows(size) = dD;
    if (below > 0) {  // (c) subdiagonal block
      auto B = Lj.bottomRows(below), dB = dLj.bottomRows(below);
      const auto Dt = D.triangularView<Eigen::Lower>().transpose();
      Dt.solveInPlace<Eigen::OnTheRight>(B);
      dB.noalias() -= B * dD.transpose();
      Dt.solveInPlace<Eigen::OnTheRight>(dB);
    }
    L.block(0, j, j, size).setZero();
    dL.block(0, j, j, size).setZero();
    j += size;
  }
  return true;
}

MatX dchol_phi(const MatX& L, const MatX& dA) {
  const auto lower = L.triangularView<Eigen::Lower>();
  MatX phi = lower.solve(dA);
  lower.transpose().solveInPlace<Eigen::OnTheRight>(phi);
  phi.triangularView<Eigen::StrictlyUpper>().setZero();
  phi.diagonal() *= 0.5;
  return lower * phi;
}

void TimeFactor::analyze(const BlockPattern& pattern) {
  cholesky_.analyze(pattern);
  base_.clear();
  rate_.clear();
  diagonal_.clear();
}

FactorStatus TimeFactor::factor(const BlockMatrix& A) {
  rate_.clear();
  rounded_ = false;
  return cholesky_.factor(A);
}

FactorStatus TimeFactor::factor(const BlockMatrix& A, const BlockMatrix& A_later, double epsilon) {
  if (diagonal_.empty()) find_diagonal(A);
  rate_.clear();
  rounded_ = false;
  if (const FactorStatus status = cholesky_.factor(A_later); !status.ok) return status;
  const std::span<const double> later = cholesky_.factor_values();
  std::vector<double> rate(later.begin(), later.end());
  if (const FactorStatus status = cholesky_.factor(A); !status.ok) return status;
  const std::span<const double> now = cholesky_.factor_values();
  base_.assign(now.begin(), now.end());
  parallel_for(static_cast<std::ptrdiff_t>(rate.size()), 1 << 16,
               [&](std::ptrdiff_t k) { rate[k] = (rate[k] - base_[k]) / epsilon; });
  rate_ = std::move(rate);
  return {};
}

bool TimeFactor::extrapolate(double dt) {
  if (rate_.empty()) return true;
  const bool safe = std::all_of(diagonal_.begin(), diagonal_.end(),
                                [&](std::size_t k) { return base_[k] + dt * rate_[k] > 0.1 * base_[k]; });
  const double s = safe ? dt : 0.0;
  rounded_ = false;
  const std::span<double> L = cholesky_.factor_values();
  parallel_for(static_cast<std::ptrdiff_t>(L.size()), 1 << 16,
               [&](std::ptrdiff_t k) { L[k] = base_[k] + s * rate_[k]; });
  return safe;
}

// The factor of the identity is the identity, whatever the layout of the array is.
void TimeFactor::find_diagonal(const BlockMatrix& A) {
  BlockMatrix identity(A.pattern);
  for (Index j = 0; j < A.pattern->n; ++j) identity.block(A.pattern->col_begin[j]).setIdentity();
  if (!cholesky_.factor(identity).ok) throw Error(ErrorKind::kSimulation, "the identity has no factor");
  const std::span<const double> L = cholesky_.factor_values();
  for (std::size_t k = 0; k < L.size(); ++k)
    if (L[k] == 1.0) diagonal_.push_back(k);
}

}  // namespace limber
