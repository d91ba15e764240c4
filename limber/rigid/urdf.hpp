// Robots from URDF files: links with inertias and shapes, joints with limits and damping.
#pragma once

#include <limber/rigid/mechanism.hpp>

namespace limber::rigid {

struct UrdfRobot {
  std::string name;
  std::string root;            // the link from which all others hang
  bool root_massless = false;  // the root is only a frame: its children must hang from the world
  std::vector<Link> links;     // without a massless root
  std::vector<Joint> joints;
  std::vector<std::string> notices;  // what was left out or changed
};

// Throws Error(kInput) that names the file, line, link or joint: bad XML, missing parts, unknown joint types,
// mimic joints, several roots, links without mass on moving joints.
UrdfRobot read_urdf(const std::string& path);
// The same from text; `path` is for messages and for finding meshes.
UrdfRobot parse_urdf(const std::string& text, const std::string& path);

}  // namespace limber::rigid
