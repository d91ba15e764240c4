#include <limber/view/page.hpp>
#include <limber/view/page_data.hpp>

#include "synthetic.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace limber {
namespace {

using test::BarOptions;
using test::scratch;
using test::write_bar;

// The promise of the page: 10,000 nodes and 200 frames in at most 15 MB, with the inside.
TEST(Page, TenThousandNodesAndTwoHundredFramesFit) {
  const auto folder = scratch("big");
  BarOptions o;
  o.cells = {60, 12, 12};  // 10,309 nodes
  o.frames = 200;
  write_bar(folder / "replay.lmr", o);
  ASSERT_GE(ReplayReader(folder / "replay.lmr").topology(0).node_count(), 10000);
  const view::PageReport r = view::write_page(folder / "replay.lmr", folder / "index.html");
  EXPECT_EQ(r.failure, "");
  EXPECT_EQ(r.frames, 200);
  EXPECT_TRUE(r.inside);
  EXPECT_LE(r.bytes, 15000000u);
  EXPECT_LE(r.error, 1.0 / 65535 / 2 * 1.0001);  // half a step of 16 bits of the length
  std::printf("page %.2f MB, recording %.1f MB\n", double(r.bytes) / 1e6,
              double(std::filesystem::file_size(folder / "replay.lmr")) / 1e6);
}

// And of a reduced run: 100,000 nodes and 1,000 frames in a small file, all frames, with the inside.
TEST(Page, AReducedRunOfAHundredThousandNodesIsSmall) {
  const auto folder = scratch("reduced-big");
  BarOptions o;
  o.cells = {170, 24, 24};  // 106,875 nodes, 587,520 tets
  o.functions = 64;
  o.frames = 1000;
  o.interval = 0.003;
  write_bar(folder / "replay.lmr", o);
  EXPECT_LT(std::filesystem::file_size(folder / "replay.lmr"), 60000000u);  // positions alone would be 1.3 GB
  const view::PageReport r = view::write_page(folder / "replay.lmr", folder / "index.html");
  EXPECT_EQ(r.failure, "");
  EXPECT_EQ(r.frames, 1000);
  EXPECT_LE(r.bytes, 15000000u);
  EXPECT_LE(r.error, 1.0 / 65535);
  std::printf("page %.2f MB (inside: %d), recording %.1f MB\n", double(r.bytes) / 1e6, r.inside,
              double(std::filesystem::file_size(folder / "replay.lmr")) / 1e6);
}

// A new topology in every frame, as cloth that is remeshed has: leaving out frames leaves out topologies as
// well.
TEST(Page, TopologiesOfFramesThatAreLeftOutAreLeftOut) {
  const auto folder = scratch("remeshed");
  {
    ReplayWriter w = ReplayWriter::create(folder / "replay.lmr", ReplayHeader{});
    for (Index i = 0; i < 41; ++i) {
      BarOptions o;
      o.cells = {4 + i % 3, 1, 1};
      const ReplayTopology t = test::bar_topology(o, false);
      if (i < 20 || i >= 30) w.add_topology(t);  // ten frames in the middle share one
      ReplayFrame f;
      f.t = i;
      f.step = i;
      BarOptions shared;
      shared.cells = {4 + 19 % 3, 1, 1};
      f.x = i < 20 || i >= 30 ? t.rest : test::bar_topology(shared, false).rest;
      w.add_frame(f);
    }
    w.finish(nullptr);
  }
  const ReplayReader reader(folder / "replay.lmr");
  view::EncodeOptions options;
  EXPECT_EQ(view::RunEncoder(reader, options, "a").frames(), 41);
  options.every = 4;
  const view::RunEncoder few(reader, options, "a");
  // 0, 4, ... 40, and 29, the last of a topology that lasted.
  EXPECT_EQ(few.frames(), 12);
  EXPECT_EQ(few.manifest().at("epochs").size(), 9u);  // 0, 4, 8, 12, 16, then 19 to 29, 32, 36, 40
  EXPECT_EQ(few.manifest().at("steps").back(), 40);
}

}  // namespace
}  // namespace limber
