#include <limber/rigid/sp.hpp>

#include <limber/core/error.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/qp/friction_qp.hpp>
#include <limber/rigid/friction_report.hpp>

#include <fmt/core.h>

#include <limits>

namespace limber::rigid {
namespace {

Pose pose_of(const VecX& x, Index i) {
  const auto s = x.segment<7>(7 * i);
  return {Quat(s[3], s[4], s[5], s[6]).toRotationMatrix(), Vec3(s.head<3>())};
}

// The joint position whose relative pose is nearest to `r` (child in the joint's frame).
void fit_position(const Joint& j, const Pose& r, VecX& q) {
  const auto angle_about = [&](const Vec3& axis) {
    Vec3 t1, t2;
    tangents(axis, t1, t2);
    return std::atan2((r.R * t1).dot(t2) - (r.R * t2).dot(t1), (r.R * t1).dot(t1) + (r.R * t2).dot(t2));
  };
  // The turn nearest to the one q holds, so that q counts revolutions.
  const auto unwound = [](double angle, double near) {
    return angle + 2 * M_PI * std::round((near - angle) / (2 * M_PI));
  };
  const Index k = j.q_begin;
  const auto put_quaternion = [&](Index where) {
    const Quat a(r.R);
    q.segment<4>(where) << a.w(), a.x(), a.y(), a.z();
  };
  switch (j.type) {
    case JointType::kFixed:
      break;
    case JointType::kRevolute:
      q[k] = unwound(angle_about(j.axis), q[k]);
      break;
    case JointType::kPrismatic:
      q[k] = j.axis.dot(r.p);
      break;
    case JointType::kUniversal: {
      // R = R1(axis) R2(axis2): axis2 turns only with R1, axis only with R2.
      const Vec3 third = j.axis.cross(j.axis2);
      const Vec3 a2 = r.R * j.axis2, a1 = r.R.transpose() * j.axis;
      q[k] = unwound(std::atan2(a2.dot(third), a2.dot(j.axis2)), q[k]);
      q[k + 1] = unwound(std::atan2(a1.dot(third), a1.dot(j.axis)), q[k + 1]);
      break;
    }
    case JointType::kSpherical:
      put_quaternion(k);
      break;
    case JointType::kPlanar: {
      Vec3 t1, t2;
      tangents(j.axis, t1, t2);
      q[k] = t1.dot(r.p);
      q[k + 1] = t2.dot(r.p);
      q[k + 2] = unwound(angle_about(j.axis), q[k + 2]);
      break;
    }
    case JointType::kFree:
      q.segment<3>(k) = r.p;
      put_quaternion(k + 3);
      break;
  }
}

struct ContactRow {
  Row row;
  bool inner = false;  // of an inner surface: takes part in friction at `surface`, `point`
  Index surface = -1, point = -1, contact = -1;
  Index joint = -1;  // dry friction of a joint
};

class Sp {
 public:
  Sp(const Mechanism& m, const std::vector<InnerSurface>& surfaces, const std::vector<Contact>& contacts,
     double t, const SpSettings& s, MaximalState& state)
      : m_(m), surfaces_(surfaces), contacts_(contacts), t_(t), s_(s), state_(state) {}

  StepOutcome run() {
    place_links();
    fill_rows();
    fill_tangents();
    unconstrained();
    StepOutcome out;
    const qp::StaggeredReport report = qp::staggered_projections(
        s_.staggered, [this]() -> const VecX& { return contact(); }, [this] { return friction(); },
        [this](const VecX& f) { return inverse_mass_norm(f); });
    out.converged = report.converged;
    out.iterations = report.iterations;
    out.change = report.change;
    finish(out);
    return out;
  }

