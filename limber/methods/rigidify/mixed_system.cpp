#include <limber/methods/rigidify/mixed_system.hpp>

#include <limber/core/parallel.hpp>
#include <limber/mesh/geometry.hpp>
#include <limber/methods/common/system.hpp>

#include <algorithm>
#include <numeric>

namespace limber::rigidify {
namespace {

// Pᵀ C and C P for P = -[r]x.
Mat3 turn_rows(const Vec3& r, const Mat3& C) {
  Mat3 out;
  for (int k = 0; k < 3; ++k) out.col(k) = cross(r, C.col(k));
  return out;
}
Mat3 turn_columns(const Mat3& C, const Vec3& r) {
  Mat3 out;
  for (int k = 0; k < 3; ++k) out.row(k) = cross(r, C.row(k).transpose()).transpose();
  return out;
}

}  // namespace

MixedSystem::MixedSystem(const Model& model)
    : model_(model),
      plane_node_(at(model.nodes()), 0),
      whole_eliminator_(*model.pattern),
      whole_solver_({model.scene->solver, model.scene->ordering}),
      mixed_solver_({model.scene->solver, model.scene->ordering}) {
  for (std::size_t e = 0; e < model.mesh.elements.size(); ++e)
    if (moves_in_plane(model.mesh.kind(e)))
      for (int a = 0; a < 3; ++a) plane_node_[at(model.mesh.elements[e][static_cast<std::size_t>(a)])] = 1;
  whole_solver_.analyze(*model.pattern);
  order_.assign(whole_solver_.order().begin(), whole_solver_.order().end());
  PieceAssignment none;
  none.element.assign(model.mesh.elements.size(), -1);
  none.node.assign(at(model.nodes()), -1);
  element_piece_.assign(1, 0);  // not the mask below
  set_pieces(none);
}

void MixedSystem::set_pieces(const PieceAssignment& a) {
  if (a.element == element_piece_ && a.held == held_) return;
  element_piece_ = a.element;
  node_piece_ = a.node;
  held_ = a.held;
  stale_ = true;
  whole_ = held_.empty();
  list_.clear();
  for (std::size_t e = 0; e < element_piece_.size(); ++e)
    if (element_piece_[e] < 0) list_.push_back(static_cast<Index>(e));
  piece_block_.assign(held_.size(), -1);
  plane_piece_.assign(held_.size(), 0);
  node_block_.assign(node_piece_.size(), -1);
  assembled_ = fem::Assembled();
  if (whole_) {
    plan_ = fem::Plan();
    blocks_ = model_.nodes();
    std::iota(node_block_.begin(), node_block_.end(), 0);
    return;
  }
  plan_ = fem::make_plan(*model_.elements, list_);
  // A piece comes where the last of its nodes stood: seen from the end, at its first.
  std::vector<std::uint8_t> placed(held_.size(), 0), last(order_.size(), 0);
  for (std::size_t k = order_.size(); k-- > 0;)
    if (const std::int32_t j = node_piece_[at(order_[k])]; j >= 0 && !held_[at(j)] && !placed[at(j)])
      placed[at(j)] = last[k] = 1;
  blocks_ = 0;
  for (std::size_t k = 0; k < order_.size(); ++k) {
    const Index i = order_[k];
    const std::int32_t j = node_piece_[at(i)];
    if (j < 0)
      node_block_[at(i)] = blocks_++;
    else if (last[k]) {
      piece_block_[at(j)] = blocks_;
      plane_piece_[at(j)] = plane_node_[at(i)];
      blocks_ += 2;
    }
  }
  for (std::size_t i = 0; i < node_piece_.size(); ++i)
    if (node_piece_[i] >= 0) node_block_[i] = piece_block_[at(node_piece_[i])];
}

void MixedSystem::set_couplings(const std::vector<std::array<Index, 4>>& couplings) {
  if (couplings == couplings_) return;
  couplings_ = couplings;
  stale_ = true;
}

// Where every block of K goes, and with it the pattern of A: column by column.
void MixedSystem::make_pattern() {
  stale_ = false;
  entries_.clear();
  entry_begin_.clear();
  if (plain()) {
    pattern_ = model_.pattern;
    return;
  }
  const BlockPattern& K = whole_ ? *model_.pattern : *fem::pattern(*plan_.elements);
  const auto visit_terms = [&](Index i, auto&& visit) {
    if (node_block_[at(i)] < 0) return;
    visit(node_block_[at(i)], false);
    if (rigid(i)) visit(node_block_[at(i)] + 1, true);
  };
  // Two passes: how many entries a column has, and which.
  const auto visit_entries = [&](auto&& visit) {
    for (Index l = 0; l < K.n; ++l) {
      const Index j = whole_ ? l : plan_.nodes[at(l)];
      for (Index b = K.col_begin[at(l)]; b < K.col_begin[at(l) + 1]; ++b) {
        const Index i = whole_ ? K.row[at(b)] : plan_.nodes[at(K.row[at(b)])];
        visit_terms(i, [&](Index s, bool turns_i) {
          visit_terms(j, [&](Index t, bool turns_j) {
            if (i == j && s < t) return;  // the transpose of another one
            visit(std::min(s, t), Entry{b, std::max(s, t), i, j, turns_i, turns_j, s < t, i != j && s == t});
          });
        });
      }
    }
  };
  entry_begin_.assign(at(blocks_) + 1, 0);
  visit_entries([&](Index column, const Entry&) { ++entry_begin_[at(column) + 1]; });
  std::partial_sum(entry_begin_.begin(), entry_begin_.end(), entry_begin_.begin());
  entries_.resize(at(entry_begin_.back()));
  std::vector<Index> next(entry_begin_.begin(), entry_begin_.end() - 1);
  visit_entries([&](Index column, const Entry& e) { entries_[at(next[at(column)]++)] = e; });
  // What contacts need besides, and the two blocks of a piece: (column, row).
  std::vector<std::pair<Index, Index>> further;
  for (const auto& nodes : couplings_)
    for (const Index i : nodes)
      for (const Index j : nodes)
        visit_terms(i, [&](Index s, bool) {
          visit_terms(j, [&](Index t, bool) {
            if (s > t) further.emplace_back(t, s);
          });
        });
  for (const Index b : piece_block_)
    if (b >= 0) further.emplace_back(b, b + 1);
  std::sort(further.begin(), further.end());
  std::vector<Index> col_begin{0}, row, seen(at(blocks_), -1), place(at(blocks_), -1);
  auto more = further.begin();
  for (Index c = 0; c < blocks_; ++c) {
    const std::size_t first = row.size();
    row.push_back(c);
    seen[at(c)] = c;
    const auto add = [&](Index r) {
      if (seen[at(r)] == c) return;
      seen[at(r)] = c;
      row.push_back(r);
    };
    for (Index k = entry_begin_[at(c)]; k < entry_begin_[at(c) + 1]; ++k) add(entries_[at(k)].to);
    for (; more != further.end() && more->first == c; ++more) add(more->second);
    std::sort(row.begin() + static_cast<std::ptrdiff_t>(first) + 1, row.end());
    for (std::size_t k = first; k < row.size(); ++k) place[at(row[k])] = static_cast<Index>(k);
    for (Index k = entry_begin_[at(c)]; k < entry_begin_[at(c) + 1]; ++k)
      entries_[at(k)].to = place[at(entries_[at(k)].to)];
    col_begin.push_back(static_cast<Index>(row.size()));
  }
  pattern_ = std::make_shared<const BlockPattern>(make_block_pattern(std::move(col_begin), std::move(row)));
  std::vector<Index> order = order_;
  if (!whole_) {
    order.resize(at(blocks_));
    std::iota(order.begin(), order.end(), 0);
  }
  if (blocks_ > 0) mixed_solver_.analyze_in_order(*pattern_, order);
  mixed_eliminator_.emplace(*pattern_);
}

const VecX& MixedSystem::gather(const VecX& of_all, VecX& own) const {
  if (whole_) return of_all;
  own = plan_.gather(of_all);
  return own;
}

void MixedSystem::scatter_add(const VecX& own, VecX& of_all) const {
  if (whole_)
    of_all += own;
  else
    plan_.scatter_add(own, of_all);
}

const fem::Assembled& MixedSystem::assemble(const VecX& x, std::span<const double> activation) {
  fem::assemble(elements(), gather(x, own_x_), activation, assembled_);
  return assembled_;
}

const fem::Assembled& MixedSystem::assemble_force(const VecX& x, std::span<const double> activation) {
  fem::assemble_force(elements(), gather(x, own_x_), activation, assembled_);
  return assembled_;
}

void MixedSystem::prepare() {
  if (stale_) make_pattern();
}

void MixedSystem::form(double m, double k, const VecX& x, std::span<const RigidPiece> pieces, bool keep) {
  if (A_.pattern != pattern_) A_ = BlockMatrix(pattern_);
  if (plain()) {
    if (keep)
      A_.values = assembled_.K.values;
    else
      A_.values.swap(assembled_.K.values);
    scale_and_add_mass(A_, k, m * model_.mass);
    return;
  }
  std::fill(A_.values.begin(), A_.values.end(), 0.0);
  const BlockMatrix& K = assembled_.K;
  parallel_for(blocks_, 128, [&](std::ptrdiff_t c) {
    for (Index n = entry_begin_[static_cast<std::size_t>(c)];
         n < entry_begin_[static_cast<std::size_t>(c) + 1]; ++n) {
      const Entry& e = entries_[at(n)];
      Mat3 C = K.block(e.block);
      if (e.turns_i) C = turn_rows(arm(e.i, x, pieces), C);
      if (e.turns_j) C = turn_columns(C, arm(e.j, x, pieces));
      if (e.twice)
        A_.block(e.to) += k * (C + C.transpose());
      else if (e.transposed)
        A_.block(e.to) += k * C.transpose();
      else
        A_.block(e.to) += k * C;
    }
  });
  for (std::size_t i = 0; i < node_piece_.size(); ++i)
    if (node_piece_[i] < 0)
      for (int a = 0; a < 3; ++a)
        A_.block(pattern_->col_begin[at(node_block_[i])])(a, a) +=
            m * model_.mass[3 * static_cast<Eigen::Index>(i) + a];
  for (std::size_t j = 0; j < piece_block_.size(); ++j) {
    const Index b = piece_block_[j];
    if (b < 0) continue;
    A_.block(pattern_->col_begin[at(b)]) += m * pieces[j].mass * Mat3::Identity();
    A_.block(pattern_->col_begin[at(b) + 1]) += m * pieces[j].I;
  }
}

VecX MixedSystem::known_drag(double k, const VecX& v, const VecX& x,
                             std::span<const RigidPiece> pieces) const {
  VecX own, product, all = VecX::Zero(v.size());
  multiply(assembled_.K, gather(v, own), product);
  scatter_add(k * product, all);
  return reduce(all, x, pieces);
}

void MixedSystem::add_spring(std::span<const Index> nodes, std::span<const double> weights, const Mat3& S,
                             const VecX& x, std::span<const RigidPiece> pieces) {
  // What each block moves of the contact.
  std::array<Index, 8> block{};
  std::array<Mat3, 8> P;
  std::size_t count = 0;
  const auto add = [&](Index b, const Mat3& C) {
    for (std::size_t k = 0; k < count; ++k)
      if (block[k] == b) {
        P[k] += C;
        return;
      }
    block[count] = b;
    P[count++] = C;
  };
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const Index b = node_block_[at(nodes[k])];
    if (b < 0) continue;
    add(b, weights[k] * Mat3::Identity());
    if (rigid(nodes[k])) add(b + 1, turn_columns(weights[k] * Mat3::Identity(), arm(nodes[k], x, pieces)));
  }
  for (std::size_t s = 0; s < count; ++s)
    for (std::size_t t = 0; t < count; ++t)
      if (block[s] >= block[t]) A_.block(pattern_->find(block[s], block[t])) += P[s].transpose() * S * P[t];
}

