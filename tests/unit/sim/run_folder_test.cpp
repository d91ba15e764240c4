// Checkpoints, steps.csv and the rules of run folders.
#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/methods/conjac/memory.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/checkpoint.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/run_folder.hpp>
#include <limber/sim/step_table.hpp>
#include <limber/sim/timings.hpp>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

namespace limber {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("limber_folder_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  Scene scene(const std::string& name = "s", const std::string& more = "") {
    const fs::path file = root_ / (name + ".json");
    std::ofstream(file) << "{\"limber\": 1, \"bodies\": [{\"mesh\": {\"shape\": \"box\"}}]" << more << "}";
    return load_scene(file.string());
  }
  fs::path root_;
};

State sample_state() {
  State s;
  s.t = 0.125;
  s.step = 25;
  s.epoch = 1;
  s.x = VecX::LinSpaced(30, -1, 1);
  s.v = VecX::LinSpaced(30, 0, 5);
  s.events_done = {0};
  s.contact_pairs = {4, 1};
  s.contact_anchors = {0.1, 0.2, 0.3};
  s.memory = MethodMemory::of(ConJacMemory{.dynamic = {1, 0, 1},
                                           .region_age = {3, -7},
                                           .liveliness_window = {0.5, 0.25},
                                           .liveliness_steps = 2},
                              1);
  return s;
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Hash, EveryMemberOfTheStateCounts) {
  const State s = sample_state();
  const std::uint64_t h = hash_state(s);
  EXPECT_EQ(h, hash_state(sample_state()));
  int members = 0;
  visit(s, [&](const char*, const auto&) { ++members; });
  for (int m = 0; m < members; ++m) {
    State other = sample_state();
    int i = 0;
    const char* changed = "";
    visit(other, [&](const char* name, auto& value) {
      if (i++ != m) return;
      changed = name;
      if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
        value += 1;
      else {
        if (value.size() == 0) {
          value.resize(1);
          value[0] = 0;
        }
        value[0] = static_cast<std::decay_t<decltype(value[0])>>(value[0] + 1);
      }
    });
    EXPECT_NE(hash_state(other), h) << changed;
  }
  State minus = s, plus = s;
  minus.x[3] = -0.0;
  plus.x[3] = 0.0;
  EXPECT_NE(hash_state(minus), hash_state(plus)) << "bits, not values";
  // And of what the method remembers.
  std::vector<std::string> names;
  s.memory.visit([&](const char* name, ConstFieldRef) { names.push_back(name); });
  ASSERT_GE(names.size(), 5u);
  for (const std::string& changed : names) {
    State other = s;
    other.memory.visit([&](const char* name, FieldRef field) {
      if (name != changed) return;
      std::visit(
          [](auto* value) {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(*value)>>)
              *value += 1;
            else {
              value->resize(value->size() + 1);
              std::fill(value->begin(), value->end(), std::decay_t<decltype((*value)[0])>{});
            }
          },
          field);
    });
    EXPECT_NE(hash_state(other), h) << changed;
    EXPECT_EQ(hash_state(s), h) << "a copy of a state has a memory of its own";
  }
}

TEST_F(Folder, CheckpointsKeepEveryBit) {
  Checkpoint c;
  c.state = sample_state();
  c.method = "conjac";
  c.state.x[0] = std::nextafter(1.0, 2.0);
  c.scene_hash = 0x123456789abcdef0u;
  *c.notes = {{"wall", 1.5}};
  const fs::path file = root_ / checkpoint_name(25);
  write_checkpoint(file, c);
  const Checkpoint back = read_checkpoint(file);
  EXPECT_EQ(hash_state(back.state), hash_state(c.state));
  EXPECT_EQ(back.state.memory.epoch(), 1);
  EXPECT_EQ(back.scene_hash, c.scene_hash);
  EXPECT_EQ(back.notes["wall"], 1.5);
  EXPECT_FALSE(fs::exists(file.string() + ".tmp"));
}

