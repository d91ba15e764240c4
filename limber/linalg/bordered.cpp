#include <limber/linalg/bordered.hpp>

#include <limber/linalg/tall.hpp>

namespace limber {
namespace {

// Of the diagonal entry: how far below zero a pivot in single precision must be to be negative.
constexpr double kCoarseError = 1e-4;

}  // namespace

void BorderedSolver::analyze(const BlockPattern& pattern, std::span<const Index> order) {
  blocks_ = pattern.n;
  if (blocks_ == 0) return;
  if (order.empty())
    cholesky_.analyze(pattern);
  else
    cholesky_.analyze_in_order(pattern, order);
}

bool BorderedSolver::factor(const BlockMatrix& K, const MatX& C, const MatX& D) {
  return factor_in(false, K, C, D);
}

bool BorderedSolver::factor_coarsely(const BlockMatrix& K, const MatX& C, const MatX& D) {
  if (factor_in(true, K, C, D)) return true;
  if (status_.node >= 0) {
    const auto diagonal = K.block(K.pattern->col_begin[static_cast<std::size_t>(status_.node)]);
    if (status_.pivot < -kCoarseError * diagonal(status_.axis, status_.axis)) return false;
  }
  return factor_in(false, K, C, D);
}

bool BorderedSolver::factor_in(bool single, const BlockMatrix& K, const MatX& C, const MatX& D) {
  status_ = {};
  single_ = single;
  if (blocks_ > 0) {
    cholesky_.set_single(single);
    status_ = cholesky_.factor(K);
    if (!status_.ok) return false;
  }
  columns_.clear();
  if (D.rows() == 0) {
    Z_.resize(3 * static_cast<Eigen::Index>(blocks_), 0);
    return true;
  }
  if (blocks_ == 0) {
    Z_.resize(0, 0);
    status_.ok = schur_.factor(D);
  } else {
    for (Eigen::Index k = 0; k < C.cols(); ++k)
      if (!C.col(k).isZero(0)) columns_.push_back(k);
    Z_ = C(Eigen::all, columns_);
    if (!columns_.empty()) cholesky_.condense_to_tail(Z_);
    MatX S = D;
    if (!columns_.empty()) S(columns_, columns_) -= tall_product(Z_, Z_);
    status_.ok = schur_.factor(S);
  }
  if (!status_.ok) status_.node = -1;
  return status_.ok;
}

void BorderedSolver::solve(const VecX& f, const VecX& g, VecX& u, VecX& q) const {
  MatX y = f;
  if (blocks_ > 0) cholesky_.condense_to_tail(y);
  q.resize(g.size());
  if (g.size() > 0) {
    VecX right = g;
    if (!columns_.empty()) right(columns_) -= Z_.transpose() * y.col(0);
    q = schur_.solve(right);
    if (!columns_.empty()) y.col(0) -= Z_ * q(columns_);
  }
  u.resize(f.size());
  if (blocks_ == 0) return;
  RowMatX none;
  MatX x;
  cholesky_.extend_from_tail(MatX(0, 0), y, none, x);
  u = x.col(0);
}

}  // namespace limber
