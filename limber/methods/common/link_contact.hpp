// Soft bodies that touch links. The shapes of links are obstacles that move, whose springs (penalty.hpp) push
// both ways: with S the stiffness of a contact, P the velocity of the link's point for its twist phi, and f
// the force on the node at the start of a step whose end has the link where it goes at phi_p,
//   p = h f - h^2 S P phi_p - h^2 S (v - P phi)
// is the impulse on the node, and -Pᵀ p that on the link, linear in the velocities of both: these are found
// together (link_coupling.hpp), whatever the masses are, and momentum is kept to rounding. A piece leaves the
// links alone that it is attached to.
#pragma once

#include <limber/contact/contact_step.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/rigid/link_obstacles.hpp>
#include <limber/sim/model.hpp>
#include <limber/sim/stepper.hpp>

#include <optional>
#include <vector>

namespace limber {

// One contact of a node with a link.
struct LinkTouch {
  Index node = -1;
  Eigen::Index column = 0;        // where the twist of the link begins among LinkTouches::predicted
  Mat3 stiffness = Mat3::Zero();  // S [N/m]
  Eigen::Matrix<double, 3, 6> P;  // velocity of the link's point, where the node is, per twist
  Vec3 force = Vec3::Zero();      // on the node if the link moves as predicted [N]
  Vec3 velocity = Vec3::Zero();   // of the link's point as predicted [m/s]
};

struct LinkTouches {
  std::vector<Index> links;  // that are touched, ascending
  std::vector<LinkTouch> touches;
  VecX predicted, start;  // twists of these links: as predicted, and at the start of the step
  MatX J;                 // their twists per joint velocity

  bool empty() const { return touches.empty(); }
  // Of the link's point, P phi_p [m/s]: touch.velocity for a link that turns by a small angle in the step.
  Vec3 velocity(const LinkTouch& touch) const { return touch.P * predicted.segment<6>(touch.column); }
};

class LinkContact {
 public:
  // None where no link has a shape for contact, or no soft body could touch it.
  static std::optional<LinkContact> make(const Model& model);

  // The scene's obstacles, then the shapes of the links.
  const ContactModel& obstacles() const { return contact_; }
  void keep_apart(ContactStep& contact) const { contact.keep_apart(apart_); }

  // The step of h from `state`: links are expected to move on as they do. Throws Error(kInput) where a body
  // begins deep inside a link, as it does for obstacles (sim/overlap.hpp).
  void begin(const Model& model, const State& state, double h);
  // They have moved to where `state` has them.
  void moved(const State& state);

  // The contacts that are part of the system, with nodes at x, `remaining` seconds before the end of the step
  // (ContactStep::add_force).
  LinkTouches touches(const ContactStep& contact, const VecX& x, double remaining) const;

  // Counts contacts with links at the end of a step, and what their springs hold.
  void report(const ContactStep& contact, const State& state, double h, StepReport& report) const;
  // Force with which obstacles and links press on each node [N].
  std::vector<double> pressure(const Model& model, const State& state) const;

 private:
  void place(const State& state, double h);
  void move_shapes(const rigid::Motion& to);
  void check_start(const Model& model, const State& state) const;

  std::shared_ptr<const rigid::Articulation> articulation_;
  ContactModel contact_;
  std::size_t first_ = 0;           // of the links' shapes among the obstacles
  std::vector<Index> link_of_;      // of each shape
  std::vector<rigid::Pose> shape_;  // in the frame of its link
  std::vector<std::uint8_t> apart_;
  double h_ = 0, t_ = 0;
  rigid::Motion start_;
  VecX v_start_, v_;  // joint velocities: at the start, and those that the shapes move with
};

}  // namespace limber
