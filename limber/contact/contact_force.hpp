// A contact's force on a node, for output.
#pragma once

#include <limber/core/types.hpp>

namespace limber {

struct ContactForce {
  Index node = -1;
  Index obstacle = -1;        // -1: another body, or another part of the same one
  Vec3 force = Vec3::Zero();  // on the node [N]
};

}  // namespace limber
