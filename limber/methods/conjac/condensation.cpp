#include <limber/methods/conjac/condensation.hpp>

#include <limber/core/parallel.hpp>
#include <limber/linalg/shifted_factor.hpp>
#include <limber/linalg/tall.hpp>
#include <limber/methods/common/system.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {
namespace {

// Rows of J per piece of work: fixed, and summed in order, so that results are the same bits for any thread
// count.
constexpr Eigen::Index kRows = 1536;

// Of factors in single precision: what quasistatic motions may be off by. A step takes a third of them, and
// the next one sees what is left in its forces, which are doubles.
constexpr double kTolerableError = 0.01;

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

Condensation::Condensation(const Model& model, const std::vector<Index>& representatives,
                           const std::vector<ModeChoice>& modes, const CholeskyOptions& options,
                           bool together)
    : model_(model), options_(options), representatives_(representatives), eliminator_(*model.pattern) {
  const BlockPattern& pattern = *model.pattern;
  const std::size_t count = together ? 1 : std::max<std::size_t>(1, model.pieces.size());
  parts_.reserve(count);
  for (std::size_t p = 0; p < count; ++p) parts_.emplace_back(options);
  pieces_.resize(count);
  part_of_node_.assign(static_cast<std::size_t>(pattern.n), 0);
  if (count > 1) part_of_node_ = model.piece_of_node;
  place_of_node_.resize(part_of_node_.size());
  for (Index i = 0; i < pattern.n; ++i) {
    std::vector<Index>& nodes = parts_[part_of_node_[i]].nodes;
    place_of_node_[i] = static_cast<Index>(nodes.size());
    nodes.push_back(i);
  }
  for (std::size_t t = 0; t < representatives_.size(); ++t)
    parts_[part_of_node_[representatives_[t]]].tail.push_back(t);
  for (std::size_t p = 0; p < modes.size(); ++p) {
    ModeChoice& choice = parts_[count > 1 ? p : 0].choice;
    choice.count += modes[p].count;
    choice.below = std::max(choice.below, modes[p].below);
  }
  for (Part& part : parts_) {
    part.mass = gather(part, model.mass);
    const std::vector<Index> tail = tail_nodes(part);
    if (alone()) {
      part.chosen.analyze(pattern, tail);
      continue;
    }
    std::vector<Index> col_begin{0}, row;
    for (const Index j : part.nodes) {
      for (Index b = pattern.col_begin[j]; b < pattern.col_begin[j + 1]; ++b) {
        row.push_back(place_of_node_[pattern.row[b]]);
        part.blocks.push_back(b);
      }
      col_begin.push_back(static_cast<Index>(row.size()));
    }
    part.K = BlockMatrix(
        std::make_shared<const BlockPattern>(make_block_pattern(std::move(col_begin), std::move(row))));
    part.chosen.analyze(*part.K.pattern, tail);
  }
}

std::vector<Index> Condensation::tail_nodes(const Part& part) const {
  std::vector<Index> tail;
  for (const std::size_t t : part.tail) tail.push_back(place_of_node_[representatives_[t]]);
  return tail;
}

void Condensation::couple(const std::vector<std::int64_t>& nodes) {
  if (nodes == coupled_) return;
  coupled_ = nodes;
  factored_ = false;
  Part& part = parts_.front();
  part.exact.reset();
  part.raised = false;
  part.blocks.clear();
  if (nodes.empty()) {
    part.chosen.analyze(*model_.pattern, tail_nodes(part));
    return;
  }
  std::vector<std::array<Index, 4>> cliques(model_.mesh.elements.begin(), model_.mesh.elements.end());
  for (std::size_t k = 0; k < nodes.size(); k += 4)
    cliques.push_back({static_cast<Index>(nodes[k]), static_cast<Index>(nodes[k + 1]),
                       static_cast<Index>(nodes[k + 2]), static_cast<Index>(nodes[k + 3])});
  part.K = BlockMatrix(std::make_shared<const BlockPattern>(make_block_pattern(model_.nodes(), cliques)));
  const BlockPattern& pattern = *part.K.pattern;
  for (Index j = 0; j < pattern.n; ++j)
    for (Index b = pattern.col_begin[j]; b < pattern.col_begin[j + 1]; ++b)
      part.blocks.push_back(model_.pattern->find(pattern.row[b], j));
  part.chosen.analyze(pattern, tail_nodes(part));
}

MatX Condensation::gather(const Part& part, const MatX& x) const {
  if (alone()) return x;
  MatX y(3 * static_cast<Eigen::Index>(part.nodes.size()), x.cols());
  for (std::size_t i = 0; i < part.nodes.size(); ++i)
    y.middleRows<3>(3 * static_cast<Eigen::Index>(i)) = x.middleRows<3>(3 * part.nodes[i]);
  return y;
}

void Condensation::scatter(const Part& part, const MatX& y, MatX& x) const {
  if (alone()) {
    x = y;
    return;
  }
  for (std::size_t i = 0; i < part.nodes.size(); ++i)
    x.middleRows<3>(3 * part.nodes[i]) = y.middleRows<3>(3 * static_cast<Eigen::Index>(i));
}

bool Condensation::assemble(const VecX& x, const StepInput& in, const ContactStep& contact,
                            const BodySprings* bodies, PhaseClock& clock) {
  auto phase = clock.phase("assemble");
  bodies_ = bodies;
  const bool touches = !contact.empty() || bodies;
  const bool same_shape =
      made_of_.x.size() == x.size() && made_of_.x == x && made_of_.activation == in.activation;
  if (same_shape && !touches && factored_ && made_of_.fixed == in.fixed &&
      made_of_.fixed_velocity == in.fixed_velocity)
    return true;
  factored_ = false;
  if (same_shape && touches) {
    system.K.values = elastic_;
  } else {
    fem::assemble(*model_.elements, x, in.activation, system);
    if (touches) elastic_ = system.K.values;
  }
  made_of_ = {x, in.activation, in.fixed, in.fixed_velocity};
  if (!system.finite) {
    made_of_ = {};
    why_ = not_finite(system);
    return false;
  }
  contact.add_stiffness(1, system.K);
  return true;
}

bool Condensation::condense(const std::vector<std::uint8_t>& dynamic, const ContactStep& contact,
                            const LinkTouches& touches, const VecX& force, const VecX& v, VecX& b,
                            PhaseClock& clock) {
  const bool scripted = (made_of_.fixed_velocity.array() != 0).any() || contact.moves();
  const Eigen::Index twists = touches.J.rows();
  loads_.resize(b.size(), (scripted ? 2 : 1) + twists);
  loads_.col(0) = b;
  loads_.rightCols(twists).setZero();
  for (const LinkTouch& t : touches.touches)
    loads_.rightCols(twists).block<3, 6>(3 * t.node, t.column) += t.stiffness * t.P;
  if (scripted) {
    if (!factored_) {
      eliminator_.multiply_fixed(system.K, made_of_.fixed, made_of_.fixed_velocity, known_);
      contact.add_drag(-1, known_);
      for (const LinkTouch& t : touches.touches)  // links turn as their twists say
        node(known_, t.node) += t.stiffness * (t.velocity - touches.velocity(t));
      if (bodies_) bodies_->add_drag(1, made_of_.fixed_velocity, known_);
    }
    loads_.col(1) = -known_;
  }
  {
    auto phase = clock.phase("solve");
    for (Part& part : parts_) {
      part.nodes_move =
          std::any_of(part.tail.begin(), part.tail.end(), [&](std::size_t t) { return dynamic[t] != 0; });
      begin_sweep(dynamic, part);
    }
    gather_loads(true);
  }
  if (!factored_) {  // and the forward half of the solve with it
    auto phase = clock.phase("factor");
    if (!factor()) return false;
  }
  unknowns = 0;
  new_modes = modes_from_old = 0;
  motions_.resize(loads_.rows(), loads_.cols());
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    Part& part = parts_[p];
    CondensedPiece& piece = pieces_[p];
    for (bool again = true; again;) {
      {
        auto phase = clock.phase("solve");
        condense_loads(part);
        split_tail(dynamic, part, piece);
        if (scripted)
          piece.k_w.noalias() = -part.C.transpose() * part.at_tail.col(1);
        else
          piece.k_w.setZero(part.C.cols());
        piece.twists = 0;
        // Pulled by a link that moves, dynamic nodes that stand still are pulled through the body.
        if (twists > 0)
          pulled_ = -part.C.transpose() * part.at_tail.middleCols(loads_.cols() - twists, twists);
        place_inactive(part);
        // Where there are modes only, J is all theirs.
        RowMatX none;
        extend(part.C, part.C.cols() > 0 || part.choice.count == 0 ? piece.J : none, part.motions, part);
        again = options_.single && !part.raised && !does_in_single(part);
      }
      if (!again) continue;
      auto phase = clock.phase("factor");
      if (!factor_in_double(part).ok) return false;
      set_schur(part);
    }
  }
  if (has_modes()) {
    auto phase = clock.phase("modes");
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (parts_[p].choice.count == 0) continue;
      update_modes(dynamic, parts_[p]);
      add_modes(parts_[p], pieces_[p]);
      leave_out_modes(parts_[p]);
    }
  }
  {
    auto phase = clock.phase("solve");
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      pieces_[p].begin = unknowns;
      unknowns += pieces_[p].J.cols();
      scatter(parts_[p], parts_[p].motions.leftCols(loads_.cols()), motions_);
    }
    b = motions_.col(0);
    if (scripted) {
      w = motions_.col(1);
      for (Eigen::Index d = 0; d < w.size(); ++d)
        if (made_of_.fixed[static_cast<std::size_t>(d)]) w[d] = made_of_.fixed_velocity[d];
    } else {
      w.setZero(b.size());
    }
    if (twists > 0) add_twists(touches, motions_.rightCols(twists));
  }
  auto phase = clock.phase("project");
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    project(parts_[p], force, v, pieces_[p]);
    pieces_[p].S_contact.setZero(pieces_[p].J.cols(), pieces_[p].J.cols());
  }
  for (const ContactLaw& law : contact.laws()) {
    if (!law.active) continue;
    CondensedPiece& piece = pieces_[part_of_node_[law.contact.node]];
    const auto rows = piece.J.middleRows<3>(3 * place_of_node_[law.contact.node]);
    piece.S_contact.noalias() += rows.transpose() * (law.stiffness() * rows);
  }
  if (twists > 0) add_link_forces(touches);
  if (bodies_)
    for (const RowSpring& spring : bodies_->springs()) {
      if (!spring.active) continue;
      CondensedPiece& piece = pieces_.front();
      MatX rows = piece.J.middleRows<3>(3 * spring.row.node);
      for (std::size_t k = 0; k < 3; ++k)
        rows -= spring.row.weight[k] * piece.J.middleRows<3>(3 * spring.row.face[k]);
      piece.S_contact.noalias() += rows.transpose() * (spring.matrix() * rows);
    }
  return true;
}

