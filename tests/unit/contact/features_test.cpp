#include <limber/contact/feature_contact.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/surface.hpp>

#include <gtest/gtest.h>

#include <numbers>

namespace limber {
namespace {

Obstacle box_obstacle(const Vec3& half, const Vec3& center) {
  Obstacle o;
  o.shape = ObstacleShape::kBox;
  o.half_size = half;
  o.start.origin = center;
  return o;
}

Obstacle mesh_obstacle(TriMesh mesh) {
  Obstacle o;
  o.shape = ObstacleShape::kMesh;
  o.surface = std::make_shared<ClosedSurface>(std::move(mesh));
  return o;
}

Obstacle wire_obstacle(std::vector<Vec3> points) {
  Obstacle o;
  o.shape = ObstacleShape::kWire;
  o.points = std::move(points);
  return o;
}

int count(const FeatureSet& set, FeatureKind kind) {
  return static_cast<int>(
      std::count_if(set.begin(), set.end(), [&](const Feature& f) { return f.kind == kind; }));
}

Sheet flat_sheet(Index n, double z, const Vec3& v) {
  TriMesh mesh = make_rectangle({1, 1}, {n, n});
  for (Vec3& p : mesh.nodes) p[2] = z;
  Sheet s = sheet_from_mesh(mesh, "cloth");
  for (Vec3& w : s.v) w = v;
  return s;
}

void expect_box_features(const FeatureSet& set) {
  EXPECT_EQ(count(set, FeatureKind::kEdge), 12);
  EXPECT_EQ(count(set, FeatureKind::kCorner), 8);
  EXPECT_EQ(set.size(), 20u);
  for (const Feature& f : set) {
    if (f.line()) {
      ASSERT_EQ(f.sides.size(), f.points.size() - 1);
      for (const auto& [n, m] : f.sides) {
        EXPECT_NEAR(n.norm(), 1, 1e-14);
        EXPECT_NEAR(n.dot(m), 0, 1e-12);
        // Outward, for a box around the origin.
        EXPECT_GT(n.dot(f.points[0]), 0);
        EXPECT_GT(m.dot(f.points[0]), 0);
      }
      EXPECT_GE(f.ends[0], 0);
      EXPECT_GE(f.ends[1], 0);
      EXPECT_FALSE(f.closed);
    } else {
      EXPECT_EQ(f.normals.size(), 3u);
      EXPECT_EQ(f.rays.size(), 3u);
      for (const Vec3& ray : f.rays) EXPECT_LT(ray.dot(f.points[0]), 0);
    }
  }
}

TEST(Features, BoxAndItsMeshHaveTheSame) {
  const std::vector<Obstacle> box{box_obstacle({0.1, 0.2, 0.3}, Vec3::Zero())};
  expect_box_features(find_features(box));
  TetMesh tets = make_box({0.2, 0.4, 0.6}, {3, 4, 5});
  for (Vec3& p : tets.nodes) p -= Vec3(0.1, 0.2, 0.3);
  const std::vector<Obstacle> mesh{mesh_obstacle(surface_mesh(tets))};
  const FeatureSet set = find_features(mesh);
  expect_box_features(set);
  for (const Feature& f : set)
    EXPECT_TRUE(!f.line() || f.points.size() >= 3);  // edges of several triangles are one line
  // The same place by both.
  const Placement home;
  const FeatureSet plain = find_features(box);
  for (const Feature& f : plain)
    if (f.line()) {
      const Vec3 x = feature_point(f, home, 0.3);
      double least = 1;
      for (const Feature& g : set) least = std::min(least, nearest_on_feature(g, home, x).distance);
      EXPECT_LT(least, 1e-14);
    }
}

TEST(Features, RimsAreClosedAndHollowsHaveNone) {
  const std::vector<Obstacle> cylinder{mesh_obstacle(surface_mesh(make_cylinder(0.1, 0.3, 0.02)))};
  const FeatureSet rims = find_features(cylinder);
  ASSERT_EQ(rims.size(), 2u);
  for (const Feature& f : rims) {
    EXPECT_TRUE(f.closed);
    EXPECT_EQ(f.kind, FeatureKind::kEdge);
    const Placement home;
    const NearestOnFeature near = nearest_on_feature(f, home, {0.2, 0, f.points[0][2]});
    EXPECT_EQ(near.beyond, 0);
    EXPECT_NEAR(near.distance, 0.1, 0.003);
  }
  const std::vector<Obstacle> sphere{mesh_obstacle(surface_mesh(make_sphere(0.1, 0.02)))};
  EXPECT_TRUE(find_features(sphere).empty());
  // A step: 6 corners in section, of which one is hollow.
  TetMesh step = make_box({2, 2, 1}, {3, 3, 2});
  std::erase_if(step.tets, [&](const Tet& t) {
    Vec3 c = Vec3::Zero();
    for (const Index i : t) c += step.nodes[i] / 4;
    return c[0] > 1 && c[1] > 1;
  });
  const std::vector<Obstacle> stair{mesh_obstacle(surface_mesh(step))};
  const FeatureSet set = find_features(stair);
  const Placement home;
  double least = 1;
  for (const Feature& f : set)
    if (f.line()) least = std::min(least, nearest_on_feature(f, home, {1, 1, 0.5}).distance);
  EXPECT_GT(least, 0.4);  // the hollow edge is none
}

TEST(Features, WiresAreCutWhereTheyTurn) {
  const std::vector<Obstacle> bent{wire_obstacle({{0, 0, 0}, {1, 0, 0}, {2, 0.2, 0}, {2, 2, 0}})};
  const FeatureSet set = find_features(bent);
  ASSERT_EQ(set.size(), 3u);
  EXPECT_EQ(count(set, FeatureKind::kWire), 2);
  EXPECT_EQ(count(set, FeatureKind::kCorner), 1);
  Index corner = set[0].line() ? set[1].line() ? 2 : 1 : 0;
  for (Index f = 0; f < 3; ++f) {
    if (f == corner) continue;
    EXPECT_TRUE((set[f].ends[0] == corner) != (set[f].ends[1] == corner));
    EXPECT_EQ(common_line(set, f, corner), f);
    EXPECT_EQ(common_line(set, f, f), f);
  }
  const Placement home;
  const Feature& first = set[corner == 0 ? 1 : 0];
  const NearestOnFeature near = nearest_on_feature(first, home, {-0.25, 0.1, 0});
  EXPECT_NEAR(near.beyond, 0.25, 1e-14);
  // Closed: the first point again.
  std::vector<Vec3> ring;
  for (int k = 0; k <= 24; ++k) {
    const double a = (k % 24) * std::numbers::pi / 12;
    ring.emplace_back(std::cos(a), std::sin(a), 0);
  }
  const std::vector<Obstacle> loop{wire_obstacle(ring)};
  const FeatureSet closed = find_features(loop);
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_TRUE(closed[0].closed);
  EXPECT_EQ(closed[0].points.size(), 25u);
}

// A flat sheet that falls on a box: the four upper edges, never the upright ones, and corners.
TEST(FeatureContact, SheetFallsOnABox) {
  const std::vector<Obstacle> box{box_obstacle({0.21, 0.13, 0.3}, {0.52, 0.47, -0.3})};
  const FeatureSet set = find_features(box);
  const Sheet s = flat_sheet(11, 0.004, {0, 0, -1});
  const auto contacts = detect_features(set, box, s, 0, 0.005, {});
  ASSERT_FALSE(contacts.empty());
  int corners = 0;
  std::vector<int> per_edge(set.size(), 0);
  for (const FeatureContact& c : contacts) {
    EXPECT_NEAR(c.x[2], 0, 1e-14);
    EXPECT_NEAR(c.gap, 0.004, 1e-12);
    EXPECT_NEAR(c.gap_end, -0.001, 1e-12);
    EXPECT_LT((c.n - Vec3::UnitZ()).norm(), 1e-12);
    Vec3 p = Vec3::Zero();
    for (int k = 0; k < c.count; ++k) p += c.weights[k] * s.x[c.vertices[k]];
    EXPECT_LT((p - c.x).head<2>().norm(), 1e-12);
    corners += c.count == 3;
    per_edge[c.feature] += c.count == 2;
    if (c.count == 2) {
      EXPECT_LT((feature_point(set[c.feature], box[0].start, c.parameter) - c.x).norm(), 1e-12);
    }
  }
  EXPECT_EQ(corners, 4);
  int crossed = 0;
  for (const int n : per_edge) crossed += n > 0;
  EXPECT_EQ(crossed, 4);
  // Too slow to arrive, or going up: nothing.
  EXPECT_TRUE(detect_features(set, box, flat_sheet(11, 0.004, {0, 0, -0.5}), 0, 0.005, {}).empty());
  EXPECT_TRUE(detect_features(set, box, flat_sheet(11, 0.004, {0, 0, 1}), 0, 0.005, {}).empty());
  // In deep water already: an edge up to two thresholds, a corner up to five.
  const auto deep = detect_features(set, box, flat_sheet(11, -0.02, {0, 0, 0}), 0, 0.005, {});
  for (const FeatureContact& c : deep) EXPECT_EQ(c.count, 3);
  EXPECT_EQ(deep.size(), 4u);
}

TEST(FeatureContact, BoxRisesIntoARestingSheet) {
  std::vector<Obstacle> box{box_obstacle({0.21, 0.13, 0.3}, {0.52, 0.47, -0.303})};
  MotionKey from, to;
  from.t = 0;
  to.t = 1;
  to.translation = {0, 0, 1};
  box[0].motion = {from, to};
  box[0].interpolation = "linear";
  const FeatureSet set = find_features(box);
  const auto contacts = detect_features(set, box, flat_sheet(11, 0, Vec3::Zero()), 0, 0.005, {});
  ASSERT_FALSE(contacts.empty());
  for (const FeatureContact& c : contacts) {
    EXPECT_NEAR(c.gap, 0.003, 1e-12);
    EXPECT_NEAR(c.gap_end, -0.002, 1e-12);
    EXPECT_LT((c.velocity - Vec3(0, 0, 1)).norm(), 1e-9);
  }
}

// A wire has two sides, and a sheet that is fast does not miss it.
TEST(FeatureContact, WireFromBothSides) {
  const std::vector<Obstacle> wire{wire_obstacle({{0.33, -0.2, 0}, {0.47, 1.2, 0}})};
  const FeatureSet set = find_features(wire);
  for (const double side : {1.0, -1.0}) {
    const Sheet s = flat_sheet(9, 0.03 * side, {0, 0, -20 * side});
    const auto contacts = detect_features(set, wire, s, 0, 0.005, {});
    ASSERT_GT(contacts.size(), 10u);
    for (const FeatureContact& c : contacts) {
      EXPECT_NEAR(c.gap, 0.03, 1e-12);
      EXPECT_NEAR(c.n[2], side, 1e-12);
    }
    EXPECT_TRUE(
        detect_features(set, wire, flat_sheet(9, 0.03 * side, {0, 0, 20 * side}), 0, 0.005, {}).empty());
  }
}

TEST(FeatureContact, NailHasOneContactAndIsNotFoundTwice) {
  Obstacle nails;
  nails.shape = ObstacleShape::kPoints;
  nails.points = {{0.5, 0.5, 0}, {0.23, 0.71, 0}};  // the first in a vertex of the sheet
  nails.axis = Vec3::UnitZ();
  const std::vector<Obstacle> list{nails};
  const FeatureSet set = find_features(list);
  Sheet s = flat_sheet(11, 0.001, {0, 0, -1});
  auto contacts = detect_features(set, list, s, 0, 0.005, {});
  ASSERT_EQ(contacts.size(), 2u);
  EXPECT_EQ(contacts[0].feature, 0);
  s.feature[60] = 0;
  contacts = detect_features(set, list, s, 0, 0.005, {});
  ASSERT_EQ(contacts.size(), 1u);
  EXPECT_EQ(contacts[0].feature, 1);
  // From below it is not the tip that is met.
  EXPECT_TRUE(detect_features(set, list, flat_sheet(11, -0.03, {0, 0, 1}), 0, 0.005, {}).empty());
}

}  // namespace
}  // namespace limber
