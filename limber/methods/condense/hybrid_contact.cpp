// Contacts in the hybrid energy: with obstacles, between bodies, and those that training knows. Which pairs
// have an energy, where the matrix has blocks for them, and what they add to it.
#include <limber/linalg/elimination.hpp>
#include <limber/methods/condense/hybrid_system.hpp>

#include <algorithm>

namespace limber::condense {
namespace {

constexpr std::size_t kSparePairs = 2;  // how many times more pairs than needed a new pattern may have
constexpr int kTailRings = 4;           // of surface nodes around those that touch
constexpr double kTailFrom = 3;         // iterations that a factor costs, at least
constexpr double kTailShare = 0.2;      // of a solve, that another factor of the tail may cost
constexpr double kHybridMargin = 0.01;  // of the bodies' size: how far from obstacles nodes are looked at

}  // namespace

// Contacts of the full nodes with obstacles.
void HybridSystem::make_contact() {
  contact_.reset();
  contact_model_ = {};
  if (model_.contact.empty()) return;
  contact_model_.obstacles = model_.contact.obstacles;
  contact_model_.alpha = model_.contact.alpha;
  contact_model_.rule = model_.contact.rule;
  for (std::size_t k = 0; k < model_.contact.nodes.size(); ++k)
    if (const Index own = place_[at(model_.contact.nodes[k])]; own >= 0) {
      contact_model_.nodes.push_back(own);
      contact_model_.stiffness.push_back(model_.contact.stiffness[k]);
      contact_model_.elastic.push_back(model_.contact.elastic[k]);
    }
  if (!contact_model_.empty())
    contact_.emplace(contact_model_, options_.contact_damping, options_.slip_speed,
                     kHybridMargin * model_.size);
}

void HybridSystem::pose_contact(const VecX& x0, double t0, double t, const VecX& c, double g) {
  if (contact_) contact_->pose(gathered(x0, full_nodes_), t0, xf_, t, gathered(c, full_nodes_), g);
}

bool HybridSystem::revise_friction() {
  ContactEnergy::Revision all;
  if (contact_) all = contact_->revise_friction(xf_);
  if (bodies_) {
    const ContactEnergy::Revision between = bodies_->revise_friction(x_);
    all.change += between.change;
    all.sum += between.sum;
  }
  return all.change > 0.01 * all.sum;
}

std::vector<ContactForce> HybridSystem::contact_forces() {
  std::vector<ContactForce> out;
  if (contact_) contact_->list_forces(xf_, out);
  for (ContactForce& f : out) f.node = full_nodes_[at(f.node)];
  if (pair_nodes_.empty()) return out;
  bodies_->add_force(x_, body_force_);
  for (Index i = 0; i < model_.nodes(); ++i)
    if (!node(body_force_, i).isZero(0)) out.push_back({i, -1, node(body_force_, i)});
  body_force_.setZero();
  return out;
}

// What training knows is left to its points where the subspace is alone with it; beside full nodes all of it
// is as new.
bool HybridSystem::in_subspace(const BodyContact::Pair& pair, const std::vector<std::uint8_t>& region) const {
  return subspace_.knows(pair.nodes) &&
         std::none_of(pair.nodes.begin(), pair.nodes.end(), [&](Index i) { return region[at(i)] != 0; });
}

void HybridSystem::add_pressing(const VecX& x, const std::vector<std::uint8_t>& region,
                                std::vector<Index>& nodes) const {
  for (const BodyContact::Pair& pair : bodies_->pairs())
    if (bodies_->presses(pair, x) && !in_subspace(pair, region))
      for (const Index i : pair.nodes)
        if (skeleton_.bone_of_node[at(i)] < 0) nodes.push_back(i);
}

bool HybridSystem::covered(const BodyContact::Pair& pair) const {
  const Index a = place_[at(pair.nodes[0])];
  return a < 0 || std::all_of(pair.nodes.begin() + 1, pair.nodes.end(), [&](Index i) {
           const Index b = place_[at(i)];
           return b < 0 || pattern_->find(std::max(a, b), std::min(a, b)) >= 0;
         });
}

bool HybridSystem::couple_pairs(const VecX& x0, const VecX& x1) {
  if (!bodies_) return false;
  bodies_->weigh([&](const BodyContact::Pair& pair) {
    if (!all_full() && in_subspace(pair, full_)) return subspace_.contact_weight(pair.nodes[0]);
    return std::any_of(pair.nodes.begin(), pair.nodes.end(),
                       [&](Index i) { return place_[at(i)] < 0 && skeleton_.bone_of_node[at(i)] < 0; })
               ? 0.0
               : 1.0;
  });
  std::vector<std::uint8_t> may(at(model_.nodes()));
  for (Index i = 0; i < model_.nodes(); ++i)
    may[at(i)] = place_[at(i)] >= 0 || skeleton_.bone_of_node[at(i)] >= 0;
  bodies_->set_reach(std::move(may));
  trained_.clear();
  trained_nodes_.clear();
  for (const BodyContact::Pair& pair : bodies_->pairs()) {
    if (!pair.counts || all_full() || !in_subspace(pair, full_)) continue;
    trained_.insert(trained_.end(), pair.nodes.begin(), pair.nodes.end());
    for (const Index i : pair.nodes)
      if (skeleton_.bone_of_node[at(i)] < 0) trained_nodes_.push_back(i);
  }
  const bool changed = cover({&x0, &x1});
  list_pairs();
  std::sort(trained_nodes_.begin(), trained_nodes_.end());
  trained_nodes_.erase(std::unique(trained_nodes_.begin(), trained_nodes_.end()), trained_nodes_.end());
  if (!trained_.empty()) {
    trained_place_.assign(at(model_.nodes()), -1);
    for (std::size_t k = 0; k < trained_nodes_.size(); ++k)
      trained_place_[at(trained_nodes_[k])] = static_cast<Index>(k);
    std::vector<std::array<Index, 4>> cliques;
    for (std::size_t k = 0; k < trained_.size(); k += 4)
      cliques.push_back({trained_place_[at(trained_[k])], trained_place_[at(trained_[k + 1])],
                         trained_place_[at(trained_[k + 2])], trained_place_[at(trained_[k + 3])]});
    trained_matrix_ = BlockMatrix(std::make_shared<const BlockPattern>(
        make_block_pattern(static_cast<Index>(trained_nodes_.size()), cliques)));
  }
  return changed;
}

// Old pairs stay in the pattern, as bodies that rest or slide on each other come back to the same few faces,
// unless they have become the greater part.
bool HybridSystem::cover(std::initializer_list<const VecX*> places) {
  std::vector<std::array<std::int64_t, 4>> list;
  bool complete = true;
  for (const BodyContact::Pair& pair : bodies_->pairs()) {
    if (!pair.counts || (!all_full() && in_subspace(pair, full_))) continue;
    list.push_back({pair.nodes[0], pair.nodes[1], pair.nodes[2], pair.nodes[3]});
    complete = complete && (covered(pair) || std::none_of(places.begin(), places.end(), [&](const VecX* x) {
                              return bodies_->presses(pair, *x);
                            }));
  }
  if (complete) return false;
  if (coupled_.size() / 4 <= kSparePairs * list.size())
    for (std::size_t k = 0; k < coupled_.size(); k += 4)
      list.push_back({coupled_[k], coupled_[k + 1], coupled_[k + 2], coupled_[k + 3]});
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  coupled_.clear();
  for (const auto& nodes : list) coupled_.insert(coupled_.end(), nodes.begin(), nodes.end());
  make_pattern();
  set_costs();
  return true;
}

// Nodes have slid to faces that the pattern knows nothing of. Without these blocks node and face are both
// held in space by the stiffness of their contact, and solves creep.
bool HybridSystem::cover_present() {
  if (pair_nodes_.empty()) return false;
  bodies_->follow(x_);
  const bool changed = cover({&x_});
  list_pairs();
  return changed;
}

// Nodes and blocks of the pairs that have an energy.
void HybridSystem::list_pairs() {
  pair_nodes_.clear();
  pair_blocks_.clear();
  for (const BodyContact::Pair& pair : bodies_->pairs()) {
    if (!pair.counts) continue;
    pair_nodes_.insert(pair_nodes_.end(), pair.nodes.begin(), pair.nodes.end());
    for (const auto& nodes : {pair.nodes, pair.grip})
      for (const Index i : nodes)
        for (const Index j : nodes)
          if (const Index a = place_[at(i)], b = place_[at(j)]; b >= 0 && a > b)
            if (const Index block = pattern_->find(a, b); block >= 0) pair_blocks_.push_back(block);
  }
  for (std::vector<Index>* unique : {&pair_nodes_, &pair_blocks_}) {
    std::sort(unique->begin(), unique->end());
    unique->erase(std::unique(unique->begin(), unique->end()), unique->end());
  }
}

// What trained contacts add to the subspace's matrix.
void HybridSystem::collect_trained(bool exact) {
  contact_reduced_.resize(0, 0);
  if (trained_.empty()) return;
  std::fill(trained_matrix_.values.begin(), trained_matrix_.values.end(), 0.0);
  bodies_->add_stiffness(x_, exact, trained_matrix_, trained_place_);
  contact_reduced_.setZero(q_.size(), q_.size());
  Wc_.add_congruence(trained_matrix_, 1, contact_reduced_);
}

// What contacts add to K_ff at the present unknowns, block by block: a record of the factor keeps it.
void HybridSystem::collect_contact_blocks(bool exact) {
  contact_block_.clear();
  contact_value_.clear();
  if (!contact_ && pair_nodes_.empty()) return;
  if (contact_matrix_.pattern != pattern_) contact_matrix_ = BlockMatrix(pattern_);
  if (contact_) contact_->add_stiffness(xf_, contact_matrix_);
  if (!pair_nodes_.empty()) {
    bodies_->follow(x_);
    list_pairs();
  }
  if (!pair_nodes_.empty()) bodies_->add_stiffness(x_, exact, contact_matrix_, place_);
  const auto take = [&](Index b) {
    auto block = contact_matrix_.block(b);
    if (block.isZero(0)) return;
    contact_block_.push_back(b);
    contact_value_.insert(contact_value_.end(), block.data(), block.data() + 9);
    block.setZero();
  };
  for (Index k = 0; k < full_nodes(); ++k) take(pattern_->col_begin[at(k)]);
  for (const Index b : pair_blocks_) take(b);
}

// The factor eliminates the nodes of `tail_` last, as far as they are full.
void HybridSystem::take_tail() {
  tail_place_.assign(full_nodes_.size(), -1);
  made_from_ = {};
  changed_.clear();
  std::vector<Index> own;
  for (const std::int64_t i : tail_)
    if (const Index k = place_[static_cast<std::size_t>(i)]; k >= 0) {
      tail_place_[at(k)] = static_cast<Index>(own.size());
      own.push_back(k);
    }
  if (!own.empty() || solver_.tail_nodes() > 0) solver_.set_tail(*pattern_, own);
}

// Makes the nodes that have contact stiffness now the tail, where some of them are not in it; with them those
// that are in it already, as contacts come back, and those of the surface around, as they spread: as many as
// are worth it.
void HybridSystem::find_tail() {
  std::vector<Index> touching;  // places in full_nodes_
  for (const std::int64_t b : contact_block_) {
    const Index row = pattern_->row[static_cast<std::size_t>(b)];
    if (pattern_->col_begin[at(row)] == b) touching.push_back(row);
  }
  const auto in_tail = [&](Index k) { return tail_place_[at(k)] >= 0; };
  if (std::all_of(touching.begin(), touching.end(), in_tail)) return;
  if (cost_.factor < kTailFrom * (cost_.solve + cost_.force + cost_.vectors)) return;
  std::vector<std::uint8_t> in(full_nodes_.size(), 0);
  std::vector<Index> found;
  const auto take = [&](const std::vector<Index>& more) {
    if (tail_cost(static_cast<Index>(found.size() + more.size())) > kTailShare * cost_.solve) return false;
    for (const Index k : more) in[at(k)] = 1;
    found.insert(found.end(), more.begin(), more.end());
    return true;
  };
  if (take(touching)) {
    std::vector<Index> before;
    for (Index k = 0; k < full_nodes(); ++k)
      if (in_tail(k) && !in[at(k)]) before.push_back(k);
    take(before);
    std::vector<Index> ring = touching;
    for (int r = 0; r < kTailRings; ++r) {
      std::vector<Index> next;
      for (const Index k : ring)
        sparse::for_neighbours(*pattern_, k, [&](Index i) {
          if (!in[at(i)] && on_surface_[at(full_nodes_[at(i)])]) next.push_back(i);
        });
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      if (!take(next)) break;
      ring = std::move(next);
    }
  }
  if (found.empty() && tail_.empty()) return;
  std::sort(found.begin(), found.end());
  tail_.clear();
  for (const Index k : found) tail_.push_back(full_nodes_[at(k)]);
  take_tail();
  set_costs();
}

// What contacts add at the present unknowns takes the place of what they added when the factor was made, for
// blocks of the tail.
void HybridSystem::change_contacts(NewtonReport& report) {
  if (solver_.tail_nodes() == 0) return;
  collect_contact_blocks(made_from_.projected == 0);
  std::vector<BorderedSolver::TailBlock> change;
  const auto add = [&](std::span<const std::int64_t> blocks, std::span<const double> values, bool now) {
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      const auto b = static_cast<Index>(blocks[k]);
      const Index row = pattern_->row[at(b)];
      const auto above = std::upper_bound(pattern_->col_begin.begin(), pattern_->col_begin.end(), b);
      const auto col = static_cast<Index>(above - pattern_->col_begin.begin() - 1);
      Index i = tail_place_[at(row)], j = tail_place_[at(col)];
      if (i < 0 || j < 0) continue;
      Mat3 value = Eigen::Map<const Mat3>(values.data() + 9 * k);
      if (!now) value = -value;
      if (now && !fresh_) {
        const auto turn = [&](Index n) -> Mat3 {
          return factor_R_[at(n)] * step_.skin->R[at(full_nodes_[at(n)])].transpose();
        };
        value = turn(row) * value * turn(col).transpose();
      }
      if (i < j) {
        std::swap(i, j);
        value.transposeInPlace();
      }
      change.push_back({i, j, value});
    }
  };
  if (!fresh_ || contact_block_ != made_from_.contact_block || contact_value_ != made_from_.contact_value) {
    add(made_from_.contact_block, made_from_.contact_value, false);
    add(contact_block_, contact_value_, true);
  }
  const auto same = [](const BorderedSolver::TailBlock& a, const BorderedSolver::TailBlock& b) {
    return a.i == b.i && a.j == b.j && a.value == b.value;
  };
  if (std::equal(change.begin(), change.end(), changed_.begin(), changed_.end(), same)) return;
  if (!solver_.change_tail(change)) ++report.fallbacks["contacts_as_factored"];
  changed_ = std::move(change);
}

void HybridSystem::add_contact_blocks(std::span<const std::int64_t> blocks, std::span<const double> values) {
  for (std::size_t k = 0; k < blocks.size(); ++k)
    matrix_.K.block(static_cast<Index>(blocks[k])) += Eigen::Map<const Mat3>(values.data() + 9 * k);
}

}  // namespace limber::condense