 private:
  // The links stay where they are; the joints' frames are those of their actual parents, at the positions
  // that fit best.
  void place_links() {
    JointState fitted;
    to_reduced(m_, state_, fitted);
    q_ = fitted.q;
    update_motion(m_, fitted.q, fitted.v, motion_);
    ideal_.resize(m_.links.size());
    free_.resize(m_.links.size());
    A_.resize(m_.links.size());
    for (Index i = 0; i < m_.size(); ++i) {
      LinkMotion& l = motion_.links[at(i)];
      const Joint& j = m_.joints[at(i)];
      const Vec3 lever = l.origin - l.com;
      free_[at(i)].resize(6, l.S.cols());
      for (Eigen::Index c = 0; c < l.S.cols(); ++c)
        free_[at(i)].col(c) << l.S.col(c).head<3>(), point_velocity(l.S.col(c), lever);
      const Pose above = j.parent_link >= 0 ? motion_.links[at(j.parent_link)].pose : Pose{};
      const Pose F = above * j.frame;  // parents come first: this is the actual parent
      ideal_[at(i)] = F * joint_pose(j, q_);
      l.joint_axes = F.R;
      l.pose = pose_of(state_.x, i);
      l.origin = l.pose.p;
      l.com = l.pose * m_.links[at(i)].inertia.com;
      l.I = l.pose.R * m_.links[at(i)].inertia.I * l.pose.R.transpose();
      l.phi = state_.phi.segment<6>(6 * i);
      Mat6 A = mass_matrix(m_.links[at(i)], l);
      A.diagonal().array() += s_.h * m_.links[at(i)].damping;
      A_[at(i)].factor(A);
    }
  }

  void push(const Row& row, bool inner = false, Index surface = -1, Index point = -1, Index contact = -1) {
    rows_.push_back({row, inner, surface, point, contact, -1});
  }

  void fill_rows() {
    const double give_back = s_.stabilisation / s_.h;
    std::vector<std::uint8_t> joint_rubs(m_.links.size(), 0), loop_rubs(m_.loops.size(), 0);
    for (std::size_t i = 0; i < surfaces_.size(); ++i) {
      const InnerSurface& s = surfaces_[i];
      (s.loop ? loop_rubs : joint_rubs)[at(s.owner)] = 1;
      const Pose& a = motion_.links[at(s.a)].pose;
      const Misfit error = misfit(s);
      for (std::size_t k = 0; k < s.points.size(); ++k) {
        const Vec3 x = a * s.points[k].x;
        const Vec3 gap = error.at(x);
        for (const Vec3& n : s.points[k].normals) {
          Row r = inner_row(motion_, s, x, a.R * n);
          r.unilateral = true;
          r.rhs = -give_back * (a.R * n).dot(gap);
          push(r, true, static_cast<Index>(i), static_cast<Index>(k));
        }
      }
    }
    for (Index i = 0; i < m_.size(); ++i) {
      if (!joint_rubs[at(i)]) hold_joint(i, give_back);
      drive_joint(i);
    }
    std::vector<Row> rows;
    std::vector<double> g;
    for (std::size_t i = 0; i < m_.loops.size(); ++i)
      if (!loop_rubs[i]) loop_rows(m_, motion_, static_cast<Index>(i), rows, g);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].rhs = -give_back * g[i];
      push(rows[i]);
    }
    for (std::size_t i = 0; i < contacts_.size(); ++i) {
      const Contact& c = contacts_[i];
      Row r;
      r.kind = RowKind::kContact;
      r.owner = static_cast<Index>(i);
      r.a = c.link;
      r.ja = point_wrench(c.x - motion_.links[at(c.link)].com, c.n);
      r.unilateral = true;
      r.rhs = c.n.dot(c.obstacle_velocity) + (c.gap > 0 ? -c.gap / s_.h : -0.2 * c.gap / s_.h);
      push(r, false, -1, -1, static_cast<Index>(i));
    }
  }

  // How far link a is from where the joint wants it, as a small turn and displacement of the joint's centre.
  // The gap at a point follows linearly, exactly as its velocity does: rows that see the same error in
  // different ways would otherwise squeeze the joint.
  struct Misfit {
    Vec3 turn = Vec3::Zero(), shift = Vec3::Zero(), centre = Vec3::Zero();
    Vec3 at(const Vec3& x) const { return shift + turn.cross(x - centre); }
  };

  Misfit misfit(const InnerSurface& s) const {
    const Pose& a = motion_.links[at(s.a)].pose;
    Misfit e;
    e.centre = a * s.centre;
    if (s.loop) {
      const Loop& l = m_.loops[at(s.owner)];
      const Pose b = l.b >= 0 ? motion_.links[at(l.b)].pose : Pose{};
      e.shift = e.centre - b * l.point_b;
      e.turn = (b.R * l.axis_b).cross(a.R * l.axis_a);
    } else {
      const Pose& ideal = ideal_[at(s.owner)];
      e.shift = e.centre - ideal * s.centre;
      e.turn = log_quat(Quat(Mat3(a.R * ideal.R.transpose())));
    }
    return e;
  }

