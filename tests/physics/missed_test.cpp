// What ConJac's dynamic nodes and modes miss: where {"auto": n} puts nodes, and what a run says.
#include "scenes.hpp"

#include <limber/scene/load.hpp>

#include <gtest/gtest.h>

namespace limber::test {
namespace {

// A bar, stiff for half of its length and soft beyond, or free and stiff all along.
Simulation half_soft(const std::string& dynamic, bool held = true, const std::string& more = "") {
  const std::string young =
      held ? R"({"layers": {"axis": "z", "bounds": [0.1], "values": [3e6, 1e4]}})" : "1e5";
  const std::string text = R"({"limber": 1, "time": {"step": 0.005, "end": 1}, "gravity": [0, 0, 0],
      "method": {"type": "conjac", "dynamic": )" +
                           dynamic + R"(}, "bodies": [{"name": "bar", "mesh": {"shape": "bar",
      "size": [0.03, 0.03, 0.2], "nodes": [4, 4, 21]}, "material": {"young": )" +
                           young + R"(, "poisson": 0.3}}])" +
                           (held ? R"(, "constraints": [{"nodes": {"set": "z0"}}])" : "") + more + "}";
  return Simulation(std::make_shared<Scene>(read_scene(text, "half-soft.json")));
}

std::vector<Index> nodes_that_are_dynamic(const Simulation& sim) {
  std::vector<Index> out;
  const MethodFields fields = sim.fields();
  for (std::size_t i = 0; i < fields.node.at("dynamic").size(); ++i)
    if (fields.node.at("dynamic")[i] > 0) out.push_back(static_cast<Index>(i));
  return out;
}

// Nodes go where the slowest motions are, not evenly over the body, and less is missed than with even ones.
TEST(AutoNodes, GoWhereTheWorstModeMovesMost) {
  Simulation chosen = half_soft(R"([{"auto": 4}])");
  const double below = chosen.step().extra.at("followed_below");
  for (const Index i : nodes_that_are_dynamic(chosen)) EXPECT_GT(chosen.model().mesh.rest[i].z(), .1);
  EXPECT_EQ(nodes_that_are_dynamic(chosen).size(), 4u);
  Simulation even =
      half_soft(R"([{"nearest": [[0.015, 0.015, 0.05], [0.015, 0.015, 0.1], [0.015, 0.015, 0.15],
                                               [0.015, 0.015, 0.2]]}])");
  EXPECT_GT(below, 1.2 * even.step().extra.at("followed_below"));
  // One node more never lowers what is followed.
  double before = 0;
  for (int n = 1; n < 8; ++n) {
    Simulation more = half_soft("[{\"auto\": " + std::to_string(n) + "}]");
    const double now = more.step().extra.at("followed_below");
    EXPECT_GE(now, .999 * before) << n;
    before = now;
  }
}

// A body that nothing holds: three nodes fix its rigid motions, and need no reserve.
TEST(AutoNodes, FixTheRigidMotionsOfAFreeBody) {
  Simulation sim = half_soft(R"([{"auto": 3}])", false);
  EXPECT_EQ(sim.step().dofs, 9);
  EXPECT_EQ(nodes_that_are_dynamic(sim).size(), 3u);
}

// The node that moves most is on the soft end; a force that comes later, at once, is told of beforehand, and
// one that comes slowly or that modes carry is not.
TEST(Missed, IsSaidWithItsPlace) {
  const auto force = [](double ramp) {
    return R"(, "forces": [{"name": "pull", "nodes": {"set": "z1"}, "force": [0.02, 0, 0], "from": 0.2, "ramp": )" +
           std::to_string(ramp) + "}]";
  };
  const auto warnings = [&](const std::string& dynamic, double ramp) {
    Simulation sim = half_soft(dynamic, true, force(ramp));
    const StepReport r = sim.step();
    EXPECT_GT(sim.model().mesh.rest[static_cast<Index>(r.extra.at("missed_node"))].z(), .1);
    return r.warnings;
  };
  const std::vector<std::string> said = warnings("[]", 0);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("force \"pull\""), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("body \"bar\""), std::string::npos) << said[0];
  EXPECT_TRUE(warnings("[]", 30).empty());
  EXPECT_TRUE(warnings(R"([{"modes": 6}])", 0).empty());
}

}  // namespace
}  // namespace limber::test
