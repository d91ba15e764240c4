#include <limber/rigid/bisp.hpp>

#include <limber/core/error.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/qp/anderson.hpp>
#include <limber/qp/friction_qp.hpp>
#include <limber/rigid/friction_report.hpp>
#include <limber/rigid/inertial_motion.hpp>

#include <fmt/core.h>
#include <optional>

namespace limber::rigid {
namespace {

double dot(const Row& r, const VecX& phi) {
  double s = 0;
  if (r.a >= 0) s += r.ja.dot(phi.segment<6>(6 * r.a));
  if (r.b >= 0) s += r.jb.dot(phi.segment<6>(6 * r.b));
  return s;
}

void add(const Row& r, double x, VecX& y) {
  if (r.a >= 0) y.segment<6>(6 * r.a) += x * r.ja;
  if (r.b >= 0) y.segment<6>(6 * r.b) += x * r.jb;
}

// How far inertia and velocities must agree, relative: while friction is sought, and at the end of the step.
constexpr double kLooseInertia = 1e-6, kInertia = 1e-12;
constexpr double kStrong = 0.9;     // friction coefficient
constexpr std::size_t kMemory = 5;  // of the acceleration
constexpr int kPlainSweeps = 8;     // friction solves before the mean is taken
// On the scaled diagonal of the friction QP. Feet that stick can squeeze the floor between them with any
// force: where the mechanism leaves friction undetermined the smallest impulses are taken, as Eq. 3.7 does
// inside a joint. Less than 1e-6 drowns in the rounding of a step with locked motors, and the force between
// the feet, with it the load of the pins, then jumps from sweep to sweep. What sticks creeps with 1e-5 of the
// velocity that friction takes from it in one step.
constexpr double kShare = 1e-5;

// One tangent direction at one point of a joint, loop or contact.
struct Tangent {
  Row row;
  Index surface = -1, point = -1;  // of an inner surface, or
  Index contact = -1;              // of a contact, or
  Index joint = -1;                // dry friction about the axis of a joint
};

class Bisp {
 public:
  Bisp(const Mechanism& m, const std::vector<InnerSurface>& surfaces, const std::vector<Contact>& contacts,
       const External& external, double t, const StepSettings& s, JointState& state)
      : m_(m), surfaces_(surfaces), contacts_(contacts), external_(external), t_(t), s_(s), state_(state) {}

  StepOutcome run() {
    prepare();
    StepOutcome out;
    const bool rubs = !tangents_.empty();
    if (!rubs) {
      out.inertia_settled = solve_rows(b_, kInertia);
    } else {
      start_friction();
      const qp::StaggeredReport report = qp::staggered_projections(
          s_.staggered, [this]() -> const VecX& { return contact(); }, [this] { return friction(); },
          [this](const VecX& f) { return inverse_mass_norm(f); });
      out.converged = report.converged;
      out.iterations = report.iterations;
      out.change = report.change;
      if (s_.published) {
        VecX extra;
        multiply_Jt(m_, motion_, f_alpha_ + f_beta_, extra);
        solver_rows_.solve(b_ + extra, v_, lambda_);
      } else {
        VecX friction;
        multiply_Jt(m_, motion_, f_beta_, friction);
        out.inertia_settled = solve_rows(b_ + friction, kInertia);
      }
    }
    finish(rubs, out);
    return out;
  }

