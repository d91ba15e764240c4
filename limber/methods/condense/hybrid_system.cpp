#include <limber/methods/condense/hybrid_system.hpp>

#include <limber/contact/surface_nodes.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/linalg/tall.hpp>

#include <algorithm>
#include <limits>

namespace limber::condense {
namespace {

constexpr Index kPointsPerColumn = 2;  // cubature points that must be left, or all elements are taken
// Stiffness that the points left must have of that of all, in every direction of their columns. Cubature errs
// by about a hundredth of a force. In a column that lives in the region points resist less than that, and the
// anchor's error alone would then move q anywhere.
constexpr double kLeastStiffness = 0.01;

}  // namespace

VecX gathered(const VecX& whole, std::span<const Index> nodes) {
  VecX out(3 * static_cast<Eigen::Index>(nodes.size()));
  for (std::size_t k = 0; k < nodes.size(); ++k) node(out, static_cast<Index>(k)) = node(whole, nodes[k]);
  return out;
}

HybridSystem::HybridSystem(const Model& model, const Skeleton& skeleton, const Subspace& subspace,
                           const CondenseOptions& options, PoseAt pose_at)
    : model_(model),
      skeleton_(skeleton),
      subspace_(subspace),
      options_(options),
      pose_at_(std::move(pose_at)),
      rounding_(fem::rounding(model.mesh, fem::rest_volume(*model.elements))),
      solver_({model.scene->solver, model.scene->ordering}) {
  if (options.body_contact)
    bodies_.emplace(model.mesh, BodyContactOptions{model.scene->contact.stiffness,
                                                   options.frictionless ? 0.0 : model.scene->contact.friction,
                                                   options.contact_damping, options.slip_speed, true});
  body_force_ = VecX::Zero(bodies_ ? 3 * model.nodes() : 0);
  on_surface_.assign(at(model.nodes()), 0);
  for (const Index i : surface_nodes(model.mesh).nodes) on_surface_[at(i)] = 1;
}

// W^T K W of cubature points at rest; without those in `active`, if it is given.
MatX HybridSystem::rest_stiffness(const std::vector<std::uint8_t>* active) const {
  const Cubature& c = subspace_.cubature;
  std::vector<Index> elements;
  std::vector<double> weights;
  for (std::size_t k = 0; k < c.elements.size(); ++k)
    if (!active || !(*active)[at(c.elements[k])]) {
      elements.push_back(c.elements[k]);
      weights.push_back(c.weights[k]);
    }
  MatX out = MatX::Zero(subspace_.columns(), subspace_.columns());
  if (elements.empty()) return out;
  const fem::Plan plan = fem::make_plan(*model_.elements, elements, weights);
  VecX rest(3 * static_cast<Eigen::Index>(plan.nodes.size()));
  for (std::size_t k = 0; k < plan.nodes.size(); ++k)
    node(rest, static_cast<Index>(k)) = model_.mesh.rest[at(plan.nodes[k])];
  fem::Assembled system;
  fem::assemble(*plan.elements, rest, {}, system, fem::Projection::kNone);
  BasisRows(subspace_.basis, {}, plan.nodes).add_congruence(system.K, 1, out);
  return out;
}

// The same of all elements, exactly.
MatX HybridSystem::rest_stiffness_of_all() const {
  VecX rest(3 * static_cast<Eigen::Index>(model_.nodes()));
  std::vector<Index> nodes(at(model_.nodes()));
  for (Index i = 0; i < model_.nodes(); ++i) {
    nodes[at(i)] = i;
    node(rest, i) = model_.mesh.rest[at(i)];
  }
  fem::Assembled system;
  fem::assemble(*model_.elements, rest, {}, system, fem::Projection::kNone);
  MatX out = MatX::Zero(subspace_.columns(), subspace_.columns());
  BasisRows(subspace_.basis, {}, nodes).add_congruence(system.K, 1, out);
  return out;
}

// Whether the points that are left resist some direction of the domain's columns too little; which, if they
// are those of the whole body.
bool HybridSystem::too_weak(const Domain& domain, const MatX& with_left) {
  if (with_all_.size() == 0) with_all_ = rest_stiffness(nullptr);
  const Eigen::Index first = domain.first, r = domain.columns();
  const MatX whole = with_all_.block(first, first, r, r);
  const DenseEigen eigen = symmetric_eigen(whole);
  const double floor = std::numeric_limits<double>::epsilon() * eigen.values.maxCoeff();
  const MatX scaled = eigen.vectors * eigen.values.cwiseMax(floor).cwiseSqrt().cwiseInverse().asDiagonal();
  const DenseEigen share = symmetric_eigen(scaled.transpose() * with_left.block(first, first, r, r) * scaled);
  const Eigen::Index weak = (share.values.array() < kLeastStiffness).count();  // values ascend
  weak_.columns = scaled * share.vectors.leftCols(weak);
  weak_.directions = whole * weak_.columns;
  weak_.shares = share.values.head(weak);
  return weak > 0;
}

// What T_s resists the weak directions with at rest, beside the points that are left.
MatX HybridSystem::missing_stiffness() const {
  VecX rest(3 * static_cast<Eigen::Index>(active_->nodes.size()));
  for (std::size_t k = 0; k < active_->nodes.size(); ++k)
    node(rest, static_cast<Index>(k)) = model_.mesh.rest[at(active_->nodes[k])];
  fem::Assembled system;
  fem::assemble(*active_->elements, rest, {}, system, fem::Projection::kNone);
  MatX own = MatX::Zero(subspace_.columns(), subspace_.columns());
  BasisRows(subspace_.basis, {}, active_->nodes).add_congruence(system.K, -1, own);
  own += exact_all_;
  const VecX missing =
      ((weak_.columns.transpose() * own * weak_.columns).diagonal() - weak_.shares).cwiseMax(0);
  return weak_.directions * missing.asDiagonal() * weak_.directions.transpose();
}

void HybridSystem::set_region(const std::vector<std::uint8_t>& wanted, bool exact,
                              const std::vector<std::int64_t>& coupled,
                              const std::vector<std::int64_t>& tail) {
  const Index n = model_.nodes();
  std::vector<std::uint8_t> full = wanted;
  for (Index i = 0; i < n; ++i)
    if (skeleton_.bone_of_node[at(i)] >= 0) full[at(i)] = 0;
  if (ready_ && full == full_ && exact == exact_ && coupled == coupled_ && tail == tail_) return;
  coupled_ = coupled;
  tail_ = tail;
  full_ = std::move(full);
  exact_ = exact;
  ready_ = true;
  full_nodes_.clear();
  subspace_nodes_ = 0;
  for (Index i = 0; i < n; ++i) {
    if (full_[at(i)]) full_nodes_.push_back(i);
    subspace_nodes_ += !full_[at(i)] && skeleton_.bone_of_node[at(i)] < 0;
  }
  // T_act, and what is left of T_c.
  const auto& elements = model_.mesh.elements;
  std::vector<std::uint8_t> active(elements.size(), 0);
  std::vector<Index> list, off, anchored;
  std::vector<double> off_weights;
  std::vector<std::pair<Index, double>> kept;
  for (std::size_t e = 0; e < elements.size(); ++e)
    if (std::any_of(elements[e].begin(), elements[e].end(), [&](Index i) { return full_[at(i)] != 0; })) {
      active[e] = 1;
      list.push_back(static_cast<Index>(e));
    }
  exact_domains_ = 0;
  bool firm = false;
  if (subspace_nodes_ > 0) {
    const Cubature& c = subspace_.cubature;
    const std::vector<Index>& domain = subspace_.domain_of_element;
    const std::vector<Domain>& domains = subspace_.basis.domains();
    std::vector<Index> left(domains.size(), 0), lost(domains.size(), 0);
    for (const Index e : c.elements) ++(active[at(e)] ? lost : left)[at(domain[at(e)])];
    std::vector<std::uint8_t> all(domains.size(), exact_);
    MatX with_left;
    for (std::size_t d = 0; d < domains.size(); ++d) {
      if (all[d] || lost[d] == 0) continue;
      const bool few = left[d] < kPointsPerColumn * domains[d].columns();
      if (!few && with_left.size() == 0) with_left = rest_stiffness(&active);
      if (!few && !too_weak(domains[d], with_left)) continue;
      // Elements of one domain move columns of others: which stiffness is missing is known of the whole body.
      firm = !few && options_.anchor && domains.size() == 1;
      if (firm) continue;
      all[d] = 1;
      ++exact_domains_;
    }
    for (std::size_t e = 0; e < elements.size(); ++e) {
      if (all[at(domain[e])] && !active[e]) kept.emplace_back(static_cast<Index>(e), 1);
      if (!all[at(domain[e])] && active[e]) anchored.push_back(static_cast<Index>(e));
    }
    for (std::size_t k = 0; k < c.elements.size(); ++k) {
      if (all[at(domain[at(c.elements[k])])]) continue;
      if (!active[at(c.elements[k])]) {
        kept.emplace_back(c.elements[k], c.weights[k]);
      } else {
        off.push_back(c.elements[k]);
        off_weights.push_back(c.weights[k]);
      }
    }
    std::sort(kept.begin(), kept.end());
  }
  std::vector<Index> kept_elements;
  std::vector<double> kept_weights;
  energy_scale_ = 0;
  const std::vector<double>& volume = fem::rest_volume(*model_.elements);
  const auto scale = [&](Index e) { return model_.mesh.material[at(e)].young * volume[at(e)]; };
  for (const auto& [element, weight] : kept) {
    kept_elements.push_back(element);
    kept_weights.push_back(weight);
    energy_scale_ += weight * scale(element);
  }
  for (const Index e : list) energy_scale_ += scale(e);
  active_.reset();
  points_.reset();
  off_.reset();
  anchored_.reset();
  if (!list.empty()) active_ = fem::make_plan(*model_.elements, list);
  if (!kept.empty()) points_ = fem::make_plan(*model_.elements, kept_elements, kept_weights);
  if (!off.empty()) off_ = fem::make_plan(*model_.elements, off, off_weights);
  if (!anchored.empty() && anchored.size() < list.size())
    anchored_ = fem::make_plan(*model_.elements, anchored);
  anchored_count_ = static_cast<Index>(anchored.size());
  firm_.resize(0, 0);
  if (firm) {
    if (exact_all_.size() == 0) exact_all_ = rest_stiffness_of_all();
    firm_ = missing_stiffness();
  }
  points_system_ = fem::Assembled();
  place_.assign(at(n), -1);
  for (Index k = 0; k < full_nodes(); ++k) place_[at(full_nodes_[at(k)])] = k;
  make_pattern();
  make_contact();
  reduced_mass();
  set_costs();
}

// Where the blocks of the active elements' stiffness go.
void HybridSystem::make_pattern() {
  edge_nodes_.clear();
  point_nodes_.clear();
  inner_.clear();
  border_.clear();
  corner_.clear();
  full_of_.clear();
  edge_of_.clear();
  pair_nodes_.clear();
  pair_blocks_.clear();
  // Blocks that contacts need: (column, row), ascending.
  std::vector<std::pair<Index, Index>> extra;
  for (std::size_t k = 0; k + 3 < coupled_.size(); k += 4)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        const Index a = place_[static_cast<std::size_t>(coupled_[k + static_cast<std::size_t>(i)])],
                    b = place_[static_cast<std::size_t>(coupled_[k + static_cast<std::size_t>(j)])];
        if (b >= 0 && a > b) extra.emplace_back(b, a);
      }
  std::sort(extra.begin(), extra.end());
  extra.erase(std::unique(extra.begin(), extra.end()), extra.end());
  auto next_extra = extra.begin();
  std::vector<Index> col_begin{0}, row;
  if (active_) {
    Index next = 0;
    for (const Index i : active_->nodes) {
      const bool free = skeleton_.bone_of_node[at(i)] < 0;
      full_of_.push_back(full_[at(i)] ? next++ : -1);
      edge_of_.push_back(!full_[at(i)] && free ? edge_nodes() : -1);
      if (edge_of_.back() >= 0) edge_nodes_.push_back(i);
    }
    const BlockPattern& own = *fem::pattern(*active_->elements);
    // Nodes of the plan ascend, and so do those of V_f among them: the order of blocks stays.
    for (Index j = 0; j < own.n; ++j) {
      for (Index b = own.col_begin[at(j)]; b < own.col_begin[at(j) + 1]; ++b) {
        const Index i = own.row[at(b)];
        const Index fi = full_of_[at(i)], fj = full_of_[at(j)], ei = edge_of_[at(i)], ej = edge_of_[at(j)];
        if (fi >= 0 && fj >= 0) {
          for (; next_extra != extra.end() && *next_extra < std::pair(fj, fi); ++next_extra)
            row.push_back(next_extra->second);
          if (next_extra != extra.end() && *next_extra == std::pair(fj, fi)) ++next_extra;
          inner_.push_back({b, static_cast<Index>(row.size())});
          row.push_back(fi);
        } else if (fi >= 0 && ej >= 0) {
          border_.push_back({b, fi, ej, false});
        } else if (fj >= 0 && ei >= 0) {
          border_.push_back({b, fj, ei, true});
        } else if (ei >= 0 && ej >= 0) {
          corner_.push_back({b, ei, ej, false});
        }
      }
      if (full_of_[at(j)] < 0) continue;
      for (; next_extra != extra.end() && next_extra->first == full_of_[at(j)]; ++next_extra)
        row.push_back(next_extra->second);
      col_begin.push_back(static_cast<Index>(row.size()));
    }
  }
  pattern_ = std::make_shared<const BlockPattern>(make_block_pattern(std::move(col_begin), std::move(row)));
  matrix_.K = BlockMatrix(pattern_);
  contact_matrix_ = BlockMatrix();
  solver_.analyze(*pattern_);
  take_tail();
  if (points_)
    for (const Index i : points_->nodes) point_nodes_.push_back(i);
}

