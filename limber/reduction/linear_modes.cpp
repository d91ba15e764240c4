#include <limber/reduction/linear_modes.hpp>

#include <limber/core/error.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/fem/dof.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/linalg/eigenpairs.hpp>
#include <limber/linalg/tall.hpp>
#include <limber/mesh/geometry.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {
namespace {

constexpr double kModeStep = 1e-4;         // of the body's size: how far differences of K reach
constexpr double kRigid = 1e-7;            // of the fastest mode's eigenvalue: below it a motion is rigid
constexpr double kDerivativeShift = 1e-4;  // of the first vibration's eigenvalue
constexpr double kNewDirection = 1e-6;     // of a derivative's length that must be new

std::vector<double> no_activation(const fem::ElementInput& mesh) {
  Index channels = 0;
  for (const ElementMaterial& m : mesh.material) channels = std::max(channels, m.activation_channel + 1);
  return std::vector<double>(at(channels), 0.0);
}

// So many modes, with their derivatives or without.
LinearModes modes_of(const fem::ElementInput& mesh, const VecX& mass, const std::vector<std::uint8_t>& pinned,
                     Index modes, bool with_derivatives,
                     const std::function<void(const std::string&, double)>& progress) {
  const auto n = static_cast<Index>(mesh.rest.size());
  const auto say = [&](const char* what, double share) {
    if (progress) progress(what, share);
  };
  VecX X(3 * n), m(3 * n);
  std::vector<std::uint8_t> held(3 * at(n), 0), active(3 * at(n), 1);
  Index free = 0;
  for (Index i = 0; i < n; ++i) {
    node(X, i) = mesh.rest[at(i)];
    node(m, i).setConstant(mass[i]);
    const bool pin = !pinned.empty() && pinned[at(i)];
    free += pin ? 0 : 3;
    for (std::size_t d = 0; d < 3; ++d) {
      held[3 * at(i) + d] = pin;
      active[3 * at(i) + d] = !pin;
    }
  }
  if (modes < 1 || 2 * modes > free)
    throw Error(ErrorKind::kInput,
                fmt::format("{} linear modes of a body with {} degrees of freedom", modes, free));

  say("stiffness", 0);
  const std::shared_ptr<const fem::Elements> elements = fem::make_elements(mesh);
  const std::vector<double> activation = no_activation(mesh);
  fem::Assembled at_rest;
  fem::assemble(*elements, X, activation, at_rest);
  const BlockMatrix& K = at_rest.K;
  const BlockPattern& p = *K.pattern;
  double mean = 0, fastest = 0;
  for (Index j = 0; j < n; ++j) {
    const double k = K.block(p.col_begin[at(j)]).trace() / 3;
    mean += k / n;
    fastest = std::max(fastest, k / mass[j]);
  }
  const fem::DofEliminator eliminator(p);
  Cholesky cholesky(CholeskyOptions{"native", "auto"});
  cholesky.analyze(p);
  const auto factor = [&](double shift) {
    BlockMatrix A = K;
    for (Index j = 0; j < n; ++j) A.block(p.col_begin[at(j)]).diagonal().array() -= shift * mass[j];
    eliminator.eliminate(A, held, mean);
    if (const FactorStatus status = cholesky.factor(A); !status.ok)
      throw Error(
          ErrorKind::kInput,
          fmt::format("the stiffness matrix is not positive definite at node {}: does an element hang "
                      "on by nothing, or has a material no stiffness?",
                      status.node));
  };
  const ShiftedSolve solve = [&](Eigen::Ref<MatX> B) {
    const auto clear = [&] {
      for (std::size_t d = 0; d < held.size(); ++d)
        if (held[d]) B.row(static_cast<Eigen::Index>(d)).setZero();
    };
    clear();
    cholesky.solve_many(B);
    clear();
  };
  say("linear modes", 0.2);
  EigenOptions options;
  options.shift = -1e-2 * fastest / std::pow(static_cast<double>(n), 2.0 / 3.0);
  options.most = std::max<int>(600, 8 * modes);
  options.block = 6;
  factor(options.shift);
  Eigenpairs pairs = smallest_eigenpairs(m, active, solve, modes, options);
  if (!with_derivatives) return {std::move(pairs.vectors), std::move(pairs.values), 0};

  say("modal derivatives", 0.5);
  const double step = kModeStep * bounding_box(mesh.rest).size().norm();
  MatX derivatives(3 * n, modes * (modes + 1) / 2);
  fem::Assembled product;
  Index column = 0;
  for (Index j = 0; j < modes; ++j) {
    const VecX mode = pairs.vectors.col(j);
    const double e = step / mode.cwiseAbs().maxCoeff();
    for (Index i = 0; i <= j; ++i, ++column) {
      const VecX other = pairs.vectors.col(i);
      fem::multiply_stiffness(*elements, X + e * mode, activation, other, product, fem::Projection::kNone);
      derivatives.col(column) = -product.f;
      fem::multiply_stiffness(*elements, X - e * mode, activation, other, product, fem::Projection::kNone);
      derivatives.col(column) += product.f;
    }
    say("modal derivatives", 0.5 + 0.3 * (j + 1) / modes);
  }
  // Held bodies need no shift; of free ones it is far below the first vibration.
  const double last = pairs.values[modes - 1];
  double first = last;
  for (Index k = modes - 1; k >= 0 && pairs.values[k] > kRigid * last; --k) first = pairs.values[k];
  factor(pairs.values[0] > kRigid * last ? 0.0 : -kDerivativeShift * first);
  solve(derivatives);

  // Mass-orthonormal: orthonormal after a multiplication with the root of the masses.
  const VecX root = m.cwiseSqrt();
  MatX all(3 * n, modes + derivatives.cols());
  all.leftCols(modes) = root.asDiagonal() * pairs.vectors;
  all.rightCols(derivatives.cols()) = root.asDiagonal() * derivatives;
  for (Eigen::Index k = modes; k < all.cols(); ++k)
    if (const double length = all.col(k).norm(); length > 0) all.col(k) /= length;
  std::vector<Index> kept;
  orthonormalize(all, kNewDirection, kept);
  LinearModes out;
  const Eigen::Index columns = all.cols() / 3 * 3;
  out.U = root.cwiseInverse().asDiagonal() * all.leftCols(columns);
  out.omega2 = pairs.values;
  out.derivatives = static_cast<Index>(columns) - modes;
  return out;
}

}  // namespace

LinearModes linear_modes(const fem::ElementInput& mesh, const VecX& mass,
                         const std::vector<std::uint8_t>& pinned, Index unknowns,
                         const std::function<void(const std::string&, double)>& progress) {
  const auto modes = static_cast<Index>((std::sqrt(9.0 + 8.0 * unknowns) - 3) / 2);  // k + k (k + 1) / 2
  return modes_of(mesh, mass, pinned, modes, true, progress);
}

MatX vibration_modes(const fem::ElementInput& mesh, const VecX& mass, const std::vector<std::uint8_t>& pinned,
                     Index modes) {
  return modes_of(mesh, mass, pinned, modes, false, {}).U;
}

}  // namespace limber
