// ConJac bodies that touch each other.
#include <limber/core/error.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace limber {
namespace {

Simulation touching(const std::string& json) {
  LoadResult r = try_read_scene(json, "./scene.json");
  std::string all;
  for (const Problem& p : r.problems) all += to_string(p) + "\n";
  if (!all.empty()) throw Error(ErrorKind::kInput, all);
  return Simulation(std::make_shared<const Scene>(std::move(r.scene)));
}

Diagnostics measured(const Simulation& s) { return measure(s.model(), s.state(), {}); }

Vec3 middle(const Simulation& s, const char* body) {
  const VecX& x = s.state().x;
  Vec3 sum = Vec3::Zero();
  double mass = 0;
  for (Index i = 0; i < s.model().nodes(); ++i) {
    if (s.model().bodies[at(s.model().body_of_node[at(i)])].name != body) continue;
    sum += s.model().mass[3 * i] * node(x, i);
    mass += s.model().mass[3 * i];
  }
  return sum / mass;
}

constexpr const char* kModes = R"({"type": "conjac", "body_contact": true})";
constexpr const char* kNodes = R"({"type": "conjac", "body_contact": true, "dynamic": [{"auto": 6}]})";

// A block of 1 kg on a pinned slab, gravity tilted by `angle`. Bodies without damping bounce for long.
std::string slab(const std::string& method, double friction, double angle, double gap,
                 double damping = 2e-3) {
  const auto number = [](double x) { return std::to_string(x); };
  return R"({"limber": 1, "gravity": [)" + number(9.81 * std::sin(angle)) + ", " +
         number(-9.81 * std::cos(angle)) + R"(, 0], "time": {"step": 0.005}, "method": )" + method +
         R"(, "contact": {"friction": )" + number(friction) + R"(}, "damping": {"stiffness": )" +
         number(damping) + R"(}, "bodies": [
    {"name": "slab", "mesh": {"shape": "box", "size": [0.6, 0.1, 0.4], "nodes": [9, 3, 6]},
     "material": {"young": 1e6}, "translation": [-0.3, 0, -0.2]},
    {"name": "block", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "nodes": [4, 4, 4]},
     "material": {"young": 1e6}, "translation": [-0.2, )" +
         number(0.1 + gap) + R"(, -0.05]}],
    "constraints": [{"body": "slab", "nodes": {"plane": {"point": [0, 0.001, 0], "normal": [0, -1, 0]}}}]})";
}

std::string collision(const std::string& method, const std::string& h) {
  return R"({"limber": 1, "gravity": [0, 0, 0], "time": {"step": )" + h + R"(}, "method": )" + method + R"(,
    "contact": {"friction": 0.3}, "bodies": [
    {"name": "a", "mesh": {"shape": "box", "size": [0.2, 0.1, 0.1], "nodes": [7, 4, 4]},
     "material": {"young": 1e5}, "velocity": [1, 0, 0]},
    {"name": "b", "mesh": {"shape": "box", "size": [0.2, 0.1, 0.1], "nodes": [7, 4, 4]},
     "material": {"young": 1e5}, "translation": [0.22, 0.03, 0.02], "velocity": [-0.5, 0.1, 0]}]})";
}

TEST(ConJacBodies, ACollisionKeepsMomentumAndGainsNoEnergy) {
  for (const char* method : {kModes, kNodes})
    for (const char* h : {"0.005", "0.001"}) {
      Simulation s = touching(collision(method, h));
      const Diagnostics start = measured(s);
      double most = 0, contacts = 0;
      while (s.state().t < 0.2) {
        const StepReport report = s.step();
        ASSERT_EQ(report.why, "");
        contacts += report.extra.at("body_contacts");
        most = std::max(most, measured(s).total());
      }
      const Diagnostics end = measured(s);
      EXPECT_GT(contacts, 0);
      EXPECT_LT((end.momentum - start.momentum).norm(), 1e-12) << method << h;
      EXPECT_LT((end.angular_momentum - start.angular_momentum).norm(), 0.1 * start.angular_momentum.norm());
      EXPECT_LT(most, start.total() * (1 + 1e-3));
      EXPECT_GT(end.total(), 0.2 * start.total());
      EXPECT_LT(middle(s, "a").x() + 0.15, middle(s, "b").x());  // they did not go through each other
    }
}

TEST(ConJacBodies, ABlockComesToRestAsInFullSpace) {
  // rigidify has the same springs, and here every node.
  Simulation full =
      touching(slab(R"({"type": "rigidify", "tolerance": 1e-6, "body_contact": true})", 0.5, 0, 2e-3));
  while (full.state().t < 1.5) full.step();
  for (const char* method : {kModes, kNodes}) {
    Simulation s = touching(slab(method, 0.5, 0, 2e-3));
    while (s.state().t < 1.5) ASSERT_EQ(s.step().why, "");
    EXPECT_LT(measured(s).kinetic, 1e-6) << method;
    EXPECT_NEAR(middle(s, "block").y(), middle(full, "block").y(), 1e-5) << method;
    EXPECT_LT(std::hypot(middle(s, "block").x() + 0.15, middle(s, "block").z()), 1e-3);
  }
}

TEST(ConJacBodies, FrictionHoldsBelowItsAngleAndLetsGoAboveIt) {
  const double mu = 0.5, slope = std::atan(mu);
  for (const char* method : {kModes, kNodes}) {
    Simulation held = touching(slab(method, mu, 0.8 * slope, 0)),
               free = touching(slab(method, mu, 1.25 * slope, 0, 0));
    const double start = middle(held, "block").x();
    while (held.state().t < 0.6) held.step();
    const double first = middle(held, "block").x();
    while (held.state().t < 1.2) held.step();
    EXPECT_LT(std::abs(first - start), 2e-3) << method;
    EXPECT_LT(std::abs(middle(held, "block").x() - first), 2e-4) << method;  // no creep
    while (free.state().t < 0.6) free.step();
    const double way = 0.5 * 9.81 * (std::sin(1.25 * slope) - mu * std::cos(1.25 * slope)) * 0.36;
    // Faces and nodes of two coarse meshes catch a little.
    EXPECT_GT(middle(free, "block").x() - start, 0.7 * way) << method;
    EXPECT_LT(middle(free, "block").x() - start, 1.1 * way) << method;
  }
}

TEST(ConJacBodies, RestartIsExact) {
  Simulation s = touching(slab(kModes, 0.5, 0.2, 1e-3));
  for (int k = 0; k < 12; ++k) s.step();
  const std::string text = slab(kModes, 0.5, 0.2, 1e-3);
  Simulation again = touching(text);
  again.restore(s.state());
  for (int k = 0; k < 12; ++k) {
    s.step();
    again.step();
  }
  EXPECT_EQ(s.state().x, again.state().x);
  EXPECT_EQ(s.state().v, again.state().v);
}

}  // namespace
}  // namespace limber
