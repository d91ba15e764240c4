#include <limber/rigid/mechanism.hpp>

#include <limber/core/error.hpp>
#include <limber/rigid/kinematics.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

namespace limber::rigid {
namespace {

constexpr const char* kWorld = "world";

void check_axis(const std::string& where, const char* what, Vec3& axis, std::vector<std::string>& faults) {
  const double length = axis.norm();
  if (std::isfinite(length) && length > 1e-12)
    axis /= length;
  else
    faults.push_back(fmt::format("{}: its {} has no direction", where, what));
}

void check_friction(const std::string& where, const JointFriction& f, JointType type,
                    std::vector<std::string>& faults) {
  if (f.mu < 0)
    faults.push_back(fmt::format("{}: friction mu is {:g}, it must not be negative", where, f.mu));
  if (!(f.mu > 0)) return;
  if (f.angles < 4 || f.angles % 2)
    faults.push_back(
        fmt::format("{}: a pin needs an even number of contact angles, at least 4, not {}", where, f.angles));
  switch (type) {
    case JointType::kRevolute:
      if (!(f.radius > 0 && f.height > 0))
        faults.push_back(
            fmt::format("{}: friction needs the pin's radius and height [m], both greater than 0", where));
      break;
    case JointType::kSpherical:
      if (!(f.radius > 0))
        faults.push_back(fmt::format("{}: friction needs the ball's radius [m], greater than 0", where));
      break;
    case JointType::kPrismatic:
      if (!(f.box.minCoeff() > 0))
        faults.push_back(fmt::format(
            "{}: friction needs the slider's three sides \"box\" [m], all greater than 0", where));
      break;
    default:
      faults.push_back(
          fmt::format("{}: a {} joint has no friction geometry; remove its friction or use a revolute, "
                      "prismatic or spherical joint",
                      where, to_string(type)));
  }
}

void check_joint(Joint& j, std::vector<std::string>& faults) {
  const std::string where = fmt::format("joint \"{}\"", j.name);
  const int nq = position_numbers(j.type), nv = velocity_numbers(j.type);
  if (j.type != JointType::kFixed && j.type != JointType::kFree) check_axis(where, "axis", j.axis, faults);
  if (j.type == JointType::kUniversal) {
    check_axis(where, "axis2", j.axis2, faults);
    if (std::abs(j.axis.dot(j.axis2)) > 1e-6)
      faults.push_back(fmt::format("{}: the axes of a universal joint must be perpendicular", where));
  }
  const auto size = [&](VecX& x, int n, const char* what, bool fill) {
    if (x.size() == 0 && fill) {
      x = VecX::Zero(n);
      if (what == std::string("q") && j.type == JointType::kSpherical) x[0] = 1;
      if (what == std::string("q") && j.type == JointType::kFree) x[3] = 1;
    }
    if (x.size() != 0 && x.size() != n)
      faults.push_back(fmt::format("{}: \"{}\" has {} numbers, a {} joint has {}", where, what, x.size(),
                                   to_string(j.type), n));
    if (!x.allFinite()) faults.push_back(fmt::format("{}: \"{}\" is not finite", where, what));
  };
  size(j.q, nq, "q", true);
  size(j.v, nv, "v", true);
  size(j.rest, nq, "rest", false);
  if (j.rest.size() == 0) j.rest = j.q;
  const auto normalise = [&](VecX& q) {
    const int at = j.type == JointType::kSpherical ? 0 : j.type == JointType::kFree ? 3 : -1;
    if (at < 0 || q.size() != nq) return;
    const double length = q.segment<4>(at).norm();
    if (length > 1e-12)
      q.segment<4>(at) /= length;
    else
      faults.push_back(fmt::format("{}: its quaternion is zero", where));
  };
  normalise(j.q);
  normalise(j.rest);
  const bool limited = j.lower.size() || j.upper.size();
  if (limited && j.type == JointType::kFree)
    faults.push_back(fmt::format("{}: a free joint has no limits", where));
  else if (limited) {
    const int n = j.type == JointType::kSpherical ? 2 : nq;
    if (j.lower.size() == 0) j.lower = VecX::Constant(n, -INFINITY);
    if (j.upper.size() == 0) j.upper = VecX::Constant(n, INFINITY);
    if (j.lower.size() != n || j.upper.size() != n)
      faults.push_back(fmt::format("{}: limits have {} and {} numbers, a {} joint has {}", where,
                                   j.lower.size(), j.upper.size(), to_string(j.type), n));
    else if (j.q.size() == nq && j.q.allFinite()) {
      const std::vector<LimitedValue> now = limited_values(j, j.q);
      for (int k = 0; k < n; ++k) {
        const double x = now[static_cast<std::size_t>(k)].x;
        if (!(j.lower[k] <= j.upper[k]))
          faults.push_back(fmt::format("{}: its lower limit {:g} is above the upper limit {:g}", where,
                                       j.lower[k], j.upper[k]));
        else if (x < j.lower[k] - 1e-9 || x > j.upper[k] + 1e-9)
          faults.push_back(fmt::format("{}: the initial position {:g} is outside its limits [{:g}, {:g}]",
                                       where, x, j.lower[k], j.upper[k]));
      }
    }
  }
  if (j.stiffness < 0 || j.damping < 0)
    faults.push_back(fmt::format("{}: stiffness and damping must not be negative", where));
  if (!(j.dry_friction >= 0) || !std::isfinite(j.dry_friction))
    faults.push_back(fmt::format("{}: dry friction is {:g}, expected at least 0", where, j.dry_friction));
  if (j.dry_friction > 0 && nv != 1)
    faults.push_back(
        fmt::format("{}: dry friction needs a joint with one degree of freedom, a {} joint has {}", where,
                    to_string(j.type), nv));
  if (j.motor.kind != MotorKind::kNone) {
    if (nv != 1)
      faults.push_back(fmt::format("{}: a motor needs a joint with one degree of freedom, a {} joint has {}",
                                   where, to_string(j.type), nv));
    if (j.motor.value.points.empty()) faults.push_back(fmt::format("{}: its motor has no value", where));
  }
  check_friction(where, j.friction, j.type, faults);
}

void check_gears(const std::vector<Gear>& gears, const std::vector<Joint>& joints,
                 std::vector<std::string>& faults) {
  std::set<std::string> driven;
  for (const Gear& g : gears) {
    const std::string where = fmt::format("gear \"{}\"", g.name);
    for (const std::string& name : {g.joint_a, g.joint_b}) {
      const auto j =
          std::find_if(joints.begin(), joints.end(), [&](const Joint& k) { return k.name == name; });
      if (j == joints.end())
        faults.push_back(fmt::format("{}: \"{}\" is not a joint", where, name));
      else if (velocity_numbers(j->type) != 1)
        faults.push_back(fmt::format("{}: joint \"{}\" is {}; a gear couples revolute and prismatic joints",
                                     where, name, to_string(j->type)));
    }
    if (g.joint_a == g.joint_b)
      faults.push_back(fmt::format("{}: both its ends are joint \"{}\"", where, g.joint_a));
    if (!std::isfinite(g.ratio) || g.ratio == 0)
      faults.push_back(fmt::format("{}: its ratio is {:g}, expected a number other than 0", where, g.ratio));
    if (!driven.insert(g.joint_a).second)
      faults.push_back(fmt::format("{}: another gear moves joint \"{}\" already", where, g.joint_a));
  }
}

// "a, b, c" for messages about cycles.
std::string list(const std::vector<std::string>& names) {
  std::string s;
  for (const std::string& n : names) s += (s.empty() ? "\"" : ", \"") + n + "\"";
  return s;
}

[[noreturn]] void refuse(const std::vector<std::string>& faults) {
  std::string message = "the mechanism cannot be built:";
  for (const std::string& f : faults) message += "\n  " + f;
  throw Error(ErrorKind::kInput, message);
}

}  // namespace

const char* to_string(JointType type) {
  switch (type) {
    case JointType::kFixed:
      return "fixed";
    case JointType::kRevolute:
      return "revolute";
    case JointType::kPrismatic:
      return "prismatic";
    case JointType::kUniversal:
      return "universal";
    case JointType::kSpherical:
      return "spherical";
    case JointType::kPlanar:
      return "planar";
    case JointType::kFree:
      return "free";
  }
  return "";
}

int position_numbers(JointType type) {
  switch (type) {
    case JointType::kSpherical:
      return 4;
    case JointType::kFree:
      return 7;
    default:
      return velocity_numbers(type);
  }
}

int velocity_numbers(JointType type) {
  switch (type) {
    case JointType::kFixed:
      return 0;
    case JointType::kRevolute:
    case JointType::kPrismatic:
      return 1;
    case JointType::kUniversal:
      return 2;
    case JointType::kSpherical:
    case JointType::kPlanar:
      return 3;
    case JointType::kFree:
      return 6;
  }
  return 0;
}

double Keys::at(double t) const {
  if (points.empty()) return 0;
  if (t <= points.front().first) return points.front().second;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto& [t0, a] = points[i - 1];
    const auto& [t1, b] = points[i];
    if (t < t1) return a + (b - a) * (t - t0) / (t1 - t0);
  }
  return points.back().second;
}

