// What a program may do to a simulation between steps.
#include <limber/limber.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

Simulation swinging_bar(const std::string& more = "") {
  return Simulation(
      std::make_shared<const Scene>(read_scene(R"({"limber": 1, "time": {"step": 0.005, "end": 0.1},
                     "bodies": [{"name": "bar", "mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [9, 3, 3]}}],
                     "constraints": [{"nodes": {"set": "x0"}})" +
                                                   more + "]}",
                                               "bar.json")));
}

void take_steps(Simulation& s, int n) {
  for (int k = 0; k < n; ++k) s.step();
}

TEST(Guidance, HoldsWhatAConstraintOfTheSceneHolds) {
  Simulation theirs = swinging_bar(R"(, {"nodes": {"set": "x1"}, "axes": "yz"})"), mine = swinging_bar();
  Guidance g;
  g.fixed.assign(3 * at(mine.model().nodes()), 0);
  g.fixed_velocity.setZero(3 * static_cast<Eigen::Index>(mine.model().nodes()));
  for (const Index i : mine.model().node_sets.at("bar/x1"))
    g.fixed[3 * at(i) + 1] = g.fixed[3 * at(i) + 2] = 1;
  mine.set_guidance(g);
  take_steps(theirs, 5);
  take_steps(mine, 5);
  EXPECT_EQ(hash_state(mine.state()), hash_state(theirs.state()));
  EXPECT_EQ(mine.input().fixed, theirs.input().fixed);
  // Let go, it is the script alone again.
  Simulation free = swinging_bar();
  free.set_motion(mine.state().x, mine.state().v);
  mine.set_motion(mine.state().x, mine.state().v);
  mine.set_guidance({});
  EXPECT_EQ(mine.input().fixed, theirs.input().fixed) << "of the last step";
  take_steps(mine, 3);
  take_steps(free, 3);
  EXPECT_EQ(mine.state().x, free.state().x);
}

TEST(Guidance, RefusesWhatDoesNotFit) {
  Simulation s = swinging_bar();
  Guidance g;
  g.force.setZero(5);
  EXPECT_THROW(s.set_guidance(g), Error);
  g.force.setConstant(3 * static_cast<Eigen::Index>(s.model().nodes()), NAN);
  EXPECT_THROW(s.set_guidance(g), Error);
  EXPECT_THROW(s.set_motion(VecX::Zero(6), s.state().v), Error);
  take_steps(s, 1);
}

TEST(Guidance, AFailedStepSaysItsParts) {
  Simulation s = swinging_bar();
  take_steps(s, 2);
  const std::uint64_t before = hash_state(s.state());
  Guidance g;
  g.force.setConstant(3 * static_cast<Eigen::Index>(s.model().nodes()), 1e200);
  s.set_guidance(g);
  try {
    take_steps(s, 2);
    FAIL() << "a force of 1e200 N should not pass";
  } catch (const StepFailure& e) {
    EXPECT_EQ(e.step, 2);
    EXPECT_FALSE(e.why.empty());
    EXPECT_NE(std::string(e.what()).find(e.remedy), std::string::npos);
    EXPECT_EQ(e.kind(), ErrorKind::kSimulation);
  }
  EXPECT_EQ(hash_state(s.state()), before);
}

}  // namespace
}  // namespace limber
