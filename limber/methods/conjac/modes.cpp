#include <limber/methods/conjac/modes.hpp>

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

// Rayleigh-Ritz in the span of Y = K^-1 MZ: as K Y = MZ, YᵀKY needs no product with K.
// `gram` is ZᵀMZ.
bool rotate_to_modes(const VecX& mass, const MatX& MZ, const MatX& Y, const MatX& gram, PieceModes& modes) {
  MatX A = tall_product(Y, MZ), B = tall_product(Y, MatX(mass.asDiagonal() * Y));
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
  modes.shapes.leftCols(Q.cols()) = multiplied(Y, Q);
  modes.pull = multiplied(MZ, Q.leftCols(modes.count));
  return true;
}

}  // namespace

double frequency(double value) { return std::sqrt(std::max(0.0, value)) / (2 * std::numbers::pi); }

PieceModes lowest_modes(const VecX& mass, const std::vector<std::uint8_t>& active,
                        const QuasistaticSolve& solve, const ModeChoice& choice) {
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

bool follow_modes(const VecX& mass, const QuasistaticSolve& solve, MatX loads, MatX Y, bool orthonormal,
                  PieceModes& modes) {
  modes.sweeps = 0;
  if (Y.cols() == 0) {
    modes.pull.resize(mass.size(), 0);
    return true;
  }
  MatX gram = MatX::Identity(Y.cols(), Y.cols());
  if (!orthonormal) gram = tall_product(modes.shapes.leftCols(Y.cols()), loads);
  while (rotate_to_modes(mass, loads, Y, gram, modes)) {
    if (++modes.sweeps == kMostSweeps || modes.error <= kFollowed) return true;
    loads = mass.asDiagonal() * modes.shapes.leftCols(Y.cols());
    Y = loads;
    solve(Y);
    gram.setIdentity();
  }
  return false;
}

}  // namespace limber
