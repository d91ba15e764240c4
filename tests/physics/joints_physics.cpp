// Mechanisms against theory and against themselves in other coordinates.
#include "mechanism_runs.hpp"

#include <limber/core/error.hpp>

#include <gtest/gtest.h>

#include <map>

namespace limber::rigid {
namespace {

using namespace testing;

// ---- pendulums against an integration that shares no code
// -------------------------------------------------------

// Two uniform rods of length l and mass m, angles from straight down, from the Lagrangian on paper.
struct TwoRods {
  double m = 2, l = 1.2, I = 2 * (1.2 * 1.2 + 0.1 * 0.1) / 12, g = 9.81;
  void rate(const double y[4], double d[4]) const {
    const double c = std::cos(y[1] - y[0]), s = std::sin(y[1] - y[0]);
    const double a11 = m * l * l / 4 + I + m * l * l, a12 = 0.5 * m * l * l * c, a22 = m * l * l / 4 + I;
    const double b1 = 0.5 * m * l * l * s * y[3] * y[3] - 1.5 * m * g * l * std::sin(y[0]);
    const double b2 = -0.5 * m * l * l * s * y[2] * y[2] - 0.5 * m * g * l * std::sin(y[1]);
    const double det = a11 * a22 - a12 * a12;
    d[0] = y[2];
    d[1] = y[3];
    d[2] = (a22 * b1 - a12 * b2) / det;
    d[3] = (a11 * b2 - a12 * b1) / det;
  }
  // Classical Runge-Kutta with steps so small that its error is at rounding.
  void integrate(double y[4], double end) const {
    const int n = 20000;
    const double h = end / n;
    for (int k = 0; k < n; ++k) {
      double k1[4], k2[4], k3[4], k4[4], z[4];
      rate(y, k1);
      for (int i = 0; i < 4; ++i) z[i] = y[i] + 0.5 * h * k1[i];
      rate(z, k2);
      for (int i = 0; i < 4; ++i) z[i] = y[i] + 0.5 * h * k2[i];
      rate(z, k3);
      for (int i = 0; i < 4; ++i) z[i] = y[i] + h * k3[i];
      rate(z, k4);
      for (int i = 0; i < 4; ++i) y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    }
  }
};

Mechanism two_rods() {
  const double l = 1.2;
  std::vector<Link> links{box_link("upper", Vec3(0.1, l, 0.1), Vec3(0, -0.5 * l, 0)),
                          box_link("lower", Vec3(0.1, l, 0.1), Vec3(0, -0.5 * l, 0))};
  for (Link& k : links) {
    k.inertia.I *= 2 / k.inertia.mass;
    k.inertia.mass = 2;
  }
  std::vector<Joint> joints{joint("upper", JointType::kRevolute, "world", Vec3::Zero(), Vec3::UnitZ()),
                            joint("lower", JointType::kRevolute, "upper", Vec3(0, -l, 0), Vec3::UnitZ())};
  joints[0].q = numbers({1.1});
  joints[1].q = numbers({0.4});
  joints[1].v = numbers({-0.5});
  return make_mechanism(links, joints);
}

TEST(JointsPhysics, DoublePendulumConvergesToTheLagrangian) {
  double y[4] = {1.1, 1.5, 0, -0.5};
  const double end = 1;
  TwoRods{}.integrate(y, end);
  const Vec2 exact(y[0], y[1] - y[0]);
  double before = 0;
  Vec2 coarse = Vec2::Zero();
  for (const double h : {2e-3, 1e-3, 5e-4}) {
    const Mechanism m = two_rods();
    JointState state = start(m);
    run(m, settings(h), end, state);
    const double error = (Vec2(state.q) - exact).norm();
    if (before > 0) {
      EXPECT_NEAR(before / error, 2.0, 0.1) << "h " << h;  // first order
      // Extrapolated to h = 0 the first-order part is gone.
      EXPECT_LT((2 * Vec2(state.q) - coarse - exact).norm(), 0.02 * error);
    }
    before = error;
    coarse = state.q;
  }
}

TEST(JointsPhysics, PendulumPeriod) {
  // Large swings: the period is 4 sqrt(L/g) K(sin(a/2)), by the arithmetic-geometric mean.
  std::vector<Link> links{box_link("bob", Vec3(0.1, 0.6, 0.1), Vec3(0, -0.3, 0), 1000)};
  std::vector<Joint> joints{joint("bob", JointType::kRevolute, "world", Vec3::Zero(), Vec3::UnitZ())};
  const double amplitude = 2.0;
  joints[0].q = numbers({amplitude});
  const Mechanism m = make_mechanism(links, joints);
  const Inertia& I = m.links[0].inertia;
  const double omega = std::sqrt(I.mass * 9.81 * 0.3 / (I.I(2, 2) + I.mass * 0.09));
  double a = 1, b = std::cos(amplitude / 2);
  for (int k = 0; k < 8; ++k) {
    const double next = 0.5 * (a + b);
    b = std::sqrt(a * b);
    a = next;
  }
  const double period = 2 * kPi / omega / a;
  const auto quarter = [&](double h) {  // time of the first passage through the bottom
    JointState state = start(m);
    const StepSettings s = settings(h);
    for (int k = 0;; ++k) {
      const double q0 = state.q[0];
      step_bisp(m, {}, {}, {}, k * h, s, state);
      if (state.q[0] <= 0) return h * (k + q0 / (q0 - state.q[0]));
    }
  };
  const double t1 = quarter(1e-3), t2 = quarter(5e-4);
  EXPECT_NEAR(t2, period / 4, 2e-3 * period);
  EXPECT_NEAR(2 * t2 - t1, period / 4, 2e-6 * period);
}

// ---- conservation
// ----------------------------------------------------------------------------------------------

TEST(JointsPhysics, MomentumOfAFloatingTree) {
  std::vector<Link> links;
  std::vector<Joint> joints;
  const std::vector<std::pair<JointType, std::string>> plan{{JointType::kFree, "world"},
                                                            {JointType::kSpherical, "l0"},
                                                            {JointType::kRevolute, "l1"},
                                                            {JointType::kUniversal, "l0"},
                                                            {JointType::kPrismatic, "l3"}};
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const std::string name = "l" + std::to_string(i);
    links.push_back(box_link(name, Vec3(0.4, 0.1, 0.2), Vec3(0.2, 0, 0.05), 500));
    joints.push_back(
        joint(name, plan[i].first, plan[i].second, Vec3(i ? 0.4 : 0, 0.1, 0), Vec3(0, 0.6, 0.8)));
    joints.back().axis2 = Vec3::UnitX();
  }
  const Mechanism m = make_mechanism(links, joints);
  VecX q, v;
  random_state(m, 4, q, v);
  const auto drift = [&](double h, const Vec3& gravity) {
    JointState state{q, v, {}};
    Motion motion;
    update_motion(m, state.q, state.v, motion);
    const Vec3 p = momentum(m, motion), l = angular_momentum(m, motion);
    double mass = 0;
    for (const Link& k : m.links) mass += k.inertia.mass;
    run(m, settings(h, gravity), 1, state);
    update_motion(m, state.q, state.v, motion);
    return std::pair((momentum(m, motion) - p - mass * gravity).norm() / p.norm(),
                     gravity.norm() > 0 ? 0.0 : (angular_momentum(m, motion) - l).norm() / l.norm());
  };
  // Momentum to rounding, angular momentum (and with gravity nothing else) to second order in the step.
  const auto [p1, l1] = drift(2e-3, Vec3::Zero());
  const auto [p2, l2] = drift(1e-3, Vec3::Zero());
  EXPECT_LT(p1, 1e-9);
  EXPECT_LT(p2, 1e-9);
  EXPECT_LT(l2, 1e-5);
  EXPECT_NEAR(l1 / l2, 4, 0.4);
  EXPECT_LT(drift(1e-3, Vec3(0, -9.81, 2)).first, 1e-9);
}

TEST(JointsPhysics, AFreeBodySpinsLikeEuler) {
  // A rigid body alone: kinetic energy and angular momentum of torque-free rotation, and the flip about the
  // middle axis (Dzhanibekov), which a quaternion passes without a singular point.
  std::vector<Link> links{box_link("handle", Vec3(0.3, 0.2, 0.05), Vec3::Zero(), 1000)};
  std::vector<Joint> joints{joint("handle", JointType::kFree, "world", Vec3::Zero(), Vec3::UnitZ())};
  joints[0].v = numbers({0, 0, 0, 0.01, 5, 0});
  const Mechanism m = make_mechanism(links, joints);
  JointState state = start(m);
  const StepSettings s = settings(2e-4, Vec3::Zero());
  double lowest = 1;
  for (int k = 0; k < 20000; ++k) {
    step_bisp(m, {}, {}, {}, 0, s, state);
    lowest = std::min(lowest, Quat(state.q[3], state.q[4], state.q[5], state.q[6]).toRotationMatrix()(1, 1));
  }
  EXPECT_LT(lowest, -0.95);  // it turned over
  Motion motion;
  update_motion(m, state.q, state.v, motion);
  EXPECT_NEAR(kinetic_energy(m, motion), 0.5 * m.links[0].inertia.I(1, 1) * 25,
              0.02 * 0.5 * m.links[0].inertia.I(1, 1) * 25);
}

// ---- the same mechanism in other coordinates
// ---------------------------------------------------------------------

// Every link floats freely and every joint is a loop closure with five rows.
Mechanism maximal_twin(const Mechanism& m) {
  Motion motion;
  update_motion(m, initial_positions(m), initial_velocities(m), motion);
  std::vector<Link> links = m.links;
  std::vector<Joint> joints;
  std::vector<Loop> loops;
  for (std::size_t i = 0; i < m.links.size(); ++i) {
    const LinkMotion& l = motion.links[i];
    Joint j = joint(m.links[i].name, JointType::kFree, "world", Vec3::Zero(), Vec3::UnitZ());
    const Quat turn(l.pose.R);
    const Vec3 v = point_velocity(l.phi, l.pose.p - l.com);
    j.q = numbers({l.pose.p[0], l.pose.p[1], l.pose.p[2], turn.w(), turn.x(), turn.y(), turn.z()});
    j.v = numbers({v[0], v[1], v[2], l.phi[0], l.phi[1], l.phi[2]});
    joints.push_back(j);
    Loop loop;
    loop.name = m.joints[i].name;
    loop.kind = LoopKind::kHinge;
    loop.link_a = m.links[i].name;
    loop.link_b = m.joints[i].parent;
    loop.axis_a = m.joints[i].axis;
    loop.point_b = m.joints[i].frame.p;
    loops.push_back(loop);
  }
  return make_mechanism(links, joints, loops);
}

Mechanism branched_tree() {
  std::vector<Link> links;
  std::vector<Joint> joints;
  const auto add = [&](const std::string& name, const std::string& parent, const Vec3& size, const Vec3& com,
                       const Vec3& where, const Vec3& axis, double q, double v) {
    links.push_back(box_link(name, size, com, 800));
    joints.push_back(joint(name, JointType::kRevolute, parent, where, axis));
    joints.back().q = numbers({q});
    joints.back().v = numbers({v});
  };
  add("trunk", "world", {0.05, 0.4, 0.05}, {0, -0.2, 0}, {0, 0, 0}, Vec3::UnitX(), 0.3, 0);
  add("bar", "trunk", {0.6, 0.05, 0.05}, {0, 0, 0}, {0, -0.4, 0}, Vec3::UnitY(), 0.2, 2);
  add("left", "bar", {0.05, 0.3, 0.05}, {0, -0.15, 0}, {-0.3, 0, 0}, Vec3::UnitZ(), 0.8, 0);
  add("right", "bar", {0.05, 0.3, 0.05}, {0, -0.15, 0}, {0.3, 0, 0}, Vec3::UnitX(), -0.5, 1);
  add("toe", "left", {0.05, 0.2, 0.05}, {0, -0.1, 0}, {0, -0.3, 0}, Vec3::UnitX(), 0.4, 0);
  return make_mechanism(links, joints);
}

TEST(JointsPhysics, BranchedTreeAgreesWithItsMaximalTwin) {
  const Mechanism tree = branched_tree();
  Mechanism twin = maximal_twin(tree);
  JointState whole = start(twin);
  close_loops(twin, whole.q);
  EXPECT_LT((whole.q - initial_positions(twin)).norm(), 1e-12);
  const JointState twin0 = whole;
  const double end = 0.4;
  const auto centres = [&](const Mechanism& m, const JointState& s) {
    Motion motion;
    update_motion(m, s.q, s.v, motion);
    VecX x(3 * m.size());
    for (Index i = 0; i < m.size(); ++i) node(x, i) = motion.links[static_cast<std::size_t>(i)].com;
    return x;
  };
  std::vector<VecX> a, b;
  for (const double h : {2e-3, 1e-3}) {
    JointState s = start(tree), w = twin0;
    run(tree, settings(h), end, s);
    run(twin, settings(h), end, w);
    a.push_back(centres(tree, s));
    b.push_back(centres(twin, w));
  }
  // Both are of first order with different errors; extrapolated they are one motion.
  const VecX tree_limit = 2 * a[1] - a[0], twin_limit = 2 * b[1] - b[0];
  const double moved = (tree_limit - centres(tree, start(tree))).cwiseAbs().maxCoeff();
  EXPECT_GT(moved, 0.05);
  EXPECT_LT((tree_limit - twin_limit).cwiseAbs().maxCoeff(), 1e-4 * moved);
}

// Reactions go to the parent, not to the previous joint: at rest every pin carries the weight below it.
TEST(JointsPhysics, PinsOfAHangingTreeCarryWhatHangsBelow) {
  std::vector<Link> links;
  std::vector<Joint> joints;
  const std::vector<std::pair<std::string, std::string>> plan{
      {"trunk", "world"}, {"left", "trunk"}, {"toe", "left"}, {"right", "trunk"}, {"tip", "right"}};
  for (std::size_t i = 0; i < plan.size(); ++i) {
    links.push_back(
        box_link(plan[i].first, Vec3(0.1, 0.2, 0.1), Vec3(0, -0.1, 0), 100.0 * static_cast<double>(i + 1)));
    joints.push_back(
        joint(plan[i].first, JointType::kRevolute, plan[i].second, Vec3(0, i ? -0.2 : 0, 0), Vec3::UnitZ()));
    joints.back().friction = {.mu = 0.3, .radius = 0.01, .height = 0.02};
  }
  const Mechanism m = make_mechanism(links, joints);
  const std::vector<InnerSurface> surfaces = inner_surfaces(m);
  for (const FrictionSpace space : {FrictionSpace::kReduced, FrictionSpace::kMaximal}) {
    JointState state = start(m);
    StepSettings s = settings(1e-3);
    s.space = space;
    StepOutcome out;
    for (int k = 0; k < 3; ++k) out = step_bisp(m, surfaces, {}, {}, 0, s, state);
    const auto weight = [&](const char* name) {
      return 9.81 * m.links[static_cast<std::size_t>(m.find_link(name))].inertia.mass;
    };
    const std::map<std::string, double> below{
        {"j_trunk", weight("trunk") + weight("left") + weight("toe") + weight("right") + weight("tip")},
        {"j_left", weight("left") + weight("toe")},
        {"j_toe", weight("toe")},
        {"j_right", weight("right") + weight("tip")},
        {"j_tip", weight("tip")}};
    for (std::size_t i = 0; i < surfaces.size(); ++i)
      EXPECT_NEAR(out.load[i], below.at(surfaces[i].name), 1e-6 * below.at(surfaces[i].name))
          << surfaces[i].name;
  }
}

// ---- loops
// -----------------------------------------------------------------------------------------------------

Mechanism four_bar(double crank_speed) {
  std::vector<Link> links;
  std::vector<Joint> joints;
  const auto bar = [&](const std::string& name, const std::string& parent, const Vec3& where,
                       const Vec3& to) {
    Link l = box_link(name, Vec3(to.norm(), 0.05, 0.05), 0.5 * to, 500);
    const Mat3 R = exp_rotation(Vec3(0, 0, std::atan2(to[1], to[0])));
    l.inertia.I = R * l.inertia.I * R.transpose();
    links.push_back(l);
    joints.push_back(joint(name, JointType::kRevolute, parent, where, Vec3::UnitZ()));
  };
  bar("crank", "world", {-0.5, 0, 0}, {0.4, 0, 0});
  bar("coupler", "crank", {0.4, 0, 0}, {0.9, 1.0, 0});
  bar("rocker", "coupler", {0.9, 1.0, 0}, {-0.3, -1.0, 0});
  if (crank_speed != 0) {
    joints[0].motor.kind = MotorKind::kSpeed;
    joints[0].motor.value.points = {{0, crank_speed}};
  }
  Loop loop;
  loop.name = "ground pin";
  loop.link_a = "rocker";
  loop.link_b = "world";
  loop.point_a = Vec3(-0.3, -1.0, 0);
  loop.point_b = Vec3(0.5, 0, 0);
  return make_mechanism(links, joints, {loop});
}

TEST(JointsPhysics, LoopsDoNotDrift) {
  for (const double speed : {0.0, 6.0}) {
    Mechanism m = four_bar(speed);
    JointState state = start(m);
    close_loops(m, state.q);
    const StepSettings s = settings(5e-3);
    double worst = 0;
    for (int k = 0; k < 2000; ++k)
      worst = std::max(worst, step_bisp(m, {}, {}, {}, k * s.h, s, state).loop_error);
    EXPECT_LT(worst, 1e-6);  // of a linkage one metre in size, over 10 s
    if (speed > 0) {
      EXPECT_NEAR(state.q[0], initial_positions(m)[0] + 10 * speed, 1e-6);
    }
  }
}

TEST(JointsPhysics, ALoopThatCannotCloseIsRefusedByName) {
  Mechanism m = four_bar(0);
  m.loops[0].point_b = Vec3(5, 0, 0);
  VecX q = initial_positions(m);
  try {
    close_loops(m, q);
    FAIL() << "closed a loop that is too short";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find("loop \"ground pin\" between \"rocker\" and \"world\" cannot close"),
              std::string::npos);
  }
}

