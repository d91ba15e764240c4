// The part of Condensation that has to do with modes.
#include <limber/core/parallel.hpp>
#include <limber/linalg/tall.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/conjac/condensation.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace limber {

// B <- K_QQ^-1 B_Q of one piece, modes or not.
void Condensation::solve_part(Part& part, MatX& B) const {
  for (std::size_t i = 0; i < part.nodes.size(); ++i)
    for (std::size_t k = 0; k < 3; ++k)
      if (made_of_.fixed[3 * static_cast<std::size_t>(part.nodes[i]) + k])
        B.row(static_cast<Eigen::Index>(3 * i + k)).setZero();
  part.loads = std::move(B);
  part.carried = false;
  condense_loads(part);
  place_inactive(part);
  RowMatX none;
  extend(MatX(part.schur.rows(), 0), none, B, part);
}

// Which degrees of freedom of a piece are neither held nor dynamic: 3 for each of its nodes.
std::vector<std::uint8_t> Condensation::quasistatic(const std::vector<std::uint8_t>& dynamic,
                                                    const Part& part) const {
  std::vector<std::uint8_t> active(3 * part.nodes.size());
  for (std::size_t i = 0; i < part.nodes.size(); ++i)
    for (std::size_t k = 0; k < 3; ++k)
      active[3 * i + k] = !made_of_.fixed[3 * static_cast<std::size_t>(part.nodes[i]) + k];
  for (const std::size_t t : part.tail)
    if (dynamic[t]) std::fill_n(active.begin() + 3 * place_of_node_[representatives_[t]], 3, std::uint8_t{0});
  return active;
}

Condensation::Missed Condensation::missed(const std::vector<std::uint8_t>& dynamic) {
  Missed out;
  for (Part& part : parts_) {
    const bool known = part.modes.values.size() > part.modes.available;
    const std::vector<std::uint8_t> active = quasistatic(dynamic, part);
    if (!known && std::count(active.begin(), active.end(), std::uint8_t{1}) == part.modes.available) continue;
    const PieceModes modes =
        known ? part.modes
              : lowest_modes(part.mass, active, [&](MatX& B) { solve_part(part, B); }, ModeChoice{}, {});
    const Index first = known ? modes.available : 0;
    const double f = frequency(modes.values[first]);
    if (!(f < out.frequency)) continue;
    out.frequency = f;
    MatX shape = MatX::Zero(3 * static_cast<Eigen::Index>(model_.nodes()), 1);
    scatter(part, modes.shapes.col(first), shape);
    out.shape = shape.col(0);
    double largest = -1;
    for (std::size_t i = 0; i < part.nodes.size(); ++i) {
      const double size = modes.shapes.block<3, 1>(3 * static_cast<Eigen::Index>(i), first).norm();
      if (size > largest) {
        largest = size;
        out.node = part.nodes[i];
      }
    }
  }
  return out;
}

// The vectors that the next pass over the factor sweeps.
void Condensation::begin_sweep(const std::vector<std::uint8_t>& dynamic, Part& part) const {
  const bool known =
      part.choice.count > 0 && !part.modes_active.empty() && part.modes_active == quasistatic(dynamic, part);
  const Eigen::Index count = known ? swept_vectors(part.modes, sweep_all) : 0;
  weighted(part.mass, part.modes.shapes.leftCols(count), part.sweep);
}

// The modes of the present K, with the present dynamic nodes. They are followed from the last ones, or found
// anew where other nodes are dynamic or held.
void Condensation::update_modes(const std::vector<std::uint8_t>& dynamic, Part& part) {
  std::vector<std::uint8_t> active = quasistatic(dynamic, part);
  const QuasistaticSolve solve = [&](MatX& B) { solve_part(part, B); };
  MatX start = std::move(part.start);
  if (part.modes_active == active) {
    const auto swept = part.motions.rightCols(part.sweep.cols());
    if (follow_modes(part.mass, solve, part.sweep, swept, !modes_sleep, part.modes)) return;
  } else if (!part.modes_active.empty()) {
    start = part.modes.shapes;
  }
  if (start.cols() > 0) ++modes_from_old;
  part.modes = lowest_modes(part.mass, active, solve, part.choice, std::move(start));
  part.modes_active = std::move(active);
  ++new_modes;
}

