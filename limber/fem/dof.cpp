#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/dof.hpp>

#include <fmt/core.h>

namespace limber::fem {

DofEliminator::DofEliminator(const BlockPattern& pattern) : n_(pattern.n) {
  row_begin_.assign(static_cast<std::size_t>(n_) + 1, 0);
  for (Index j = 0; j < n_; ++j)
    for (Index b = pattern.col_begin[j]; b < pattern.col_begin[j + 1]; ++b)
      if (pattern.row[b] != j) ++row_begin_[pattern.row[b] + 1];
  for (Index i = 0; i < n_; ++i) row_begin_[i + 1] += row_begin_[i];
  row_block_.resize(row_begin_.back());
  row_column_.resize(row_begin_.back());
  std::vector<Index> next(row_begin_.begin(), row_begin_.end() - 1);
  for (Index j = 0; j < n_; ++j)
    for (Index b = pattern.col_begin[j]; b < pattern.col_begin[j + 1]; ++b) {
      const Index i = pattern.row[b];
      if (i == j) continue;
      row_block_[next[i]] = b;
      row_column_[next[i]++] = j;
    }
}

void DofEliminator::check(const BlockMatrix& A, std::size_t entries) const {
  if (!A.pattern || A.pattern->n != n_ || A.pattern->blocks() != static_cast<Index>(row_block_.size()) + n_)
    throw Error(ErrorKind::kUsage,
                "DofEliminator: the matrix has another pattern than the one it was made for");
  if (entries != 3 * static_cast<std::size_t>(n_))
    throw Error(ErrorKind::kUsage,
                fmt::format("DofEliminator: found {} entries, expected {} (3 for each of {} nodes)", entries,
                            3 * static_cast<std::size_t>(n_), n_));
}

void DofEliminator::eliminate(BlockMatrix& A, std::span<const std::uint8_t> fixed, double diagonal) const {
  check(A, fixed.size());
  const BlockPattern& pattern = *A.pattern;
  // First every node's column, then every node's row: in each pass a block belongs to one node.
  parallel_for(n_, 1024, [&](std::ptrdiff_t j) {
    for (int c = 0; c < 3; ++c)
      if (fixed[3 * j + c])
        for (Index b = pattern.col_begin[j]; b < pattern.col_begin[j + 1]; ++b) A.block(b).col(c).setZero();
  });
  parallel_for(n_, 1024, [&](std::ptrdiff_t i) {
    for (int c = 0; c < 3; ++c)
      if (fixed[3 * i + c]) {
        for (Index k = row_begin_[i]; k < row_begin_[i + 1]; ++k) A.block(row_block_[k]).row(c).setZero();
        auto own = A.block(pattern.col_begin[i]);
        own.row(c).setZero();
        own(c, c) = diagonal;
      }
  });
}

void DofEliminator::multiply_fixed(const BlockMatrix& A, std::span<const std::uint8_t> fixed, const VecX& v,
                                   VecX& y) const {
  check(A, fixed.size());
  check(A, static_cast<std::size_t>(v.size()));
  const BlockPattern& pattern = *A.pattern;
  y.setZero(v.size());
  // Few nodes are fixed as a rule: one pass over them, in order.
  for (Index j = 0; j < n_; ++j) {
    Vec3 vj = Vec3::Zero();
    for (int c = 0; c < 3; ++c)
      if (fixed[3 * static_cast<std::size_t>(j) + c]) vj[c] = v[3 * static_cast<Eigen::Index>(j) + c];
    if (vj.isZero(0)) continue;
    for (Index b = pattern.col_begin[j]; b < pattern.col_begin[j + 1]; ++b)
      node(y, pattern.row[b]) += A.block(b) * vj;
    for (Index k = row_begin_[j]; k < row_begin_[j + 1]; ++k)
      node(y, row_column_[k]) += A.block(row_block_[k]).transpose() * vj;
  }
}

}  // namespace limber::fem