// The twists of touched links as unknowns, after all others; there is one piece then. K with the springs'
// other ends is [K -SP; -PᵀS PᵀSP], and the motion that follows a twist leaves no force on Q:
// S_dphi = (K W - SP)_d, S_phiphi = Pᵀ S (P - W), and JᵀK w as the force of springs on the links grows.
void Condensation::add_twists(const LinkTouches& touches, const MatX& W) {
  CondensedPiece& piece = pieces_.front();
  const Eigen::Index r = piece.J.cols(), c = W.cols();
  RowMatX J(W.rows(), r + c);
  if (r > 0) J.leftCols(r) = piece.J;
  J.rightCols(c) = W;
  piece.J = std::move(J);
  piece.twists = c;
  MatX S = MatX::Zero(r + c, r + c);
  S.topLeftCorner(r, r) = piece.S;
  S.block(0, r, pulled_.rows(), c) = pulled_;
  S.block(r, 0, c, pulled_.rows()) = pulled_.transpose();
  VecX k_w = VecX::Zero(r + c);
  k_w.head(r) = piece.k_w;
  for (const LinkTouch& t : touches.touches) {
    const Eigen::Matrix<double, 6, 3> pull = t.P.transpose() * t.stiffness;
    S.block<6, 6>(r + t.column, r + t.column) += pull * t.P;
    S.block(r + t.column, r, 6, c) -= pull * W.middleRows<3>(3 * t.node);
    k_w.segment<6>(r + t.column) -= pull * (Vec3(node(w, t.node)) - touches.velocity(t));
  }
  S.bottomRightCorner(c, c) =
      (0.5 * (S.bottomRightCorner(c, c) + S.bottomRightCorner(c, c).transpose())).eval();
  piece.S = std::move(S);
  piece.k_w = std::move(k_w);
  unknowns += c;
}

