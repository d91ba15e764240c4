#include <limber/core/error.hpp>

#include "synthetic.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <random>

namespace limber {
namespace {

using test::BarOptions;
using test::scratch;
using test::write_bar;

std::string slurp(const std::filesystem::path& p) {
  std::ifstream in(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void spill(const std::filesystem::path& p, const std::string& s) { std::ofstream(p, std::ios::binary) << s; }

TEST(Replay, GivesBackWhatWasWritten) {
  const auto path = scratch("roundtrip") / "replay.lmr";
  BarOptions o;
  write_bar(path, o);
  const ReplayReader r(path);
  EXPECT_EQ(r.header().scene, "bending bar");
  EXPECT_EQ(r.header().parameters->at("window"), 10);
  ASSERT_EQ(r.header().obstacles.size(), 2u);
  EXPECT_EQ(r.header().obstacles[1].radius, 0.15);
  EXPECT_EQ(r.frame_count(), o.frames);
  EXPECT_TRUE(r.finished());
  EXPECT_EQ(r.damage(), "");
  const ReplayTopology t = r.topology(0), expected = test::bar_topology(o, false);
  EXPECT_EQ(t.rest, expected.rest);
  EXPECT_EQ(t.elements, expected.elements);
  EXPECT_EQ(t.surface, expected.surface);
  EXPECT_EQ(t.regions, expected.regions);
  EXPECT_EQ(t.element_fields[2].values, expected.element_fields[2].values);
  const ReplayFrame f = r.frame(7);
  EXPECT_EQ(f.x, test::bar_positions(expected, o, 0.14, false));
  EXPECT_EQ(f.step, 14);
  EXPECT_EQ(r.frame_step(7), 14);
  ASSERT_EQ(f.node_fields.size(), 3u);
  EXPECT_EQ(f.node_fields[0].name, "velocity");
  EXPECT_EQ(f.node_fields[0].components, 3);
  EXPECT_FLOAT_EQ(f.obstacles[1].translation[0], static_cast<float>(0.2 * std::sin(3 * 0.14)));
  // Rows come for every step, frames for every second one.
  ASSERT_EQ(r.rows().size(), static_cast<std::size_t>(2 * o.frames - 1));
  EXPECT_EQ(r.rows()[10].step, 10);
  EXPECT_EQ(r.rows()[10].values[3].first, "dofs");
}

TEST(Replay, FramesBelongToTheTopologyOfTheirTime) {
  const auto path = scratch("cut") / "replay.lmr";
  BarOptions o;
  o.cut = true;
  write_bar(path, o);
  const ReplayReader r(path);
  ASSERT_EQ(r.topology_count(), 2);
  EXPECT_EQ(r.frame_topology(o.frames / 2 - 1), 0);
  EXPECT_EQ(r.frame_topology(o.frames / 2), 1);
  EXPECT_GT(r.topology(1).node_count(), r.topology(0).node_count());
  EXPECT_EQ(r.frame(o.frames / 2).x.size(), r.topology(1).rest.size());
}

// A reduced method's frames hold its coordinates; readers get positions.
TEST(Replay, ReducedFramesAreSmallAndGiveBackPositions) {
  const auto folder = scratch("reduced");
  BarOptions o;
  ReplayTopology t = test::bar_topology(o, false);
  t.node_fields.clear();
  t.element_fields.clear();
  const Index n = t.node_count();
  t.functions = 2;  // 1 and X
  for (Index i = 0; i < n; ++i) {
    t.basis.push_back(1);
    t.basis.push_back(t.rest[3 * static_cast<std::size_t>(i)]);
  }
  {
    ReplayWriter w = ReplayWriter::create(folder / "replay.lmr", ReplayHeader{});
    w.add_topology(t);
    for (int k = 0; k < 3; ++k) {
      ReplayFrame f;
      f.step = k;
      f.coordinates = {0.5f * static_cast<float>(k), 0, 0, 0, 0.25f, 0};
      w.add_frame(f);
    }
    ReplayFrame whole;  // positions may still be given
    whole.step = 3;
    whole.x = t.rest;
    w.add_frame(whole);
    ReplayFrame wrong;
    wrong.coordinates = {1, 2, 3};
    EXPECT_THROW(w.add_frame(wrong), Error);
  }
  EXPECT_LT(std::filesystem::file_size(folder / "replay.lmr"), 20u * static_cast<std::size_t>(n) + 4000);
  const ReplayReader r(folder / "replay.lmr");
  ASSERT_EQ(r.frame_count(), 4);
  const ReplayFrame f = r.frame(2);
  ASSERT_EQ(f.x.size(), t.rest.size());
  for (std::size_t i = 0; i < f.x.size(); i += 3) {
    EXPECT_FLOAT_EQ(f.x[i], t.rest[i] + 1);
    EXPECT_FLOAT_EQ(f.x[i + 1], t.rest[i + 1] + 0.25f * t.rest[i]);
    EXPECT_FLOAT_EQ(f.x[i + 2], t.rest[i + 2]);
  }
  EXPECT_EQ(r.frame(3).x, t.rest);
  ReplayWriter again = ReplayWriter::resume(folder / "replay.lmr", 1, 1);
  ReplayFrame f2;
  f2.step = 2;
  f2.coordinates = {0, 0, 0, 0, 0, 0};
  again.add_frame(f2);
  EXPECT_EQ(ReplayReader(folder / "replay.lmr").frame(2).x, t.rest);
}

// However the file is cut short, the frames before the cut are there, unchanged.
// Velocities come as coordinates too, and are a field for whoever reads.
TEST(Replay, ReducedVelocitiesAreAField) {
  const auto folder = scratch("reduced-velocities");
  BarOptions o;
  o.functions = 6;
  o.frames = 3;
  write_bar(folder / "reduced.lmr", o);
  o.positions = true;
  write_bar(folder / "positions.lmr", o);
  const ReplayReader reduced(folder / "reduced.lmr"), positions(folder / "positions.lmr");
  const ReplayFrame a = reduced.frame(2), b = positions.frame(2), bare = reduced.frame(2, false);
  ASSERT_EQ(a.node_fields.front().name, "velocity");
  const std::vector<float>&v = a.node_fields.front().values, &w = b.node_fields.front().values;
  ASSERT_EQ(v.size(), w.size());
  float most = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    EXPECT_NEAR(v[i], w[i], 2e-4);
    EXPECT_NEAR(a.x[i], b.x[i], 1e-6);
    most = std::max(most, std::abs(v[i]));
  }
  EXPECT_GT(most, 0.1f);
  EXPECT_TRUE(bare.x.empty());
  EXPECT_EQ(bare.coordinates.size(), 18u);
  EXPECT_EQ(bare.velocity_coordinates, a.velocity_coordinates);
  EXPECT_EQ(bare.node_fields.size(), 1u);
  ReplayWriter w2 = ReplayWriter::resume(folder / "reduced.lmr", 100, 1);
  ReplayFrame wrong;
  wrong.coordinates.resize(18);
  wrong.velocity_coordinates.resize(17);
  wrong.obstacles.resize(2);
  EXPECT_THROW(w2.add_frame(wrong), Error);
}

TEST(Replay, EveryTruncationKeepsTheEarlierFrames) {
  const auto folder = scratch("truncated");
  BarOptions o;
  o.cells = {3, 1, 1};
  o.frames = 4;
  write_bar(folder / "whole.lmr", o);
  const ReplayReader whole(folder / "whole.lmr");
  const std::string bytes = slurp(folder / "whole.lmr");
  Index last = 0;
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    spill(folder / "part.lmr", bytes.substr(0, size));
    try {
      const ReplayReader part(folder / "part.lmr");
      EXPECT_GE(part.frame_count(), last);
      last = part.frame_count();
      for (Index i = 0; i < last; ++i) ASSERT_EQ(part.frame(i).x, whole.frame(i).x);
      EXPECT_FALSE(part.finished());
    } catch (const Error& e) {
      EXPECT_EQ(last, 0);  // only as long as the header is not whole
      EXPECT_EQ(e.kind(), ErrorKind::kIo);
    }
  }
  EXPECT_EQ(last, o.frames);
}

// Any changed byte is either noticed (and the rest still read) or makes the file unreadable with a message;
// never wrong numbers.
TEST(Replay, ChangedBytesAreNoticed) {
  const auto folder = scratch("flipped");
  BarOptions o;
  o.cells = {3, 1, 1};
  o.frames = 5;
  write_bar(folder / "whole.lmr", o);
  const ReplayReader whole(folder / "whole.lmr");
  const std::string bytes = slurp(folder / "whole.lmr");
  std::mt19937 rng(1);
  for (int k = 0; k < 300; ++k) {
    std::string bad = bytes;
    bad[rng() % bad.size()] ^= static_cast<char>(1 << (rng() % 8));
    spill(folder / "bad.lmr", bad);
    try {
      const ReplayReader r(folder / "bad.lmr");
      EXPECT_NE(r.damage(), "");
      for (Index i = 0; i < r.frame_count(); ++i) {
        const ReplayFrame f = r.frame(i);
        bool found = false;
        for (Index j = 0; j < whole.frame_count(); ++j)
          if (whole.frame_step(j) == f.step) found = whole.frame(j).x == f.x;
        EXPECT_TRUE(found);
      }
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kIo);
      EXPECT_NE(std::string(e.what()).find("bad.lmr"), std::string::npos);
    }
  }
}

TEST(Replay, OneDamagedFrameDoesNotHideTheOthers) {
  const auto folder = scratch("one_frame");
  BarOptions o;
  write_bar(folder / "replay.lmr", o);
  std::string bytes = slurp(folder / "replay.lmr");
  std::size_t at = 0;
  for (int k = 0; k < 4; ++k) at = bytes.find("FRAM", at + 1);
  bytes[at + 200] ^= 1;
  spill(folder / "replay.lmr", bytes);
  const ReplayReader r(folder / "replay.lmr");
  EXPECT_EQ(r.frame_count(), o.frames - 1);
  EXPECT_EQ(r.frame_step(3), 8);
  EXPECT_NE(r.damage().find("1 damaged part of the recording was left out"), std::string::npos) << r.damage();
}

// Stopped after step 21 (a checkpoint between two frames), resumed, and run to the end: the same file
// contents as without the stop.
TEST(Replay, ResumeContinuesAsIfNothingHadHappened) {
  const auto folder = scratch("resume");
  BarOptions o;
  o.cut = true;
  write_bar(folder / "whole.lmr", o);
  const ReplayReader whole(folder / "whole.lmr");
  for (const std::int64_t step : {0, 5, 21, 26, 39}) {
    const auto path = folder / ("resumed" + std::to_string(step) + ".lmr");
    std::filesystem::copy_file(folder / "whole.lmr", path);
    {
      ReplayWriter w = ReplayWriter::resume(path, step, step >= 20 ? 2 : 1);
      EXPECT_EQ(w.topologies(), step >= 20 ? 2 : 1);
      EXPECT_EQ(w.frames(), step / 2 + 1);
      std::size_t row = 0;
      auto rows_until = [&](std::int64_t s) {
        for (; row < whole.rows().size() && whole.rows()[row].step <= s; ++row)
          if (whole.rows()[row].step > step) w.add_row(whole.rows()[row]);
      };
      for (Index i = w.frames(); i < whole.frame_count(); ++i) {
        if (whole.frame_topology(i) >= w.topologies()) w.add_topology(whole.topology(w.topologies()));
        rows_until(whole.frame_step(i));
        w.add_frame(whole.frame(i));
      }
      w.finish(whole.summary());
    }
    const ReplayReader r(path);
    EXPECT_EQ(r.damage(), "");
    EXPECT_EQ(r.topology_count(), 2);
    ASSERT_EQ(r.frame_count(), whole.frame_count());
    for (Index i = 0; i < r.frame_count(); ++i) {
      EXPECT_EQ(r.frame_step(i), whole.frame_step(i));
      EXPECT_EQ(r.frame(i).x, whole.frame(i).x);
    }
    ASSERT_EQ(r.rows().size(), whole.rows().size());
    for (std::size_t i = 0; i < r.rows().size(); ++i) {
      EXPECT_EQ(r.rows()[i].step, whole.rows()[i].step);
      EXPECT_EQ(r.rows()[i].values, whole.rows()[i].values);
    }
  }
}

TEST(Replay, AGrowingFileIsFollowed) {
  const auto path = scratch("growing") / "replay.lmr";
  BarOptions o;
  const ReplayTopology t = test::bar_topology(o, false);
  ReplayWriter w = ReplayWriter::create(path, {});
  ReplayReader r(path);
  EXPECT_FALSE(r.refresh());
  w.add_topology(t);
  for (Index i = 0; i < 3; ++i) {
    ReplayFrame f;
    f.step = i;
    f.x = test::bar_positions(t, o, 0.1 * i, false);
    w.add_frame(f);
    EXPECT_TRUE(r.refresh());
    ASSERT_EQ(r.frame_count(), i + 1);
    EXPECT_EQ(r.frame(i).x, f.x);
  }
  EXPECT_FALSE(r.finished());
  w.finish(nlohmann::json::object());
  r.refresh();
  EXPECT_TRUE(r.finished());
}

TEST(Replay, WrongCallsAreRefused) {
  const auto path = scratch("wrong") / "replay.lmr";
  ReplayWriter w = ReplayWriter::create(path, {});
  EXPECT_THROW(w.add_frame({}), Error);
  w.add_topology(test::bar_topology({}, false));
  ReplayFrame f;
  f.x = {1, 2, 3};
  EXPECT_THROW(w.add_frame(f), Error);
  spill(path, "something else");
  EXPECT_THROW(ReplayReader{path}, Error);
  EXPECT_THROW(ReplayReader{path.parent_path() / "none.lmr"}, Error);
}

}  // namespace
}  // namespace limber