TEST(JointsPhysics, MotorTorqueIsInverseDynamics) {
  // A rod driven at constant speed: the motor carries gravity's moment, and its work is the rod's potential
  // energy.
  std::vector<Link> links{box_link("rod", Vec3(1, 0.1, 0.1), Vec3(0.5, 0, 0), 100)};
  std::vector<Joint> joints{joint("rod", JointType::kRevolute, "world", Vec3::Zero(), Vec3::UnitZ())};
  joints[0].v = numbers({2});
  joints[0].motor.kind = MotorKind::kSpeed;
  joints[0].motor.value.points = {{0, 2}};
  const Mechanism m = make_mechanism(links, joints);
  JointState state = start(m);
  const StepSettings s = settings(1e-3);
  double work = 0;
  for (int k = 0; k < 500; ++k) {
    const double q = state.q[0];
    const StepOutcome out = step_bisp(m, {}, {}, {}, k * s.h, s, state);
    EXPECT_NEAR(out.motor[0], 9.81 * m.links[0].inertia.mass * 0.5 * std::cos(q), 1e-9);
    work += out.motor_work;
  }
  EXPECT_NEAR(work, 9.81 * m.links[0].inertia.mass * 0.5 * std::sin(1.0), 1e-3 * work);
}

TEST(JointsPhysics, SpringAndDamperOfAJoint) {
  // q'' + 2 z w q' + w^2 q = 0.
  std::vector<Link> links{box_link("rod", Vec3(1, 0.1, 0.1), Vec3::Zero(), 100)};
  std::vector<Joint> joints{joint("rod", JointType::kRevolute, "world", Vec3::Zero(), Vec3::UnitZ())};
  joints[0].q = numbers({0.5});
  joints[0].rest = numbers({0});
  joints[0].stiffness = 4;
  joints[0].damping = 0.1;
  const Mechanism m = make_mechanism(links, joints);
  const double I = m.links[0].inertia.I(2, 2), d = 0.1 / (2 * I), w = std::sqrt(4 / I - d * d), t = 1;
  const double exact = 0.5 * std::exp(-d * t) * (std::cos(w * t) + d / w * std::sin(w * t));
  VecX x[2];
  for (int k = 0; k < 2; ++k) {
    JointState state = start(m);
    run(m, settings(k ? 5e-4 : 1e-3), t, state);
    x[k] = state.q;
  }
  EXPECT_NEAR(x[1][0], exact, 0.02);
  EXPECT_NEAR(2 * x[1][0] - x[0][0], exact, 2e-4);
}

}  // namespace
}  // namespace limber::rigid