 private:
  void prepare() {
    update_motion(m_, state_.q, state_.v, motion_);
    assemble_system(m_, motion_, state_.q, t_ + s_.h, s_.h, s_.gravity, system_);
    if (external_.force.size()) system_.f_m += external_.force;
    system_.response = external_.response;
    solver_.factor(m_, motion_, system_);
    b_ = reduced_impulse(m_, motion_, system_, s_.h);
    collect_rows(m_, motion_, state_.q, state_.v, t_, s_.h, s_.stabilisation, contacts_, rows_);
    solver_rows_.factor(m_, motion_, solver_, rows_);
    if (!s_.published) {
      // b_ and f_m without the explicit quadratic velocity terms, for which gamma of inertial_motion.hpp
      // stands.
      inertia_.emplace(m_, motion_, state_.q, s_.h, solver_rows_);
      b_ -= inertia_->gamma();
      for (Index i = 0; i < m_.size(); ++i) {
        const LinkMotion& l = motion_.links[at(i)];
        const Vec3 w = l.phi.head<3>();
        system_.f_m.segment<3>(6 * i) += w.cross(l.I * w);
      }
    }
    for (std::size_t i = 0; i < surfaces_.size(); ++i) {
      const InnerSurface& s = surfaces_[i];
      const Pose& pose = motion_.links[at(s.a)].pose;
      for (std::size_t k = 0; k < s.points.size(); ++k)
        for (const Vec3& d : s.points[k].tangents) {
          Tangent tangent;
          tangent.row = inner_row(motion_, s, pose * s.points[k].x, pose.R * d);
          tangent.surface = static_cast<Index>(i);
          tangent.point = static_cast<Index>(k);
          tangents_.push_back(tangent);
        }
    }
    for (Index i = 0; i < m_.size(); ++i)
      if (m_.joints[at(i)].dry_friction > 0) {
        Tangent tangent;
        tangent.row = axis_row(m_, motion_, i);
        tangent.joint = i;
        tangents_.push_back(tangent);
      }
    for (std::size_t i = 0; i < contacts_.size(); ++i) {
      const Contact& c = contacts_[i];
      if (!(c.mu > 0)) continue;
      Vec3 t1, t2;
      rigid::tangents(c.n, t1, t2);
      for (const Vec3& d : {t1, t2}) {
        Tangent tangent;
        tangent.row = sliding_row(motion_, c, d);
        tangent.contact = static_cast<Index>(i);
        tangents_.push_back(tangent);
      }
    }
  }

  bool maximal() const { return s_.published || s_.space == FrictionSpace::kMaximal; }

  // v_ and lambda_ for the right-hand side b, inertia included. False: inertia did not settle.
  bool solve_rows(const VecX& b, double tolerance) {
    const auto solve = [&](const VecX& gamma, const VecX& coasted) -> const VecX& {
      solver_rows_.solve(b + gamma, v_, lambda_, &coasted);
      return v_;
    };
    if (inertia_ && solver_rows_.linear()) {
      solver_rows_.solve(b, kicked_, lambda_);
      const bool settled = inertia_->settle(
          [&](const VecX&, const VecX& coasted) -> const VecX& { return v_ = kicked_ + coasted; }, tolerance);
      if (!rows_.empty()) solver_rows_.solve(b + inertia_->gamma(), v_, lambda_);
      return settled;
    }
    if (inertia_) return inertia_->settle(solve, tolerance);
    solver_rows_.solve(b, v_, lambda_);
    return true;
  }

  // Momentum before the step plus the impulses that are not reactions, 6 per link. The term c is what makes
  // J v1 the velocity after the step: what link axes leave of dJ/dt v.
  void start_friction() {
    if (s_.published) {
      p0_ = s_.h * system_.f_m;
      for (Index i = 0; i < m_.size(); ++i) {
        const LinkMotion& l = motion_.links[at(i)];
        Vec6 c;
        c << Vec3::Zero(), l.phi.head<3>().cross(Vec3(l.phi.tail<3>()));
        p0_.segment<6>(6 * i) += mass_times(m_.links[at(i)], l, l.phi - s_.h * c);
      }
    }
    inverse_.resize(m_.links.size());
    for (Index i = 0; i < m_.size(); ++i) inverse_[at(i)].factor(system_.A[at(i)]);
    if (maximal())
      start_maximal();
    else
      start_reduced();
    find_pairs();
    for (const InnerSurface& surface : surfaces_) strong_ |= surface.mu > kStrong && !s_.published;
  }

  // Unknowns that are the two directions at one point. The paper bounds each alone.
  void find_pairs() {
    pairs_.clear();
    const auto tangent = [&](Eigen::Index u) -> const Tangent& {
      return tangents_[maximal() ? at(static_cast<Index>(u)) : at(first_[at(static_cast<Index>(u))])];
    };
    for (Eigen::Index u = 0; !s_.published && u + 1 < beta_.size(); ++u) {
      const Tangent &a = tangent(u), &b = tangent(u + 1);
      const bool same = a.contact >= 0 ? a.contact == b.contact
                                       : a.surface >= 0 && a.surface == b.surface && a.point == b.point;
      if (same) pairs_.push_back(u++);
    }
  }