// U_s^T M U_s = U^T M U - U_f^T M U_f
void HybridSystem::reduced_mass() {
  full_mass_ = gathered(model_.mass, full_nodes_);
  if (all_full()) {
    mass_.resize(0, 0);
    return;
  }
  mass_ = subspace_.mass;
  if (!options_.dynamics || full_nodes_.empty()) return;
  VecX mass(full_nodes());
  for (Index k = 0; k < full_nodes(); ++k) mass[k] = full_mass_[3 * k];
  mass_ -= BasisRows(subspace_.basis, {}, full_nodes_).gram(mass);
}

void HybridSystem::pose(HybridStep step, const VecX& x0, const VecX& q) {
  step_ = std::move(step);
  x_ = x0;
  const Eigen::Index r = all_full() ? 0 : subspace_.columns();
  q0_ = r > 0 ? q : VecX();
  stiffness_ = 1 + step_.damping;
  anchor_ = VecX::Zero(r);
  anchor_q_ = q0_;
  Wb_ = r > 0 ? turned_rows(subspace_, *step_.skin, edge_nodes_) : BasisRows();
  if (points_) Wp_ = turned_rows(subspace_, *step_.skin, point_nodes_);
  Wc_ = r > 0 ? turned_rows(subspace_, *step_.skin, trained_nodes_) : BasisRows();
  full_load_ = gathered(step_.load, full_nodes_);
  reduced_load_ = r > 0 ? reduced_force(subspace_, *step_.skin, step_.load, full_) : VecX();
  if (step_.damping > 0)  // -b/g (f_h): the history of the elastic forces
    for (const auto& [weight, x] : step_.history) {
      const double share = step_.damping * weight;
      if (active_) {
        fem::assemble_force(*active_->elements, active_->gather(*x), step_.activation, active_force_);
        VecX edge = VecX::Zero(3 * static_cast<Eigen::Index>(edge_nodes()));
        for (std::size_t k = 0; k < active_->nodes.size(); ++k) {
          const auto own = node(active_force_.f, static_cast<Index>(k));
          if (full_of_[k] >= 0) node(full_load_, full_of_[k]) -= share * own;
          if (edge_of_[k] >= 0) node(edge, edge_of_[k]) = own;
        }
        if (r > 0) reduced_load_ -= share * Wb_.transposed(edge);
      }
      if (points_) {
        fem::assemble_force(*points_->elements, points_->gather(*x), step_.activation, points_force_);
        reduced_load_ -= share * Wp_.transposed(points_force_.f);
      }
    }
  if (step_.inertia > 0 && r > 0) {
    VecX start;
    subspace_positions(subspace_, *step_.skin, q0_, start);
    start = model_.mass.cwiseProduct(start - step_.target);
    reduced_inertia_ = reduced_force(subspace_, *step_.skin, start, full_);
  }
  place(gathered(x0, full_nodes_), q0_);
}

