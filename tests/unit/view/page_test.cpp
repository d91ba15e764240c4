#include <limber/view/page.hpp>

#include "synthetic.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace limber