VecX MixedSystem::reduce(const VecX& f, const VecX& x, std::span<const RigidPiece> pieces) const {
  if (whole_) return f;
  VecX g = VecX::Zero(3 * static_cast<Eigen::Index>(blocks_));
  for (Index i = 0; i < model_.nodes(); ++i) {
    const Index b = node_block_[at(i)];
    if (b < 0) continue;
    node(g, b) += node(f, i);
    if (rigid(i)) node(g, b + 1) += cross(arm(i, x, pieces), node(f, i));
  }
  return g;
}

VecX MixedSystem::expand(const VecX& u, const VecX& x, std::span<const RigidPiece> pieces) const {
  if (whole_) return u;
  VecX v = VecX::Zero(3 * static_cast<Eigen::Index>(model_.nodes()));
  parallel_for(model_.nodes(), 2048, [&](std::ptrdiff_t k) {
    const auto i = static_cast<Index>(k);
    const Index b = node_block_[at(i)];
    if (b < 0) return;
    node(v, i) = node(u, b);
    if (rigid(i)) node(v, i) += cross(node(u, b + 1), arm(i, x, pieces));
  });
  return v;
}

VecX MixedSystem::momenta(const VecX& v, std::span<const RigidPiece> pieces) const {
  if (whole_) return model_.mass.cwiseProduct(v);
  VecX g = VecX::Zero(3 * static_cast<Eigen::Index>(blocks_));
  for (Index i = 0; i < model_.nodes(); ++i)
    if (!rigid(i)) node(g, node_block_[at(i)]) = node(model_.mass, i).cwiseProduct(node(v, i));
  for (std::size_t j = 0; j < piece_block_.size(); ++j)
    if (piece_block_[j] >= 0) {
      node(g, piece_block_[j]) = pieces[j].p;
      node(g, piece_block_[j] + 1) = pieces[j].L;
    }
  return g;
}