void HybridSystem::place(const VecX& xf, const VecX& q) {
  xf_ = xf;
  q_ = q;
  for (std::size_t k = 0; k < full_nodes_.size(); ++k)
    node(x_, full_nodes_[k]) = node(xf_, static_cast<Index>(k));
  if (q_.size() == 0) return;
  const auto put = [&](std::span<const Index> nodes, const BasisRows& W) {
    if (nodes.empty()) return;
    const VecX moved = W.times(q_);
    for (std::size_t k = 0; k < nodes.size(); ++k)
      if (skeleton_.bone_of_node[at(nodes[k])] < 0)
        node(x_, nodes[k]) = node(step_.skin->x, nodes[k]) + node(moved, static_cast<Index>(k));
  };
  put(edge_nodes_, Wb_);
  put(point_nodes_, Wp_);
  put(trained_nodes_, Wc_);
}

void HybridSystem::go_to_pose() {
  if (full_nodes() > 0) return;
  Point point;
  evaluate(point);
  VecX best = q_;
  double lowest = point.energy;
  const bool finite = point.finite;
  for (Eigen::Index k = 0; k < subspace_.q.cols(); ++k) {
    place(xf_, subspace_.q.col(k));
    evaluate(point);
    if (!point.finite || (finite && point.energy >= lowest)) continue;
    best = q_;
    lowest = point.energy;
  }
  place(xf_, best);
}

