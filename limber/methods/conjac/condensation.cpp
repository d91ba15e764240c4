#include <limber/methods/conjac/condensation.hpp>

#include <limber/core/parallel.hpp>
#include <limber/methods/common/system.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace limber {
namespace {

// Rows of J per piece of work: fixed, and summed in order, so that results are the same bits for any thread
// count.
constexpr Eigen::Index kRows = 1536;

// The lower triangle of AᵀA, for few columns and many rows: 8x8 blocks that stay in registers while the rows
// pass by. The last block reaches back where the columns are not a multiple of 8.
void gram(const RowMatX& A, MatX& G) {
  constexpr Eigen::Index kBlock = 8;
  using Row = Eigen::Matrix<double, kBlock, 1>;
  const Eigen::Index r = A.cols();
  if (r < kBlock) {
    G.noalias() = A.transpose() * A;
    return;
  }
  G.resize(r, r);
  const auto start = [r](Eigen::Index b) { return std::min(b, r - kBlock); };
  for (Eigen::Index i = 0; i < r; i += kBlock)
    for (Eigen::Index j = 0; j <= i; j += kBlock) {
      const double *a = A.data() + start(i), *b = A.data() + start(j);
      Eigen::Matrix<double, kBlock, kBlock> sum = Eigen::Matrix<double, kBlock, kBlock>::Zero();
      for (Eigen::Index k = 0; k < A.rows(); ++k, a += r, b += r)
        sum.noalias() += Eigen::Map<const Row>(a) * Eigen::Map<const Row>(b).transpose();
      G.block<kBlock, kBlock>(start(i), start(j)) = sum;
    }
}

}  // namespace

Condensation::Condensation(const Model& model, std::vector<Index> representatives,
                           const CholeskyOptions& options)
    : model_(model), tail_(std::move(representatives)), solver_(options), eliminator_(*model.pattern) {
  solver_.analyze(*model.pattern, tail_);
}

bool Condensation::assemble(const VecX& x, const StepInput& in, const ContactStep& contact, PhaseClock& clock,
                            bool again) {
  auto phase = clock.phase("assemble");
  in_ = &in;
  contact_ = &contact;
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
  return true;
}

bool Condensation::condense(const std::vector<std::uint8_t>& dynamic, const VecX& force, const VecX& v,
                            VecX& b, PhaseClock& clock, bool same_matrix) {
  const bool scripted = (in_->fixed_velocity.array() != 0).any() || contact_->moves();
  loads_.resize(b.size(), scripted ? 2 : 1);
  loads_.col(0) = b;
  if (scripted) {
    if (!same_matrix) {
      eliminator_.multiply_fixed(system.K, in_->fixed, in_->fixed_velocity, known_);
      contact_->add_drag(-1, known_);
    }
    loads_.col(1) = -known_;
  }
  if (!same_matrix) {
    auto phase = clock.phase("factor");
    if (!factor(*in_)) return false;
  }
  {
    auto phase = clock.phase("solve");
    split_tail(dynamic, *in_);
    condense_loads();
    if (scripted)
      k_w.noalias() = -C_.transpose() * loads_.col(1).tail(C_.rows());
    else
      k_w.setZero(C_.cols());
    place_inactive();
    solver_.extend_from_tail(C_, loads_, J, motions_);
    b = motions_.col(0);
    if (scripted) {
      w = motions_.col(1);
      for (Eigen::Index d = 0; d < w.size(); ++d)
        if (in_->fixed[static_cast<std::size_t>(d)]) w[d] = in_->fixed_velocity[d];
    } else {
      w.setZero(b.size());
    }
  }
  auto phase = clock.phase("project");
  project(force, v);
  S_contact.setZero(J.cols(), J.cols());
  for (const ContactLaw& law : contact_->laws()) {
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

// One pass over J, with M diagonal.
void Condensation::project(const VecX& force, const VecX& v) {
  struct Part {
    MatX M, p;
  };
  std::vector<Part> part(static_cast<std::size_t>((J.rows() + kRows - 1) / kRows));
  parallel_ranges(J.rows(), kRows, [&](Eigen::Index begin, Eigen::Index end) {
    const auto rows = Eigen::seqN(begin, end - begin);
    const auto j = J.middleRows(begin, end - begin);
    const auto mass = model_.mass(rows).array();
    Part& s = part[static_cast<std::size_t>(begin / kRows)];
    const RowMatX half = mass.sqrt().matrix().asDiagonal() * j;
    gram(half, s.M);
    s.p.resize(J.cols(), 3);
    s.p.col(0).noalias() = j.transpose() * force(rows);
    s.p.col(1).noalias() = j.transpose() * (mass * w(rows).array()).matrix();
    s.p.col(2).noalias() = j.transpose() * (mass * (v(rows) - w(rows)).array()).matrix();
  });
  M_r.setZero(J.cols(), J.cols());  // of which the lower triangle counts
  MatX p = MatX::Zero(J.cols(), 3);
  for (const Part& s : part) {
    M_r.triangularView<Eigen::Lower>() += s.M;
    p += s.p;
  }
  M_r.triangularView<Eigen::StrictlyUpper>() = M_r.transpose();
  f_r = p.col(0);
  m_w = p.col(1);
  p_r = p.col(2);
}

MatX Condensation::extend(const MatX& y) const {
  MatX x(J.rows(), y.cols());
  parallel_ranges(J.rows(), kRows, [&](Eigen::Index begin, Eigen::Index end) {
    for (Eigen::Index c = 0; c < y.cols(); ++c)
      x.col(c).segment(begin, end - begin).noalias() = J.middleRows(begin, end - begin) * y.col(c);
  });
  return x;
}

// Degrees of freedom that are held carry no load of their own.
void Condensation::condense_loads() {
  for (Eigen::Index c = 0; c < loads_.cols(); ++c)
    for (Eigen::Index d = 0; d < loads_.rows(); ++d)
      if (in_->fixed[static_cast<std::size_t>(d)]) loads_(d, c) = 0;
  solver_.condense_to_tail(loads_);
}

// The motion of the tail under its condensed loads: dynamic nodes stand still, the others go to their
// equilibrium, in their own small system.
void Condensation::place_inactive() {
  auto tail = loads_.bottomRows(schur_.rows());
  if (inactive_.empty()) {
    tail.setZero();
    return;
  }
  const MatX quasistatic = schur_inactive_.solve(MatX(tail(inactive_, Eigen::all)));
  tail.setZero();
  tail(inactive_, Eigen::all) = quasistatic;
}

void Condensation::solve_quasistatic(VecX& b) {
  loads_ = b;
  condense_loads();
  place_inactive();
  RowMatX none;
  solver_.extend_from_tail(MatX(schur_.rows(), 0), loads_, none, motions_);
  b = motions_.col(0);
}

}  // namespace limber