// Contacts with links see the body move against the link, and push the link, too.
void Condensation::add_link_forces(const LinkTouches& touches) {
  CondensedPiece& piece = pieces_.front();
  const Eigen::Index begin = piece.J.cols() - piece.twists;
  for (const LinkTouch& t : touches.touches) {
    const MatX rows = t.stiffness * piece.J.middleRows<3>(3 * t.node);
    piece.S_contact.middleRows<6>(begin + t.column) -= t.P.transpose() * rows;
    piece.S_contact.middleCols<6>(begin + t.column) -= rows.transpose() * t.P;
    piece.S_contact.block<6, 6>(begin + t.column, begin + t.column) += t.P.transpose() * t.stiffness * t.P;
    piece.f_r.segment<6>(begin + t.column) -= t.P.transpose() * t.force;
  }
}

bool Condensation::factor() {
  BlockMatrix& K = system.K;
  mean_ = mean_diagonal(K);
  // The tail block of a free body is singular (its rigid motions cost nothing), and its Cholesky factor does
  // not exist. A shift of the tail's diagonal makes it exist and is taken off the Schur complement again; it
  // costs S an error of rounding times the shift.
  for (Index t : representatives_) K.block(K.pattern->col_begin[t]).diagonal().array() += mean_;
  eliminator_.eliminate(K, made_of_.fixed, mean_);

  shifts = raised = 0;
  for (Part& part : parts_) {
    if (!factor(part).ok) return false;
    set_schur(part);
  }
  factored_ = true;
  return true;
}