VecX HybridSystem::make_anchor(const VecX& q) {
  if (all_full()) return {};
  const Eigen::Index r = subspace_.columns();
  VecX c = VecX::Zero(r);
  if (anchored_count_ == 0) return c;
  // x_sub of the plans' nodes.
  const auto gradient = [&](const fem::Plan& plan, fem::Assembled& force) -> VecX {
    const BasisRows W = turned_rows(subspace_, *step_.skin, plan.nodes);
    VecX x = W.times(q);
    for (std::size_t k = 0; k < plan.nodes.size(); ++k) {
      auto own = node(x, static_cast<Index>(k));
      if (skeleton_.bone_of_node[at(plan.nodes[k])] >= 0)
        own = node(x_, plan.nodes[k]);
      else
        own += node(step_.skin->x, plan.nodes[k]);
    }
    fem::assemble_force(*plan.elements, x, step_.activation, force);
    return -W.transposed(force.f);
  };
  c -= gradient(anchored_ ? *anchored_ : *active_, active_force_);
  if (firm()) {
    VecX x;
    subspace_positions(subspace_, *step_.skin, q, x);
    for (Index i = 0; i < model_.nodes(); ++i)
      if (skeleton_.bone_of_node[at(i)] >= 0) node(x, i) = node(x_, i);
    fem::assemble_force(*model_.elements, x, step_.activation, whole_force_);
    c -= reduced_force(subspace_, *step_.skin, whole_force_.f);
    if (points_) c -= gradient(*points_, points_force_);
  } else if (off_) {
    c += gradient(*off_, points_force_);
  }
  return c.allFinite() ? c : VecX(VecX::Zero(r));
}

