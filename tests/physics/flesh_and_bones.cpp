// Soft bodies on links: both are one system.
#include <limber/core/error.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/methods/methods.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/rigid/bisp.hpp>
#include <limber/rigid/kinematics.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

std::shared_ptr<const Scene> text(const std::string& json) {
  LoadResult r = try_read_scene(json, "./scene.json");
  std::string all;
  for (const Problem& p : r.problems) all += to_string(p) + "\n";
  if (!all.empty()) throw Error(ErrorKind::kInput, all);
  return std::make_shared<const Scene>(std::move(r.scene));
}

double total_energy(const Simulation& s) { return measure(s.model(), s.state(), {}).total(); }

// A block of flesh, every node of it on a bone that swings.
std::string pendulum(const std::string& method, double h) {
  return R"({"limber": 1, "gravity": [0, -9.81, 1], "time": {"step": )" + std::to_string(h) +
         R"(}, "method": )" + method + R"(,
    "bodies": [{"name": "flesh", "mesh": {"shape": "box", "size": [0.2, 0.1, 0.1], "nodes": [3, 2, 2]},
                "translation": [0.1, 0.02, -0.05]}],
    "links": [{"name": "bone", "shapes": {"shape": "box", "size": [0.4, 0.02, 0.02], "position": [0.2, 0, 0]}},
              {"name": "tip", "shapes": {"shape": "sphere", "radius": 0.03, "position": [0.4, 0, 0]}}],
    "joints": [{"name": "hinge", "child": "bone", "axis": [0, 0, 1], "v": 1},
               {"name": "ball", "type": "spherical", "parent": "bone", "child": "tip", "position": [0.4, 0, 0]}],
    "attachments": [{"link": "bone", "nodes": "all"}]})";
}

TEST(FleshAndBones, FleshThatCannotDeformIsMassOnTheBone) {
  for (const char* method : {R"({"type": "vanilla"})", R"({"type": "rigidify"})",
                             R"({"type": "conjac", "time_rule": "linear-implicit", "dynamic": []})"}) {
    Simulation s(text(pendulum(method, 1e-3)));
    // The same nodes as point masses of the link.
    const rigid::Articulation& a = *s.model().articulation;
    rigid::Mechanism m = a.mechanism;
    rigid::Inertia& inertia = m.links[static_cast<std::size_t>(m.find_link("bone"))].inertia;
    for (const rigid::Attachment& p : a.attachments) {
      rigid::Inertia point;
      point.mass = s.model().mass[3 * p.node];
      point.com = p.x;
      inertia = rigid::combined(inertia, point);
    }
    EXPECT_GT(inertia.mass, 5 * a.mechanism.links[0].inertia.mass);  // flesh outweighs the bone
    rigid::StepSettings settings;
    settings.h = 1e-3;
    settings.gravity = Vec3(0, -9.81, 1);
    rigid::JointState joints{a.q, a.v, {}};
    for (int k = 0; k < 300; ++k) {
      s.step();
      rigid::step_bisp(m, {}, {}, {}, k * 1e-3, settings, joints);
    }
    EXPECT_GT(std::abs(joints.q[0]), 0.2);
    EXPECT_LT((s.state().joint_q - joints.q).norm(), 1e-8) << method;
    EXPECT_LT((s.state().joint_v - joints.v).norm(), 1e-7) << method;
  }
}