  // Bilateral rows across the joint's free directions.
  void hold_joint(Index i, double give_back) {
    const Joint& j = m_.joints[at(i)];
    const LinkMotion& l = motion_.links[at(i)];
    const MatX S = free_[at(i)];
    const Eigen::Index n = S.cols();
    if (n == 6) return;
    const MatX Q = n > 0 ? orthogonal_factor(S) : MatX(MatX::Identity(6, 6));
    const Pose& ideal = ideal_[at(i)];
    Vec6 error;
    error << log_quat(Quat(Mat3(l.pose.R * ideal.R.transpose()))), l.pose.p - ideal.p;
    for (Eigen::Index c = n; c < 6; ++c) {
      const Vec3 w = Q.col(c).head<3>(), d = Q.col(c).tail<3>();
      Row r;
      r.a = i;
      r.b = j.parent_link;
      r.ja = point_wrench(l.origin - l.com, d);
      r.ja.head<3>() += w;
      if (r.b >= 0) {
        r.jb = -point_wrench(l.origin - motion_.links[at(r.b)].com, d);
        r.jb.head<3>() -= w;
      }
      r.rhs = -give_back * Q.col(c).dot(error);
      push(r);
    }
  }

  // rate . v of joint i, v being what fits the motion of its two links best.
  Row velocity_row(Index i, const VecX& rate) const {
    const LinkMotion& l = motion_.links[at(i)];
    const MatX S = free_[at(i)];
    const Vec6 w = S * DenseCholesky<Eigen::Dynamic>(S.transpose() * S).solve(rate);
    const Vec3 turn = w.head<3>(), shift = w.tail<3>();
    Row r;
    r.owner = i;
    r.a = i;
    r.b = m_.joints[at(i)].parent_link;
    r.ja = point_wrench(l.origin - l.com, shift);
    r.ja.head<3>() += turn;
    if (r.b >= 0) {
      r.jb = -point_wrench(l.origin - motion_.links[at(r.b)].com, shift);
      r.jb.head<3>() -= turn;
    }
    return r;
  }

  void drive_joint(Index i) {
    const Joint& j = m_.joints[at(i)];
    if (j.motor.kind == MotorKind::kSpeed) {
      Row r = velocity_row(i, VecX::Ones(1));
      r.kind = RowKind::kMotor;
      r.rhs = j.motor.value.at(t_ + s_.h);
      push(r);
    }
    if (j.lower.size() == 0) return;
    const std::vector<LimitedValue> values = limited_values(j, q_);
    for (std::size_t k = 0; k < values.size(); ++k)
      for (const double sign : {1.0, -1.0}) {
        const auto e = static_cast<Eigen::Index>(k);
        const double room = sign > 0 ? values[k].x - j.lower[e] : j.upper[e] - values[k].x;
        if (!std::isfinite(room) || values[k].rate.isZero()) continue;
        Row r = velocity_row(i, sign * values[k].rate.head(velocity_numbers(j.type)));
        r.kind = RowKind::kLimit;
        r.unilateral = true;
        r.rhs = -room / s_.h;
        push(r);
      }
  }

  void fill_tangents() {
    for (std::size_t i = 0; i < surfaces_.size(); ++i) {
      const InnerSurface& s = surfaces_[i];
      const Pose& a = motion_.links[at(s.a)].pose;
      for (std::size_t k = 0; k < s.points.size(); ++k)
        for (const Vec3& d : s.points[k].tangents)
          tangents_.push_back({inner_row(motion_, s, a * s.points[k].x, a.R * d), true, static_cast<Index>(i),
                               static_cast<Index>(k), -1, -1});
    }
    inner_tangents_ = static_cast<Index>(tangents_.size());
    for (Eigen::Index i = 0; i + 1 < inner_tangents_; ++i) {
      const ContactRow &a = tangents_[static_cast<std::size_t>(i)],
                       &b = tangents_[static_cast<std::size_t>(i) + 1];
      if (a.surface == b.surface && a.point == b.point) pairs_.push_back(i++);
    }
    for (Index i = 0; i < m_.size(); ++i)
      if (m_.joints[at(i)].dry_friction > 0)
        tangents_.push_back({axis_row(m_, motion_, i), false, -1, -1, -1, i});
    for (std::size_t i = 0; i < contacts_.size(); ++i) {
      const Contact& c = contacts_[i];
      if (!(c.mu > 0)) continue;
      Vec3 t1, t2;
      rigid::tangents(c.n, t1, t2);
      pairs_.push_back(static_cast<Eigen::Index>(tangents_.size()));
      for (const Vec3& d : {t1, t2})
        tangents_.push_back({sliding_row(motion_, c, d), false, -1, -1, static_cast<Index>(i), -1});
    }
  }

