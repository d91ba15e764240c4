#include <limber/rigid/urdf.hpp>

#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/io/xml.hpp>
#include <limber/rigid/kinematics.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

namespace limber::rigid {
namespace {

using Element = io::XmlElement;

class Reader {
 public:
  Reader(const std::string& path, double density) : path_(path), density_(density) {}

  UrdfRobot read(const std::string& text) {
    io::Cursor cursor(path_, text);
    const Element document = io::read_xml(cursor);
    const Element* robot = document.child("robot");
    if (!robot)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: expected a <robot> element; is this a URDF file? (xacro files "
                              "must be expanded first)",
                              path_));
    for (const Element& e : robot->children) read_leftover(e);
    out_.name = attribute(robot, "name", "robot");
    for (const Element* e : robot->all("link")) read_link(e);
    for (const Element* e : robot->all("joint")) read_joint(e);
    if (out_.links.empty()) fail(robot, "the robot has no links");
    find_root(robot);
    couple_joints();
    fold_frames();
    if (ignored_effort_) out_.notices.push_back("effort and velocity limits of joints are not used");
    return std::move(out_);
  }

 private:
  // Calls of macros that nobody defined stay behind in expanded files (the PR2's own has them), and describe
  // other programs' business. A file that still defines something has not been expanded.
  void read_leftover(const Element& e) {
    if (e.tag.name.rfind("xacro:", 0) != 0) return;
    for (const char* name : {"include", "macro", "property", "arg", "if", "unless", "insert_block"})
      if (e.tag.name == std::string("xacro:") + name)
        fail(&e, "this is a xacro file; expand it to URDF first");
    out_.notices.push_back(fmt::format("line {}: <{}> was left out", e.line, e.tag.name));
  }

  [[noreturn]] void fail(const Element* e, const std::string& what) const {
    throw Error(ErrorKind::kInput, fmt::format("{}:{}: {}", path_, e->line, what));
  }

  static std::string attribute(const Element* e, const char* name, const std::string& fallback = {}) {
    return e ? e->tag.get(name, fallback) : fallback;
  }

  std::string required(const Element* e, const char* name, const std::string& what) const {
    const std::string value = attribute(e, name);
    if (value.empty()) fail(e, fmt::format("{} has no \"{}\"", what, name));
    return value;
  }

  double number(const Element* e, const char* name, const std::string& what, double fallback = NAN) const {
    if (!e->has(name)) {
      if (std::isnan(fallback)) fail(e, fmt::format("{} has no \"{}\"", what, name));
      return fallback;
    }
    const std::string text = e->tag.get(name);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    while (*end == ' ') ++end;
    if (text.empty() || *end != 0 || !std::isfinite(value))
      fail(e, fmt::format("{}: \"{}\" is \"{}\", expected a number", what, name, text));
    return value;
  }

  Vec3 numbers(const Element* e, const char* name, const std::string& what, const Vec3& fallback) const {
    if (!e || !e->has(name)) return fallback;
    const std::string text = e->tag.get(name);
    std::istringstream in(text);
    Vec3 v;
    std::string rest;
    if (!(in >> v[0] >> v[1] >> v[2]) || (in >> rest) || !v.allFinite())
      fail(e, fmt::format("{}: \"{}\" is \"{}\", expected three numbers", what, name, text));
    return v;
  }

  Pose origin(const Element* parent, const std::string& what) const {
    const Element* e = parent->child("origin");
    Pose pose;
    pose.p = numbers(e, "xyz", what, Vec3::Zero());
    const Vec3 rpy = numbers(e, "rpy", what, Vec3::Zero());
    pose.R = exp_rotation(Vec3(0, 0, rpy[2])) * exp_rotation(Vec3(0, rpy[1], 0)) *
             exp_rotation(Vec3(rpy[0], 0, 0));
    return pose;
  }