Index Mechanism::find_link(const std::string& name) const {
  for (Index i = 0; i < size(); ++i)
    if (links[at(i)].name == name) return i;
  return -1;
}

Index Mechanism::find_joint(const std::string& name) const {
  for (Index i = 0; i < size(); ++i)
    if (joints[at(i)].name == name) return i;
  return -1;
}

Mechanism make_mechanism(std::vector<Link> links, std::vector<Joint> joints, std::vector<Loop> loops,
                         std::vector<Spring> springs, std::vector<Gear> gears) {
  std::vector<std::string> faults;
  std::map<std::string, std::size_t> link_of;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::string& name = links[i].name;
    if (name.empty() || name == kWorld)
      faults.push_back(
          fmt::format("link {}: its name is \"{}\"; a link needs a name other than \"world\"", i, name));
    else if (!link_of.emplace(name, i).second)
      faults.push_back(fmt::format("two links have the name \"{}\"", name));
    if (const std::string fault = inertia_fault(links[i].inertia); !fault.empty())
      faults.push_back(fmt::format("link \"{}\": {}", name, fault));
    if (links[i].damping < 0)
      faults.push_back(fmt::format("link \"{}\": damping must not be negative", name));
  }
  std::set<std::string> joint_names;
  std::vector<std::size_t> joint_of(links.size(), joints.size());
  for (std::size_t i = 0; i < joints.size(); ++i) {
    Joint& j = joints[i];
    if (j.name.empty() || !joint_names.insert(j.name).second)
      faults.push_back(
          fmt::format("joint {} has {}", i,
                      j.name.empty() ? "no name" : "the name of another joint, \"" + j.name + "\""));
    check_joint(j, faults);
    if (j.parent != kWorld && !link_of.count(j.parent))
      faults.push_back(
          fmt::format("joint \"{}\": its parent \"{}\" is neither a link nor \"world\"", j.name, j.parent));
    const auto child = link_of.find(j.child);
    if (child == link_of.end())
      faults.push_back(fmt::format("joint \"{}\": its child \"{}\" is not a link", j.name, j.child));
    else if (j.parent == j.child)
      faults.push_back(fmt::format("joint \"{}\": link \"{}\" is its own parent", j.name, j.child));
    else if (joint_of[child->second] != joints.size())
      faults.push_back(
          fmt::format("link \"{}\" is the child of two joints, \"{}\" and \"{}\"; make one of them a loop "
                      "closure",
                      j.child, joints[joint_of[child->second]].name, j.name));
    else
      joint_of[child->second] = i;
  }
  for (std::size_t i = 0; i < links.size(); ++i)
    if (joint_of[i] == joints.size())
      faults.push_back(
          fmt::format("link \"{}\" hangs by no joint; give it a \"free\" joint to \"world\" if it floats",
                      links[i].name));
  const auto resolve = [&](const std::string& what, const std::string& name, bool world_allowed) -> Index {
    if (world_allowed && name == kWorld) return -1;
    const auto it = link_of.find(name);
    if (it != link_of.end()) return static_cast<Index>(it->second);
    faults.push_back(fmt::format("{}: \"{}\" is not a link", what, name));
    return -1;
  };
  for (Loop& l : loops) {
    const std::string where = fmt::format("loop \"{}\"", l.name);
    l.a = resolve(where, l.link_a, false);
    l.b = resolve(where, l.link_b, true);
    if (l.link_a == l.link_b)
      faults.push_back(fmt::format("{}: both its ends are on link \"{}\"", where, l.link_a));
    if (l.kind != LoopKind::kPoint) check_axis(where, "axis", l.axis_a, faults);
    if (l.friction.mu > 0 && l.kind == LoopKind::kPoint)
      faults.push_back(fmt::format("{}: friction needs a \"pin\" or \"hinge\" loop", where));
    else
      check_friction(where, l.friction, JointType::kRevolute, faults);
  }
  for (Spring& s : springs) {
    const std::string where = fmt::format("spring \"{}\"", s.name);
    s.a = resolve(where, s.link_a, false);
    s.b = resolve(where, s.link_b, true);
    if (s.stiffness < 0 || s.damping < 0)
      faults.push_back(fmt::format("{}: stiffness and damping must not be negative", where));
    if (s.link_a == s.link_b)
      faults.push_back(fmt::format("{}: both its ends are on link \"{}\"", where, s.link_a));
  }
  check_gears(gears, joints, faults);
  if (!faults.empty()) refuse(faults);

  // Depth first from the world, in the order in which joints were given; what is never reached is on a cycle.
  std::vector<std::vector<std::size_t>> children(links.size() + 1);
  for (std::size_t i = 0; i < joints.size(); ++i)
    children[joints[i].parent == kWorld ? links.size() : link_of.at(joints[i].parent)].push_back(i);
  Mechanism m;
  std::vector<Index> order(links.size(), -1);  // old link index -> new
  std::vector<std::size_t> stack(children[links.size()].rbegin(), children[links.size()].rend());
  while (!stack.empty()) {
    const std::size_t i = stack.back();
    stack.pop_back();
    Joint j = joints[i];
    const std::size_t child = link_of.at(j.child);
    order[child] = m.size();
    j.parent_link = j.parent == kWorld ? -1 : order[link_of.at(j.parent)];
    j.q_begin = m.positions;
    j.v_begin = m.velocities;
    m.positions += position_numbers(j.type);
    m.velocities += velocity_numbers(j.type);
    m.joints.push_back(std::move(j));
    m.links.push_back(links[child]);
    stack.insert(stack.end(), children[child].rbegin(), children[child].rend());
  }
  if (m.links.size() < links.size()) {
    // Walk up from an unreached link until a link repeats: that is the cycle.
    std::size_t k = 0;
    while (order[k] >= 0) ++k;
    std::vector<std::string> path;
    std::set<std::size_t> seen;
    while (seen.insert(k).second) k = link_of.at(joints[joint_of[k]].parent);
    const std::size_t start = k;
    do {
      path.push_back(joints[joint_of[k]].name);
      k = link_of.at(joints[joint_of[k]].parent);
    } while (k != start);
    refuse({fmt::format(
        "the joints {} form a cycle that does not reach \"world\"; make one of them a loop closure and "
        "hang one link from the world",
        list(path))});
  }
  for (Loop& l : loops) {
    l.a = order[at(l.a)];
    if (l.b >= 0) l.b = order[at(l.b)];
  }
  for (Spring& s : springs) {
    s.a = order[at(s.a)];
    if (s.b >= 0) s.b = order[at(s.b)];
  }
  m.loops = std::move(loops);
  m.springs = std::move(springs);
  for (Gear& g : gears) {
    g.a = m.find_joint(g.joint_a);
    g.b = m.find_joint(g.joint_b);
    if (std::isnan(g.offset)) g.offset = m.joints[at(g.a)].q[0] - g.ratio * m.joints[at(g.b)].q[0];
  }
  m.gears = std::move(gears);
  return m;
}

