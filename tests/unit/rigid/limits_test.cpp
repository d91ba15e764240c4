// Limits of every joint that has them, and gears.
#include "mechanisms.hpp"

#include <limber/rigid/sp.hpp>

#include <gtest/gtest.h>

#include <numbers>

namespace limber::rigid {
namespace {

using namespace testing;

TEST(Limits, RatesAreTheDerivativesOfTheLimitedValues) {
  const Mechanism m = zoo();
  for (unsigned seed = 1; seed < 6; ++seed) {
    VecX q, v;
    random_state(m, seed, q, v);
    const double d = 1e-6;
    VecX before = q, after = q;
    integrate(m, v, -d, before);
    integrate(m, v, d, after);
    for (const Joint& j : m.joints) {
      if (j.type == JointType::kFree) continue;
      const std::vector<LimitedValue> now = limited_values(j, q), a = limited_values(j, before),
                                      b = limited_values(j, after);
      for (std::size_t k = 0; k < now.size(); ++k) {
        double rate = 0;
        for (int c = 0; c < velocity_numbers(j.type); ++c) rate += now[k].rate[c] * v[j.v_begin + c];
        EXPECT_NEAR(rate, std::remainder(b[k].x - a[k].x, 2 * std::numbers::pi) / (2 * d), 1e-7)
            << j.name << " " << k;
      }
    }
  }
}

TEST(Limits, SwingAndTwistAreThoseOfARotationPutTogetherFromThem) {
  Joint j;
  j.type = JointType::kSpherical;
  j.axis = Vec3(1, 2, -2) / 3;
  const Vec3 across = j.axis.cross(Vec3::UnitX()).normalized();
  const Quat turned = exp_quat(0.7 * across) * exp_quat(-1.9 * j.axis);
  VecX q(4);
  q << turned.w(), turned.x(), turned.y(), turned.z();
  EXPECT_NEAR(limited_values(j, q)[0].x, 0.7, 1e-12);
  EXPECT_NEAR(limited_values(j, q)[1].x, -1.9, 1e-12);
}

// A bob that falls against the limits of its joint. Returns the largest violation.
double worst_violation(JointType type, const VecX& lower, const VecX& upper, const VecX& v, bool maximal,
                       VecX* last = nullptr) {
  std::vector<Link> links{box_link("bob", Vec3(0.1, 0.4, 0.2), Vec3(0.1, -0.25, 0.05), 1000)};
  Joint j = joint("bob", type, "world", Vec3::Zero(),
                  type == JointType::kSpherical ? Vec3(-Vec3::UnitY()) : Vec3(Vec3::UnitZ()));
  j.axis2 = Vec3::UnitX();
  j.lower = lower;
  j.upper = upper;
  j.v = v;
  j.damping = 0.5;
  const Mechanism m = make_mechanism(links, {j});
  JointState state{initial_positions(m), initial_velocities(m), {}};
  MaximalState links_state = to_maximal(m, state);
  StepSettings s;
  s.h = 2e-3;
  s.gravity = Vec3(9.81, -3, 4);
  SpSettings sp;
  sp.h = s.h;
  sp.gravity = s.gravity;
  double worst = 0;
  for (int k = 0; k < 1500; ++k) {
    if (maximal) {
      step_sp(m, {}, {}, k * s.h, sp, links_state);
      to_reduced(m, links_state, state);
    } else {
      step_bisp(m, {}, {}, {}, k * s.h, s, state);
    }
    const std::vector<LimitedValue> now = limited_values(m.joints[0], state.q);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const auto e = static_cast<Eigen::Index>(i);
      worst = std::max({worst, lower[e] - now[i].x, now[i].x - upper[e]});
    }
  }
  if (last) {
    last->resize(lower.size());
    const std::vector<LimitedValue> now = limited_values(m.joints[0], state.q);
    for (std::size_t i = 0; i < now.size(); ++i) (*last)[static_cast<Eigen::Index>(i)] = now[i].x;
  }
  return worst;
}

TEST(Limits, JointsOfSeveralDegreesOfFreedomStopAtThem) {
  for (const bool maximal : {false, true}) {
    SCOPED_TRACE(maximal ? "sp" : "bisp");
    VecX last;
    EXPECT_LT(worst_violation(JointType::kUniversal, numbers({-0.3, -0.2}), numbers({0.4, 0.25}),
                              numbers({3, -2}), maximal, &last),
              2e-3);
    EXPECT_NEAR(last[0], 0.4, 2e-3);  // gravity leans on it
    EXPECT_LT(worst_violation(JointType::kPlanar, numbers({-0.2, -0.1, -1}), numbers({0.3, 0.2, 0.5}),
                              numbers({1, -2, 3}), maximal, &last),
              2e-3);
    // Curved: the linear row of a step leaves h^2 times what the limit bends.
    EXPECT_LT(worst_violation(JointType::kSpherical, numbers({-INFINITY, -0.4}), numbers({0.5, 0.3}),
                              numbers({3, 4, 2}), maximal, &last),
              2e-3);
    EXPECT_NEAR(last[0], 0.5, 2e-3);
  }
}

// ---- gears

Mechanism wheels(double ratio, double torque) {
  std::vector<Link> links{box_link("big", Vec3(0.4, 0.4, 0.05), Vec3::Zero(), 1000),
                          box_link("small", Vec3(0.2, 0.2, 0.05), Vec3::Zero(), 1000)};
  std::vector<Joint> joints{joint("big", JointType::kRevolute, "world", Vec3::Zero(), Vec3::UnitZ()),
                            joint("small", JointType::kRevolute, "world", Vec3(0.3, 0, 0), Vec3::UnitZ())};
  joints[1].motor.kind = MotorKind::kTorque;
  joints[1].motor.value.points = {{0, torque}};
  Gear g;
  g.name = "mesh";
  g.joint_a = "j_big";
  g.joint_b = "j_small";
  g.ratio = ratio;
  return make_mechanism(links, joints, {}, {}, {g});
}

TEST(Gears, AccelerateTheSumOfTheirReducedInertias) {
  const double ratio = -0.5, torque = 0.7;
  const Mechanism m = wheels(ratio, torque);
  JointState state{initial_positions(m), initial_velocities(m), {}};
  StepSettings s;
  s.h = 1e-2;
  for (int k = 0; k < 300; ++k) step_bisp(m, {}, {}, {}, k * s.h, s, state);
  const double I = m.links[1].inertia.I(2, 2) + ratio * ratio * m.links[0].inertia.I(2, 2);
  EXPECT_NEAR(state.v[1], 3.0 * torque / I, 1e-7 * state.v[1]);
  EXPECT_NEAR(state.v[0], ratio * state.v[1], 1e-9 * state.v[1]);
  EXPECT_NEAR(state.q[0], ratio * state.q[1], 1e-11);
}

TEST(Gears, BadOnesAreRefusedByName) {
  const auto fault = [](Gear g) {
    const Mechanism m = wheels(1, 0);
    std::vector<Link> links = m.links;
    std::vector<Joint> joints = m.joints;
    try {
      make_mechanism(links, joints, {}, {}, {g});
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(fault({"g", "j_big", "j_none", 1, 0}).find("gear \"g\": \"j_none\" is not a joint"),
            std::string::npos);
  EXPECT_NE(fault({"g", "j_big", "j_big", 1, 0}).find("both its ends"), std::string::npos);
  EXPECT_NE(fault({"g", "j_big", "j_small", 0, 0}).find("its ratio is 0"), std::string::npos);
}

}  // namespace
}  // namespace limber::rigid