  void read_link(const Element* e) {
    Link link;
    link.name = required(e, "name", "a <link>");
    const std::string what = fmt::format("link \"{}\"", link.name);
    if (!links_.insert(link.name).second) fail(e, fmt::format("two links are called \"{}\"", link.name));
    if (const Element* inertial = e->child("inertial")) {
      const Element* mass = inertial->child("mass");
      const Element* inertia = inertial->child("inertia");
      if (!mass || !inertia) fail(inertial, what + ": <inertial> needs <mass> and <inertia>");
      link.inertia.mass = number(mass, "value", what + " <mass>");
      if (link.inertia.mass < 0) fail(mass, what + ": its mass is negative");
      const double xx = number(inertia, "ixx", what), yy = number(inertia, "iyy", what),
                   zz = number(inertia, "izz", what);
      const double xy = number(inertia, "ixy", what, 0), xz = number(inertia, "ixz", what, 0),
                   yz = number(inertia, "iyz", what, 0);
      link.inertia.I << xx, xy, xz, xy, yy, yz, xz, yz, zz;
      link.inertia = moved(link.inertia, origin(inertial, what));
      if (link.inertia.mass > 0)
        if (const std::string fault = inertia_fault(link.inertia); !fault.empty())
          fail(inertial, what + ": " + fault);
    }
    // What collides is what is also drawn, unless there is nothing that collides.
    const bool collides = e->child("collision") != nullptr;
    for (const Element* s : e->all(collides ? "collision" : "visual")) read_shape(s, what, collides, link);
    if (!e->child("inertial") && density_ > 0)
      for (const Shape& s : link.shapes) link.inertia = combined(link.inertia, solid(s, e, what));
    out_.links.push_back(std::move(link));
  }

  // The inertia of a shape that is filled with `density_`.
  Inertia solid(const Shape& s, const Element* e, const std::string& what) const {
    Inertia inertia;
    switch (s.kind) {
      case ShapeKind::kBox:
        inertia = box_inertia(s.size, density_);
        break;
      case ShapeKind::kSphere:
        inertia = sphere_inertia(s.radius, density_);
        break;
      case ShapeKind::kCylinder:
        inertia = cylinder_inertia(s.radius, s.length, density_);
        break;
      case ShapeKind::kCapsule:
        inertia = capsule_inertia(s.radius, s.length, density_);
        break;
      case ShapeKind::kMesh:
        try {
          inertia = mesh_inertia(*s.mesh, density_);
        } catch (const Error& error) {
          fail(e, fmt::format("{}: no mass follows from its mesh ({}); give it an <inertial>", what,
                              error.what()));
        }
        break;
    }
    return moved(inertia, s.pose);
  }

  void read_shape(const Element* e, const std::string& what, bool collides, Link& link) {
    const Element* geometry = e->child("geometry");
    if (!geometry || geometry->children.empty()) fail(e, what + ": a shape has no <geometry>");
    const Element* g = &geometry->children.front();
    const std::string& kind = g->tag.name;
    Shape s;
    s.pose = origin(e, what);
    s.contact = collides;
    if (kind == "box") {
      s.kind = ShapeKind::kBox;
      s.size = numbers(g, "size", what, Vec3::Zero());
      if (!(s.size.minCoeff() > 0))
        fail(g, what + ": a box needs a \"size\" of three numbers greater than 0");
    } else if (kind == "sphere") {
      s.kind = ShapeKind::kSphere;
      s.radius = number(g, "radius", what);
    } else if (kind == "cylinder" || kind == "capsule") {
      s.kind = kind == "cylinder" ? ShapeKind::kCylinder : ShapeKind::kCapsule;
      s.radius = number(g, "radius", what);
      s.length = number(g, "length", what);
    } else if (kind == "mesh") {
      const std::string name = required(g, "filename", what + ": a mesh");
      s.kind = ShapeKind::kMesh;
      s.contact = false;  // thousands of vertices in contact serve nobody
      s.mesh = find_mesh(name, numbers(g, "scale", what, Vec3::Ones()), what);
      if (!s.mesh) return;
    } else {
      out_.notices.push_back(fmt::format("{}: shape <{}> is not supported and was left out", what, kind));
      return;
    }
    link.shapes.push_back(s);
  }

