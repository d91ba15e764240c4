// Products of tall matrices, in parallel over pieces of rows and summed in a fixed order.
#pragma once

#include <limber/core/types.hpp>

#include <vector>

namespace limber {

// A^T B
MatX tall_product(const Eigen::Ref<const MatX>& A, const Eigen::Ref<const MatX>& B);
// B -= A C
void subtract_product(const Eigen::Ref<const MatX>& A, const MatX& C, Eigen::Ref<MatX> B);
// A <- A C, C square
void multiply_right(Eigen::Ref<MatX> A, const MatX& C);
// The same without change of A.
MatX multiplied(const Eigen::Ref<const MatX>& A, const MatX& C);

// A^T B and X = A C of a piece of the rows, by the calling thread.
MatX rows_product(const Eigen::Ref<const MatX>& A, const Eigen::Ref<const MatX>& B);
void multiply_rows(const Eigen::Ref<const MatX>& A, const Eigen::Ref<const MatX>& C, Eigen::Ref<MatX> X);

// Makes the columns of A orthonormal from left to right (Gram-Schmidt, each column twice) and leaves out
// those of which less than `tolerance` of their length is new. Returns R with A_before (kept columns) =
// A_after R in its columns, one per column of A_before; columns left out have zeros. `kept` receives their
// numbers.
MatX orthonormalize(MatX& A, double tolerance, std::vector<Index>& kept);

}  // namespace limber
