#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/view/picture.hpp>
#include <limber/view/raster.hpp>
#include <limber/view/shapes.hpp>

#include "synthetic.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace limber {
namespace {

using view::Image;
using view::Paint;
using view::Triangles;
using view::Vec3f;

int differing_pixels(const Image& a, const Image& b) {
  int count = 0;
  for (std::size_t i = 0; i < a.rgb.size(); i += 3)
    count += a.rgb[i] != b.rgb[i] || a.rgb[i + 1] != b.rgb[i + 1] || a.rgb[i + 2] != b.rgb[i + 2];
  return count;
}

// A ball of radius r at distance d is seen under the half angle asin(r / d).
TEST(Raster, ABallCoversWhatPerspectiveSays) {
  view::Camera camera;
  camera.eye = Vec3f(0, 0, 2);
  const int size = 300;
  Triangles ball;
  add_sphere(ball, Vec3f::Zero(), 0.3f, 60, 0);
  const std::vector<Paint> paints(1);
  const Image with = render(ball, paints, camera, {}, view::lighting(false), size, size, 1);
  const Image without = render({}, paints, camera, {}, view::lighting(false), size, size, 1);
  const double focal = size / 2.0 / std::tan(camera.fov * std::numbers::pi / 360);
  const double radius = focal * std::tan(std::asin(0.3 / 2));
  const double expected = std::numbers::pi * radius * radius;
  EXPECT_NEAR(differing_pixels(with, without), expected, 0.01 * expected);
}

TEST(Raster, TheNearerTriangleHidesTheOther) {
  view::Camera camera;
  camera.eye = Vec3f(0, 0, 2);
  Triangles t;
  auto add = [&](float z, std::uint8_t paint) {
    const Vec3f n = Vec3f::UnitZ();
    t.add({Vec3f(-1, -1, z), Vec3f(1, -1, z), Vec3f(0, 1, z)}, {n, n, n}, {0, 0, 0}, paint);
  };
  std::vector<Paint> paints(2);
  paints[0].base = {1, 0, 0};
  paints[1].base = {0, 0, 1};
  for (Paint& p : paints) {
    p.gloss = 0;
    p.shadow = false;
  }
  add(0.2f, 0);
  add(-0.2f, 1);
  Image image = render(t, paints, camera, {}, view::lighting(false), 64, 64, 1);
  EXPECT_GT(image.at(32, 32)[0], 2 * image.at(32, 32)[2]);  // red is in front
  std::swap(paints[0], paints[1]);
  image = render(t, paints, camera, {}, view::lighting(false), 64, 64, 1);
  EXPECT_GT(image.at(32, 32)[2], 2 * image.at(32, 32)[0]);
}

// A wall between the sun and a floor darkens the floor behind it, and only there.
TEST(Raster, ThingsCastShadows) {
  view::Camera camera;
  camera.eye = Vec3f(0, 1.5f, 1.5f);
  const std::vector<view::Floor> floor{{Vec3f(0, 0, 0), Vec3f(0, 1, 0), 1e6}};
  Triangles ball;
  add_sphere(ball, Vec3f(0, 0.4f, 0), 0.15f, 30, 0);
  const std::vector<Paint> paints(1);
  Image with = render(ball, paints, camera, floor, view::lighting(false), 400, 400, 2);
  Image without = render({}, paints, camera, floor, view::lighting(false), 400, 400, 2);
  // Where the line from the sun through the ball's centre meets the floor.
  const Vec3f sun = Vec3f(1.1f, 2.2f, 1.3f).normalized(), at = Vec3f(0, 0.4f, 0) - sun * (0.4f / sun.y());
  const Vec3f forward = (-camera.eye).normalized(), right = forward.cross(Vec3f::UnitY()).normalized(),
              up = right.cross(forward), q = at - camera.eye;
  const double focal = 200 / std::tan(camera.fov * std::numbers::pi / 360);
  const int x = static_cast<int>(200 + focal * double(q.dot(right) / q.dot(forward))),
            y = static_cast<int>(200 - focal * double(q.dot(up) / q.dot(forward)));
  EXPECT_LT(with.at(x, y)[1], without.at(x, y)[1] - 20);
  EXPECT_EQ(with.at(390, 390)[1], without.at(390, 390)[1]);
}

TEST(Picture, TheSameBitsForAnyNumberOfThreads) {
  const auto folder = test::scratch("picture_threads");
  test::write_bar(folder / "replay.lmr", {});
  const ReplayReader r(folder / "replay.lmr");
  view::PictureOptions o;
  o.width = 200;
  o.height = 120;
  o.clip = "z:0.5";
  o.edges = true;
  const int before = threads();
  set_threads(1);
  const Image one = view::Painter(r, o).paint(9);
  set_threads(2);
  const Image two = view::Painter(r, o).paint(9);
  set_threads(before);
  EXPECT_EQ(one.rgb, two.rgb);
}

TEST(Picture, EveryFieldAndTopologyCanBeDrawn) {
  const auto folder = test::scratch("picture_fields");
  test::BarOptions bar;
  bar.cut = true;
  test::write_bar(folder / "replay.lmr", bar);
  const ReplayReader r(folder / "replay.lmr");
  view::PictureOptions o;
  o.width = 160;
  o.height = 100;
  o.samples = 1;
  std::vector<Image> images;
  for (const char* field : {"plain", "displacement", "speed", "energy_density", "young", "region"}) {
    o.color = field;
    view::Painter painter(r, o);
    painter.paint(3);
    images.push_back(painter.paint(bar.frames - 1));
    for (std::size_t k = 0; k + 1 < images.size(); ++k)
      EXPECT_GT(differing_pixels(images[k], images.back()), 50) << field;
  }
  o.color = "nonsense";
  EXPECT_THROW(view::Painter(r, o), Error);
  o.color = "plain";
  o.camera = "behind";
  EXPECT_THROW(view::Painter(r, o).paint(0), Error);
}

TEST(Colors, LightnessGrowsAlongTheMap) {
  double last = -1;
  for (int i = 0; i <= 100; ++i) {
    const view::Rgb c = view::to_linear(view::sequential_color(i / 100.0));
    const double y = 0.2126 * double(c[0]) + 0.7152 * double(c[1]) + 0.0722 * double(c[2]);  // CIE luminance
    EXPECT_GT(y, last);
    last = y;
  }
  EXPECT_GT(last, 0.6);
}

}  // namespace
}  // namespace limber