  // "package://robot/meshes/a.stl" is looked for beside the file and in the folders above it.
  std::shared_ptr<const TriMesh> find_mesh(std::string name, const Vec3& scale, const std::string& what) {
    namespace fs = std::filesystem;
    for (const std::string& scheme :
         {std::string("package://"), std::string("file://"), std::string("model://")})
      if (name.rfind(scheme, 0) == 0) name = name.substr(scheme.size());
    std::vector<fs::path> tries{name};
    if (const auto slash = name.find('/'); slash != std::string::npos)
      tries.push_back(name.substr(slash + 1));
    fs::path folder = fs::absolute(path_).parent_path();
    for (int up = 0; up < 4 && !folder.empty(); ++up, folder = folder.parent_path())
      for (const fs::path& t : tries) {
        std::error_code none;
        if (!fs::is_regular_file(folder / t, none)) continue;
        try {
          TriMesh mesh = read_surface((folder / t).string());
          for (Vec3& x : mesh.nodes) x = x.cwiseProduct(scale);
          return std::make_shared<const TriMesh>(std::move(mesh));
        } catch (const Error&) {
          out_.notices.push_back(
              fmt::format("{}: mesh \"{}\" has a format that cannot be read; it is not drawn", what, name));
          return nullptr;
        }
      }
    out_.notices.push_back(fmt::format("{}: mesh \"{}\" was not found; it is not drawn", what, name));
    return nullptr;
  }

  void read_joint(const Element* e) {
    Joint j;
    j.name = required(e, "name", "a <joint>");
    const std::string what = fmt::format("joint \"{}\"", j.name);
    const std::string type = required(e, "type", what);
    static const std::map<std::string, JointType> types{
        {"revolute", JointType::kRevolute},   {"continuous", JointType::kRevolute},
        {"prismatic", JointType::kPrismatic}, {"fixed", JointType::kFixed},
        {"floating", JointType::kFree},       {"planar", JointType::kPlanar}};
    const auto known = types.find(type);
    if (known == types.end())
      fail(e,
           fmt::format(
               "{}: type \"{}\" is not supported; expected revolute, continuous, prismatic, fixed, floating "
               "or planar",
               what, type));
    j.type = known->second;
    const Element* parent = e->child("parent");
    const Element* child = e->child("child");
    if (!parent || !child) fail(e, what + " needs <parent link=...> and <child link=...>");
    j.parent = required(parent, "link", what + " <parent>");
    j.child = required(child, "link", what + " <child>");
    for (const auto& [element, name] : {std::pair(parent, j.parent), std::pair(child, j.child)})
      if (!links_.count(name)) fail(element, fmt::format("{}: link \"{}\" does not exist", what, name));
    if (const Element* mimic = e->child("mimic")) {
      Gear g;
      g.name = g.joint_a = j.name;
      g.joint_b = required(mimic, "joint", what + " <mimic>");
      g.ratio = number(mimic, "multiplier", what + " <mimic>", 1);
      g.offset = number(mimic, "offset", what + " <mimic>", 0);
      if (velocity_numbers(j.type) != 1)
        fail(mimic,
             fmt::format("{}: a {} joint cannot mimic another; only revolute, continuous and prismatic "
                         "joints can",
                         what, type));
      if (g.ratio == 0) fail(mimic, what + ": its <mimic> multiplier is 0; make the joint fixed instead");
      mimics_.push_back({g, mimic});
    }
    j.frame = origin(e, what);
    const Vec3 axis = numbers(e->child("axis"), "xyz", what, Vec3::UnitX());
    if (j.type != JointType::kFixed && j.type != JointType::kFree && !(axis.norm() > 1e-9))
      fail(e, what + ": its axis has no direction");
    if (axis.norm() > 1e-9) j.axis = axis.normalized();
    const Element* limit = e->child("limit");
    if (type == "revolute" || type == "prismatic") {
      if (!limit) fail(e, fmt::format("{}: a {} joint needs <limit lower=... upper=...>", what, type));
      j.lower = VecX::Constant(1, number(limit, "lower", what, 0));
      j.upper = VecX::Constant(1, number(limit, "upper", what, 0));
      if (j.lower[0] > j.upper[0]) fail(limit, what + ": its lower limit is above the upper one");
      const double start = std::clamp(0.0, j.lower[0], j.upper[0]);
      j.q = VecX::Constant(1, start);
      if (start != 0)
        out_.notices.push_back(fmt::format("{}: zero is outside its limits; it starts at {:g}", what, start));
    }
    if (limit && (limit->has("effort") || limit->has("velocity"))) ignored_effort_ = true;
    if (const Element* dynamics = e->child("dynamics")) {
      j.damping = number(dynamics, "damping", what, 0);
      if (velocity_numbers(j.type) == 1) j.dry_friction = number(dynamics, "friction", what, 0);
      if (j.damping < 0 || j.dry_friction < 0)
        fail(dynamics, what + ": damping and friction must not be negative");
    }
    out_.joints.push_back(std::move(j));
  }

