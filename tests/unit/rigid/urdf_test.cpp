#include <limber/core/error.hpp>
#include <limber/rigid/bisp.hpp>
#include <limber/rigid/link_surfaces.hpp>
#include <limber/rigid/urdf.hpp>
#include <limber/scene/scene.hpp>
#include <limber/sim/contact_model.hpp>
#include <limber/sim/read_mechanism.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <numbers>

namespace limber::rigid {
namespace {

// A turntable with an arm and a sliding hand, in the style in which arms are usually described: a massless
// root, a tool frame, rolled-pitched-yawed origins, a comment.
const std::string kArm = R"(<?xml version="1.0"?>
<!-- a small arm -->
<robot name="arm">
  <link name="base"/>
  <link name="table">
    <inertial><origin xyz="0 0 0.1"/><mass value="4"/>
      <inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.03"/></inertial>
    <collision><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.1" length="0.2"/></geometry></collision>
  </link>
  <link name="arm">
    <inertial><origin xyz="0.25 0 0" rpy="0 0 1.5707963267948966"/><mass value="2"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.04" iyz="0" izz="0.05"/></inertial>
    <visual><origin xyz="0.25 0 0"/><geometry><box size="0.5 0.05 0.05"/></geometry></visual>
  </link>
  <link name="hand">
    <inertial><mass value="0.5"/><inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial>
  </link>
  <link name="tool"/>
  <joint name="turn" type="continuous"><parent link="base"/><child link="table"/><axis xyz="0 0 2"/>
    <dynamics damping="0.3" friction="0"/></joint>
  <joint name="lift" type="revolute"><parent link="table"/><child link="arm"/>
    <origin xyz="0 0 0.2" rpy="0 -0.5 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="10" velocity="3"/></joint>
  <joint name="reach" type="prismatic"><parent link="arm"/><child link="hand"/><origin xyz="0.5 0 0"/>
    <axis xyz="1 0 0"/><limit lower="0.05" upper="0.2"/></joint>
  <joint name="tip" type="fixed"><parent link="hand"/><child link="tool"/><origin xyz="0.1 0 0"/></joint>
</robot>)";

TEST(Urdf, ReadsLinksInertiasJointsAndLimits) {
  UrdfRobot robot = parse_urdf(kArm, "arm.urdf");
  EXPECT_EQ(robot.name, "arm");
  EXPECT_TRUE(robot.root_massless);
  ASSERT_EQ(robot.links.size(), 3u);  // without the root and the tool's frame
  ASSERT_EQ(robot.joints.size(), 3u);
  const Joint& turn = robot.joints[0];
  EXPECT_EQ(turn.type, JointType::kRevolute);
  EXPECT_EQ(turn.lower.size(), 0);
  EXPECT_DOUBLE_EQ(turn.damping, 0.3);
  EXPECT_EQ(turn.axis, Vec3::UnitZ());
  const Joint& lift = robot.joints[1];
  EXPECT_EQ(lift.lower[0], -1);
  EXPECT_EQ(lift.upper[0], 2);
  EXPECT_NEAR((lift.frame.R * Vec3::UnitX())[2], std::sin(0.5), 1e-12);  // pitched up
  EXPECT_EQ(robot.joints[2].q[0], 0.05);                                 // zero is below its limit
  const Link& arm = robot.links[1];
  EXPECT_NEAR(arm.inertia.I(0, 0), 0.04, 1e-12);  // its inertia is given in axes turned by 90 degrees
  EXPECT_NEAR(arm.inertia.I(1, 1), 0.01, 1e-12);
  EXPECT_EQ(arm.inertia.com, Vec3(0.25, 0, 0));

  // Where the hand is: up the pitched arm.
  for (Joint& j : robot.joints)
    if (j.parent == robot.root) j.parent = "world";
  const Mechanism m = make_mechanism(robot.links, robot.joints);
  Motion motion;
  update_motion(m, initial_positions(m), initial_velocities(m), motion);
  const Vec3 hand = motion.links[static_cast<std::size_t>(m.find_link("hand"))].pose.p;
  EXPECT_LT((hand - Vec3(0.55 * std::cos(0.5), 0, 0.2 + 0.55 * std::sin(0.5))).norm(), 1e-12);
}

std::string fault(std::string text) {
  try {
    parse_urdf(text, "bad.urdf");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return e.what();
  }
  return "";
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kArm;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Urdf, LeftoversOfXacroAreNamedAndUnexpandedFilesRefused) {
  const auto with = [](const std::string& element) {
    std::string text = kArm;
    return text.insert(text.rfind("</robot>"), element);
  };
  const UrdfRobot robot = parse_urdf(with("<xacro:arm_gazebo name=\"arm\"/>"), "arm.urdf");
  EXPECT_EQ(robot.links.size(), 3u);
  ASSERT_FALSE(robot.notices.empty());
  EXPECT_NE(robot.notices[0].find("<xacro:arm_gazebo> was left out"), std::string::npos);
  EXPECT_THROW(parse_urdf(with("<xacro:macro name=\"leg\"/>"), "arm.urdf"), Error);
}

// A gripper as on many arms: two fingers of which one follows the other, on a wrist of two hinges with
// nothing but a name between them, and a sensor mount that carries the camera's mass.
const std::string kGripper = R"(<robot name="gripper">
  <link name="wrist"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial></link>
  <link name="cross"/>
  <link name="palm">
    <inertial><mass value="0.8"/><inertia ixx="0.004" iyy="0.004" izz="0.004"/></inertial></link>
  <link name="left"><collision><origin xyz="0 0 0.03"/><geometry><box size="0.01 0.02 0.06"/></geometry></collision>
    <inertial><mass value="0.05"/><inertia ixx="1e-5" iyy="1e-5" izz="1e-6"/></inertial></link>
  <link name="right"><collision><origin xyz="0 0 0.03"/><geometry><box size="0.01 0.02 0.06"/></geometry></collision>
    <inertial><mass value="0.05"/><inertia ixx="1e-5" iyy="1e-5" izz="1e-6"/></inertial></link>
  <link name="mount"/>
  <link name="camera"><inertial><origin xyz="0 0 0.01"/><mass value="0.1"/>
    <inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial></link>
  <joint name="pitch" type="revolute"><parent link="wrist"/><child link="cross"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/></joint>
  <joint name="roll" type="continuous"><parent link="cross"/><child link="palm"/><axis xyz="0 0 1"/>
    <origin xyz="0 0 0.05"/><dynamics damping="0.01" friction="0.2"/></joint>
  <joint name="close" type="prismatic"><parent link="palm"/><child link="left"/><axis xyz="1 0 0"/>
    <limit lower="0.01" upper="0.04" effort="1" velocity="1"/></joint>
  <joint name="follow" type="prismatic"><parent link="palm"/><child link="right"/><axis xyz="1 0 0"/>
    <limit lower="-0.04" upper="0.04"/><mimic joint="close" multiplier="-1" offset="0.002"/></joint>
  <joint name="tilt" type="continuous"><parent link="palm"/><child link="mount"/><axis xyz="0 1 0"/></joint>
  <joint name="screws" type="fixed"><parent link="mount"/><child link="camera"/><origin xyz="0 0 0.02"/></joint>
</robot>)";

