#include <limber/methods/conjac/modes.hpp>

#include <limber/core/parallel.hpp>
#include <limber/linalg/eigenpairs.hpp>
#include <limber/linalg/tall.hpp>

#include <limber/linalg/dense.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace limber {
namespace {

// How far modes may have moved in a step without a second sweep. Their own error is smaller than that by
// lambda over the lambda of what is missing in the space.
constexpr double kFollowed = 0.25;
constexpr int kMostSweeps = 3;
constexpr Eigen::Index kModeRows = 2048;  // of a piece of work

// YᵀKY = YᵀMZ and YᵀMY in one pass.
std::pair<MatX, MatX> ritz_matrices(const VecX& mass, const Eigen::Ref<const MatX>& MZ,
                                    const Eigen::Ref<const MatX>& Y) {
  const Eigen::Index n = Y.rows();
  std::vector<std::pair<MatX, MatX>> part(static_cast<std::size_t>((n + kModeRows - 1) / kModeRows));
  parallel_ranges(n, kModeRows, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    const auto y = Y.middleRows(begin, end - begin);
    const MatX my = mass.segment(begin, end - begin).asDiagonal() * y;
    auto& [a, b] = part[static_cast<std::size_t>(begin / kModeRows)];
    a = rows_product(y, MZ.middleRows(begin, end - begin));
    b = rows_product(y, my);
  });
  std::pair<MatX, MatX> sum{MatX::Zero(Y.cols(), Y.cols()), MatX::Zero(Y.cols(), Y.cols())};
  for (const auto& [a, b] : part) {
    sum.first += a;
    sum.second += b;
  }
  return sum;
}

// Rayleigh-Ritz in the span of Y = K^-1 MZ: as K Y = MZ, YᵀKY needs no product with K.
// `gram` is ZᵀMZ.
bool rotate_to_modes(const VecX& mass, const Eigen::Ref<const MatX>& MZ, const Eigen::Ref<const MatX>& Y,
                     const MatX& gram, PieceModes& modes) {
  auto [A, B] = ritz_matrices(mass, MZ, Y);
  if (!A.allFinite() || !B.allFinite()) return false;
  const VecX length = B.diagonal().cwiseSqrt();
  if (!(length.minCoeff() > 0)) return false;
  const VecX unit = length.cwiseInverse();
  const MatX overlap = A.transpose();
  A = unit.asDiagonal() * (0.5 * (A + A.transpose())) * unit.asDiagonal();
  B = unit.asDiagonal() * B * unit.asDiagonal();
  // Vectors that are nearly the same would make noise a mode.
  if (DenseCholesky<Eigen::Dynamic>(B).rcond() < 1e-12) return false;
  const DenseEigen ritz = symmetric_eigen(A, B);
  if (!ritz.ok || !(ritz.values[0] > 0)) return false;
  MatX Q = unit.asDiagonal() * ritz.vectors;
  // Modes go on with the sign that they had: the diagonal of MZᵀ Y Q.
  for (Eigen::Index k = 0; k < Q.cols(); ++k)
    if (overlap.row(k).dot(Q.col(k)) < 0) Q.col(k) *= -1;
  modes.values.head(Q.cols()) = ritz.values;
  // The residual is M (Z q - lambda Y q), and qᵀYᵀMZ q = lambda.
  modes.error = 0;
  for (Index k = 0; k < modes.count; ++k)
    modes.error = std::max(
        modes.error,
        std::sqrt(std::max(0.0, Q.col(k).dot(gram * Q.col(k)) / (modes.values[k] * modes.values[k]) - 1)));
  modes.pull.resize(Y.rows(), modes.count);
  parallel_ranges(Y.rows(), kModeRows, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    const Eigen::Index rows = end - begin;
    multiply_rows(Y.middleRows(begin, rows), Q, modes.shapes.block(begin, 0, rows, Q.cols()));
    multiply_rows(MZ.middleRows(begin, rows), Q.leftCols(modes.count), modes.pull.middleRows(begin, rows));
  });
  return true;
}

}  // namespace

double frequency(double value) { return std::sqrt(std::max(0.0, value)) / (2 * std::numbers::pi); }

PieceModes lowest_modes(const VecX& mass, const std::vector<std::uint8_t>& active,
                        const QuasistaticSolve& solve, const ModeChoice& choice, MatX start) {
  PieceModes out;
  const auto unknowns = static_cast<Index>(std::count(active.begin(), active.end(), std::uint8_t{1}));
  if (unknowns == 0) return out;
  const ShiftedSolve inverse = [&](Eigen::Ref<MatX> B) {
    MatX C = B;
    solve(C);
    B = C;
  };
  EigenOptions options;
  options.tolerance = 1e-8;
  options.start = std::move(start);
  const double limit = std::pow(2 * std::numbers::pi * choice.below, 2);
  Eigenpairs pairs;
  // Those below a frequency: ask for more until one lies above.
  for (Index asked = choice.below > 0 ? std::min<Index>(8, choice.count) : choice.count;; asked *= 2) {
    out.count = std::min({asked, choice.count, unknowns});
    const Index wanted = std::min(out.count + kSpareModes, unknowns);
    pairs = smallest_eigenpairs(mass, active, inverse, wanted, options);
    if (!(choice.below > 0)) break;
    const auto below = static_cast<Index>(
        std::count_if(pairs.values.begin(), pairs.values.end(), [&](double v) { return v < limit; }));
    if (below < wanted || out.count == std::min(choice.count, unknowns)) {
      out.count = std::min(out.count, below);
      break;
    }
  }
  out.available = out.count;
  const Eigen::Index kept = std::min<Eigen::Index>(out.count + kSpareModes, pairs.values.size());
  out.shapes = pairs.vectors.leftCols(kept);
  out.values = pairs.values.head(kept);
  out.error = pairs.error;
  out.pull = mass.asDiagonal() * out.dynamic() * out.values.head(out.count).asDiagonal();
  return out;
}

Eigen::Index swept_vectors(const PieceModes& modes, bool all) {
  if (all) return modes.shapes.cols();
  return modes.count == 0 ? 0 : std::min<Eigen::Index>(modes.count + kSpareModes, modes.shapes.cols());
}

void weighted(const VecX& mass, const Eigen::Ref<const MatX>& A, MatX& out) {
  out.resize(A.rows(), A.cols());
  parallel_ranges(A.rows(), kModeRows, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    out.middleRows(begin, end - begin).noalias() =
        mass.segment(begin, end - begin).asDiagonal() * A.middleRows(begin, end - begin);
  });
}

bool follow_modes(const VecX& mass, const QuasistaticSolve& solve, const Eigen::Ref<const MatX>& first,
                  const Eigen::Ref<const MatX>& swept, bool orthonormal, PieceModes& modes) {
  modes.sweeps = 0;
  if (swept.cols() == 0) {
    modes.pull.resize(mass.size(), 0);
    return true;
  }
  const Eigen::Index count = swept.cols();
  MatX gram = MatX::Identity(count, count);
  if (!orthonormal) gram = tall_product(modes.shapes.leftCols(count), first);
  if (!rotate_to_modes(mass, first, swept, gram, modes)) return false;
  for (modes.sweeps = 1; modes.sweeps < kMostSweeps && modes.error > kFollowed; ++modes.sweeps) {
    MatX loads;
    weighted(mass, modes.shapes.leftCols(count), loads);
    MatX Y = loads;
    solve(Y);
    if (!rotate_to_modes(mass, loads, Y, MatX::Identity(count, count), modes)) return false;
  }
  return true;
}

}  // namespace limber