  // ---- contact: velocities and reactions with friction held
  // ---------------------------------------------------

  const VecX& contact() {
    VecX friction;
    multiply_Jt(m_, motion_, f_beta_, friction);
    solve_rows(b_ + friction, kLooseInertia);
    joint_impulses();
    distribute();
    return f_alpha_;
  }

  // f_alpha_ of the velocities v_.
  void joint_impulses() {
    multiply_J(m_, motion_, v_, phi_);
    if (inertia_) {
      // So that M phi - p0_ below is the momentum that the link has gained, less the impulse of known forces.
      p0_ = s_.h * system_.f_m - inertia_->p1();
      for (Index i = 0; i < m_.size(); ++i)
        p0_.segment<6>(6 * i) += mass_times(m_.links[at(i)], motion_.links[at(i)],
                                            motion_.links[at(i)].phi + phi_.segment<6>(6 * i));
    }
    // All that the joints give to the links: A phi - momentum and known impulses.
    f_alpha_ = -p0_ - f_beta_;
    for (Index i = 0; i < m_.size(); ++i)
      f_alpha_.segment<6>(6 * i) += system_.A[at(i)] * phi_.segment<6>(6 * i);
    for (const Coupling& c : system_.couplings) {
      f_alpha_.segment<6>(6 * c.a) += c.block * phi_.segment<6>(6 * c.b);
      f_alpha_.segment<6>(6 * c.b) += c.block.transpose() * phi_.segment<6>(6 * c.a);
    }
    if (system_.response.size()) f_alpha_.noalias() += system_.response * v_;
    VecX outside = VecX::Zero(6 * m_.size());
    add_row_impulses(rows_, s_.published ? maximal_impulses() : lambda_, outside);
    f_alpha_ -= outside;
    outside_ = outside;
  }

  // Eq. 3.8b in its dual form: the impulses of the external rows on links that no joint holds.
  VecX maximal_impulses() {
    const auto n = static_cast<Index>(rows_.size());
    VecX free = p0_ + f_beta_;
    for (Index i = 0; i < m_.size(); ++i)
      free.segment<6>(6 * i) = inverse_[at(i)].solve(free.segment<6>(6 * i));
    MatX W = MatX::Zero(n, n);
    VecX g(n), lo = VecX::Constant(n, -INFINITY), hi = VecX::Constant(n, INFINITY), x = VecX::Zero(n);
    for (Index i = 0; i < n; ++i) {
      const Row& r = rows_[at(i)];
      VecX y = VecX::Zero(6 * m_.size());
      add(r, 1, y);
      for (const Index k : {r.a, r.b})
        if (k >= 0) y.segment<6>(6 * k) = inverse_[at(k)].solve(y.segment<6>(6 * k));
      for (Index j = 0; j < n; ++j) W(j, i) = dot(rows_[at(j)], y);
      g[i] = dot(r, free) - r.rhs;
      if (r.unilateral) lo[i] = 0;
      if (r.on_joints()) g[i] = lo[i] = hi[i] = 0;  // a joint row says nothing about free links
    }
    qp::solve_box_qp(W, g, lo, hi, x);
    return x;
  }

  // Sections 3.3.2.2 and 3.3.2.3: reactions per joint, then impulses at its contact points.
  void gather_reactions() {
    reaction_ = f_alpha_;
    for (Index i = m_.size() - 1; i >= 0; --i) {
      const Index parent = m_.joints[at(i)].parent_link;
      if (parent >= 0)
        reaction_.segment<6>(6 * parent) += to_parent(motion_.links[at(i)].arm, reaction_.segment<6>(6 * i));
    }
  }