void HybridSystem::evaluate(Point& p) {
  const Eigen::Index r = q_.size();
  p = {};
  p.finite = true;
  p.rf = VecX::Zero(xf_.size());
  p.rs = VecX::Zero(r);
  const auto look = [&](const fem::Plan& plan, fem::Assembled& force) {
    fem::assemble_force(*plan.elements, plan.gather(x_), step_.activation, force);
    p.finite &= force.finite;
    if (!force.finite && p.first_bad < 0) p.first_bad = force.first_bad;
    p.inverted += force.inverted;
    p.elastic += force.energy;
  };
  if (active_) look(*active_, active_force_);
  if (points_) look(*points_, points_force_);
  if (!p.finite) return;
  if (active_) {
    VecX edge = VecX::Zero(3 * static_cast<Eigen::Index>(edge_nodes()));
    for (std::size_t k = 0; k < active_->nodes.size(); ++k) {
      const auto own = node(active_force_.f, static_cast<Index>(k));
      if (full_of_[k] >= 0) node(p.rf, full_of_[k]) = -own;
      if (edge_of_[k] >= 0 && r > 0) node(edge, edge_of_[k]) = own;
    }
    if (r > 0 && edge.size() > 0) p.rs -= Wb_.transposed(edge);
  }
  if (points_) p.rs -= Wp_.transposed(points_force_.f);
  p.energy = stiffness_ * p.elastic;
  p.rf *= stiffness_;
  p.rs *= stiffness_;
  p.scale = std::abs(p.energy) + stiffness_ * energy_scale_;
  const VecX dq = q_ - q0_;
  const double load =
      full_load_.dot(xf_ - gathered(step_.skin->x, full_nodes_)) + (r > 0 ? reduced_load_.dot(dq) : 0.0);
  p.energy -= load;
  p.scale += std::abs(load);
  p.rf -= full_load_;
  if (r > 0) {
    p.rs -= reduced_load_;
    p.rs += anchor_;
    p.energy += anchor_.dot(dq);
    if (firm()) {
      const VecX moved = q_ - anchor_q_, resisted = stiffness_ * (firm_ * moved);
      p.energy += 0.5 * moved.dot(resisted);
      p.rs += resisted;
    }
    if (options_.bone_domains) {
      const VecX springs = subspace_.coupling * q_;
      p.energy += 0.5 * q_.dot(springs);
      p.rs += springs;
    }
  }
  if (step_.inertia > 0) {
    const VecX d = xf_ - gathered(step_.target, full_nodes_);
    double inertia = 0.5 * d.dot(full_mass_.cwiseProduct(d));
    p.rf += step_.inertia * full_mass_.cwiseProduct(d);
    if (r > 0) {
      const VecX moved = mass_ * dq;
      inertia += reduced_inertia_.dot(dq) + 0.5 * dq.dot(moved);
      p.rs += step_.inertia * (reduced_inertia_ + moved);
    }
    p.energy += step_.inertia * inertia;
    p.scale += step_.inertia * std::abs(inertia);
  }
  if (contact_) {
    contact_force_.setZero(xf_.size());
    const double touch = contact_->add_force(xf_, contact_force_);
    p.energy += touch;
    p.scale += touch;
    p.rf -= contact_force_;
  }
  if (!pair_nodes_.empty()) {
    const double touch = bodies_->add_force(x_, body_force_);
    p.energy += touch;
    p.scale += touch;
    if (!trained_nodes_.empty()) p.rs -= Wc_.transposed(gathered(body_force_, trained_nodes_));
    for (Index k = 0; k < full_nodes(); ++k) node(p.rf, k) -= node(body_force_, full_nodes_[at(k)]);
    body_force_.setZero();
  }
  p.norm = std::sqrt(p.rf.squaredNorm() + p.rs.squaredNorm());
  p.rounding = stiffness_ * rounding_.force * x_.lpNorm<Eigen::Infinity>() +
               8 * std::numeric_limits<double>::epsilon() *
                   (full_load_.norm() + (r > 0 ? reduced_load_.norm() : 0.0) +
                    (step_.inertia > 0 ? step_.inertia * full_mass_.cwiseProduct(xf_).norm() : 0.0));
}

