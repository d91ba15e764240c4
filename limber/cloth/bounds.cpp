#include <limber/cloth/bounds.hpp>
#include <limber/cloth/dry_friction.hpp>

#include <limber/fem/dof.hpp>
#include <limber/mesh/geometry.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace limber::cloth {

void BoundProblem::resize(Index blocks) {
  const auto n = static_cast<std::size_t>(blocks);
  basis.assign(n, Mat3::Identity());
  turned.assign(n, 0);
  bound.assign(3 * n, Bound::kFree);
  value.setZero(3 * blocks);
  range.setZero(3 * blocks);
  guess.resize(0);
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

VecX to_basis(const BoundProblem& problem, const VecX& q) {
  VecX y = q;
  for (Index i = 0; i < problem.A.pattern->n; ++i) {
    if (!problem.turned[at(i)]) continue;
    const Mat3& B = problem.basis[at(i)];
    const Vec3 b0 = B.col(0), b1 = B.col(1), b2 = B.col(2);
    const Vec3 c0 = cross(b1, b2), c1 = cross(b2, b0), c2 = cross(b0, b1);
    const double det = b0.dot(c0);
    const Vec3 v = node(q, i);
    node(y, i) = Vec3(c0.dot(v), c1.dot(v), c2.dot(v)) / det;
  }
  return y;
}

namespace {

constexpr int kSwitchings = 8;  // of bounds and friction, then the program is rounded
constexpr int kFreely = 4;      // iterations of a stage without line search
constexpr int kFrictionIterations = 60, kMostIterations = 80;
// Stages of the rounded program: speeds within which friction is rounded [m/s], stiffness of bounds over the
// entries of the matrix (they are off by its inverse), and how exact forces of friction are.
struct Stage {
  double speed, stiffness, tolerance;
};
constexpr std::array<Stage, 4> kStages{
    {{3e-2, 1e4, 5e-2}, {1e-3, 1e4, 5e-2}, {3e-5, 1e5, 2e-2}, {1e-6, 1e6, 2e-3}}};
// Stiffness of a row's spring over the entries of the matrix: its length is off by the inverse of this.
constexpr double kRowStiffness = 1e4;

// One call's state.
class ActiveSet {
 public:
  ActiveSet(const BoundProblem& problem, Cholesky& cholesky, const std::vector<std::int8_t>& start)
      : problem_(problem), cholesky_(cholesky), eliminator_(*problem.A.pattern) {
    const std::size_t n = problem.bound.size();
    out_.active.assign(n, 0);
    fixed_.assign(n, 0);
    out_.y.setZero(static_cast<Eigen::Index>(n));
    row_on_.assign(problem.rows.size(), 0);
    out_.row_reaction.assign(problem.rows.size(), 0.0);
    for (std::size_t d = 0; d < n; ++d)
      if (problem.bound[d] == Bound::kHeld)
        out_.active[d] = 1;
      else if (problem.bound[d] != Bound::kFree && start.size() == n)
        out_.active[d] = start[d] == kSticks ? 0 : start[d];
    double sum = 0;
    for (Index i = 0; i < problem.A.pattern->n; ++i) {
      const auto D = problem.A.block(problem.A.pattern->col_begin[at(i)]);
      diagonal_.push_back(D.trace() / 3);
      sum += diagonal_.back();
    }
    scale_ = sum / std::max<double>(1, static_cast<double>(diagonal_.size()));
    std::vector<std::uint8_t> pressed;
    for (const FrictionDisc& f : problem.friction) {
      pressed.push_back(pushed(f));
      rough_ = true;
    }
    for (const BoundRow& row : problem.rows) rough_ = rough_ || row.friction > 0;
    friction_.emplace(problem, diagonal_, start.size() == n ? start : std::vector<std::int8_t>(), pressed);
  }

  // First a primal-dual active set: bounds and friction switch as each solution says, which from the set of
  // the step before takes an iteration or two. Where that goes in circles: Newton's method with a line search
  // on the program with bounds as springs and friction rounded, both sharper from stage to stage.
  BoundSolution run() {
    bool refactor = true, frozen = !rough_;
    int in_stage = 0, patience = kSwitchings;
    std::size_t least = problem_.bound.size();
    VecX before;
    for (out_.iterations = 1; out_.iterations <= kMostIterations; ++out_.iterations) {
      if (refactor && !factor()) return finish();
      before = out_.y;
      solved_with_ = out_.active;
      row_solved_with_ = row_on_;
      solve();
      if (!frozen && out_.iterations >= kFrictionIterations) {
        frozen = true;  // as it is now: the bounds settle with it
        friction_->freeze(before);
        out_.fallbacks["friction-frozen"] += 1;
      }
      const double share = stage_ == 0 || in_stage++ < kFreely ? 1 : shorten(before);
      const bool same_set = !(stage_ == 0 ? revise_bounds() : revise_springs());
      if (rough_ && share == 1) set_limits();
      const DryFriction::Look look = rough_ ? friction_->look(out_.y, share) : DryFriction::Look{};
      const bool settled = share == 1 && same_set && look.unsettled == 0;
      if (settled && (stage_ == 0 || stage_ == kStages.size())) return finish();
      if (same_set && look.unsettled < least) {  // on a good way
        least = look.unsettled;
        patience = std::max(patience, out_.iterations + 3);
      }
      if (settled || (stage_ == 0 && out_.iterations >= patience)) {
        friction_->round(kStages[stage_].speed, kStages[stage_].tolerance, out_.y);
        ++stage_;
        in_stage = 0;
        revise_springs();
      }
      refactor = !same_set || look.stiffness || stage_ > 0;
    }
    // A solution with the forces of friction that it had in the end and the bounds that were active; others
    // may be off.
    out_.fallbacks["contact-unsettled"] += 1;
    if (rough_ && !frozen) friction_->freeze(out_.y);
    stage_ = 0;
    if (factor()) solve();
    return finish();
  }

 private:
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
    if (rough_) friction_->add_stiffness(A_);
    values_.setZero(out_.y.size());
    for (std::size_t d = 0; d < fixed_.size(); ++d) {
      fixed_[d] = stage_ == 0 ? out_.active[d] != 0 : problem_.bound[d] == Bound::kHeld;
      if (stage_ > 0 && !fixed_[d] && out_.active[d] != 0) {
        const auto k = static_cast<Index>(d);
        A_.block(A_.pattern->col_begin[at(k / 3)])(k % 3, k % 3) += spring(d);
      }
      if (fixed_[d]) values_[static_cast<Eigen::Index>(d)] = held_value(d);
    }
    with_all_ = A_;
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
  Vec3 row_velocity(const BoundRow& row, const VecX& y) const {
    Vec3 sum = Vec3::Zero();
    for (std::size_t k = 0; k < 3; ++k)
      if (row.block[k] >= 0)
        sum += row.weight[k] * (problem_.basis[at(row.block[k])] * Vec3(node(y, row.block[k])));
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
          node(rhs_, row.block[k]) += row.weight[k] * row_stiffness(row) * row.value * row_normal(row, k);
    }
    if (rough_) friction_->add_forces(rhs_);
    if (stage_ > 0)
      for (std::size_t d = 0; d < fixed_.size(); ++d)
        if (!fixed_[d] && out_.active[d] != 0)
          rhs_[static_cast<Eigen::Index>(d)] += spring(d) * held_value(d);
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
    multiply(with_all_, out_.y, out_.reaction);
    out_.reaction -= whole;
  }

  // Goes back towards `before` if the program rises on the way: the share of the way that is left.
  double shorten(const VecX& before) {
    const VecX d = out_.y - before;
    VecX Ay, Ad;
    multiply(problem_.A, before, Ay);
    multiply(problem_.A, d, Ad);
    const double linear = d.dot(Ay - problem_.b), quadratic = d.dot(Ad);
    struct Spring {  // its length and rate, and on which side it pushes
      double length, rate, stiffness;
    };
    std::vector<Spring> springs;
    for (std::size_t i = 0; i < problem_.bound.size(); ++i) {
      const Bound bound = problem_.bound[i];
      if (bound != Bound::kLower && bound != Bound::kRange) continue;
      const auto k = static_cast<Eigen::Index>(i);
      const double low = problem_.value[k] - (bound == Bound::kRange ? problem_.range[k] : 0.0);
      springs.push_back({before[k] - low, d[k], spring(i)});
      if (bound == Bound::kRange)
        springs.push_back({problem_.value[k] + problem_.range[k] - before[k], -d[k], spring(i)});
    }
    for (const BoundRow& row : problem_.rows)
      springs.push_back({row.n.dot(row_velocity(row, before)) - row.value, row.n.dot(row_velocity(row, d)),
                         row_stiffness(row)});
    const auto slope = [&](double s) {
      double sum = linear + s * quadratic + (rough_ ? friction_->slope(before, d, s) : 0.0);
      for (const Spring& p : springs) sum += p.stiffness * std::min(0.0, p.length + s * p.rate) * p.rate;
      return sum;
    };
    if (!(slope(1) > 0.5 * std::abs(slope(0)))) return 1;
    double lo = 0, hi = 1;
    for (int k = 0; k < 20; ++k) {
      const double middle = 0.5 * (lo + hi);
      (slope(middle) > 0 ? hi : lo) = middle;
    }
    hi = std::max(hi, 1e-3);
    out_.y = before + hi * d;
    return hi;
  }

  double spring(std::size_t d) const {
    const auto k = static_cast<Index>(d);
    return kStages[stage_ - 1].stiffness *
           problem_.A.block(problem_.A.pattern->col_begin[at(k / 3)])(k % 3, k % 3);
  }

  // Which springs push, and with what; whether they are others than before.
  bool revise_springs() {
    bool change = false;
    for (std::size_t d = 0; d < out_.active.size(); ++d) {
      const Bound bound = problem_.bound[d];
      if (bound != Bound::kLower && bound != Bound::kRange) continue;
      const auto k = static_cast<Eigen::Index>(d);
      const double range = bound == Bound::kRange ? problem_.range[k] : 0.0;
      const double low = problem_.value[k] - range - out_.y[k], high = out_.y[k] - problem_.value[k] - range;
      const std::int8_t next = bound == Bound::kLower ? low > 0 : low > 0 ? -1 : high > 0 ? 1 : 0;
      change = change || next != out_.active[d];
      out_.active[d] = next;
      out_.reaction[k] = low > 0 ? spring(d) * low : next ? -spring(d) * high : 0.0;
    }
    for (std::size_t r = 0; r < row_on_.size(); ++r) change = revise_row(r) || change;
    return change;
  }

  // From reactions that this solution had: those of bounds that are new in the set are not known yet.
  void set_limits() {
    for (std::size_t k = 0; k < problem_.friction.size(); ++k) {
      const FrictionDisc& f = problem_.friction[k];
      bool known = true;
      for (const Index d : f.push)
        known = known && (d < 0 || out_.active[at(d)] == 0 || solved_with_[at(d)] != 0);
      if (!pushed(f))
        friction_->set_limit(k, -1);
      else if (known)
        friction_->set_limit(k, limit(f));
      else
        friction_->keep_limit(k);
    }
    for (std::size_t r = 0; r < row_on_.size(); ++r) {
      const std::size_t k = problem_.friction.size() + r;
      if (!row_on_[r] || problem_.rows[r].friction == 0)
        friction_->set_limit(k, -1);
      else if (row_solved_with_[r])
        friction_->set_limit(k, problem_.rows[r].friction * out_.row_reaction[r]);
      else
        friction_->keep_limit(k);
    }
  }

  BoundSolution finish() {
    if (stage_ > 0)
      for (std::size_t d = 0; d < out_.active.size(); ++d)
        if (out_.active[d] != 0) out_.y[static_cast<Eigen::Index>(d)] = held_value(d);
    out_.friction = friction_->disc_forces();
    for (std::size_t k = 0; k < out_.friction.size(); ++k)
      for (std::size_t s = 0; s < 2; ++s)
        if (const Index d = problem_.friction[k].slide[s]; d >= 0) {
          out_.reaction[d] += out_.friction[k][static_cast<int>(s)];
          if (friction_->sticks(k) && !out_.active[at(d)]) out_.active[at(d)] = kSticks;
        }
    return std::move(out_);
  }

  // The next set from this solution; whether it is another.
  bool revise_bounds() {
    bool change = false;
    for (std::size_t d = 0; d < out_.active.size(); ++d) {
      const Bound bound = problem_.bound[d];
      if (bound != Bound::kLower && bound != Bound::kRange) continue;
      const auto k = static_cast<Eigen::Index>(d);
      const double y = out_.y[k], r = out_.reaction[k], weight = std::max(diagonal_[d / 3], 1e-300);
      std::int8_t next = out_.active[d];
      if (bound == Bound::kLower) {
        if (next && r < -kTolerance * weight)
          next = 0;
        else if (!next && y < problem_.value[k] - kTolerance)
          next = 1;
      } else if (next) {
        if (r * next > kTolerance * weight) next = 0;
      } else if (std::abs(y - problem_.value[k]) > problem_.range[k] + kTolerance) {
        next = y > problem_.value[k] ? 1 : -1;
      }
      change = change || next != out_.active[d];
      out_.active[d] = next;
    }
    for (std::size_t r = 0; r < row_on_.size(); ++r) change = revise_row(r) || change;
    return change;
  }

  bool revise_row(std::size_t r) {
    const BoundRow& row = problem_.rows[r];
    const Vec3 v = row_velocity(row, out_.y);
    const double short_by = row.value - row.n.dot(v);
    const bool on = short_by > (row_on_[r] ? 0.0 : kTolerance);
    out_.row_reaction[r] = on ? row_stiffness(row) * short_by : 0.0;
    if (on != (row_on_[r] != 0)) {
      row_on_[r] = on;
      return true;
    }
    return false;
  }

  static constexpr double kTolerance = 1e-10;  // [m/s]

  const BoundProblem& problem_;
  Cholesky& cholesky_;
  fem::DofEliminator eliminator_;
  BoundSolution out_;
  BlockMatrix A_, with_all_;
  VecX rhs_, known_, values_;
  std::vector<std::uint8_t> fixed_;
  std::optional<DryFriction> friction_;
  std::size_t stage_ = 0;  // of the rounded program; 0: not rounded
  bool rough_ = false;     // there is friction
  std::vector<std::uint8_t> row_on_, row_solved_with_;
  std::vector<std::int8_t> solved_with_;
  std::vector<double> diagonal_;
  double scale_ = 1;
};

}  // namespace

BoundSolution BoundSolver::solve(const BoundProblem& problem, const std::vector<std::int8_t>& active) {
  if (analyzed_ != problem.A.pattern) {
    cholesky_.analyze(*problem.A.pattern);
    analyzed_ = problem.A.pattern;
    analyses_ += 1;
  }
  ActiveSet set(problem, cholesky_, active);
  return set.run();
}

}  // namespace limber::cloth
