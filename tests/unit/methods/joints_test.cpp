// Mechanisms as scenes: from JSON to steps and recordings.
#include <limber/core/error.hpp>
#include <limber/methods/methods.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/frame.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace limber {
namespace {

std::shared_ptr<const Scene> file(const std::string& name, const std::vector<std::string>& overrides = {}) {
  return std::make_shared<const Scene>(
      load_scene(LIMBER_SOURCE_DIR "/scenes/joints/" + name + ".json", overrides));
}

std::shared_ptr<const Scene> text(const std::string& json, const std::string& folder = ".") {
  LoadResult r = try_read_scene(json, folder + "/scene.json");
  std::string all;
  for (const Problem& p : r.problems) all += to_string(p) + "\n";
  if (!all.empty()) throw Error(ErrorKind::kInput, all);
  return std::make_shared<const Scene>(std::move(r.scene));
}

TEST(JointScenes, RestartIsExact) {
  for (const char* friction : {"bisp", "sp"}) {
    const auto scene = file("chain", {std::string("/method/friction=") + friction});
    Simulation whole(scene), first(scene), second(scene);
    for (int k = 0; k < 20; ++k) whole.step();
    for (int k = 0; k < 10; ++k) first.step();
    second.restore(first.state());
    for (int k = 0; k < 10; ++k) second.step();
    EXPECT_EQ(hash_state(whole.state()), hash_state(second.state())) << friction;
    EXPECT_GT((whole.state().joint_q).norm(), 1e-3);
  }
}

TEST(JointScenes, KlannTurnsItsCranksAtTheGivenSpeedAndStaysTogether) {
  Simulation s(file("klann", {"/method/mu=0.4"}));
  const rigid::Mechanism& m = s.model().articulation->mechanism;
  // A free frame and, per side of the paper's count, 26 joints; 24 bilateral rows in 12 loops.
  EXPECT_EQ(m.velocities, 6 + 26);
  EXPECT_EQ(m.loops.size(), 12u);
  const rigid::Joint& motor = m.joints[static_cast<std::size_t>(m.find_joint("front-motor"))];
  double gap = 0;
  Vec3 lowest = Vec3::Constant(1e9), highest = -lowest;
  for (int k = 0; k < 200; ++k) {
    const StepReport r = s.step();
    gap = std::max(gap, r.extra.at("loop_error"));
    const Vec3 c = measure(s.model(), s.state(), {}).center_of_mass;
    lowest = lowest.cwiseMin(c);
    highest = highest.cwiseMax(c);
  }
  EXPECT_NEAR(s.state().joint_v[motor.v_begin], 4, 1e-6);
  EXPECT_LT(gap, 1e-6);
  EXPECT_GT(highest[0] - lowest[0], 0.03);  // it walks
  EXPECT_LT(highest[1] - lowest[1], 0.05);  // and does not fall
}

TEST(JointScenes, RecordingShowsEveryLinkAndPin) {
  Simulation s(file("chain"));
  s.step();
  const ReplayTopology t = replay_topology(s);
  ASSERT_EQ(t.bodies.size(), 20u);  // ten links, ten pins
  EXPECT_EQ(t.bodies[0].name, "link0");
  EXPECT_EQ(t.bodies[10].name, "pin0");
  const FrameFields fields = frame_fields(s, s.input());
  const ReplayFrame f = replay_frame(s, fields, {});
  EXPECT_EQ(f.x.size(), t.rest.size());
  bool torque = false;
  for (const ReplayField& field : f.node_fields) {
    EXPECT_EQ(field.values.size() * 3, t.rest.size() * static_cast<std::size_t>(field.components));
    torque |= field.name == "friction_torque";
  }
  EXPECT_TRUE(torque);
}

std::string fault(const std::string& json) {
  try {
    build_model(text(json));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return e.what();
  }
  return "";
}

std::string mechanism(const std::string& joints, const std::string& more = "") {
  return R"({"limber": 1, "method": {"type": "joints"},
    "links": [{"name": "arm", "shapes": {"shape": "box", "size": [1, 0.1, 0.1], "position": [0.5, 0, 0]}},
              {"name": "hand", "shapes": {"shape": "sphere", "radius": 0.1, "position": [1.1, 0, 0]}}],
    "joints": [)" +
         joints + "]" + more + "}";
}

TEST(JointScenes, BadMechanismsAreRefusedByName) {
  const std::string arm = R"({"name": "shoulder", "child": "arm"})";
  const std::string hand = R"({"name": "wrist", "parent": "arm", "child": "hand", "position": [1, 0, 0]})";
  EXPECT_EQ(fault(mechanism(arm + "," + hand)), "");
  const auto expect = [](const std::string& json, const std::string& part) {
    EXPECT_NE(fault(json).find(part), std::string::npos) << fault(json);
  };
  expect(mechanism(arm), "link \"hand\" hangs by no joint");
  expect(mechanism(arm + R"(,{"name": "wrist", "parent": "amr", "child": "hand"})"),
         "joint \"wrist\": its parent \"amr\"");
  expect(mechanism(R"({"name": "shoulder", "parent": "hand", "child": "arm"},)" + hand), "form a cycle");
  // Bent at the wrist, the tip is far from the place where the drawing hangs it up, and the shoulder is
  // fixed.
  expect(mechanism(R"({"name": "shoulder", "type": "fixed", "child": "arm"},
         {"name": "wrist", "parent": "arm", "child": "hand", "position": [1, 0, 0], "q": 1})",
                   R"(, "loops": [{"name": "hook", "a": "hand", "position": [1.1, 0, 0]},
         {"name": "eye", "a": "hand", "b": "world", "position": [1.05, 0, 0.02], "axis": [1, 0, 0]},
         {"name": "ring", "a": "hand", "b": "hand", "position": [1.1, 0, 0]}])"),
         "loop \"ring\": both its ends");
  expect(R"({"limber": 1, "method": {"type": "joints"}, "links": [{"name": "ghost", "shapes":
         {"shape": "box", "size": [1, 1, 1], "density": 0}}], "joints": [{"child": "ghost"}]})",
         "link \"ghost\": the mass is 0 kg");
  EXPECT_THROW(text(R"({"limber": 1, "method": {"type": "joints"}})"), Error);
  EXPECT_THROW(text(R"({"limber": 1, "links": [{"name": "a", "shapes": {"shape": "sphere", "radius": 1}}],
                       "joints": [{"child": "a"}]})"),
               Error);  // vanilla moves no links
}

