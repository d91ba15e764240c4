#include <limber/cloth/bounds.hpp>

#include <limber/fem/dof.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber::cloth {

void BoundProblem::resize(Index blocks) {
  const auto n = static_cast<std::size_t>(blocks);
  basis.assign(n, Mat3::Identity());
  turned.assign(n, 0);
  bound.assign(3 * n, Bound::kFree);
  value.setZero(3 * blocks);
  range.setZero(3 * blocks);
  friction.clear();
  rows.clear();
}

void turn_to_basis(BoundProblem& problem) {
  const BlockPattern& p = *problem.A.pattern;
  for (Index j = 0; j < p.n; ++j)
    for (Index k = p.col_begin[at(j)]; k < p.col_begin[at(j) + 1]; ++k) {
      const Index i = p.row[at(k)];
      if (!problem.turned[at(i)] && !problem.turned[at(j)]) continue;
      const Mat3 C = problem.A.block(k);
      problem.A.block(k) = problem.basis[at(i)].transpose() * C * problem.basis[at(j)];
    }
  for (Index i = 0; i < p.n; ++i)
    if (problem.turned[at(i)]) {
      const Vec3 b = node(problem.b, i);
      node(problem.b, i) = problem.basis[at(i)].transpose() * b;
    }
}

VecX from_basis(const BoundProblem& problem, const VecX& y) {
  VecX q = y;
  for (Index i = 0; i < problem.A.pattern->n; ++i)
    if (problem.turned[at(i)]) {
      const Vec3 c = node(y, i);
      node(q, i) = problem.basis[at(i)] * c;
    }
  return q;
}

namespace {

constexpr int kFrictionIterations = 10, kPlainIterations = 22, kMostIterations = 80;
// Stiffness of a row's spring over the entries of the matrix: its length is off by the inverse of this.
constexpr double kRowStiffness = 1e4;

enum class Slide : std::uint8_t { kOff, kStick, kSlip };

// One call's state.
class ActiveSet {
 public:
  ActiveSet(const BoundProblem& problem, Cholesky& cholesky, const std::vector<std::int8_t>& start)
      : problem_(problem), cholesky_(cholesky), eliminator_(*problem.A.pattern) {
    const std::size_t n = problem.bound.size();
    out_.active.assign(n, 0);
    fixed_.assign(n, 0);
    out_.y.setZero(static_cast<Eigen::Index>(n));
    state_.assign(problem.friction.size(), Slide::kOff);
    for (const FrictionDisc& f : problem.friction) force_.push_back(f.start);
    returns_.assign(problem.friction.size(), 0);
    row_on_.assign(problem.rows.size(), 0);
    row_force_.assign(problem.rows.size(), Vec3::Zero());
    out_.row_reaction.assign(problem.rows.size(), 0.0);
    for (std::size_t d = 0; d < n; ++d)
      if (problem.bound[d] == Bound::kHeld)
        out_.active[d] = 1;
      else if (problem.bound[d] != Bound::kFree && start.size() == n)
        out_.active[d] = start[d];
    for (std::size_t k = 0; k < state_.size(); ++k) {
      const FrictionDisc& f = problem.friction[k];
      if (!pushed(f)) continue;
      const bool held = start.size() != n || std::all_of(f.slide.begin(), f.slide.end(),
                                                         [&](Index d) { return d < 0 || start[at(d)] != 0; });
      state_[k] = held ? Slide::kStick : Slide::kSlip;
    }
    double sum = 0;
    for (Index i = 0; i < problem.A.pattern->n; ++i) {
      const auto D = problem.A.block(problem.A.pattern->col_begin[at(i)]);
      diagonal_.push_back(D.trace() / 3);
      sum += diagonal_.back();
    }
    scale_ = sum / std::max<double>(1, static_cast<double>(diagonal_.size()));
  }

  BoundSolution run() {
    bool refactor = true, frozen = problem_.friction.empty() && problem_.rows.empty();
    for (out_.iterations = 1; out_.iterations <= kMostIterations; ++out_.iterations) {
      if (refactor && !factor()) return finish();
      solve();
      const Change set = revise_bounds(out_.iterations > kPlainIterations);
      if (out_.iterations == kPlainIterations + 1) out_.fallbacks["active-set"] += 1;
      Change friction = frozen ? Change::kNone : revise_all_friction();
      if (friction != Change::kNone && out_.iterations >= kFrictionIterations) {
        frozen = true;  // as it is now: one more solution with it, and the bounds
        out_.fallbacks["friction-frozen"] += 1;
      }
      refactor = set == Change::kSet || friction == Change::kSet;
      if (set == Change::kNone && friction == Change::kNone) return finish();
    }
    // The last solution obeys the bounds that were active; others may be off.
    out_.fallbacks["contact-unsettled"] += 1;
    return finish();
  }