  // M phi + h f: momentum with all forces that are not contact or friction.
  void unconstrained() {
    p0_.resize(6 * m_.size());
    for (Index i = 0; i < m_.size(); ++i) {
      const LinkMotion& l = motion_.links[at(i)];
      const Vec3 w = l.phi.head<3>();
      Vec6 f;
      f << -w.cross(l.I * w), m_.links[at(i)].inertia.mass * s_.gravity;
      p0_.segment<6>(6 * i) = mass_times(m_.links[at(i)], l, l.phi) + s_.h * f;
    }
    // Forces of the joints themselves: springs, dampers, torque motors; explicit here.
    for (Index i = 0; i < m_.size(); ++i) {
      const Joint& j = m_.joints[at(i)];
      const Index n = velocity_numbers(j.type);
      VecX f = VecX::Zero(n);
      joint_spring_force(j, q_, f);
      if (j.motor.kind == MotorKind::kTorque) f[0] += j.motor.value.at(t_ + s_.h);
      if (f.isZero(0) && j.damping == 0) continue;
      for (Index k = 0; k < n; ++k) {
        const Row r = velocity_row(i, VecX::Unit(n, k));
        add(r, s_.h * (f[k] - j.damping * dot(r, state_.phi)), p0_);
      }
    }
    normal_ = quadratic_form(rows_);
    tangential_ = quadratic_form(tangents_);
    alpha_ = VecX::Zero(static_cast<Eigen::Index>(rows_.size()));
    beta_ = VecX::Zero(static_cast<Eigen::Index>(tangents_.size()));
    if (state_.friction.size() == inner_tangents_) beta_.head(inner_tangents_) = state_.friction;
    f_alpha_ = VecX::Zero(6 * m_.size());
    f_beta_ = impulses(tangents_, beta_);
  }

  static double dot(const Row& r, const VecX& phi) {
    double s = 0;
    if (r.a >= 0) s += r.ja.dot(phi.segment<6>(6 * r.a));
    if (r.b >= 0) s += r.jb.dot(phi.segment<6>(6 * r.b));
    return s;
  }
  static void add(const Row& r, double x, VecX& y) {
    if (r.a >= 0) y.segment<6>(6 * r.a) += x * r.ja;
    if (r.b >= 0) y.segment<6>(6 * r.b) += x * r.jb;
  }

  VecX impulses(const std::vector<ContactRow>& rows, const VecX& x) const {
    VecX y = VecX::Zero(6 * m_.size());
    for (std::size_t i = 0; i < rows.size(); ++i) add(rows[i].row, x[static_cast<Eigen::Index>(i)], y);
    return y;
  }

  MatX quadratic_form(const std::vector<ContactRow>& rows) const {
    const auto n = static_cast<Index>(rows.size());
    MatX H = MatX::Zero(n, n);
    for (Index i = 0; i < n; ++i) {
      const Row& r = rows[at(i)].row;
      for (const bool second : {false, true}) {
        const Index link = second ? r.b : r.a;
        if (link < 0) continue;
        const Vec6 y = A_[at(link)].solve(second ? r.jb : r.ja);
        for (Index j = 0; j < n; ++j) {
          const Row& o = rows[at(j)].row;
          if (o.a == link) H(j, i) += o.ja.dot(y);
          if (o.b == link) H(j, i) += o.jb.dot(y);
        }
      }
    }
    return 0.5 * (H + H.transpose());
  }

  VecX velocity(VecX p) const {
    for (Index i = 0; i < m_.size(); ++i) p.segment<6>(6 * i) = A_[at(i)].solve(p.segment<6>(6 * i));
    return p;
  }