  void distribute() {
    gather_reactions();
    pressure_.resize(surfaces_.size());
    for (std::size_t i = 0; i < surfaces_.size(); ++i) {
      const InnerSurface& s = surfaces_[i];
      const LinkMotion& l = motion_.links[at(s.a)];
      Vec6 w = Vec6::Zero();
      if (!s.loop)
        w = reaction_.segment<6>(6 * s.a);
      else
        for (std::size_t k = 0; k < rows_.size(); ++k)
          if (rows_[k].kind == RowKind::kLoop && rows_[k].owner == s.owner)
            w += lambda_[static_cast<Eigen::Index>(k)] * rows_[k].ja;
      const VecX a = s_.published ? regularised_multipliers(s, w) : smallest_multipliers(s, l, w);
      VecX& p = pressure_[i];
      p.setZero(static_cast<Eigen::Index>(s.points.size()));
      Eigen::Index r = 0;
      // The smallest impulses push with a on one side and pull with -a on the other. Walls do not pull: the
      // side that pushes takes both. The paper keeps |a| on either side; the sum is the same.
      for (std::size_t k = 0; k < s.points.size(); ++k)
        for (std::size_t n = 0; n < s.points[k].normals.size(); ++n, ++r)
          p[static_cast<Eigen::Index>(k)] += s_.published ? std::abs(a[r]) : 2 * std::max(0.0, a[r]);
    }
  }

  VecX smallest_multipliers(const InnerSurface& s, const LinkMotion& l, const Vec6& w) const {
    const Vec3 r = l.com - l.pose * s.centre;
    Vec6 local;
    local << l.pose.R.transpose() * (w.head<3>() + r.cross(Vec3(w.tail<3>()))),
        l.pose.R.transpose() * w.tail<3>();
    return s.P * local;
  }

  // Eq. 3.7 with the masses of the two links.
  VecX regularised_multipliers(const InnerSurface& s, const Vec6& w) const {
    using Mat12 = Eigen::Matrix<double, 12, 12>;
    Eigen::Matrix<double, 12, 1> f = Eigen::Matrix<double, 12, 1>::Zero();
    Mat12 inverse = Mat12::Zero();
    f.head<6>() = w;
    inverse.topLeftCorner<6, 6>() =
        DenseCholesky<6>(mass_matrix(m_.links[at(s.a)], motion_.links[at(s.a)])).inverse();
    if (s.b >= 0) {
      const Vec3 arm = motion_.links[at(s.a)].com - motion_.links[at(s.b)].com;
      f.tail<6>() = -to_parent(arm, w);
      inverse.bottomRightCorner<6, 6>() =
          DenseCholesky<6>(mass_matrix(m_.links[at(s.b)], motion_.links[at(s.b)])).inverse();
    }
    const Pose& pose = motion_.links[at(s.a)].pose;
    Eigen::Matrix<double, Eigen::Dynamic, 12> N(s.P.rows(), 12);
    Eigen::Index r = 0;
    for (const InnerPoint& p : s.points)
      for (const Vec3& n : p.normals) {
        const Row row = inner_row(motion_, s, pose * p.x, pose.R * n);
        N.row(r++) << row.ja.transpose(), row.jb.transpose();
      }
    const MatX NM = N * inverse;
    MatX H = NM * N.transpose();
    H.diagonal().array() += s_.regularisation;
    return DenseCholesky<Eigen::Dynamic>(H).solve(NM * f);
  }

  // Stands for all points of a pin or slider.
  bool shared(const Tangent& t) const { return t.surface >= 0 && surfaces_[at(t.surface)].one_tangent(); }

  double bound(const Tangent& t) const {
    if (t.joint >= 0) return s_.h * m_.joints[at(t.joint)].dry_friction;
    if (t.contact >= 0) {
      for (std::size_t i = 0; i < rows_.size(); ++i)
        if (rows_[i].kind == RowKind::kContact && rows_[i].owner == t.contact)
          return contacts_[at(t.contact)].mu * std::max(0.0, lambda_[static_cast<Eigen::Index>(i)]);
      return 0;
    }
    return surfaces_[at(t.surface)].mu * pressure_[at(t.surface)][t.point];
  }

  // ---- friction in maximal coordinates (Eq. 3.2): one unknown per tangent
  // -------------------------------------

