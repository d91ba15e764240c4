#include <limber/sim/read_mechanism.hpp>

#include <limber/core/error.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/scene/json_text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>

namespace limber {
namespace rigid {
namespace {

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

// Places are those of the drawing.
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
  if (j.contains("axis")) l.axis_a = local_direction(d, l.link_a, vec3(j, "axis"));
  if (j.contains("friction")) l.friction = read_friction(j.at("friction"));
  l.friction.side = local_direction(d, l.link_a, l.friction.side);
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

// A robot's links and joints, named "name/...", hung on the world.
void read_robot(const Json& j, const std::string& folder, Drawing& d) {
  const std::string path = (std::filesystem::path(folder) / text(j, "file")).string();
  const std::string name = text(j, "name");
  UrdfRobot robot = read_urdf(path, j.value("density", 0.0));
  for (const std::string& n : robot.notices) d.notices.push_back(fmt::format("{}: {}", path, n));
  const bool free = text(j, "base") == "free";
  if (robot.root_massless && free)
    throw Error(ErrorKind::kInput,
                fmt::format("robot \"{}\": its root link \"{}\" has no mass, so it cannot float; give "
                            "it an <inertial> in {}, or \"base\": \"fixed\"",
                            name, robot.root, path));
  hang_on_world(name, {exp_rotation(vec3(j, "rotation")), vec3(j, "position")}, free, robot);
  std::map<std::string, const Json*> settings;
  if (j.contains("joints"))
    for (const auto& [joint, value] : j.at("joints").items()) settings[joint] = &value;
  for (Joint& joint : robot.joints) {
    const auto it = settings.find(joint.name);
    if (it == settings.end()) continue;
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
  if (!settings.empty())
    throw Error(ErrorKind::kInput, fmt::format("robot \"{}\": {} has no joint called \"{}\"", name, path,
                                               settings.begin()->first));
  add_robot(name, std::move(robot), d);
}

// One coefficient for all surfaces inside joints.
void set_mu(double mu, Drawing& d) {
  const auto set = [&](JointFriction& f) {
    if (f.radius > 0 || f.box.maxCoeff() > 0) f.mu = mu;
  };
  for (Joint& j : d.joints) set(j.friction);
  for (Loop& l : d.loops) set(l.friction);
}

}  // namespace
}  // namespace rigid

rigid::Articulation read_articulation(const Json& description, const std::string& folder) {
  rigid::Drawing d;
  for (const Json& j : description.at("robots")) rigid::read_robot(j, folder, d);
  std::vector<rigid::Link> links;
  std::vector<rigid::Joint> joints;
  for (const Json& j : description.at("links")) links.push_back(rigid::read_link(j, folder));
  for (const Json& j : description.at("joints")) joints.push_back(rigid::read_joint(j));
  rigid::add_drawn(std::move(links), std::move(joints), d);
  for (const Json& j : description.at("loops")) d.loops.push_back(rigid::read_loop(j, d));
  for (const Json& j : description.at("springs")) d.springs.push_back(rigid::read_spring(j, d));
  for (const Json& j : description.at("gears")) d.gears.push_back(rigid::read_gear(j));
  if (const Json& method = description.at("method"); method.contains("mu"))
    rigid::set_mu(method.at("mu").get<double>(), d);
  return rigid::make_articulation(std::move(d));
}

}  // namespace limber