VecX Condensation::mode_forces(std::size_t piece, const VecX& f) const {
  const Part& part = parts_[piece];
  return tall_product(part.modes.shapes, gather(part, f)).col(0);
}

void Condensation::add_modes(const Part& part, CondensedPiece& piece) {
  const Eigen::Index n = part.mass.size(), r = part.C.cols(), m = part.modes.count;
  RowMatX nodes;
  if (r > 0) nodes = std::move(piece.J);
  piece.J.resize(n, r + m);
  if (r > 0) piece.J.leftCols(r) = nodes;
  if (m == 0) return;
  parallel_ranges(n, 1536, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    piece.J.block(begin, r, end - begin, m) = part.modes.shapes.block(begin, 0, end - begin, m);
  });
  MatX S = MatX::Zero(r + m, r + m);
  S.topLeftCorner(r, r) = piece.S;
  S.bottomRightCorner(m, m).diagonal() = part.modes.values.head(m);
  piece.S = std::move(S);
  VecX k_w = VecX::Zero(r + m);
  k_w.head(r) = piece.k_w;
  piece.k_w = std::move(k_w);
}

// What modes carry of the quasistatic motion b = K_QQ^-1 f in the first column: Phi lambda^-1 Phiᵀ f, and
// Phiᵀ f = Phiᵀ K_QQ b.
void Condensation::leave_out_modes(Part& part) const {
  const Eigen::Index m = part.modes.count;
  if (part.choice.count == 0 || m == 0) return;
  MatX carried = tall_product(part.modes.pull, part.motions.leftCols(1));
  carried.array().colwise() /= part.modes.values.head(m).array();
  subtract_product(part.modes.dynamic(), carried, part.motions.leftCols(1));
}

bool Condensation::has_modes() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.choice.count > 0; });
}

Index Condensation::most_modes() const {
  Index most = 0;
  for (const Part& part : parts_) most = std::max(most, part.choice.count);
  return most;
}

void Condensation::recall(const ModeMemory& memory) {
  // A factor of the step before would do for a body that has not moved by a bit, but what is solved with it
  // rounds otherwise than what goes along with a new one, and after a restart there is none.
  factored_ = false;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    Part& part = parts_[p];
    if (part.choice.count == 0) continue;
    part.modes_active.clear();
    part.start.resize(0, 0);
    if (memory.count.size() != parts_.size()) {
      part.modes = {};
      const Eigen::Index n = 3 * static_cast<Eigen::Index>(model_.nodes());
      if (memory.count.empty())
        part.start = gather(part, Eigen::Map<const MatX>(memory.shapes.data(), n, memory.shapes.size() / n));
      continue;
    }
    const auto vectors = static_cast<Eigen::Index>(memory.vectors[p]);
    part.modes.count = static_cast<Index>(memory.count[p]);
    part.modes.available = static_cast<Index>(memory.available[p]);
    const Eigen::Index n = 3 * static_cast<Eigen::Index>(model_.nodes());
    const Eigen::Map<const MatX> shapes(memory.shapes.data(), n, vectors);
    if (alone())
      part.modes.shapes = shapes;
    else
      part.modes.shapes = gather(part, shapes);
    part.modes.values =
        Eigen::Map<const VecX>(memory.values.data(), memory.values.size())
            .segment(static_cast<Eigen::Index>(p * memory.values.size() / parts_.size()), vectors);
    for (const Index i : part.nodes)
      for (std::size_t k = 0; k < 3; ++k)
        part.modes_active.push_back(memory.active[3 * static_cast<std::size_t>(i) + k]);
  }
}