  void start_maximal() {
    const auto n = static_cast<Index>(tangents_.size());
    f_beta_ = VecX::Zero(6 * m_.size());
    // The warm start was stored in link axes: the force turns with the link.
    if (state_.friction.size() == 6 * m_.size())
      for (Index i = 0; i < m_.size(); ++i) {
        const Mat3& R = motion_.links[at(i)].pose.R;
        f_beta_.segment<3>(6 * i) = R * state_.friction.segment<3>(6 * i);
        f_beta_.segment<3>(6 * i + 3) = R * state_.friction.segment<3>(6 * i + 3);
      }
    beta_ = VecX::Zero(n);
    H_ = MatX::Zero(n, n);
    VecX y = VecX::Zero(6 * m_.size());
    for (Index i = 0; i < n; ++i) {
      const Row& r = tangents_[at(i)].row;
      if (r.a >= 0) y.segment<6>(6 * r.a) = inverse_[at(r.a)].solve(r.ja);
      if (r.b >= 0) y.segment<6>(6 * r.b) = inverse_[at(r.b)].solve(r.jb);
      for (Index j = 0; j < n; ++j) H_(j, i) = dot(tangents_[at(j)].row, y);
      if (r.a >= 0) y.segment<6>(6 * r.a).setZero();
      if (r.b >= 0) y.segment<6>(6 * r.b).setZero();
    }
  }

  void friction_maximal() {
    const auto n = static_cast<Index>(tangents_.size());
    // The velocity without friction, reactions held.
    VecX free = f_beta_;
    if (s_.published) free += outside_;
    for (Index i = 0; i < m_.size(); ++i)
      free.segment<6>(6 * i) = inverse_[at(i)].solve(free.segment<6>(6 * i));
    free = phi_ - free;
    VecX g(n), hi(n);
    for (Index i = 0; i < n; ++i) {
      g[i] = dot(tangents_[at(i)].row, free) - tangents_[at(i)].row.rhs;
      hi[i] = bound(tangents_[at(i)]);
    }
    solve_friction(g, hi);
    f_beta_.setZero();
    for (Index i = 0; i < n; ++i) add(tangents_[at(i)].row, beta_[i], f_beta_);
  }

  // ---- friction in joint velocities
  // ---------------------------------------------------------------------------
  //
  // All tangents of a pin or slider slide alike, so that the joint has one unknown: the sum of its tangential
  // impulses, shared by the points in proportion to their pressure (which is exact while it slides). Balls
  // and contacts keep one unknown per tangent. `first_` lists the tangents that stand for an unknown.

  void start_reduced() {
    first_.clear();
    for (std::size_t i = 0; i < tangents_.size(); ++i) {
      const Tangent& t = tangents_[i];
      if (!shared(t) || t.point == 0) first_.push_back(static_cast<Index>(i));
    }
    const auto n = static_cast<Index>(first_.size());
    std::vector<Row> rows;
    for (const Index k : first_) rows.push_back(tangents_[at(k)].row);
    reduced_.resize(m_.velocities, n);
    MatX Y(m_.velocities, n);
    VecX y = VecX::Zero(6 * m_.size()), x;
    for (Index i = 0; i < n; ++i) {
      y.setZero();
      add(rows[at(i)], 1, y);
      multiply_Jt(m_, motion_, y, x);
      reduced_.col(i) = x;
      Y.col(i) = solver_rows_.response(x);
    }
    H_ = reduced_.transpose() * Y;
    H_ = (0.5 * (H_ + H_.transpose())).eval();
    beta_ = VecX::Zero(n);
    // Inner surfaces keep their places from step to step; contacts come and go and start from zero.
    const Index kept = inner_unknowns();
    if (state_.friction.size() == kept) beta_.head(kept) = state_.friction;
    pressure_.resize(surfaces_.size());
    for (std::size_t i = 0; i < surfaces_.size(); ++i)
      pressure_[i] = VecX::Ones(static_cast<Eigen::Index>(surfaces_[i].points.size()));
    spread();
  }

  Index inner_unknowns() const {
    Index n = 0;
    for (const Index k : first_)
      if (tangents_[at(k)].contact < 0) ++n;
    return n;
  }

  // f_beta from the unknowns.
  void spread() {
    f_beta_ = VecX::Zero(6 * m_.size());
    for (std::size_t u = 0; u < first_.size(); ++u) {
      const double x = beta_[static_cast<Eigen::Index>(u)];
      const Tangent& t = tangents_[at(first_[u])];
      if (!shared(t)) {
        add(t.row, x, f_beta_);
        continue;
      }
      const VecX& p = pressure_[at(t.surface)];
      const double sum = p.sum();
      if (sum > 0)
        for (Index k = 0; k < p.size(); ++k) add(tangents_[at(first_[u] + k)].row, x * p[k] / sum, f_beta_);
    }
  }