// Half of the flesh hangs free behind the half that the bone holds, and both swing fast.
std::string swinging_flesh(const std::string& method, double young, double h, double spin) {
  return R"({"limber": 1, "gravity": [0, -9.81, 1], "time": {"step": )" + std::to_string(h) +
         R"(}, "method": )" + method + R"(,
    "bodies": [{"name": "flesh", "mesh": {"shape": "box", "size": [0.4, 0.1, 0.1], "nodes": [5, 2, 2]},
                "material": {"young": )" +
         std::to_string(young) + R"(}}],
    "links": [{"name": "bone", "shapes": {"shape": "box", "size": [0.1, 0.05, 0.05],
                                          "position": [0.05, 0.05, 0.05], "density": 4000}}],
    "joints": [{"name": "hinge", "child": "bone", "axis": [0, 0, 1], "position": [0, 0.05, 0.05],
                "v": )" +
         std::to_string(spin) +
         R"(}],
    "attachments": [{"link": "bone", "nodes": {"plane": {"point": [0.15, 0, 0], "normal": [-1, 0, 0]}}}]})";
}

TEST(FleshAndBones, AllModesOfFleshOnABoneAreVanilla) {
  Simulation full(text(swinging_flesh(R"({"type": "vanilla"})", 2e4, 2e-3, 6)));
  Simulation reduced(text(swinging_flesh(
      R"({"type": "conjac", "time_rule": "linear-implicit", "beta": 1, "dynamic": {"modes": 36}})", 2e4, 2e-3,
      6)));
  for (int k = 0; k < 60; ++k) {
    full.step();
    reduced.step();
    ASSERT_LT((full.state().x - reduced.state().x).cwiseAbs().maxCoeff(), 1e-9) << "step " << k;
    ASSERT_LT((full.state().joint_v - reduced.state().joint_v).cwiseAbs().maxCoeff(), 1e-8) << "step " << k;
  }
  EXPECT_GT(std::abs(full.state().joint_q[0]), .3);
}

// A free hinge: the energy of flesh and bone together stays what it is, and the motion is that of small
// steps.
TEST(FleshAndBones, TheGuardedRuleIsLivelyOnABone) {
  const double end = 0.6;
  const auto swing = [&](const std::string& method, double h) {
    Simulation s(text(swinging_flesh(method, 2e4, h, 6)));
    const double start = total_energy(s);
    double most = start;
    std::vector<double> q;
    for (int k = 0; k < std::lround(end / h); ++k) {
      s.step();
      q.push_back(s.state().joint_q[0]);
      most = std::max(most, total_energy(s));
    }
    struct {
      std::vector<double> q;
      double kept, most;
    } out{q, total_energy(s) - start, most - start};
    return out;
  };
  const auto coarse = swing(R"({"type": "vanilla"})", 2e-4), fine = swing(R"({"type": "vanilla"})", 1e-4);
  const auto error = [&](const std::vector<double>& q, double h) {
    double most = 0;
    for (std::size_t k = 0; k < q.size(); ++k) {
      const auto at = static_cast<std::size_t>(std::lround((k + 1) * h / 2e-4)) - 1;
      most = std::max(most, std::abs(q[k] - (2 * fine.q[2 * at + 1] - coarse.q[at])));  // extrapolated
    }
    return most;
  };
  double before = 0;
  for (const double h : {4e-3, 1e-3}) {
    const auto guarded = swing(R"({"type": "conjac", "dynamic": {"modes": 36}})", h);
    const auto paper =
        swing(R"({"type": "conjac", "time_rule": "linear-implicit", "dynamic": {"modes": 36}})", h);
    EXPECT_LT(error(guarded.q, h), 0.7 * error(paper.q, h)) << h;
    EXPECT_LT(std::abs(guarded.kept), 0.6 * std::abs(paper.kept)) << h;
    EXPECT_LT(guarded.most, 0.02) << h;  // [J] of 2.4
    if (before > 0) {
      EXPECT_LT(error(guarded.q, h), 0.5 * before);
    }
    before = error(guarded.q, h);
  }
}

// Regions wake and calm as they do without bones; where all stay awake, nothing differs.
TEST(FleshAndBones, AdaptiveFleshOnABone) {
  const auto method = [](const char* more) {
    return std::string(R"({"type": "conjac", "dynamic": [{"auto": 3}])") + more + "}";
  };
  Simulation fixed(text(swinging_flesh(method(""), 2e4, 2e-3, 6))),
      awake(text(swinging_flesh(method(R"(, "adaptive": {"threshold": 1e-9, "start_dynamic": true})"), 2e4,
                                2e-3, 6))),
      adaptive(
          text(swinging_flesh(method(R"(, "adaptive": {"threshold": 0.5, "window": 3})"), 2e4, 2e-3, 6)));
  double switches = 0;
  for (int k = 0; k < 100; ++k) {
    fixed.step();
    awake.step();
    const StepReport report = adaptive.step();
    ASSERT_LT((fixed.state().x - awake.state().x).cwiseAbs().maxCoeff(), 1e-9) << "step " << k;
    switches += report.extra.at("switches");
  }
  EXPECT_GT(switches, 0);
  EXPECT_LT(total_energy(adaptive), 2.6);
  EXPECT_GT(total_energy(adaptive), 1.0);
}

// Flesh that hardly deforms and follows quasistatically is mass on the bone: what turns with it must not be
// counted twice.
TEST(FleshAndBones, FollowersTurnWithTheBone) {
  const auto distance = [](double h) {
    Simulation s(text(swinging_flesh(
        R"({"type": "conjac", "time_rule": "linear-implicit", "beta": 1, "dynamic": []})", 1e8, h, 0)));
    const rigid::Articulation& a = *s.model().articulation;
    rigid::Mechanism m = a.mechanism;
    rigid::Inertia& inertia = m.links[0].inertia;
    rigid::Motion start;
    rigid::update_motion(m, a.q, a.v, start);
    const rigid::Pose to_link = start.links[0].pose.inverse();
    for (Index i = 0; i < s.model().nodes(); ++i) {
      rigid::Inertia point;
      point.mass = s.model().mass[3 * i];
      point.com = to_link.R * Vec3(node(s.state().x, i)) + to_link.p;
      inertia = rigid::combined(inertia, point);
    }
    rigid::StepSettings settings;
    settings.h = h;
    settings.gravity = Vec3(0, -9.81, 1);
    rigid::JointState joints{a.q, a.v, {}};
    const int steps = static_cast<int>(std::lround(.4 / h));
    for (int k = 0; k < steps; ++k) {
      s.step();
      rigid::step_bisp(m, {}, {}, {}, k * h, settings, joints);
    }
    EXPECT_GT(std::abs(joints.q[0]), .5);
    return std::abs(s.state().joint_q[0] - joints.q[0]);
  };
  const double coarse = distance(1e-3), fine = distance(5e-4);
  EXPECT_LT(fine, .06);
  EXPECT_LT(fine, .6 * coarse);
}

TEST(FleshAndBones, AFloatingBodyKeepsItsMomentum) {
  // A bone inside flesh, spinning in empty space; half the flesh is free to swing behind.
  const auto drift = [](const char* h) {
    Simulation s(text(std::string(R"({"limber": 1, "gravity": [0, 0, 0], "method": {"type": "vanilla"},
      "time": {"step": )") +
                      h +
                      R"(}, "bodies": [{"name": "flesh", "mesh": {"shape": "box", "size": [0.4, 0.1, 0.1],
      "nodes": [5, 2, 2]}, "material": {"young": 2e4}, "velocity": [0.2, 0, 0]}],
      "links": [{"name": "bone", "shapes": {"shape": "box", "size": [0.1, 0.05, 0.05], "position": [0.05, 0.05, 0.05],
                                            "density": 4000}}],
      "joints": [{"name": "space", "type": "free", "child": "bone", "position": [0.05, 0.05, 0.05],
                  "velocity": [0.2, 0, 0], "angular_velocity": [0, 0, 2]}],
      "attachments": [{"link": "bone", "nodes": {"plane": {"point": [0.15, 0, 0], "normal": [-1, 0, 0]}}}]})"));
    const Diagnostics before = measure(s.model(), s.state(), {});
    const int steps = static_cast<int>(std::lround(0.3 / s.scene().h));
    for (int k = 0; k < steps; ++k) s.step();
    const Diagnostics after = measure(s.model(), s.state(), {});
    return (after.momentum - before.momentum).norm() / before.momentum.norm();
  };
  const double coarse = drift("0.002"), fine = drift("0.001");
  EXPECT_LT(fine, 0.02);
  EXPECT_LT(fine, 0.75 * coarse);
}

