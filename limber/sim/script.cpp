// The scene's script: what is held, pulled and activated during a step.
#include <limber/sim/model.hpp>

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

void script_input(const Model& model, const State& state, double h, StepInput& input) {
  const Scene& scene = *model.scene;
  const Index n = model.nodes();
  const double t = state.t;
  input.t = t;
  input.h = h;
  input.gravity = scene.gravity;
  input.force.setZero(3 * n);
  input.fixed.assign(static_cast<std::size_t>(3 * n), 0);
  input.fixed_velocity.setZero(3 * n);

  for (const Body& body : model.bodies) {
    if (!body.plane) continue;
    for (Index e = body.elements.begin; e < body.elements.end; ++e)
      for (int k = 0; k < 3; ++k)
        input.fixed[3 * static_cast<std::size_t>(model.mesh.elements[e][k]) + 2] = 1;
  }

  for (const Hold& hold : model.holds) {
    const ConstraintSpec& spec = scene.constraints[hold.constraint];
    if (!active(t, h, spec.from, spec.until)) continue;
    // The motion over this step, as one similarity: T(t + h) T(t)^-1.
    KeyPose from, to;
    if (!spec.motion.empty()) {
      from = key_pose(spec.motion, spec.interpolation, t);
      to = key_pose(spec.motion, spec.interpolation, t + h);
    }
    const Mat3 turn = (to.scale / from.scale) * to.R * from.R.transpose();
    const bool moves = !spec.motion.empty();
    for (Index i : hold.nodes) {
      const Vec3 x = node(state.x, i);
      const Vec3 x1 = spec.center + to.translation + turn * (x - spec.center - from.translation);
      for (int axis = 0; axis < 3; ++axis) {
        if (spec.axes.find("xyz"[axis]) == std::string::npos) continue;
        const auto dof = 3 * static_cast<std::size_t>(i) + static_cast<std::size_t>(axis);
        input.fixed[dof] = 1;
        input.fixed_velocity[static_cast<Eigen::Index>(dof)] = moves ? (x1[axis] - x[axis]) / h : 0.0;
      }
    }
  }

  for (const Load& load : model.loads) {
    const ForceSpec& spec = scene.forces[load.force];
    if (!active(t, h, spec.from, spec.until)) continue;
    const double grown = spec.ramp > 0 ? std::min(1.0, (t + h - spec.from) / spec.ramp) : 1.0;
    for (Index i : load.nodes) {
      const double m = model.mass[3 * i];
      node(input.force, i) += grown * m * (spec.force / load.mass + spec.acceleration);
    }
  }

  input.activation.resize(scene.activations.size());
  for (std::size_t c = 0; c < scene.activations.size(); ++c)
    input.activation[c] = activation_at(scene.activations[c].keys, t + h);
}

}  // namespace limber
