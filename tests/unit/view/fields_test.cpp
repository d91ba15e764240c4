#include <limber/view/fields.hpp>

#include "synthetic.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace limber {
namespace {

TEST(Fields, AreListedByWhatTheRecordingHas) {
  const auto folder = test::scratch("fields");
  test::write_bar(folder / "replay.lmr", {});
  const ReplayReader r(folder / "replay.lmr");
  const ReplayTopology t = r.topology(0);
  const ReplayFrame f = r.frame(0);  // at rest: all energies are zero, which must not make them categories
  const view::FieldSampler s(t, &f);
  for (const char* id : {"displacement", "speed", "energy_density", "young", "region"})
    EXPECT_TRUE(s.find(id)) << id;
  for (const char* id : {"dynamic", "pinned", "candidate", "fibre", "velocity"})
    EXPECT_FALSE(s.find(id)) << id;
  EXPECT_FALSE(s.find("energy_density")->categories);
  EXPECT_FALSE(s.find("energy_density")->per_element);
  EXPECT_TRUE(s.find("region")->categories);
  EXPECT_EQ(s.find("region")->names, (std::vector<std::string>{"soft", "stiff"}));
  EXPECT_TRUE(s.find("young")->per_element);
}

TEST(Fields, ValuesAreWhatTheySay) {
  const test::BarOptions o;
  const ReplayTopology t = test::bar_topology(o, false);
  ReplayFrame f;
  f.x = t.rest;
  for (std::size_t i = 0; i < f.x.size(); i += 3) f.x[i + 2] += 0.25f;
  f.node_fields = {{"velocity", "m/s", 3, {}}};
  for (Index i = 0; i < t.node_count(); ++i)
    f.node_fields[0].values.insert(f.node_fields[0].values.end(), {3, 0, 4});
  f.element_fields = {{"energy_density", "J/m^3", 1, std::vector<float>(t.elements.size(), 7.0f)},
                      {"heat", "W", 1, {}}};
  for (const Tet& e : t.elements)
    f.element_fields[1].values.push_back(t.rest[3 * static_cast<std::size_t>(e[0])] < 0.5f ? 0 : 1);
  const view::FieldSampler s(t, &f);
  for (float v : s.values(*s.find("displacement"), f)) EXPECT_NEAR(v, 0.25, 1e-6);
  for (float v : s.values(*s.find("speed"), f)) EXPECT_FLOAT_EQ(v, 5);
  for (float v : s.values(*s.find("energy_density"), f)) EXPECT_FLOAT_EQ(v, 7);  // averages of a constant
  const std::vector<float> heat = s.values(*s.find("heat"), f);
  ASSERT_EQ(heat.size(), t.rest.size() / 3);
  EXPECT_EQ(heat.front(), 0);
  EXPECT_EQ(heat.back(), 1);
  for (float v : heat) EXPECT_TRUE(v >= 0 && v <= 1);
}

}  // namespace
}  // namespace limber