 private:
  enum class Change { kNone, kForces, kSet };

  bool pushed(const FrictionDisc& f) const {
    for (std::size_t k = 0; k < 3; ++k)
      if (f.push[k] >= 0 && out_.active[at(f.push[k])] != 0) return true;
    return false;
  }

  double limit(const FrictionDisc& f) const {
    double sum = 0;
    for (std::size_t k = 0; k < 3; ++k)
      if (f.push[k] >= 0 && out_.active[at(f.push[k])] != 0) sum += f.weight[k] * out_.reaction[f.push[k]];
    return std::max(0.0, sum);
  }

  double held_value(std::size_t d) const {
    const auto k = static_cast<Eigen::Index>(d);
    if (problem_.bound[d] == Bound::kRange) return problem_.value[k] + out_.active[d] * problem_.range[k];
    return problem_.value[k];
  }

  bool factor() {
    A_ = problem_.A;
    add_rows();
    values_.setZero(out_.y.size());
    for (std::size_t d = 0; d < fixed_.size(); ++d) {
      fixed_[d] = out_.active[d] != 0;
      if (fixed_[d]) values_[static_cast<Eigen::Index>(d)] = held_value(d);
    }
    for (std::size_t k = 0; k < state_.size(); ++k) {
      if (state_[k] != Slide::kStick) continue;
      const FrictionDisc& f = problem_.friction[k];
      for (std::size_t s = 0; s < 2; ++s)
        if (f.slide[s] >= 0) {
          fixed_[at(f.slide[s])] = 1;
          values_[f.slide[s]] = f.at[s];
        }
    }
    with_rows_ = A_;
    eliminator_.multiply_fixed(A_, fixed_, values_, known_);
    eliminator_.eliminate(A_, fixed_, scale_);
    const FactorStatus status = cholesky_.factor(A_);
    out_.factorizations += 1;
    if (status.ok) return true;
    out_.ok = false;
    out_.why = fmt::format("the system matrix is not positive definite: pivot {:.3g} at block {}",
                           status.pivot, status.node);
    return false;
  }

  Vec3 row_normal(const BoundRow& row, std::size_t k) const {
    return problem_.basis[at(row.block[k])].transpose() * row.n;
  }
  double row_stiffness(const BoundRow& row) const {
    double most = 0;
    for (std::size_t k = 0; k < 3; ++k)
      if (row.block[k] >= 0) most = std::max(most, diagonal_[at(row.block[k])]);
    return kRowStiffness * most;
  }
  Vec3 row_velocity(const BoundRow& row) const {
    Vec3 sum = Vec3::Zero();
    for (std::size_t k = 0; k < 3; ++k)
      if (row.block[k] >= 0)
        sum += row.weight[k] * (problem_.basis[at(row.block[k])] * Vec3(node(out_.y, row.block[k])));
    return sum;
  }

  void add_rows() {
    for (std::size_t r = 0; r < row_on_.size(); ++r) {
      if (!row_on_[r]) continue;
      const BoundRow& row = problem_.rows[r];
      const double stiffness = row_stiffness(row);
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
          if (row.block[i] < 0 || row.block[j] < 0 || row.block[i] < row.block[j]) continue;
          A_.block(A_.pattern->find(row.block[i], row.block[j])) +=
              stiffness * row.weight[i] * row.weight[j] * row_normal(row, i) * row_normal(row, j).transpose();
        }
    }
  }

