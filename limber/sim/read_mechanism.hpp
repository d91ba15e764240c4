// Links, joints, loops, springs and robots from a scene.
#pragma once

#include <limber/rigid/articulation.hpp>

#include <nlohmann/json_fwd.hpp>

namespace limber {

// `description`: the keys links, joints, loops, springs, gears, robots and method of a resolved scene. Places
// are in world coordinates of the drawing (rigid/drawing.hpp); the initial q then moves the links. File names
// are relative to `folder`. Throws Error(kInput) with everything that is wrong.
rigid::Articulation read_articulation(const nlohmann::ordered_json& description, const std::string& folder);

}  // namespace limber
