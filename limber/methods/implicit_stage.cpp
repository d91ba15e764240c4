#include <limber/methods/implicit_stage.hpp>

#include <limber/core/parallel.hpp>
#include <limber/methods/system.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace limber {
namespace {

constexpr double kContactMargin = 0.01;  // of the bodies' size

}  // namespace

ImplicitStage::ImplicitStage(const Model& model)
    : model_(model),
      eliminator_(*model.pattern),
      strain_damping_(model.scene->method_options.at("strain_damping")),
      contact_(model.contact, model.scene->method_options.at("contact_damping"),
               model.scene->method_options.at("slip_speed"), kContactMargin * model.size) {
  const nlohmann::json& o = model.scene->method_options;
  if (o.at("body_contact"))
    bodies_.emplace(model.mesh,
                    BodyContactOptions{model.scene->contact.stiffness, model.scene->contact.friction,
                                       o.at("contact_damping"), o.at("slip_speed")});
  const std::vector<double>& volume = fem::rest_volume(*model.elements);
  double squares = 0;
  for (std::size_t e = 0; e < volume.size(); ++e) {
    const ElementMaterial& m = model.mesh.material[e];
    elastic_scale_ += m.young * volume[e];
    const bool plane = model.mesh.elements[e][3] < 0;
    const double edge = plane ? std::sqrt(volume[e] / m.thickness) : std::cbrt(volume[e]);
    const double modulus =  // of a plane wave
        m.young * (1 - m.poisson) / ((1 + m.poisson) * (1 - 2 * m.poisson)) + m.fibre_stiffness;
    squares += std::pow(modulus * volume[e] / (edge * edge), 2);
  }
  force_rounding_ = 0.5 * std::numeric_limits<double>::epsilon() * std::sqrt(squares);
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
  p.scale = touch + inertia + std::abs(elastic) + stiffness_ * elastic_scale_ + std::abs(load);
  p.r = weight_.cwiseProduct(d) - stiffness_ * force_.f - contact_force_ - constant_;
  for (Eigen::Index k = 0; k < p.r.size(); ++k)
    if (key_.fixed[static_cast<std::size_t>(k)]) p.r[k] = 0;
  p.norm = p.r.norm();
  p.rounding =
      8 * std::numeric_limits<double>::epsilon() * (weight_.cwiseProduct(x).norm() + constant_.norm()) +
      stiffness_ * force_rounding_ * x.lpNorm<Eigen::Infinity>();
}

void ImplicitStage::build(const VecX& x, const MatrixKey& key, fem::Projection projection, BlockMatrix& A) {
  // A kept factor is made from its key alone: the projected matrix does not depend on the history of strains.
  fem::assemble(*model_.elements, x, key.activation, system_, projection, strain());
  double stiffness = 1, mass = 0;
  if (key.gamma > 0) {
    const double g = key.gamma;
    stiffness = 1 + model_.scene->damping_stiffness / g;
    mass = 1 / (g * g) + model_.scene->damping_mass / g;
  }
  if (A.pattern != system_.K.pattern) A = BlockMatrix(system_.K.pattern);
  A.values.swap(system_.K.values);
  scale_and_add_mass(A, stiffness, mass * model_.mass);
  contact_.add_stiffness(x, A);
  if (bodies_) bodies_->add_diagonal(x, A);
}

void ImplicitStage::eliminate(const MatrixKey& key, BlockMatrix& A) const {
  double mean = 0;
  for (Index j = 0; j < A.pattern->n; ++j) mean += A.block(A.pattern->col_begin[j]).trace();
  eliminator_.eliminate(A, key.fixed, mean / std::max<Index>(1, 3 * A.pattern->n));
}

void ImplicitStage::matrix(const VecX& x, const MatrixKey& key, BlockMatrix& A, fem::Projection projection) {
  build(x, key, projection, A);
  eliminate(key, A);
}

void ImplicitStage::matrix(const VecX& x, const MatrixKey& key, const VecX& d, BlockMatrix& A, VecX& y) {
  build(x, key, fem::Projection::kPsd, A);
  eliminator_.multiply_fixed(A, key.fixed, d, y);
  eliminate(key, A);
}

}  // namespace limber
