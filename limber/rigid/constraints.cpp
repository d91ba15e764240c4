#include <limber/rigid/constraints.hpp>

#include <limber/core/error.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/qp/box_qp.hpp>

#include <fmt/core.h>

#include <limits>

namespace limber::rigid {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
// On the scaled diagonal of W: rows that repeat each other share their impulse.
constexpr double kCompliance = 1e-10;

Vec3 world_point(const Motion& motion, Index link, const Vec3& x) {
  return link >= 0 ? motion.links[at(link)].pose * x : x;
}
Vec3 world_vector(const Motion& motion, Index link, const Vec3& x) {
  return link >= 0 ? Vec3(motion.links[at(link)].pose.R * x) : x;
}

// The velocity of point x_a of link a along d, less that of point x_b of link b.
Row point_row(const Motion& motion, Index a, const Vec3& x_a, Index b, const Vec3& x_b, const Vec3& d) {
  Row r;
  r.a = a;
  r.b = b;
  if (a >= 0) r.ja = point_wrench(x_a - motion.links[at(a)].com, d);
  if (b >= 0) r.jb = -point_wrench(x_b - motion.links[at(b)].com, d);
  return r;
}

}  // namespace

void loop_rows(const Mechanism& m, const Motion& motion, Index loop, std::vector<Row>& rows,
               std::vector<double>& g) {
  const Loop& l = m.loops[at(loop)];
  const Vec3 x_a = world_point(motion, l.a, l.point_a), x_b = world_point(motion, l.b, l.point_b);
  const auto push = [&](Row r, double error) {
    r.kind = RowKind::kLoop;
    r.owner = loop;
    rows.push_back(r);
    g.push_back(error);
  };
  Vec3 axis = Vec3::UnitZ(), t1, t2;
  if (l.kind != LoopKind::kPoint) axis = world_vector(motion, l.a, l.axis_a);
  tangents(axis, t1, t2);
  for (const Vec3& d : {t1, t2}) push(point_row(motion, l.a, x_a, l.b, x_b, d), d.dot(x_a - x_b));
  if (l.kind != LoopKind::kPin) push(point_row(motion, l.a, x_a, l.b, x_b, axis), axis.dot(x_a - x_b));
  if (l.kind == LoopKind::kHinge) {
    // The axes stay parallel: a turns against b only about the axis.
    const Vec3 lean = world_vector(motion, l.b, l.axis_b).cross(axis);
    for (const Vec3& d : {t1, t2}) {
      Row r;
      r.a = l.a;
      r.b = l.b;
      r.ja.head<3>() = d;
      if (l.b >= 0) r.jb.head<3>() = -d;
      push(r, d.dot(lean));
    }
  }
}

Row axis_row(const Mechanism& m, const Motion& motion, Index joint) {
  const Joint& j = m.joints[at(joint)];
  const LinkMotion& l = motion.links[at(joint)];
  const Vec3 axis = l.joint_axes * j.axis;
  if (j.type == JointType::kPrismatic)
    return point_row(motion, joint, l.origin, j.parent_link, l.origin, axis);
  Row r;
  r.a = joint;
  r.b = j.parent_link;
  r.ja.head<3>() = axis;
  if (r.b >= 0) r.jb.head<3>() = -axis;
  return r;
}

Row sliding_row(const Motion& motion, const Contact& c, const Vec3& d) {
  Row r = point_row(motion, c.link, c.x, -1, Vec3::Zero(), d);
  r.kind = RowKind::kContact;
  r.rhs = d.dot(c.obstacle_velocity);
  return r;
}

namespace {

// Joints that are driven at a prescribed speed, at time t.
void motor_rows(const Mechanism& m, double t, std::vector<Row>& rows) {
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    if (j.motor.kind != MotorKind::kSpeed) continue;
    Row r;
    r.kind = RowKind::kMotor;
    r.owner = i;
    r.dof[0] = j.v_begin;
    r.rhs = j.motor.value.at(t);
    rows.push_back(r);
  }
}

