#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/block_matrix.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace limber {
namespace {

// A stable counting sort of the blocks below the diagonal by row leaves the columns of a row ascending.
BlockRows make_rows(Index n, const std::vector<Index>& col_begin, const std::vector<Index>& row) {
  BlockRows rows;
  rows.begin.assign(static_cast<std::size_t>(n) + 1, 0);
  for (Index j = 0; j < n; ++j)
    for (Index b = col_begin[j] + 1; b < col_begin[j + 1]; ++b) ++rows.begin[row[b] + 1];
  for (Index i = 0; i < n; ++i) rows.begin[i + 1] += rows.begin[i];
  rows.col.resize(rows.begin[n]);
  rows.block.resize(rows.begin[n]);
  std::vector<Index> next(rows.begin.begin(), rows.begin.end() - 1);
  for (Index j = 0; j < n; ++j)
    for (Index b = col_begin[j] + 1; b < col_begin[j + 1]; ++b) {
      const Index k = next[row[b]]++;
      rows.col[k] = j;
      rows.block[k] = b;
    }
  return rows;
}

}  // namespace

Index BlockPattern::find(Index i, Index j) const {
  const auto first = row.begin() + col_begin[j], last = row.begin() + col_begin[j + 1];
  const auto it = std::lower_bound(first, last, i);
  return it != last && *it == i ? static_cast<Index>(it - row.begin()) : -1;
}

BlockPattern make_block_pattern(Index n, std::span<const std::array<Index, 4>> cliques) {
  // Which cliques touch which node, then one column at a time with a marker: no sort over all pairs.
  std::vector<Index> begin(static_cast<std::size_t>(n) + 1, 0);
  for (std::size_t c = 0; c < cliques.size(); ++c)
    for (const Index i : cliques[c]) {
      if (i == -1) continue;
      if (i < 0 || i >= n)
        throw Error(ErrorKind::kUsage,
                    fmt::format("block pattern: element {} names node {}, expected -1 to {}", c, i, n - 1));
      ++begin[i + 1];
    }
  for (Index i = 0; i < n; ++i) begin[i + 1] += begin[i];
  std::vector<Index> touching(begin[n]), next(begin.begin(), begin.end() - 1);
  for (std::size_t c = 0; c < cliques.size(); ++c)
    for (const Index i : cliques[c])
      if (i != -1) touching[next[i]++] = static_cast<Index>(c);

  BlockPattern p;
  p.n = n;
  p.col_begin.reserve(static_cast<std::size_t>(n) + 1);
  p.col_begin.push_back(0);
  std::vector<Index> seen(n, -1);
  for (Index j = 0; j < n; ++j) {
    p.row.push_back(j);
    seen[j] = j;
    for (Index t = begin[j]; t < begin[j + 1]; ++t)
      for (const Index i : cliques[touching[t]])
        if (i > j && seen[i] != j) {
          seen[i] = j;
          p.row.push_back(i);
        }
    std::sort(p.row.begin() + p.col_begin.back() + 1, p.row.end());
    p.col_begin.push_back(static_cast<Index>(p.row.size()));
  }
  p.rows = make_rows(n, p.col_begin, p.row);
  return p;
}

BlockPattern make_block_pattern(std::vector<Index> col_begin, std::vector<Index> row) {
  const Index n = static_cast<Index>(col_begin.size()) - 1;
  bool good = n >= 0 && col_begin.front() == 0 && col_begin.back() == static_cast<Index>(row.size());
  for (Index j = 0; good && j < n; ++j) {
    good = col_begin[j] >= 0 && col_begin[j] < col_begin[j + 1] && col_begin[j + 1] <= col_begin[n] &&
           row[col_begin[j]] == j;
    for (Index b = col_begin[j] + 1; good && b < col_begin[j + 1]; ++b)
      good = row[b] > row[b - 1] && row[b] < n;
    if (!good)
      throw Error(
          ErrorKind::kUsage,
          fmt::format("block pattern: column {} must hold its diagonal first, then rows ascending below {}",
                      j, n));
  }
  if (!good)
    throw Error(ErrorKind::kUsage, "block pattern: col_begin must run from 0 to the number of blocks");
  BlockPattern p;
  p.n = n;
  p.col_begin = std::move(col_begin);
  p.row = std::move(row);
  p.rows = make_rows(n, p.col_begin, p.row);
  return p;
}

void multiply(const BlockMatrix& A, const VecX& x, VecX& y) {
  const BlockPattern& p = *A.pattern;
  const BlockRows& r = p.rows;
  if (x.size() != 3 * static_cast<Eigen::Index>(p.n) || r.begin.size() != p.col_begin.size())
    throw Error(ErrorKind::kUsage,
                fmt::format("block matrix times vector: {} entries for {} nodes; the pattern must come from "
                            "make_block_pattern",
                            x.size(), p.n));
  y.resize(x.size());
  // Each row gathers its blocks in a fixed order, so that no thread writes another's entries.
  parallel_for(p.n, 512, [&](std::ptrdiff_t row) {
    const Index i = static_cast<Index>(row);
    Vec3 sum = Vec3::Zero();
    for (Index k = r.begin[i]; k < r.begin[i + 1]; ++k)
      sum.noalias() += A.block(r.block[k]) * node(x, r.col[k]);
    sum.noalias() += A.block(p.col_begin[i]) * node(x, i);
    for (Index b = p.col_begin[i] + 1; b < p.col_begin[i + 1]; ++b)
      sum.noalias() += A.block(b).transpose() * node(x, p.row[b]);
    node(y, i) = sum;
  });
}

}  // namespace limber
