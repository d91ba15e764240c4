// Soft bodies that touch links of a mechanism, both ways.
#include <limber/core/error.hpp>
#include <limber/methods/methods.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace limber {
namespace {

std::shared_ptr<const Scene> link_scene(const std::string& json) {
  LoadResult r = try_read_scene(json, "./scene.json");
  std::string all;
  for (const Problem& p : r.problems) all += to_string(p) + "\n";
  if (!all.empty()) throw Error(ErrorKind::kInput, all);
  return std::make_shared<const Scene>(std::move(r.scene));
}

Diagnostics all_of(const Simulation& s) { return measure(s.model(), s.state(), {}); }

double mass_of_nodes(const Simulation& s) { return s.model().mass.sum() / 3; }

Vec3 mean_place(const Simulation& s) {
  Vec3 sum = Vec3::Zero();
  for (Index i = 0; i < s.model().nodes(); ++i) sum += s.model().mass[3 * i] * node(s.state().x, i);
  return sum / mass_of_nodes(s);
}

std::string digits(double x) { return std::to_string(x); }

constexpr const char* kFull = R"({"type": "vanilla"})";
constexpr const char* kSixModes = R"({"type": "conjac"})";
constexpr const char* kSixNodes = R"({"type": "conjac", "dynamic": [{"auto": 6}]})";
constexpr const char* kEq11 =
    R"({"type": "conjac", "time_rule": "linear-implicit", "dynamic": [{"auto": 6}]})";

// A soft block of 1 kg flies into a free link and spins it.
std::string free_collision(const std::string& method, const std::string& shape, double mass) {
  return R"({"limber": 1, "gravity": [0, 0, 0], "time": {"step": 0.005}, "method": )" + method +
         R"(, "contact": {"friction": 0.3},
    "bodies": [{"name": "block", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "nodes": [5, 5, 5]},
                "material": {"young": 1e5}, "translation": [0, 0, 0], "velocity": [1, 0.2, 0]}],
    "links": [{"name": "hit", "mass": )" +
         digits(mass) + R"(, "shapes": )" + shape + R"(}],
    "joints": [{"name": "free", "type": "free", "child": "hit", "position": [0.22, 0.07, 0.05]}]})";
}

TEST(LinkContact, AFreeCollisionKeepsMomentum) {
  const char* shapes[] = {
      R"({"shape": "box", "size": [0.2, 0.2, 0.2], "position": [0.22, 0.07, 0.05], "contact": true})",
      R"({"shape": "sphere", "radius": 0.1, "position": [0.22, 0.07, 0.05], "contact": true})",
      R"({"shape": "capsule", "radius": 0.08, "length": 0.1, "position": [0.22, 0.07, 0.05], "contact": true})",
      R"({"shape": "cylinder", "radius": 0.1, "length": 0.2, "position": [0.22, 0.07, 0.05], "contact": true})"};
  for (const char* method : {kFull, kSixModes, kSixNodes, kEq11})
    for (const char* shape : shapes)
      for (const double mass : {0.05, 20.0}) {
        Simulation s(link_scene(free_collision(method, shape, mass)));
        const Diagnostics start = all_of(s);
        double most = 0;
        while (s.state().t < 0.4) {
          const StepReport report = s.step();
          ASSERT_EQ(report.why, "") << method << shape << mass;
          most = std::max(most, all_of(s).total() + report.extra.at("link_contact_energy"));
        }
        const Diagnostics end = all_of(s);
        EXPECT_LT((end.momentum - start.momentum).norm(), 1e-11) << method << shape << mass;
        EXPECT_LT((end.angular_momentum - start.angular_momentum).norm(), 0.02) << method << shape << mass;
        EXPECT_LT(most, start.total() * 1.06) << method << shape << mass;
        EXPECT_LT(end.total(), start.total() * 1.001) << method << shape << mass;
        // They met; a light link leaves in the step in which it is hit, and then nobody touches at its end.
        EXPECT_GT(s.state().joint_v.norm(), 1e-2) << method << shape << mass;
      }
}