void gear_rows(const Mechanism& m, const VecX& q, std::vector<Row>& rows, std::vector<double>& g) {
  for (std::size_t i = 0; i < m.gears.size(); ++i) {
    const Gear& gear = m.gears[i];
    const Joint &a = m.joints[at(gear.a)], &b = m.joints[at(gear.b)];
    Row r;
    r.kind = RowKind::kGear;
    r.owner = static_cast<Index>(i);
    r.dof = {a.v_begin, b.v_begin, -1};
    r.scale = {1, -gear.ratio, 0};
    rows.push_back(r);
    g.push_back(q[a.q_begin] - gear.ratio * q[b.q_begin] - gear.offset);
  }
}

// A limit takes part when the step could reach it.
void limit_rows(const Mechanism& m, const VecX& q, const VecX& v, double h, std::vector<Row>& rows) {
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    if (j.lower.size() == 0) continue;
    const std::vector<LimitedValue> values = limited_values(j, q);
    const Index n = velocity_numbers(j.type);
    for (std::size_t k = 0; k < values.size(); ++k) {
      const LimitedValue& value = values[k];
      const auto e = static_cast<Eigen::Index>(k);
      double speed = 0;
      for (Index c = 0; c < n; ++c) speed += value.rate[c] * v[j.v_begin + c];
      const double reach = 2 * h * std::abs(speed) + 1e-2;  // may accelerate during the step
      const auto push = [&](double sign, double room) {
        if (!(room < reach)) return;
        Row r;
        r.kind = RowKind::kLimit;
        r.owner = i;
        r.unilateral = true;
        r.rhs = -room / h;
        for (Index c = 0; c < n; ++c) {
          r.dof[at(c)] = j.v_begin + c;
          r.scale[at(c)] = sign * value.rate[c];
        }
        rows.push_back(r);
      };
      push(1, value.x - j.lower[e]);
      push(-1, j.upper[e] - value.x);
    }
  }
}

}  // namespace

void collect_rows(const Mechanism& m, const Motion& motion, const VecX& q, const VecX& v, double t, double h,
                  const Stabilisation& stabilisation, const std::vector<Contact>& contacts,
                  std::vector<Row>& rows) {
  rows.clear();
  std::vector<double> g;
  for (std::size_t i = 0; i < m.loops.size(); ++i) loop_rows(m, motion, static_cast<Index>(i), rows, g);
  gear_rows(m, q, rows, g);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].rhs = -stabilisation.rate * g[i];
  motor_rows(m, t + h, rows);
  limit_rows(m, q, v, h, rows);
  for (std::size_t i = 0; i < contacts.size(); ++i) {
    const Contact& c = contacts[i];
    Row r = point_row(motion, c.link, c.x, -1, Vec3::Zero(), c.n);
    r.kind = RowKind::kContact;
    r.owner = static_cast<Index>(i);
    r.unilateral = true;
    // An open gap may close within the step; a penetration is given back slowly, so that it adds no bounce.
    r.rhs = c.n.dot(c.obstacle_velocity) + (c.gap > 0 ? -c.gap / h : -0.2 * c.gap / h);
    rows.push_back(r);
  }
}

void ConstrainedSolver::factor(const Mechanism& m, const Motion& motion, const SystemSolver& solver,
                               const std::vector<Row>& rows) {
  solver_ = &solver;
  rows_ = &rows;
  const auto n = static_cast<Index>(rows.size());
  Gt_.resize(m.velocities, n);
  VecX y = VecX::Zero(6 * m.size()), x;
  for (Index i = 0; i < n; ++i) {
    const Row& r = rows[at(i)];
    if (r.on_joints()) {
      Gt_.col(i).setZero();
      for (std::size_t k = 0; k < r.dof.size(); ++k)
        if (r.dof[k] >= 0) Gt_(r.dof[k], i) += r.scale[k];
      continue;
    }
    if (r.a >= 0) y.segment<6>(6 * r.a) += r.ja;
    if (r.b >= 0) y.segment<6>(6 * r.b) += r.jb;
    multiply_Jt(m, motion, y, x);
    Gt_.col(i) = x;
    if (r.a >= 0) y.segment<6>(6 * r.a).setZero();
    if (r.b >= 0) y.segment<6>(6 * r.b).setZero();
  }
  Y_ = Gt_;
  for (Index i = 0; i < n; ++i) solver.solve(Y_.col(i));
  W_ = Gt_.transpose() * Y_;
  W_ = (0.5 * (W_ + W_.transpose())).eval();
  idle_.assign(rows.size(), 0);
  bilateral_.clear();
  unilateral_ = false;
  const double largest = n ? W_.diagonal().maxCoeff() : 0;
  for (Index i = 0; i < n; ++i) {
    // Out-of-plane rows of a planar mechanism move nothing; their impulse is undefined and left at zero.
    idle_[at(i)] = W_(i, i) <= 1e-13 * largest;
    if (rows[at(i)].unilateral)
      unilateral_ = true;
    else if (!idle_[at(i)])
      bilateral_.push_back(i);
  }
  const auto nb = static_cast<Index>(bilateral_.size());
  MatX B(nb, nb);
  for (Index c = 0; c < nb; ++c)
    for (Index r = 0; r < nb; ++r) B(r, c) = W_(bilateral_[at(r)], bilateral_[at(c)]);
  for (Index c = 0; c < nb; ++c) B(c, c) *= 1 + kCompliance;
  if (nb > 0) {
    const DenseCholesky<Eigen::Dynamic> llt(B);
    if (!llt.ok())
      throw Error(ErrorKind::kSimulation,
                  "the loop closures, gears and motors contradict each other: their rows have no "
                  "common solution; remove one of them");
    bilateral_factor_ = llt.L();
  } else {
    bilateral_factor_.resize(0, 0);
  }
}

