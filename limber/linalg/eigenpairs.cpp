#include <limber/linalg/eigenpairs.hpp>

#include <limber/core/error.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/linalg/tall.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace limber {
namespace {

// Numbers in [-1, 1) that are the same everywhere.
class StartNumbers {
 public:
  double next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<double>(state_ >> 11) * 0x1p-52 - 1;
  }

 private:
  std::uint64_t state_ = 0x9E3779B97F4A7C15u;
};

}  // namespace

// With D = sqrt(M) and y = D w the problem is C y = theta y, C = D (A - shift M)^-1 D symmetric, theta = 1 /
// (gamma - shift). Q grows by blocks, each C times the last one, orthogonal to all of Q (twice), and the
// eigenvectors of T = Q^T C Q give those of C. Nothing is restarted: a shifted inverse needs few vectors.
Eigenpairs smallest_eigenpairs(const VecX& mass, const std::vector<std::uint8_t>& active,
                               const ShiftedSolve& solve, Index count, const EigenOptions& options) {
  const Eigen::Index n = mass.size();
  VecX D = mass.cwiseSqrt();
  Eigen::Index unknowns = 0;
  for (Eigen::Index i = 0; i < n; ++i)
    if (active.empty() || active[static_cast<std::size_t>(i)])
      ++unknowns;
    else
      D[i] = 0;
  if (count < 1 || count > unknowns)
    throw Error(ErrorKind::kInput,
                fmt::format("{} eigenpairs were asked for, but there are {} unknowns", count, unknowns));
  const Eigen::Index most = std::min<Eigen::Index>(unknowns, std::max<Eigen::Index>(options.most, count));
  MatX Q(n, most), T = MatX::Zero(most, most);
  StartNumbers numbers;
  // Adds what is new in `block` to Q and returns the coefficients in the added columns. Where a block has
  // nothing new, Q is invariant and goes on with a vector of numbers, which T then knows nothing of: zeros.
  Eigen::Index size = 0;
  const auto append = [&](MatX block) {
    for (int pass = 0; pass < 2 && size > 0; ++pass)
      subtract_product(Q.leftCols(size), tall_product(Q.leftCols(size), block), block);
    MatX R = MatX::Zero(block.cols(), block.cols());
    const Eigen::Index first = size;
    for (Eigen::Index j = 0; j < block.cols() && size < most; ++j) {
      MatX column = block.col(j);
      const double length = column.norm();
      for (int attempt = 0; attempt < 3; ++attempt) {
        for (int pass = 0; pass < 2 && size > 0; ++pass) {
          const Eigen::Index from = attempt == 0 ? first : 0;
          const MatX c = tall_product(Q.middleCols(from, size - from), column);
          subtract_product(Q.middleCols(from, size - from), c, column);
          if (attempt == 0) R.col(j).head(size - first) += c;
        }
        const double rest = column.norm();
        if (rest > 1e-13 * length && rest > 0) {
          if (attempt == 0) R(size - first, j) = rest;
          Q.col(size++) = column / rest;
          break;
        }
        for (Eigen::Index i = 0; i < n; ++i) column(i, 0) = D[i] > 0 ? numbers.next() : 0;
      }
    }
    return R;
  };

  Eigenpairs out;
  {
    const Eigen::Index given = std::min<Eigen::Index>(options.start.cols(), most / 2);
    MatX start(n, std::min<Eigen::Index>(given + options.block, most));
    if (given > 0) start.leftCols(given) = D.asDiagonal() * options.start.leftCols(given);
    for (Eigen::Index j = given; j < start.cols(); ++j)
      for (Eigen::Index i = 0; i < n; ++i) start(i, j) = D[i] > 0 ? numbers.next() : 0;
    append(start);
  }
  DenseEigen ritz;
  for (Eigen::Index done = 0;;) {
    const Eigen::Index first = done, width = size - done;
    MatX W = D.asDiagonal() * Q.middleCols(first, width);
    solve(W);
    W = D.asDiagonal() * W;
    out.solves += static_cast<int>(width);
    const MatX column = tall_product(Q.leftCols(size), W);
    T.block(0, first, size, width) = column;
    T.block(first, 0, width, first) = column.topRows(first).transpose();
    done = size;
    const MatX R = append(std::move(W));  // size grows
    const bool full = size == done;
    const MatX square = T.topLeftCorner(done, done);
    ritz = symmetric_eigen(MatX((square + square.transpose()) * 0.5));
    if (done >= count) {
      out.error = 0;
      for (Eigen::Index k = done - count; k < done && !full; ++k)
        out.error =
            std::max(out.error, (R * ritz.vectors.col(k).tail(width)).norm() / std::abs(ritz.values[k]));
      if (out.error <= options.tolerance) break;
    }
    if (full && done < unknowns)
      throw Error(ErrorKind::kSimulation,
                  fmt::format("{} eigenpairs: {} vectors did not suffice (residual {:.2g}, wanted {:.2g})",
                              count, done, out.error, options.tolerance));
  }
  const Eigen::Index used = ritz.values.size();
  out.values.resize(count);
  MatX S(used, count);
  for (Index k = 0; k < count; ++k) {
    out.values[k] = options.shift + 1 / ritz.values[used - 1 - k];
    S.col(k) = ritz.vectors.col(used - 1 - k);
  }
  out.vectors = multiplied(Q.leftCols(used), S);
  for (Eigen::Index i = 0; i < n; ++i) out.vectors.row(i) *= D[i] > 0 ? 1 / D[i] : 0;
  for (Index k = 0; k < count; ++k) {
    Eigen::Index largest;
    out.vectors.col(k).cwiseAbs().maxCoeff(&largest);
    if (out.vectors(largest, k) < 0) out.vectors.col(k) *= -1;
  }
  return out;
}

}  // namespace limber
