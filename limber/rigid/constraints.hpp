// Rows on velocities: loop closures, gears, motors of prescribed speed, joint limits, contact. One linear
// solver for all of them: v = A^-1 (b + G^T lambda) with G v = rhs (bilateral) or G v >= rhs, lambda >= 0
// (unilateral).
#pragma once

#include <limber/rigid/dynamics.hpp>

#include <array>

namespace limber::rigid {

enum class RowKind { kLoop, kGear, kMotor, kLimit, kContact };

struct Row {
  RowKind kind = RowKind::kLoop;
  Index owner = 0;  // index of the loop, gear, joint or contact
  bool unilateral = false;
  double rhs = 0;  // [m/s or rad/s]
  // On link velocities: ja . phi_a + jb . phi_b ...
  Index a = -1, b = -1;  // -1: no link
  Vec6 ja = Vec6::Zero(), jb = Vec6::Zero();
  // ... or on joint velocities: the sum of scale[k] * v[dof[k]].
  std::array<Index, 3> dof{-1, -1, -1};  // -1: no more
  std::array<double, 3> scale{1, 0, 0};
  bool on_joints() const { return dof[0] >= 0; }
};

// A point of a link at an obstacle.
struct Contact {
  Index link = 0;
  Vec3 x = Vec3::Zero();   // the point [m]
  Vec3 n = Vec3::UnitY();  // unit normal, away from the obstacle
  double gap = 0;          // distance to the obstacle [m], negative inside
  double mu = 0;
  Vec3 obstacle_velocity = Vec3::Zero();  // at x [m/s]
};

// The sliding of the contact's point along d (a unit vector) relative to the obstacle.
Row sliding_row(const Motion& motion, const Contact& contact, const Vec3& d);

// The velocity of a revolute or prismatic joint, as its two links see it: a pure torque, or a force through
// its origin.
Row axis_row(const Mechanism& mechanism, const Motion& motion, Index joint);

// How a violated loop is brought back. Velocity rows are relaxed by rhs = -rate * g; `project` moves the
// position onto the loops after the step, to rounding.
struct Stabilisation {
  bool project = true;
  double rate = 0;  // Baumgarte factor [1/s]
};

// The rows of a loop and its position error g (metres; radians for the axes of a hinge).
void loop_rows(const Mechanism& mechanism, const Motion& motion, Index loop, std::vector<Row>& rows,
               std::vector<double>& g);

// All rows of a step from t to t + h: loops and gears, then motors, limits, contacts. A limit or contact
// takes part when the step could reach it; its rhs lets the gap close but not turn negative.
void collect_rows(const Mechanism& mechanism, const Motion& motion, const VecX& q, const VecX& v, double t,
                  double h, const Stabilisation& stabilisation, const std::vector<Contact>& contacts,
                  std::vector<Row>& rows);

class ConstrainedSolver {
 public:
  // The rows are kept by reference. Costs one tree solve per row.
  void factor(const Mechanism& mechanism, const Motion& motion, const SystemSolver& solver,
              const std::vector<Row>& rows);
  // The velocity v and the impulses lambda [N s or N m s] for the right-hand side b; `lambda` is also the
  // warm start. `coasted`: the share of v that inertia alone adds over the step (inertial_motion.hpp), of
  // which the joints move by half only; unilateral rows bound the motion.
  void solve(const VecX& b, VecX& v, VecX& lambda, const VecX* coasted = nullptr) const;
  // The same with the unilateral impulses held at their value in `lambda`; only bilateral ones are found.
  void solve_bilateral(const VecX& b, VecX& v, VecX& lambda) const;

  // The velocity that the impulse b adds with bilateral rows at rest and unilateral impulses held.
  VecX response(const VecX& b) const;

  Index rows() const { return static_cast<Index>(rows_ ? rows_->size() : 0); }
  bool linear() const { return !unilateral_; }      // solve(b + c) is solve(b) and response(c)
  const MatX& reduced_rows() const { return Gt_; }  // G^T, velocities x rows

 private:
  const SystemSolver* solver_ = nullptr;
  const std::vector<Row>* rows_ = nullptr;
  MatX Gt_, Y_, W_;                 // G^T, A^-1 G^T, G A^-1 G^T
  std::vector<std::uint8_t> idle_;  // rows that no joint can move
  std::vector<Index> bilateral_;
  MatX bilateral_factor_;  // Cholesky of W over the bilateral rows
  bool unilateral_ = false;
};

// Adds sum of impulses * rows to the maximal wrenches y (6 per link): the force of rows on the links, times
// h.
void add_row_impulses(const std::vector<Row>& rows, const VecX& lambda, VecX& y);

// Moves q onto the loops and gears (Gauss-Newton in the metric of the solver's matrix), prescribed joints
// held. Returns the largest remaining error.
double project_loops(const Mechanism& mechanism, VecX& q, int max_iterations = 10);

// Closes the loops of the initial position and fixes what loops take from it (axis_b of hinges and pins).
// Throws Error(kInput) that names the loop, its gap and its size when it cannot close.
void close_loops(Mechanism& mechanism, VecX& q);

}  // namespace limber::rigid
