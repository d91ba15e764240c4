// Links and joints as plain data: a forest in which every link hangs by one joint from a parent link or from
// the world, loop closures, and springs between links.
#pragma once

#include <limber/rigid/inertia.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace limber::rigid {

enum class JointType { kFixed, kRevolute, kPrismatic, kUniversal, kSpherical, kPlanar, kFree };

const char* to_string(JointType type);
// Numbers of position and of velocity. They differ where the position holds a quaternion (w x y z), which has
// no singular orientation:
//   revolute   angle about `axis`                                    | its rate
//   prismatic  distance along `axis`                                 | its rate
//   universal  angle about `axis`, then about the turned `axis2`     | their rates
//   spherical  quaternion                                            | angular velocity in the joint frame
//   planar     two distances across `axis`, then the angle about it  | their rates
//   free       translation, quaternion                               | velocity, angular velocity, joint
//   frame
int position_numbers(JointType type);
int velocity_numbers(JointType type);

// Values over time, linear between keys (time [s], value), constant before the first and after the last.
struct Keys {
  std::vector<std::pair<double, double>> points;
  double at(double t) const;
};

enum class MotorKind { kNone, kTorque, kSpeed };

// Of a joint with one degree of freedom: a torque [N m] or force [N], or a speed [rad/s or m/s] that is
// reached exactly and whose torque is reported.
struct Motor {
  MotorKind kind = MotorKind::kNone;
  Keys value;
};

// Where the surfaces inside a joint touch (section 3.3.2): a pin of `radius` and `height` for revolute joints
// and loop closures, a ball of `radius` for spherical ones, a slider of the sides `box` for prismatic ones
// (first along the axis). mu = 0: no friction.
struct JointFriction {
  double mu = 0;
  double radius = 0, height = 0;  // [m]
  Vec3 box = Vec3::Zero();        // [m]
  // Contact points around a pin. The multipliers of a load F spread like the cosine of the angle from it;
  // their sum is between F and 1.41 F with 4 points, depending on its direction, and near 4/pi F with 12, the
  // value of a worn-in journal bearing.
  int angles = 4;
  Vec3 side = Vec3::Zero();  // direction of the first point in the link's frame; zero: chosen from the axis
};

enum class ShapeKind { kBox, kSphere, kCylinder, kCapsule, kMesh };

// A solid fixed to a link, for contact and for drawing. The axis of round shapes is z.
struct Shape {
  ShapeKind kind = ShapeKind::kBox;
  Vec3 size = Vec3::Zero();       // box [m]
  double radius = 0, length = 0;  // [m]
  std::shared_ptr<const TriMesh> mesh;
  Pose pose;            // in the link's frame
  bool contact = true;  // false: only drawn
};

struct Link {
  std::string name;
  Inertia inertia;  // in the link's frame
  std::vector<Shape> shapes;
  double damping = 0;  // wrench -damping * phi [N m s, N s/m]
};

struct Joint {
  std::string name;
  JointType type = JointType::kRevolute;
  std::string parent, child;  // links; the parent may be "world"
  Pose frame;                 // of the joint in the parent's frame, at zero position
  // Unit vectors in the joint's frame. The child's frame is the joint's frame moved by q.
  Vec3 axis = Vec3::UnitZ(), axis2 = Vec3::UnitY();
  VecX q, v;  // initial position and velocity; empty: zero
  // Limits per number of q; empty: none. Of a spherical joint there are two: how far `axis` may lean, then
  // the twist about it (see limited_values). Free joints have none.
  VecX lower, upper;
  double stiffness = 0;  // torque -stiffness * (q - rest) [N m/rad or N/m]
  double damping = 0;    // torque -damping * v [N m s/rad or N s/m]
  VecX rest;             // empty: the initial position
  // Friction that no load changes, of joints with one degree of freedom [N m or N].
  double dry_friction = 0;
  Motor motor;
  JointFriction friction;

  // Filled in by make_mechanism.
  Index parent_link = -1;          // -1: the world
  Index q_begin = 0, v_begin = 0;  // in the stacked vectors
};

enum class LoopKind {
  kPin,    // a point of a lies on the axis through a point of b: 2 rows, for planar mechanisms
  kPoint,  // the points coincide: 3 rows
  kHinge,  // the points and the axes coincide: 5 rows
};

// Closes a loop of the tree between two links, or between a link and the world.
struct Loop {
  std::string name;
  LoopKind kind = LoopKind::kPin;
  std::string link_a, link_b;                           // b may be "world"
  Vec3 point_a = Vec3::Zero(), point_b = Vec3::Zero();  // in the frames of the links [m]
  Vec3 axis_a = Vec3::UnitZ();                          // unit vector in the frame of a; not for kPoint
  JointFriction friction;                               // of a pin

  Index a = -1, b = -1;         // filled in by make_mechanism; b = -1: the world
  Vec3 axis_b = Vec3::UnitZ();  // the same axis seen from b when the loop is closed
};

// A straight spring between points of two links, or of a link and the world.
struct Spring {
  std::string name, link_a, link_b;
  Vec3 point_a = Vec3::Zero(), point_b = Vec3::Zero();
  double stiffness = 0, damping = 0;  // [N/m], [N s/m]
  double rest_length = -1;            // [m]; negative: the initial length

  Index a = -1, b = -1;
};

// Two joints of one degree of freedom that move together: q_a = ratio q_b + offset.
struct Gear {
  std::string name, joint_a, joint_b;
  double ratio = 1;
  double offset = NAN;  // [rad or m]; not a number: as at the start

  Index a = -1, b = -1;  // links of the joints, filled in by make_mechanism
};

struct Mechanism {
  std::vector<Link> links;    // a parent comes before its children
  std::vector<Joint> joints;  // joints[i] carries links[i]
  std::vector<Loop> loops;
  std::vector<Spring> springs;
  std::vector<Gear> gears;
  Index positions = 0, velocities = 0;  // sizes of q and v

  Index size() const { return static_cast<Index>(links.size()); }
  Index find_link(const std::string& name) const;   // -1 when there is none
  Index find_joint(const std::string& name) const;  // its link's index, or -1
};

// Checks, orders and numbers. Throws Error(kInput) with every fault found, each naming its link or joint:
// unknown parents, links that hang by no joint or by two, cycles, links without mass, loops whose ends are
// the same link, limits that exclude the initial position, ... Loops are not closed here (see close_loops).
Mechanism make_mechanism(std::vector<Link> links, std::vector<Joint> joints, std::vector<Loop> loops = {},
                         std::vector<Spring> springs = {}, std::vector<Gear> gears = {});

// Sets the initial positions of joints that gears with an offset move from those that they follow.
void follow_gears(const std::vector<Gear>& gears, std::vector<Joint>& joints);

// Initial position and velocity, stacked.
VecX initial_positions(const Mechanism& mechanism);
VecX initial_velocities(const Mechanism& mechanism);

// q moved by the velocity v during h; quaternions stay of unit length.
void integrate(const Mechanism& mechanism, const VecX& v, double h, VecX& q);

}  // namespace limber::rigid
