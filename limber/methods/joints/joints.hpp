// JOINTS: articulated bodies in joint velocities, with friction inside the joints (chapter 3 of Weidner's
// dissertation; docs/methods/joints.md). The scene has links and no soft bodies; `vanilla` and `conjac` move
// links together with flesh.
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

extern const Method joints_method;

}  // namespace limber
