#include <limber/methods/rigidify/mixed_system.hpp>

#include <limber/core/parallel.hpp>
#include <limber/mesh/geometry.hpp>
#include <limber/methods/common/system.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace limber::rigidify {

MixedSystem::MixedSystem(const Model& model, Economy economy)
    : model_(model),
      by_object_(economy == Economy::kAll && model.pieces.size() > 1),
      by_change_(economy == Economy::kAll),
      plane_node_(at(model.nodes()), 0),
      objects_(model.pieces.size()),
      mesh_island_(std::make_shared<Island>(model)),
      island_of_(model.pieces.size(), 0),
      offset_(model.pieces.size(), 0) {
  for (std::size_t e = 0; e < model.mesh.elements.size(); ++e) {
    const Tet& t = model.mesh.elements[e];
    objects_[at(model.piece_of_node[at(t[0])])].elements.push_back(static_cast<Index>(e));
    if (moves_in_plane(model.mesh.kind(e)))
      for (int a = 0; a < 3; ++a) plane_node_[at(t[static_cast<std::size_t>(a)])] = 1;
  }
  Island& mesh = *mesh_island_;
  mesh.pattern = model.pattern;
  mesh.blocks = model.nodes();
  mesh.eliminator.emplace(*model.pattern);
  mesh.solver.analyze(*model.pattern);
  ++analyses_;
  order_.assign(mesh.solver.order().begin(), mesh.solver.order().end());
  position_.resize(order_.size());
  for (std::size_t k = 0; k < order_.size(); ++k) {
    position_[at(order_[k])] = static_cast<Index>(k);
    objects_[at(model.piece_of_node[at(order_[k])])].order.push_back(order_[k]);
  }
  PieceAssignment none;
  none.element.assign(model.mesh.elements.size(), -1);
  none.node.assign(at(model.nodes()), -1);
  element_piece_.assign(1, 0);  // not the mask below
  set_pieces(none);
  if (by_object_) prepare();
}

// Its elastic elements, if they are not those that it has.
void MixedSystem::update_object(Object& o, const PieceAssignment& a) {
  std::vector<std::int32_t> mask;
  std::vector<std::uint8_t> held;
  std::vector<std::int32_t> seen;  // pieces of the object
  mask.reserve(o.elements.size());
  for (const Index e : o.elements) {
    const std::int32_t j = a.element[at(e)];
    auto it = seen.end();
    if (j >= 0 && (it = std::find(seen.begin(), seen.end(), j)) == seen.end()) {
      seen.push_back(j);
      held.push_back(a.held[at(j)]);
      it = seen.end() - 1;
    }
    mask.push_back(j < 0 ? -1 : static_cast<std::int32_t>(it - seen.begin()));
  }
  if (o.version > 0 && mask == o.mask && held == o.held) return;
  o.mask = std::move(mask);
  o.held = std::move(held);
  o.version = ++versions_;
  o.list.clear();
  std::vector<Index> own;
  for (std::size_t k = 0; k < o.elements.size(); ++k)
    if (o.mask[k] < 0) {
      o.list.push_back(o.elements[k]);
      own.push_back(static_cast<Index>(k));
    }
  o.assembled = fem::Assembled();
  if (o.list.empty()) {
    o.plan = fem::Plan();
    return;
  }
  if (objects_.size() == 1) {
    o.plan = fem::make_plan(*model_.elements, o.list);
    return;
  }
  if (!o.all.elements) o.all = fem::make_plan(*model_.elements, o.elements);
  if (o.list.size() == o.elements.size()) {
    o.plan = o.all;
    return;
  }
  o.plan = fem::make_plan(*o.all.elements, own);
  for (Index& i : o.plan.nodes) i = o.all.nodes[at(i)];
}

void MixedSystem::set_pieces(const PieceAssignment& a) {
  if (a.element == element_piece_ && a.held == held_) return;
  element_piece_ = a.element;
  node_piece_ = a.node;
  held_ = a.held;
  stale_ = true;
  whole_ = held_.empty() && !by_object_;
  list_.clear();
  piece_block_.assign(held_.size(), -1);
  plane_piece_.assign(held_.size(), 0);
  node_block_.assign(node_piece_.size(), -1);
  if (whole_) {
    blocks_ = model_.nodes();
    std::iota(node_block_.begin(), node_block_.end(), 0);
    list_.resize(element_piece_.size());
    std::iota(list_.begin(), list_.end(), 0);
    return;
  }
  assembled_ = fem::Assembled();
  // A piece comes where the last of its nodes stood.
  std::vector<Index> last(held_.size(), -1);
  for (std::size_t i = 0; i < node_piece_.size(); ++i)
    if (const std::int32_t j = node_piece_[i]; j >= 0 && !held_[at(j)])
      last[at(j)] = std::max(last[at(j)], position_[i]);
  blocks_ = 0;
  place_.clear();
  for (Object& o : objects_) {
    update_object(o, a);
    list_.insert(list_.end(), o.list.begin(), o.list.end());
    o.begin = blocks_;
    // Without pieces blocks are those of the plan, so that the object's K is its matrix.
    const bool elastic = o.held.empty() && o.plan.nodes.size() == o.order.size();
    for (const Index i : elastic ? o.plan.nodes : o.order) {
      const std::int32_t j = node_piece_[at(i)];
      if (j >= 0 && last[at(j)] != position_[at(i)]) continue;
      const Index count = j < 0 ? 1 : 2;
      place_.insert(place_.end(), at(count), position_[at(i)]);
      if (j < 0) {
        node_block_[at(i)] = blocks_;
      } else {
        piece_block_[at(j)] = blocks_;
        plane_piece_[at(j)] = plane_node_[at(i)];
      }
      blocks_ += count;
    }
    o.end = blocks_;
  }
  for (std::size_t i = 0; i < node_piece_.size(); ++i)
    if (node_piece_[i] >= 0) node_block_[i] = piece_block_[at(node_piece_[i])];
}

