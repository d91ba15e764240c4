// Coulomb's cone: friction is as strong along the diagonals of its axes as along the axes themselves.
#include "mechanism_runs.hpp"

#include <gtest/gtest.h>

namespace limber::rigid {
namespace {

using namespace testing;

std::vector<Contact> corners_on_floor(const Pose& pose, const Vec3& half, double mu) {
  std::vector<Contact> contacts;
  for (const double x : {-half[0], half[0]})
    for (const double z : {-half[2], half[2]}) {
      Contact c;
      c.x = pose * Vec3(x, -half[1], z);
      c.gap = c.x[1];
      c.mu = mu;
      contacts.push_back(c);
    }
  return contacts;
}

// A flat box slides over the floor: it loses mu g, keeps its direction, and does not begin to turn.
TEST(JointsCone, ABoxSlidesStraightInEveryDirection) {
  const double mu = 0.3, h = 1e-3, end = 0.1;
  const Vec3 size(0.1, 0.02, 0.1);
  for (const char* way : {"joints", "tangents", "sp"})
    for (const double degrees : {0.0, 15.0, 45.0, 80.0, 200.0}) {
      const double angle = degrees * kPi / 180;
      Joint j = joint("box", JointType::kFree, "world", Vec3(0, 0.01, 0), Vec3::UnitZ());
      j.v = numbers({std::cos(angle), 0, std::sin(angle), 0, 0, 0});
      const Mechanism m = make_mechanism({box_link("box", size, Vec3::Zero(), 1000)}, {j});
      JointState state = start(m);
      MaximalState links = to_maximal(m, state);
      StepSettings s = settings(h);
      if (way == std::string("tangents")) s.space = FrictionSpace::kMaximal;
      SpSettings sp;
      sp.h = h;
      Motion motion;
      for (int k = 0; k < static_cast<int>(std::lround(end / h)); ++k) {
        update_motion(m, state.q, state.v, motion);
        const std::vector<Contact> contacts = corners_on_floor(motion.links[0].pose, 0.5 * size, mu);
        if (way == std::string("sp")) {
          step_sp(m, {}, contacts, k * h, sp, links);
          to_reduced(m, links, state);
        } else {
          step_bisp(m, {}, contacts, {}, k * h, s, state);
        }
      }
      const Vec3 v = state.v.head<3>();
      EXPECT_NEAR(v.norm(), 1 - mu * 9.81 * end, 0.01) << way << " " << degrees;
      EXPECT_NEAR(std::remainder(std::atan2(v[2], v[0]) - angle, 2 * kPi), 0, 5e-3) << way << " " << degrees;
      EXPECT_LT(state.v.tail<3>().norm(), 0.02) << way << " " << degrees;
    }
}

// Spun about the vertical it slows by the mean of mu g over the footprint of its four corners, in every
// position.
TEST(JointsCone, ABoxThatSpinsOnItsCornersSlowsAtTheSameRateInEveryPosition) {
  const double mu = 0.3, h = 1e-3;
  const Vec3 size(0.1, 0.02, 0.1);
  Joint j = joint("box", JointType::kFree, "world", Vec3(0, 0.01, 0), Vec3::UnitZ());
  j.v = numbers({0, 0, 0, 0, 20, 0});
  const Mechanism m = make_mechanism({box_link("box", size, Vec3::Zero(), 1000)}, {j});
  const double arm = 0.05 * std::sqrt(2.0);
  const double rate = mu * m.links[0].inertia.mass * 9.81 * arm / m.links[0].inertia.I(1, 1);  // [rad/s^2]
  JointState state = start(m);
  Motion motion;
  for (int k = 1; k <= 100; ++k) {
    update_motion(m, state.q, state.v, motion);
    step_bisp(m, {}, corners_on_floor(motion.links[0].pose, 0.5 * size, mu), {}, k * h, settings(h), state);
    EXPECT_NEAR(state.v[4], 20 - rate * k * h, 0.02 * rate * k * h + 1e-3) << k;
  }
}

// A chain of balls with so much friction that plain sweeps never settle.
TEST(JointsCone, BallsWithALotOfFrictionSettle) {
  for (const double mu : {0.5, 1.0, 1.5, 2.0}) {
    std::vector<Link> links{box_link("a", Vec3(0.1, 0.01, 0.01), Vec3(0.05, 0, 0), 1000),
                            box_link("b", Vec3(0.1, 0.01, 0.01), Vec3(0.05, 0, 0), 1000)};
    std::vector<Joint> joints{joint("a", JointType::kSpherical, "world", Vec3::Zero(), Vec3::UnitZ()),
                              joint("b", JointType::kSpherical, "a", Vec3(0.1, 0, 0), Vec3::UnitZ())};
    for (Joint& j : joints) j.friction = {.mu = mu, .radius = 0.01};
    const Mechanism m = make_mechanism(links, joints);
    const std::vector<InnerSurface> surfaces = inner_surfaces(m);
    JointState state = start(m);
    int unsettled = 0;
    double work = 0;
    for (int k = 0; k < 100; ++k) {
      const StepOutcome out = step_bisp(m, surfaces, {}, {}, 0, settings(1e-2, Vec3(0, 0, -9.81)), state);
      unsettled += !out.converged;
      work += out.friction_work;
    }
    EXPECT_EQ(unsettled, 0) << mu;
    EXPECT_LE(work, 0) << mu;
  }
}

}  // namespace
}  // namespace limber::rigid
