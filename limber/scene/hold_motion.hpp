// Where held nodes are moved: by their own keys, and by the bones that carry them; where springs pull to.
#pragma once

#include <limber/scene/scene.hpp>

#include <cstddef>

namespace limber {

// The motion of a constraint at time t, about its `center`.
KeyPose hold_pose(const Scene& scene, std::size_t constraint, double t);
// The one at its first step. Nodes stay where they are then and are moved by what changes from there on.
KeyPose first_pose(const Scene& scene, std::size_t constraint);
// Whether it has keys, or is carried by something that has.
bool hold_moves(const Scene& scene, std::size_t constraint);

// Where a spring's far end is at time t; exactly a key's point at that key's time.
Vec3 spring_point(const SpringSpec& spring, double t);
// Its force on nodes whose centre of mass is at x and moves at v [N].
inline Vec3 spring_force(const SpringSpec& spring, double t, const Vec3& x, const Vec3& v) {
  return spring.stiffness * (spring_point(spring, t) - x) - spring.damping * v;
}

}  // namespace limber
