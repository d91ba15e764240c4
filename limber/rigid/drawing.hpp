// Links and joints as somebody draws them: places in world coordinates of the *drawing*, the position in
// which all joints are at zero. Each link's own frame has its origin in its joint.
#pragma once

#include <limber/rigid/urdf.hpp>

#include <map>

namespace limber::rigid {

struct Drawing {
  std::vector<Link> links;    // in their own frames
  std::vector<Joint> joints;  // in the frames of their parents
  std::vector<Loop> loops;
  std::vector<Spring> springs;
  std::vector<Gear> gears;
  std::map<std::string, Pose> frames;  // of links, in the drawing
  std::vector<std::string> notices;    // what was changed or left out on the way (URDF)
};

// Hangs a robot on the world: its root at `place` by a joint "name/base", fixed or free; a root without mass
// is only a frame (and cannot float), its children hang at their places.
void hang_on_world(const std::string& name, const Pose& place, bool free, UrdfRobot& robot);
// The links, joints and gears of a robot that hangs on the world, called "name/...".
void add_robot(const std::string& name, UrdfRobot robot, Drawing& drawing);
// Links and joints in world coordinates of the drawing.
void add_drawn(std::vector<Link> links, std::vector<Joint> joints, Drawing& drawing);

// Of the drawing, in the frame of a link; links that are not there (the world) have the drawing's.
Vec3 local_point(const Drawing& drawing, const std::string& link, const Vec3& x);
Vec3 local_direction(const Drawing& drawing, const std::string& link, const Vec3& d);

}  // namespace limber::rigid