void HybridSystem::assemble(double projected) {
  assemble_elastic(x_, Wb_, Wp_, stiffness_, step_.inertia, step_.activation, projected);
  collect_contact_blocks(projected == 0);
  add_contact_blocks(contact_block_, contact_value_);
  collect_trained(projected == 0);
  if (contact_reduced_.size() > 0) matrix_.D += contact_reduced_;
}

// The exact stiffness and a share of the way from there to the projected one.
void HybridSystem::assemble_plan(const fem::Plan& plan, const VecX& x, const std::vector<double>& activation,
                                 double projected, fem::Assembled& out) {
  const VecX own = plan.gather(x);
  fem::assemble(*plan.elements, own, activation, out,
                projected < 1 ? fem::Projection::kNone : fem::Projection::kPsd);
  if (projected == 0 || projected == 1) return;
  fem::assemble(*plan.elements, own, activation, projected_, fem::Projection::kPsd);
  for (std::size_t k = 0; k < out.K.values.size(); ++k)
    out.K.values[k] += projected * (projected_.K.values[k] - out.K.values[k]);
}

void HybridSystem::assemble_elastic(const VecX& x, const BasisRows& Wb, const BasisRows& Wp, double stiffness,
                                    double inertia, const std::vector<double>& activation, double projected) {
  const Eigen::Index r = q_.size();
  std::fill(matrix_.K.values.begin(), matrix_.K.values.end(), 0.0);
  matrix_.C.setZero(3 * static_cast<Eigen::Index>(full_nodes()), r);
  matrix_.D.setZero(r, r);
  if (active_) {
    assemble_plan(*active_, x, activation, projected, active_system_);
    const BlockMatrix& K = active_system_.K;
    for (const Part& part : inner_) matrix_.K.block(part.to) = stiffness * K.block(part.block);
    if (r > 0) {
      RowMatX border = RowMatX::Zero(matrix_.C.rows(), r);
      for (const Coupling& c : border_)
        Wb.add_row(stiffness * (c.transposed ? Mat3(K.block(c.block).transpose()) : Mat3(K.block(c.block))),
                   c.j, border.middleRows(3 * static_cast<Eigen::Index>(c.i), 3));
      matrix_.C = border;
      std::vector<BasisRows::Entry> corner;
      for (const Coupling& c : corner_) corner.push_back({c.i, c.j, K.block(c.block)});
      Wb.add_congruence(corner, stiffness, matrix_.D);
    }
  }
  if (points_ && r > 0) {
    assemble_plan(*points_, x, activation, projected, points_system_);
    Wp.add_congruence(points_system_.K, stiffness, matrix_.D);
  }
  if (r > 0 && options_.bone_domains) matrix_.D += subspace_.coupling;
  if (r > 0 && firm()) matrix_.D += stiffness * firm_;
  if (inertia > 0) {
    for (Index k = 0; k < full_nodes(); ++k)
      matrix_.K.block(pattern_->col_begin[at(k)]).diagonal() += inertia * node(full_mass_, k);
    if (r > 0) matrix_.D += inertia * mass_;
  }
}

bool HybridSystem::factor(double projected) {
  assemble(projected);
  return solver_.factor(matrix_.K, matrix_.C, matrix_.D);
}

VecX HybridSystem::positions() const {
  if (q_.size() == 0) return x_;
  VecX x;
  subspace_positions(subspace_, *step_.skin, q_, x);
  for (Index i = 0; i < model_.nodes(); ++i)
    if (full_[at(i)] || skeleton_.bone_of_node[at(i)] >= 0) node(x, i) = node(x_, i);
  return x;
}

}  // namespace limber::condense