std::string Condensation::misfit(const ModeMemory& memory) const {
  if (memory.count.empty() && memory.vectors.empty() && memory.active.empty() &&
      memory.shapes.size() % (3 * std::max<Eigen::Index>(1, model_.nodes())) == 0 &&
      memory.shapes.allFinite())
    return {};  // before the first step, or after a cut
  const auto count = static_cast<std::ptrdiff_t>(memory.count.size()),
             parts = static_cast<std::ptrdiff_t>(parts_.size());
  const std::ptrdiff_t n = 3 * static_cast<std::ptrdiff_t>(model_.nodes());
  if (count != parts) return wrong_size("mode_count", count, parts);
  if (memory.vectors.size() != memory.count.size())
    return wrong_size("mode_vectors", static_cast<std::ptrdiff_t>(memory.vectors.size()), parts);
  if (memory.available.size() != memory.count.size())
    return wrong_size("mode_available", static_cast<std::ptrdiff_t>(memory.available.size()), parts);
  if (static_cast<std::ptrdiff_t>(memory.active.size()) != n)
    return wrong_size("mode_active", static_cast<std::ptrdiff_t>(memory.active.size()), n);
  std::int64_t most = 0;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const std::int64_t modes = memory.available[p], vectors = memory.vectors[p];
    if (modes < 0 || modes > parts_[p].choice.count || vectors < modes || vectors > modes + kSpareModes)
      return fmt::format("piece {} has {} modes of {} vectors, expected at most {} modes", p + 1, modes,
                         vectors, parts_[p].choice.count);
    if (memory.count[p] < 0 || memory.count[p] > modes || (memory.count[p] < modes && !modes_sleep))
      return fmt::format("piece {} has {} dynamic modes of {}", p + 1, memory.count[p], modes);
    most = std::max(most, vectors);
  }
  if (static_cast<std::int64_t>(memory.values.size()) != most * parts)
    return wrong_size("mode_values", static_cast<std::ptrdiff_t>(memory.values.size()), most * parts);
  if (!std::all_of(memory.values.begin(), memory.values.end(), [](double v) { return v >= 0; }))
    return "\"mode_values\" has a number that is not from 0 on";
  if (memory.shapes.size() != n * most) return wrong_size("mode_shapes", memory.shapes.size(), n * most);
  return memory.shapes.allFinite() ? "" : "\"mode_shapes\" has a number that is not finite";
}

void Condensation::keep(ModeMemory& memory) const {
  const Eigen::Index n = 3 * static_cast<Eigen::Index>(model_.nodes());
  Eigen::Index most = 0;
  for (const Part& part : parts_) most = std::max(most, part.modes.shapes.cols());
  if (alone())
    memory.shapes.resize(n * most);
  else
    memory.shapes.setZero(n * most);
  memory.count.clear();
  memory.available.clear();
  memory.vectors.clear();
  memory.values.clear();
  memory.active.assign(static_cast<std::size_t>(n), 0);
  Eigen::Map<MatX> shapes(memory.shapes.data(), n, most);
  for (const Part& part : parts_) {
    memory.count.push_back(part.modes.count);
    memory.available.push_back(part.modes.available);
    for (Eigen::Index k = 0; k < most; ++k)
      memory.values.push_back(k < part.modes.values.size() ? part.modes.values[k] : 0);
    memory.vectors.push_back(part.modes.shapes.cols());
    if (alone()) shapes = part.modes.shapes;
    for (std::size_t i = 0; i < part.nodes.size() && part.modes.shapes.cols() > 0; ++i) {
      if (!alone())
        shapes.block(3 * part.nodes[i], 0, 3, part.modes.shapes.cols()) =
            part.modes.shapes.middleRows<3>(3 * static_cast<Eigen::Index>(i));
      for (std::size_t k = 0; k < 3 && !part.modes_active.empty(); ++k)
        memory.active[3 * static_cast<std::size_t>(part.nodes[i]) + k] = part.modes_active[3 * i + k];
    }
  }
}

}  // namespace limber