// A block on a plate that a spring carries.
std::string scales(const std::string& method, double stiffness, double plate, double angle, double friction,
                   double gap) {
  return R"({"limber": 1, "gravity": [)" + digits(9.81 * std::sin(angle)) + ", " +
         digits(-9.81 * std::cos(angle)) + R"(, 0], "time": {"step": 0.005}, "method": )" + method +
         R"(, "contact": {"friction": )" + digits(friction) + R"(}, "damping": {"stiffness": 0.002},
    "bodies": [{"name": "block", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "nodes": [4, 4, 4]},
                "material": {"young": 2e5}, "translation": [-0.05, )" +
         digits(gap) + R"(, -0.05]}],
    "links": [{"name": "plate", "mass": )" +
         digits(plate) +
         R"(, "shapes": {"shape": "box", "size": [2, 0.1, 0.4], "position": [0, -0.05, 0], "contact": true}}],
    "joints": [{"name": "spring", "type": "prismatic", "child": "plate", "axis": [0, 1, 0], "stiffness": )" +
         digits(stiffness) + R"(, "damping": )" + digits(2 * std::sqrt(stiffness)) + R"(}]})";
}

TEST(LinkContact, ABlockPressesAScaleByItsWeight) {
  for (const char* method : {kFull, kSixModes, kSixNodes, kEq11})
    for (const double plate : {0.1, 5.0}) {
      const double k = 800;
      Simulation s(link_scene(scales(method, k, plate, 0, 0.3, 0.001)));
      while (s.state().t < 6) ASSERT_EQ(s.step().why, "") << method;
      const double weight = (plate + mass_of_nodes(s)) * 9.81;
      EXPECT_NEAR(-k * s.state().joint_q[0], weight, 1e-6 * weight) << method << plate;
      EXPECT_LT(all_of(s).kinetic, 1e-9) << method << plate;
    }
}

TEST(LinkContact, FrictionHoldsBelowItsAngleAndNotAbove) {
  const double mu = 0.4, limit = std::atan(mu);
  for (const char* method : {kFull, kSixModes, kSixNodes}) {
    Simulation holds(link_scene(scales(method, 1e5, 1, 0.85 * limit, mu, 0)));
    while (holds.state().t < 1) holds.step();
    const double after = mean_place(holds).x();
    while (holds.state().t < 2) holds.step();
    EXPECT_LT(std::abs(mean_place(holds).x() - after), 1e-6) << method;

    Simulation slides(link_scene(scales(method, 1e5, 1, 1.3 * limit, mu, 0)));
    while (slides.state().t < 0.2) slides.step();
    const double v0 = all_of(slides).momentum.x();
    while (slides.state().t < 0.5) slides.step();
    const double a = (all_of(slides).momentum.x() - v0) / 0.3 / mass_of_nodes(slides),
                 theory = 9.81 * (std::sin(1.3 * limit) - mu * std::cos(1.3 * limit));
    EXPECT_NEAR(a, theory, 0.05 * theory) << method;
  }
}

// A plate that may slide is taken along by the block that slides on it, until both go at the same speed.
TEST(LinkContact, FrictionTakesALinkAlong) {
  for (const char* method : {kFull, kSixModes, kSixNodes}) {
    Simulation s(link_scene(R"({"limber": 1, "gravity": [0, -9.81, 0], "time": {"step": 0.005}, "method": )" +
                            std::string(method) +
                            R"(, "contact": {"friction": 0.3}, "damping": {"stiffness": 0.001},
      "bodies": [{"name": "block", "mesh": {"shape": "box", "size": [0.1, 0.04, 0.1], "nodes": [5, 3, 5]},
                  "material": {"young": 2e5}, "translation": [-0.05, 0, -0.05], "velocity": [1, 0, 0]}],
      "links": [{"name": "cart", "mass": 0.8,
                 "shapes": {"shape": "box", "size": [4, 0.1, 0.4], "position": [0, -0.05, 0], "contact": true}}],
      "joints": [{"name": "rail", "type": "prismatic", "child": "cart", "axis": [1, 0, 0]}]})"));
    const double m = mass_of_nodes(s);
    double before = all_of(s).momentum.x();
    EXPECT_NEAR(before, m, 1e-12);
    while (s.state().t < 0.8) s.step();
    EXPECT_NEAR(all_of(s).momentum.x(), before, 1e-10) << method;
    EXPECT_NEAR(s.state().joint_v[0], before / (m + 0.8), 2e-3) << method;
  }
}

TEST(LinkContact, FleshLeavesItsOwnBoneAlone) {
  const std::string scene = R"({"limber": 1, "gravity": [0, -9.81, 0], "method": {"type": "conjac"},
    "bodies": [{"name": "flesh", "mesh": {"shape": "box", "size": [0.2, 0.1, 0.1], "nodes": [5, 3, 3]},
                "translation": [0.1, -0.05, -0.05]}],
    "links": [{"name": "bone", "shapes": {"shape": "box", "size": [0.25, 0.03, 0.12], "position": [0.2, 0, 0], "contact": CONTACT}}],
    "joints": [{"name": "hinge", "child": "bone", "axis": [0, 0, 1]}],
    "attachments": [{"link": "bone", "nodes": {"box": {"min": [0, -0.01, -1], "max": [1, 0.01, 1]}}}]})";
  const auto with = [&](const std::string& contact) {
    std::string text = scene;
    text.replace(text.find("CONTACT"), 7, contact);
    Simulation s(link_scene(text));
    for (int k = 0; k < 20; ++k) s.step();
    return s.state().x;
  };
  EXPECT_EQ((with("true") - with("false")).norm(), 0);
}

TEST(LinkContact, ARestartHasTheSameBits) {
  for (const char* method : {kFull, kSixModes, kSixNodes}) {
    const auto scene = link_scene(scales(method, 800, 0.5, 0.2, 0.3, 0.002));
    Simulation a(scene), b(scene);
    for (int k = 0; k < 30; ++k) a.step();
    b.restore(a.state());
    for (int k = 0; k < 20; ++k) {
      a.step();
      b.step();
    }
    EXPECT_EQ(hash_state(a.state()), hash_state(b.state())) << method;
  }
}

TEST(LinkContact, WhatCannotBeDoneIsRefused) {
  const auto refusal = [](const std::string& method, const std::string& rule) -> std::string {
    std::string text = scales(method, 100, 1, 0, 0.3, 0);
    const std::size_t at = text.find("\"contact\": {");
    text.insert(at + 12, "\"rule\": \"" + rule + "\", ");
    try {
      Simulation s(link_scene(text));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(kSixModes, "anchored"), "");
  try {
    Simulation deep(link_scene(scales(kSixModes, 100, 1, 0, 0.3, -0.05)));
    deep.step();
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("inside the link \"plate\""), std::string::npos) << e.what();
  }
  EXPECT_NE(refusal(kSixModes, "filter").find("/contact/rule"), std::string::npos);
  EXPECT_NE(refusal(kFull, "filter").find("/contact/rule"), std::string::npos);
  EXPECT_NE(refusal(R"({"type": "conjac", "time_rule": "midpoint"})", "anchored").find("/method/time_rule"),
            std::string::npos);
}

}  // namespace
}  // namespace limber
