// Node animations of glTF files.
#include <limber/core/error.hpp>
#include <limber/io/gltf.hpp>

#include <gtest/gtest.h>

#include <Eigen/Geometry>

#include <cstring>
#include <numbers>

namespace limber {
namespace {

using Eigen::Quaterniond;

std::string base64_of(const std::string& bytes) {
  const char* const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : digits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

std::string bytes_of(const std::vector<float>& values) {
  std::string out(4 * values.size(), 0);
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

// A root that is turned and a hundredth in size; a hip that turns, a knee that bends and slides.
const Quaterniond kRoot(Eigen::AngleAxisd(-std::numbers::pi / 2, Vec3::UnitX()));
const Quaterniond kHip(Eigen::AngleAxisd(0.3, Vec3(1, 2, 0.5).normalized()));
const Quaterniond kKnee(Eigen::AngleAxisd(-0.4, Vec3(0, 1, 1).normalized()));
const Quaterniond kHipTurn(Eigen::AngleAxisd(0.8, Vec3(0.2, -1, 0.4).normalized()));
const Quaterniond kKneeTurn(Eigen::AngleAxisd(1.3, Vec3(1, 0.1, 0).normalized()));
const Vec3 kHipPlace(10, 120, 5), kKneePlace(2, -45, 1), kKneeSlide(3, -40, 2);

std::string quaternion(const Quaterniond& q) {
  return "[" + std::to_string(q.x()) + "," + std::to_string(q.y()) + "," + std::to_string(q.z()) + "," +
         std::to_string(q.w()) + "]";
}
std::string vector(const Vec3& v) {
  return "[" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + "]";
}

std::string binary_part() {
  std::vector<float> out{0, 1};  // times
  for (const Quaterniond& q : {kHip, kHipTurn, kKnee, kKneeTurn})
    for (const double c : {q.x(), q.y(), q.z(), q.w()}) out.push_back(static_cast<float>(c));
  for (const Vec3& v : {kKneePlace, kKneeSlide})
    for (int k = 0; k < 3; ++k) out.push_back(static_cast<float>(v[k]));
  return bytes_of(out);
}

std::string text_part(const std::string& uri, const std::string& how = "LINEAR") {
  return R"({"asset": {"version": "2.0"}, "nodes": [
    {"name": "Knee", "rotation": )" +
         quaternion(kKnee) + R"(, "translation": )" + vector(kKneePlace) + R"(},
    {"name": "Hip", "rotation": )" +
         quaternion(kHip) + R"(, "translation": )" + vector(kHipPlace) + R"(, "children": [0]},
    {"name": "Root", "rotation": )" +
         quaternion(kRoot) + R"(, "scale": [0.01, 0.01, 0.01], "children": [1]}],
    "buffers": [{"byteLength": 96)" +
         uri + R"(}], "bufferViews": [{"buffer": 0, "byteLength": 96}],
    "accessors": [{"bufferView": 0, "componentType": 5126, "count": 2, "type": "SCALAR"},
      {"bufferView": 0, "byteOffset": 8, "componentType": 5126, "count": 2, "type": "VEC4"},
      {"bufferView": 0, "byteOffset": 40, "componentType": 5126, "count": 2, "type": "VEC4"},
      {"bufferView": 0, "byteOffset": 72, "componentType": 5126, "count": 2, "type": "VEC3"}],
    "animations": [{"name": "kick", "samplers": [{"input": 0, "output": 1}, {"input": 0, "output": 2},
      {"input": 0, "output": 3, "interpolation": ")" +
         how + R"("}], "channels": [{"sampler": 0, "target": {"node": 1, "path": "rotation"}},
      {"sampler": 1, "target": {"node": 0, "path": "rotation"}},
      {"sampler": 2, "target": {"node": 0, "path": "translation"}}]}]})";
}

std::string no_file(const std::string& uri) { throw Error(ErrorKind::kIo, "asked for " + uri); }

io::Gltf kick(const std::string& how = "LINEAR") {
  return io::read_gltf(
      "kick.gltf",
      text_part(R"(, "uri": "data:application/octet-stream;base64,)" + base64_of(binary_part()) + "\"", how),
      no_file);
}

// x -> t + s R x of the file's tree.
using Eigen::Affine3d;
Affine3d part(const Quaterniond& R, const Vec3& t, double scale = 1) {
  return Eigen::Translation3d(t) * R * Eigen::Scaling(scale);
}

Affine3d moved_by(const MotionKey& key, const Vec3& center) {
  return Eigen::Translation3d(center + key.translation) * Affine3d(rotation_of(key.rotation)) *
         Eigen::Translation3d(-center);
}

// What bones carry goes where the file's tree puts it: bones compose, each about its joint.
void expect_motion(const io::Gltf& file) {
  const Affine3d root = part(kRoot, Vec3::Zero(), 0.01);
  const Affine3d hip = root * part(kHip, kHipPlace), knee = hip * part(kKnee, kKneePlace);
  const Affine3d hip_then = root * part(kHipTurn, kHipPlace),
                 knee_then = hip_then * part(kKneeTurn, kKneeSlide);
  const std::vector<MotionKey> a = io::gltf_keys(file, {.node = "Hip", .start = 0.5, .rate = 10}),
                               b = io::gltf_keys(file, {.node = "Knee", .carrier = "Hip", .start = 0.5}),
                               c = io::gltf_keys(file, {.node = "Knee", .own_parent = true, .start = 0.5}),
                               whole = io::gltf_keys(file, {.node = "Knee", .start = 0.5});
  ASSERT_EQ(a.size(), 12u);
  EXPECT_EQ(a.front().t, 0);
  EXPECT_EQ(a.front().rotation, Vec3(Vec3::Zero()));
  EXPECT_NEAR(a[1].t, 0.5, 1e-12);
  EXPECT_LT(a[1].rotation.norm(), 1e-5);  // the animation begins in the rest shape
  EXPECT_NEAR(a.back().t, 1.5, 1e-12);
  const Vec3 hip_joint = hip.translation(), knee_joint = knee.translation();
  const Affine3d with_hip = moved_by(a.back(), hip_joint);
  for (const Vec3& X : {Vec3(0.1, 0.9, -0.3), Vec3(-1, 0.2, 0.4)}) {
    EXPECT_LT((with_hip * X - hip_then * (hip.inverse() * X)).norm(), 1e-5);
    const Vec3 expected = knee_then * (knee.inverse() * X);
    EXPECT_LT((with_hip * (moved_by(b.back(), knee_joint) * X) - expected).norm(), 1e-5);
    EXPECT_LT((with_hip * (moved_by(c.back(), knee_joint) * X) - expected).norm(), 1e-5);
    EXPECT_LT((moved_by(whole.back(), knee_joint) * X - expected).norm(), 1e-5);
  }
  // Half way the quaternion is the mean of the two, made one long.
  const Quaterniond half = kHip.slerp(0.5, kHipTurn);
  const Affine3d hip_half = root * part(half, kHipPlace);
  const Vec3 X(0.4, 0.1, 0.2);
  EXPECT_LT((moved_by(a[6], hip_joint) * X - hip_half * (hip.inverse() * X)).norm(), 1e-5);
}

TEST(Gltf, MovesNodesAsTheFileDoes) { expect_motion(kick()); }

TEST(Gltf, BuffersInFilesAndInTheBinaryForm) {
  std::string asked;
  expect_motion(io::read_gltf("kick.gltf", text_part(R"(, "uri": "kick.bin")"), [&](const std::string& uri) {
    asked = uri;
    return binary_part();
  }));
  EXPECT_EQ(asked, "kick.bin");
  std::string json = text_part("");
  while (json.size() % 4) json += ' ';
  const std::string binary = binary_part();
  const auto word = [](std::size_t value) {
    std::string out(4, 0);
    const auto v = static_cast<std::uint32_t>(value);
    std::memcpy(out.data(), &v, 4);
    return out;
  };
  const std::string glb = "glTF" + word(2) + word(28 + json.size() + binary.size()) + word(json.size()) +
                          "JSON" + json + word(binary.size()) + std::string("BIN\0", 4) + binary;
  expect_motion(io::read_gltf("kick.glb", glb, no_file));
}

TEST(Gltf, StepsAndSplines) {
  const std::vector<MotionKey> keys =
      io::gltf_keys(kick("STEP"), {.node = "Knee", .carrier = "Hip", .start = 0.5, .scale = 2, .rate = 10});
  EXPECT_LT(keys[6].translation.norm(), 1e-5);  // stays until the next key
  const double moved = 2 * 0.01 * (kKneeSlide - kKneePlace).norm();
  EXPECT_NEAR(keys.back().translation.norm(), moved, 1e-5);

  // A cubic spline with known tangents: x(s) = s^3 has 0 and 3 at its ends.
  std::vector<float> values{0, 1};
  for (const float v : {0, 0, 0, 0, 0, 0, 0, 0, 0, /* second key */ 3, 0, 0, 1, 0, 0, 0, 0, 0})
    values.push_back(v);
  const std::string text =
      R"({"nodes": [{"name": "Hip"}], "buffers": [{"byteLength": 80, "uri": "data:;base64,)" +
      base64_of(bytes_of(values)) + R"("}], "bufferViews": [{"buffer": 0}],
    "accessors": [{"bufferView": 0, "componentType": 5126, "count": 2, "type": "SCALAR"},
                  {"bufferView": 0, "byteOffset": 8, "componentType": 5126, "count": 6, "type": "VEC3"}],
    "animations": [{"samplers": [{"input": 0, "output": 1, "interpolation": "CUBICSPLINE"}],
                    "channels": [{"sampler": 0, "target": {"node": 0, "path": "translation"}}]}]})";
  const std::vector<MotionKey> spline =
      io::gltf_keys(io::read_gltf("s.gltf", text, no_file), {.node = "Hip", .rate = 10});
  ASSERT_EQ(spline.size(), 11u);
  for (int k = 0; k <= 10; ++k)
    EXPECT_NEAR(spline[static_cast<std::size_t>(k)].translation[0], 1e-3 * k * k * k, 1e-6);
}

