#include <limber/methods/condensation.hpp>

#include <limber/core/parallel.hpp>
#include <limber/methods/system.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace limber {

Condensation::Condensation(const Model& model, std::vector<Index> representatives,
                           const CholeskyOptions& options)
    : model_(model), tail_(std::move(representatives)), solver_(options), eliminator_(*model.pattern) {
  solver_.analyze(*model.pattern, tail_);
  const BlockPattern& p = *model.pattern;
  std::vector<Index> tail_index(static_cast<std::size_t>(p.n), -1);
  for (std::size_t t = 0; t < tail_.size(); ++t) tail_index[tail_[t]] = static_cast<Index>(t);
  tail_rows_.resize(tail_.size());
  for (Index j = 0; j < p.n; ++j)
    for (Index b = p.col_begin[j]; b < p.col_begin[j + 1]; ++b) {
      const Index i = p.row[b];
      if (tail_index[i] >= 0) tail_rows_[tail_index[i]].push_back({b, j, false});
      if (i != j && tail_index[j] >= 0) tail_rows_[tail_index[j]].push_back({b, i, true});
    }
}

bool Condensation::compute(const VecX& x, const std::vector<std::uint8_t>& dynamic, const StepInput& in,
                           const ContactStep& contact, PhaseClock& clock, bool again) {
  in_ = &in;
  {
    auto phase = clock.phase("assemble");
    if (again) {
      system.K.values = elastic_;
    } else {
      fem::assemble(*model_.elements, x, in.activation, system);
      if (!model_.contact.empty()) elastic_ = system.K.values;
    }
    if (!system.finite) {
      why_ = not_finite(system);
      return false;
    }
    contact.add_stiffness(1, system.K);
  }
  const bool scripted = (in.fixed_velocity.array() != 0).any() || contact.moves();
  VecX known;
  if (scripted) {
    eliminator_.multiply_fixed(system.K, in.fixed, in.fixed_velocity, known);
    contact.add_drag(-1, known);
  }
  {
    auto phase = clock.phase("factor");
    if (!factor(in)) return false;
  }
  {
    auto phase = clock.phase("solve");
    split_tail(dynamic, in);
    solver_.extend_from_tail(C_, J);
    w.setZero(x.size());
    if (scripted) {
      w = -known;
      solve_quasistatic(w);
      for (Eigen::Index d = 0; d < w.size(); ++d)
        if (in.fixed[static_cast<std::size_t>(d)]) w[d] = in.fixed_velocity[d];
      k_w.noalias() = J.transpose() * known;
    } else {
      k_w.setZero(J.cols());
    }
  }
  auto phase = clock.phase("project");
  // JᵀMJ, with M diagonal. Fixed ranges, summed in order: the same bits for any thread count.
  constexpr std::ptrdiff_t kRows = 3072;
  const std::ptrdiff_t pieces = (J.rows() + kRows - 1) / kRows;
  std::vector<MatX> part(static_cast<std::size_t>(pieces));
  parallel_for(pieces, 1, [&](std::ptrdiff_t p) {
    const Eigen::Index begin = p * kRows, rows = std::min<Eigen::Index>(kRows, J.rows() - begin);
    const MatX mj = model_.mass.segment(begin, rows).asDiagonal() * J.middleRows(begin, rows);
    part[static_cast<std::size_t>(p)].noalias() = J.middleRows(begin, rows).transpose() * mj;
  });
  M_r.setZero(J.cols(), J.cols());
  for (const MatX& m : part) M_r += m;
  S_contact.setZero(J.cols(), J.cols());
  for (const ContactLaw& law : contact.laws()) {
    if (!law.active) continue;
    const auto rows = J.middleRows<3>(3 * law.contact.node);
    S_contact.noalias() += rows.transpose() * (law.stiffness() * rows);
  }
  return true;
}

