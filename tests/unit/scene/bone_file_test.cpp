// Bones whose keys are in a motion file.
#include <limber/core/error.hpp>
#include <limber/scene/hold_motion.hpp>
#include <limber/scene/load.hpp>

#include <gtest/gtest.h>

#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

namespace limber {
namespace {

// Numbers as base64.
std::string encoded(const std::vector<float>& values) {
  const char* const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(4 * values.size(), 0), out;  // a multiple of three
  std::memcpy(bytes.data(), values.data(), bytes.size());
  for (std::size_t i = 0; i + 2 < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | static_cast<std::uint8_t>(bytes[i + k]);
    for (int k = 18; k >= 0; k -= 6) out += digits[bits >> k & 63];
  }
  return out;
}

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

// The same motion as node animation: rotations of the thigh and the shin at 0 and 0.5 s, and the thigh's
// place.
const std::string kNodes =
    R"({"nodes": [{"name": "thigh", "children": [1]}, {"name": "shin", "translation": [0, -1, 0]}],
  "buffers": [{"byteLength": 96, "uri": "data:;base64,)" +
    encoded({0,
             0.5f,
             0,
             0,
             0,
             1,
             -0.04494346f,
             0.16773126f,
             0.25488700f,
             0.95125124f,
             0,
             0,
             0,
             1,
             -0.42101007f,
             0.07898993f,
             -0.03683361f,
             0.90285902f,
             0,
             0,
             0,
             0.2f,
             0,
             0}) +
    R"("}], "bufferViews": [{"buffer": 0}], "accessors": [
    {"bufferView": 0, "componentType": 5126, "count": 2, "type": "SCALAR"},
    {"bufferView": 0, "byteOffset": 8, "componentType": 5126, "count": 2, "type": "VEC4"},
    {"bufferView": 0, "byteOffset": 40, "componentType": 5126, "count": 2, "type": "VEC4"},
    {"bufferView": 0, "byteOffset": 72, "componentType": 5126, "count": 2, "type": "VEC3"}],
  "animations": [{"samplers": [{"input": 0, "output": 1}, {"input": 0, "output": 2}, {"input": 0, "output": 3}],
    "channels": [{"sampler": 0, "target": {"node": 0, "path": "rotation"}},
                 {"sampler": 1, "target": {"node": 1, "path": "rotation"}},
                 {"sampler": 2, "target": {"node": 0, "path": "translation"}}]}]})";

class BoneFile : public testing::Test {
 protected:
  BoneFile()
      : folder_(std::filesystem::temp_directory_path() / ("limber-bvh-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "leg.bvh") << kMotion;
    std::ofstream(folder_ / "leg.gltf") << kNodes;
  }
  ~BoneFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  LoadResult read(const std::string& shin,
                  const std::string& thigh = R"("bvh": {"file": "leg.bvh", "start": 0.2})") const {
    return try_read_scene(R"({"limber": 1, "time": {"step": 0.1, "end": 1},
      "bodies": [{"name": "leg", "mesh": {"shape": "box", "size": [0.4, 2, 0.4], "nodes": [3, 9, 3]},
                  "translation": [0, -1, 0]}],
      "bones": [{"name": "thigh", "head": [0, -0.1, 0], "tail": [0, -0.8, 0], "joint": [0, 0, 0], "radius": 0.1,
                 "interpolation": "linear", )" +
                              thigh + R"(},
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

TEST_F(BoneFile, NodeAnimationIsTheSameMotion) {
  const LoadResult a = read(R"("bvh": {"file": "leg.bvh", "joint": "shin", "start": 0.2})"),
                   b = read(R"("gltf": {"file": "leg.gltf", "node": "shin", "start": 0.2})",
                            R"("gltf": {"file": "leg.gltf", "start": 0.2})"),
                   mixed = read(R"("gltf": {"file": "leg.gltf", "node": "shin", "start": 0.2})");
  ASSERT_TRUE(b.problems.empty()) << b.problems[0].message;
  ASSERT_TRUE(mixed.problems.empty()) << mixed.problems[0].message;
  const KeyPose expected = hold_pose(a.scene, 1, 0.7);
  for (const LoadResult* r : {&b, &mixed}) {
    const KeyPose pose = hold_pose(r->scene, 1, 0.7);
    EXPECT_LT((pose.R - expected.R).norm(), 1e-5);
    EXPECT_LT((pose.translation - expected.translation).norm(), 1e-5);
  }
  const LoadResult both =
      read(R"("gltf": {"file": "leg.gltf"}, "bvh": {"file": "leg.bvh", "joint": "shin"})");
  ASSERT_FALSE(both.problems.empty());
  EXPECT_EQ(both.problems[0].pointer, "/bones/1/gltf");
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
