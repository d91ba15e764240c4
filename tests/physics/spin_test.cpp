// Links that spin fast, against Euler's equations and the theory of the top.
#include "mechanism_runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace limber::rigid {
namespace {

using namespace testing;

struct Measured {
  double energy = 0;
  Vec3 momentum, spin;
};

Measured measure_state(const Mechanism& m, const JointState& state, const Vec3& gravity) {
  Motion motion;
  update_motion(m, state.q, state.v, motion);
  return {measure_energy(m, motion, state.q, gravity).total(), rigid::momentum(m, motion),
          angular_momentum(m, motion)};
}

Mechanism free_box(const Vec3& com, const Vec3& velocity, const Vec3& spin) {
  Joint j = joint("box", JointType::kFree, "world", Vec3::Zero(), Vec3::UnitZ());
  j.v = numbers({velocity[0], velocity[1], velocity[2], spin[0], spin[1], spin[2]});
  return make_mechanism({box_link("box", Vec3(0.1, 0.2, 0.3), com, 1000)}, {j});
}

// Explicit gyroscopic terms gain 62 % of the energy of such a box in 2 s.
TEST(Spin, AFreeBoxKeepsMomentumSpinAndEnergyToRounding) {
  for (const Vec3& com : {Vec3(0, 0, 0), Vec3(0.1, 0.3, -0.2)})
    for (const double speed : {1.0, 18.7, 60.0, 150.0}) {
      const Mechanism m = free_box(com, Vec3(0.3, 0.1, -0.2), speed * Vec3(0.96, 0.27, 0.05));
      JointState state = start(m);
      const Measured before = measure_state(m, state, Vec3::Zero());
      run(m, settings(5e-3, Vec3::Zero()), 2, state);
      const Measured after = measure_state(m, state, Vec3::Zero());
      EXPECT_NEAR(after.energy, before.energy, 1e-9 * before.energy) << speed;
      EXPECT_LT((after.momentum - before.momentum).norm(), 1e-9 * before.spin.norm() / 0.1) << speed;
      EXPECT_LT((after.spin - before.spin).norm(), 1e-9 * before.spin.norm()) << speed;
    }
}

// The motion itself is that of Euler's equations, of second order.
TEST(Spin, AFreeBoxFollowsEulersEquations) {
  const Vec3 spin(4, 7, 1);
  const Mechanism m = free_box(Vec3::Zero(), Vec3::Zero(), spin);
  const Vec3 I = m.links[0].inertia.I.diagonal();
  // I dW/dt = I W x W in the box's axes, classical Runge-Kutta.
  Vec3 W = spin;
  const auto rate = [&](const Vec3& w) -> Vec3 { return I.cwiseProduct(w).cross(w).cwiseQuotient(I); };
  const double end = 0.5, dt = 1e-4;
  for (int k = 0; k < static_cast<int>(std::lround(end / dt)); ++k) {
    const Vec3 k1 = rate(W), k2 = rate(W + 0.5 * dt * k1), k3 = rate(W + 0.5 * dt * k2),
               k4 = rate(W + dt * k3);
    W += dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  }
  double before = 0;
  for (const double h : {1e-2, 5e-3, 2.5e-3}) {
    JointState state = start(m);
    run(m, settings(h, Vec3::Zero()), end, state);
    const Quat R(state.q[3], state.q[4], state.q[5], state.q[6]);
    const double error = (R.conjugate() * Vec3(state.v.tail<3>()) - W).norm();
    EXPECT_LT(error, 1e-1);
    if (before > 0) {
      EXPECT_NEAR(before / error, 4, 0.4) << h;
    }
    before = error;
  }
}

// A disc thrown with a tilt wobbles with L / I_1 about the direction of its spin L.
TEST(Spin, AThrownDiscWobblesAtTheRateOfTheory) {
  Joint j = joint("disc", JointType::kFree, "world", Vec3::Zero(), Vec3::UnitZ());
  j.v = numbers({0, 0, 0, 4, 40, 0});
  const Mechanism m = make_mechanism({box_link("disc", Vec3(0.2, 0.02, 0.2), Vec3::Zero(), 1000)}, {j});
  const Mat3 I = m.links[0].inertia.I;
  JointState state = start(m);
  const Vec3 L = measure_state(m, state, Vec3::Zero()).spin, up = L.normalized();
  const double theory = L.norm() / I(0, 0);  // [rad/s]
  const Vec3 t1 = up.unitOrthogonal(), t2 = up.cross(t1);
  const double h = 2e-3, end = 0.5;
  double turned = 0, last = 0;
  for (int k = 0; k <= static_cast<int>(std::lround(end / h)); ++k) {
    const Vec3 axis = Quat(state.q[3], state.q[4], state.q[5], state.q[6]) * Vec3::UnitY();
    const double angle = std::atan2(axis.dot(t2), axis.dot(t1));
    if (k > 0) turned += std::remainder(angle - last, 2 * kPi);
    last = angle;
    step_bisp(m, {}, {}, {}, 0, settings(h, Vec3::Zero()), state);
  }
  EXPECT_NEAR(turned / end, theory, 5e-3 * theory);
}

struct TopRun {
  double least = 1e300, most = -1e300;  // energy over its initial value
  double precession = 0;                // [rad/s]
  double tilt_change = 0;               // [rad]
};

// A disc on a stick of 8 cm, tilted by 0.5 rad, that begins with the velocity w.
TopRun run_top(const Vec3& w, double h, double end) {
  Joint j = joint("top", JointType::kSpherical, "world", Vec3::Zero(), Vec3::UnitY());
  const Quat q = exp_quat(Vec3(0, 0, 0.5));
  j.q = numbers({q.w(), q.x(), q.y(), q.z()});
  j.v = w;
  const Mechanism m =
      make_mechanism({box_link("top", Vec3(0.0866, 0.01, 0.0866), Vec3(0, 0.08, 0), 2700)}, {j});
  const StepSettings s = settings(h);
  JointState state = start(m);
  const double before = measure_state(m, state, s.gravity).energy;
  TopRun out;
  double last = 0, turned = 0;
  Motion motion;
  for (int k = 0; k <= static_cast<int>(std::lround(end / h)); ++k) {
    update_motion(m, state.q, state.v, motion);
    const Vec3 axis = motion.links[0].com.normalized();
    const double angle = std::atan2(axis[0], axis[2]);
    if (k > 0) turned += std::remainder(angle - last, 2 * kPi);
    last = angle;
    out.tilt_change = std::max(out.tilt_change, std::abs(std::acos(axis[1]) - 0.5));
    const double energy = measure_state(m, state, s.gravity).energy / before;
    out.least = std::min(out.least, energy);
    out.most = std::max(out.most, energy);
    step_bisp(m, {}, {}, {}, 0, s, state);
  }
  out.precession = turned / end;
  return out;
}

// With explicit terms: 13,000 times the energy at 60 rad/s and 5 ms, not a number at 300 rad/s and 1 ms.
TEST(Spin, AFastTopKeepsItsEnergy) {
  const Vec3 axis = exp_rotation(Vec3(0, 0, 0.5)) * Vec3::UnitY();
  for (const auto& [speed, h, tolerance] : {std::tuple{60.0, 5e-3, 0.03}, {300.0, 1e-3, 1e-3}}) {
    const TopRun top = run_top(speed * axis, h, 1);
    EXPECT_GT(top.least, 1 - tolerance) << speed;
    EXPECT_LT(top.most, 1 + tolerance) << speed;
  }
}

// Steady precession at the rate W: m g l = I_3 w_3 W - I_1 W^2 cos(tilt), I about the point that is held.
TEST(Spin, ATopPrecessesAsInTextbooks) {
  const Link link = box_link("top", Vec3(0.0866, 0.01, 0.0866), Vec3(0, 0.08, 0), 2700);
  const double mgl = link.inertia.mass * 9.81 * 0.08, I3 = link.inertia.I(1, 1),
               I1 = link.inertia.I(0, 0) + link.inertia.mass * 0.08 * 0.08;
  const double w3 = 300, c = std::cos(0.5);
  const double W = (I3 * w3 - std::sqrt(I3 * w3 * I3 * w3 - 4 * I1 * c * mgl)) / (2 * I1 * c);
  const Vec3 axis = exp_rotation(Vec3(0, 0, 0.5)) * Vec3::UnitY();
  const TopRun top = run_top(W * Vec3::UnitY() + (w3 - W * c) * axis, 1e-3, 1);
  EXPECT_NEAR(top.precession, W, 0.01 * W);
  EXPECT_LT(top.tilt_change, 5e-3);
}

// A rotor in two rings, all revolute: the torque of gravity at the inner ring makes the outer ring turn.
TEST(Spin, AGyroscopeInGimbalsPrecesses) {
  const double speed = 300, h = 1e-3;
  Link outer = box_link("outer", Vec3(0.01, 0.01, 0.01), Vec3::Zero(), 10),
       inner = box_link("inner", Vec3(0.01, 0.01, 0.01), Vec3(0.02, 0, 0), 5e4),
       rotor = box_link("rotor", Vec3(0.02, 0.1, 0.1), Vec3::Zero(), 2700);
  std::vector<Joint> joints{joint("outer", JointType::kRevolute, "world", Vec3::Zero(), Vec3::UnitY()),
                            joint("inner", JointType::kRevolute, "outer", Vec3::Zero(), Vec3::UnitZ()),
                            joint("rotor", JointType::kRevolute, "inner", Vec3::Zero(), Vec3::UnitX())};
  const double torque = inner.inertia.mass * 9.81 * 0.02, L = rotor.inertia.I(0, 0) * speed;
  joints[0].v = numbers({torque / L});  // the steady rate, so that it does not nod
  joints[2].v = numbers({speed});
  const Mechanism m = make_mechanism({outer, inner, rotor}, joints);
  JointState state = start(m);
  const double before = measure_state(m, state, Vec3(0, -9.81, 0)).energy;
  run(m, settings(h), 1, state);
  EXPECT_NEAR(state.q[0], torque / L, 0.02 * torque / L);
  EXPECT_LT(std::abs(state.q[1]), 1e-2);
  EXPECT_NEAR(measure_state(m, state, Vec3(0, -9.81, 0)).energy, before, 1e-4 * before);
}

// What cannot be resolved (a radian and more per step) stays bounded, and is said.
TEST(Spin, TooFastForTheStepIsSaidAndStaysBounded) {
  const Mechanism m = free_box(Vec3::Zero(), Vec3::Zero(), Vec3(2000, 700, 300));
  JointState state = start(m);
  const double before = measure_state(m, state, Vec3::Zero()).energy;
  bool said = false;
  for (int k = 0; k < 200; ++k)
    said = !step_bisp(m, {}, {}, {}, 0, settings(5e-3, Vec3::Zero()), state).inertia_settled || said;
  EXPECT_TRUE(said);
  EXPECT_LT(measure_state(m, state, Vec3::Zero()).energy, 10 * before);
}

}  // namespace
}  // namespace limber::rigid