  // Mimic joints start where the joint that they follow puts them.
  void couple_joints() {
    const auto find_joint = [&](const std::string& name) -> Joint* {
      for (Joint& j : out_.joints)
        if (j.name == name) return &j;
      return nullptr;
    };
    for (const auto& [g, element] : mimics_) {
      const Joint* leader = find_joint(g.joint_b);
      const std::string what = fmt::format("joint \"{}\" <mimic>", g.joint_a);
      if (!leader) fail(element, fmt::format("{}: there is no joint \"{}\"", what, g.joint_b));
      if (velocity_numbers(leader->type) != 1)
        fail(element, fmt::format("{}: joint \"{}\" is {}, expected revolute, continuous or prismatic", what,
                                  g.joint_b, to_string(leader->type)));
      out_.gears.push_back(g);
    }
    follow_gears(out_.gears, out_.joints);
  }

  void find_root(const Element* robot) {
    std::set<std::string> children;
    for (const Joint& j : out_.joints) children.insert(j.child);
    std::vector<std::string> roots;
    for (const Link& l : out_.links)
      if (!children.count(l.name)) roots.push_back(l.name);
    if (roots.empty()) fail(robot, "every link is the child of a joint: the joints form a cycle");
    if (roots.size() > 1)
      fail(robot, fmt::format("links \"{}\" and \"{}\" both hang from nothing; a robot has one root",
                              roots[0], roots[1]));
    out_.root = roots[0];
  }

  Link* find(const std::string& name) {
    for (Link& l : out_.links)
      if (l.name == name) return &l;
    return nullptr;
  }

  // Links without mass are frames (tool points, sensors). A frame on a fixed joint becomes part of its
  // parent, and a link that is fixed to a frame part of that; a massless root with one fixed joint becomes
  // part of its child.
  void fold_fixed() {
    for (bool again = true; again;) {
      again = false;
      for (std::size_t i = 0; i < out_.joints.size(); ++i) {
        const Joint j = out_.joints[i];
        if (j.type != JointType::kFixed) continue;
        Link* parent = find(j.parent);
        Link* child = find(j.child);
        if (child->inertia.mass > 0 && parent->inertia.mass > 0) continue;
        // The child takes over from a massless root.
        const bool upwards = child->inertia.mass > 0 && j.parent == out_.root;
        if (upwards && count_children(j.parent) > 1) continue;
        if (upwards) {
          const Pose inverse = j.frame.inverse();
          for (Shape s : parent->shapes) {
            s.pose = inverse * s.pose;
            child->shapes.push_back(s);
          }
          out_.root = j.child;
          out_.root_frame = out_.root_frame * j.frame;
          out_.notices.push_back(
              fmt::format("the massless root \"{}\" was joined to \"{}\"", j.parent, j.child));
          erase_link(j.parent);
        } else {
          for (Shape s : child->shapes) {
            s.pose = j.frame * s.pose;
            parent->shapes.push_back(s);
          }
          if (child->inertia.mass > 0) {
            parent->inertia = moved(child->inertia, j.frame);
            out_.notices.push_back(fmt::format(
                "link \"{}\" was joined to the massless \"{}\", to which it is fixed", j.child, j.parent));
          }
          for (Joint& k : out_.joints)
            if (k.parent == j.child) {
              k.parent = j.parent;
              k.frame = j.frame * k.frame;
            }
          erase_link(j.child);
        }
        out_.joints.erase(out_.joints.begin() + static_cast<std::ptrdiff_t>(i));
        again = true;
        break;
      }
    }
  }