TEST(Urdf, MimicJointsAndMassesThatOthersCarry) {
  UrdfRobot robot = parse_urdf(kGripper, "gripper.urdf");
  ASSERT_EQ(robot.gears.size(), 1u);
  EXPECT_EQ(robot.gears[0].ratio, -1);
  for (const Joint& j : robot.joints) EXPECT_EQ(j.dry_friction, j.name == "roll" ? 0.2 : 0.0) << j.name;
  for (const Joint& j : robot.joints)
    if (j.name == "follow") {
      EXPECT_NEAR(j.q[0], -0.008, 1e-15);  // the leader starts at its lower limit
    }
  for (const Link& l : robot.links) {
    EXPECT_NE(l.name, "camera");  // fixed to a frame that moves: one body, with the camera's mass
    if (l.name == "mount") {
      EXPECT_EQ(l.inertia.mass, 0.1);
      EXPECT_NEAR(l.inertia.com[2], 0.03, 1e-15);
    }
    if (l.name == "cross") {
      EXPECT_NEAR(l.inertia.mass, 0.0008, 1e-15);
    }
  }
  // Opening one finger opens the other.
  Joint base;
  base.name = "base";
  base.type = JointType::kFixed;
  base.parent = "world";
  base.child = robot.root;
  robot.joints.push_back(base);
  for (Joint& j : robot.joints)
    if (j.name == "close") {
      j.motor.kind = MotorKind::kSpeed;
      j.motor.value.points = {{0, 0.1}};
    }
  const Mechanism m = make_mechanism(robot.links, robot.joints, {}, {}, robot.gears);
  JointState state{initial_positions(m), initial_velocities(m), {}};
  StepSettings s;
  for (int k = 0; k < 40; ++k) step_bisp(m, {}, {}, {}, k * s.h, s, state);
  const auto q = [&](const char* name) {
    return state.q[m.joints[static_cast<std::size_t>(m.find_joint(name))].q_begin];
  };
  EXPECT_NEAR(q("close"), 0.03, 1e-9);
  EXPECT_NEAR(q("follow"), -0.028, 1e-9);
}

