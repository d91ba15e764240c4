// The recording of a run that was stopped and resumed is that of one that was not.
#include <limber/io/replay.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/recorder.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace limber {
namespace {

namespace fs = std::filesystem;

class Recording : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("limber_recorder_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream(root_ / "s.json") << R"({"limber": 1, "time": {"step": 0.01, "end": 0.3},
      "bodies": [{"name": "a", "mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [5, 3, 3]},
                  "regions": [{"name": "hard", "elements": {"formula": "x > 0.1"}, "young": 1e6}]},
                 {"name": "b", "mesh": {"shape": "rectangle", "size": [0.1, 0.1], "nodes": [3, 3]}}],
      "constraints": [{"body": "a", "nodes": {"set": "x0"}}],
      "events": [{"time": 0.095, "body": "a", "point": [0.1, 0, 0], "normal": [1, 0, 0]}],
      "obstacles": [{"shape": "sphere", "point": [0, -1, 0], "radius": 0.1,
                     "motion": [{"t": 0}, {"t": 0.3, "translation": [3, 0, 0]}]}],
      "output": {"every": 2, "checkpoint_every": 4, "vtu": false}})";
    scene_ = std::make_shared<const Scene>(load_scene((root_ / "s.json").string()));
  }
  void TearDown() override { fs::remove_all(root_); }

  // Runs up to a step; `finish` false leaves everything as a kill would.
  State run(const std::string& name, std::int64_t until, bool finish) {
    RunFolderRequest request;
    request.folder = root_ / name;
    request.resume = true;
    RunFolder folder(*scene_, request);
    Simulation simulation(scene_);
    if (folder.start()) simulation.restore(folder.start()->state);
    Recorder recorder(folder, simulation);
    recorder.begin();
    while (simulation.state().step < until) recorder.record(simulation.step(), 1e-3);
    if (finish) recorder.finish("finished");
    return simulation.state();
  }

  fs::path root_;
  std::shared_ptr<const Scene> scene_;
};

TEST_F(Recording, IsTheSameAfterAKill) {
  const State last = run("whole", 30, true);
  run("parts", 7, false);   // after checkpoint 4, with rows and frames beyond it
  run("parts", 11, false);  // after the cut
  run("parts", 18, false);
  run("parts", 30, true);
  const ReplayReader a(root_ / "whole/replay.lmr"), b(root_ / "parts/replay.lmr");
  EXPECT_EQ(b.damage(), "");
  EXPECT_TRUE(a.finished() && b.finished());
  ASSERT_EQ(a.frame_count(), 16);
  ASSERT_EQ(b.frame_count(), 16);
  ASSERT_EQ(a.topology_count(), 2);
  ASSERT_EQ(b.topology_count(), 2);
  for (Index i = 0; i < a.frame_count(); ++i) {
    const ReplayFrame x = a.frame(i), y = b.frame(i);
    EXPECT_EQ(x.step, 2 * i);
    EXPECT_EQ(y.step, x.step);
    EXPECT_EQ(y.t, x.t);
    EXPECT_EQ(y.topology, x.topology);
    EXPECT_EQ(y.topology, y.step > 10 ? 1 : 0) << "cut at the first step that begins after 0.095 s";
    EXPECT_EQ(y.x, x.x) << "frame " << i;
    ASSERT_EQ(x.obstacles.size(), 1u);
    EXPECT_EQ(y.obstacles[0].translation, x.obstacles[0].translation);
  }
  ASSERT_EQ(a.rows().size(), 30u);
  ASSERT_EQ(b.rows().size(), 30u);
  for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(b.rows()[i].step, static_cast<std::int64_t>(i) + 1);

  // And it is what happened: the last frame is the last state, the sphere has followed its keys.
  const ReplayFrame end = a.frame(15);
  ASSERT_EQ(end.x.size(), static_cast<std::size_t>(last.x.size()));
  for (std::size_t i = 0; i < end.x.size(); ++i)
    EXPECT_EQ(end.x[i], static_cast<float>(last.x[static_cast<Eigen::Index>(i)]));
  EXPECT_NEAR(end.obstacles[0].translation[0], 3, 1e-6);
  EXPECT_NEAR(end.obstacles[0].translation[1], -1, 1e-6);
  const ReplayTopology first = a.topology(0), second = a.topology(1);
  EXPECT_EQ(first.bodies.size(), 2u);
  EXPECT_EQ(first.bodies[1].name, "b");
  EXPECT_GT(second.node_count(), first.node_count()) << "the cut doubles nodes";
  EXPECT_EQ(first.regions.size(), 1 + Simulation(scene_).model().element_sets.size());
}

}  // namespace
}  // namespace limber
