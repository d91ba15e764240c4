// Friction inside joints: textbook cases, and the same mechanism by other unknowns, other algorithms and
// smaller steps.
#include "mechanism_runs.hpp"

#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>

namespace limber::rigid {
namespace {

using namespace testing;

TEST(JointsFriction, APinHoldsUpToItsFrictionAngle) {
  // At rest a pendulum stays where m g l sin(a) <= mu r P. The load is its weight; spread like a cosine over
  // twelve points, as over a worn-in bearing, its pressure P sums to nearly 4/pi of it.
  const double mu = 0.1, r = 0.05, l = 0.25;
  const double angle = std::asin(mu * r / l * 4 / kPi);
  for (const double factor : {0.95, 1.05}) {
    std::vector<Link> links{box_link("bob", Vec3(0.1, 0.5, 0.1), Vec3(0, -l, 0), 1000)};
    std::vector<Joint> joints{joint("bob", JointType::kRevolute, "world", Vec3::Zero(), Vec3::UnitZ())};
    joints[0].q = numbers({factor * angle});
    joints[0].friction = {.mu = mu, .radius = r, .height = 0.05, .angles = 12};
    const Mechanism m = make_mechanism(links, joints);
    JointState state = start(m);
    run(m, settings(2e-3), 0.5, state);
    if (factor < 1) {
      EXPECT_NEAR(state.q[0], factor * angle, 1e-6);
    } else {
      EXPECT_LT(state.q[0], factor * angle - 1e-4);
    }
  }
}

TEST(JointsFriction, ASliderOnAnInclineAcceleratesAsInTextbooks) {
  const double mu = 0.3, slope = 0.7;
  std::vector<Link> links{box_link("slider", Vec3(0.2, 0.1, 0.1), Vec3::Zero(), 1000)};
  std::vector<Joint> joints{joint("slider", JointType::kPrismatic, "world", Vec3::Zero(), Vec3::UnitX())};
  joints[0].frame.R = exp_rotation(Vec3(0, 0, -slope));
  joints[0].friction = {.mu = mu, .box = Vec3(0.2, 0.1, 0.1)};
  const Mechanism m = make_mechanism(links, joints);
  for (const FrictionSpace space : {FrictionSpace::kReduced, FrictionSpace::kMaximal}) {
    JointState state = start(m);
    StepSettings s = settings(1e-3);
    s.space = space;
    s.staggered.tolerance = 1e-12;
    run(m, s, 0.5, state);
    EXPECT_NEAR(state.v[0], 0.5 * 9.81 * (std::sin(slope) - mu * std::cos(slope)), 1e-6);
  }
}

TEST(JointsFriction, DryFrictionStopsAFlywheelAsOnPaper) {
  // A constant torque: the speed falls by tau / I per second and stays at zero. Gravity loads the pin, to no
  // effect.
  const double torque = 0.02, speed = 3, h = 2e-3;
  std::vector<Link> links{box_link("arm", Vec3(0.1, 0.1, 0.1), Vec3::Zero(), 1000),
                          box_link("wheel", Vec3(0.3, 0.3, 0.02), Vec3::Zero(), 1000)};
  std::vector<Joint> joints{joint("arm", JointType::kFixed, "world", Vec3::Zero(), Vec3::UnitZ()),
                            joint("wheel", JointType::kRevolute, "arm", Vec3(0.2, 0, 0), Vec3::UnitZ())};
  joints[1].dry_friction = torque;
  joints[1].v = numbers({speed});
  const Mechanism m = make_mechanism(links, joints);
  const double I = m.links[1].inertia.I(2, 2), stop = speed * I / torque;
  ASSERT_LT(stop, 6);
  for (const int way : {0, 1, 2}) {
    JointState state = start(m);
    MaximalState floating = to_maximal(m, state);
    StepSettings s = settings(h);
    s.space = way == 1 ? FrictionSpace::kMaximal : FrictionSpace::kReduced;
    // The weight dwarfs the friction: only a tight tolerance on the reactions sees it.
    s.staggered.tolerance = 1e-12;
    s.staggered.max_iterations = 1000;
    SpSettings sp;
    sp.h = h;
    sp.staggered = s.staggered;
    StepOutcome out;
    for (int k = 1; k <= std::lround(1.2 * stop / h); ++k) {
      if (way == 2) {
        out = step_sp(m, {}, {}, (k - 1) * h, sp, floating);
        to_reduced(m, floating, state);
      } else {
        out = step_bisp(m, {}, {}, {}, (k - 1) * h, s, state);
      }
      const double exact = std::max(0.0, speed - torque / I * k * h);
      ASSERT_NEAR(state.v[0], exact, 1e-3 * speed) << way << " " << k;
      if (exact > 0.1) {
        ASSERT_NEAR(out.dry_friction[0], -torque, 1e-6) << way;
      }
    }
  }
}

Mechanism chain(int n, double mu, double radius) {
  std::vector<Link> links;
  std::vector<Joint> joints;
  std::string parent = "world";
  for (int i = 0; i < n; ++i) {
    const std::string name = "l" + std::to_string(i);
    links.push_back(box_link(name, Vec3(0.1, 0.01, 0.01), Vec3(0.05, 0, 0), 1000));
    joints.push_back(joint(name, JointType::kRevolute, parent, Vec3(i ? 0.1 : 0, 0, 0), Vec3::UnitY()));
    if (mu > 0) joints.back().friction = {.mu = mu, .radius = radius, .height = 0.01};
    parent = name;
  }
  joints[0].frame.R = exp_rotation(Vec3(kPi / 4, 0, 0));  // axes at 45 degrees to gravity
  return make_mechanism(links, joints);
}

TEST(JointsFriction, FrictionOfZeroIsNoFriction) {
  const Mechanism with = chain(6, 1e-12, 0.01), without = chain(6, 0, 0.01);
  JointState a = start(with), b = start(without);
  run(with, settings(5e-3), 0.5, a);
  run(without, settings(5e-3), 0.5, b);
  EXPECT_LT((a.q - b.q).norm(), 1e-9);
}

TEST(JointsFriction, BothFrictionSpacesReachTheSameMotion) {
  const Mechanism m = chain(5, 0.4, 0.01);
  StepSettings s = settings(5e-3);
  s.staggered.tolerance = 1e-10;
  s.staggered.max_iterations = 500;
  JointState a = start(m), b = start(m);
  run(m, s, 0.4, a);
  s.space = FrictionSpace::kMaximal;
  run(m, s, 0.4, b);
  EXPECT_GT((a.q - initial_positions(m)).norm(), 0.3);
  EXPECT_LT((a.q - b.q).norm(), 1e-3 * (a.q - initial_positions(m)).norm());
}

TEST(JointsFriction, FrictionStopsTheChainFromTheRootAndEarlierWhenThePinsAreThick) {
  const auto stops = [](double radius) {
    const Mechanism m = chain(8, 0.1, radius);
    const std::vector<InnerSurface> surfaces = inner_surfaces(m);
    JointState state = start(m);
    const StepSettings s = settings(5e-3);
    std::vector<double> last(static_cast<std::size_t>(m.size()), 0.0);
    double work = 0;
    for (int k = 0; k < 1600; ++k) {
      const StepOutcome out = step_bisp(m, surfaces, {}, {}, k * s.h, s, state);
      EXPECT_LE(out.friction_work, 1e-12);
      work += out.friction_work;
      for (Index i = 0; i < m.size(); ++i)
        if (std::abs(state.v[i]) > 1e-2) last[static_cast<std::size_t>(i)] = (k + 1) * s.h;
    }
    EXPECT_LT(work, 0);
    return last;
  };
  const std::vector<double> thin = stops(0.005), thick = stops(0.01);
  EXPECT_LT(thin.front(), thin.back());
  EXPECT_LT(thick.front(), thick.back());
  EXPECT_LT(thick.back(), thin.back());
  EXPECT_LT(thick.front(), thin.front());
  EXPECT_LT(thin.back(), 8.0);  // all of it stops
}

// The largest difference of a joint angle between Algorithms 3.2 and 3.1 over `end` seconds, and the largest
// gap that opens in a joint of the latter.
struct Disagreement {
  double angle = 0, gap = 0, moved = 0;
};

Disagreement compare(const Mechanism& m, double h, double end) {
  const std::vector<InnerSurface> surfaces = inner_surfaces(m);
  StepSettings b = settings(h);
  b.staggered.tolerance = 1e-8;
  SpSettings a;
  a.h = h;
  a.staggered.tolerance = 1e-8;
  a.staggered.max_iterations = b.staggered.max_iterations = 300;
  JointState joints = start(m), fitted;
  MaximalState links = to_maximal(m, joints);
  Disagreement d;
  for (int k = 0; k < std::lround(end / h); ++k) {
    EXPECT_TRUE(step_bisp(m, surfaces, {}, {}, k * h, b, joints).converged);
    step_sp(m, surfaces, {}, k * h, a, links);
    to_reduced(m, links, fitted);
    d.angle = std::max(d.angle, (fitted.q - joints.q).cwiseAbs().maxCoeff());
    d.gap = std::max(d.gap, joint_gap(m, links));
  }
  d.moved = (joints.q - initial_positions(m)).cwiseAbs().maxCoeff();
  return d;
}

TEST(JointsFriction, StaggeredProjectionsInMaximalCoordinatesReachTheSameMotion) {
  // Two algorithms and two sets of unknowns; the pins of the maximal chain are held by unilateral contacts.
  // They differ by the error of their steps alone, which they even share in part.
  const Mechanism m = chain(3, 0.3, 0.01);
  const Disagreement coarse = compare(m, 4e-3, 0.3), fine = compare(m, 2e-3, 0.3),
                     finest = compare(m, 1e-3, 0.3);
  EXPECT_GT(finest.moved, 0.2);
  EXPECT_LT(coarse.angle, 0.02 * finest.moved);
  EXPECT_LT(fine.angle, 0.5 * coarse.angle);
  EXPECT_LT(finest.angle, 0.5 * fine.angle);
  EXPECT_LT(fine.gap, 1e-3 * 0.3);  // of the chain's length
}

// A driven four-bar linkage: crank and two bars in a tree, closed by a pin.
Mechanism rough_four_bar(double crank_speed, double mu) {
  std::vector<Link> links;
  std::vector<Joint> joints;
  const auto bar = [&](const std::string& name, const std::string& parent, const Vec3& where,
                       const Vec3& to) {
    Link l = box_link(name, Vec3(to.norm(), 0.05, 0.05), 0.5 * to, 500);
    const Mat3 R = exp_rotation(Vec3(0, 0, std::atan2(to[1], to[0])));
    l.inertia.I = R * l.inertia.I * R.transpose();
    links.push_back(l);
    joints.push_back(joint(name, JointType::kRevolute, parent, where, Vec3::UnitZ()));
    joints.back().friction = {.mu = mu, .radius = 0.03, .height = 0.05};
  };
  bar("crank", "world", {-0.5, 0, 0}, {0.4, 0, 0});
  bar("coupler", "crank", {0.4, 0, 0}, {0.9, 1.0, 0});
  bar("rocker", "coupler", {0.9, 1.0, 0}, {-0.3, -1.0, 0});
  joints[0].motor.kind = MotorKind::kSpeed;
  joints[0].motor.value.points = {{0, crank_speed}};
  Loop loop;
  loop.name = "ground pin";
  loop.link_a = "rocker";
  loop.link_b = "world";
  loop.point_a = Vec3(-0.3, -1.0, 0);
  loop.point_b = Vec3(0.5, 0, 0);
  loop.friction = joints[0].friction;
  return make_mechanism(links, joints, {loop});
}

TEST(JointsFriction, ThePinOfALoopRubsAlikeInBothFrictionSpaces) {
  // The motor's torque shows every load. One unknown per pin must find what one per contact point finds,
  // although the reaction of a loop is not known before its friction.
  const double mu = 0.8, h = 5e-3;
  Mechanism m = rough_four_bar(3, mu), smooth = rough_four_bar(3, 0);
  JointState a = start(m);
  close_loops(m, a.q);
  close_loops(smooth, a.q);
  JointState b = a, c = a;
  const std::vector<InnerSurface> surfaces = inner_surfaces(m);
  StepSettings s = settings(h);
  s.staggered.tolerance = 1e-12;
  s.staggered.max_iterations = 2000;
  StepSettings tangents = s;
  tangents.space = FrictionSpace::kMaximal;
  double extra = 0;
  for (int k = 0; k < 100; ++k) {
    const StepOutcome reduced = step_bisp(m, surfaces, {}, {}, k * h, s, a);
    const StepOutcome maximal = step_bisp(m, surfaces, {}, {}, k * h, tangents, b);
    const StepOutcome none = step_bisp(smooth, {}, {}, {}, k * h, s, c);
    ASSERT_TRUE(reduced.converged && maximal.converged);
    if (k == 0) continue;  // a blow, from rest to full speed: its friction is not unique
    extra = std::max(extra, std::abs(reduced.motor[0] - none.motor[0]));
    EXPECT_NEAR(reduced.motor[0], maximal.motor[0], 2e-4 * std::abs(maximal.motor[0]) + 1e-3) << k;
    for (std::size_t i = 0; i < surfaces.size(); ++i)
      EXPECT_NEAR(reduced.load[i], maximal.load[i], 1e-3 * maximal.load[i] + 1e-2) << k << surfaces[i].name;
  }
  EXPECT_GT(extra, 1.0);
}

// Scenes run as a user runs them.
struct Walk {
  double torque = 0, negative = 0;  // mean torque of both motors [N m], negative work [J]
  int unsettled = 0;
};

Walk walk(const char* mu, int steps) {
  const std::vector<std::string> overrides{std::string("/method/mu=") + mu};
  Simulation s(
      std::make_shared<const Scene>(load_scene(LIMBER_SOURCE_DIR "/scenes/joints/klann.json", overrides)));
  Walk w;
  for (int k = 0; k < steps; ++k) {
    const StepReport r = s.step();
    w.unsettled += r.fallbacks.count("friction_not_converged") ? 1 : 0;
    w.torque += (r.extra.at("torque/front-motor") + r.extra.at("torque/back-motor")) / steps;
    w.negative += s.scene().h * std::min(0.0, r.extra.at("power/motors"));
  }
  return w;
}

TEST(JointsFriction, EveryStepOfTheWalkerSettlesAndTorqueGrowsWithFriction) {
  // Three feet that stick can squeeze the floor with any force, and locked motors pass it on to every pin.
  const Walk smooth = walk("0", 200), some = walk("0.4", 200), rough = walk("0.8", 200);
  EXPECT_EQ(smooth.unsettled + some.unsettled + rough.unsettled, 0);
  EXPECT_LT(smooth.negative, -0.1);  // the legs push the motors
  EXPECT_GT(some.torque, 1.2 * smooth.torque);
  EXPECT_GT(rough.torque, 1.2 * some.torque);
}

TEST(JointsFriction, MaximalJointsOfEveryTypeHold) {
  // Without friction, bilateral rows hold every type of joint; the energy of the fall is that of the tree.
  const Mechanism m = zoo();
  JointState joints;
  random_state(m, 6, joints.q, joints.v);
  MaximalState links = to_maximal(m, joints);
  JointState back;
  to_reduced(m, links, back);
  EXPECT_LT((back.v - joints.v).norm(), 1e-9);
  const double h = 5e-4;
  SpSettings a;
  a.h = h;
  for (int k = 0; k < 200; ++k) {
    step_bisp(m, {}, {}, {}, k * h, settings(h), joints);
    step_sp(m, {}, {}, k * h, a, links);
  }
  to_reduced(m, links, back);
  EXPECT_LT(joint_gap(m, links), 1e-3);
  EXPECT_LT((back.v - joints.v).norm(), 0.02 * joints.v.norm());
}

TEST(JointsFriction, ABlockOnAnInclineSlidesOrStays) {
  // Tilted gravity on a floor: the block slides with g (sin - mu cos).
  for (const double slope : {0.3, 0.6}) {
    const double mu = 0.5;
    std::vector<Link> links{box_link("block", Vec3(0.2, 0.1, 0.2), Vec3::Zero(), 1000)};
    std::vector<Joint> joints{joint("block", JointType::kFree, "world", Vec3(0, 0.05, 0), Vec3::UnitZ())};
    const Mechanism m = make_mechanism(links, joints);
    JointState state = start(m);
    const StepSettings s = settings(2e-3, 9.81 * Vec3(std::sin(slope), -std::cos(slope), 0));
    for (int k = 0; k < 250; ++k) {
      Motion motion;
      update_motion(m, state.q, state.v, motion);
      std::vector<Contact> contacts;
      for (const double x : {-0.1, 0.1})
        for (const double z : {-0.1, 0.1}) {
          Contact c;
          c.x = motion.links[0].pose * Vec3(x, -0.05, z);
          c.gap = c.x[1];
          c.mu = mu;
          contacts.push_back(c);
        }
      step_bisp(m, {}, contacts, {}, k * s.h, s, state);
    }
    const double expected = std::max(0.0, 0.5 * 9.81 * (std::sin(slope) - mu * std::cos(slope)));
    EXPECT_NEAR(state.v[0], expected, 0.02) << "slope " << slope;
    EXPECT_NEAR(state.q[1], 0, 1e-3);  // it neither sinks nor flies
  }
}

}  // namespace
}  // namespace limber::rigid
