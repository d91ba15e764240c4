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
  v0 = DenseCholesky<Eigen::Dynamic>(M).solve(momentum);
  g_ = force;
  if (fraction > 0) g_ += fraction * h * (k_p + k_w);
}

MatX ReducedSystem::implicit_stiffness(double factor) const {
  MatX out = factor * S;
  if (S_contact.size() > 0 && factor < 1) out += (1 - factor) * S_contact;
  return out;
}

void ReducedSystem::linear_implicit_system(double beta, MatX& A, VecX& rhs) const {
  const double s = beta * h * h + h * damping_stiffness;
  A = (1 + h * damping_mass) * M + h * h * implicit_stiffness(beta) + h * damping_stiffness * S;
  rhs = momentum + h * g_ - s * k_w - h * damping_mass * m_w;
}

ReducedMotion ReducedSystem::linear_implicit(double beta) const {
  MatX A;
  VecX rhs;
  linear_implicit_system(beta, A, rhs);
  ReducedMotion m;
  m.velocity = DenseCholesky<Eigen::Dynamic>(A).solve(rhs);
  m.displacement = h * m.velocity;
  return m;
}

ReducedMotion ReducedSystem::theta(double a) const {
  const double am = damping_mass, bk = damping_stiffness;
  // M (v1 - v0) = h g - (a h S + C)(y + h w), with y = h((1 - a) v0 + a v1)
  const MatX stiffness = h * implicit_stiffness(a) + bk * S;
  const MatX A = (1 + a * h * am) * M + a * h * stiffness;
  const VecX rhs = momentum + h * g_ - (1 - a) * h * (stiffness * v0 + am * momentum) -
                   (a * h * h + h * bk) * k_w - h * am * m_w;
  ReducedMotion m;
  m.velocity = DenseCholesky<Eigen::Dynamic>(A).solve(rhs);
  m.displacement = h * ((1 - a) * v0 + a * m.velocity);
  return m;
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
    // q'' + 2 decay q' + w2 q = p with q(0) = 0: s is the response to a unit initial speed, ds its rate.
    const double disc = w2 - decay * decay;
    double s, ds;
    if (std::abs(disc) * h * h < 1e-12) {
      s = h * std::exp(-decay * h);
      ds = (1 - decay * h) * std::exp(-decay * h);
    } else if (disc > 0) {
      const double w = std::sqrt(disc);
      s = std::exp(-decay * h) * std::sin(w * h) / w;
      ds = std::exp(-decay * h) * std::cos(w * h) - decay * s;
    } else {
      const double w = std::sqrt(-disc);
      s = (std::exp((w - decay) * h) - std::exp(-(w + decay) * h)) / (2 * w);
      ds = 0.5 * (std::exp((w - decay) * h) + std::exp(-(w + decay) * h)) - decay * s;
    }
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

namespace {

template <class Rule>
ReducedMotion one_by_one(const std::vector<ReducedSystem>& pieces, Rule&& rule) {
  if (pieces.size() == 1) return rule(pieces.front());
  Eigen::Index n = 0, begin = 0;
  for (const ReducedSystem& s : pieces) n += s.M.rows();
  ReducedMotion all{VecX(n), VecX(n)};
  for (const ReducedSystem& s : pieces) {
    const ReducedMotion m = rule(s);
    all.displacement.segment(begin, s.M.rows()) = m.displacement;
    all.velocity.segment(begin, s.M.rows()) = m.velocity;
    begin += s.M.rows();
  }
  return all;
}

}  // namespace

ReducedMotion ReducedSystems::linear_implicit(double beta) const {
  return one_by_one(pieces, [&](const ReducedSystem& s) { return s.linear_implicit(beta); });
}

ReducedMotion ReducedSystems::theta(double theta) const {
  return one_by_one(pieces, [&](const ReducedSystem& s) { return s.theta(theta); });
}

ReducedMotion ReducedSystems::modal() const {
  return one_by_one(pieces, [](const ReducedSystem& s) { return s.modal(); });
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