void ConstrainedSolver::solve_bilateral(const VecX& b, VecX& v, VecX& lambda) const {
  v = b;
  solver_->solve(v);
  const Index n = rows();
  if (lambda.size() != n) lambda = VecX::Zero(n);
  const auto nb = static_cast<Index>(bilateral_.size());
  for (Index i = 0; i < n; ++i)
    if ((*rows_)[at(i)].unilateral && lambda[i] != 0) v += lambda[i] * Y_.col(i);
  if (nb == 0) return;
  VecX x(nb);
  for (Index i = 0; i < nb; ++i) {
    const Index k = bilateral_[at(i)];
    x[i] = (*rows_)[at(k)].rhs - Gt_.col(k).dot(v);
  }
  bilateral_factor_.triangularView<Eigen::Lower>().solveInPlace(x);
  bilateral_factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(x);
  for (Index i = 0; i < nb; ++i) {
    const Index k = bilateral_[at(i)];
    lambda[k] = x[i];
    v += x[i] * Y_.col(k);
  }
}

VecX ConstrainedSolver::response(const VecX& b) const {
  VecX v = b;
  solver_->solve(v);
  const auto nb = static_cast<Index>(bilateral_.size());
  if (nb == 0) return v;
  VecX x(nb);
  for (Index i = 0; i < nb; ++i) x[i] = -Gt_.col(bilateral_[at(i)]).dot(v);
  bilateral_factor_.triangularView<Eigen::Lower>().solveInPlace(x);
  bilateral_factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(x);
  for (Index i = 0; i < nb; ++i) v += x[i] * Y_.col(bilateral_[at(i)]);
  return v;
}

void ConstrainedSolver::solve(const VecX& b, VecX& v, VecX& lambda, const VecX* coasted) const {
  if (!unilateral_) {
    solve_bilateral(b, v, lambda);
    return;
  }
  v = b;
  solver_->solve(v);
  const Index n = rows();
  if (lambda.size() != n) lambda = VecX::Zero(n);
  VecX g(n), lo(n), hi(n);
  for (Index i = 0; i < n; ++i) {
    const Row& r = (*rows_)[at(i)];
    g[i] = Gt_.col(i).dot(v) - r.rhs;
    if (r.unilateral && coasted) g[i] -= 0.5 * Gt_.col(i).dot(*coasted);
    lo[i] = r.unilateral ? 0.0 : -kInf;
    hi[i] = kInf;
    if (idle_[at(i)]) g[i] = lo[i] = hi[i] = 0;
  }
  qp::BoxQpOptions options;
  options.compliance = kCompliance;
  const qp::BoxQpReport report = qp::solve_box_qp(W_, g, lo, hi, lambda, options);
  if (!report.converged || !lambda.allFinite())
    throw Error(ErrorKind::kSimulation,
                fmt::format("contact and loop impulses: the quadratic program of {} rows did not "
                            "converge (residual {:g})",
                            n, report.residual));
  v.noalias() += Y_ * lambda;
}

