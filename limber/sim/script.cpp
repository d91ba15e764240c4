// The scene's script: what is held, pulled and activated during a step.
#include <limber/sim/script.hpp>

#include <limber/scene/hold_motion.hpp>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

// Times of the script are compared with a tolerance far below a step, so that "until 0.5" ends at step 100 of
// h = 5e-3 and not one step later because of rounding.
bool active(double t, double h, double from, const std::optional<double>& until) {
  const double eps = 1e-6 * h;
  return t >= from - eps && (!until || t < *until - eps);
}

double activation_at(const std::vector<std::pair<double, double>>& keys, double t) {
  if (keys.empty()) return 0;
  if (t <= keys.front().first) return keys.front().second;
  if (t >= keys.back().first) return keys.back().second;
  const auto next = std::upper_bound(
      keys.begin(), keys.end(), t, [](double s, const std::pair<double, double>& k) { return s < k.first; });
  const auto &a = *(next - 1), &b = *next;
  const double s = (t - a.first) / (b.first - a.first);
  return (1 - s) * a.second + s * b.second;
}

}  // namespace

Script::Script(const Model& model) : model_(model) {
  const auto dofs = static_cast<std::size_t>(3 * model.nodes());
  plane_.assign(dofs, 0);
  for (const Body& body : model.bodies) {
    if (!moves_in_plane(body.kind)) continue;
    for (Index e = body.elements.begin; e < body.elements.end; ++e)
      for (int k = 0; k < 3; ++k) plane_[3 * static_cast<std::size_t>(model.mesh.elements[e][k]) + 2] = 1;
  }
  input_.force.setZero(3 * model.nodes());
  input_.fixed = plane_;
  input_.fixed_velocity.setZero(3 * model.nodes());
  input_.holding.assign(model.holds.size(), 0);
  input_.loading.assign(model.loads.size(), 0.0);
  moving_.assign(model.holds.size(), 0);
  input_.gravity = model.scene->gravity;
  input_.activation.resize(model.scene->activations.size());
}

const StepInput& Script::at(const State& state, double h, bool nodal) {
  const Scene& scene = *model_.scene;
  input_.t = state.t;
  input_.h = h;
  changed_holds_ |= look_at_holds(state.t, h);
  changed_loads_ |= look_at_loads(state.t, h);
  if (nodal) {
    fill_holds(&state);
    fill_loads(&state);
  }
  for (std::size_t c = 0; c < scene.activations.size(); ++c)
    input_.activation[c] = activation_at(scene.activations[c].keys, state.t + h);
  return input_;
}

const StepInput& Script::input() {
  if (changed_holds_) fill_holds(nullptr);
  if (changed_loads_) fill_loads(nullptr);
  return input_;
}

bool Script::needs_positions(double t, double h) const {
  const bool pulls = std::any_of(model_.loads.begin(), model_.loads.end(), [&](const Load& load) {
    const ForceSpec& spec = model_.scene->forces[load.force];
    return spec.spring && active(t, h, spec.from, spec.until);
  });
  return pulls || std::any_of(model_.holds.begin(), model_.holds.end(), [&](const Hold& hold) {
           const ConstraintSpec& spec = model_.scene->constraints[hold.constraint];
           return hold_moves(*model_.scene, hold.constraint) && active(t, h, spec.from, spec.until);
         });
}

// True: one begins or ends.
bool Script::look_at_holds(double t, double h) {
  bool changed = false;
  for (std::size_t k = 0; k < model_.holds.size(); ++k) {
    const ConstraintSpec& spec = model_.scene->constraints[model_.holds[k].constraint];
    const bool now = active(t, h, spec.from, spec.until);
    changed |= now != (input_.holding[k] != 0);
    input_.holding[k] = now;
    moving_[k] = now && hold_moves(*model_.scene, model_.holds[k].constraint);
  }
  return changed;
}

