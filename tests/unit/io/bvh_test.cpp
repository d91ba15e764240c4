#include <limber/core/error.hpp>
#include <limber/io/bvh.hpp>

#include <gtest/gtest.h>

#include <numbers>
#include <string>

namespace limber {
namespace {

// Hips, a leg with a knee, and an arm; three frames.
const std::string kText = R"(HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Leg
  {
    OFFSET 0 -10 2
    CHANNELS 3 Zrotation Xrotation Yrotation
    JOINT Knee
    {
      OFFSET 0 -40 0
      CHANNELS 1 Zrotation
      End Site
      {
        OFFSET 0 -40 0
      }
    }
  }
  JOINT Arm
  {
    OFFSET 5 30 0
    CHANNELS 3 Yrotation Xrotation Zrotation
    End Site
    {
      OFFSET 30 0 0
    }
  }
}
MOTION
Frames: 3
Frame Time: 0.04
0 90 0  0 0 0   0 0 0  0   0 0 0
1 91 0  0 0 0   10 20 30  170  90 0 0
2 92 4  0 0 0   0 0 0  190  0 0 90
)";

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kText;
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::string problem_of(const std::string& text) {
  try {
    io::read_bvh("walk.bvh", text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return e.what();
  }
  return "none";
}

TEST(Bvh, ReadsTreeAndFrames) {
  const io::Bvh file = io::read_bvh("walk.bvh", kText);
  ASSERT_EQ(file.joints.size(), 4u);
  EXPECT_EQ(file.joints[2].name, "Knee");
  EXPECT_EQ(file.joints[2].parent, 1);
  EXPECT_EQ(file.joints[3].parent, 0);
  EXPECT_EQ(file.joints[1].offset, Vec3(0, -10, 2));
  EXPECT_EQ(file.frames, 3u);
  EXPECT_EQ(file.channels, 13u);
  EXPECT_DOUBLE_EQ(file.frame_time, 0.04);
  EXPECT_EQ(file.place(2, 0), Vec3(2, 92, 4));
  // About the axes in the order of the file, each in the frame that the one before has turned.
  const double d = std::numbers::pi / 180;
  const Mat3 expected =
      rotation_of({0, 0, 10 * d}) * rotation_of({20 * d, 0, 0}) * rotation_of({0, 30 * d, 0});
  EXPECT_LT((file.rotation(1, 1) - expected).norm(), 1e-12);
  EXPECT_LT((file.rotation(1, 3) - rotation_of({0, 90 * d, 0})).norm(), 1e-12);
}

TEST(Bvh, KeysBeginAtRestAndDoNotJump) {
  const io::Bvh file = io::read_bvh("walk.bvh", kText);
  const std::vector<MotionKey> knee = io::bvh_keys(file, "Knee", 0.5, 1, 1);
  ASSERT_EQ(knee.size(), 4u);
  EXPECT_EQ(knee[0].t, 0);
  EXPECT_EQ(knee[0].rotation, Vec3(0, 0, 0));
  EXPECT_DOUBLE_EQ(knee[1].t, 0.5);
  EXPECT_DOUBLE_EQ(knee[3].t, 0.58);
  const double d = std::numbers::pi / 180;
  EXPECT_LT((knee[2].rotation - Vec3(0, 0, 170 * d)).norm(), 1e-9);
  EXPECT_LT((knee[3].rotation - Vec3(0, 0, 190 * d)).norm(), 1e-9);  // not -170
  const std::vector<MotionKey> hips = io::bvh_keys(file, "Hips", 0, 0.01, 2);
  ASSERT_EQ(hips.size(), 2u);
  EXPECT_EQ(hips[0].translation, Vec3(0, 0, 0));
  EXPECT_LT((hips[1].translation - Vec3(0.02, 0.02, 0.04)).norm(), 1e-12);
}

TEST(Bvh, SaysWhatIsWrong) {
  EXPECT_EQ(problem_of(kText), "none");
  EXPECT_NE(problem_of(replaced("Xrotation", "Wrotation")).find("walk.bvh:5"), std::string::npos);
  EXPECT_NE(problem_of(replaced("Xrotation", "Wrotation")).find("Wrotation"), std::string::npos);
  EXPECT_NE(problem_of(replaced("HIERARCHY", "HIERACHY")).find("HIERARCHY"), std::string::npos);
  EXPECT_NE(problem_of(replaced("Frame Time: 0.04", "Frame Time: 0")).find("positive"), std::string::npos);
  EXPECT_NE(problem_of(replaced("0 0 90\n", "0 0\n")), "none");             // a number is missing
  EXPECT_NE(problem_of(replaced("Frames: 3", "Frames: 3000000")), "none");  // far more than there are
  EXPECT_NE(problem_of(replaced("MOTION", "}\nMOTION")), "none");
  EXPECT_NE(problem_of(replaced("CHANNELS 1 ", "CHANNELS -1 ")), "none");
  EXPECT_NE(problem_of(""), "none");
  for (std::size_t n = 0; n < kText.size() - 8; n += 7)
    EXPECT_NE(problem_of(kText.substr(0, n)), "none") << n;

  const io::Bvh file = io::read_bvh("walk.bvh", replaced("0 90 0  0 0 0", "0 90 0  0 0 5"));
  EXPECT_THROW(io::bvh_keys(file, "Foot", 0.5, 1, 1), Error);
  EXPECT_THROW(io::bvh_keys(file, "Hips", 0, 1, 1),
               Error);  // begins turned, and there is no time to get there
  EXPECT_NO_THROW(io::bvh_keys(file, "Hips", 0.1, 1, 1));
}

}  // namespace
}  // namespace limber
