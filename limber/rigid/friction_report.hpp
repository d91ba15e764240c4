// What friction does in one joint, as a number for reports.
#pragma once

#include <limber/rigid/inner_contacts.hpp>

namespace limber::rigid {

// Of the wrench that friction exerts on link a of the surface: its torque about the axis of a pin, its force
// along a slider, the norm of its torque in a ball.
inline double friction_number(const Mechanism& m, const Motion& motion, const InnerSurface& s,
                              const Vec6& wrench) {
  const LinkMotion& l = motion.links[static_cast<std::size_t>(s.a)];
  const Vec3 r = l.com - l.pose * s.centre;
  const Vec3 torque = wrench.head<3>() + r.cross(Vec3(wrench.tail<3>()));
  const auto owner = static_cast<std::size_t>(s.owner);
  const JointType type = s.loop ? JointType::kRevolute : m.joints[owner].type;
  const Vec3 axis = l.pose.R * (s.loop ? m.loops[owner].axis_a : m.joints[owner].axis);
  if (type == JointType::kRevolute) return torque.dot(axis);
  return type == JointType::kPrismatic ? wrench.tail<3>().dot(axis) : torque.norm();
}

}  // namespace limber::rigid
