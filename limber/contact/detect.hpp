// Which nodes touch which obstacles during a step.
#pragma once

#include <limber/contact/obstacle.hpp>
#include <limber/core/types.hpp>

#include <cstddef>
#include <vector>

namespace limber {

// A node at a surface, seen from the start of a step: what matters is where the surface will be at its end.
struct Contact {
  Index node = -1, obstacle = -1;
  Vec3 x_s = Vec3::Zero();       // point of the surface at the end of the step [m]
  Vec3 n = Vec3::UnitZ();        // outward normal there
  double depth = 0;              // (x_s - x) . n with x at the start of the step [m]; negative: not there yet
  Vec3 velocity = Vec3::Zero();  // of the obstacle's point over the step [m/s]
  Vec3 local = Vec3::Zero();     // x_s in the obstacle's frame
  double stiffness = 0;          // K of the node [N/m]
  double elastic = 0;            // about what the body itself resists there [N/m]
  double friction = 0;           // mu of the obstacle
};

enum class FrictionRule {
  kAnchored,  // "anchored": springs that slip at the limit of friction (penalty.hpp); the default
  kFilter,    // "filter": the ConJac paper's: velocities are filtered after the step (friction.hpp)
};

// Everything about contact that is constant in an epoch.
struct ContactModel {
  std::vector<Obstacle> obstacles;
  std::vector<Index> nodes;       // that can touch something: on the surface of a body; ascending
  std::vector<double> stiffness;  // penalty K of each of them [N/m]
  std::vector<double> elastic;    // E times the square root of its area: about what the body resists [N/m]
  double alpha = 0.1;             // share of K that resists sliding
  FrictionRule rule = FrictionRule::kAnchored;

  bool empty() const { return obstacles.empty() || nodes.empty(); }
};

// Contacts of the step from t to t + h: nodes that are inside an obstacle at the start, and nodes whose path
// from x to x + h v meets its surface, however thin the obstacle is and whether or not the node leaves it
// again. The path is followed in the obstacle's frame, so a scripted obstacle may just as well run into a
// resting node. Ordered by node, then obstacle. The same bits for any thread count; obstacles whose box is
// away from a stretch of nodes cost nothing more than that test.
std::vector<Contact> detect(const ContactModel& model, const VecX& x, const VecX& v, double h, double t);

// Nodes that are inside an obstacle at time t.
std::vector<Contact> touching(const ContactModel& model, const VecX& x, double t);

// The order of contact lists.
inline bool before(const Contact& a, const Contact& b) {
  return a.node != b.node ? a.node < b.node : a.obstacle < b.obstacle;
}

}  // namespace limber
