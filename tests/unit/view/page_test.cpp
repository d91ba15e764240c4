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

}  // namespace
}  // namespace limber