VecX MixedSystem::velocities(const VecX& v, std::span<const RigidPiece> pieces) const {
  if (whole_) return v;
  VecX u = VecX::Zero(3 * static_cast<Eigen::Index>(blocks_));
  for (Index i = 0; i < model_.nodes(); ++i)
    if (!rigid(i)) node(u, node_block_[at(i)]) = node(v, i);
  for (std::size_t j = 0; j < piece_block_.size(); ++j)
    if (piece_block_[j] >= 0) {
      node(u, piece_block_[j]) = pieces[j].velocity();
      node(u, piece_block_[j] + 1) = pieces[j].spin();
    }
  return u;
}

VecX MixedSystem::multiply_mass(const VecX& u, std::span<const RigidPiece> pieces) const {
  if (whole_) return model_.mass.cwiseProduct(u);
  VecX g(u.size());
  for (Index i = 0; i < model_.nodes(); ++i)
    if (!rigid(i)) {
      const Index b = node_block_[at(i)];
      node(g, b) = node(model_.mass, i).cwiseProduct(node(u, b));
    }
  for (std::size_t j = 0; j < piece_block_.size(); ++j)
    if (const Index b = piece_block_[j]; b >= 0) {
      node(g, b) = pieces[j].mass * node(u, b);
      node(g, b + 1) = pieces[j].I * node(u, b + 1);
    }
  return g;
}

