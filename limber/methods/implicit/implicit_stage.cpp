#include <limber/methods/implicit/implicit_stage.hpp>

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/rounding.hpp>
#include <limber/methods/common/system.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace limber {
namespace {

constexpr double kContactMargin = 0.01;      // of the bodies' size
constexpr double kFrictionTolerance = 0.01;  // of the sum of all normal forces
constexpr std::size_t kSpare = 2;            // how many times more pairs than needed a new pattern may have

}  // namespace

ImplicitStage::ImplicitStage(const Model& model, const StageOptions& options)
    : model_(model),
      pattern_(model.pattern),
      eliminator_(*model.pattern),
      strain_damping_(options.strain_damping),
      contact_(model.contact, options.contact_damping, options.slip_speed, kContactMargin * model.size) {
  if (options.body_contact) {
    // It asks what is inside a closed surface: it would not see cloth at all.
    for (const Body& body : model.bodies)
      if (is_sheet(body.kind))
        throw Error(
            ErrorKind::kInput,
            fmt::format("/method/body_contact: bodies touch by their closed surfaces, and \"{}\" is "
                        "cloth, which has none; leave body_contact out, or give the scene soft bodies only",
                        body.name));
    bodies_.emplace(model.mesh,
                    BodyContactOptions{model.scene->contact.stiffness, model.scene->contact.friction,
                                       options.contact_damping, options.slip_speed, options.nearest});
  }
  const fem::Rounding rounding = fem::rounding(model.mesh, fem::rest_volume(*model.elements));
  elastic_scale_ = rounding.energy;
  force_rounding_ = rounding.force;
}

void ImplicitStage::pose(const StepInput& in, const StageRule& rule, const KnownState& s0,
                         const KnownState& s1) {
  rule_ = rule;
  key_.gamma = rule.quasistatic ? 0 : rule.gamma;
  key_.fixed = in.fixed;
  key_.activation = in.activation;
  free_ = limber::free_dofs(in);
  const bool two = rule.w1 != 0;
  c_ = rule.w0 * *s0.x;
  if (two) c_ += rule.w1 * *s1.x;
  constant_ = external_force(model_, in);
  target_ = c_;
  weight_.setZero(c_.size());
  stiffness_ = 1;
  strain_.weight = 0;
  if (rule.quasistatic) return;

  const double g = rule.gamma, a = model_.scene->damping_mass, b = model_.scene->damping_stiffness;
  VecX u = rule.w0 * *s0.v;
  if (two) u += rule.w1 * *s1.v;
  // M ((x - c)/g - u)/g + a M (x - c)/g = w (x - target), w = M (1/g^2 + a/g)
  weight_ = (1 / (g * g) + a / g) * model_.mass;
  target_ += g / (1 + a * g) * u;
  if (b > 0) {
    fem::assemble_force(*model_.elements, *s0.x, in.activation, force_);
    VecX history = rule.w0 * force_.f;
    if (two) {
      fem::assemble_force(*model_.elements, *s1.x, in.activation, force_);
      history += rule.w1 * force_.f;
    }
    constant_ -= (b / g) * history;
    stiffness_ = 1 + b / g;
  }
  if (strain_damping_ > 0) {
    // The assembly's sum is multiplied by 1 + b/g as a whole.
    strain_.weight = strain_damping_ / g / stiffness_;
    fem::green_strains(*model_.elements, *s0.x, strain_.history);
    if (two) {
      fem::green_strains(*model_.elements, *s1.x, other_strain_);
      for (std::size_t k = 0; k < other_strain_.size(); ++k)
        strain_.history[k] = rule.w0 * strain_.history[k] + rule.w1 * other_strain_[k];
    }
  }
}

void ImplicitStage::pose_contact(const VecX& x0, double t0, const VecX& guess, double t) {
  contact_.pose(x0, t0, guess, t, c_, rule_.gamma);
  if (!bodies_) return;
  bodies_->pose(x0, guess, c_, rule_.gamma);
  bodies_touch_ = bodies_->touching(x0) || bodies_->touching(guess);
  cover_pairs(x0, guess);
}