  const VecX& contact() {
    const VecX free = velocity(p0_ + f_beta_);
    const auto n = static_cast<Eigen::Index>(rows_.size());
    VecX g(n), lo(n), hi = VecX::Constant(n, std::numeric_limits<double>::infinity());
    for (Eigen::Index i = 0; i < n; ++i) {
      const Row& r = rows_[static_cast<std::size_t>(i)].row;
      g[i] = dot(r, free) - r.rhs;
      lo[i] = r.unilateral ? 0 : -std::numeric_limits<double>::infinity();
    }
    // Walls share a load so that the sum of squares is smallest, as in BISP.
    qp::BoxQpOptions options;
    options.regularisation = n ? 1e-7 * normal_.diagonal().mean() : 0;
    options.compliance = 0;
    const qp::BoxQpReport report = qp::solve_box_qp(normal_, g, lo, hi, alpha_, options);
    if (!alpha_.allFinite())
      throw Error(ErrorKind::kSimulation,
                  fmt::format("staggered projections: the contact QP of {} rows failed (residual {:g})", n,
                              report.residual));
    f_alpha_ = impulses(rows_, alpha_);
    phi_ = free + velocity(f_alpha_);
    return f_alpha_;
  }

  bool friction() {
    const auto n = static_cast<Eigen::Index>(tangents_.size());
    if (n == 0) return false;
    const VecX free = velocity(p0_ + f_alpha_);
    VecX g(n), hi = VecX::Zero(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      const ContactRow& t = tangents_[static_cast<std::size_t>(i)];
      g[i] = dot(t.row, free) - t.row.rhs;
      if (t.joint >= 0) {
        hi[i] = s_.h * m_.joints[at(t.joint)].dry_friction;
        continue;
      }
      double pressure = 0;
      for (std::size_t k = 0; k < rows_.size(); ++k) {
        const ContactRow& r = rows_[k];
        const bool same = t.inner ? r.inner && r.surface == t.surface && r.point == t.point
                                  : r.contact >= 0 && r.contact == t.contact;
        if (same) pressure += alpha_[static_cast<Eigen::Index>(k)];
      }
      hi[i] = pressure * (t.inner ? surfaces_[at(t.surface)].mu : contacts_[at(t.contact)].mu);
    }
    qp::solve_friction_qp(tangential_, g, hi, pairs_, beta_);
    f_beta_ = impulses(tangents_, beta_);
    return true;
  }

  double inverse_mass_norm(const VecX& f) const { return f.dot(velocity(f)); }

  void finish(StepOutcome& out) {
    if (!phi_.allFinite()) throw Error(ErrorKind::kSimulation, "a link velocity is not finite");
    out.friction_work = f_beta_.dot(phi_);
    out.motor = VecX::Zero(m_.velocities);
    out.load.assign(surfaces_.size(), 0.0);
    out.contact_normal = VecX::Zero(static_cast<Eigen::Index>(contacts_.size()));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double f = alpha_[static_cast<Eigen::Index>(i)] / s_.h;
      const ContactRow& r = rows_[i];
      if (r.inner) out.load[at(r.surface)] += f;
      if (r.contact >= 0) out.contact_normal[r.contact] = f;
      if (r.row.kind == RowKind::kMotor) {
        out.motor[m_.joints[at(r.row.owner)].v_begin] = f;
        out.motor_work += s_.h * f * r.row.rhs;
      }
    }
    std::vector<Vec6> wrench(surfaces_.size(), Vec6::Zero());
    for (Index i = 0; i < inner_tangents_; ++i)
      wrench[at(tangents_[at(i)].surface)] += beta_[i] * tangents_[at(i)].row.ja;
    out.friction_torque.resize(static_cast<Eigen::Index>(surfaces_.size()));
    for (std::size_t i = 0; i < surfaces_.size(); ++i)
      out.friction_torque[static_cast<Eigen::Index>(i)] =
          friction_number(m_, motion_, surfaces_[i], wrench[i]) / s_.h;
    out.dry_friction = VecX::Zero(m_.velocities);
    for (std::size_t i = 0; i < tangents_.size(); ++i)
      if (tangents_[i].joint >= 0)
        out.dry_friction[m_.joints[at(tangents_[i].joint)].v_begin] =
            beta_[static_cast<Eigen::Index>(i)] / s_.h;
    state_.friction = beta_.head(inner_tangents_);
    state_.phi = phi_;
    for (Index i = 0; i < m_.size(); ++i) {
      const Vec6 phi = phi_.segment<6>(6 * i);
      const Vec3 com = motion_.links[at(i)].com + s_.h * phi.tail<3>();
      auto x = state_.x.segment<7>(7 * i);
      const Quat turned = (exp_quat(s_.h * phi.head<3>()) * Quat(x[3], x[4], x[5], x[6])).normalized();
      x.head<3>() = com - turned * m_.links[at(i)].inertia.com;
      x.tail<4>() << turned.w(), turned.x(), turned.y(), turned.z();
    }
  }

  const Mechanism& m_;
  const std::vector<InnerSurface>& surfaces_;
  const std::vector<Contact>& contacts_;
  double t_;
  const SpSettings& s_;
  MaximalState& state_;
  VecX q_;                     // fitted joint positions
  Motion motion_;              // actual links, joint frames of the actual parents
  std::vector<Pose> ideal_;    // where each joint wants its child
  std::vector<Columns> free_;  // free directions of each joint, as twists about its origin
  std::vector<DenseCholesky<6>> A_;
  std::vector<ContactRow> rows_, tangents_;
  std::vector<Eigen::Index> pairs_;  // of tangents at one point
  Index inner_tangents_ = 0;
  MatX normal_, tangential_;
  VecX p0_, alpha_, beta_, f_alpha_, f_beta_, phi_;
};

}  // namespace