TEST_F(Folder, DamagedCheckpointsAreRefused) {
  Checkpoint c;
  c.state = sample_state();
  c.method = "conjac";
  const fs::path file = root_ / "a.lmc";
  write_checkpoint(file, c);
  const std::string good = read_file(file.string());
  EXPECT_NO_THROW(parse_checkpoint(good, "good"));
  // Cut anywhere, and one bit wrong anywhere.
  for (std::size_t n = 0; n < good.size(); ++n)
    EXPECT_THROW(parse_checkpoint(std::string_view(good).substr(0, n), "cut"), Error) << n;
  for (std::size_t n = 0; n < good.size(); ++n) {
    std::string bad = good;
    bad[n] = static_cast<char>(bad[n] ^ 4);
    EXPECT_THROW(parse_checkpoint(bad, "flipped"), Error) << n;
  }
  EXPECT_NE(message([&] { parse_checkpoint(good + "x", "longer"); }), "");
  EXPECT_NE(message([&] { parse_checkpoint("LIMBERCK", "short"); }).find("not a checkpoint"),
            std::string::npos);
  // Right checksum, wrong inside: what a fuzzer cannot reach without help.
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good.substr(0, good.size() - 8);
    for (unsigned k = 1 + random() % 3; k > 0; --k)
      bad[16 + random() % (bad.size() - 16)] = static_cast<char>(random());
    const std::uint64_t sum = hash_bytes(bad);
    bad.append(reinterpret_cast<const char*>(&sum), 8);
    try {
      (void)parse_checkpoint(bad, "inside");
    } catch (const Error&) {
    }
  }
}

TEST_F(Folder, NewestCheckpointFirst) {
  for (const int step : {5, 100, 20}) write_checkpoint(root_ / checkpoint_name(step), {});
  std::ofstream(root_ / "note.txt") << "x";
  std::ofstream(root_ / "7.lmc") << "x";
  const auto files = list_checkpoints(root_);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].step, 100);
  EXPECT_EQ(files[2].step, 5);
}

TEST_F(Folder, StepTableWidensAndResumes) {
  const fs::path file = root_ / "steps.csv";
  {
    StepTable table = StepTable::create(file);
    table.add({{"step", "0"}, {"t", "0"}});
    table.add({{"step", "1"}, {"t", "0.5"}, {"a_ms", "3"}});
    table.add({{"step", "2"}, {"t", "1"}});
    table.add({{"step", "3"}, {"t", "1.5"}, {"b_ms", "4"}, {"a_ms", "5"}});
  }
  EXPECT_EQ(read_file(file.string()), "step,t,a_ms,b_ms\n0,0,0,0\n1,0.5,3,0\n2,1,0,0\n3,1.5,5,4\n");
  std::ofstream(file, std::ios::app) << "4,2,1,1\n5,2.5,";  // killed while writing
  {
    StepTable table = StepTable::resume(file, 9);
    ASSERT_EQ(table.kept().size(), 5u);
    EXPECT_EQ(table.kept()[4].second, 2);
  }
  {
    StepTable table = StepTable::resume(file, 2);
    EXPECT_EQ(table.kept().size(), 3u);
    table.add({{"step", "3"}, {"t", "9"}});
  }
  EXPECT_EQ(read_file(file.string()), "step,t,a_ms,b_ms\n0,0,0,0\n1,0.5,3,0\n2,1,0,0\n3,9,0,0\n");
  fs::remove(file);
  EXPECT_TRUE(StepTable::resume(file, 5).kept().empty());
}

