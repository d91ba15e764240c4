// Motions of skeletons in Biovision files (.bvh): a tree of joints with offsets, and for each frame the
// angles of all joints.
#pragma once

#include <limber/core/motion.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace limber::io {

struct BvhJoint {
  std::string name;
  Index parent = -1;           // -1: a root
  Vec3 offset = Vec3::Zero();  // from the parent, in the file's unit of length
  std::vector<int> channels;   // 0 to 2: place along x, y, z; 3 to 5: turn about x, y, z
  std::size_t first = 0;       // of its channels, in a frame
};

struct Bvh {
  std::string name;  // of the file, for messages
  std::vector<BvhJoint> joints;
  double frame_time = 0;  // [s]
  std::size_t frames = 0, channels = 0;
  std::vector<double> values;  // channels numbers for each frame; lengths, degrees

  // The turn of a joint against its parent, R = R1 R2 R3 with its channels in the order of the file, and its
  // place besides its offset.
  Mat3 rotation(std::size_t frame, std::size_t joint) const;
  Vec3 place(std::size_t frame, std::size_t joint) const;
};

// Throws Error(kInput) with file and line for what is no such file.
Bvh read_bvh(const std::string& name, std::string_view data);

// The keys of one joint against its parent: a first one without any turn at time 0 and then every
// `every`-th frame from `start` on [s]. Places are relative to the first frame, times `scale`. Rotation
// vectors go on from key to key without jumps. Throws Error(kInput) when there is no such joint, and when
// the first frame comes at time 0 and is not the rest shape.
std::vector<MotionKey> bvh_keys(const Bvh& file, const std::string& joint, double start, double scale,
                                std::size_t every);

}  // namespace limber::io
