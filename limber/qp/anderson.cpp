#include <limber/qp/anderson.hpp>

#include <limber/linalg/dense.hpp>

namespace limber::qp {

void Anderson::advance(const VecX& f, const VecX& dual, VecX& x, VecX* dual_x) {
  if (x_.size() == x.size() && x_.size() > 0) {
    if (changes_.size() == memory_) changes_.erase(changes_.begin());
    changes_.push_back({x - x_ + f - f_, f - f_, dual - dual_, {}});
    if (dual_x) changes_.back().dual_value = *dual_x - dual_x_ + changes_.back().dual;
  }
  x_ = x;
  f_ = f;
  dual_ = dual;
  x += f;
  if (dual_x) {
    dual_x_ = *dual_x;
    *dual_x += dual;
  }
  const auto n = static_cast<Eigen::Index>(changes_.size());
  if (n == 0) return;
  MatX G(n, n);
  VecX g(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const VecX& df = changes_[static_cast<std::size_t>(i)].residual;
    g[i] = df.dot(dual);
    for (Eigen::Index j = 0; j <= i; ++j)
      G(i, j) = G(j, i) = df.dot(changes_[static_cast<std::size_t>(j)].dual);
  }
  const VecX c = least_squares(G, g, true);
  if (!c.allFinite()) return;
  for (Eigen::Index i = 0; i < n; ++i) {
    const Change& change = changes_[static_cast<std::size_t>(i)];
    x -= c[i] * change.value;
    if (dual_x) *dual_x -= c[i] * change.dual_value;
  }
}

}  // namespace limber::qp