std::string problem_of(std::string text, const std::string& from, const std::string& to,
                       const io::GltfMotion& motion = {.node = "Hip", .start = 0.5}) {
  const std::size_t place = text.find(from);
  if (place == std::string::npos) return "not found: " + from;
  text.replace(place, from.size(), to);
  try {
    io::gltf_keys(io::read_gltf("kick.gltf", text, no_file), motion);
  } catch (const Error& e) {
    return e.what();
  }
  return "none";
}

TEST(Gltf, SaysWhatIsWrong) {
  const std::string good =
      text_part(R"(, "uri": "data:application/octet-stream;base64,)" + base64_of(binary_part()) + "\"");
  EXPECT_EQ(problem_of(good, "asset", "asset"), "none");
  const auto expect = [&](const std::string& from, const std::string& to, const std::string& part) {
    const std::string found = problem_of(good, from, to);
    EXPECT_NE(found.find(part), std::string::npos) << found;
  };
  expect("{", "[{", "no glTF file");
  expect("\"count\": 2, \"type\": \"VEC3\"", "\"count\": 3, \"type\": \"VEC3\"", "beyond its buffer");
  expect("\"byteOffset\": 72", "\"byteOffset\": 18446744073709551600", "beyond its buffer");
  expect("\"byteLength\": 96,", "\"byteLength\": 96000,", "shorter");
  expect("\"children\": [0]", "\"children\": [7]", "not in the file");
  expect("\"children\": [0]", "\"children\": [1]", "two parents");
  expect("\"children\": [1]", "\"children\": [2]", "itself");
  expect("[0.01, 0.01, 0.01]", "[0.01, 0.02, 0.01]", "unequally");
  expect("\"path\": \"translation\"", "\"path\": \"scale\"", "scale");
  expect("\"sampler\": 2", "\"sampler\": 9", "sampler");
  expect("\"count\": 2, \"type\": \"SCALAR\"", "\"count\": \"two\", \"type\": \"SCALAR\"", "kick.gltf");
  expect("LINEAR", "BEZIER", "LINEAR, STEP or CUBICSPLINE");
  EXPECT_NE(problem_of(good, "asset", "asset", {.node = "Foot", .start = 0.5})
                .find("expected one of Knee, Hip, Root"),
            std::string::npos);
  EXPECT_NE(
      problem_of(good, "asset", "asset", {.node = "Hip", .animation = "jump"}).find("expected one of kick"),
      std::string::npos);
  // A first frame that is not the rest shape, at time 0.
  EXPECT_NE(problem_of(good, quaternion(kHip), "[0, 0, 0, 1]", {.node = "Hip"}).find("a start after time 0"),
            std::string::npos);
}

}  // namespace
}  // namespace limber
