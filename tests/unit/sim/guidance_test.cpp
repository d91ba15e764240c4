// What a program may do to a simulation between steps.
#include <limber/limber.hpp>

#include <fmt/format.h>
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

// What was done for the sake of the step is undone with it: events, a cut, another model.
TEST(Guidance, AFailedStepTakesItsEventsBack) {
  for (const char* method : {"vanilla", "conjac", "mixed"})
    for (const bool first_fits : {true, false}) {
      Simulation s = swinging_bar(), same = swinging_bar();
      const auto set = [&](Simulation& to, const char* path, const std::string& value) {
        EventSpec e;
        e.type = "set";
        e.time = to.time();
        e.path = path;
        e.value = value;
        to.add_event(e);
      };
      for (Simulation* each : {&s, &same}) {
        set(*each, "/method", fmt::format(R"({{"type": "{}"}})", method));
        take_steps(*each, 2);
      }
      const std::uint64_t before = hash_state(s.state());
      set(s, "/gravity", "[0, 3, 0]");
      if (first_fits) set(s, "/bodies/0/material/young", "1e6");
      set(s, "/method", R"({"type": "cloth"})");  // the scene allows it, the bar does not
      EXPECT_THROW(s.step(), Error) << method;
      EXPECT_EQ(hash_state(s.state()), before) << method;
      EXPECT_EQ(s.scene().method, method);
      EXPECT_LT(s.scene().gravity.y(), 0);
      EXPECT_EQ(s.withdraw_events(1), first_fits ? 3u : 2u);
      take_steps(s, 3);
      take_steps(same, 3);
      EXPECT_EQ(hash_state(s.state()), hash_state(same.state())) << method;
    }
}

TEST(Guidance, AFailedStepAfterAnEventSaysSoAgain) {
  Simulation s = swinging_bar();
  take_steps(s, 2);
  const std::uint64_t before = hash_state(s.state());
  EventSpec e;
  e.type = "set";
  e.time = s.time();
  e.path = "/gravity";
  e.value = "[0, 1e200, 0]";
  s.add_event(e);
  for (int k = 0; k < 2; ++k) {
    EXPECT_THROW(s.step(), StepFailure);
    EXPECT_EQ(hash_state(s.state()), before);
  }
}

}  // namespace
}  // namespace limber