void MixedSystem::set_couplings(const std::vector<std::array<Index, 4>>& couplings) {
  if (couplings == couplings_) return;
  couplings_ = couplings;
  stale_ = true;
}

namespace {

void add_to(const fem::Assembled& from, const std::vector<Index>& list, MixedSystem::Elastic& sum) {
  sum.energy += from.energy;
  sum.inverted += from.inverted;
  if (!from.finite && sum.first_bad < 0) sum.first_bad = list[at(from.first_bad)];
}

}  // namespace

const MixedSystem::Elastic& MixedSystem::assemble(const VecX& x, std::span<const double> activation) {
  elastic_ = {};
  for (const std::shared_ptr<Island>& island : islands_) {
    island->changed = true;
    island->anew = true;
    island->formed.clear();
  }
  if (whole_) {
    fem::assemble(*model_.elements, x, activation, assembled_);
    add_to(assembled_, list_, elastic_);
    return elastic_;
  }
  for (Object& o : objects_) {
    if (o.list.empty()) continue;
    fem::assemble(*o.plan.elements, o.plan.gather(x), activation, o.assembled);
    add_to(o.assembled, o.list, elastic_);
  }
  return elastic_;
}

const MixedSystem::Elastic& MixedSystem::assemble_force(const VecX& x, std::span<const double> activation) {
  elastic_ = {};
  if (whole_) {
    fem::assemble_force(*model_.elements, x, activation, assembled_);
    add_to(assembled_, list_, elastic_);
    return elastic_;
  }
  for (Object& o : objects_) {
    if (o.list.empty()) continue;
    fem::assemble_force(*o.plan.elements, o.plan.gather(x), activation, o.assembled);
    add_to(o.assembled, o.list, elastic_);
  }
  return elastic_;
}

void MixedSystem::add_force(double scale, VecX& f) const {
  if (whole_) {
    f += scale * assembled_.f;
    return;
  }
  for (const Object& o : objects_)
    if (!o.list.empty()) o.plan.scatter_add(scale * o.assembled.f, f);
}

void MixedSystem::add_stiffness_times(double scale, const VecX& x, std::span<const double> activation,
                                      const VecX& v, VecX& f) {
  fem::Assembled product;
  if (whole_) {
    fem::multiply_stiffness(*model_.elements, x, activation, v, product);
    f += scale * product.f;
    return;
  }
  for (const Object& o : objects_) {
    if (o.list.empty()) continue;
    fem::multiply_stiffness(*o.plan.elements, o.plan.gather(x), activation, o.plan.gather(v), product);
    o.plan.scatter_add(scale * product.f, f);
  }
}

void MixedSystem::strain_rates(const VecX& x, const VecX& v, std::vector<double>& rate) {
  if (whole_) {
    fem::strain_rates(*model_.elements, x, v, rate);
    return;
  }
  rate.clear();
  std::vector<double> own;
  for (const Object& o : objects_) {
    if (o.list.empty()) continue;
    fem::strain_rates(*o.plan.elements, o.plan.gather(x), o.plan.gather(v), own);
    rate.insert(rate.end(), own.begin(), own.end());
  }
}

VecX MixedSystem::known_drag(double k, const VecX& v, const VecX& x,
                             std::span<const RigidPiece> pieces) const {
  VecX product, all = VecX::Zero(v.size());
  if (whole_) {
    multiply(assembled_.K, v, product);
    all += k * product;
  } else {
    for (const Object& o : objects_) {
      if (o.list.empty()) continue;
      multiply(o.assembled.K, o.plan.gather(v), product);
      o.plan.scatter_add(k * product, all);
    }
  }
  return reduce(all, x, pieces);
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

void MixedSystem::impose_fixed(VecX& u) const {
  for (Eigen::Index d = 0; d < u.size(); ++d)
    if (fixed_[static_cast<std::size_t>(d)]) u[d] = fixed_velocity_[d];
}

std::string bad_element(const MixedSystem::Elastic& elastic) {
  return fmt::format("element {} gave a force or stiffness that is not finite", elastic.first_bad);
}

Index MixedSystem::free_unknowns() const {
  return static_cast<Index>(std::count(fixed_.begin(), fixed_.end(), std::uint8_t{0}));
}

}  // namespace limber::rigidify
