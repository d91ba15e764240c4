#include <limber/methods/mixed/reduced_script.hpp>

#include <limber/scene/hold_motion.hpp>

namespace limber::mixed {
namespace {

using Rows3 = Eigen::Matrix<double, 3, Eigen::Dynamic>;

// Held for ever, where it is.
bool is_pin(const Scene& scene, const Hold& hold) {
  const ConstraintSpec& spec = scene.constraints[hold.constraint];
  return !hold_moves(scene, hold.constraint) && !spec.until && spec.from <= 0 && spec.axes == "xyz";
}

bool weights_vanish(const Hold& hold, const Scene& scene, const std::string& pins) {
  if (!is_pin(scene, hold) || pins == "penalty") return false;
  // Weights that vanish in single nodes have a cone there and cannot turn around them: those get springs.
  return pins == "weights" || hold.nodes.size() >= 3;
}

}  // namespace

std::vector<std::uint8_t> pinned_by_weights(const Model& model, const std::string& pins) {
  std::vector<std::uint8_t> pinned(at(model.nodes()), 0);
  bool any = false;
  for (const Hold& hold : model.holds)
    if (weights_vanish(hold, *model.scene, pins))
      for (const Index i : hold.nodes) {
        pinned[at(i)] = 1;
        any = true;
      }
  return any ? pinned : std::vector<std::uint8_t>();
}

ReducedScript::ReducedScript(const Model& model, const ReducedBody& body,
                             const std::vector<std::uint8_t>& pinned, const std::string& pins,
                             double stiffness)
    : body_(body), mass_moment_(body.basis.Phi.transpose() * body.mass) {
  const Index p = body.functions();
  for (const Load& load : model.loads) {
    load_moments_.push_back(moment_of(load));
    MatX own(3, load.acceleration.empty() ? 0 : p);
    own.setZero();
    for (std::size_t j = 0; j < load.acceleration.size(); ++j)
      own += body.mass[load.nodes[j]] * load.acceleration[j] * body.basis.Phi.row(load.nodes[j]);
    load_forces_.push_back(std::move(own));
  }
  for (std::size_t k = 0; k < model.holds.size(); ++k) {
    const Hold& hold = model.holds[k];
    const ConstraintSpec& spec = model.scene->constraints[hold.constraint];
    if (weights_vanish(hold, *model.scene, pins)) continue;
    double mass = 0;
    for (const Index i : hold.nodes)
      if (pinned.empty() || !pinned[at(i)]) mass += body.mass[i];
    if (mass == 0) continue;  // all its nodes are pinned
    ReducedHold r{k, MatX::Zero(p, p), MatX::Zero(p, 4), Mat3::Zero()};
    for (const Index i : hold.nodes) {
      if (!pinned.empty() && pinned[at(i)]) continue;
      const double k_i = stiffness * body.mass[i] / mass;
      const VecX phi = body.basis.Phi.row(i).transpose();
      const Vec3 X = node(body.rest, i);
      r.gram.selfadjointView<Eigen::Lower>().rankUpdate(phi, k_i);
      r.moment += k_i * phi * Eigen::RowVector4d(X[0], X[1], X[2], 1);
    }
    r.gram = MatX(r.gram.selfadjointView<Eigen::Lower>());
    for (int axis = 0; axis < 3; ++axis)
      if (spec.axes.find("xyz"[axis]) != std::string::npos) r.axes(axis, axis) = 1;
    holds_.push_back(std::move(r));
  }
}

VecX ReducedScript::moment_of(const Load& load) const {
  VecX sum = VecX::Zero(body_.functions());
  for (const Index i : load.nodes) sum += body_.mass[i] * body_.basis.Phi.row(i).transpose();
  return sum;
}

// Of a load's spring [N].
Vec3 ReducedScript::pull(const Model& model, const StepInput& in, std::size_t load, const VecX& moment,
                         const VecX& u, const VecX& du) const {
  const Load& of = model.loads[load];
  const Eigen::Map<const Rows3> U(u.data(), 3, moment.size()), V(du.data(), 3, moment.size());
  Vec3 rest = Vec3::Zero();
  for (const Index i : of.nodes) rest += body_.mass[i] / of.mass * node(body_.rest, i);
  return spring_force(*model.scene->forces[of.force].spring, in.t + in.h, rest + U * moment / of.mass,
                      V * moment / of.mass);
}

void ReducedScript::add_loads(const Model& model, const StepInput& in, const VecX& u, const VecX& du,
                              VecX& gradient) const {
  Eigen::Map<Rows3> g(gradient.data(), 3, mass_moment_.size());
  g -= in.gravity * mass_moment_.transpose();
  for (std::size_t k = 0; k < model.loads.size(); ++k) {
    if (in.loading[k] == 0) continue;
    const ForceSpec& spec = model.scene->forces[model.loads[k].force];
    // A load that came during the run has no sums yet; what a hand grips are few nodes.
    const VecX moment = k < load_moments_.size() ? load_moments_[k] : moment_of(model.loads[k]);
    const bool own = k < load_forces_.size() && load_forces_[k].size() > 0;
    Vec3 force = spec.force;
    if (spec.spring) force += pull(model, in, k, moment, u, du);
    const Vec3 a = force / model.loads[k].mass + (own ? Vec3(0, 0, 0) : spec.acceleration.value);
    g -= in.loading[k] * a * moment.transpose();
    if (own) g -= in.loading[k] * load_forces_[k];
  }
}

// The targets are where the motion's keys put the nodes from where they were when the hold began: an affine
// function of that place, so that moments of the nodes are all that is needed.
void ReducedScript::add_holds(const Model& model, const StepInput& in, double end, const VecX& u0,
                              const VecX& anchor, MixedMemory& memory, BlockMatrix& H, VecX& gradient) const {
  const Index p = static_cast<Index>(mass_moment_.size());
  const auto r = static_cast<std::size_t>(3 * p);
  memory.hold_begin.resize(holds_.size(), -1.0);
  memory.hold_u.resize(holds_.size() * r, 0.0);
  for (std::size_t k = 0; k < holds_.size(); ++k) {
    const ReducedHold& hold = holds_[k];
    double* first = memory.hold_u.data() + k * r;
    if (!in.holding[hold.hold]) {
      memory.hold_begin[k] = -1;
      continue;
    }
    if (memory.hold_begin[k] < 0) {
      memory.hold_begin[k] = in.t;
      Eigen::Map<VecX>(first, 3 * p) = u0;
    }
    const ConstraintSpec& spec = model.scene->constraints[model.holds[hold.hold].constraint];
    const Eigen::Map<const Rows3> begun(first, 3, p), at_anchor(anchor.data(), 3, p);
    Mat3 turn = Mat3::Identity();
    Vec3 shift = Vec3::Zero();
    const std::size_t constraint = model.holds[hold.hold].constraint;
    if (hold_moves(*model.scene, constraint)) {
      const KeyPose from = hold_pose(*model.scene, constraint, memory.hold_begin[k]);
      const KeyPose to = hold_pose(*model.scene, constraint, end);
      turn = (to.scale / from.scale) * to.R * from.R.transpose();
      shift = spec.center + to.translation - turn * (spec.center + from.translation);
    }
    // sum of k (X - target) phi^T, target = turn (X + begun phi) + shift
    const Rows3 offset = (Mat3::Identity() - turn) * hold.moment.leftCols<3>().transpose() -
                         shift * hold.moment.col(3).transpose() - turn * begun * hold.gram;
    Eigen::Map<Rows3>(gradient.data(), 3, p) += hold.axes * (at_anchor * hold.gram + offset);
    for (Index j = 0; j < p; ++j)
      for (Index i = j; i < p; ++i)
        H.block(H.pattern->col_begin[at(j)] + i - j) += hold.gram(i, j) * hold.axes;
  }
}

}  // namespace limber::mixed
