// Scripted motions: keys in time, and where they put things.
#pragma once

#include <limber/core/types.hpp>

#include <string>
#include <vector>

namespace limber {

// One key of a motion: at time t things have been turned by the rotation vector about a centre, stretched
// about it, then translated, relative to where they were when the motion began. Between keys: smooth or
// linear.
struct MotionKey {
  double t = 0;                     // scene time [s]
  Vec3 translation = Vec3::Zero();  // [m]
  Vec3 rotation = Vec3::Zero();     // rotation vector [rad]
  double scale = 1;
};

// x -> center + translation + scale R (x - center)
struct KeyPose {
  Vec3 translation = Vec3::Zero();
  Mat3 R = Mat3::Identity();
  double scale = 1;
};

Mat3 rotation_of(const Vec3& rotation_vector);

// The motion at time t. Keys are sorted; before the first and after the last the motion rests there; no keys:
// no motion. The rotation vector is interpolated as a vector, which is exact for keys that turn about one
// axis and lets a key turn by more than half a turn. `interpolation`: "smooth" (cubic, zero speed at keys) or
// "linear".
KeyPose key_pose(const std::vector<MotionKey>& keys, const std::string& interpolation, double t);

}  // namespace limber
