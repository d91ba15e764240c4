// The scenes that come with Limber: named the same way everywhere, wherever they are on this machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace limber {

// The folder that has "scenes" in it: this one, that of the source tree that the program was built in, or
// where it was installed. Empty: none.
std::filesystem::path gallery_root();

// All of them, as "scenes/conjac/dragon.json", in order.
std::vector<std::string> gallery_scenes();

// `file` itself; or, where there is none and it names a scene of the gallery, that.
std::string scene_path(const std::string& file);

}  // namespace limber