Articulation load(const std::string& robot) {
  const auto scene = nlohmann::ordered_json::parse(
      R"({"links": [], "joints": [], "loops": [], "springs": [], "gears": [],
          "method": {"type": "joints", "friction": "bisp"}, "robots": [)" +
      robot + "]}");
  return read_articulation(scene, LIMBER_SOURCE_DIR "/tests/unit/rigid/data");
}

TEST(Urdf, AnArmAsItsMakersDescribeIt) {
  const Articulation a = load(R"({"name": "r", "file": "arm6.urdf", "base": "fixed",
                                          "position": [1, 0, 0], "rotation": [0, 0, 0]})");
  EXPECT_EQ(a.mechanism.velocities, 6);
  double mass = 0;
  for (const Link& l : a.mechanism.links) mass += l.inertia.mass;
  EXPECT_NEAR(mass, 4.0 + 3.7 + 8.4 + 2.3 + 1.2 + 1.2 + 0.25, 1e-12);
  Motion motion;
  update_motion(a.mechanism, a.q, a.v, motion);
  // The world joint lifts the arm onto its table.
  const Vec3 shoulder = motion.links[static_cast<std::size_t>(a.mechanism.find_link("r/shoulder"))].pose.p;
  EXPECT_LT((shoulder - Vec3(1, 0, 0.589)).norm(), 1e-9);
  JointState state{a.q, a.v, {}};
  StepSettings s;
  s.gravity = Vec3(0, 0, -9.81);
  for (int k = 0; k < 100; ++k) step_bisp(a.mechanism, {}, {}, {}, k * s.h, s, state);
  EXPECT_GT((state.q - a.q).norm(), 0.1);  // it falls, unpowered
}

