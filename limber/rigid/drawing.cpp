#include <limber/rigid/drawing.hpp>

namespace limber::rigid {

void hang_on_world(const std::string& name, const Pose& place, bool free, UrdfRobot& robot) {
  const Pose root = place * robot.root_frame;
  if (!robot.root_massless) {
    Joint base;
    base.name = name + "/base";
    base.type = free ? JointType::kFree : JointType::kFixed;
    base.parent = "world";
    base.child = robot.root;
    base.frame = root;
    robot.joints.insert(robot.joints.begin(), base);
    return;
  }
  for (Joint& joint : robot.joints)
    if (joint.parent == robot.root) {
      joint.parent = "world";
      joint.frame = root * joint.frame;
    }
}

void add_robot(const std::string& name, UrdfRobot robot, Drawing& d) {
  const auto named = [&](const std::string& part) { return part == "world" ? part : name + "/" + part; };
  for (Link& l : robot.links) {
    l.name = named(l.name);
    d.links.push_back(std::move(l));
  }
  const std::size_t first = d.joints.size();
  for (Joint& joint : robot.joints) {
    if (joint.name != name + "/base") joint.name = named(joint.name);
    joint.parent = named(joint.parent);
    joint.child = named(joint.child);
    d.joints.push_back(std::move(joint));
  }
  for (Gear& g : robot.gears) {
    g.name = named(g.name);
    g.joint_a = named(g.joint_a);
    g.joint_b = named(g.joint_b);
    d.gears.push_back(std::move(g));
  }
  // The frames of its links in the drawing: joints are relative to parents from the start.
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = first; i < d.joints.size(); ++i) {
      const Joint& j = d.joints[i];
      const auto parent = d.frames.find(j.parent);
      if (d.frames.count(j.child) || (parent == d.frames.end() && j.parent != "world")) continue;
      const Pose frame = parent == d.frames.end() ? j.frame : parent->second * j.frame;
      d.frames[j.child] = frame;
      again = true;
    }
  }
}

void add_drawn(std::vector<Link> links, std::vector<Joint> joints, Drawing& d) {
  for (const Joint& j : joints) d.frames[j.child] = j.frame;
  for (Joint& j : joints) {
    if (const auto parent = d.frames.find(j.parent); parent != d.frames.end())
      j.frame = parent->second.inverse() * j.frame;
    d.joints.push_back(std::move(j));
  }
  for (Link& l : links) {
    // make_mechanism says so when no joint carries it.
    if (const auto frame = d.frames.find(l.name); frame != d.frames.end()) {
      const Pose inverse = frame->second.inverse();
      l.inertia = moved(l.inertia, inverse);
      for (Shape& s : l.shapes) s.pose = inverse * s.pose;
    }
    d.links.push_back(std::move(l));
  }
}

Vec3 local_point(const Drawing& d, const std::string& link, const Vec3& x) {
  const auto frame = d.frames.find(link);
  return frame == d.frames.end() ? x : frame->second.inverse() * x;
}

Vec3 local_direction(const Drawing& d, const std::string& link, const Vec3& x) {
  const auto frame = d.frames.find(link);
  return frame == d.frames.end() ? x : Vec3(frame->second.R.transpose() * x);
}

}  // namespace limber::rigid
