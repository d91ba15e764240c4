// Contacts that open and close within a step: few springs more or less than a factored island has.
//   (A + W S Wᵀ)^-1 b = y - Z (S^-1 + Wᵀ Z)^-1 Wᵀ y,   Z = A^-1 W, y = A^-1 b   (Woodbury)
#include <limber/methods/rigidify/mixed_system.hpp>

#include <algorithm>
#include <cmath>

namespace limber::rigidify {
namespace {

constexpr std::size_t kMostChanges = 31;  // with the right-hand side one pass over the factor
// A solve of several columns runs at about this share of the speed of a factorisation.
constexpr double kSolveSpeed = 0.25;
// Of a pivot of the small matrix must be left, or its island is factored: u loses so many digits.
constexpr double kLeft = 1e-6;

}  // namespace

bool MixedSystem::corrects(const Island& island) const {
  const CholeskyStats& stats = island.solver.stats();
  const auto columns = static_cast<double>(island.changes.size() + 1);
  return by_change_ && !keeps_whole_ && !island.anew && !island.changes.empty() &&
         island.changes.size() <= kMostChanges && 4 * stats.nnz * columns < kSolveSpeed * stats.flops;
}

bool MixedSystem::change_spring(std::span<const Index> nodes, std::span<const double> weights, const Vec3& d,
                                double s, const VecX& x, std::span<const RigidPiece> pieces) {
  Island& island = island_of(nodes[0]);
  for (const Index i : nodes)
    if (&island_of(i) != &island) return false;
  Change change;
  change.s = s;
  SparseRow& w = change.w;
  const auto add = [&](Index b, const Vec3& v) {
    std::size_t k = 0;
    while (k < w.count && w.block[k] != b) ++k;
    if (k == w.count) {
      w.block[w.count++] = b;
      w.value[k].setZero();
    }
    w.value[k] += v;
  };
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (node_block_[at(nodes[k])] < 0) continue;
    const Index b = node_block_[at(nodes[k])] + offset_[at(model_.piece_of_node[at(nodes[k])])];
    add(b, weights[k] * d);
    if (rigid(nodes[k])) add(b + 1, weights[k] * cross(arm(nodes[k], x, pieces), d));
  }
  island.changed = true;
  island.changes.push_back(change);
  return true;
}

// The right-hand side of a corrected island: held degrees of freedom take from it what they took before, and
// what the changed springs between them and others do.
void MixedSystem::hold_corrected(const Island& island, VecX& rhs) const {
  if (island.known.size() == 0) return;
  const double diagonal = model_.mass.mean();
  VecX known = island.known, velocity(known.size());
  std::vector<std::uint8_t> fixed(static_cast<std::size_t>(known.size()));
  for_stretches(island, [&](Index begin, Index start, Index count) {
    std::copy_n(fixed_.begin() + 3 * begin, 3 * count, fixed.begin() + 3 * start);
    velocity.segment(3 * start, 3 * count) = fixed_velocity_.segment(3 * begin, 3 * count);
  });
  for (const Change& change : island.changes) {
    double moved = 0;  // w·v of held degrees of freedom, whose velocities are zero elsewhere
    for (std::size_t k = 0; k < change.w.count; ++k)
      moved += change.w.value[k].dot(node(velocity, change.w.block[k]));
    for (std::size_t k = 0; k < change.w.count; ++k)
      node(known, change.w.block[k]) += change.s * moved * change.w.value[k];
  }
  for_stretches(island, [&](Index begin, Index start, Index count) {
    for (Eigen::Index d = 0; d < 3 * static_cast<Eigen::Index>(count); ++d)
      if (fixed[static_cast<std::size_t>(3 * start + d)])
        rhs[3 * begin + d] = diagonal * velocity[3 * start + d];
      else
        rhs[3 * begin + d] -= known[3 * start + d];
  });
}

// `own`: right-hand side, then solution. False: a pivot was lost.
bool MixedSystem::solve_corrected(Island& island, VecX& own) {
  ++corrections_;
  // Springs that came first: eliminated in this order the small matrix needs no pivoting, because the matrix
  // with all of them is positive definite, and so is the one without those that go.
  std::stable_sort(island.changes.begin(), island.changes.end(),
                   [](const Change& a, const Change& b) { return a.s > 0 && b.s < 0; });
  std::vector<std::uint8_t> fixed(static_cast<std::size_t>(own.size()), 0);
  if (island.known.size() > 0)
    for_stretches(island, [&](Index begin, Index start, Index count) {
      std::copy_n(fixed_.begin() + 3 * begin, 3 * count, fixed.begin() + 3 * start);
    });
  const auto m = static_cast<Eigen::Index>(island.changes.size());
  MatX columns = MatX::Zero(own.size(), m + 1);
  columns.col(m) = own;
  for (Eigen::Index c = 0; c < m; ++c) {
    Change& change = island.changes[static_cast<std::size_t>(c)];
    for (std::size_t k = 0; k < change.w.count; ++k)
      for (int a = 0; a < 3; ++a) {
        const Eigen::Index d = 3 * static_cast<Eigen::Index>(change.w.block[k]) + a;
        if (!fixed[static_cast<std::size_t>(d)]) columns(d, c) = change.w.value[k][a];
      }
  }
  const MatX W = columns.leftCols(m);
  island.solver.solve_many(columns);
  // |S|^1/2 (S^-1 + Wᵀ Z) |S|^1/2 and |S|^1/2 Wᵀ y: L D Lᵀ in place, then the solve.
  VecX root(m), g(m);
  MatX T(m, m);
  for (Eigen::Index c = 0; c < m; ++c)
    root[c] = std::sqrt(std::abs(island.changes[static_cast<std::size_t>(c)].s));
  const auto dot_row = [&](Eigen::Index r, Eigen::Index c) {
    const SparseRow& w = island.changes[static_cast<std::size_t>(r)].w;
    double sum = 0;
    for (std::size_t k = 0; k < w.count; ++k)
      for (int a = 0; a < 3; ++a) {
        const Eigen::Index d = 3 * static_cast<Eigen::Index>(w.block[k]) + a;
        sum += W(d, r) * columns(d, c);
      }
    return sum;
  };
  for (Eigen::Index r = 0; r < m; ++r) {
    for (Eigen::Index c = 0; c <= r; ++c) T(r, c) = root[r] * dot_row(r, c) * root[c];
    T(r, r) += island.changes[static_cast<std::size_t>(r)].s > 0 ? 1 : -1;
    g[r] = root[r] * dot_row(r, m);
  }
  for (Eigen::Index c = 0; c < m; ++c) {
    const double sign = island.changes[static_cast<std::size_t>(c)].s > 0 ? 1 : -1;
    if (!(sign * T(c, c) > kLeft)) return false;
    for (Eigen::Index r = c + 1; r < m; ++r) {
      const double l = T(r, c) / T(c, c);
      for (Eigen::Index k = r; k < m; ++k) T(k, r) -= l * T(k, c);
    }
    for (Eigen::Index r = c + 1; r < m; ++r) {
      T(r, c) /= T(c, c);
      g[r] -= T(r, c) * g[c];
    }
  }
  for (Eigen::Index c = m; c-- > 0;) {
    g[c] /= T(c, c);
    for (Eigen::Index r = c + 1; r < m; ++r) g[c] -= T(r, c) * g[r];
  }
  own = columns.col(m);
  for (Eigen::Index c = 0; c < m; ++c) own -= root[c] * g[c] * columns.col(c);
  return true;
}

}  // namespace limber::rigidify