TEST(Urdf, AFourLeggedRobotStandsOnItsFeet) {
  std::string joints;
  for (const char* leg : {"FR", "FL", "RR", "RL"}) {
    const std::string name = leg;
    joints +=
        (joints.empty() ? "\"" : ", \"") + name + R"(_hip_joint": {"q": 0, "stiffness": 200, "damping": 5})";
    joints += ", \"" + name + R"(_thigh_joint": {"q": 0.8, "stiffness": 200, "damping": 5})";
    joints += ", \"" + name + R"(_calf_joint": {"q": -1.6, "stiffness": 200, "damping": 5})";
  }
  const Articulation a = load(R"({"name": "d", "file": "dog.urdf", "base": "free", "position": [0, 0, 0.32],
                      "rotation": [0, 0, 0], "joints": {)" +
                              joints + "}}");
  EXPECT_EQ(a.mechanism.velocities, 6 + 12);
  ObstacleSpec spec;
  spec.shape = "plane";
  spec.normal = Vec3::UnitZ();
  const Obstacle floor = make_obstacle(spec, ".", 0.8);
  JointState state{a.q, a.v, {}};
  StepSettings s;
  s.h = 2e-3;
  s.gravity = Vec3(0, 0, -9.81);
  StepOutcome out;
  double mass = 0;
  for (const Link& l : a.mechanism.links) mass += l.inertia.mass;
  Motion motion;
  for (int k = 0; k < 1500; ++k) {
    update_motion(a.mechanism, state.q, state.v, motion);
    out = step_bisp(a.mechanism, a.surfaces, find_contacts(a, {floor}, motion, k * s.h, s.h), {}, k * s.h, s,
                    state);
  }
  EXPECT_NEAR(out.contact_normal.sum(), 9.81 * mass, 0.02 * 9.81 * mass);
  EXPECT_GT(0.32 + state.q[2], 0.25);  // the trunk
  EXPECT_LT(state.v.norm(), 0.02);
}

TEST(Urdf, FramesThatMoveButCarryNothingAreHeld) {
  const UrdfRobot robot =
      parse_urdf(changed("name=\"tip\" type=\"fixed\"", "name=\"tip\" type=\"continuous\""), "arm.urdf");
  EXPECT_EQ(robot.links.size(), 3u);
  EXPECT_EQ(robot.joints.size(), 3u);
  std::string notices;
  for (const std::string& n : robot.notices) notices += n;
  EXPECT_NE(notices.find("joint \"tip\" was fixed"), std::string::npos);
}

TEST(Urdf, MassesFollowFromShapesWhenTheFileHasNone) {
  std::string text = kGripper;
  for (std::size_t a; (a = text.find("<inertial>")) != std::string::npos;)
    text.erase(a, text.find("</inertial>", a) + 11 - a);
  EXPECT_NE(fault(text).find("no link has a mass: the file describes how the robot looks"),
            std::string::npos);
  for (const char* bare : {"wrist", "palm", "camera"}) {
    const std::string from = std::string("<link name=\"") + bare + "\">";
    const std::size_t at = text.find(from);
    text.insert(at + from.size(),
                "<visual><geometry><cylinder radius=\"0.03\" length=\"0.04\"/></geometry></visual>");
  }
  const UrdfRobot robot = parse_urdf(text, "gripper.urdf", 2000);
  for (const Link& l : robot.links)
    if (l.name == "left") {
      EXPECT_NEAR(l.inertia.mass, 2000 * 0.01 * 0.02 * 0.06, 1e-12);
      EXPECT_NEAR(l.inertia.com[2], 0.03, 1e-15);
      EXPECT_NEAR(l.inertia.I(0, 0), l.inertia.mass * (0.02 * 0.02 + 0.06 * 0.06) / 12, 1e-15);
    }
}

