#include <limber/core/motion.hpp>

#include <Eigen/Geometry>
#include <algorithm>

namespace limber {

Mat3 rotation_of(const Vec3& r) {
  const double angle = r.norm();
  return angle > 0 ? Eigen::AngleAxisd(angle, r / angle).toRotationMatrix() : Mat3(Mat3::Identity());
}

KeyPose key_pose(const std::vector<MotionKey>& keys, const std::string& interpolation, double t) {
  if (keys.empty()) return {};
  auto of_key = [](const MotionKey& k) { return KeyPose{k.translation, rotation_of(k.rotation), k.scale}; };
  if (t <= keys.front().t) return of_key(keys.front());
  if (t >= keys.back().t) return of_key(keys.back());
  const auto next =
      std::upper_bound(keys.begin(), keys.end(), t, [](double s, const MotionKey& k) { return s < k.t; });
  const MotionKey &a = *(next - 1), &b = *next;
  double s = (t - a.t) / (b.t - a.t);
  if (interpolation == "smooth") s = s * s * (3 - 2 * s);
  return {(1 - s) * a.translation + s * b.translation, rotation_of((1 - s) * a.rotation + s * b.rotation),
          (1 - s) * a.scale + s * b.scale};
}

}  // namespace limber
