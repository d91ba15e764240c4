// In which axes the numbers of a scene are meant: velocities of joints, boxes of sliders, sides of pins.
#include <limber/rigid/inner_contacts.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/read_mechanism.hpp>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace limber::rigid {
namespace {

Articulation drawn(const std::string& joints) {
  const std::string box = R"({"shape": "box", "size": [0.1, 0.2, 0.3]})";
  const LoadResult r =
      try_read_scene(R"({"limber": 1, "method": {"type": "joints"}, "links": [{"name": "a", "shapes": )" +
                         box + R"(}, {"name": "b", "shapes": )" + box + R"(}], "joints": [)" + joints + "]}",
                     "s.json", {});
  for (const Problem& p : r.problems) ADD_FAILURE() << to_string(p);
  return read_articulation(*r.scene.resolved, ".");
}

Motion motion_of(const Articulation& a) {
  Motion m;
  update_motion(a.mechanism, a.q, a.v, m);
  return m;
}

TEST(Drawing, AngularVelocityIsInTheAxesOfTheParent) {
  for (const char* type : {"spherical", "free"}) {
    // On the world: in those of the world, although the child is turned.
    const Articulation one = drawn(
        std::string(R"({"type": ")") + type +
        R"(", "child": "a", "rotation": [0, 0, 1.2], "angular_velocity": [3, 4, 5]}, {"parent": "a", "child": "b"})");
    EXPECT_LT((motion_of(one).links[0].phi.head<3>() - Vec3(3, 4, 5)).norm(), 1e-14) << type;
    // On a parent that is turned by a quarter about z: x of the drawing is y of the world.
    const Articulation two =
        drawn(std::string(R"({"child": "a", "q": 1.5707963267948966}, {"type": ")") + type +
              R"(", "parent": "a", "child": "b", "rotation": [0.3, 0, 0], "angular_velocity": [3, 4, 5]})");
    EXPECT_LT((motion_of(two).links[1].phi.head<3>() - Vec3(-4, 3, 5)).norm(), 1e-14) << type;
  }
}

TEST(Drawing, RotationIsInTheAxesOfTheParent) {
  const Articulation a = drawn(R"({"child": "a", "q": 1.5707963267948966},
    {"type": "spherical", "parent": "a", "child": "b", "rotation": [0.3, 0, 0]})");
  const Mat3 expected = exp_rotation(Vec3(0, 0.3, 0)) * exp_rotation(Vec3(0, 0, 1.5707963267948966));
  EXPECT_LT((motion_of(a).links[1].pose.R - expected).norm(), 1e-14);
}

// Extents of the contact points along the axes of the drawing.
Vec3 extents(const std::vector<InnerPoint>& points) {
  Vec3 low = Vec3::Constant(1e9), high = -low;
  for (const InnerPoint& p : points) {
    low = low.cwiseMin(p.x);
    high = high.cwiseMax(p.x);
  }
  return high - low;
}

InnerSurface bearing(const std::string& type, const std::string& axis, const std::string& friction) {
  const Articulation a =
      drawn(R"({"type": ")" + type + R"(", "child": "a", "axis": )" + axis + R"(, "friction": {"mu": 0.1, )" +
            friction + R"(}}, {"parent": "a", "child": "b"})");
  return inner_surfaces(a.mechanism).at(0);
}

TEST(Drawing, SidesOfASlider) {
  const std::string box = R"("box": [1, 2, 3])";
  EXPECT_LT((extents(bearing("prismatic", "[1, 0, 0]", box).points) - Vec3(1, 2, 3)).norm(), 1e-14);
  EXPECT_LT((extents(bearing("prismatic", "[0, 1, 0]", box).points) - Vec3(2, 1, 3)).norm(), 1e-14);
  EXPECT_LT((extents(bearing("prismatic", "[0, 0, 1]", box).points) - Vec3(2, 3, 1)).norm(), 1e-14);
}

TEST(Drawing, SideOfAPin) {
  const std::string pin = R"("radius": 0.5, "height": 0.2, "points": 4)";
  const InnerSurface plain = bearing("revolute", "[0, 0, 1]", pin);
  EXPECT_LT((plain.points.at(0).x - Vec3(0.5, 0, -0.1)).norm(), 1e-14);
  const InnerSurface turned = bearing("revolute", "[0, 0, 1]", pin + R"(, "side": [3, 4, 9])");
  EXPECT_LT((turned.points.at(0).x - Vec3(0.3, 0.4, -0.1)).norm(), 1e-14);
  EXPECT_EQ(turned.points.size(), plain.points.size());
}

TEST(Drawing, SideOfALoopsPin) {
  const std::string box = R"({"shape": "box", "size": [0.1, 0.2, 0.3]})";
  const LoadResult r = try_read_scene(
      R"({"limber": 1, "method": {"type": "joints"}, "links": [{"name": "a", "shapes": )" + box +
          R"(}], "joints": [{"child": "a"}], "loops": [{"a": "a", "position": [0, 0, 0], "axis": [0, 0, 1],
          "friction": {"mu": 0.1, "radius": 1, "height": 1, "side": [0, 2, 0]}}]})",
      "s.json", {});
  ASSERT_TRUE(r.problems.empty());
  const Articulation a = read_articulation(*r.scene.resolved, ".");
  EXPECT_LT((inner_surfaces(a.mechanism).at(0).points.at(0).x - Vec3(0, 1, -0.5)).norm(), 1e-14);
}

}  // namespace
}  // namespace limber::rigid
