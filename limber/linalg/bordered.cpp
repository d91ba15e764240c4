#include <limber/linalg/bordered.hpp>

#include <limber/linalg/tall.hpp>

#include <numeric>

namespace limber {
namespace {

// Of the diagonal entry: how far below zero a pivot in single precision must be to be negative.
constexpr double kCoarseError = 1e-4;

// All blocks of the lower triangle of n nodes.
BlockPattern dense_pattern(Index n) {
  std::vector<Index> col_begin{0}, row;
  for (Index j = 0; j < n; ++j) {
    for (Index i = j; i < n; ++i) row.push_back(i);
    col_begin.push_back(static_cast<Index>(row.size()));
  }
  return make_block_pattern(std::move(col_begin), std::move(row));
}

}  // namespace

void BorderedSolver::analyze(const BlockPattern& pattern, std::span<const Index> order) {
  blocks_ = pattern.n;
  tail_.clear();
  end_.reset();
  order_.clear();
  if (blocks_ == 0) return;
  if (order.empty())
    cholesky_.analyze(pattern);
  else
    cholesky_.analyze_in_order(pattern, order);
  order_.assign(cholesky_.order().begin(), cholesky_.order().end());
}

void BorderedSolver::set_tail(const BlockPattern& pattern, std::span<const Index> tail) {
  tail_.assign(tail.begin(), tail.end());
  std::vector<std::uint8_t> last(at(blocks_), 0);
  for (const Index i : tail_) last[at(i)] = 1;
  std::vector<Index> order;
  for (const Index i : order_)
    if (!last[at(i)]) order.push_back(i);
  order.insert(order.end(), tail_.begin(), tail_.end());
  cholesky_.analyze_in_order(pattern, order, tail_nodes());
  end_.reset();
  if (tail_.empty()) return;
  end_ = std::make_unique<BorderedSolver>(options_);
  end_K_ = BlockMatrix(std::make_shared<const BlockPattern>(dense_pattern(tail_nodes())));
  std::vector<Index> any(tail_.size());
  std::iota(any.begin(), any.end(), 0);
  end_->analyze(*end_K_.pattern, any);
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
  condense_border(C, D);
  if (!end_) {
    if (D_.rows() > 0) status_.ok = schur_.factor(D_);
    if (!status_.ok) status_.node = -1;
    return status_.ok;
  }
  MatX S;
  cholesky_.tail_schur(S);
  for (Index j = 0, b = 0; j < tail_nodes(); ++j)
    for (Index i = j; i < tail_nodes(); ++i, ++b) end_K_.block(b) = S.block<3, 3>(3 * i, 3 * j);
  return factor_end(end_K_);
}

// Z_ and D_, and the border of the tail.
void BorderedSolver::condense_border(const MatX& C, const MatX& D) {
  columns_.clear();
  D_ = D;
  const Eigen::Index rows = 3 * static_cast<Eigen::Index>(blocks_),
                     t = 3 * static_cast<Eigen::Index>(tail_.size());
  if (blocks_ > 0)
    for (Eigen::Index k = 0; k < C.cols(); ++k)
      if (!C.col(k).isZero(0)) columns_.push_back(k);
  Z_.resize(rows, 0);
  end_C_.setZero(t, D.cols());
  if (columns_.empty()) return;
  Z_ = C(Eigen::all, columns_);
  cholesky_.condense_to_tail(Z_);
  D_(columns_, columns_) -= tall_product(Z_.topRows(rows - t), Z_.topRows(rows - t));
  end_C_(Eigen::all, columns_) = Z_.bottomRows(t);
}

bool BorderedSolver::factor_end(const BlockMatrix& K) {
  if (single_ ? end_->factor_coarsely(K, end_C_, D_) : end_->factor(K, end_C_, D_)) return true;
  status_ = end_->status();
  if (status_.node >= 0) status_.node = tail_[at(status_.node)];
  return false;
}

bool BorderedSolver::change_tail(std::span<const TailBlock> change) {
  BlockMatrix K = end_K_;
  for (const TailBlock& b : change) K.block(K.pattern->col_begin[at(b.j)] + b.i - b.j) += b.value;
  if (factor_end(K)) return true;
  if (!factor_end(end_K_)) status_.ok = false;  // cannot be: it was before
  return false;
}

void BorderedSolver::solve(const VecX& f, const VecX& g, VecX& u, VecX& q) const {
  MatX y = f;
  if (blocks_ > 0) cholesky_.condense_to_tail(y);
  const Eigen::Index t = 3 * static_cast<Eigen::Index>(tail_.size()), head = y.rows() - t;
  VecX right = g;
  if (!columns_.empty()) right(columns_) -= Z_.topRows(head).transpose() * y.col(0).head(head);
  if (end_) {
    VecX ends;
    end_->solve(y.col(0).tail(t), right, ends, q);
    y.col(0).tail(t) = ends;
  } else {
    q = g.size() > 0 ? VecX(schur_.solve(right)) : VecX();
  }
  if (!columns_.empty()) y.col(0).head(head) -= Z_.topRows(head) * q(columns_);
  u.resize(f.size());
  if (blocks_ == 0) return;
  RowMatX none;
  MatX x;
  cholesky_.extend_from_tail(MatX(t, 0), y, none, x);
  u = x.col(0);
}

}  // namespace limber