bool Condensation::factor(const StepInput& in) {
  BlockMatrix& K = system.K;
  double mean = 0;
  for (Index j = 0; j < K.pattern->n; ++j) mean += K.block(K.pattern->col_begin[j]).trace();
  mean /= std::max<Index>(1, 3 * K.pattern->n);
  // The tail block of a free body is singular (its rigid motions cost nothing), and its Cholesky factor does
  // not exist. A shift of the tail's diagonal makes it exist and is taken off the Schur complement again; it
  // costs S an error of rounding times the shift.
  const double tail_shift = mean;
  for (Index t : tail_) K.block(K.pattern->col_begin[t]).diagonal().array() += tail_shift;
  eliminator_.eliminate(K, in.fixed, mean);

  shifts = 0;
  FactorStatus status = solver_.factor(K);
  // Projection makes K positive semi-definite, not definite: an element squashed flat can leave a node
  // without stiffness. A small multiple of the mass mends that, at the price of a slightly stiffer map; it is
  // counted in the report.
  if (!status.ok) unshifted_ = K.values;
  for (double shift = 1e-8; !status.ok && shift < 1; shift *= 100) {
    ++shifts;
    K.values = unshifted_;
    const double mass = model_.mass.mean();
    for (Index j = 0; j < K.pattern->n; ++j)
      for (int k = 0; k < 3; ++k)
        K.block(K.pattern->col_begin[j])(k, k) += shift * mean * model_.mass[3 * j + k] / mass;
    status = solver_.factor(K);
  }
  if (!status.ok) {
    why_ = bad_pivot(status);
    return false;
  }
  solver_.tail_schur(schur_);
  schur_.diagonal().array() -= tail_shift;
  return true;
}

void Condensation::split_tail(const std::vector<std::uint8_t>& dynamic, const StepInput& in) {
  active_.clear();
  inactive_.clear();
  dofs.clear();
  for (std::size_t t = 0; t < tail_.size(); ++t)
    for (Index k = 0; k < 3; ++k) {
      const Index dof = 3 * tail_[t] + k, row = 3 * static_cast<Index>(t) + k;
      if (in.fixed[static_cast<std::size_t>(dof)]) continue;
      if (dynamic[t]) {
        active_.push_back(row);
        dofs.push_back(dof);
      } else {
        inactive_.push_back(row);
      }
    }
  const auto r = static_cast<Eigen::Index>(active_.size());
  C_.setZero(schur_.rows(), r);
  for (Eigen::Index c = 0; c < r; ++c) C_(active_[static_cast<std::size_t>(c)], c) = 1;
  S = schur_(active_, active_);
  if (!inactive_.empty()) {
    schur_inactive_.compute(MatX(schur_(inactive_, inactive_)));
    const MatX coupling = schur_(inactive_, active_);
    const MatX follow = schur_inactive_.solve(coupling);
    for (std::size_t i = 0; i < inactive_.size(); ++i)
      C_.row(inactive_[i]) = -follow.row(static_cast<Eigen::Index>(i));
    S.noalias() -= coupling.transpose() * follow;
  }
}

void Condensation::solve_quasistatic(VecX& b) const {
  for (Eigen::Index d = 0; d < b.size(); ++d)
    if (in_->fixed[static_cast<std::size_t>(d)]) b[d] = 0;
  if (inactive_.empty()) {
    solver_.solve_q(b);
    return;
  }
  // Block elimination on the tail: first as if the tail stood still, then the quasistatic part of the tail in
  // its own small system.
  VecX rhs(schur_.rows());
  for (std::size_t t = 0; t < tail_.size(); ++t)
    rhs.segment<3>(3 * static_cast<Eigen::Index>(t)) = node(b, tail_[t]);
  solver_.solve_q(b);
  for (std::size_t t = 0; t < tail_.size(); ++t)
    for (const Neighbour& nb : tail_rows_[t]) {
      auto r = rhs.segment<3>(3 * static_cast<Eigen::Index>(t));
      if (nb.transposed)
        r -= system.K.block(nb.block).transpose() * node(b, nb.node);
      else
        r -= system.K.block(nb.block) * node(b, nb.node);
    }
  MatX move = MatX::Zero(schur_.rows(), 1);
  const VecX quasistatic = schur_inactive_.solve(VecX(rhs(inactive_)));
  move(inactive_, 0) = quasistatic;
  MatX follow;
  solver_.extend_from_tail(move, follow);
  b += follow.col(0);
}

}  // namespace limber
