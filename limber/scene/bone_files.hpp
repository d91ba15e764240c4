// Motions of bones that are in files of their own.
#pragma once

#include <limber/scene/scene.hpp>

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>

namespace limber {

// Fills in the keys of bones that have a motion file (/bones/N/bvh, /bones/N/gltf). Bones are the last
// constraints of the scene. `folder`: what names of files are relative to.
void read_bone_files(const nlohmann::ordered_json& resolved, const std::string& folder, Scene& scene,
                     const std::function<void(const std::string& pointer, const char* message)>& problem);

}  // namespace limber