std::shared_ptr<const Scene> muscle(const std::vector<std::string>& overrides) {
  return std::make_shared<const Scene>(load_scene(LIMBER_SOURCE_DIR "/scenes/conjac/muscle.json", overrides));
}

const std::vector<std::string> kVanilla{R"(/method={"type": "vanilla"})"};

TEST(FleshAndBones, MuscleLiftsTheForearmAndReturns) {
  for (const bool full : {false, true}) {
    Simulation s(muscle(full ? kVanilla : std::vector<std::string>{}));
    const rigid::Mechanism& m = s.model().articulation->mechanism;
    const Index elbow = m.joints[static_cast<std::size_t>(m.find_joint("elbow"))].q_begin;
    double bones = 0, flesh = s.model().mass.sum() / 3;
    for (const rigid::Link& l : m.links) bones += l.inertia.mass;
    EXPECT_GT(flesh, bones);
    double highest = -1e9, rest = 0;
    StepReport report;
    while (!s.done()) {
      report = s.step();
      const double q = s.state().joint_q[elbow];
      if (s.state().t < 0.3) rest = q;
      highest = std::max(highest, q);
    }
    if (!full) {
      EXPECT_EQ(report.dofs, 4);  // two of the muscle, two joints
    }
    EXPECT_GT(highest - rest, 0.2) << full;
    EXPECT_LT(std::abs(s.state().joint_q[elbow] - rest), 0.3 * (highest - rest)) << full;
  }
}

