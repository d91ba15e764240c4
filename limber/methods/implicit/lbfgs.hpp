// Limited-memory BFGS on top of an inverse that somebody else applies.
#pragma once

#include <limber/core/types.hpp>

#include <deque>
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

}  // namespace limber
