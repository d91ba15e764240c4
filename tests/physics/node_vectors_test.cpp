// Initial velocities, accelerations and forces per node, from formulas, arrays, files and mesh fields.
#include <limber/core/error.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>
#include <Eigen/Geometry>

#include <filesystem>
#include <fstream>
#include <functional>

namespace limber::test {
namespace {

class NodeVectorScenes : public testing::Test {
 protected:
  void SetUp() override {
    root_ =
        std::filesystem::path(testing::TempDir()) /
        ("limber_node_vectors_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // A free bar of 3 x 3 x 5 nodes, moved by (1, 2, 3), with further keys.
  std::shared_ptr<const Scene> scene(const std::string& body, const std::string& more = "",
                                     const std::string& mesh = "") {
    const std::filesystem::path file = root_ / "s.json";
    std::ofstream(file) << R"({"limber": 1, "gravity": [0, 0, 0], "bodies": [{"name": "bar", "mesh": )"
                        << (mesh.empty()
                                ? R"({"shape": "bar", "size": [0.04, 0.04, 0.14], "nodes": [3, 3, 5]})"
                                : mesh)
                        << R"(, "translation": [1, 2, 3])" << body << "}]" << more << "}";
    return std::make_shared<const Scene>(load_scene(file.string()));
  }
  Simulation start(std::shared_ptr<const Scene> s) { return Simulation(std::move(s)); }
  static std::string refusal(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInput);
      return e.what();
    }
    return "";
  }
  std::filesystem::path root_;
};

TEST_F(NodeVectorScenes, VelocityFromAFormulaIsTheSpinItDescribes) {
  // omega = (0, 0, 2) about the point (1, 2, 0), once as a formula and once as velocity plus spin.
  Simulation a = start(scene(R"-(, "velocity": ["-2 * (y - 2)", "2 * (x - 1)", 0.5])-"));
  Simulation b = start(scene(R"(, "velocity": [-0.04, 0.04, 0.5], "angular_velocity": [0, 0, 2])"));
  EXPECT_LT((a.state().v - b.state().v).lpNorm<Eigen::Infinity>(), 1e-14);
  EXPECT_GT(b.state().v.lpNorm<Eigen::Infinity>(), 0.4);
}

TEST_F(NodeVectorScenes, VelocityFromArraysFilesAndMeshFields) {
  const TetMesh bar = make_box({.04, .04, .14}, {3, 3, 5});
  std::ofstream text(root_ / "v.txt");
  std::string array;
  Field field{3, {}};
  for (std::size_t i = 0; i < bar.nodes.size(); ++i) {
    text << 0.25 * static_cast<double>(i) << " 1 -2\n";
    array += (i ? ", [" : "[") + std::to_string(0.25 * static_cast<double>(i)) + ", 1, -2]";
    field.values.insert(field.values.end(), {0.25 * static_cast<double>(i), 1.0, -2.0});
  }
  text.close();
  MeshFile file;
  TetMesh with_field = bar;
  with_field.node_fields["push"] = field;
  file.mesh = with_field;
  write_mesh((root_ / "bar.msh").string(), file);
  Simulation a = start(scene(R"(, "velocity": {"file": "v.txt"})"));
  Simulation b = start(scene(R"(, "velocity": {"field": "push"})", "", "\"bar.msh\""));
  Simulation c = start(scene(R"(, "velocity": {"values": [)" + array + "]}"));
  for (Index i = 0; i < a.model().nodes(); ++i) EXPECT_EQ(node(a.state().v, i), Vec3(0.25 * i, 1, -2)) << i;
  EXPECT_EQ(a.state().v, b.state().v);
  EXPECT_EQ(a.state().v, c.state().v);
}

TEST_F(NodeVectorScenes, ForcesPerNode) {
  // A force field of its own on two layers of nodes, against the same sum of weights.
  Simulation sim = start(scene("", R"(, "forces": [
    {"nodes": {"formula": "z > 3.1"}, "force": [0, 0, 3], "acceleration": ["x", "10 * y", 0],
     "force_per_node": [0, 0, "z"], "from": 0.1, "ramp": 0.4}])"));
  const Model& m = sim.model();
  State state = sim.state();
  StepInput in;
  state.t = 0.29;  // the step takes the force at its end: half of it
  script_input(m, state, 0.01, in);
  double mass = 0;
  for (Index i = 0; i < m.nodes(); ++i)
    if (m.mesh.rest[i].z() > 3.1) mass += m.mass[3 * i];
  for (Index i = 0; i < m.nodes(); ++i) {
    const Vec3& x = m.mesh.rest[i];
    const double w = m.mass[3 * i];
    const Vec3 full = x.z() > 3.1 ? Vec3(w * x.x(), 10 * w * x.y(), 3 * w / mass + x.z()) : Vec3(0, 0, 0);
    EXPECT_LT((node(in.force, i) - 0.5 * full).norm(), 1e-13) << i;
  }
  // Full at from + ramp, and not before `from`.
  state.t = 0.6;
  script_input(m, state, 0.01, in);
  EXPECT_NEAR(in.force[3 * (m.nodes() - 1) + 2],
              m.mesh.rest.back().z() + 3 * m.mass[3 * (m.nodes() - 1)] / mass, 1e-12);
  state.t = 0.08;
  script_input(m, state, 0.01, in);
  EXPECT_EQ(in.force.norm(), 0);
}

// Gravity, said in three ways, moves a body to the same place.
TEST_F(NodeVectorScenes, OneAccelerationInThreeWays) {
  std::string list;
  for (int i = 0; i < 45; ++i) list += i ? ", [0, -9.81, 0]" : "[0, -9.81, 0]";
  Simulation plain = start(scene("", R"(, "forces": [{"acceleration": [0, -9.81, 0]}])"));
  Simulation formula = start(scene("", R"(, "forces": [{"acceleration": [0, "-9.81", 0]}])"));
  Simulation array = start(scene("", R"(, "forces": [{"acceleration": {"values": [)" + list + "]}}]"));
  for (int k = 0; k < 10; ++k) {
    plain.step();
    formula.step();
    array.step();
  }
  EXPECT_EQ(plain.state().x, formula.state().x);
  EXPECT_EQ(plain.state().x, array.state().x);
  EXPECT_NEAR(plain.state().v[1], -9.81 * 10 * 5e-3, 1e-9);
}

// The copies that a cut makes of a node share its force.
TEST_F(NodeVectorScenes, ForcesPerNodeSurviveACut) {
  Simulation sim =
      start(scene("", R"(, "events": [{"time": 0.01, "point": [0, 0, 3.07], "normal": [0, 0, 1]}],
    "forces": [{"force_per_node": [0, "x + y", 0], "acceleration": [1, 0, 0]}])"));
  StepInput before = {}, after = {};
  script_input(sim.model(), sim.state(), 0.005, before);
  const auto nodes = sim.model().nodes();
  for (int k = 0; k < 4; ++k) sim.step();
  ASSERT_EQ(sim.model().nodes(), nodes + 9);
  script_input(sim.model(), sim.state(), 0.005, after);
  VecX sum = VecX::Zero(3 * nodes);
  for (Index i = 0; i < sim.model().nodes(); ++i) node(sum, sim.model().origin[i]) += node(after.force, i);
  EXPECT_LT((sum - before.force).lpNorm<Eigen::Infinity>(), 1e-12);
}

TEST_F(NodeVectorScenes, WrongArraysAreNamed) {
  const auto says = [&](const std::string& body, const std::string& more, const std::string& what) {
    const std::string text = refusal([&] { start(scene(body, more)); });
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  std::ofstream(root_ / "short.txt") << "1 2 3\n4 5 6\n";
  says(R"(, "velocity": {"file": "short.txt"})", "",
       "/bodies/0/velocity: " + (root_ / "short.txt").string() +
           " has 6 numbers; expected 135 (3 for each of 45 nodes)");
  says(R"(, "velocity": {"values": [[1, 2, 3]]})", "",
       "/bodies/0/velocity/values: found 1 vectors; expected 45");
  says(R"(, "velocity": {"field": "push"})", "", "/bodies/0/velocity: the mesh has no node field \"push\"");
  says(R"-(, "velocity": ["1 / (x - 1)", 0, 0])-", "", "node 0 at (1, 2, 3) gets (inf");
  says(R"(, "velocity": ["1 +", 0, 0])", "", "/bodies/0/velocity/0");
  says(R"(, "velocity": [0, 0])", "", "expected three numbers [m/s] or formulas of x, y, z");
  says("", R"(, "forces": [{"nodes": {"ids": [0]}, "force_per_node": {"file": "short.txt"}}])",
       "/forces/0/force_per_node: " + (root_ / "short.txt").string() + " has 6 numbers; expected 135");
}

}  // namespace
}  // namespace limber::test