  void friction_reduced() {
    const auto n = static_cast<Index>(first_.size());
    VecX g = reduced_.transpose() * v_ - H_ * beta_, hi(n);
    for (Index i = 0; i < n; ++i) {
      const Tangent& t = tangents_[at(first_[at(i)])];
      g[i] -= t.row.rhs;
      hi[i] = shared(t) ? surfaces_[at(t.surface)].mu * pressure_[at(t.surface)].sum() : bound(t);
    }
    solve_friction(g, hi);
    spread();
  }

  bool friction() {
    if (maximal())
      friction_maximal();
    else
      friction_reduced();
    return true;
  }

  void solve_friction(const VecX& g, const VecX& hi) {
    const VecX before = beta_;
    qp::BoxQpOptions options;
    if (!maximal()) options.compliance = kShare;
    const qp::BoxQpReport report = qp::solve_friction_qp(H_, g, hi, pairs_, beta_, options);
    // Friction of a pin or ball also bears load: turned by a right angle and times mu it comes back as
    // pressure, and with mu above 1 plain sweeps swing ever wider. Else, where loads and friction chase each
    // other (a leg that jams), the mean of both settles. With many unknowns per pin plain sweeps converge
    // slowly as it is, and the mean would halve their pace.
    if (strong_) {
      const VecX change = beta_ - before;
      beta_ = before;
      acceleration_.advance(change, H_.diagonal().cwiseProduct(change), beta_);
      qp::into_bounds(hi, pairs_, beta_);
    } else if (!maximal() && ++sweeps_ > kPlainSweeps) {
      beta_ = (0.5 * (beta_ + before)).eval();
    }
    if (!beta_.allFinite())
      throw Error(ErrorKind::kSimulation,
                  fmt::format("joint friction: the quadratic program of {} unknowns failed "
                              "(residual {:g})",
                              g.size(), report.residual));
  }

  double inverse_mass_norm(const VecX& f) const {
    double s = 0;
    for (Index i = 0; i < m_.size(); ++i)
      s += f.segment<6>(6 * i).dot(inverse_[at(i)].solve(f.segment<6>(6 * i)));
    return s;
  }

  // ---- the new state and what is reported
  // ---------------------------------------------------------------------

  void finish(bool rubs, StepOutcome& out) {
    if (!v_.allFinite()) throw Error(ErrorKind::kSimulation, "a joint velocity is not finite");
    const double h = s_.h;
    out.motor = VecX::Zero(m_.velocities);
    out.contact_normal = VecX::Zero(static_cast<Eigen::Index>(contacts_.size()));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double f = lambda_[static_cast<Eigen::Index>(i)] / h;
      if (rows_[i].kind == RowKind::kMotor) {
        out.motor[rows_[i].dof[0]] = f;
        out.motor_work += h * f * v_[rows_[i].dof[0]];
      }
      if (rows_[i].kind == RowKind::kContact) out.contact_normal[rows_[i].owner] = f;
    }
    for (const Joint& j : m_.joints)
      if (j.motor.kind == MotorKind::kTorque) {
        out.motor[j.v_begin] = j.motor.value.at(t_ + h);
        out.motor_work += h * out.motor[j.v_begin] * v_[j.v_begin];
      }
    out.friction_torque = VecX::Zero(static_cast<Eigen::Index>(surfaces_.size()));
    out.load.assign(surfaces_.size(), 0.0);
    out.dry_friction = VecX::Zero(m_.velocities);
    if (rubs) {
      multiply_J(m_, motion_, v_, phi_);
      out.friction_work = f_beta_.dot(phi_);
      for (std::size_t i = 0; i < surfaces_.size(); ++i) out.load[i] = pressure_[i].sum() / h;
      report_friction(out);
      if (maximal()) {
        state_.friction.resize(6 * m_.size());
        for (Index i = 0; i < m_.size(); ++i) {
          const Mat3 Rt = motion_.links[at(i)].pose.R.transpose();
          state_.friction.segment<3>(6 * i) = Rt * f_beta_.segment<3>(6 * i);
          state_.friction.segment<3>(6 * i + 3) = Rt * f_beta_.segment<3>(6 * i + 3);
        }
      } else {
        state_.friction = beta_.head(inner_unknowns());
      }
    }
    if (s_.reactions && !s_.published) {
      if (!rubs) f_beta_ = VecX::Zero(6 * m_.size());
      joint_impulses();
      gather_reactions();
      out.joint_force.resize(3 * m_.size());
      for (Index i = 0; i < m_.size(); ++i)
        out.joint_force.segment<3>(3 * i) = reaction_.segment<3>(6 * i + 3) / h;
    }
    if (inertia_)
      state_.q = VecX(inertia_->q1());
    else
      integrate(m_, v_, h, state_.q);
    state_.v = v_;
    if ((!m_.loops.empty() || !m_.gears.empty()) && s_.stabilisation.project)
      out.loop_error = project_loops(m_, state_.q);
  }

