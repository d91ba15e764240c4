#include <limber/scene/hold_motion.hpp>

#include <algorithm>
#include <cmath>

namespace limber {

KeyPose hold_pose(const Scene& scene, std::size_t constraint, double t) {
  const ConstraintSpec& own = scene.constraints[constraint];
  KeyPose pose = key_pose(own.motion, own.interpolation, t);
  for (Index p = own.parent; p >= 0; p = scene.constraints[at(p)].parent) {
    const ConstraintSpec& carrier = scene.constraints[at(p)];
    const KeyPose of = key_pose(carrier.motion, carrier.interpolation, t);
    // Where the carrier puts center + translation, seen from the center again.
    const Vec3 place = own.center + pose.translation;
    pose.translation =
        carrier.center + of.translation + of.scale * (of.R * (place - carrier.center)) - own.center;
    pose.R = of.R * pose.R;
    pose.scale *= of.scale;
  }
  return pose;
}

KeyPose first_pose(const Scene& scene, std::size_t constraint) {
  const double from = scene.constraints[constraint].from;
  return hold_pose(scene, constraint, scene.h * std::ceil(from / scene.h - 1e-6));
}

bool hold_moves(const Scene& scene, std::size_t constraint) {
  for (auto c = static_cast<Index>(constraint); c >= 0; c = scene.constraints[at(c)].parent)
    if (!scene.constraints[at(c)].motion.empty()) return true;
  return false;
}

Vec3 spring_point(const SpringSpec& spring, double t) {
  const auto& keys = spring.keys;
  if (t >= keys.back().first) return keys.back().second;
  const auto next =
      std::upper_bound(keys.begin(), keys.end(), t, [](double s, const auto& k) { return s < k.first; });
  if (next == keys.begin()) return keys.front().second;
  const auto &a = *(next - 1), &b = *next;
  // So written that the first key's point, and one that two keys share, come out to the last bit.
  return a.second + (t - a.first) / (b.first - a.first) * (b.second - a.second);
}

}  // namespace limber
