#include <limber/cloth/insert.hpp>
#include <limber/core/error.hpp>
#include <limber/mesh/generate.hpp>

#include <gtest/gtest.h>

#include <set>

namespace limber {
namespace {

constexpr double kStep = 0.005;

Obstacle insert_box(const Vec3& half, const Vec3& center) {
  Obstacle o;
  o.shape = ObstacleShape::kBox;
  o.half_size = half;
  o.start.origin = center;
  return o;
}

Obstacle insert_wire(std::vector<Vec3> points) {
  Obstacle o;
  o.shape = ObstacleShape::kWire;
  o.points = std::move(points);
  return o;
}

Sheet falling_sheet(Index n) {
  TriMesh mesh = make_rectangle({1, 1}, {n, n});
  for (Vec3& p : mesh.nodes) p[2] = 0.002;
  Sheet s = sheet_from_mesh(mesh, "cloth");
  for (Vec3& v : s.v) v = {0.3, 0, -1};
  return s;
}

InsertOptions insert_options(double size) {
  InsertOptions o;
  o.size = size;
  return o;
}

struct InsertScene {
  std::vector<Obstacle> obstacles;
  FeatureSet set;
  explicit InsertScene(std::vector<Obstacle> list)
      : obstacles(std::move(list)), set(find_features(obstacles)) {}
  Insertion insert(const Sheet& s, double size) const {
    return insert_features(s, set, obstacles, 0, detect_features(set, obstacles, s, 0, kStep, {}),
                           insert_options(size));
  }
};

// Sound, on its features, and with edges that are long enough around them.
void expect_sound(const InsertScene& scene, const Insertion& in, double area = 1) {
  const Sheet& s = in.change.sheet;
  EXPECT_EQ(sheet_defects(s), std::vector<std::string>{});
  EXPECT_NEAR(material_area(s), area, 1e-12);
  EXPECT_TRUE(in.clean);
  for (Index v = 0; v < s.vertices(); ++v) {
    if (!s.eol(v)) continue;
    const Feature& f = scene.set[s.feature[v]];
    const Vec3 on = feature_point(f, placement_at(scene.obstacles[f.obstacle], 0), s.parameter[v]);
    // Over a wire the fold begins on the cloth's side: as high as the gap was, and a little more.
    const double above = f.kind == FeatureKind::kWire ? (on - s.x[v]).dot(Vec3(0, 0, -1)) : 0;
    EXPECT_LT((on + Vec3(0, 0, above) - s.x[v]).norm(), 1e-12);
    EXPECT_LE(above, 0.002 + 0.01 * 0.1);
    EXPECT_GE(above, 0);
  }
  for (const auto& [a, b] : s.preserved)
    EXPECT_GE(common_line(scene.set, static_cast<Index>(s.feature[a]), static_cast<Index>(s.feature[b])), 0);
}

int count_eol(const Sheet& s) {
  int n = 0;
  for (Index v = 0; v < s.vertices(); ++v) n += s.eol(v);
  return n;
}

double conformal_length(const Sheet& s) {
  double sum = 0;
  for (const auto& [a, b] : s.preserved) sum += (s.X[a] - s.X[b]).norm();
  return sum;
}

double shortest_conformal(const Sheet& s) {
  double least = 1e300;
  for (const auto& [a, b] : s.preserved) least = std::min(least, (s.X[a] - s.X[b]).norm());
  return least;
}

TEST(Insert, LineOfABoxEdgeFromBorderToBorder) {
  const InsertScene scene({insert_box({0.5, 1, 0.5}, {0.837, 0.5, -0.5})});  // edge at x = 0.337
  const Sheet s = falling_sheet(21);
  const Insertion in = scene.insert(s, 0.05);
  expect_sound(scene, in);
  const Sheet& r = in.change.sheet;
  EXPECT_NEAR(conformal_length(r), 1, 1e-12);
  EXPECT_GE(shortest_conformal(r), 0.5 * 0.05);
  std::set<std::int64_t> features;
  for (Index v = 0; v < r.vertices(); ++v)
    if (r.eol(v)) {
      features.insert(r.feature[v]);
      EXPECT_NEAR(r.X[v][0], 0.337, 1e-3);  // the contact is in this step, a little on
      EXPECT_EQ(r.age[v], 0);
      EXPECT_LT((r.v[v] - Vec3(0.3, 0, -1)).norm(), 1e-14);
    }
  EXPECT_EQ(features.size(), 1u);
  EXPECT_EQ(in.became.size(), static_cast<std::size_t>(count_eol(r)));
  EXPECT_EQ(in.flat, 0);
  // It is on its feature now: nothing more to do.
  const Insertion again = scene.insert(r, 0.05);
  expect_sound(scene, again);
  EXPECT_EQ(again.change.splits, 0);
  EXPECT_TRUE(again.became.empty());
  EXPECT_TRUE(again.stopped.empty());
  EXPECT_EQ(again.change.sheet.preserved, r.preserved);
}

TEST(Insert, CornerOfABoxHasTwoLines) {
  const InsertScene scene({insert_box({0.5, 0.5, 0.5}, {0.937, 0.913, -0.5})});  // corner at (0.437, 0.413)
  const Insertion in = scene.insert(falling_sheet(21), 0.05);
  expect_sound(scene, in);
  const Sheet& r = in.change.sheet;
  Index corner = -1;
  int corners = 0;
  for (Index v = 0; v < r.vertices(); ++v)
    if (r.eol(v) && !scene.set[r.feature[v]].line()) {
      corner = v;
      ++corners;
    }
  ASSERT_EQ(corners, 1);
  EXPECT_LT((r.X[corner] - Vec2(0.437, 0.413)).norm(), 1e-3);
  int at_corner = 0;
  for (const auto& [a, b] : r.preserved) at_corner += a == corner || b == corner;
  EXPECT_EQ(at_corner, 2);
  EXPECT_NEAR(conformal_length(r), (1 - 0.437) + (1 - 0.413), 2e-3);
  EXPECT_GE(shortest_conformal(r), 0.5 * 0.05);
}

// A box that the cloth covers: four lines and four corners, one closed chain.
TEST(Insert, WholeBoxIsOneClosedChain) {
  const InsertScene scene({insert_box({0.23, 0.17, 0.5}, {0.5, 0.5, -0.5})});
  const Insertion in = scene.insert(falling_sheet(31), 0.033);
  expect_sound(scene, in);
  const Sheet& r = in.change.sheet;
  EXPECT_NEAR(conformal_length(r), 2 * (0.46 + 0.34), 4e-3);
  std::vector<int> degree(r.x.size(), 0);
  for (const auto& e : r.preserved)
    for (const Index v : e) ++degree[v];
  for (Index v = 0; v < r.vertices(); ++v)
    EXPECT_EQ(degree[v], r.eol(v) ? 2 : 0) << v << " " << r.X[v].transpose();
}

TEST(Insert, WireAtAnAngle) {
  const InsertScene scene({insert_wire({{0.2, -0.3, 0}, {0.75, 1.4, 0}})});
  const Insertion in = scene.insert(falling_sheet(16), 0.06);
  expect_sound(scene, in);
  const double slope = 0.55 / 1.7;
  EXPECT_NEAR(conformal_length(in.change.sheet), std::sqrt(1 + slope * slope), 1e-9);
  EXPECT_EQ(in.flat, 0);
}

TEST(Insert, NailsAreSingleVertices) {
  Obstacle nails;
  nails.shape = ObstacleShape::kPoints;
  nails.points = {
      {0.751, 0.751, 0}, {0.71, 0.22, 0}, {0.27, 0.51, 0}, {0.5, 0.003, 0}};  // the last at the border
  nails.axis = Vec3::UnitZ();
  const InsertScene scene({nails});
  const Insertion in = scene.insert(falling_sheet(11), 0.1);
  expect_sound(scene, in);
  EXPECT_EQ(count_eol(in.change.sheet), 3);
  EXPECT_EQ(in.refused, 1);
  EXPECT_TRUE(in.change.sheet.preserved.empty());
}

TEST(Insert, LinesAlongTheBorderAreRefused) {
  for (const double x : {0.01, 0.02}) {
    const InsertScene scene({insert_wire({{x, -0.3, 0}, {x + 0.002, 1.4, 0}})});
    const Insertion in = scene.insert(falling_sheet(21), 0.05);
    expect_sound(scene, in);
    EXPECT_EQ(count_eol(in.change.sheet), 0);
    EXPECT_GT(in.refused, 5);
  }
  // A line that was put inside and has come close to the border stops.
  const InsertScene scene({insert_wire({{0.035, -0.3, 0}, {0.035, 1.4, 0}})});
  Sheet s = scene.insert(falling_sheet(21), 0.05).change.sheet;
  EXPECT_GT(count_eol(s), 10);
  for (Index v = 0; v < s.vertices(); ++v)
    if (s.eol(v)) s.X[v][0] = 0.008;
  // It was between the border and the column of vertices at 0.05, and still is.
  ASSERT_EQ(sheet_defects(s), std::vector<std::string>{});
  const Insertion in = insert_features(s, scene.set, scene.obstacles, 0, {}, insert_options(0.05));
  EXPECT_EQ(count_eol(in.change.sheet), 0);
  EXPECT_GT(in.stopped.size(), 10u);
}

// The end of a line that slides up to the border, where no vertex of the border is on the line: it is let go.
TEST(Insert, VertexThatReachesTheBorderStops) {
  const InsertScene scene({insert_wire({{0.5, -0.3, 0}, {0.5, 1.4, 0}})});
  Sheet s = falling_sheet(11);
  const Index v = 1 + 11;  // one row above the border y = 0
  s.feature[v] = 0;
  s.parameter[v] = 0.2;
  s.X[v] = {s.X[v][0], 0.001};
  ASSERT_EQ(sheet_defects(s), std::vector<std::string>{});
  const Insertion in = insert_features(s, scene.set, scene.obstacles, 0, {}, insert_options(0.1));
  EXPECT_EQ(sheet_defects(in.change.sheet), std::vector<std::string>{});
  EXPECT_EQ(count_eol(in.change.sheet), 0);
}

TEST(Insert, TaggedVerticesStay) {
  const InsertScene scene({insert_wire({{0.5, -0.3, 0}, {0.5, 1.4, 0}})});  // through a column of vertices
  Sheet s = falling_sheet(11);
  for (Vec3& v : s.v) v[0] = 0;
  s.tag[60] = 3;  // in the middle
  const Insertion in = scene.insert(s, 0.1);
  const Sheet& r = in.change.sheet;
  EXPECT_EQ(sheet_defects(r), std::vector<std::string>{});
  EXPECT_GE(in.skipped, 1);
  for (Index v = 0; v < r.vertices(); ++v)
    if (r.tag[v] == 3) {
      EXPECT_FALSE(r.eol(v));
      EXPECT_EQ(r.x[v], s.x[60]);
    }
}

// Cloth that is drawn over an edge and a corner: EOL vertices stay in space and move in the material,
// hundreds of steps with insertion, clean-up and adaptation. What it looks like must not depend on how far it
// was drawn.
void draw_over(const InsertScene& scene, const Vec2& u, int steps, bool expect_line) {
  Sheet s = falling_sheet(9);
  for (Vec3& v : s.v) v = {u[0], u[1], 0};
  for (Vec3& x : s.x) x[2] = 0;
  AdaptOptions adapt;
  adapt.size_min = 0.04;
  adapt.size_max = 0.08;
  int most = 0, flat = 0;
  for (int step = 0; step < steps; ++step) {
    const auto contacts = detect_features(scene.set, scene.obstacles, s, 0, kStep, {});
    Insertion in = insert_and_adapt(s, scene.set, scene.obstacles, 0, contacts, insert_options(0.04), adapt);
    expect_sound(scene, in);
    flat += in.flat;
    s = std::move(in.change.sheet);
    most = std::max(most, count_eol(s));
    if (expect_line) {
      EXPECT_NEAR(conformal_length(s), 1, 0.02) << step;
    }
    if (testing::Test::HasFailure()) FAIL() << "step " << step;
    for (Index v = 0; v < s.vertices(); ++v) {
      s.v[v] = {u[0], u[1], 0};
      s.V[v].setZero();
      if (s.eol(v)) {  // all its velocity in the material
        s.v[v].setZero();
        s.V[v] = -u;
        // On the border along it only.
        if (s.X[v][1] < 1e-9 || s.X[v][1] > 1 - 1e-9) {
          s.V[v][1] = 0;
          s.v[v][1] = u[1];
        }
        if (s.X[v][0] < 1e-9 || s.X[v][0] > 1 - 1e-9) {
          s.V[v][0] = 0;
          s.v[v][0] = u[0];
        }
        ++s.age[v];
      }
      s.x[v] += kStep * s.v[v];
      s.X[v] += kStep * s.V[v];
    }
  }
  EXPECT_GT(most, expect_line ? 10 : 1);
  EXPECT_LT(most, 120);
  EXPECT_LT(flat, steps / 2);
}

TEST(Insert, DrawnOverAnEdge) {
  draw_over(InsertScene({insert_box({0.5, 1, 0.5}, {1.137, 0.5, -0.5})}), {0.5, 0}, 200, true);  // 0.5 m
}

TEST(Insert, DrawnOverACorner) {
  draw_over(InsertScene({insert_box({0.5, 0.5, 0.5}, {1.037, 0.813, -0.5})}), {0.4, 0.15}, 250, false);
}

TEST(Insert, DrawnOverNails) {
  Obstacle nails;
  nails.shape = ObstacleShape::kPoints;
  nails.points = {{0.751, 0.751, 0}, {0.71, 0.22, 0}, {0.47, 0.51, 0}, {0.64, 0.63, 0}};
  nails.axis = Vec3::UnitZ();
  draw_over(InsertScene({nails}), {0.4, 0.1}, 250, false);
}

TEST(Insert, OptionsAreChecked) {
  InsertOptions o = insert_options(0.1);
  check_options(o, "/x");
  o.altitude = 0.5;
  EXPECT_THROW(check_options(o, "/x"), Error);
  EXPECT_THROW(check_options(insert_options(0), "/x"), Error);
}

}  // namespace
}  // namespace limber