void Condensation::set_schur(Part& part) const {
  part.solver().tail_schur(part.schur);
  part.schur.diagonal().array() -= mean_;
}

FactorStatus Condensation::factor(Part& part) {
  BlockMatrix& K = matrix(part);
  for (std::size_t b = 0; b < part.blocks.size(); ++b) {
    auto block = K.block(static_cast<Index>(b));
    if (part.blocks[b] < 0)
      block.setZero();
    else
      block = system.K.block(part.blocks[b]);
  }
  if (bodies_) bodies_->add_stiffness(made_of_.fixed, K);
  part.carried = true;
  part.raised = false;
  if (options_.single && !part.nodes_move) {
    part.chosen.carry(pattern(part), static_cast<Index>(part.loads.cols()));
    if (const FactorStatus status = part.chosen.factor(K, part.loads); status.ok) return status;
  }
  return factor_in_double(part);
}

// The factor in double precision. Projection makes K positive semi-definite, not definite: an element
// squashed flat can leave a node without stiffness. A small multiple of the mass mends that, at the price of
// a slightly stiffer map; it is counted in the report.
FactorStatus Condensation::factor_in_double(Part& part) {
  if (options_.single) {
    if (!part.exact) {
      part.exact.emplace(CholeskyOptions{options_.backend, options_.ordering});
      part.exact->analyze(pattern(part), tail_nodes(part));
    }
    part.raised = true;
    ++raised;
  }
  BlockMatrix& K = matrix(part);
  int shifted = 0;
  part.solver().carry(pattern(part), static_cast<Index>(part.loads.cols()));
  FactorStatus status = factor_with_shift(
      {&K}, mean_, part.mass, [&] { return part.solver().factor(K, part.loads); }, shifted);
  shifts += shifted;
  if (!status.ok) {
    made_of_ = {};  // K has been edited
    if (status.node >= 0) status.node = part.nodes[status.node];
    why_ = bad_pivot(status);
  }
  return status;
}

// S of dynamic nodes has an error of 1e-7 of the stiffest entries of K, whatever its own size is: a soft
// layer below a stiff one is lost in it, and K_QQ, with these nodes held, shows nothing of it. Modes come
// from K_QQ^-1, which has the soft motions to the precision of this check.
bool Condensation::does_in_single(Part& part) {
  return !part.nodes_move && (!part.carried || error_of_motion(part) <= kTolerableError);
}

