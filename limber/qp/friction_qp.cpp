#include <limber/qp/friction_qp.hpp>

#include <algorithm>
#include <cmath>

namespace limber::qp {
namespace {

constexpr int kSweeps = 20000;
constexpr double kTolerance = 1e-10;  // of the largest bound
constexpr int kTurns = 30;            // box problems before sweeps take over
constexpr double kOnCircle = 1e-6;    // relative: so near the circle its curvature counts

// One step size per pair: the larger of its two entries, so that the projection is along the gradient.
VecX step_sizes(const MatX& H, const std::vector<Eigen::Index>& pairs) {
  const double least = H.rows() ? 1e-14 * H.diagonal().cwiseAbs().maxCoeff() : 0;
  VecX d = H.diagonal().cwiseMax(least > 0 ? least : 1.0);
  for (const Eigen::Index i : pairs) d.segment<2>(i).setConstant(d.segment<2>(i).maxCoeff());
  return d;
}

// Projected Gauss-Seidel, pair by pair: slow, and sure.
int sweep(const MatX& H, const VecX& g, const VecX& bound, const std::vector<Eigen::Index>& pairs,
          double enough, int most, VecX& x) {
  const Eigen::Index n = g.size();
  std::vector<std::uint8_t> size(static_cast<std::size_t>(n), 1);
  for (const Eigen::Index i : pairs) {
    size[static_cast<std::size_t>(i)] = 2;
    size[static_cast<std::size_t>(i) + 1] = 0;
  }
  const VecX d = step_sizes(H, pairs);
  for (int k = 0; k < most; ++k) {
    double moved = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto m = static_cast<Eigen::Index>(size[static_cast<std::size_t>(i)]);
      if (m == 0) continue;
      VecX y = x.segment(i, m);
      // 2 d is at least the largest eigenvalue of the pair's block.
      y -= (H.middleRows(i, m) * x + g.segment(i, m)) / (static_cast<double>(m) * d[i]);
      const double length = y.norm();
      if (length > bound[i]) y *= bound[i] / length;
      moved = std::max(moved, (y - x.segment(i, m)).cwiseAbs().maxCoeff());
      x.segment(i, m) = y;
    }
    if (moved <= enough) return k + 1;
  }
  return most;
}

}  // namespace

void into_bounds(const VecX& bound, const std::vector<Eigen::Index>& pairs, VecX& x) {
  const VecX free = x;
  x = x.cwiseMin(bound).cwiseMax(-bound);
  for (const Eigen::Index i : pairs) {
    const double size = free.segment<2>(i).norm();
    x.segment<2>(i) = (size > bound[i] ? bound[i] / size : 1.0) * free.segment<2>(i);
  }
}

double friction_qp_residual(const MatX& H, const VecX& g, const VecX& bound,
                            const std::vector<Eigen::Index>& pairs, const VecX& x) {
  if (g.size() == 0) return 0;
  VecX y = x - (H * x + g).cwiseQuotient(step_sizes(H, pairs));
  into_bounds(bound, pairs, y);
  return (y - x).cwiseAbs().maxCoeff();
}

BoxQpReport solve_friction_qp(const MatX& H, const VecX& g, const VecX& bound,
                              const std::vector<Eigen::Index>& pairs, VecX& x, const BoxQpOptions& options) {
  if (pairs.empty()) return solve_box_qp(H, g, -bound, bound, x, options);
  // The compliance belongs to H, whatever axes it is looked at in.
  MatX A = H;
  VecX soft = options.compliance * step_sizes(H, pairs);
  soft.array() += options.regularisation;
  A.diagonal() += soft;
  BoxQpOptions box = options;
  box.regularisation = 0;
  box.compliance = std::min(options.compliance, 1e-12);

  into_bounds(bound, pairs, x);
  const double enough = kTolerance * (bound.size() ? bound.maxCoeff() : 0.0);
  BoxQpReport report;
  report.solver = "disks";
  MatX turned;
  VecX best = x;
  double least = INFINITY;
  for (int k = 0; k < kTurns; ++k) {
    const VecX slip = A * x + g;
    // Axes of every pair: along its impulse, or against its slip while it has none.
    MatX T = MatX::Identity(g.size(), g.size());
    VecX curvature = VecX::Zero(g.size());
    for (const Eigen::Index i : pairs) {
      Vec2 d = x.segment<2>(i);
      if (!(d.norm() > kOnCircle * bound[i])) d = -slip.segment<2>(i);
      if (!(d.norm() > 0)) d = Vec2::UnitX();
      d.normalize();
      T.block<2, 2>(i, i) << d[0], -d[1], d[1], d[0];
      if (bound[i] > 0 && x.segment<2>(i).norm() > (1 - kOnCircle) * bound[i])
        curvature[i + 1] = std::max(0.0, -slip.segment<2>(i).dot(d)) / bound[i];
    }
    turned = T.transpose() * A * T;
    turned.diagonal() += curvature;
    VecX y = T.transpose() * x;
    const BoxQpReport inner = solve_box_qp(turned, T.transpose() * g, -bound, bound, y, box);
    report.iterations += inner.iterations;
    x = T * y;
    if (!x.allFinite()) break;
    into_bounds(bound, pairs, x);
    report.residual = friction_qp_residual(A, g, bound, pairs, x);
    if (report.residual < least) {
      least = report.residual;
      best = x;
    }
    if (report.residual <= enough) {
      report.converged = true;
      return report;
    }
  }
  x = best;
  report.solver = "sweeps";
  report.iterations += sweep(A, g, bound, pairs, 0.01 * enough, kSweeps, x);
  report.residual = friction_qp_residual(A, g, bound, pairs, x);
  report.converged = report.residual <= 100 * enough;
  return report;
}

}  // namespace limber::qp