TEST_F(Folder, StepTableQuotesNames) {
  const fs::path file = root_ / "steps.csv";
  const std::string head = "step,t,\"reaction/left, \"\"upper\"\"/x\",probe/two lines,a_ms\n";
  {
    StepTable table = StepTable::create(file);
    table.add({{"step", "0"}, {"t", "0"}, {"reaction/left, \"upper\"/x", "1"}, {"probe/two\nlines", "2"}});
    table.add({{"step", "1"},
               {"t", "1"},
               {"reaction/left, \"upper\"/x", "3"},
               {"probe/two\nlines", "4"},
               {"a_ms", "5"}});
  }
  EXPECT_EQ(read_file(file.string()), head + "0,0,1,2,0\n1,1,3,4,5\n");
  {
    StepTable table = StepTable::resume(file, 1);
    EXPECT_EQ(table.damaged(), 0u);
    EXPECT_EQ(table.kept().size(), 2u);
    table.add({{"step", "2"}, {"t", "2"}, {"probe/two\nlines", "7"}, {"reaction/left, \"upper\"/x", "6"}});
  }
  EXPECT_EQ(read_file(file.string()), head + "0,0,1,2,0\n1,1,3,4,5\n2,2,6,7,0\n");
}

TEST_F(Folder, DamagedRowsAreDroppedAndOthersKept) {
  const fs::path file = root_ / "steps.csv";
  const std::string head = "step,t,E_kin,fallbacks,hash\n", hash = "0123456789abcdef";
  const auto row = [&](const std::string& step, const std::string& energy, const std::string& fallbacks) {
    return step + ",0.5," + energy + "," + fallbacks + "," + hash + "\n";
  };
  const auto resumed = [&](const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    return StepTable::resume(file, 9);
  };
  const std::string good = row("0", "1e-3", "") + row("1", "nan", "halved_step:2") + row("2", "-3", "");
  EXPECT_EQ(resumed(head + good).damaged(), 0u);
  EXPECT_EQ(read_file(file.string()), head + good);
  for (const std::string& bad :
       {row("3", "1.5x", ""), row("3", std::string("1\0", 2), ""), row("", "1", ""), row("3", "1", "\x01"),
        row("x", "1", ""), row("2", "1", ""), row("-1", "1", ""), std::string("3,0.5,1,\n"),
        std::string("\n"), "3,0.5,1,,0123456789abcdeg\n" + std::string()}) {
    const StepTable table = resumed(head + good + bad + row("4", "7", ""));
    EXPECT_EQ(table.damaged(), 1u) << bad;
    ASSERT_EQ(table.kept().size(), 4u) << bad;
    EXPECT_EQ(table.kept()[3].first, 4);
    EXPECT_EQ(read_file(file.string()), head + good + row("4", "7", "")) << bad;
  }
  // Without a header nobody knows what the numbers mean.
  EXPECT_EQ(resumed("stxp,t,E_kin,fallbacks,hash\n" + good).damaged(), 3u);
  EXPECT_EQ(read_file(file.string()), "");
}

TEST_F(Folder, SceneHashFollowsTheMotion) {
  const std::uint64_t h = hash_scene(scene());
  EXPECT_EQ(hash_scene(scene("other")), h) << "the name does not matter";
  EXPECT_EQ(hash_scene(scene("s", ", \"time\": {\"end\": 9}, \"output\": {\"every\": 3}")), h);
  EXPECT_NE(hash_scene(scene("s", ", \"time\": {\"step\": 0.001}")), h);
  EXPECT_NE(hash_scene(scene("s", ", \"gravity\": [0, 0, 1]")), h);
}

TEST_F(Folder, RulesOfReplacement) {
  const Scene a = scene("a"), b = scene("b");
  RunFolderRequest request;
  request.folder = root_ / "run";
  {
    RunFolder run(a, request);
    EXPECT_FALSE(run.start());
    EXPECT_TRUE(run.notices().empty());
    EXPECT_NE(message([&] { RunFolder second(a, request); }).find("another limber is writing"),
              std::string::npos);
    run.manifest["status"] = "running";
    run.manifest["steps"] = 7;
    run.manifest["target_steps"] = 100;
    run.write_manifest();
  }
  EXPECT_NE(message([&] { RunFolder again(a, request); }).find("an unfinished run, at step 7 of 100"),
            std::string::npos);
  {
    RunFolderRequest over = request;
    over.overwrite = true;
    RunFolder run(a, over);
    EXPECT_FALSE(fs::exists(request.folder / "run.json")) << "the old run is gone before the new one begins";
    run.manifest["status"] = "finished";
    run.write_manifest();
  }
  EXPECT_NE(message([&] { RunFolder other(b, request); }).find("holds a run of another scene"),
            std::string::npos);
  {
    RunFolder run(a, request);
    ASSERT_EQ(run.notices().size(), 1u);
    EXPECT_NE(run.notices()[0].find("replacing the finished run"), std::string::npos);
  }
  // Files of others are never touched.
  fs::create_directories(root_ / "mine");
  std::ofstream(root_ / "mine" / "thesis.tex") << "x";
  request.folder = root_ / "mine";
  request.overwrite = true;
  EXPECT_NE(message([&] { RunFolder run(a, request); }).find("not a run (it has thesis.tex)"),
            std::string::npos);
  request.folder = root_ / "a.json" / "below";
  EXPECT_NE(message([&] { RunFolder run(a, request); }).find("cannot make the run folder"),
            std::string::npos);
}

