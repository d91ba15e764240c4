#include <limber/rigid/dynamics.hpp>

#include <limber/core/error.hpp>
#include <limber/linalg/dense.hpp>

#include <fmt/core.h>

namespace limber::rigid {
namespace {

// Systems with couplings and no more velocities than this are factored densely.
constexpr Index kDenseLimit = 60;

using Mat36 = Eigen::Matrix<double, 3, 6>;

// The velocity of the point at `r` from the centre of mass is P phi.
Mat36 point_rows(const Vec3& r) {
  Mat36 P;
  P << -skew(r), Mat3::Identity();
  return P;
}

struct SpringEnds {
  Vec3 r_a, r_b;  // from the centres of mass [m]
  Vec3 n;         // unit vector from a to b
  double length = 0;
};

Vec3 end_position(const Motion& motion, Index link, const Vec3& point) {
  return link >= 0 ? motion.links[at(link)].pose * point : point;
}

SpringEnds ends_of(const Spring& s, const Motion& motion) {
  const Vec3 x_a = end_position(motion, s.a, s.point_a), x_b = end_position(motion, s.b, s.point_b);
  SpringEnds e;
  e.r_a = x_a - motion.links[at(s.a)].com;
  e.r_b = s.b >= 0 ? Vec3(x_b - motion.links[at(s.b)].com) : Vec3(Vec3::Zero());
  e.length = (x_b - x_a).norm();
  e.n = e.length > 1e-12 ? Vec3((x_b - x_a) / e.length) : Vec3(Vec3::Zero());
  return e;
}

void add_spring(const Spring& s, const Motion& motion, double h, System& system) {
  const SpringEnds e = ends_of(s, motion);
  const double tension = s.stiffness * (e.length - s.rest_length);
  const Mat3 nn = e.n * e.n.transpose();
  // d2E/dx2 of the distance; the part across the spring only where it pulls, so that K stays positive.
  Mat3 K = s.stiffness * nn;
  if (e.length > 1e-12 && tension > 0) K += tension / e.length * (Mat3::Identity() - nn);
  const Mat3 B = h * s.damping * nn + h * h * K;
  const Mat36 Pa = point_rows(e.r_a);
  system.f_m.segment<6>(6 * s.a) += Pa.transpose() * (tension * e.n);
  system.A[at(s.a)] += Pa.transpose() * B * Pa;
  if (s.b < 0) return;
  const Mat36 Pb = point_rows(e.r_b);
  system.f_m.segment<6>(6 * s.b) -= Pb.transpose() * (tension * e.n);
  system.A[at(s.b)] += Pb.transpose() * B * Pb;
  system.couplings.push_back({s.a, s.b, -Pa.transpose() * B * Pb});
}

}  // namespace

void assemble_system(const Mechanism& m, const Motion& motion, const VecX& q, double t, double h,
                     const Vec3& gravity, System& system) {
  system.A.resize(m.links.size());
  system.couplings.clear();
  system.response.resize(0, 0);
  system.R = VecX::Zero(m.velocities);
  system.f_r = VecX::Zero(m.velocities);
  system.f_m.resize(6 * m.size());
  for (Index i = 0; i < m.size(); ++i) {
    const Link& link = m.links[at(i)];
    const LinkMotion& l = motion.links[at(i)];
    const Vec3 w = l.phi.head<3>();
    system.A[at(i)] = mass_matrix(link, l);
    system.A[at(i)].diagonal().array() += h * link.damping;
    system.f_m.segment<6>(6 * i) << -w.cross(l.I * w), link.inertia.mass * gravity;
    const Joint& j = m.joints[at(i)];
    const Index n = velocity_numbers(j.type);
    joint_spring_force(j, q, system.f_r.segment(j.v_begin, n));
    if (j.motor.kind == MotorKind::kTorque) system.f_r[j.v_begin] += j.motor.value.at(t);
    system.R.segment(j.v_begin, n).setConstant(h * j.damping + h * h * j.stiffness);
  }
  for (const Spring& s : m.springs) add_spring(s, motion, h, system);
}

VecX reduced_impulse(const Mechanism& m, const Motion& motion, const System& system, double h) {
  VecX y = h * system.f_m;
  for (Index i = 0; i < m.size(); ++i) {
    const LinkMotion& l = motion.links[at(i)];
    y.segment<6>(6 * i) += mass_times(m.links[at(i)], l, l.phi - h * l.bias);
  }
  VecX b;
  multiply_Jt(m, motion, y, b);
  return b + h * system.f_r;
}

void SystemSolver::factor(const Mechanism& m, const Motion& motion, const System& system) {
  mechanism_ = &m;
  motion_ = &motion;
  system_ = &system;
  dense_.resize(0, 0);
  const bool small = m.velocities <= kDenseLimit;
  if (system.response.size() == 0 && (system.couplings.empty() || !small)) {
    tree_.factor(m, motion, system.A, system.R);
    return;
  }
  dense_.resize(m.velocities, m.velocities);
  VecX x = VecX::Zero(m.velocities), y;
  for (Index c = 0; c < m.velocities; ++c) {
    x[c] = 1;
    multiply(x, y);
    dense_.col(c) = y;
    x[c] = 0;
  }
  dense_ = (0.5 * (dense_ + dense_.transpose())).eval();
  const DenseCholesky<Eigen::Dynamic> llt(dense_);
  if (!llt.ok())
    throw Error(ErrorKind::kSimulation,
                "the joints' mass matrix is not positive definite; look for links of almost "
                "no mass or a position that is not finite");
  dense_ = llt.L();
}

void SystemSolver::multiply(const VecX& x, VecX& y) const {
  VecX phi;
  multiply_J(*mechanism_, *motion_, x, phi);
  VecX w(phi.size());
  for (Index i = 0; i < mechanism_->size(); ++i)
    w.segment<6>(6 * i) = system_->A[at(i)] * phi.segment<6>(6 * i);
  for (const Coupling& c : system_->couplings) {
    w.segment<6>(6 * c.a) += c.block * phi.segment<6>(6 * c.b);
    w.segment<6>(6 * c.b) += c.block.transpose() * phi.segment<6>(6 * c.a);
  }
  if (system_->response.size() > 0) w.noalias() += system_->response * x;
  multiply_Jt(*mechanism_, *motion_, w, y);
  y += system_->R.cwiseProduct(x);
}

void SystemSolver::solve(Eigen::Ref<VecX> b) const {
  iterations_ = 0;
  if (b.size() == 0) return;
  if (dense_.size() > 0) {
    dense_.triangularView<Eigen::Lower>().solveInPlace(b);
    dense_.triangularView<Eigen::Lower>().transpose().solveInPlace(b);
    return;
  }
  if (system_->couplings.empty()) {
    tree_.solve(*mechanism_, *motion_, b);
    return;
  }
  // Preconditioned conjugate gradients.
  VecX x = VecX::Zero(b.size()), r = b, z = r, p, Ap;
  tree_.solve(*mechanism_, *motion_, z);
  p = z;
  double rz = r.dot(z);
  const double enough = 1e-24 * rz;  // a factor 1e-12 in the preconditioner's norm
  while (rz > enough && iterations_ < 10 * b.size() + 100) {
    ++iterations_;
    multiply(p, Ap);
    const double alpha = rz / p.dot(Ap);
    x += alpha * p;
    r -= alpha * Ap;
    z = r;
    tree_.solve(*mechanism_, *motion_, z);
    const double next = r.dot(z);
    p = z + next / rz * p;
    rz = next;
  }
  b = x;
}

Energy measure_energy(const Mechanism& m, const Motion& motion, const VecX& q, const Vec3& gravity) {
  Energy e;
  e.kinetic = kinetic_energy(m, motion);
  e.gravity = gravity_energy(m, motion, gravity);
  for (const Joint& j : m.joints) e.springs += joint_spring_energy(j, q);
  for (const Spring& s : m.springs) {
    const double stretch = ends_of(s, motion).length - s.rest_length;
    e.springs += 0.5 * s.stiffness * stretch * stretch;
  }
  return e;
}

VecX acceleration(const Mechanism& m, const VecX& q, const VecX& v, double t, const Vec3& gravity) {
  Motion motion;
  update_motion(m, q, v, motion);
  System system;
  assemble_system(m, motion, q, t, 0.0, gravity, system);
  VecX y = system.f_m;
  for (Index i = 0; i < m.size(); ++i) {
    const LinkMotion& l = motion.links[at(i)];
    y.segment<6>(6 * i) -= mass_times(m.links[at(i)], l, l.bias) + m.links[at(i)].damping * l.phi;
  }
  for (const Spring& s : m.springs) {
    const SpringEnds e = ends_of(s, motion);
    const Vec3 va = point_velocity(motion.links[at(s.a)].phi, e.r_a);
    const Vec3 vb = s.b >= 0 ? point_velocity(motion.links[at(s.b)].phi, e.r_b) : Vec3(Vec3::Zero());
    const Vec3 f = s.damping * (vb - va).dot(e.n) * e.n;
    y.segment<6>(6 * s.a) += point_wrench(e.r_a, f);
    if (s.b >= 0) y.segment<6>(6 * s.b) -= point_wrench(e.r_b, f);
  }
  VecX b;
  multiply_Jt(m, motion, y, b);
  b += system.f_r;
  for (const Joint& j : m.joints) {
    const Index n = velocity_numbers(j.type);
    b.segment(j.v_begin, n) -= j.damping * v.segment(j.v_begin, n);
  }
  TreeSolver tree;
  tree.factor(m, motion, system.A, system.R);
  tree.solve(m, motion, b);
  return b;
}

void set_rest_lengths(Mechanism& m, const Motion& motion) {
  for (Spring& s : m.springs)
    if (s.rest_length < 0) s.rest_length = ends_of(s, motion).length;
}

}  // namespace limber::rigid
