// Springs that pull at nodes, and values that events set, against theory.
#include <limber/methods/methods.hpp>
#include <limber/scene/hold_motion.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace limber {
namespace {

using nlohmann::json;

// A free block of 1 kg, without gravity.
json hand_block(const json& method) {
  return {{"limber", 1},
          {"time", {{"step", 1e-3}, {"end", 1}}},
          {"gravity", {0, 0, 0}},
          {"method", method},
          {"bodies",
           {{{"name", "block"},
             {"mesh", {{"shape", "box"}, {"size", {0.1, 0.1, 0.1}}, {"nodes", {4, 4, 4}}}},
             {"material", {{"young", 1e5}, {"density", 1000}}}}}}};
}

Simulation hand_simulation(const json& scene) {
  return Simulation(std::make_shared<const Scene>(read_scene(scene.dump(), "block.json")));
}

double hand_center_x(const Simulation& s) { return s.measured(s.input().activation).center_of_mass.x(); }

std::vector<json> hand_methods() {
  return {{{"type", "vanilla"}},
          {{"type", "conjac"}},
          {{"type", "implicit"}, {"integrator", "bdf1"}},
          {{"type", "rigidify"}},
          {{"type", "mixed"}, {"modes", 2}},
          {{"type", "mixed"}, {"space", "full"}}};
}

// m x'' = k (p - x) - c x': a damped oscillator, whatever the method.
TEST(HandSpring, PullsABlockAsAnOscillatorSwings) {
  const double k = 40, c = 1, m = 1, pull = 0.03, w = std::sqrt(k / m - c * c / (4 * m * m));
  for (const json& method : hand_methods()) {
    json scene = hand_block(method);
    scene["forces"] = {{{"spring",
                         {{"stiffness", k},
                          {"damping", c},
                          {"keys", {{{"t", 0}, {"position", {0.05 + pull, 0.05, 0.05}}}}}}}}};
    Simulation s = hand_simulation(scene);
    double worst = 0;
    for (int n = 0; n < 1000; ++n) {
      s.step();
      const double t = s.time(), a = c / (2 * m);
      const double x = 0.05 + pull * (1 - std::exp(-a * t) * (std::cos(w * t) + a / w * std::sin(w * t)));
      worst = std::max(worst, std::abs(hand_center_x(s) - x));
    }
    EXPECT_LT(worst, 0.01 * pull) << method;
  }
}

// The far end is exactly where keys say at their times, and goes straight between.
TEST(HandSpring, FollowsItsKeys) {
  SpringSpec spring;
  spring.keys = {{0.1, Vec3(0.1, 0.2, 0.3)}, {0.3, Vec3(0.7, -0.1, 0.3)}, {0.5, Vec3(0.7, -0.1, 0.3)}};
  EXPECT_EQ(spring_point(spring, 0), spring.keys[0].second);
  for (const auto& [t, p] : spring.keys) EXPECT_EQ(spring_point(spring, t), p);
  EXPECT_EQ(spring_point(spring, 0.41), spring.keys[1].second);
  EXPECT_LT((spring_point(spring, 0.2) - Vec3(0.4, 0.05, 0.3)).norm(), 1e-15);
  EXPECT_EQ(spring_point(spring, 9), spring.keys[2].second);
}

// Pulls that come during a run give the bits of a scene that has had them from the beginning.
TEST(HandSpring, ComesDuringARunAsIfItHadBeenThere) {
  for (const json& method : hand_methods()) {
    Simulation live = hand_simulation(hand_block(method));
    ForceSpec force;
    force.body = "block";
    force.nodes.kind = "ids";
    force.nodes.ids = {0, 1, 2, 5, 9, 17};
    std::size_t at = 0;
    for (int n = 0; n < 40; ++n) {
      if (n == 10) {
        force.from = live.time();
        force.spring = SpringSpec{30, 0.2, {{live.time(), Vec3(0.01, 0.02, 0.03)}}};
        at = live.add_force(force);
      }
      if (n >= 10 && n < 30)
        live.pull(at, live.time() + live.scene().h, Vec3(0.01, 0.02 + 0.001 * (n / 4), 0.03));
      if (n == 30) live.release(at);
      if (n == 34) {
        EventSpec gravity;
        gravity.type = "set";
        gravity.time = live.time();
        gravity.path = "/gravity";
        gravity.value = "[1, -2, 3]";
        live.add_event(gravity);
      }
      live.step();
    }
    const ForceSpec& done = live.scene().forces.back();
    EXPECT_LT(done.spring->keys.size(), 14u);  // a hand that rests leaves two keys
    json scene = hand_block(method);
    json list = json::array();
    for (const auto& [t, p] : done.spring->keys)
      list.push_back({{"t", t}, {"position", {p.x(), p.y(), p.z()}}});
    scene["forces"] = {{{"nodes", {{"ids", force.nodes.ids}}},
                        {"from", done.from},
                        {"until", *done.until},
                        {"spring", {{"stiffness", 30}, {"damping", 0.2}, {"keys", list}}}}};
    scene["events"] = {{{"type", "set"},
                        {"time", live.scene().events.back().time},
                        {"path", "/gravity"},
                        {"value", {1, -2, 3}}}};
    Simulation again = hand_simulation(scene);
    for (int n = 0; n < 40; ++n) again.step();
    EXPECT_EQ(hash_state(live.state()), hash_state(again.state())) << method;
    EXPECT_GT(live.state().x.maxCoeff(), 0.1);
  }
}

// Free fall in one direction, then in another: v = g t, exactly.
TEST(Settings, GravityTurns) {
  for (const json& method : hand_methods()) {
    json scene = hand_block(method);
    scene["gravity"] = {0, -2, 0};
    scene["events"] = {{{"type", "set"}, {"time", 0.05}, {"path", "/gravity"}, {"value", {4, 0, 0}}}};
    Simulation s = hand_simulation(scene);
    for (int n = 0; n < 100; ++n) s.step();
    const Vec3 v = s.measured(s.input().activation).momentum / s.model().mass.sum() * 3;
    EXPECT_LT((v - Vec3(0.2, -0.1, 0)).norm(), 1e-9) << method << v.transpose();
  }
}

// A bar that becomes ten times as stiff hangs by a tenth: the statics of the new material.
TEST(Settings, MaterialChangesWhatItHangsBy) {
  json scene = hand_block({{"type", "static"}});
  scene["gravity"] = {0, -1, 0};
  scene["constraints"] = {{{"nodes", {{"set", "y1"}}}}};
  scene["time"] = {{"step", 0.1}, {"end", 1}};
  scene["events"] = {{{"type", "set"}, {"time", 0.2}, {"path", "/bodies/0/material/young"}, {"value", 1e6}}};
  Simulation s = hand_simulation(scene);
  s.step();
  const double before = s.measured({}).max_displacement;
  s.step();
  s.step();
  EXPECT_NEAR(s.measured({}).max_displacement, before / 10, 1e-3 * before);
}

// The method changes; what it moves goes on as it was.
TEST(Settings, AnotherMethodKeepsTheMotion) {
  json scene = hand_block({{"type", "vanilla"}});
  scene["bodies"][0]["velocity"] = {1, 0.5, 0};
  scene["events"] = {
      {{"type", "set"}, {"time", 0.02}, {"path", "/method"}, {"value", {{"type", "mixed"}, {"modes", 2}}}},
      {{"type", "set"}, {"time", 0.04}, {"path", "/method"}, {"value", {{"type", "conjac"}}}}};
  Simulation s = hand_simulation(scene);
  for (int n = 0; n < 60; ++n) s.step();
  EXPECT_EQ(s.scene().method, "conjac");
  EXPECT_NEAR(hand_center_x(s), 0.05 + 0.06, 1e-9);
}

}  // namespace
}  // namespace limber
