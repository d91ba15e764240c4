// Limited-memory BFGS on top of an inverse that somebody else applies, and what the residuals on the way
// promise.
#pragma once

#include <limber/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

namespace limber {

// The last pairs s = x1 - x0, y = r1 - r0, on top of an initial inverse.
class Lbfgs {
 public:
  explicit Lbfgs(int pairs) : pairs_(static_cast<std::size_t>(pairs)) {}

  void clear() { list_.clear(); }

  void add(VecX s, VecX y) {
    const double sy = s.dot(y);
    if (pairs_ == 0 || !(sy > 1e-12 * s.norm() * y.norm())) return;  // would make the inverse indefinite
    if (list_.size() == pairs_) list_.pop_front();
    list_.push_back({std::move(s), std::move(y), 1 / sy});
  }

  // d <- H d, by the two-loop recursion; `initial` applies the inverse that the pairs correct.
  template <class Initial>
  void apply(VecX& d, Initial&& initial) const {
    std::vector<double> a(list_.size());
    for (std::size_t i = list_.size(); i-- > 0;) {
      a[i] = list_[i].rho * list_[i].s.dot(d);
      d -= a[i] * list_[i].y;
    }
    initial(d);
    for (std::size_t i = 0; i < list_.size(); ++i)
      d += (a[i] - list_[i].rho * list_[i].y.dot(d)) * list_[i].s;
  }

 private:
  struct Pair {
    VecX s, y;
    double rho;
  };
  std::size_t pairs_;
  std::deque<Pair> list_;
};

// Residual norms of one loop, and what they promise.
class ResidualProgress {
 public:
  explicit ResidualProgress(double norm) : log_{std::log(norm)} {}
  void add(double norm) { log_.push_back(std::log(norm)); }
  int steps() const { return static_cast<int>(log_.size()) - 1; }
  // Mean decrease of log |r| per iteration over the last three.
  double rate() const {
    const int m = std::min(3, steps());
    return m == 0 ? 0 : (log_[log_.size() - 1 - static_cast<std::size_t>(m)] - log_.back()) / m;
  }
  // It fell in each of the last three.
  bool steady() const {
    return steps() >= 3 && log_.end()[-4] > log_.end()[-3] && log_.end()[-3] > log_.end()[-2] &&
           log_.end()[-2] > log_.end()[-1];
  }
  // The same over all of them.
  double mean_rate() const { return steps() == 0 ? 0 : (log_.front() - log_.back()) / steps(); }
  // Iterations still needed at the former rate.
  double remaining(double target) const {
    const double left = log_.back() - std::log(target);
    return rate() > 0 ? left / rate() : std::numeric_limits<double>::infinity();
  }

 private:
  std::vector<double> log_;
};

}  // namespace limber
