#include <limber/rigid/articulation.hpp>

#include <limber/core/error.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/rigid/urdf.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>

namespace limber::rigid {
namespace {

using Json = nlohmann::ordered_json;

Vec3 vec3(const Json& j) { return {j.at(0).get<double>(), j.at(1).get<double>(), j.at(2).get<double>()}; }
Vec3 vec3(const Json& object, const char* key) { return vec3(object.at(key)); }
double number(const Json& object, const char* key) { return object.at(key).get<double>(); }
std::string text(const Json& object, const char* key) { return object.value(key, std::string()); }

VecX numbers(const Json& j) {
  if (j.is_number()) return VecX::Constant(1, j.get<double>());
  VecX x(static_cast<Eigen::Index>(j.size()));
  for (std::size_t i = 0; i < j.size(); ++i) x[static_cast<Eigen::Index>(i)] = j[i].get<double>();
  return x;
}

Shape read_solid(const Json& j, const std::string& folder, Inertia& inertia) {
  Shape s;
  const std::string kind = text(j, "shape");
  const double density = number(j, "density");
  s.pose = {exp_rotation(vec3(j, "rotation")), vec3(j, "position")};
  s.contact = j.at("contact").get<bool>();
  if (kind == "box") {
    s.kind = ShapeKind::kBox;
    s.size = vec3(j, "size");
    inertia = box_inertia(s.size, density);
  } else if (kind == "mesh") {
    s.kind = ShapeKind::kMesh;
    const std::string path = (std::filesystem::path(folder) / text(j, "mesh")).string();
    TriMesh mesh = read_surface(path);
    const Vec3 scale = vec3(j, "scale");
    for (Vec3& x : mesh.nodes) x = x.cwiseProduct(scale);
    try {
      inertia = mesh_inertia(mesh, density);
    } catch (const Error& e) {
      throw Error(ErrorKind::kInput, fmt::format("{}: {}", path, e.what()));
    }
    s.mesh = std::make_shared<const TriMesh>(std::move(mesh));
  } else {
    s.radius = number(j, "radius");
    if (kind == "sphere") {
      s.kind = ShapeKind::kSphere;
      inertia = sphere_inertia(s.radius, density);
    } else {
      s.length = number(j, "length");
      s.kind = kind == "cylinder" ? ShapeKind::kCylinder : ShapeKind::kCapsule;
      inertia = kind == "cylinder" ? cylinder_inertia(s.radius, s.length, density)
                                   : capsule_inertia(s.radius, s.length, density);
    }
  }
  inertia = moved(inertia, s.pose);
  return s;
}

Link read_link(const Json& j, const std::string& folder) {
  Link link;
  link.name = text(j, "name");
  link.damping = number(j, "damping");
  for (const Json& solid : j.at("shapes")) {
    Inertia part;
    link.shapes.push_back(read_solid(solid, folder, part));
    link.inertia = combined(link.inertia, part);
  }
  if (j.contains("mass")) {
    const double mass = number(j, "mass");
    if (link.inertia.mass > 0) link.inertia.I *= mass / link.inertia.mass;
    link.inertia.mass = mass;
  }
  return link;
}

Motor read_motor(const Json& j) {
  Motor motor;
  motor.kind = text(j, "type") == "speed" ? MotorKind::kSpeed : MotorKind::kTorque;
  if (j.contains("keys"))
    for (const Json& key : j.at("keys"))
      motor.value.points.emplace_back(key.at(0).get<double>(), key.at(1).get<double>());
  else if (j.contains("value"))
    motor.value.points = {{0.0, number(j, "value")}};
  return motor;
}

JointFriction read_friction(const Json& j) {
  JointFriction f;
  f.mu = number(j, "mu");
  f.radius = j.value("radius", 0.0);
  f.height = j.value("height", 0.0);
  if (j.contains("box")) f.box = vec3(j, "box");
  f.angles = j.value("points", f.angles);
  if (j.contains("side")) f.side = vec3(j, "side");
  return f;
}

JointType joint_type(const std::string& name) {
  for (const JointType t :
       {JointType::kFixed, JointType::kRevolute, JointType::kPrismatic, JointType::kUniversal,
        JointType::kSpherical, JointType::kPlanar, JointType::kFree})
    if (name == to_string(t)) return t;
  throw Error(ErrorKind::kInput, fmt::format("\"{}\" is not a type of joint", name));
}

Eigen::Vector4d quaternion(const Vec3& rotation) {
  const Quat a = exp_quat(rotation);
  return {a.w(), a.x(), a.y(), a.z()};
}

void read_limits(const Json& j, Joint& joint) {
  if (joint.type == JointType::kSpherical) {
    if (!j.contains("cone") && !j.contains("twist")) return;
    joint.lower = VecX::Constant(2, -INFINITY);
    joint.upper = VecX::Constant(2, INFINITY);
    if (j.contains("cone")) joint.upper[0] = number(j, "cone");
    if (!j.contains("twist")) return;
    joint.lower[1] = j.at("twist").at(0).get<double>();
    joint.upper[1] = j.at("twist").at(1).get<double>();
  } else if (j.contains("limits")) {
    const Json& limits = j.at("limits");
    const bool one = limits.at(0).is_number();  // revolute and prismatic joints: one pair
    const auto n = static_cast<Eigen::Index>(one ? 1 : limits.size());
    joint.lower.resize(n);
    joint.upper.resize(n);
    for (Eigen::Index k = 0; k < n; ++k) {
      const Json& pair = one ? limits : limits.at(static_cast<std::size_t>(k));
      joint.lower[k] = pair.at(0).get<double>();
      joint.upper[k] = pair.at(1).get<double>();
    }
  }
}

// Places are still those of the drawing; see settle().
Joint read_joint(const Json& j) {
  Joint joint;
  joint.type = joint_type(text(j, "type"));
  joint.parent = text(j, "parent");
  joint.child = text(j, "child");
  joint.name = text(j, "name");
  if (joint.name.empty()) joint.name = joint.child + "-joint";
  joint.frame.p = vec3(j, "position");
  if (j.contains("axis")) joint.axis = vec3(j, "axis");
  if (j.contains("axis2")) joint.axis2 = vec3(j, "axis2");
  switch (joint.type) {
    case JointType::kFixed:
      break;
    case JointType::kSpherical:
      joint.q = quaternion(vec3(j, "rotation"));
      joint.v = vec3(j, "angular_velocity");
      break;
    case JointType::kFree:
      joint.q.resize(7);
      joint.q << vec3(j, "translation"), quaternion(vec3(j, "rotation"));
      joint.v.resize(6);
      joint.v << vec3(j, "velocity"), vec3(j, "angular_velocity");
      break;
    default:
      joint.q = numbers(j.at("q"));
      joint.v = numbers(j.at("v"));
  }
  read_limits(j, joint);
  joint.stiffness = j.value("stiffness", 0.0);
  joint.damping = j.value("damping", 0.0);
  joint.dry_friction = j.value("dry_friction", 0.0);
  if (j.contains("rest"))
    joint.rest =
        joint.type == JointType::kSpherical ? VecX(quaternion(vec3(j, "rest"))) : numbers(j.at("rest"));
  if (j.contains("motor")) joint.motor = read_motor(j.at("motor"));
  if (j.contains("friction")) joint.friction = read_friction(j.at("friction"));
  return joint;
}

// From the drawing to frames relative to the parents: a link's frame has its origin in its joint and, at
// zero, the axes of the world.
struct Drawing {
  std::vector<Link> links;
  std::vector<Joint> joints;
  std::vector<Loop> loops;
  std::vector<Spring> springs;
  std::vector<Gear> gears;
  std::map<std::string, Pose> frames;  // of links, in the drawing
};

void settle(Drawing& d, std::size_t first_link, std::size_t first_joint) {
  for (std::size_t i = first_joint; i < d.joints.size(); ++i) d.frames[d.joints[i].child] = d.joints[i].frame;
  for (std::size_t i = first_joint; i < d.joints.size(); ++i) {
    Joint& j = d.joints[i];
    if (const auto parent = d.frames.find(j.parent); parent != d.frames.end())
      j.frame = parent->second.inverse() * j.frame;
  }
  for (std::size_t i = first_link; i < d.links.size(); ++i) {
    Link& l = d.links[i];
    const auto frame = d.frames.find(l.name);
    if (frame == d.frames.end()) continue;  // make_mechanism says that no joint carries it
    const Pose inverse = frame->second.inverse();
    l.inertia = moved(l.inertia, inverse);
    for (Shape& s : l.shapes) s.pose = inverse * s.pose;
  }
}

// The frames of robots' links in the drawing, from their joints; these are relative to parents from the
// start.
void place_robots(Drawing& d) {
  for (bool again = true; again;) {
    again = false;
    for (const Joint& j : d.joints) {
      const auto parent = d.frames.find(j.parent);
      if (d.frames.count(j.child) || (parent == d.frames.end() && j.parent != "world")) continue;
      const Pose frame = parent == d.frames.end() ? j.frame : parent->second * j.frame;
      d.frames[j.child] = frame;
      again = true;
    }
  }
}

Vec3 local_point(const Drawing& d, const std::string& link, const Vec3& x) {
  const auto frame = d.frames.find(link);
  return frame == d.frames.end() ? x : frame->second.inverse() * x;
}

Loop read_loop(const Json& j, const Drawing& d) {
  Loop l;
  l.link_a = text(j, "a");
  l.link_b = text(j, "b");
  l.name = text(j, "name");
  if (l.name.empty()) l.name = l.link_a + "-" + l.link_b;
  const std::string kind = text(j, "type");
  l.kind = kind == "pin" ? LoopKind::kPin : kind == "point" ? LoopKind::kPoint : LoopKind::kHinge;
  const Vec3 x = vec3(j, "position");
  l.point_a = local_point(d, l.link_a, x);
  l.point_b = local_point(d, l.link_b, x);
  if (j.contains("axis")) {
    l.axis_a = vec3(j, "axis");
    if (const auto frame = d.frames.find(l.link_a); frame != d.frames.end())
      l.axis_a = frame->second.R.transpose() * l.axis_a;
  }
  if (j.contains("friction")) l.friction = read_friction(j.at("friction"));
  if (const auto frame = d.frames.find(l.link_a); frame != d.frames.end())
    l.friction.side = frame->second.R.transpose() * l.friction.side;
  return l;
}

Spring read_spring(const Json& j, const Drawing& d) {
  Spring s;
  s.link_a = text(j, "a");
  s.link_b = text(j, "b");
  s.name = text(j, "name");
  if (s.name.empty()) s.name = s.link_a + "-" + s.link_b;
  s.point_a = local_point(d, s.link_a, vec3(j, "point_a"));
  s.point_b = local_point(d, s.link_b, vec3(j, "point_b"));
  s.stiffness = number(j, "stiffness");
  s.damping = number(j, "damping");
  s.rest_length = j.value("length", -1.0);
  return s;
}

Gear read_gear(const Json& j) {
  Gear g;
  g.joint_a = text(j, "a");
  g.joint_b = text(j, "b");
  g.name = text(j, "name");
  if (g.name.empty()) g.name = g.joint_a + "-" + g.joint_b;
  g.ratio = number(j, "ratio");
  if (j.contains("offset")) g.offset = number(j, "offset");
  return g;
}

// A robot's links and joints, named "prefix/name", hung on the world.
void add_robot(const Json& j, const std::string& folder, Drawing& d, std::vector<std::string>& notices) {
  const std::string path = (std::filesystem::path(folder) / text(j, "file")).string();
  const std::string prefix = text(j, "name");
  UrdfRobot robot = read_urdf(path, j.value("density", 0.0));
  for (const std::string& n : robot.notices) notices.push_back(fmt::format("{}: {}", path, n));
  const auto named = [&](const std::string& name) { return name == "world" ? name : prefix + "/" + name; };
  for (Link& l : robot.links) {
    l.name = named(l.name);
    d.links.push_back(std::move(l));
  }
  const Pose place = Pose{exp_rotation(vec3(j, "rotation")), vec3(j, "position")} * robot.root_frame;
  const bool free = text(j, "base") == "free";
  Joint base;
  base.name = prefix + "/base";
  if (!robot.root_massless) {
    base.type = free ? JointType::kFree : JointType::kFixed;
    base.parent = "world";
    base.child = named(robot.root);
    base.frame = place;
    robot.joints.insert(robot.joints.begin(), base);
  } else if (free) {
    throw Error(ErrorKind::kInput,
                fmt::format("robot \"{}\": its root link \"{}\" has no mass, so it cannot float; give "
                            "it an <inertial> in {}, or \"base\": \"fixed\"",
                            prefix, robot.root, path));
  } else {
    for (Joint& joint : robot.joints)
      if (joint.parent == robot.root) {
        joint.parent = "world";
        joint.frame = place * joint.frame;
      }
  }
  std::map<std::string, const Json*> settings;
  if (j.contains("joints"))
    for (const auto& [name, value] : j.at("joints").items()) settings[name] = &value;
  for (Joint& joint : robot.joints) {
    const bool is_base = joint.name == base.name;
    if (const auto it = settings.find(joint.name); it != settings.end()) {
      const Json& s = *it->second;
      if (s.contains("q")) joint.q = numbers(s.at("q"));
      if (s.contains("damping")) joint.damping = number(s, "damping");
      if (s.contains("dry_friction")) joint.dry_friction = number(s, "dry_friction");
      if (s.contains("stiffness")) joint.stiffness = number(s, "stiffness");
      if (s.contains("rest")) joint.rest = numbers(s.at("rest"));
      if (s.contains("motor")) joint.motor = read_motor(s.at("motor"));
      if (s.contains("friction")) joint.friction = read_friction(s.at("friction"));
      settings.erase(it);
    }
    if (!is_base) {
      joint.name = named(joint.name);
      joint.parent = named(joint.parent);
      joint.child = named(joint.child);
    }
    d.joints.push_back(std::move(joint));
  }
  for (Gear& g : robot.gears) {
    g.name = named(g.name);
    g.joint_a = named(g.joint_a);
    g.joint_b = named(g.joint_b);
    d.gears.push_back(std::move(g));
  }
  if (!settings.empty())
    throw Error(ErrorKind::kInput, fmt::format("robot \"{}\": {} has no joint called \"{}\"", prefix, path,
                                               settings.begin()->first));
}

// Corners, rims and vertices: enough points that no part of the shape sinks far into a plane between them.
void add_contact_points(Index link, const Shape& s, std::vector<ContactPoint>& points) {
  const auto push = [&](const Vec3& x, double radius) { points.push_back({link, s.pose * x, radius}); };
  switch (s.kind) {
    case ShapeKind::kBox:
      for (int k = 0; k < 8; ++k)
        push(0.5 * s.size.cwiseProduct(Vec3((k & 1) ? 1 : -1, (k & 2) ? 1 : -1, (k & 4) ? 1 : -1)), 0);
      break;
    case ShapeKind::kSphere:
      push(Vec3::Zero(), s.radius);
      break;
    case ShapeKind::kCapsule:
      for (const double end : {-0.5, 0.5}) push(Vec3(0, 0, end * s.length), s.radius);
      break;
    case ShapeKind::kCylinder:
      for (int k = 0; k < 8; ++k) {
        const double a = k * M_PI / 4;
        for (const double end : {-0.5, 0.5})
          push(Vec3(s.radius * std::cos(a), s.radius * std::sin(a), end * s.length), 0);
      }
      break;
    case ShapeKind::kMesh:
      for (const Vec3& x : s.mesh->nodes) push(x, 0);
      break;
  }
}

}  // namespace

Articulation build_articulation(const Json& description, const std::string& folder) {
  Articulation a;
  Drawing d;
  for (const Json& j : description.at("robots")) add_robot(j, folder, d, a.notices);
  place_robots(d);
  const std::size_t first_link = d.links.size(), first_joint = d.joints.size();
  for (const Json& j : description.at("links")) d.links.push_back(read_link(j, folder));
  for (const Json& j : description.at("joints")) d.joints.push_back(read_joint(j));
  settle(d, first_link, first_joint);
  for (const Json& j : description.at("loops")) d.loops.push_back(read_loop(j, d));
  for (const Json& j : description.at("springs")) d.springs.push_back(read_spring(j, d));
  for (const Json& j : description.at("gears")) d.gears.push_back(read_gear(j));
  follow_gears(d.gears, d.joints);
  if (const Json& method = description.at("method"); method.at("type") == "joints" &&
                                                     method.at("friction") == "sp" &&
                                                     !(d.springs.empty() && d.gears.empty()))
    throw Error(ErrorKind::kInput,
                "/method/friction: \"sp\" knows neither springs between links nor gears (mimic joints); use "
                "\"bisp\"");
  if (const Json& method = description.at("method"); method.contains("mu")) {
    const auto set = [&](JointFriction& f) {
      if (f.radius > 0 || f.box.maxCoeff() > 0) f.mu = number(method, "mu");
    };
    for (Joint& j : d.joints) set(j.friction);
    for (Loop& l : d.loops) set(l.friction);
  }
  a.mechanism = make_mechanism(std::move(d.links), std::move(d.joints), std::move(d.loops),
                               std::move(d.springs), std::move(d.gears));
  a.q = initial_positions(a.mechanism);
  a.v = initial_velocities(a.mechanism);
  close_loops(a.mechanism, a.q);
  Motion motion;
  update_motion(a.mechanism, a.q, a.v, motion);
  set_rest_lengths(a.mechanism, motion);
  a.surfaces = inner_surfaces(a.mechanism);
  for (Index i = 0; i < a.mechanism.size(); ++i)
    for (const Shape& s : a.mechanism.links[at(i)].shapes)
      if (s.contact) add_contact_points(i, s, a.points);
  return a;
}

std::vector<Contact> find_contacts(const Articulation& a, const std::vector<Obstacle>& obstacles,
                                   const Motion& motion, double t, double h) {
  std::vector<Contact> contacts;
  for (const Obstacle& o : obstacles) {
    const Placement before = placement_at(o, t), after = placement_at(o, t + h);
    const Box box = bounds(o, after);
    for (const ContactPoint& p : a.points) {
      const LinkMotion& l = motion.links[at(p.link)];
      const Vec3 x = l.pose * p.x;
      const Vec3 v = point_velocity(l.phi, x - l.com);
      // What the point can travel in this step, with room for acceleration.
      const double reach = 2 * h * v.norm() + 1e-3 + p.radius;
      if (((x - box.hi).array() > reach).any() || ((box.lo - x).array() > reach).any()) continue;
      const SurfacePoint s = closest_point(o, after, x);
      if (s.distance - p.radius > reach - p.radius) continue;
      Contact c;
      c.link = p.link;
      c.n = s.n;
      c.x = x - p.radius * s.n;
      c.mu = o.friction;
      c.obstacle_velocity = (s.x - before.to_world(after.to_local(s.x))) / h;
      // The gap is that at the start of the step; the obstacle's own motion is in its velocity.
      c.gap = s.distance - p.radius + h * c.n.dot(c.obstacle_velocity);
      contacts.push_back(c);
    }
  }
  return contacts;
}

}  // namespace limber::rigid
