// Where held nodes are moved: by their own keys, and by the bones that carry them.
#pragma once

#include <limber/scene/scene.hpp>

#include <cstddef>

namespace limber {

// The motion of a constraint at time t, about its `center`.
KeyPose hold_pose(const Scene& scene, std::size_t constraint, double t);
// Whether it has keys, or is carried by something that has.
bool hold_moves(const Scene& scene, std::size_t constraint);

}  // namespace limber
