#include <limber/qp/box_qp.hpp>

#include <limber/core/error.hpp>
#include <limber/linalg/dense.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace limber::qp {
namespace {

enum class Where : char { kFree, kLow, kHigh };

// The problem with the compliance on its diagonal. Entries are scaled by 1/sqrt(H_ii), so that tolerances
// mean the same for forces and torques.
struct Scaled {
  MatX H;
  VecX g, lo, hi, scale;
};

Scaled scale_problem(const MatX& H, const VecX& g, const VecX& lo, const VecX& hi,
                     const BoxQpOptions& options) {
  const Eigen::Index n = g.size();
  Scaled s;
  s.scale.resize(n);
  const double largest = n ? H.diagonal().cwiseAbs().maxCoeff() : 0.0;
  for (Eigen::Index i = 0; i < n; ++i) {
    // A row without mobility (all zero) keeps a small diagonal: its entry is then decided by g alone.
    const double d = std::max(H(i, i), 1e-14 * largest);
    s.scale[i] = d > 0 ? 1.0 / std::sqrt(d) : 1.0;
  }
  s.H = s.scale.asDiagonal() * H * s.scale.asDiagonal();
  for (Eigen::Index i = 0; i < n; ++i)
    s.H(i, i) += options.compliance + options.regularisation * s.scale[i] * s.scale[i];
  s.g = s.scale.cwiseProduct(g);
  s.lo = lo.cwiseQuotient(s.scale);
  s.hi = hi.cwiseQuotient(s.scale);
  return s;
}

double clamp(double x, double lo, double hi) { return std::min(std::max(x, lo), hi); }

void check_bounds(const MatX& H, const VecX& g, const VecX& lo, const VecX& hi) {
  const Eigen::Index n = g.size();
  if (H.rows() != n || H.cols() != n || lo.size() != n || hi.size() != n)
    throw Error(ErrorKind::kUsage, "box QP: H, g, lo and hi differ in size");
  for (Eigen::Index i = 0; i < n; ++i)
    if (!(lo[i] <= hi[i]))
      throw Error(ErrorKind::kUsage, "box QP: the lower bound of entry " + std::to_string(i) +
                                         " is above its upper bound, or one of them is not a number");
}

// Solves the free block with the others at their bounds: x_F, and the gradient w of the others.
class FreeBlock {
 public:
  explicit FreeBlock(const Scaled& s) : s_(s) {}

  bool solve(const std::vector<Where>& where, VecX& x, VecX& w) {
    const Eigen::Index n = s_.g.size();
    free_.clear();
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      if (where[k] == Where::kFree)
        free_.push_back(i);
      else
        x[i] = where[k] == Where::kLow ? s_.lo[i] : s_.hi[i];
    }
    for (const Eigen::Index i : free_) x[i] = 0;
    w = s_.g;
    w.noalias() += s_.H * x;
    const auto m = static_cast<Eigen::Index>(free_.size());
    if (m == 0) return true;
    A_.resize(m, m);
    b_.resize(m);
    for (Eigen::Index c = 0; c < m; ++c) {
      const Eigen::Index j = free_[static_cast<std::size_t>(c)];
      b_[c] = -w[j];
      for (Eigen::Index r = 0; r < m; ++r) A_(r, c) = s_.H(free_[static_cast<std::size_t>(r)], j);
    }
    if (!llt_.factor(A_)) return false;
    b_ = llt_.solve(b_);
    for (Eigen::Index c = 0; c < m; ++c) {
      const Eigen::Index j = free_[static_cast<std::size_t>(c)];
      x[j] = b_[c];
      w.noalias() += s_.H.col(j) * b_[c];
    }
    for (const Eigen::Index j : free_) w[j] = 0;
    return true;
  }

 private:
  const Scaled& s_;
  std::vector<Eigen::Index> free_;
  MatX A_;
  VecX b_;
  DenseCholesky<Eigen::Dynamic> llt_;
};

// Block principal pivoting (Júdice and Pires): exchange all infeasible entries at once while their number
// falls, else only the one with the largest index, which cannot cycle for a definite H.
bool pivot(const Scaled& s, VecX& x, int limit, int& iterations) {
  const Eigen::Index n = s.g.size();
  std::vector<Where> where(static_cast<std::size_t>(n));
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    where[k] = x[i] <= s.lo[i] ? Where::kLow : x[i] >= s.hi[i] ? Where::kHigh : Where::kFree;
  }
  FreeBlock block(s);
  VecX w(n);
  Eigen::Index fewest = n + 1;
  int patience = 3;
  struct Change {
    Eigen::Index i;
    Where to;
  };
  std::vector<Change> changes;
  for (iterations = 1; iterations <= limit; ++iterations) {
    if (!block.solve(where, x, w)) return false;
    const double tol = 1e-12 * (s.g.cwiseAbs().maxCoeff() + x.cwiseAbs().maxCoeff());
    changes.clear();
    for (Eigen::Index i = 0; i < n; ++i) {
      switch (where[static_cast<std::size_t>(i)]) {
        case Where::kFree:
          if (x[i] < s.lo[i] - tol) changes.push_back({i, Where::kLow});
          if (x[i] > s.hi[i] + tol) changes.push_back({i, Where::kHigh});
          break;
        case Where::kLow:
          if (w[i] < -tol && s.lo[i] < s.hi[i]) changes.push_back({i, Where::kFree});
          break;
        case Where::kHigh:
          if (w[i] > tol && s.lo[i] < s.hi[i]) changes.push_back({i, Where::kFree});
          break;
      }
    }
    const auto wrong = static_cast<Eigen::Index>(changes.size());
    if (wrong == 0) return true;
    bool all = true;
    if (wrong < fewest) {
      fewest = wrong;
      patience = 3;
    } else if (patience > 0) {
      --patience;
    } else {
      all = false;
    }
    if (all)
      for (const Change& c : changes) where[static_cast<std::size_t>(c.i)] = c.to;
    else
      where[static_cast<std::size_t>(changes.back().i)] = changes.back().to;
  }
  return false;
}

