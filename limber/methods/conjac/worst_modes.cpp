#include <limber/methods/conjac/worst_modes.hpp>

#include <limber/core/error.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/fem/dof.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/linalg/eigenpairs.hpp>
#include <limber/linalg/shifted_factor.hpp>
#include <limber/linalg/tall.hpp>

#include <algorithm>
#include <array>

namespace limber {
namespace {

// Of K over M: makes the matrix of a free body definite, and is slower than anything that is looked for.
constexpr double kRigidShift = 1e-10;
constexpr double kWorstTolerance = 1e-3;  // of the mode: it has only to show where it moves most
constexpr Index kHeldByBorder = 24;       // nodes; then the matrix is factored with these held

struct UncutBody {
  BlockMatrix K;
  VecX mass;
};

// K and M at rest, copies of a node joined to it.
UncutBody uncut_body(const Model& model) {
  VecX x(3 * model.nodes());
  for (Index i = 0; i < model.nodes(); ++i) node(x, i) = model.mesh.rest[i];
  fem::Assembled system;
  fem::assemble(*model.elements, x, std::vector<double>(model.activations.size(), 0.0), system);
  if (std::none_of(model.origin.begin(), model.origin.end(),
                   [i = Index{0}](Index origin) mutable { return origin != i++; }))
    return {std::move(system.K), model.mass};
  std::vector<std::array<Index, 4>> cliques(model.mesh.elements.begin(), model.mesh.elements.end());
  for (auto& nodes : cliques)
    for (Index& i : nodes)
      if (i >= 0) i = model.origin[i];
  UncutBody out{BlockMatrix(std::make_shared<const BlockPattern>(make_block_pattern(model.nodes(), cliques))),
                VecX::Zero(model.mass.size())};
  std::fill(out.K.values.begin(), out.K.values.end(), 0.0);
  const BlockPattern& p = *system.K.pattern;
  for (Index j = 0; j < p.n; ++j) {
    node(out.mass, model.origin[j]) += node(model.mass, j);
    for (Index b = p.col_begin[j]; b < p.col_begin[j + 1]; ++b) {
      const Index row = model.origin[p.row[b]], column = model.origin[j];
      const Mat3 value = system.K.block(b);
      if (row == column && p.row[b] != j)  // two copies of one node
        out.K.block(out.K.pattern->find(row, row)) += value + value.transpose();
      else if (row >= column)
        out.K.block(out.K.pattern->find(row, column)) += value;
      else
        out.K.block(out.K.pattern->find(column, row)) += value.transpose();
    }
  }
  return out;
}

// Solutions with nodes held: some by elimination before the factorisation, those that are added later by
// the forces that hold them.
class HeldSolver {
 public:
  HeldSolver(const UncutBody& body, const CholeskyOptions& options)
      : body_(body), eliminator_(*body.K.pattern), solver_(options) {
    solver_.analyze(*body.K.pattern);
  }

  [[nodiscard]] bool hold(std::span<const std::uint8_t> fixed) {
    BlockMatrix K = body_.K;
    const double mean = mean_diagonal(K);
    const double shift = kRigidShift * mean * static_cast<double>(body_.mass.size()) / body_.mass.sum();
    for (Index i = 0; i < K.pattern->n; ++i)
      K.block(K.pattern->col_begin[i]).diagonal() += shift * node(body_.mass, i);
    eliminator_.eliminate(K, fixed, mean);
    held_.clear();
    motions_.resize(body_.mass.size(), 0);
    return solver_.factor(K).ok;
  }

  // One node more. False: the nodes that are held this way are too many or too close.
  [[nodiscard]] bool add(Index i) {
    for (Index k = 0; k < 3; ++k) held_.push_back(3 * i + k);
    MatX unit = MatX::Zero(body_.mass.size(), 3);
    unit.middleRows<3>(3 * i).setIdentity();
    solver_.solve_many(unit);
    motions_.conservativeResize(Eigen::NoChange, motions_.cols() + 3);
    motions_.rightCols(3) = unit;
    const MatX mobility = motions_(held_, Eigen::all);
    return border_.factor(0.5 * (mobility + mobility.transpose()));
  }

  std::size_t added() const { return held_.size() / 3; }

  void solve(Eigen::Ref<MatX> B) const {
    solver_.solve_many(B);
    if (held_.empty()) return;
    const MatX off = B(held_, Eigen::all);
    subtract_product(motions_, border_.solve_all(off), B);
    for (const Index d : held_) B.row(d).setZero();
  }

 private:
  const UncutBody& body_;
  fem::DofEliminator eliminator_;
  Cholesky solver_;
  std::vector<Index> held_;
  MatX motions_;  // of all for unit forces on held_
  DenseCholesky<Eigen::Dynamic> border_;
};

void hold_node(std::vector<std::uint8_t>& fixed, Index i) {
  std::fill_n(fixed.begin() + 3 * i, 3, std::uint8_t{1});
}

// The slowest motion that is left.
Eigenpairs slowest_motion(const UncutBody& body, const HeldSolver& held,
                          const std::vector<std::uint8_t>& fixed) {
  std::vector<std::uint8_t> active(fixed.size());
  std::transform(fixed.begin(), fixed.end(), active.begin(), [](std::uint8_t f) { return f == 0; });
  EigenOptions lowest;
  lowest.tolerance = kWorstTolerance;
  return smallest_eigenpairs(
      body.mass, active, [&](Eigen::Ref<MatX> B) { held.solve(B); }, 1, lowest);
}

}  // namespace

std::vector<Index> worst_mode_nodes(const Model& model, const std::vector<std::uint8_t>& fixed_before,
                                    std::span<const Index> candidates, const std::vector<Index>& spread,
                                    const CholeskyOptions& options) {
  if (spread.empty() || spread.size() == candidates.size()) return spread;
  const UncutBody body = uncut_body(model);
  std::vector<std::uint8_t> fixed = fixed_before;
  for (Index i = 0; i < model.nodes(); ++i)
    if (model.origin[i] != i) hold_node(fixed, i);
  std::vector<std::uint8_t> candidate(static_cast<std::size_t>(model.nodes()), 0);
  for (const Index i : candidates) candidate[i] = 1;
  HeldSolver held(body, options);
  try {
    std::vector<std::uint8_t> apart = fixed;
    for (const Index i : spread) hold_node(apart, i);
    if (!held.hold(apart)) return spread;
    const double spread_misses = slowest_motion(body, held, apart).values[0];

    std::vector<Index> chosen;
    if (!held.hold(fixed)) return spread;
    for (;;) {
      const Eigenpairs slowest = slowest_motion(body, held, fixed);
      if (chosen.size() == spread.size()) return slowest.values[0] > spread_misses ? chosen : spread;
      Index best = -1;
      double largest = 0;
      for (Index i = 0; i < model.nodes(); ++i) {
        const double size = slowest.vectors.block<3, 1>(3 * i, 0).squaredNorm();
        if (candidate[i] && size > largest) {
          largest = size;
          best = i;
        }
      }
      if (best < 0) return spread;
      chosen.push_back(best);
      candidate[best] = 0;
      hold_node(fixed, best);
      const bool bordered = static_cast<Index>(held.added()) < kHeldByBorder && held.add(best);
      if (!bordered && !held.hold(fixed)) return spread;
    }
  } catch (const Error&) {
    return spread;  // Lanczos did not converge
  }
}

}  // namespace limber
