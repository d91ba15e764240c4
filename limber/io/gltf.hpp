// Motions of skeletons in glTF 2.0 files (.gltf, .glb): a tree of nodes, and animations that turn and move
// them.
#pragma once

#include <limber/core/motion.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace limber::io {

enum class GltfInterpolation { kLinear, kStep, kCubicSpline };

// One property of a node over time. `values` has for each time the four numbers of a quaternion (x, y, z, w)
// or three; of cubic splines the in-tangent, the value and the out-tangent.
struct GltfTrack {
  GltfInterpolation interpolation = GltfInterpolation::kLinear;
  std::vector<double> times;  // ascending [s]; empty: the property keeps its rest value
  std::vector<double> values;
};

struct GltfNode {
  std::string name;
  Index parent = -1;
  // Of the rest shape, against the parent: x -> translation + R (scale x).
  Eigen::Vector4d rotation{0, 0, 0, 1};  // quaternion x, y, z, w
  Vec3 translation = Vec3::Zero(), scale = Vec3::Ones();
};

struct GltfAnimation {
  struct Tracks {
    GltfTrack rotation, translation;
  };
  std::string name;
  std::vector<Tracks> nodes;   // one for each node of the file
  double first = 0, last = 0;  // [s]
};

struct Gltf {
  std::string name;  // of the file, for messages
  std::vector<GltfNode> nodes;
  std::vector<GltfAnimation> animations;
};

// `open` gives the bytes of a buffer that has a file of its own, by the name that the file has for it.
// Throws Error(kInput) for what is no such file, for nodes that are stretched unequally, and for animations
// that stretch them: bones are rigid.
Gltf read_gltf(const std::string& name, std::string_view data,
               const std::function<std::string(const std::string& uri)>& open);

struct GltfMotion {
  std::string node = {};
  std::string animation = {};  // empty: the first
  std::string carrier = {};    // node of the bone that carries it; empty: see `own_parent`
  bool own_parent = false;     // without a carrier: against the node's own parent, else against the ground
  double start = 0;            // [s]: when the animation begins
  double scale = 1;            // metres for the file's unit of length
  double rate = 30;            // keys per second
};

// The keys of one node against its carrier, about the axes of the rest shape and the node's place there.
// Throws Error(kInput) when there is no such node or animation.
std::vector<MotionKey> gltf_keys(const Gltf& file, const GltfMotion& motion);

}  // namespace limber::io