// Energy in = energy out: activation works by changing the energy of the fibres as they are; dampers take.
TEST(FleshAndBones, EnergyOfTheMuscleIsAccountedForToTheOrderOfTheStep) {
  const auto unexplained = [](const char* h) {
    Simulation s(muscle({kVanilla[0], std::string("/time/step=") + h, "/damping/stiffness=0"}));
    const rigid::Mechanism& m = s.model().articulation->mechanism;
    StepInput input;
    script_input(s.model(), s.state(), s.scene().h, input);
    std::vector<double> activation(input.activation.size(), 0.0);
    const double before = measure(s.model(), s.state(), activation).total();
    double work = 0, largest = 0;
    while (s.state().t < 0.8) {
      const VecX x = s.state().x;
      s.step();
      const double a = fem::elastic_energy(*s.model().elements, x, s.input().activation) -
                       fem::elastic_energy(*s.model().elements, x, activation);
      activation = s.input().activation;
      work += a;
      for (const rigid::Joint& j : m.joints)
        work -= s.scene().h * j.damping * std::pow(s.state().joint_v[j.v_begin], 2);
      largest = std::max(largest, std::abs(work));
    }
    return std::abs(measure(s.model(), s.state(), activation).total() - before - work) / largest;
  };
  // What is missing is what the steps damp, most of it in modes that they do not resolve: hence less than
  // first order.
  const double coarse = unexplained("0.004"), middle = unexplained("0.002"), fine = unexplained("0.001");
  EXPECT_LT(middle, 0.65 * coarse);
  EXPECT_LT(fine, 0.65 * middle);
  EXPECT_LT(fine, 0.01);
}

TEST(FleshAndBones, RestartIsExact) {
  for (const bool full : {false, true}) {
    const auto scene = muscle(full ? kVanilla : std::vector<std::string>{});
    Simulation whole(scene), first(scene), second(scene);
    for (int k = 0; k < 12; ++k) whole.step();
    for (int k = 0; k < 6; ++k) first.step();
    second.restore(first.state());
    for (int k = 0; k < 6; ++k) second.step();
    EXPECT_EQ(hash_state(whole.state()), hash_state(second.state()));
  }
}

}  // namespace
}  // namespace limber