TEST(Urdf, FaultsNameTheirPlace) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(fault(text).find(part), std::string::npos) << fault(text);
  };
  expect("<html></html>", "bad.urdf: expected a <robot> element");
  expect("<robot name=\"a\"><link name=\"b\"></robot>", "bad.urdf:1: found </robot>, expected </link>");
  expect(changed("type=\"continuous\"", "type=\"screw\""),
         "bad.urdf:19: joint \"turn\": type \"screw\" is not supported");
  expect(changed("<child link=\"arm\"/>", "<child link=\"amr\"/>"),
         "joint \"lift\": link \"amr\" does not exist");
  expect(changed("<mass value=\"2\"/>", "<mass value=\"two\"/>"),
         "link \"arm\" <mass>: \"value\" is \"two\", expected a number");
  expect(changed("<limit lower=\"0.05\" upper=\"0.2\"/>", ""), "a prismatic joint needs <limit");
  expect(changed("<limit lower=\"0.05\" upper=\"0.2\"/>",
                 "<limit lower=\"0.05\" upper=\"0.2\"/><mimic joint=\"trun\"/>"),
         "joint \"reach\" <mimic>: there is no joint \"trun\"");
  expect(changed("<limit lower=\"0.05\" upper=\"0.2\"/>",
                 "<limit lower=\"0.05\" upper=\"0.2\"/><mimic joint=\"tip\"/>"),
         "joint \"tip\" is fixed, expected revolute");
  expect(changed("<child link=\"tool\"/>", "<child link=\"tool\"/><mimic joint=\"turn\"/>"),
         "a fixed joint cannot mimic another");
  expect(changed("<limit lower=\"0.05\" upper=\"0.2\"/></joint>\n  <joint name=\"tip\" type=\"fixed\"",
                 "<limit lower=\"0.05\" upper=\"0.2\"/><mimic joint=\"tip\"/></joint>\n  <joint name=\"tip\" "
                 "type=\"continuous\""),
         "joint \"reach\" mimics \"tip\", whose link \"tool\" has no mass and carries none");
  expect(
      "<robot name=\"a\"><link name=\"b\"><visual><geometry><sphere "
      "radius=\"1\"/></geometry></visual></link></robot>",
      "no link has a mass");
  expect(changed("<link name=\"tool\"/>", "<link name=\"tool\"/><link name=\"lost\"/>"),
         "links \"base\" and \"lost\" both hang from nothing");
  expect(changed("ixx=\"0.001\"", "ixx=\"-1\""), "link \"hand\": the smallest principal inertia is -1");
}

// ---- what is drawn encloses what the inertia says
// --------------------------------------------------------------

TEST(LinkSurfaces, AreClosedAndOfTheRightSize) {
  Articulation a;
  std::vector<Link> links;
  std::vector<Joint> joints;
  std::vector<Inertia> exact;
  const auto add = [&](const Shape& s, const Inertia& inertia) {
    Link l;
    l.name = "l" + std::to_string(links.size());
    l.inertia = inertia;
    l.shapes = {s};
    links.push_back(l);
    Joint j;
    j.name = "j" + std::to_string(joints.size());
    j.type = JointType::kFree;
    j.parent = "world";
    j.child = l.name;
    joints.push_back(j);
    exact.push_back(inertia);
  };
  Shape s;
  s.size = Vec3(1, 2, 3);
  add(s, box_inertia(s.size, 1));
  s.radius = 0.5;
  s.length = 0.7;
  s.kind = ShapeKind::kSphere;
  add(s, sphere_inertia(0.5, 1));
  s.kind = ShapeKind::kCylinder;
  add(s, cylinder_inertia(0.5, 0.7, 1));
  s.kind = ShapeKind::kCapsule;
  add(s, capsule_inertia(0.5, 0.7, 1));
  a.mechanism = make_mechanism(links, joints);
  a.q = initial_positions(a.mechanism);
  const LinkSurfaces surfaces = link_surfaces(a);
  ASSERT_EQ(surfaces.parts.size(), links.size());
  for (std::size_t k = 0; k < links.size(); ++k) {
    const LinkPart& part = surfaces.parts[k];
    TriMesh mesh;
    mesh.nodes = surfaces.x;
    for (Index t = part.triangles_begin; t < part.triangles_end; ++t)
      mesh.triangles.push_back(surfaces.triangles[static_cast<std::size_t>(t)]);
    // Throws when open or inside out; polygons are a little smaller than circles.
    EXPECT_NEAR(mesh_inertia(mesh, 1).mass, exact[k].mass, 0.06 * exact[k].mass) << k;
  }
}

}  // namespace
}  // namespace limber::rigid