  // The same for a link that moves but neither has nor carries mass: its motion acts on nothing. Returns
  // whether there was one.
  bool hold_idle_frame() {
    for (Joint& j : out_.joints) {
      if (j.type == JointType::kFixed || find(j.child)->inertia.mass > 0 || carried_by(j.child)) continue;
      for (const Gear& g : out_.gears)
        if (g.joint_b == j.name)
          throw Error(ErrorKind::kInput,
                      fmt::format("{}: joint \"{}\" mimics \"{}\", whose link \"{}\" has no mass and carries "
                                  "none; give that an <inertial>",
                                  path_, g.joint_a, j.name, j.child));
      std::erase_if(out_.gears, [&](const Gear& g) { return g.joint_a == j.name; });
      if (j.q.size() == 1) j.frame = j.frame * joint_pose(j, j.q);
      j.type = JointType::kFixed;
      out_.notices.push_back(
          fmt::format("link \"{}\" neither has nor carries mass; joint \"{}\" was fixed", j.child, j.name));
      return true;
    }
    return false;
  }

  void fold_frames() {
    if (std::none_of(out_.links.begin(), out_.links.end(), [](const Link& l) { return l.inertia.mass > 0; }))
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: no link has a mass: the file describes how the robot looks, not how it "
                              "moves; give the robot a \"density\" in the scene, or its links an <inertial>",
                              path_));
    do fold_fixed();
    while (hold_idle_frame());
    for (Link& l : out_.links)
      if (l.inertia.mass == 0 && l.name != out_.root) lend_mass(l);
    if (find(out_.root)->inertia.mass == 0) {
      out_.root_massless = true;
      erase_link(out_.root);
    }
  }

  // The next link with mass below `name`, or null.
  const Link* carried_by(const std::string& name) {
    std::vector<std::string> below{name};
    for (std::size_t k = 0; k < below.size(); ++k)
      for (const Joint& j : out_.joints) {
        if (j.parent != below[k]) continue;
        if (const Link* child = find(j.child); child->inertia.mass > 0) return child;
        below.push_back(j.child);
      }
    return nullptr;
  }

  // Between two moving joints (a hip of three hinges, say) a massless link is harmless, because what it
  // carries has mass. The recursion along the tree does not need a mass there; friction does, and gets a
  // thousandth of that of the next link.
  void lend_mass(Link& l) {
    const Link* next = carried_by(l.name);
    l.inertia = next->inertia;
    l.inertia.mass *= 1e-3;
    l.inertia.I *= 1e-3;
    l.inertia.com.setZero();
    out_.notices.push_back(fmt::format(
        "link \"{}\" has no mass and moves: it got a thousandth of the mass of \"{}\", which it carries",
        l.name, next->name));
  }

  std::ptrdiff_t count_children(const std::string& name) const {
    return std::count_if(out_.joints.begin(), out_.joints.end(),
                         [&](const Joint& j) { return j.parent == name; });
  }

  void erase_link(std::string name) {
    out_.links.erase(
        std::find_if(out_.links.begin(), out_.links.end(), [&](const Link& l) { return l.name == name; }));
  }

  const std::string path_;
  const double density_;
  UrdfRobot out_;
  std::vector<std::pair<Gear, const Element*>> mimics_;
  std::set<std::string> links_;
  bool ignored_effort_ = false;
};

}  // namespace

UrdfRobot parse_urdf(const std::string& text, const std::string& path, double density) {
  return Reader(path, density).read(text);
}

UrdfRobot read_urdf(const std::string& path, double density) {
  return parse_urdf(read_file(path), path, density);
}

}  // namespace limber::rigid
