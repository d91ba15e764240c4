// Anderson's acceleration of a fixed-point iteration x <- x + f(x): of the last changes the combination that
// leaves the least residual, in a metric of the caller's.
#pragma once

#include <limber/core/types.hpp>

#include <vector>

namespace limber::qp {

class Anderson {
 public:
  explicit Anderson(std::size_t memory) : memory_(memory) {}

  // x <- the next iterate. `f`: the residual at x; `dual`: W f, W the metric. `dual_x`, if given, is W x
  // before and after: a combination of what is known already.
  void advance(const VecX& f, const VecX& dual, VecX& x, VecX* dual_x = nullptr);

 private:
  struct Change {
    VecX value, residual, dual, dual_value;
  };
  std::size_t memory_;
  std::vector<Change> changes_;
  VecX x_, f_, dual_, dual_x_;  // of the last call
};

}  // namespace limber::qp