// Later holds win where they share nodes, so that all are written again when one begins or ends; as long as
// none does, only those that move are. Without a state nobody asks for velocities.
void Script::fill_holds(const State* state) {
  const Scene& scene = *model_.scene;
  const double t = input_.t, h = input_.h;
  const bool moves = std::find(moving_.begin(), moving_.end(), 1) != moving_.end();
  if (!changed_holds_ && !moves) return;
  if (changed_holds_) {
    input_.fixed = plane_;
    input_.fixed_velocity.setZero();
  }
  changed_holds_ = false;
  for (std::size_t k = 0; k < model_.holds.size(); ++k) {
    if (!input_.holding[k]) continue;
    const ConstraintSpec& spec = scene.constraints[model_.holds[k].constraint];
    // The motion over this step, as one similarity: T(t + h) T(t)^-1.
    const bool moving = moving_[k] && state;
    KeyPose from, to;
    if (moving) {
      from = hold_pose(scene, model_.holds[k].constraint, t);
      to = hold_pose(scene, model_.holds[k].constraint, t + h);
    }
    const Mat3 turn = (to.scale / from.scale) * to.R * from.R.transpose();
    for (const Index i : model_.holds[k].nodes) {
      Vec3 x = Vec3::Zero(), x1 = Vec3::Zero();
      if (moving) {
        x = node(state->x, i);
        x1 = spec.center + to.translation + turn * (x - spec.center - from.translation);
      }
      for (int axis = 0; axis < 3; ++axis) {
        if (spec.axes.find("xyz"[axis]) == std::string::npos) continue;
        const auto dof = 3 * static_cast<std::size_t>(i) + static_cast<std::size_t>(axis);
        input_.fixed[dof] = 1;
        input_.fixed_velocity[static_cast<Eigen::Index>(dof)] = moving ? (x1[axis] - x[axis]) / h : 0.0;
      }
    }
  }
}

// True: a load's share is another one than before.
bool Script::look_at_loads(double t, double h) {
  bool changed = false;
  pulls_ = false;
  for (std::size_t k = 0; k < model_.loads.size(); ++k) {
    const ForceSpec& spec = model_.scene->forces[model_.loads[k].force];
    double grown = 0;
    if (active(t, h, spec.from, spec.until))
      grown = spec.ramp > 0 ? std::min(1.0, (t + h - spec.from) / spec.ramp) : 1.0;
    changed |= grown != input_.loading[k];
    input_.loading[k] = grown;
    pulls_ |= spec.spring && grown != 0;
  }
  return changed;
}

// Springs pull otherwise in every step. Without a state nobody asks for what they do.
void Script::fill_loads(const State* state) {
  if (!changed_loads_ && !pulls_) return;
  changed_loads_ = false;
  input_.force.setZero();
  for (std::size_t k = 0; k < model_.loads.size(); ++k) {
    if (input_.loading[k] == 0) continue;
    const Load& load = model_.loads[k];
    const ForceSpec& spec = model_.scene->forces[load.force];
    for (std::size_t j = 0; j < load.nodes.size(); ++j) {
      const Index i = load.nodes[j];
      const double m = model_.mass[3 * i];
      const Vec3& a = load.acceleration.empty() ? spec.acceleration.value : load.acceleration[j];
      node(input_.force, i) += input_.loading[k] * m * (spec.force / load.mass + a);
    }
    if (spec.spring && state) add_pull(*state, k);
  }
}

void Script::add_pull(const State& state, std::size_t k) {
  const Load& load = model_.loads[k];
  Vec3 x = Vec3::Zero(), v = Vec3::Zero();  // of the centre of mass
  for (const Index i : load.nodes) {
    x += model_.mass[3 * i] / load.mass * node(state.x, i);
    v += model_.mass[3 * i] / load.mass * node(state.v, i);
  }
  const SpringSpec& spring = *model_.scene->forces[load.force].spring;
  const Vec3 f = input_.loading[k] * spring_force(spring, input_.t + input_.h, x, v);
  for (const Index i : load.nodes) node(input_.force, i) += model_.mass[3 * i] / load.mass * f;
}

void script_input(const Model& model, const State& state, double h, StepInput& input) {
  input = Script(model).at(state, h);
}

}  // namespace limber