MaximalState to_maximal(const Mechanism& m, const JointState& state) {
  Motion motion;
  update_motion(m, state.q, state.v, motion);
  MaximalState s;
  s.x.resize(7 * m.size());
  s.phi.resize(6 * m.size());
  for (Index i = 0; i < m.size(); ++i) {
    const LinkMotion& l = motion.links[at(i)];
    const Quat q(l.pose.R);
    s.x.segment<7>(7 * i) << l.pose.p, q.w(), q.x(), q.y(), q.z();
    s.phi.segment<6>(6 * i) = l.phi;
  }
  return s;
}

void to_reduced(const Mechanism& m, const MaximalState& state, JointState& reduced) {
  if (reduced.q.size() != m.positions) reduced.q = initial_positions(m);
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    const Pose above = j.parent_link >= 0 ? pose_of(state.x, j.parent_link) : Pose{};
    fit_position(j, (above * j.frame).inverse() * pose_of(state.x, i), reduced.q);
  }
  // Velocities joint by joint, by least squares in the joint's own columns.
  Motion motion;
  reduced.v = VecX::Zero(m.velocities);
  update_motion(m, reduced.q, reduced.v, motion);
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    const LinkMotion& l = motion.links[at(i)];
    if (l.S.cols() == 0) continue;
    Vec6 relative = state.phi.segment<6>(6 * i);
    if (j.parent_link >= 0) relative -= to_child(l.arm, state.phi.segment<6>(6 * j.parent_link));
    // About the joint's origin, where rotation and translation separate.
    const Vec3 lever = l.origin - l.com;
    MatX S(6, l.S.cols());
    for (Eigen::Index c = 0; c < l.S.cols(); ++c)
      S.col(c) << l.S.col(c).head<3>(), point_velocity(l.S.col(c), lever);
    VecX b(6);
    b.head<3>() = relative.head<3>();
    b.tail<3>() = point_velocity(relative, lever);
    reduced.v.segment(j.v_begin, S.cols()) = least_squares(S, b);
  }
}

double joint_gap(const Mechanism& m, const MaximalState& state) {
  JointState reduced;
  to_reduced(m, state, reduced);
  double worst = 0;
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    if (j.type == JointType::kFree || j.type == JointType::kPlanar || j.type == JointType::kPrismatic)
      continue;
    const Pose above = j.parent_link >= 0 ? pose_of(state.x, j.parent_link) : Pose{};
    worst = std::max(worst, (pose_of(state.x, i).p - above * j.frame.p).norm());
  }
  return worst;
}

StepOutcome step_sp(const Mechanism& m, const std::vector<InnerSurface>& surfaces,
                    const std::vector<Contact>& contacts, double t, const SpSettings& settings,
                    MaximalState& state) {
  return Sp(m, surfaces, contacts, t, settings, state).run();
}

}  // namespace limber::rigid
