#include <limber/rigid/inertial_motion.hpp>

#include <limber/qp/anderson.hpp>

#include <cmath>

namespace limber::rigid {
namespace {

constexpr int kMaxIterations = 60;
constexpr double kSameRotation = 1e-31;  // squared, of quaternions
constexpr double kRounding = 1e3;        // times the tolerance: close enough when nothing improves any more
constexpr std::size_t kDifferences = 5;  // differences that the acceleration keeps

Quat quaternion(const VecX& q, Index i) { return {q[i], q[i + 1], q[i + 2], q[i + 3]}; }

}  // namespace

InertialMotion::InertialMotion(const Mechanism& mechanism, const Motion& start, const VecX& q, double h,
                               const ConstrainedSolver& response)
    : m_(mechanism), start_(start), q0_(q), h_(h), response_(response), q1_(q) {
  // The explicit value to begin with.
  VecX y(6 * m_.size());
  for (Index i = 0; i < m_.size(); ++i) {
    const LinkMotion& l = start_.links[at(i)];
    const Vec3 w = l.phi.head<3>();
    y.segment<6>(6 * i) = -h * mass_times(m_.links[at(i)], l, l.bias);
    y.segment<3>(6 * i) -= h * w.cross(l.I * w);
  }
  multiply_Jt(m_, start_, y, gamma_);
}

// q1 for joints that coast from the velocity `kicked` to v1.
void InertialMotion::advance(const VecX& kicked, const VecX& v1) {
  // By h/2 (W_c + W_1), in the child's axes; W_1 needs the rotation at the end.
  const auto turn = [&](Index at_q, Index at_v) {
    const Quat before = quaternion(q0_, at_q);
    const Vec3 w1 = v1.segment<3>(at_v), first = 0.5 * (before.conjugate() * Vec3(kicked.segment<3>(at_v)));
    Quat now = quaternion(q1_, at_q);
    for (int k = 0; k < kMaxIterations; ++k) {
      const Quat last = now;
      now = (before * exp_quat(h_ * (first + 0.5 * (last.conjugate() * w1)))).normalized();
      if ((now.coeffs() - last.coeffs()).squaredNorm() < kSameRotation) break;
    }
    q1_.segment<4>(at_q) << now.w(), now.x(), now.y(), now.z();
    return now;
  };
  for (Index i = 0; i < m_.size(); ++i) {
    const Joint& j = m_.joints[at(i)];
    switch (j.type) {
      case JointType::kSpherical:
        turn(j.q_begin, j.v_begin);
        break;
      case JointType::kFree: {
        // The mean velocity of the centre of mass, so that a free link flies straight.
        const Quat now = turn(j.q_begin + 3, j.v_begin + 3);
        const Vec3 com = m_.links[at(i)].inertia.com;
        const Vec3 r0 = quaternion(q0_, j.q_begin + 3) * com, r1 = now * com;
        const auto velocity = [&](const VecX& v, const Vec3& r) -> Vec3 {
          return v.segment<3>(j.v_begin) + Vec3(v.segment<3>(j.v_begin + 3)).cross(r);
        };
        q1_.segment<3>(j.q_begin) =
            q0_.segment<3>(j.q_begin) + 0.5 * h_ * (velocity(kicked, r0) + velocity(v1, r1)) - (r1 - r0);
        break;
      }
      default: {
        const Index n = velocity_numbers(j.type);
        q1_.segment(j.q_begin, n) =
            q0_.segment(j.q_begin, n) + 0.5 * h_ * (kicked.segment(j.v_begin, n) + v1.segment(j.v_begin, n));
      }
    }
  }
}

VecX InertialMotion::evaluate(const Solve& solve) {
  const VecX& v1 = solve(gamma_, coasted_);
  const VecX kicked = v1 - coasted_;
  advance(kicked, v1);
  update_motion(m_, q1_, v1, end_);
  VecX phi, y, half(6 * m_.size());
  multiply_J(m_, start_, kicked, phi);
  multiply_J(m_, start_, coasted_, y);
  p1_.resize(6 * m_.size());
  kinetic_ = 0;
  for (Index i = 0; i < m_.size(); ++i) {
    const Link& link = m_.links[at(i)];
    const LinkMotion &start = start_.links[at(i)], &end = end_.links[at(i)];
    const Vec6 p0 = mass_times(link, start, phi.segment<6>(6 * i)), p1 = mass_times(link, end, end.phi);
    kinetic_ += p0.dot(phi.segment<6>(6 * i)) + p1.dot(end.phi);
    p1_.segment<6>(6 * i) = p1;
    half.segment<6>(6 * i) = 0.5 * (p0 - p1);
    y.segment<6>(6 * i) = mass_times(link, start, y.segment<6>(6 * i)) + half.segment<6>(6 * i);
  }
  VecX at_start, at_end;
  multiply_Jt(m_, start_, y, at_start);
  multiply_Jt(m_, end_, half, at_end);
  return at_start + at_end;
}

bool InertialMotion::settle(const Solve& solve, double tolerance) {
  qp::Anderson acceleration(kDifferences);
  coasted_ = response_.response(gamma_);
  VecX best_gamma, best_coasted;
  double best = INFINITY;
  int since_best = 0;
  for (int k = 0;; ++k) {
    const VecX f = evaluate(solve) - gamma_;
    const VecX w = response_.response(f);  // the velocity that the residual would add
    const double left = std::sqrt(std::max(0.0, f.dot(w))), size = std::sqrt(kinetic_);
    if (left <= tolerance * size) return true;
    if (k >= kMaxIterations || !std::isfinite(left)) {
      gamma_.setZero();
      coasted_.setZero(gamma_.size());
      q1_ = q0_;
      evaluate(solve);
      return false;
    }
    if (left < best) {
      best = left;
      best_gamma = gamma_;
      best_coasted = coasted_;
      since_best = 0;
    } else if (++since_best > 3 && best <= kRounding * tolerance * size) {
      gamma_ = best_gamma;  // rounding leaves no more
      coasted_ = best_coasted;
      evaluate(solve);
      return true;
    }
    acceleration.advance(f, w, gamma_, &coasted_);
  }
}

}  // namespace limber::rigid
