#include <limber/methods/conjac/free_spin.hpp>

#include <limber/core/motion.hpp>
#include <limber/core/point_inertia.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/mesh/geometry.hpp>
#include <limber/methods/conjac/rigid_motion.hpp>

#include <algorithm>

namespace limber {
namespace {

const Piece& piece_of(const Model& model, const FreeSpin& spin) { return model.pieces[spin.piece]; }

Vec3 mean(const Model& model, const FreeSpin& spin, const VecX& a) {
  return mass_mean(model, piece_of(model, spin), a);
}

// omega of the spin sum m r x a about the centre of x, and what it was made of.
struct Turning {
  Vec3 center = Vec3::Zero(), spin = Vec3::Zero();
  Mat3 inertia = Mat3::Zero();

  Vec3 rate(const Vec3& of) const { return solve_semidefinite(MatX(inertia), VecX(of)); }
  Vec3 rate() const { return rate(spin); }
};

Turning turning(const Model& model, const FreeSpin& spin, const VecX& x, const VecX& a, const Vec3& mean_a) {
  Turning t;
  t.center = mean(model, spin, x);
  for (const Index i : piece_of(model, spin).nodes) {
    const double m = model.mass[3 * i];
    const Vec3 r = node(x, i) - t.center;
    t.spin += m * cross(r, node(a, i) - mean_a);
    t.inertia += point_inertia(m, r);
  }
  return t;
}

}  // namespace

std::vector<FreeSpin> free_spins(const Model& model, const StepStart& start,
                                 std::span<const std::uint8_t> held, std::span<const std::uint8_t> touching) {
  std::vector<FreeSpin> spins;
  for (std::size_t p = 0; p < model.pieces.size(); ++p) {
    const auto held_somewhere = [&](Index i) {
      const auto d = 3 * static_cast<std::size_t>(i);
      return (held[d] | held[d + 1] | held[d + 2]) != 0;
    };
    const std::vector<Index>& nodes = model.pieces[p].nodes;
    if (touching[p] || std::any_of(nodes.begin(), nodes.end(), held_somewhere)) continue;
    FreeSpin spin;
    spin.piece = p;
    spin.velocity = mean(model, spin, start.v);
    const Turning t = turning(model, spin, start.x, start.v, spin.velocity);
    spin.center = t.center;
    spin.momentum = t.spin;
    spin.omega = t.rate();
    spins.push_back(spin);
  }
  return spins;
}

void turn_to(const Model& model, double fraction, double h, const StepStart& start,
             std::vector<FreeSpin>& spins, VecX& x, VecX& v) {
  for (FreeSpin& spin : spins) {
    const double s = fraction * h;
    spin.angle = s * spin.omega;
    const Mat3 R = rotation_of(spin.angle);
    for (const Index i : piece_of(model, spin).nodes) {
      const Vec3 r = node(start.x, i) - spin.center, dv = node(start.v, i) - spin.velocity;
      node(x, i) = spin.center + s * spin.velocity + R * (r + s * (dv - cross(spin.omega, r)));
      node(v, i) = spin.velocity + R * dv;
    }
  }
}

void add_frame_force(const Model& model, std::span<const FreeSpin> spins, const VecX& v, VecX& f) {
  for (const FreeSpin& spin : spins)
    for (const Index i : piece_of(model, spin).nodes)
      node(f, i) -= model.mass[3 * i] * cross(spin.omega, node(v, i) - spin.velocity);
}

void leave_out_rigid(const Model& model, std::span<const FreeSpin> spins, const VecX& x, VecX& d) {
  for (const FreeSpin& spin : spins) {
    const Vec3 shift = mean(model, spin, d);
    const Turning t = turning(model, spin, x, d, shift);
    const Vec3 angle = t.rate();
    for (const Index i : piece_of(model, spin).nodes)
      node(d, i) -= shift + cross(angle, node(x, i) - t.center);
  }
}

std::vector<Turn> turn_back(const SpinStep& step, std::span<const FreeSpin> spins, const VecX& moved,
                            const VecX& d, VecX& x, VecX& v) {
  const Model& model = step.model;
  std::vector<Turn> turns;
  for (const FreeSpin& spin : spins) {
    const Vec3 shift = mean(model, spin, moved), velocity = mean(model, spin, v);
    const Turning there = turning(model, spin, step.at, moved, shift);
    const Vec3 angle = there.rate();
    const Mat3 R_there = rotation_of(spin.angle), R = rotation_of(angle - spin.angle);
    Vec3 torque = Vec3::Zero();
    for (const Index i : piece_of(model, spin).nodes) {
      const Vec3 r = node(step.at, i) - there.center;
      torque += cross(r, node(step.loads, i));
      const Vec3 rest = node(moved, i) - shift - cross(angle, r) + node(d, i);
      node(x, i) = spin.center + shift + R * (R_there * (node(step.start.x, i) - spin.center) + rest);
      node(v, i) = velocity + R * (node(v, i) - velocity);
    }
    turns.push_back(
        {R * R_there, spin.momentum + step.h * torque - model.scene->damping_mass * (there.inertia * angle)});
  }
  keep_spin(model, spins, turns, x, v);
  return turns;
}

void keep_spin(const Model& model, std::span<const FreeSpin> spins, std::span<const Turn> turns,
               const VecX& x, VecX& v) {
  for (std::size_t k = 0; k < spins.size(); ++k) {
    const Turning here = turning(model, spins[k], x, v, mean(model, spins[k], v));
    const Vec3 change = here.rate(turns[k].momentum - here.spin);
    for (const Index i : piece_of(model, spins[k]).nodes)
      node(v, i) += cross(change, node(x, i) - here.center);
  }
}

void turn_shapes(const Model& model, std::span<const FreeSpin> spins, std::span<const Turn> turns,
                 VecX& shapes) {
  const Eigen::Index n = 3 * static_cast<Eigen::Index>(model.nodes());
  for (std::size_t k = 0; k < spins.size(); ++k)
    for (const Index i : piece_of(model, spins[k]).nodes)
      for (Eigen::Index begin = 3 * static_cast<Eigen::Index>(i); begin < shapes.size(); begin += n)
        shapes.segment<3>(begin) = turns[k].rotation * shapes.segment<3>(begin).eval();
}

}  // namespace limber
