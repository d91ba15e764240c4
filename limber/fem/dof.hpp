// Fixed degrees of freedom: taken out of a system by editing values, never the pattern.
#pragma once

#include <limber/linalg/block_matrix.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace limber::fem {

// Knows the rows of a lower-triangular pattern; build one per pattern. `fixed` has 3n entries, 1 where the
// degree of freedom is fixed.
class DofEliminator {
 public:
  explicit DofEliminator(const BlockPattern& pattern);

  // Sets the rows and columns of the fixed degrees of freedom to zero and their diagonal entries to
  // `diagonal`.
  void eliminate(BlockMatrix& A, std::span<const std::uint8_t> fixed, double diagonal) const;

  // y = A (v on the fixed degrees of freedom, 0 elsewhere), with A as it was before elimination.
  void multiply_fixed(const BlockMatrix& A, std::span<const std::uint8_t> fixed, const VecX& v,
                      VecX& y) const;

 private:
  void check(const BlockMatrix& A, std::size_t entries) const;

  Index n_ = 0;
  std::vector<Index> row_begin_;  // blocks left of the diagonal, row by row
  std::vector<Index> row_block_, row_column_;
};

}  // namespace limber::fem
