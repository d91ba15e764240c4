#include <limber/methods/conjac/reduced_step.hpp>

#include <limber/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <limber/linalg/dense.hpp>

namespace limber {

TimeRule time_rule(const std::string& name) {
  if (name == "guarded") return TimeRule::kGuarded;
  if (name == "linear-implicit") return TimeRule::kLinearImplicit;
  if (name == "trapezoidal") return TimeRule::kTrapezoidal;
  if (name == "modal") return TimeRule::kModal;
  if (name == "midpoint") return TimeRule::kMidpoint;
  throw Error(ErrorKind::kInput, "/method/time_rule: \"" + name + "\" is not a time rule");
}

void ReducedSystem::prepare() {
  const Eigen::Index c = twists0.size(), n = M.rows() - c;
  if (c == 0) {
    v0 = DenseCholesky<Eigen::Dynamic>(M).solve(momentum);
  } else {
    v0.resize(n + c);
    v0.tail(c) = twists0;
    const VecX rest = momentum.head(n) - M.topRightCorner(n, c) * twists0;
    v0.head(n) = DenseCholesky<Eigen::Dynamic>(M.topLeftCorner(n, n)).solve(rest);
  }
  g_ = force;
  if (fraction > 0) g_ += fraction * h * (k_p + k_w);
}

MatX ReducedSystem::implicit_stiffness(double factor) const {
  MatX out = factor * S;
  if (S_contact.size() > 0 && factor < 1) out += (1 - factor) * S_contact;
  return out;
}

ReducedSystem::Equations ReducedSystem::equations(const Advance& how) const {
  const double a = how.weight, am = damping_mass, bk = damping_stiffness;
  if (how.by == Advance::By::kEq11)
    return {(1 + h * am) * M + h * h * implicit_stiffness(a) + h * bk * S,
            momentum + h * g_ - (a * h * h + h * bk) * k_w - h * am * m_w};
  // M (v1 - v0) = h g - (a h S + C)(y + h w), with y = h((1 - a) v0 + a v1)
  const MatX stiffness = h * implicit_stiffness(a) + bk * S;
  return {(1 + a * h * am) * M + a * h * stiffness, momentum + h * g_ -
                                                        (1 - a) * h * (stiffness * v0 + am * momentum) -
                                                        (a * h * h + h * bk) * k_w - h * am * m_w};
}

VecX ReducedSystem::displacement(const Advance& how, const VecX& v1) const {
  if (how.by == Advance::By::kEq11) return h * v1;
  return h * ((1 - how.weight) * v0 + how.weight * v1);
}

ReducedMotion ReducedSystem::advance(const Advance& how) const {
  if (how.by == Advance::By::kModal) return modal();
  const Equations system = equations(how);
  const VecX v1 = DenseCholesky<Eigen::Dynamic>(system.A).solve(system.rhs);
  return {displacement(how, v1), v1};
}

ImpulseResponse impulse_response(double w2, double decay, double t) {
  const double disc = w2 - decay * decay;
  if (std::abs(disc) * t * t < 1e-12)
    return {t * std::exp(-decay * t), (1 - decay * t) * std::exp(-decay * t)};
  if (disc > 0) {
    const double w = std::sqrt(disc), s = std::exp(-decay * t) * std::sin(w * t) / w;
    return {s, std::exp(-decay * t) * std::cos(w * t) - decay * s};
  }
  const double w = std::sqrt(-disc);
  const double s = (std::exp((w - decay) * t) - std::exp(-(w + decay) * t)) / (2 * w);
  return {s, 0.5 * (std::exp((w - decay) * t) + std::exp(-(w + decay) * t)) - decay * s};
}

ReducedMotion ReducedSystem::modal() const {
  const DenseEigen eigen = symmetric_eigen(S, M);
  const MatX& modes = eigen.vectors;  // modesᵀ M modes = I
  const VecX speed = modes.transpose() * momentum;
  // What held nodes impose is taken at the middle of the step.
  const VecX load = modes.transpose() * (g_ - (0.5 * h + damping_stiffness) * k_w - damping_mass * m_w);
  VecX q(speed.size()), dq(speed.size());
  for (Eigen::Index k = 0; k < q.size(); ++k) {
    const double w2 = std::max(0.0, eigen.values[k]);
    const double decay = 0.5 * (damping_mass + damping_stiffness * w2);
    const auto [s, ds] = impulse_response(w2, decay, h);
    // The response to a unit load is the integral of s; for slow modes its series.
    const double k_load =
        w2 * h * h > 1e-8 ? (1 - ds - 2 * decay * s) / w2 : 0.5 * h * h * (1 - 2 * decay * h / 3);
    q[k] = speed[k] * s + load[k] * k_load;
    dq[k] = speed[k] * ds + load[k] * s;
  }
  return {modes * q, modes * dq};
}

VecX ReducedSystem::force_after(const ReducedMotion& motion) const {
  return g_ - S * motion.displacement - h * k_w;
}

double ReducedSystem::dissipation(const ReducedMotion& motion) const {
  if (damping_mass == 0 && damping_stiffness == 0) return 0;
  const VecX& y = motion.displacement;
  return y.dot(damping_mass * (M * y) + damping_stiffness * (S * y)) / h;
}

ReducedMotion ReducedSystems::advance(const Advance& how) const {
  if (pieces.size() == 1) return pieces.front().advance(how);
  Eigen::Index n = 0, begin = 0;
  for (const ReducedSystem& s : pieces) n += s.M.rows();
  ReducedMotion all{VecX(n), VecX(n)};
  for (const ReducedSystem& s : pieces) {
    const ReducedMotion m = s.advance(how);
    all.displacement.segment(begin, s.M.rows()) = m.displacement;
    all.velocity.segment(begin, s.M.rows()) = m.velocity;
    begin += s.M.rows();
  }
  return all;
}

double ReducedSystems::dissipation(const ReducedMotion& motion) const {
  double sum = 0;
  Eigen::Index begin = 0;
  for (const ReducedSystem& s : pieces) {
    const Eigen::Index n = s.M.rows();
    sum += s.dissipation({motion.displacement.segment(begin, n), motion.velocity.segment(begin, n)});
    begin += n;
  }
  return sum;
}

}  // namespace limber