// How far the motion u = K_QQ^-1 b of the first load is off along itself: u . (b - K u) over u . b, the work
// of what it leaves of its load. In a backward stable solve residuals are small whatever the error is; work
// is not.
double Condensation::error_of_motion(Part& part) {
  const VecX u = part.motions.col(0);
  const double work = u.dot(part.loads.col(0));
  if (!(work > 0)) return 0;
  VecX force;
  multiply(matrix(part), u, force);
  for (const Index t : tail_nodes(part)) force.segment<3>(3 * t) -= mean_ * u.segment<3>(3 * t);
  return std::abs(work - u.dot(force)) / work;
}

void Condensation::split_tail(const std::vector<std::uint8_t>& dynamic, Part& part, CondensedPiece& piece) {
  part.active.clear();
  part.inactive.clear();
  piece.dofs.clear();
  for (std::size_t t = 0; t < part.tail.size(); ++t)
    for (Index k = 0; k < 3; ++k) {
      const Index dof = 3 * representatives_[part.tail[t]] + k, row = 3 * static_cast<Index>(t) + k;
      if (made_of_.fixed[static_cast<std::size_t>(dof)]) continue;
      if (dynamic[part.tail[t]]) {
        part.active.push_back(row);
        piece.dofs.push_back(dof);
      } else {
        part.inactive.push_back(row);
      }
    }
  const auto r = static_cast<Eigen::Index>(part.active.size());
  part.C.setZero(part.schur.rows(), r);
  for (Eigen::Index c = 0; c < r; ++c) part.C(part.active[static_cast<std::size_t>(c)], c) = 1;
  piece.S = part.schur(part.active, part.active);
  if (!part.inactive.empty()) {
    part.schur_inactive.factor(part.schur(part.inactive, part.inactive));
    const MatX coupling = part.schur(part.inactive, part.active);
    const MatX follow = part.schur_inactive.solve_all(coupling);
    for (std::size_t i = 0; i < part.inactive.size(); ++i)
      part.C.row(part.inactive[i]) = -follow.row(static_cast<Eigen::Index>(i));
    piece.S.noalias() -= coupling.transpose() * follow;
  }
}

// One pass over J, with M diagonal.
void Condensation::project(const Part& whole, const VecX& all_forces, const VecX& all_velocities,
                           CondensedPiece& piece) const {
  struct Share {
    MatX M, p;
  };
  const RowMatX& J = piece.J;
  const VecX force = gather(whole, all_forces), v = gather(whole, all_velocities), along = gather(whole, w);
  std::vector<Share> part(static_cast<std::size_t>((J.rows() + kRows - 1) / kRows));
  parallel_ranges(J.rows(), kRows, [&](Eigen::Index begin, Eigen::Index end) {
    const auto rows = Eigen::seqN(begin, end - begin);
    const auto j = J.middleRows(begin, end - begin);
    const auto mass = whole.mass(rows).array();
    Share& s = part[static_cast<std::size_t>(begin / kRows)];
    const RowMatX half = mass.sqrt().matrix().asDiagonal() * j;
    gram(half, s.M);
    s.p.resize(J.cols(), 3);
    s.p.col(0).noalias() = j.transpose() * force(rows);
    s.p.col(1).noalias() = j.transpose() * (mass * along(rows).array()).matrix();
    s.p.col(2).noalias() = j.transpose() * (mass * (v(rows) - along(rows)).array()).matrix();
  });
  piece.M_r.setZero(J.cols(), J.cols());  // of which the lower triangle counts
  MatX p = MatX::Zero(J.cols(), 3);
  for (const Share& s : part) {
    piece.M_r.triangularView<Eigen::Lower>() += s.M;
    p += s.p;
  }
  piece.M_r.triangularView<Eigen::StrictlyUpper>() = piece.M_r.transpose();
  piece.f_r = p.col(0);
  piece.m_w = p.col(1);
  piece.p_r = p.col(2);
}