double objective(const Scaled& s, const VecX& x) { return x.dot(0.5 * (s.H * x) + s.g); }

double natural_residual(const Scaled& s, const VecX& x, const VecX& w) {
  // The maximum below would step over them.
  if (!x.allFinite() || !w.allFinite()) return std::numeric_limits<double>::quiet_NaN();
  double worst = 0;
  for (Eigen::Index i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::abs(x[i] - clamp(x[i] - w[i], s.lo[i], s.hi[i])));
  return worst;
}

// Projected Newton (Bertsekas): a Newton step in the entries that are not held by a bound, then an Armijo
// search along the projected arc.
bool newton(const Scaled& s, VecX& x, int limit, int& iterations) {
  const Eigen::Index n = s.g.size();
  for (Eigen::Index i = 0; i < n; ++i) x[i] = clamp(x[i], s.lo[i], s.hi[i]);
  std::vector<Eigen::Index> free;
  VecX trial(n);
  for (iterations = 1; iterations <= limit; ++iterations) {
    const VecX w = s.H * x + s.g;
    const double size = s.g.cwiseAbs().maxCoeff() + x.cwiseAbs().maxCoeff();
    const double residual = natural_residual(s, x, w);
    if (residual <= 1e-11 * size) return true;
    const double margin = std::min(residual, 1e-6 * size);
    free.clear();
    for (Eigen::Index i = 0; i < n; ++i) {
      const bool held = (x[i] <= s.lo[i] + margin && w[i] > 0) || (x[i] >= s.hi[i] - margin && w[i] < 0);
      if (!held) free.push_back(i);
    }
    const auto m = static_cast<Eigen::Index>(free.size());
    VecX step = -w;  // held entries move along the gradient, onto their bound
    if (m > 0) {
      MatX A(m, m);
      VecX b(m);
      for (Eigen::Index c = 0; c < m; ++c) {
        b[c] = -w[free[static_cast<std::size_t>(c)]];
        for (Eigen::Index r = 0; r < m; ++r)
          A(r, c) = s.H(free[static_cast<std::size_t>(r)], free[static_cast<std::size_t>(c)]);
      }
      const DenseCholesky<Eigen::Dynamic> llt(A);
      if (!llt.ok()) return false;
      b = llt.solve(b);
      for (Eigen::Index c = 0; c < m; ++c) step[free[static_cast<std::size_t>(c)]] = b[c];
    }
    const double e0 = objective(s, x);
    double t = 1;
    bool moved = false;
    for (int k = 0; k < 50; ++k, t *= 0.5) {
      for (Eigen::Index i = 0; i < n; ++i) trial[i] = clamp(x[i] + t * step[i], s.lo[i], s.hi[i]);
      if (objective(s, trial) <= e0 + 1e-4 * w.dot(trial - x)) {
        moved = (trial - x).cwiseAbs().maxCoeff() > 0;
        break;
      }
    }
    if (!moved) return residual <= 1e-7 * size;  // rounding: no better point can be told apart
    x = trial;
  }
  return false;
}

BoxQpReport finish(const Scaled& s, VecX& x, BoxQpReport report) {
  for (Eigen::Index i = 0; i < x.size(); ++i) x[i] = clamp(x[i], s.lo[i], s.hi[i]);
  const VecX w = s.H * x + s.g;
  report.residual = natural_residual(s, x, w);
  if (!std::isfinite(report.residual)) report.converged = false;  // comparisons with NaN find nothing wrong
  x = x.cwiseProduct(s.scale);
  return report;
}

}  // namespace

BoxQpReport solve_box_qp(const MatX& H, const VecX& g, const VecX& lo, const VecX& hi, VecX& x,
                         const BoxQpOptions& options) {
  check_bounds(H, g, lo, hi);
  BoxQpReport report;
  report.solver = "pivoting";
  report.converged = true;
  if (g.size() == 0) return report;
  const Scaled s = scale_problem(H, g, lo, hi, options);
  if (x.size() != g.size()) x = VecX::Zero(g.size());
  x = x.cwiseQuotient(s.scale);
  const VecX start = x;
  if (!pivot(s, x, options.max_iterations, report.iterations)) {
    x = start;
    report.solver = "newton";
    report.converged = newton(s, x, options.max_iterations, report.iterations);
  }
  return finish(s, x, report);
}

double box_qp_residual(const MatX& H, const VecX& g, const VecX& lo, const VecX& hi, const VecX& x) {
  const VecX w = H * x + g;
  double worst = 0;
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const double d = H(i, i) > 0 ? H(i, i) : 1.0;
    worst = std::max(worst, std::abs(x[i] - clamp(x[i] - w[i] / d, lo[i], hi[i])));
  }
  return worst;
}

}  // namespace limber::qp
