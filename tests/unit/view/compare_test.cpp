#include <limber/core/error.hpp>
#include <limber/view/compare.hpp>

#include "synthetic.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace limber {
namespace {

using test::BarOptions;
using test::scratch;

// A bar that moves at constant speed along x, recorded every `dt`, lifted by `lift`.
void write_moving(const std::filesystem::path& path, double dt, Index frames, float lift, double ms) {
  const ReplayTopology t = test::bar_topology({}, false);
  ReplayHeader h;
  h.method = "moving";
  ReplayWriter w = ReplayWriter::create(path, h);
  w.add_topology(t);
  for (Index i = 0; i < frames; ++i) {
    ReplayFrame f;
    f.step = i;
    f.t = dt * i;
    f.x = t.rest;
    for (std::size_t k = 0; k < f.x.size(); k += 3) {
      f.x[k] += static_cast<float>(0.5 * f.t);
      f.x[k + 1] += lift;
    }
    w.add_row({i, f.t, {{"dofs", 30.0}, {"phase/solve", ms}, {"phase/solve/inner", 99.0}}});
    w.add_frame(f);
  }
}

TEST(Compare, AConstantOffsetIsTheDistance) {
  const auto folder = scratch("compare_offset");
  write_moving(folder / "a.lmr", 0.1, 11, 0, 4);
  write_moving(folder / "b.lmr", 0.1, 11, 0.03f, 1);
  const ReplayReader a(folder / "a.lmr"), b(folder / "b.lmr");
  const view::Comparison c = view::compare_runs({&a, &b}, {"a", "b"});
  ASSERT_EQ(c.distance[1].t.size(), 11u);
  for (std::size_t i = 0; i < 11; ++i) {
    EXPECT_NEAR(c.distance[1].max[i], 0.03, 1e-6);
    EXPECT_NEAR(c.distance[1].rms[i], 0.03, 1e-6);
  }
  // Inner phases are part of their outer one.
  EXPECT_DOUBLE_EQ(c.costs[0].ms_per_step, 4);
  EXPECT_DOUBLE_EQ(c.costs[1].ms_per_step, 1);
  EXPECT_DOUBLE_EQ(c.costs[1].dofs, 30);
}

// Motion at constant speed is interpolated exactly: other frame times make no distance.
TEST(Compare, OtherFrameTimesAreInterpolated) {
  const auto folder = scratch("compare_times");
  write_moving(folder / "a.lmr", 0.1, 11, 0, 1);
  write_moving(folder / "b.lmr", 0.07, 20, 0, 1);
  const ReplayReader a(folder / "a.lmr"), b(folder / "b.lmr");
  const view::Distance d = view::compare_runs({&a, &b}, {"a", "b"}).distance[1];
  EXPECT_EQ(d.t.size(), 15u);  // up to the end of a, at 1 s
  for (double v : d.max) EXPECT_LT(v, 1e-6);
}

TEST(Compare, OtherMeshesAreRefused) {
  const auto folder = scratch("compare_mesh");
  write_moving(folder / "a.lmr", 0.1, 3, 0, 1);
  BarOptions o;
  o.cells = {6, 3, 3};
  test::write_bar(folder / "b.lmr", o);
  const ReplayReader a(folder / "a.lmr"), b(folder / "b.lmr");
  try {
    view::compare_runs({&a, &b}, {"first", "second"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find("same mesh"), std::string::npos) << e.what();
  }
}

TEST(Compare, TheCutIsComparedWithTheCut) {
  const auto folder = scratch("compare_cut");
  BarOptions o;
  o.cut = true;
  test::write_bar(folder / "a.lmr", o);
  test::write_bar(folder / "b.lmr", o);
  const ReplayReader a(folder / "a.lmr"), b(folder / "b.lmr");
  const view::Distance d = view::compare_runs({&a, &b}, {"a", "b"}).distance[1];
  EXPECT_EQ(d.t.size(), static_cast<std::size_t>(o.frames));
  for (double v : d.max) EXPECT_EQ(v, 0);
}

}  // namespace
}  // namespace limber