bool ImplicitStage::revise_contact(const VecX& x) {
  if (!bodies_ || !bodies_->revise(x)) return false;
  cover_pairs(x, x);
  return true;
}

void ImplicitStage::follow(const VecX& x) {
  if (bodies_) followed_ += bodies_->follow(x);
}

bool ImplicitStage::revise_friction(const VecX& x) {
  ContactEnergy::Revision all = contact_.revise_friction(x);
  if (bodies_) {
    const ContactEnergy::Revision between = bodies_->revise_friction(x);
    all.change += between.change;
    all.sum += between.sum;
  }
  return all.change > kFrictionTolerance * all.sum;
}

std::vector<ContactForce> ImplicitStage::contact_forces(const VecX& x) const {
  std::vector<ContactForce> out;
  contact_.list_forces(x, out);
  if (!bodies_) return out;
  VecX f = VecX::Zero(x.size());
  bodies_->add_force(x, f);
  for (Index i = 0; i < model_.nodes(); ++i)
    if (!node(f, i).isZero(0)) out.push_back({i, -1, node(f, i)});
  return out;
}

bool ImplicitStage::covered(const BodyContact::Pair& pair) const {
  return std::all_of(pair.nodes.begin(), pair.nodes.end(), [&](Index i) {  // the corners share an element
    return pattern_->find(std::max(i, pair.nodes[0]), std::min(i, pair.nodes[0])) >= 0;
  });
}

int ImplicitStage::uncoupled(const VecX& x) const {
  if (!bodies_) return 0;
  return static_cast<int>(std::count_if(
      bodies_->pairs().begin(), bodies_->pairs().end(),
      [&](const BodyContact::Pair& pair) { return bodies_->presses(pair, x) && !covered(pair); }));
}

// Makes the pattern anew, with all pairs, when it lacks a block of a pair that presses. Old pairs stay in it,
// as bodies that rest or slide on each other come back to the same few faces, unless they have become the
// greater part.
void ImplicitStage::cover_pairs(const VecX& x0, const VecX& x1) {
  const auto& pairs = bodies_->pairs();
  if (std::all_of(pairs.begin(), pairs.end(), [&](const BodyContact::Pair& pair) {
        return covered(pair) || !(bodies_->presses(pair, x0) || bodies_->presses(pair, x1));
      }))
    return;
  std::vector<std::array<std::int64_t, 4>> list;
  for (const BodyContact::Pair& pair : pairs)
    list.push_back({pair.nodes[0], pair.nodes[1], pair.nodes[2], pair.nodes[3]});
  if (coupled_.size() / 4 <= kSpare * pairs.size())
    for (std::size_t k = 0; k < coupled_.size(); k += 4)
      list.push_back({coupled_[k], coupled_[k + 1], coupled_[k + 2], coupled_[k + 3]});
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  coupled_.clear();
  for (const auto& nodes : list) coupled_.insert(coupled_.end(), nodes.begin(), nodes.end());
  make_pattern();
  ++pattern_changes_;
}

bool ImplicitStage::cover(const VecX& x) {
  if (!bodies_) return false;
  const int before = pattern_changes_;
  cover_pairs(x, x);
  return pattern_changes_ != before;
}

void ImplicitStage::set_coupled(const std::vector<std::int64_t>& coupled) {
  if (coupled == coupled_) return;
  coupled_ = coupled;
  make_pattern();
}

void ImplicitStage::make_pattern() {
  pattern_ = model_.pattern;
  block_of_.clear();
  if (!coupled_.empty()) {
    std::vector<std::array<Index, 4>> cliques(model_.mesh.elements.begin(), model_.mesh.elements.end());
    for (std::size_t k = 0; k < coupled_.size(); k += 4)
      cliques.push_back({static_cast<Index>(coupled_[k]), static_cast<Index>(coupled_[k + 1]),
                         static_cast<Index>(coupled_[k + 2]), static_cast<Index>(coupled_[k + 3])});
    pattern_ = std::make_shared<const BlockPattern>(make_block_pattern(model_.nodes(), cliques));
    const BlockPattern& own = *model_.pattern;
    for (Index j = 0; j < own.n; ++j) {
      Index to = pattern_->col_begin[j];
      for (Index b = own.col_begin[j]; b < own.col_begin[j + 1]; ++b) {
        while (pattern_->row[to] != own.row[b]) ++to;
        block_of_.push_back(to);
      }
    }
  }
  eliminator_ = fem::DofEliminator(*pattern_);
}