  void report_friction(StepOutcome& out) const {
    std::vector<Vec6> wrench(surfaces_.size(), Vec6::Zero());
    const auto share = [&](const Tangent& t, double x) {
      if (t.surface >= 0) wrench[at(t.surface)] += x * t.row.ja;
      if (t.joint >= 0) out.dry_friction[m_.joints[at(t.joint)].v_begin] = x / s_.h;
    };
    if (maximal()) {
      for (std::size_t i = 0; i < tangents_.size(); ++i)
        share(tangents_[i], beta_[static_cast<Eigen::Index>(i)]);
    } else {
      for (std::size_t u = 0; u < first_.size(); ++u) {
        const Tangent& t = tangents_[at(first_[u])];
        const double x = beta_[static_cast<Eigen::Index>(u)];
        if (!shared(t)) {
          share(t, x);
          continue;
        }
        const VecX& p = pressure_[at(t.surface)];
        for (Index k = 0; k < p.size(); ++k) share(tangents_[at(first_[u] + k)], x * p[k] / p.sum());
      }
    }
    for (std::size_t i = 0; i < surfaces_.size(); ++i)
      out.friction_torque[static_cast<Eigen::Index>(i)] =
          friction_number(m_, motion_, surfaces_[i], wrench[i]) / s_.h;
  }

  const Mechanism& m_;
  const std::vector<InnerSurface>& surfaces_;
  const std::vector<Contact>& contacts_;
  const External& external_;
  double t_;
  const StepSettings& s_;
  JointState& state_;

  Motion motion_;
  System system_;
  SystemSolver solver_;
  std::vector<Row> rows_;
  ConstrainedSolver solver_rows_;
  std::optional<InertialMotion> inertia_;  // none in the published form
  VecX b_;                                 // reduced right-hand side without friction
  VecX v_, phi_;                           // the new velocity, reduced and maximal
  VecX kicked_;                            // the velocity before inertia adds to it
  VecX lambda_;                            // impulses of rows_
  VecX p0_;                                // see start_friction
  VecX f_alpha_;                           // impulses of the joints on the links
  VecX f_beta_;                            // impulses of friction on the links
  VecX outside_;                           // impulses of rows_ on the links
  VecX reaction_;                          // per joint, on its child
  std::vector<VecX> pressure_;             // per surface and point: sum of |multipliers|
  std::vector<Tangent> tangents_;
  std::vector<Index> first_;
  std::vector<Eigen::Index> pairs_;
  MatX H_, reduced_;
  VecX beta_;
  int sweeps_ = 0;       // friction solves so far
  bool strong_ = false;  // a joint has a friction coefficient of about 1 or more
  qp::Anderson acceleration_{kMemory};
  std::vector<DenseCholesky<6>> inverse_;
};

}  // namespace

StepOutcome step_bisp(const Mechanism& m, const std::vector<InnerSurface>& surfaces,
                      const std::vector<Contact>& contacts, const External& external, double t,
                      const StepSettings& settings, JointState& state) {
  return Bisp(m, surfaces, contacts, external, t, settings, state).run();
}

}  // namespace limber::rigid