MatX Condensation::extend(const MatX& y) const {
  MatX x(3 * static_cast<Eigen::Index>(model_.nodes()), y.cols());
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const RowMatX& J = pieces_[p].J;
    const auto motion = y.middleRows(pieces_[p].begin, J.cols());
    MatX part(alone() ? 0 : J.rows(), y.cols());
    MatX& moved = alone() ? x : part;
    parallel_ranges(J.rows(), kRows, [&](Eigen::Index begin, Eigen::Index end) {
      for (Eigen::Index c = 0; c < y.cols(); ++c)
        moved.col(c).segment(begin, end - begin).noalias() = J.middleRows(begin, end - begin) * motion.col(c);
    });
    if (!alone()) scatter(parts_[p], part, x);
  }
  return x;
}

VecX Condensation::restrict_to_unknowns(const VecX& x) const {
  VecX y(unknowns);
  for (std::size_t p = 0; p < parts_.size(); ++p)
    y.segment(pieces_[p].begin, pieces_[p].J.cols()).noalias() =
        pieces_[p].J.transpose() * gather(parts_[p], x);
  return y;
}

VecX Condensation::restrict_stiffness_times(const VecX& u) const {
  VecX y(unknowns);
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const CondensedPiece& piece = pieces_[p];
    const VecX u_d = u(piece.dofs);
    const Eigen::Index r = u_d.size(), m = piece.J.cols() - piece.twists - r;
    y.segment(piece.begin + r + m, piece.twists).noalias() = piece.S.block(r + m, 0, piece.twists, r) * u_d;
    y.segment(piece.begin, r).noalias() = piece.S.topLeftCorner(r, r) * u_d;
    if (m == 0) continue;
    const VecX beyond = gather(parts_[p], u) - piece.J.leftCols(r) * u_d;
    y.segment(piece.begin + r, m) = tall_product(parts_[p].modes.pull, beyond);
  }
  return y;
}

// Degrees of freedom that are held carry no load of their own. With `sweep` the modes' vectors go along.
void Condensation::gather_loads(bool sweep) {
  for (Eigen::Index c = 0; c < loads_.cols(); ++c)
    for (Eigen::Index d = 0; d < loads_.rows(); ++d)
      if (made_of_.fixed[static_cast<std::size_t>(d)]) loads_(d, c) = 0;
  for (Part& part : parts_) {
    const Eigen::Index n = loads_.cols(), vectors = sweep ? part.sweep.cols() : 0;
    part.loads.resize(part.mass.size(), n + vectors);
    part.loads.leftCols(n) = gather(part, loads_);
    parallel_ranges(vectors, 1,
                    [&](std::ptrdiff_t c, std::ptrdiff_t) { part.loads.col(n + c) = part.sweep.col(c); });
    part.carried = false;
  }
}

void Condensation::condense_loads(Part& part) {
  if (part.carried) {
    part.at_tail = part.solver().carried_to_tail();
  } else {
    part.solver().condense_to_tail(part.loads);
    part.at_tail = part.loads.bottomRows(part.schur.rows());
  }
}

// The motion of the tail under its condensed loads: dynamic nodes stand still, the others go to their
// equilibrium, in their own small system.
void Condensation::place_inactive(Part& part) {
  MatX& tail = part.at_tail;
  if (part.inactive.empty()) {
    tail.setZero();
    return;
  }
  const MatX quasistatic = part.schur_inactive.solve_all(tail(part.inactive, Eigen::all));
  tail.setZero();
  tail(part.inactive, Eigen::all) = quasistatic;
}

// J of the tail motions C, and how all nodes move under the loads.
void Condensation::extend(const MatX& C, RowMatX& J, MatX& motions, Part& part) {
  if (part.carried) return part.solver().extend_carried(C, part.at_tail, J, motions);
  part.loads.bottomRows(part.at_tail.rows()) = part.at_tail;
  part.solver().extend_from_tail(C, part.loads, J, motions);
}

void Condensation::solve_quasistatic(VecX& b) {
  loads_ = b;
  gather_loads(false);
  motions_.resize(loads_.rows(), 1);
  RowMatX none;
  for (Part& part : parts_) {
    condense_loads(part);
    place_inactive(part);
    extend(MatX(part.schur.rows(), 0), none, part.motions, part);
    leave_out_modes(part);
    scatter(part, part.motions, motions_);
  }
  b = motions_.col(0);
}

}  // namespace limber