void ImplicitStage::evaluate(const VecX& x, Point& p) {
  fem::assemble_force(*model_.elements, x, key_.activation, force_, strain());
  p.inverted = force_.inverted;
  p.finite = force_.finite;
  p.first_bad = force_.first_bad;
  if (!p.finite) return;
  const VecX d = x - target_;
  // Loads work along x - c, not x: far from the origin the difference of two energies would drown.
  const double inertia = 0.5 * d.dot(weight_.cwiseProduct(d)), elastic = stiffness_ * force_.energy;
  const double load = constant_.dot(x - c_);
  contact_force_.setZero(x.size());
  double touch = contact_.add_force(x, contact_force_);
  if (bodies_) touch += bodies_->add_force(x, contact_force_);
  p.energy = inertia + elastic + touch - load;
  p.elastic = strain() ? NAN : force_.energy;
  p.scale = touch + inertia + std::abs(elastic) + stiffness_ * elastic_scale_ + std::abs(load);
  p.r = weight_.cwiseProduct(d) - stiffness_ * force_.f - contact_force_ - constant_;
  for (Eigen::Index k = 0; k < p.r.size(); ++k)
    if (key_.fixed[static_cast<std::size_t>(k)]) p.r[k] = 0;
  p.norm = p.r.norm();
  p.rounding =
      8 * std::numeric_limits<double>::epsilon() * (weight_.cwiseProduct(x).norm() + constant_.norm()) +
      stiffness_ * force_rounding_ * x.lpNorm<Eigen::Infinity>();
}

void ImplicitStage::build(const VecX& x, const MatrixKey& key, fem::Projection projection, bool contact,
                          BlockMatrix& A) {
  // A kept factor is made from its key alone: the projected matrix does not depend on the history of strains.
  fem::assemble(*model_.elements, x, key.activation, system_, projection, strain());
  double stiffness = 1, mass = 0;
  if (key.gamma > 0) {
    const double g = key.gamma;
    stiffness = 1 + model_.scene->damping_stiffness / g;
    mass = 1 / (g * g) + model_.scene->damping_mass / g;
  }
  if (A.pattern != pattern_) A = BlockMatrix(pattern_);
  if (coupled_.empty()) {
    A.values.swap(system_.K.values);
  } else {
    std::fill(A.values.begin(), A.values.end(), 0.0);
    parallel_for(static_cast<std::ptrdiff_t>(block_of_.size()), 4096,
                 [&](std::ptrdiff_t b) { A.block(block_of_[b]) = system_.K.block(static_cast<Index>(b)); });
  }
  scale_and_add_mass(A, stiffness, mass * model_.mass);
  if (!contact) return;
  contact_.add_stiffness(x, A);
  if (bodies_) bodies_->add_stiffness(x, projection != fem::Projection::kPsd, A);
}

void ImplicitStage::eliminate(const MatrixKey& key, BlockMatrix& A) const {
  double mean = 0;
  for (Index j = 0; j < A.pattern->n; ++j) mean += A.block(A.pattern->col_begin[j]).trace();
  eliminator_.eliminate(A, key.fixed, mean / std::max<Index>(1, 3 * A.pattern->n));
}

void ImplicitStage::matrix(const VecX& x, const MatrixKey& key, BlockMatrix& A, fem::Projection projection,
                           bool contact) {
  build(x, key, projection, contact, A);
  eliminate(key, A);
}

void ImplicitStage::matrix(const VecX& x, const MatrixKey& key, const VecX& d, BlockMatrix& A, VecX& y) {
  build(x, key, fem::Projection::kPsd, true, A);
  eliminator_.multiply_fixed(A, key.fixed, d, y);
  eliminate(key, A);
}

}  // namespace limber