TEST_F(Folder, ResumeTakesTheNewestGoodCheckpoint) {
  Scene a = scene("a");
  a.output.vtu = true;
  RunFolderRequest request;
  request.folder = root_ / "run";
  {
    RunFolder run(a, request);
    Checkpoint c;
    c.scene_hash = run.scene_hash();
    for (const int step : {10, 20, 30}) {
      c.state.step = step;
      write_checkpoint(request.folder / "checkpoints" / checkpoint_name(step), c);
      std::ofstream(request.folder / "frames" / frame_name(step, ".vtu")) << "x";
    }
    run.manifest["status"] = "running";
    run.write_manifest();
  }
  // The newest one is damaged.
  std::fstream(request.folder / "checkpoints" / checkpoint_name(30), std::ios::in | std::ios::out)
      .seekp(40)
      .put('!');
  request.resume = true;
  {
    RunFolder run(a, request);
    ASSERT_TRUE(run.start());
    EXPECT_EQ(run.start()->state.step, 20);
    ASSERT_EQ(run.notices().size(), 2u);
    EXPECT_NE(run.notices()[0].find("is damaged"), std::string::npos) << run.notices()[0];
    EXPECT_FALSE(fs::exists(request.folder / "frames" / frame_name(30, ".vtu")));
    EXPECT_TRUE(fs::exists(request.folder / "frames" / frame_name(20, ".vtu")));
  }
  request.checkpoint = request.folder / "checkpoints" / checkpoint_name(10);
  EXPECT_EQ(RunFolder(a, request).start()->state.step, 10);
  request.checkpoint.reset();
  const Scene changed = scene("a", ", \"gravity\": [0, 0, 1]");
  EXPECT_NE(message([&] { RunFolder run(changed, request); }).find("has changed since"), std::string::npos);
  request.folder = root_ / "nothing";
  RunFolder fresh(a, request);
  EXPECT_FALSE(fresh.start());
  EXPECT_NE(fresh.notices()[0].find("no run to go on with"), std::string::npos);
}

TEST(Timings, MeanPercentileAndTree) {
  Timings t;
  for (int i = 1; i <= 100; ++i) {
    t.add("step", 1e-3 * i);
    t.add("step/solve", 0.5e-3 * i);
    t.add("step/solve/back", 0.1e-3 * i);
    t.add("step/assemble", 0.2e-3 * i);
  }
  t.add("record", 1e-3);
  const Timings::Phase& step = t.phases()[0];
  EXPECT_NEAR(step.sum, 5.05, 1e-12);
  EXPECT_EQ(step.max, 0.1);
  EXPECT_NEAR(step.percentile(0.95), 0.095, 0.02 * 0.095);
  const std::string table = t.table(5.05);
  const auto line = [&](const char* text) { return table.find(text); };
  EXPECT_LT(line("\n  step "), line("\n    solve "));
  EXPECT_LT(line("\n    solve "), line("\n      back "));
  EXPECT_LT(line("\n      back "), line("\n    assemble "));
  EXPECT_LT(line("\n    assemble "), line("\n  record "));
}

}  // namespace
}  // namespace limber
