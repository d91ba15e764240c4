// Robots from URDF files: links with inertias and shapes, joints with limits and damping, mimic joints.
#pragma once

#include <limber/rigid/mechanism.hpp>

namespace limber::rigid {

struct UrdfRobot {
  std::string name;
  std::string root;            // the link from which all others hang
  Pose root_frame;             // where it is in the frame of the file's own root
  bool root_massless = false;  // the root is only a frame: its children must hang from the world
  std::vector<Link> links;     // without a massless root
  std::vector<Joint> joints;
  std::vector<Gear> gears;           // mimic joints
  std::vector<std::string> notices;  // what was left out or changed
};

// `density` [kg/m^3]: links without <inertial> get the mass of their shapes; 0: they are frames. Throws
// Error(kInput) that names the file, line, link or joint: bad XML, missing parts, unknown joint types,
// several roots, no mass at all.
UrdfRobot read_urdf(const std::string& path, double density = 0);
// The same from text; `path` is for messages and for finding meshes.
UrdfRobot parse_urdf(const std::string& text, const std::string& path, double density = 0);

}  // namespace limber::rigid
