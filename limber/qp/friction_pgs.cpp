#include <limber/qp/friction_pgs.hpp>

#include <limber/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace limber::qp {
namespace {

double tangent_compliance(const FrictionProblem& q, Eigen::Index c) {
  return q.tangent_compliance.size() > 0 ? q.tangent_compliance[c] : 0.0;
}

void check_friction(const FrictionProblem& q) {
  const Eigen::Index m = q.target.size();
  if (q.W.rows() != 3 * m || q.W.cols() != 3 * m || q.u.size() != 3 * m || q.compliance.size() != m ||
      q.friction.size() != m || (q.tangent_compliance.size() != m && q.tangent_compliance.size() != 0))
    throw Error(
        ErrorKind::kUsage,
        fmt::format("contact with friction: {} contacts, but a mobility of {} x {}, {} velocities, {} "
                    "compliances and {} coefficients of friction",
                    m, q.W.rows(), q.W.cols(), q.u.size(), q.compliance.size(), q.friction.size()));
  for (Eigen::Index c = 0; c < m; ++c)
    if (!(q.compliance[c] >= 0) || !(q.friction[c] >= 0) || !(tangent_compliance(q, c) >= 0))
      throw Error(ErrorKind::kUsage,
                  fmt::format("contact {}: friction {} and compliance {} must not be negative", c,
                              q.friction[c], q.compliance[c]));
}

// ProjectionSteps of the projections: 1 / W_nn and 1 / the largest eigenvalue of W_tt. A contact that nothing
// can move has none.
struct ProjectionSteps {
  VecX normal, tangential;
};

ProjectionSteps step_sizes(const FrictionProblem& q) {
  const Eigen::Index m = q.target.size();
  ProjectionSteps s{VecX::Zero(m), VecX::Zero(m)};
  const double least = 1e-14 * (m ? q.W.diagonal().maxCoeff() : 0.0);
  for (Eigen::Index c = 0; c < m; ++c) {
    const double n = q.W(3 * c, 3 * c) + q.compliance[c];
    const double a = q.W(3 * c + 1, 3 * c + 1), b = q.W(3 * c + 1, 3 * c + 2), d = q.W(3 * c + 2, 3 * c + 2);
    const double t = 0.5 * (a + d) + std::hypot(0.5 * (a - d), b) + tangent_compliance(q, c);
    if (n > least) s.normal[c] = 1 / n;
    if (t > least) s.tangential[c] = 1 / t;
  }
  return s;
}

// The contact's impulse after its own projections, with w the velocities at the present p. The tangential
// step knows of the new normal impulse.
Vec3 project_contact(const FrictionProblem& q, const ProjectionSteps& s, Eigen::Index c, const Vec3& p,
                     Vec3 w) {
  Vec3 out = p;
  out[0] = std::max(0.0, p[0] - s.normal[c] * (w[0] + q.compliance[c] * p[0] - q.target[c]));
  w += (out[0] - p[0]) * q.W.col(3 * c).segment<3>(3 * c);
  const double limit = q.friction[c] * out[0];
  const Vec2 t = p.tail<2>() - s.tangential[c] * (w.tail<2>() + tangent_compliance(q, c) * p.tail<2>());
  const double length = t.norm();
  out.tail<2>() = length > limit ? Vec2(limit / length * t) : t;
  return out;
}

double contact_residual(const FrictionProblem& q, const ProjectionSteps& s, const VecX& p, const VecX& w) {
  if (!p.allFinite() || !w.allFinite()) return std::numeric_limits<double>::quiet_NaN();
  double worst = 0;
  for (Eigen::Index c = 0; c < q.target.size(); ++c)
    worst = std::max(
        worst, (project_contact(q, s, c, p.segment<3>(3 * c), w.segment<3>(3 * c)) - p.segment<3>(3 * c))
                   .cwiseAbs()
                   .maxCoeff());
  return worst;
}

}  // namespace

double contact_target(double gap, double h, double baumgarte) {
  return gap > 0 ? -gap / h : -baumgarte * gap / h;
}

FrictionPgsReport solve_friction_pgs(const FrictionProblem& q, VecX& p, const FrictionPgsOptions& options) {
  check_friction(q);
  FrictionPgsReport report;
  const Eigen::Index m = q.target.size();
  if (p.size() != 3 * m) p = VecX::Zero(3 * m);
  if (m == 0) {
    report.converged = true;
    return report;
  }
  for (Eigen::Index c = 0; c < m; ++c) {  // into the cones
    p[3 * c] = std::max(0.0, p[3 * c]);
    const double length = p.segment<2>(3 * c + 1).norm(), limit = q.friction[c] * p[3 * c];
    if (length > limit) p.segment<2>(3 * c + 1) *= limit / length;
  }
  const ProjectionSteps s = step_sizes(q);
  VecX w = q.u;
  w.noalias() += q.W * p;
  for (;;) {
    report.residual = contact_residual(q, s, p, w);
    report.converged = report.residual <= options.tolerance * p.cwiseAbs().maxCoeff();
    if (report.converged || report.sweeps == options.max_sweeps || !std::isfinite(report.residual))
      return report;
    ++report.sweeps;
    for (Eigen::Index c = 0; c < m; ++c) {
      const Vec3 step =
          project_contact(q, s, c, p.segment<3>(3 * c), w.segment<3>(3 * c)) - p.segment<3>(3 * c);
      if (step.isZero(0)) continue;
      p.segment<3>(3 * c) += step;
      w.noalias() += q.W.middleCols<3>(3 * c) * step;
    }
  }
}

double friction_residual(const FrictionProblem& q, const VecX& p) {
  check_friction(q);
  return contact_residual(q, step_sizes(q), p, q.u + q.W * p);
}

}  // namespace limber::qp
