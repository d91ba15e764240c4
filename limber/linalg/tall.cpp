#include <limber/linalg/tall.hpp>

#include <limber/core/parallel.hpp>

namespace limber {
namespace {
constexpr Eigen::Index kRowsOfPiece = 2048;
}

MatX tall_product(const Eigen::Ref<const MatX>& A, const Eigen::Ref<const MatX>& B) {
  const Eigen::Index n = A.rows(), pieces = (n + kRowsOfPiece - 1) / kRowsOfPiece;
  std::vector<MatX> part(static_cast<std::size_t>(pieces));
  parallel_ranges(n, kRowsOfPiece, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    part[static_cast<std::size_t>(begin / kRowsOfPiece)].noalias() =
        A.middleRows(begin, end - begin).transpose() * B.middleRows(begin, end - begin);
  });
  MatX sum = MatX::Zero(A.cols(), B.cols());
  for (const MatX& p : part) sum += p;
  return sum;
}

void subtract_product(const Eigen::Ref<const MatX>& A, const MatX& C, Eigen::Ref<MatX> B) {
  parallel_ranges(A.rows(), kRowsOfPiece, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    B.middleRows(begin, end - begin).noalias() -= A.middleRows(begin, end - begin) * C;
  });
}

MatX multiplied(const Eigen::Ref<const MatX>& A, const MatX& C) {
  MatX B(A.rows(), C.cols());
  parallel_ranges(A.rows(), kRowsOfPiece, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    B.middleRows(begin, end - begin).noalias() = A.middleRows(begin, end - begin) * C;
  });
  return B;
}

void multiply_right(Eigen::Ref<MatX> A, const MatX& C) {
  parallel_ranges(A.rows(), kRowsOfPiece, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    A.middleRows(begin, end - begin) = (A.middleRows(begin, end - begin) * C).eval();
  });
}

MatX orthonormalize(MatX& A, double tolerance, std::vector<Index>& kept) {
  MatX R = MatX::Zero(A.cols(), A.cols());
  kept.clear();
  Eigen::Index rank = 0;
  for (Eigen::Index j = 0; j < A.cols(); ++j) {
    MatX column = A.col(j);
    const double length = std::sqrt(tall_product(column, column)(0, 0));
    if (!(length > 0)) continue;
    for (int pass = 0; pass < 2 && rank > 0; ++pass) {
      const MatX c = tall_product(A.leftCols(rank), column);
      subtract_product(A.leftCols(rank), c, column);
      R.col(j).head(rank) += c;
    }
    const double rest = std::sqrt(tall_product(column, column)(0, 0));
    if (rest <= tolerance * length) {
      R.col(j).setZero();
      continue;
    }
    R(rank, j) = rest;
    A.col(rank++) = column / rest;
    kept.push_back(static_cast<Index>(j));
  }
  A.conservativeResize(Eigen::NoChange, rank);
  R.conservativeResize(rank, Eigen::NoChange);
  return R;
}

}  // namespace limber