void add_row_impulses(const std::vector<Row>& rows, const VecX& lambda, VecX& y) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    const double x = lambda[static_cast<Eigen::Index>(i)];
    if (r.a >= 0) y.segment<6>(6 * r.a) += x * r.ja;
    if (r.b >= 0) y.segment<6>(6 * r.b) += x * r.jb;
  }
}

double project_loops(const Mechanism& m, VecX& q, int max_iterations) {
  double worst = 0, before = kInf;
  const VecX zero = VecX::Zero(m.velocities);
  Motion motion;
  System system;
  SystemSolver solver;
  ConstrainedSolver constrained;
  for (int k = 0;; ++k) {
    update_motion(m, q, zero, motion);
    std::vector<Row> rows;
    std::vector<double> g;
    for (std::size_t i = 0; i < m.loops.size(); ++i) loop_rows(m, motion, static_cast<Index>(i), rows, g);
    gear_rows(m, q, rows, g);
    worst = 0;
    double size = 0;
    for (std::size_t i = 0; i < g.size(); ++i) {
      rows[i].rhs = -g[i];
      worst = std::max(worst, std::abs(g[i]));
    }
    for (const LinkMotion& l : motion.links) size = std::max(size, l.arm.cwiseAbs().maxCoeff());
    // Rounding level, or no progress any more.
    if (worst <= 1e-13 * size || k >= max_iterations || (worst < 1e-9 * size && worst > 0.5 * before))
      return worst;
    before = worst;
    const std::size_t loops = rows.size();
    motor_rows(m, 0, rows);
    for (std::size_t i = loops; i < rows.size(); ++i) rows[i].rhs = 0;  // they stay where they are
    assemble_system(m, motion, q, 0, 0, Vec3::Zero(), system);
    solver.factor(m, motion, system);
    constrained.factor(m, motion, solver, rows);
    VecX step, lambda;
    constrained.solve_bilateral(zero, step, lambda);
    // A step of more than half a radian leaves the region where the linear rows mean anything.
    const double largest = step.cwiseAbs().maxCoeff();
    integrate(m, step, largest > 0.5 ? 0.5 / largest : 1.0, q);
  }
}

void close_loops(Mechanism& m, VecX& q) {
  if (m.loops.empty() && m.gears.empty()) return;
  Motion motion;
  update_motion(m, q, VecX::Zero(m.velocities), motion);
  for (Loop& l : m.loops) {
    const Vec3 axis = world_vector(motion, l.a, l.axis_a);
    l.axis_b = l.b >= 0 ? Vec3(motion.links[at(l.b)].pose.R.transpose() * axis) : axis;
  }
  project_loops(m, q, 100);
  update_motion(m, q, VecX::Zero(m.velocities), motion);
  std::string faults;
  for (std::size_t i = 0; i < m.loops.size(); ++i) {
    const Loop& l = m.loops[i];
    std::vector<Row> rows;
    std::vector<double> g;
    loop_rows(m, motion, static_cast<Index>(i), rows, g);
    double gap = 0;
    for (const double x : g) gap = std::max(gap, std::abs(x));
    double size = 1e-12;
    for (const Index link : {l.a, l.b})
      if (link >= 0) size = std::max(size, motion.links[at(link)].arm.norm());
    if (gap > 1e-8 * size)
      faults += fmt::format(
          "\n  loop \"{}\" between \"{}\" and \"{}\" cannot close: {:.3g} m remain at the best position "
          "found; check its points, or start nearer to the closed position",
          l.name, l.link_a, l.link_b, gap);
  }
  std::vector<Row> rows;
  std::vector<double> g;
  gear_rows(m, q, rows, g);
  for (std::size_t i = 0; i < g.size(); ++i)
    if (std::abs(g[i]) > 1e-8)
      faults += fmt::format(
          "\n  gear \"{}\" between joints \"{}\" and \"{}\" does not fit: {:.3g} remain at the best position "
          "found",
          m.gears[i].name, m.gears[i].joint_a, m.gears[i].joint_b, g[i]);
  if (!faults.empty()) throw Error(ErrorKind::kInput, "the mechanism cannot be assembled:" + faults);
}

}  // namespace limber::rigid