  void solve() {
    rhs_ = problem_.b;
    for (std::size_t r = 0; r < row_on_.size(); ++r) {
      if (!row_on_[r]) continue;
      const BoundRow& row = problem_.rows[r];
      for (std::size_t k = 0; k < 3; ++k)
        if (row.block[k] >= 0)
          node(rhs_, row.block[k]) +=
              row.weight[k] * (row_stiffness(row) * row.value * row_normal(row, k) +
                               problem_.basis[at(row.block[k])].transpose() * row_force_[r]);
    }
    for (std::size_t k = 0; k < state_.size(); ++k) {
      if (state_[k] != Slide::kSlip) continue;
      for (std::size_t s = 0; s < 2; ++s)
        if (problem_.friction[k].slide[s] >= 0)
          rhs_[problem_.friction[k].slide[s]] += force_[k][static_cast<int>(s)];
    }
    const VecX whole = rhs_;
    rhs_ -= known_;
    for (std::size_t d = 0; d < fixed_.size(); ++d) {
      const auto k = static_cast<Eigen::Index>(d);
      if (fixed_[d]) rhs_[k] = scale_ * values_[k];
    }
    out_.y = rhs_;
    cholesky_.solve(out_.y);
    for (std::size_t d = 0; d < fixed_.size(); ++d)
      if (fixed_[d]) out_.y[static_cast<Eigen::Index>(d)] = values_[static_cast<Eigen::Index>(d)];
    multiply(with_rows_, out_.y, out_.reaction);
    out_.reaction -= whole;
  }

  BoundSolution finish() {
    out_.friction = force_;
    return std::move(out_);
  }

  // The next set from this solution. Careful: one coordinate at a time, the worst, so that no two of them
  // chase each other.
  Change revise_bounds(bool careful) {
    Change change = Change::kNone;
    std::size_t worst = 0;
    double worst_by = 0;
    for (std::size_t d = 0; d < out_.active.size(); ++d) {
      const Bound bound = problem_.bound[d];
      if (bound != Bound::kLower && bound != Bound::kRange) continue;
      const auto k = static_cast<Eigen::Index>(d);
      const double y = out_.y[k], r = out_.reaction[k], weight = std::max(diagonal_[d / 3], 1e-300);
      std::int8_t next = out_.active[d];
      double by = 0;
      if (bound == Bound::kLower) {
        if (next && r < -kTolerance * weight)
          next = 0, by = -r / weight;
        else if (!next && y < problem_.value[k] - kTolerance)
          next = 1, by = problem_.value[k] - y;
      } else if (next) {
        if (r * next > kTolerance * weight) by = r * next / weight, next = 0;
      } else if (std::abs(y - problem_.value[k]) > problem_.range[k] + kTolerance) {
        next = y > problem_.value[k] ? 1 : -1;
        by = std::abs(y - problem_.value[k]) - problem_.range[k];
      }
      if (next == out_.active[d]) continue;
      change = Change::kSet;
      if (!careful)
        out_.active[d] = next;
      else if (by > worst_by)
        worst = d, worst_by = by;
    }
    if (careful && change == Change::kSet) {
      if (problem_.bound[worst] == Bound::kLower)
        out_.active[worst] = !out_.active[worst];
      else
        out_.active[worst] =
            out_.active[worst]
                ? 0
                : (out_.y[static_cast<Eigen::Index>(worst)] > problem_.value[static_cast<Eigen::Index>(worst)]
                       ? 1
                       : -1);
    }
    for (std::size_t r = 0; r < row_on_.size(); ++r) change = std::max(change, revise_row(r));
    return change;
  }
  Change revise_all_friction() {
    Change change = Change::kNone;
    for (std::size_t r = 0; r < row_on_.size(); ++r) change = std::max(change, revise_row_friction(r));
    for (std::size_t k = 0; k < state_.size(); ++k) change = std::max(change, revise_friction(k));
    return change;
  }

  Change revise_row(std::size_t r) {
    const BoundRow& row = problem_.rows[r];
    const Vec3 v = row_velocity(row);
    const double short_by = row.value - row.n.dot(v);
    const bool on = short_by > (row_on_[r] ? 0.0 : kTolerance);
    out_.row_reaction[r] = on ? row_stiffness(row) * short_by : 0.0;
    if (on != (row_on_[r] != 0)) {
      row_on_[r] = on;
      if (!on) row_force_[r].setZero();
      return Change::kSet;
    }
    return Change::kNone;
  }

  Change revise_row_friction(std::size_t r) {
    const BoundRow& row = problem_.rows[r];
    if (!row_on_[r] || row.friction == 0) return Change::kNone;
    Vec3 slip = row_velocity(row) - row.velocity;
    slip -= row.n.dot(slip) * row.n;
    double inertia = 0;
    for (std::size_t k = 0; k < 3; ++k)
      if (row.block[k] >= 0) inertia = std::max(inertia, diagonal_[at(row.block[k])]);
    const double most = row.friction * out_.row_reaction[r];
    Vec3 next = row_force_[r] - 0.5 * inertia * slip;
    if (next.norm() > most) next *= most / next.norm();
    const double moved = (next - row_force_[r]).norm();
    row_force_[r] = next;
    return moved > kFrictionTolerance * most ? Change::kForces : Change::kNone;
  }

