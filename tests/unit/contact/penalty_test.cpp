#include <limber/contact/contact_step.hpp>
#include <limber/contact/friction.hpp>
#include <limber/contact/surface_nodes.hpp>

#include "shapes.hpp"

#include <gtest/gtest.h>

namespace limber {
namespace {

using test::free_nodes;
using test::random_point;

// Force of all contacts at rest at x, as a step without motion sees them.
VecX static_force(const ContactModel& model, const VecX& x) {
  ContactStep step;
  step.begin(model, {}, x, VecX::Zero(x.size()), Vec3::Zero(), 1e-3, 0);
  VecX f = VecX::Zero(x.size());
  step.add_force(x, f);
  return f;
}

TEST(Penalty, ForceIsMinusTheGradientOfTheEnergyAndPushesOut) {
  std::mt19937 random(3);
  for (const Obstacle& o : test::all_shapes()) {
    ContactModel model = free_nodes({o}, 1, 250);
    model.obstacles[0].friction = 0;
    int inside = 0;
    for (int k = 0; k < 200; ++k) {
      const VecX x = o.start.origin + random_point(random, 0.12);
      const double d = closest_point(o, o.start, x).distance;
      // On a face or edge of the mesh the normal is smooth; where two of them are equally near it jumps.
      const VecX f = static_force(model, x);
      if (d >= 0) {
        EXPECT_EQ(f.norm(), 0);
        continue;
      }
      ++inside;
      Vec3 gradient;
      for (int c = 0; c < 3; ++c) {
        const VecX e = 1e-7 * Vec3::Unit(c);
        gradient[c] = (contact_energy(model, {}, x + e, 0) - contact_energy(model, {}, x - e, 0)) / 2e-7;
      }
      const double error = (f + gradient).norm() / f.norm();
      if (error > 1e-5) {  // then x must be a point where the distance has a kink
        const Vec3 n0 = closest_point(o, o.start, x).n;
        double turn = 0;
        for (int c = 0; c < 6; ++c)
          turn = std::max(
              turn,
              (closest_point(o, o.start, x + 2e-7 * (c % 2 ? 1 : -1) * Vec3::Unit(c / 2)).n - n0).norm());
        EXPECT_GT(turn, 1e-3) << "error " << error;
      }
      EXPECT_GT(closest_point(o, o.start, x + 1e-6 * f / f.norm()).distance, d);
      EXPECT_NEAR(f.norm(), 250 * -d, 1e-10);
    }
    EXPECT_GT(inside, 5);
  }
}

TEST(Penalty, StiffnessIsThePapers) {
  Contact c;
  c.n = Vec3(1, 2, 2) / 3;
  c.stiffness = 50;
  c.friction = 0.3;
  c.depth = 1e-3;
  const Vec3 x = c.x_s - 1e-3 * c.n;
  ContactLaw law = contact_law(c, 0.1, c.x_s, x, Vec3::Zero(), 0.05);
  ASSERT_EQ(law.grip, Grip::kStick);
  const Mat3 paper = 50 * (0.9 * c.n * c.n.transpose() + 0.1 * Mat3::Identity());
  EXPECT_NEAR((law.stiffness() - paper).norm(), 0, 1e-13);
  EXPECT_NEAR((law.force(x) + paper * (x - c.x_s)).norm(), 0, 1e-13);
  // -df/dx, and the law is linear
  for (int k = 0; k < 3; ++k)
    EXPECT_NEAR((law.force(x) - law.force(x + Vec3::Unit(k)) - law.stiffness().col(k)).norm(), 0, 1e-12);
}

// A node is pressed on a plane and pushed sideways without inertia, by its place: first the spring, then
// sliding at mu N against the motion, then it comes back and holds again.
TEST(Friction, SpringThenSlideThenSpring) {
  Obstacle floor;
  floor.friction = 0.3;
  const double K = 1000, alpha = 0.1, depth = 1e-3, N = K * depth;
  const ContactModel model = free_nodes({floor}, 1, K);
  std::vector<Anchor> anchors;
  auto press = [&](double s) { return VecX(Vec3(0.6 * s, 0.8 * s, -depth)); };
  // What a step that ends at s leaves behind, as the next step finds it.
  auto force_at = [&](double s) {
    ContactStep step;
    step.begin(model, anchors, press(s), VecX::Zero(3), Vec3::Zero(), 1e-3, 0);
    anchors = step.finish(press(s));
    step.begin(model, anchors, press(s), VecX::Zero(3), Vec3::Zero(), 1e-3, 0);
    VecX f = VecX::Zero(3);
    step.add_force(press(s), f);
    EXPECT_NEAR(f[2], N, 1e-12);
    EXPECT_NEAR(0.8 * f[0], 0.6 * f[1], 1e-12);
    return f[0] / 0.6;
  };
  const double limit = 0.3 * N / (alpha * K);
  EXPECT_NEAR(force_at(0), 0, 1e-12);
  EXPECT_NEAR(force_at(0.5 * limit), -0.15 * N, 1e-12);
  EXPECT_NEAR(force_at(limit), -0.3 * N, 1e-12);
  EXPECT_NEAR(force_at(3 * limit), -0.3 * N, 1e-12);
  EXPECT_NEAR(force_at(2.5 * limit), -0.15 * N, 1e-12);  // on the way back the spring unloads first
  EXPECT_NEAR(force_at(1 * limit), 0.3 * N, 1e-12);      // and pulls the other way
  // The spring's energy is part of the contact's.
  EXPECT_NEAR(contact_energy(model, anchors, press(limit), 0),
              0.5 * K * depth * depth + 0.5 * alpha * K * limit * limit, 1e-15);
}

// Slowly or fast, the friction at the expected place is mu N against the way.
TEST(Friction, ASlidingNodeFeelsTheLimit) {
  Contact c;
  c.stiffness = 1000;
  c.elastic = 100;
  c.friction = 0.5;
  c.depth = 1e-3;
  const Vec3 x(0, 0, -1e-3);
  for (const double way : {0.006, 0.02, 0.03, 0.3}) {
    const ContactLaw law = contact_law(c, 0.1, Vec3::Zero(), x, Vec3(way, 0, 0), 1);
    EXPECT_EQ(law.grip, Grip::kSlide);
    EXPECT_NEAR((law.force(x + Vec3(way, 0, 0)) - Vec3(-0.5, 0, 1)).norm(), 0, 1e-13);
    for (int k = 0; k < 3; ++k)  // linear, and what it says
      EXPECT_NEAR((law.force(x) - law.force(x + Vec3::Unit(k)) - law.stiffness().col(k)).norm(), 0, 1e-12);
    EXPECT_EQ(law.spring == 0, way > 0.025);
  }
}

TEST(Friction, AnchorsRideOnMovingObstacles) {
  Obstacle belt;
  belt.friction = 0.5;
  belt.motion = {{0, Vec3::Zero(), Vec3::Zero(), 1}, {1, {1, 0, 0}, Vec3::Zero(), 1}};
  belt.interpolation = "linear";
  const ContactModel model = free_nodes({belt}, 1, 1000);
  const VecX x = Vec3(0.2, 0.3, -1e-3);
  std::vector<Anchor> anchors;
  ContactStep step;
  step.begin(model, anchors, x, VecX::Zero(3), Vec3::Zero(), 1e-3, 0);
  anchors = step.finish(x);
  step.begin(model, anchors, x, VecX::Zero(3), Vec3::Zero(), 1e-3, 1e-3);
  VecX f = VecX::Zero(3);
  step.add_force(x, f);
  EXPECT_GT(f[0], 0.09);  // dragged along: the belt has moved 2 mm, the spring has 100 N/m
  EXPECT_NEAR(f[2], 1, 1e-12);
}

// Bridson et al. 2002: v_T = max(1 - mu dv_N / |v_T|, 0) v_T.
TEST(Friction, Filter) {
  const Vec3 n = Vec3::UnitY(), belt(1, 0, 0);
  const Vec3 v(4, 0.5, 4);  // relative: (3, ., 4)
  const Vec3 slower = filter_friction(v, n, belt, 2.0, 0.5);
  EXPECT_NEAR((slower - Vec3(1 + 3 * 0.8, 0.5, 4 * 0.8)).norm(), 0, 1e-14);
  const Vec3 stuck = filter_friction(v, n, belt, 20.0, 0.5);
  EXPECT_NEAR((stuck - Vec3(1, 0.5, 0)).norm(), 0, 1e-14);
  EXPECT_EQ(filter_friction(v, n, belt, 0, 0.5), v);
}

TEST(ContactStep, DropsContactsThatWouldPullAndAddsWhatWentIn) {
  Obstacle floor;
  floor.friction = 0;
  const ContactModel model = free_nodes({floor}, 3, 1000);
  VecX x(9), v(9), x1(9);
  x << 0, 0, 0.001, 0, 0, 0.001, 0, 0, 0.001;
  v << 0, 0, -1, 0, 0, -1, 0, 0, 0;
  ContactStep step;
  step.begin(model, {}, x, v, Vec3::Zero(), 5e-3, 0);
  EXPECT_EQ(step.active(), 2);
  x1 << 0, 0, -1e-5, 0, 0, 2e-4, 0, 0, -2e-4;  // the second turned back, the third was pushed in
  EXPECT_TRUE(step.revise(x1));
  EXPECT_EQ(step.active(), 2);
  EXPECT_TRUE(step.laws()[0].active);
  EXPECT_FALSE(step.laws()[1].active);
  EXPECT_EQ(step.laws()[2].contact.node, 2);
  x1[8] = -1e-6;
  EXPECT_FALSE(step.revise(x1));
  // However a set flickers, it comes to an end.
  int revisions = 0;
  for (double sign = 1; revisions < 100; sign = -sign, ++revisions) {
    x1[5] = -1e-4 * sign;
    if (!step.revise(x1)) break;
  }
  EXPECT_LT(revisions, 10);
}

TEST(SurfaceNodes, AreasSumToTheSurface) {
  const TetMesh box = make_box({0.1, 0.2, 0.3}, {3, 4, 5});
  fem::ElementInput in;
  in.rest = box.nodes;
  in.elements = box.tets;
  in.material.resize(box.tets.size());
  const SurfaceNodes s = surface_nodes(in);
  EXPECT_EQ(s.nodes.size(), 3u * 4 * 5 - 1 * 2 * 3);
  double area = 0;
  for (double a : s.area) area += a;
  EXPECT_NEAR(area, 2 * (0.02 + 0.03 + 0.06), 1e-14);
}

TEST(SurfaceNodes, PlaneBodiesTouchWithTheirBorder) {
  const TriMesh sheet = make_rectangle({2, 1}, {5, 4});
  fem::ElementInput in;
  in.rest = sheet.nodes;
  for (const Tri& t : sheet.triangles) in.elements.push_back({t[0], t[1], t[2], -1});
  in.material.resize(in.elements.size());
  for (auto& m : in.material) m.thickness = 0.1;
  in.kinds.assign(in.elements.size(), ElementKind::kPlaneTriangle);
  const SurfaceNodes s = surface_nodes(in);
  EXPECT_EQ(s.nodes.size(), 14u);
  double area = 0;
  for (double a : s.area) area += a;
  EXPECT_NEAR(area, 0.6, 1e-14);
  in.kinds.assign(in.elements.size(), ElementKind::kClothTriangle);  // cloth touches all over
  const SurfaceNodes all = surface_nodes(in);
  EXPECT_EQ(all.nodes.size(), 20u);
  area = 0;
  for (double a : all.area) area += a;
  EXPECT_NEAR(area, 2, 1e-14);
}

TEST(Penalty, DefaultStiffnessKeepsARestingBlockAlmostOut) {
  // A 10 cm block of 1 t/m^3 and 40 kPa, 11 x 11 nodes underneath.
  const double edge = 0.01, weight = 1e3 * 9.81 * 1e-3;
  double total = 0;
  for (int i = 0; i < 11 * 11; ++i) total += kDefaultStiffness * 4e4 * edge;
  EXPECT_LT(weight / total, 1e-3 * 0.1);
}

}  // namespace
}  // namespace limber
