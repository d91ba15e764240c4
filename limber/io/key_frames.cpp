#include <limber/io/key_frames.hpp>

#include <limber/core/error.hpp>

#include <fmt/format.h>

#include <Eigen/Geometry>

#include <cmath>
#include <numbers>

namespace limber::io {
namespace {

constexpr double kRestTurn = 1e-6;  // [rad] and [m]: a first frame that is the rest shape

// The rotation vector of R that is nearest to another one: a turn may be any number of whole turns longer.
Vec3 rotation_vector_near(const Mat3& R, const Vec3& other) {
  const Eigen::AngleAxisd turn(R);
  const double whole = 2 * std::numbers::pi;
  const double k = std::round((other.dot(turn.axis()) - turn.angle()) / whole);
  return (turn.angle() + k * whole) * turn.axis();
}

}  // namespace

std::vector<MotionKey> keys_of_frames(std::span<const KeyFrame> frames, const std::string& what) {
  std::vector<MotionKey> out;
  Vec3 before = Vec3::Zero();
  for (const KeyFrame& frame : frames) {
    MotionKey key;
    key.t = frame.t;
    key.rotation = before = rotation_vector_near(frame.R, before);
    key.translation = frame.translation;
    if (out.empty() && key.t > 0) {
      out.push_back({});
    } else if (out.empty() && key.rotation.norm() + key.translation.norm() > kRestTurn) {
      throw Error(ErrorKind::kInput,
                  fmt::format("the first frame of {} by {:.3g} degrees and moves it by {:.3g} m, but a bone "
                              "begins in the rest shape; expected a start after time 0, 0.5 s say, until "
                              "which it goes there",
                              what, key.rotation.norm() * 180 / std::numbers::pi, key.translation.norm()));
    }
    out.push_back(key);
  }
  return out;
}

}  // namespace limber::io
