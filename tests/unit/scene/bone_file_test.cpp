// Bones whose keys are in a motion file.
#include <limber/core/error.hpp>
#include <limber/scene/hold_motion.hpp>
#include <limber/scene/load.hpp>

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <string>

namespace limber {
namespace {

const char* const kMotion = R"(HIERARCHY
ROOT thigh
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT shin
  {
    OFFSET 0 -1 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 -1 0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.5
3 4 5  0 0 0   0 0 0
3.2 4 5  30 0 20   0 -50 10
)";

class BoneFile : public testing::Test {
 protected:
  BoneFile()
      : folder_(std::filesystem::temp_directory_path() / ("limber-bvh-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "leg.bvh") << kMotion;
  }
  ~BoneFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  LoadResult read(const std::string& shin) const {
    return try_read_scene(R"({"limber": 1, "time": {"step": 0.1, "end": 1},
      "bodies": [{"name": "leg", "mesh": {"shape": "box", "size": [0.4, 2, 0.4], "nodes": [3, 9, 3]},
                  "translation": [0, -1, 0]}],
      "bones": [{"name": "thigh", "head": [0, -0.1, 0], "tail": [0, -0.8, 0], "joint": [0, 0, 0], "radius": 0.1,
                 "interpolation": "linear", "bvh": {"file": "leg.bvh", "start": 0.2}},
                {"name": "lower", "parent": "thigh", "head": [0, -1.2, 0], "tail": [0, -1.9, 0],
                 "joint": [0, -1, 0], "radius": 0.1, "interpolation": "linear", )" +
                              shin + R"(}], "method": {"type": "implicit"}})",
                          (folder_ / "leg.json").string());
  }
  std::filesystem::path folder_;
};

// Where the end of the shin is, by the file's own tree.
TEST_F(BoneFile, MovesBonesAsTheFileDoes) {
  const LoadResult r = read(R"("bvh": {"file": "leg.bvh", "joint": "shin", "start": 0.2})");
  ASSERT_TRUE(r.problems.empty()) << r.problems[0].message;
  const double d = std::numbers::pi / 180;
  const auto about = [&](int axis, double degrees) { return rotation_of(degrees * d * Vec3::Unit(axis)); };
  const Mat3 thigh = about(2, 30) * about(1, 20), shin = about(0, -50) * about(1, 10);
  const Vec3 end = Vec3(0.2, 0, 0) + thigh * (Vec3(0, -1, 0) + shin * Vec3(0, -0.9, 0));
  const KeyPose pose = hold_pose(r.scene, 1, 0.7);
  const Vec3& center = r.scene.constraints[1].center;
  EXPECT_LT((center + pose.translation + pose.R * (Vec3(0, -1.9, 0) - center) - end).norm(), 1e-9);
  EXPECT_LT((hold_pose(r.scene, 1, 0).R - Mat3::Identity()).norm(), 1e-12);
}

TEST_F(BoneFile, ProblemsNameThePlace) {
  for (
      const char* wrong :
      {R"("bvh": {"file": "leg.bvh"})", R"("bvh": {"file": "arm.bvh", "joint": "shin"})",
       R"("bvh": {"file": "leg.bvh", "joint": "shin"}, "motion": [{"t": 0}, {"t": 1, "rotation": [1, 0, 0]}])"}) {
    const LoadResult r = read(wrong);
    ASSERT_EQ(r.problems.size(), 1u) << wrong;
    EXPECT_EQ(r.problems[0].pointer.rfind("/bones/1/bvh", 0), 0u) << r.problems[0].pointer;
  }
  EXPECT_NE(read(R"("bvh": {"file": "leg.bvh"})").problems[0].message.find("expected one of thigh, shin"),
            std::string::npos);
}

}  // namespace
}  // namespace limber