  Change revise_friction(std::size_t k) {
    const FrictionDisc& f = problem_.friction[k];
    if (!pushed(f)) {
      const bool was = state_[k] == Slide::kStick;
      state_[k] = Slide::kOff;
      force_[k].setZero();
      return was ? Change::kSet : Change::kNone;
    }
    if (state_[k] == Slide::kOff) {
      state_[k] = Slide::kStick;
      return Change::kSet;
    }
    const double most = limit(f);
    Vec2 pull = Vec2::Zero(), rate = Vec2::Zero();
    for (std::size_t s = 0; s < 2; ++s)
      if (f.slide[s] >= 0) {
        pull[static_cast<int>(s)] = out_.reaction[f.slide[s]];
        rate[static_cast<int>(s)] = out_.y[f.slide[s]] - f.at[s];
      }
    if (state_[k] == Slide::kStick) {
      if (pull.norm() <= most * (1 + kFrictionTolerance) + 1e-14 * scale_) return Change::kNone;
      state_[k] = Slide::kSlip;
      force_[k] = pull * (most / pull.norm());
      return Change::kSet;
    }
    // It slides: friction must act against the sliding. Where it drives instead, it was enough to hold.
    const double speed = rate.norm();
    if (most == 0) {
      const bool same = force_[k].isZero(0);
      force_[k].setZero();
      return same ? Change::kNone : Change::kForces;
    }
    if (rate.dot(force_[k]) > 0 && returns_[k] == 0) {
      returns_[k] = 1;
      state_[k] = Slide::kStick;
      return Change::kSet;
    }
    if (returns_[k] > 0) {
      // It is at the limit, between the two: a projected gradient finds the force.
      Vec2 next = force_[k];
      for (std::size_t s = 0; s < 2; ++s)
        if (f.slide[s] >= 0)
          next[static_cast<int>(s)] -= 0.5 * problem_diagonal(f.slide[s]) * rate[static_cast<int>(s)];
      if (next.norm() > most) next *= most / next.norm();
      const double moved = (next - force_[k]).norm();
      force_[k] = next;
      return moved > kFrictionTolerance * most ? Change::kForces : Change::kNone;
    }
    const Vec2 next = speed > 0 ? Vec2(-most / speed * rate) : Vec2(force_[k]);
    const double moved = (next - force_[k]).norm();
    force_[k] = next;
    return moved > kFrictionTolerance * most ? Change::kForces : Change::kNone;
  }

  static constexpr double kTolerance = 1e-10;  // [m/s]
  static constexpr double kFrictionTolerance = 2e-3;

  double problem_diagonal(Index d) const {
    return problem_.A.block(problem_.A.pattern->col_begin[at(d / 3)])(d % 3, d % 3);
  }

  const BoundProblem& problem_;
  Cholesky& cholesky_;
  fem::DofEliminator eliminator_;
  BoundSolution out_;
  BlockMatrix A_, with_rows_;
  VecX rhs_, known_, values_;
  std::vector<std::uint8_t> fixed_;
  std::vector<Slide> state_;
  std::vector<int> returns_;
  std::vector<Vec2> force_;
  std::vector<std::uint8_t> row_on_;
  std::vector<Vec3> row_force_;
  std::vector<double> diagonal_;
  double scale_ = 1;

 public:
  // What friction holds counts as active too, to start from in the next step.
  void mark_sticking(BoundSolution& solution) const {
    for (std::size_t k = 0; k < state_.size(); ++k)
      if (state_[k] == Slide::kStick)
        for (const Index d : problem_.friction[k].slide)
          if (d >= 0) solution.active[at(d)] = 1;
  }
};

}  // namespace

BoundSolution BoundSolver::solve(const BoundProblem& problem, const std::vector<std::int8_t>& active) {
  if (analyzed_ != problem.A.pattern) {
    cholesky_.analyze(*problem.A.pattern);
    analyzed_ = problem.A.pattern;
    analyses_ += 1;
  }
  ActiveSet set(problem, cholesky_, active);
  BoundSolution out = set.run();
  if (out.ok) set.mark_sticking(out);
  return out;
}

}  // namespace limber::cloth