void follow_gears(const std::vector<Gear>& gears, std::vector<Joint>& joints) {
  const auto find = [&](const std::string& name) {
    return std::find_if(joints.begin(), joints.end(), [&](const Joint& j) { return j.name == name; });
  };
  // Once per gear: a joint may follow one that follows another.
  for (std::size_t k = 0; k < gears.size(); ++k)
    for (const Gear& g : gears) {
      const auto a = find(g.joint_a), b = find(g.joint_b);
      if (a == joints.end() || b == joints.end() || std::isnan(g.offset)) continue;
      a->q = VecX::Constant(1, g.ratio * (b->q.size() ? b->q[0] : 0.0) + g.offset);
    }
}

VecX initial_positions(const Mechanism& m) {
  VecX q(m.positions);
  for (const Joint& j : m.joints) q.segment(j.q_begin, j.q.size()) = j.q;
  return q;
}

VecX initial_velocities(const Mechanism& m) {
  VecX v(m.velocities);
  for (const Joint& j : m.joints) v.segment(j.v_begin, j.v.size()) = j.v;
  return v;
}

void integrate(const Mechanism& m, const VecX& v, double h, VecX& q) {
  const auto turn = [&](Index at, const Vec3& w) {
    const Quat old(q[at], q[at + 1], q[at + 2], q[at + 3]);
    const Quat now = (exp_quat(h * w) * old).normalized();
    q.segment<4>(at) << now.w(), now.x(), now.y(), now.z();
  };
  for (const Joint& j : m.joints) {
    switch (j.type) {
      case JointType::kSpherical:
        turn(j.q_begin, v.segment<3>(j.v_begin));
        break;
      case JointType::kFree:
        q.segment<3>(j.q_begin) += h * v.segment<3>(j.v_begin);
        turn(j.q_begin + 3, v.segment<3>(j.v_begin + 3));
        break;
      default:
        q.segment(j.q_begin, j.q.size()) += h * v.segment(j.v_begin, j.v.size());
    }
  }
}

}  // namespace limber::rigid
