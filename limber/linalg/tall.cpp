#include <limber/linalg/tall.hpp>

#include <limber/core/parallel.hpp>
#include <limber/linalg/tall/kernels.hpp>

namespace limber {
namespace {
constexpr Eigen::Index kRowsOfPiece = 2048;
}

MatX rows_product(const Eigen::Ref<const MatX>& A, const Eigen::Ref<const MatX>& B) {
  MatX C(A.cols(), B.cols());
  tall::kernels().transposed_product(A.rows(), A.data(), A.outerStride(), A.cols(), B.data(), B.outerStride(),
                                     B.cols(), C.data());
  return C;
}

void multiply_rows(const Eigen::Ref<const MatX>& A, const Eigen::Ref<const MatX>& C, Eigen::Ref<MatX> X) {
  tall::kernels().product(A.rows(), A.data(), A.outerStride(), A.cols(), C.data(), C.outerStride(), C.cols(),
                          false, X.data(), X.outerStride());
}

MatX tall_product(const Eigen::Ref<const MatX>& A, const Eigen::Ref<const MatX>& B) {
  const Eigen::Index n = A.rows(), pieces = (n + kRowsOfPiece - 1) / kRowsOfPiece;
  std::vector<MatX> part(static_cast<std::size_t>(pieces));
  parallel_ranges(n, kRowsOfPiece, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    part[static_cast<std::size_t>(begin / kRowsOfPiece)] =
        rows_product(A.middleRows(begin, end - begin), B.middleRows(begin, end - begin));
  });
  MatX sum = MatX::Zero(A.cols(), B.cols());
  for (const MatX& p : part) sum += p;
  return sum;
}

void subtract_product(const Eigen::Ref<const MatX>& A, const MatX& C, Eigen::Ref<MatX> B) {
  parallel_ranges(A.rows(), kRowsOfPiece, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    tall::kernels().product(end - begin, A.data() + begin, A.outerStride(), A.cols(), C.data(), C.rows(),
                            C.cols(), true, B.data() + begin, B.outerStride());
  });
}

MatX multiplied(const Eigen::Ref<const MatX>& A, const MatX& C) {
  MatX B(A.rows(), C.cols());
  parallel_ranges(A.rows(), kRowsOfPiece, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    multiply_rows(A.middleRows(begin, end - begin), C, B.middleRows(begin, end - begin));
  });
  return B;
}

void multiply_right(Eigen::Ref<MatX> A, const MatX& C) {
  parallel_ranges(A.rows(), kRowsOfPiece, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    const MatX before = A.middleRows(begin, end - begin);
    multiply_rows(before, C, A.middleRows(begin, end - begin));
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
