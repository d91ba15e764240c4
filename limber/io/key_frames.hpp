// Keys of a bone from the frames of a motion file.
#pragma once

#include <limber/core/motion.hpp>

#include <span>
#include <string>
#include <vector>

namespace limber::io {

// Where a joint is, against what carries it, since the rest shape.
struct KeyFrame {
  double t = 0;                     // [s]
  Mat3 R = Mat3::Identity();        // about the axes of the rest shape
  Vec3 translation = Vec3::Zero();  // [m]
};

// A first key without any turn at time 0, and the frames. Rotation vectors go on from key to key without
// jumps. Throws Error(kInput) when the first frame comes at time 0 and is not the rest shape; `what` says
// whose it is: "walk.bvh turns joint "Hips"".
std::vector<MotionKey> keys_of_frames(std::span<const KeyFrame> frames, const std::string& what);

}  // namespace limber::io
