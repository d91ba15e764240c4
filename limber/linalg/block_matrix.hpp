// A symmetric sparse matrix of 3x3 node blocks; the lower triangle is stored, column by column.
#pragma once

#include <limber/core/types.hpp>

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace limber {

// The blocks below the diagonal once more, by rows: row i holds (col[k], block[k]) for k in
// [begin[i], begin[i+1]), columns ascending. With the columns of the pattern this gives all neighbours of a
// node.
struct BlockRows {
  std::vector<Index> begin;  // n + 1
  std::vector<Index> col;    // node of the block's column, < i
  std::vector<Index> block;  // position of the block in the pattern
};

// Which blocks are stored. Built once per epoch; only values change from step to step.
struct BlockPattern {
  Index n = 0;                   // nodes: the matrix is 3n x 3n
  std::vector<Index> col_begin;  // n + 1: column j holds blocks [col_begin[j], col_begin[j+1])
  std::vector<Index> row;        // node of each block's row, ascending in a column, row[col_begin[j]] == j
  BlockRows rows;                // the same blocks by rows; filled by make_block_pattern

  Index blocks() const { return static_cast<Index>(row.size()); }
  // Position of block (i, j), i >= j, or -1.
  Index find(Index i, Index j) const;
};

// The pattern of a graph: one block per pair of nodes that share one of the `cliques` (elements), and every
// diagonal block. Entries of -1 in a clique are skipped.
BlockPattern make_block_pattern(Index n, std::span<const std::array<Index, 4>> cliques);
// The pattern with these columns: rows ascending, the diagonal first. Throws Error(kUsage) when they are not.
BlockPattern make_block_pattern(std::vector<Index> col_begin, std::vector<Index> row);

struct BlockMatrix {
  std::shared_ptr<const BlockPattern> pattern;
  std::vector<double> values;  // 9 per block, column-major in the block; a diagonal block is stored whole

  explicit BlockMatrix(std::shared_ptr<const BlockPattern> p = nullptr)
      : pattern(std::move(p)), values(pattern ? 9 * pattern->row.size() : 0, 0.0) {}

  Eigen::Map<Mat3> block(Index b) {
    return Eigen::Map<Mat3>(values.data() + 9 * static_cast<std::size_t>(b));
  }
  Eigen::Map<const Mat3> block(Index b) const {
    return Eigen::Map<const Mat3>(values.data() + 9 * static_cast<std::size_t>(b));
  }
};

// y = A x with the whole symmetric matrix. The same bits for any thread count. `x` and `y` must differ.
void multiply(const BlockMatrix& A, const VecX& x, VecX& y);

}  // namespace limber