void MixedSystem::set_fixed(const StepInput& in) {
  const auto n = 3 * at(blocks_);
  fixed_.assign(n, 0);
  fixed_velocity_.setZero(static_cast<Eigen::Index>(n));
  for (Index i = 0; i < model_.nodes(); ++i) {
    if (rigid(i)) continue;
    const std::size_t b = 3 * at(node_block_[at(i)]), d = 3 * at(i);
    for (std::size_t k = 0; k < 3; ++k) {
      fixed_[b + k] = in.fixed[d + k];
      if (in.fixed[d + k])
        fixed_velocity_[static_cast<Eigen::Index>(b + k)] =
            in.fixed_velocity[static_cast<Eigen::Index>(d + k)];
    }
  }
  for (std::size_t j = 0; j < piece_block_.size(); ++j)
    if (piece_block_[j] >= 0 && plane_piece_[j]) {
      const std::size_t b = 3 * at(piece_block_[j]);
      fixed_[b + 2] = fixed_[b + 3] = fixed_[b + 4] = 1;  // a plane piece moves in x and y and turns about z
    }
}

FactorStatus MixedSystem::factor(const StepInput& in, VecX& rhs) {
  set_fixed(in);
  if (blocks_ == 0) return {};
  VecX known;
  eliminator().multiply_fixed(A_, fixed_, fixed_velocity_, known);
  const double diagonal = model_.mass.mean();
  rhs -= known;
  for (Eigen::Index d = 0; d < rhs.size(); ++d)
    if (fixed_[static_cast<std::size_t>(d)]) rhs[d] = diagonal * fixed_velocity_[d];
  eliminator().eliminate(A_, fixed_, diagonal);
  return (plain() ? whole_solver_ : mixed_solver_).factor(A_);
}

void MixedSystem::impose_fixed(VecX& u) const {
  for (Eigen::Index d = 0; d < u.size(); ++d)
    if (fixed_[static_cast<std::size_t>(d)]) u[d] = fixed_velocity_[d];
}

FactorStatus MixedSystem::factor_held() {
  if (blocks_ == 0) return {};
  eliminator().eliminate(A_, fixed_, model_.mass.mean());
  return (plain() ? whole_solver_ : mixed_solver_).factor(A_);
}

Index MixedSystem::free_unknowns() const {
  return static_cast<Index>(std::count(fixed_.begin(), fixed_.end(), std::uint8_t{0}));
}

}  // namespace limber::rigidify