TEST(JointScenes, ARobotFromAFileSwings) {
  const std::filesystem::path folder = std::filesystem::path(LIMBER_BINARY_DIR) / "robot_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "two.urdf") << R"(<robot name="two">
    <link name="post"/>
    <link name="rod"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
      <inertia ixx="0.01" iyy="0.0833" izz="0.0833" ixy="0" ixz="0" iyz="0"/></inertial>
      <visual><origin xyz="0.5 0 0"/><geometry><box size="1 0.05 0.05"/></geometry></visual></link>
    <joint name="swing" type="continuous"><parent link="post"/><child link="rod"/><axis xyz="0 1 0"/></joint>
  </robot>)";
  const auto scene = text(R"({"limber": 1, "gravity": [0, 0, -9.81], "method": {"type": "joints"},
    "time": {"step": 0.001}, "robots": [{"name": "r", "file": "two.urdf"}]})",
                          folder.string());
  Simulation s(scene);
  EXPECT_EQ(s.model().articulation->mechanism.links[0].name, "r/rod");
  for (int k = 0; k < 100; ++k) s.step();
  // A rod let go from the horizontal: alpha = m g l/2 / (I + m l^2/4) at first.
  EXPECT_NEAR(s.state().joint_v[0], 0.1 * 9.81 * 0.5 / (0.0833 + 0.25), 0.01);
}

}  // namespace
}  // namespace limber
