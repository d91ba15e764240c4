// Contact in one implicit step: which contacts are part of the system, their forces, and what remains of
// them.
#pragma once

#include <limber/contact/penalty.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace limber {

// Use: begin(); then add() to the system, solve, revise(x1) and again while that says so; finish().
// Contacts are chosen for the end of the step (an active-set iteration), so that a node neither dives into an
// obstacle for a step before it is noticed nor is held back when it leaves.
class ContactStep {
 public:
  // Contacts of the step from t to t + h for nodes at x that move at v and are expected to gain `dv` all
  // alike while none of them touches. Whether a node sticks or slides goes by v alone: under load a node that
  // sticks gains nothing.
  void begin(const ContactModel& model, std::span<const Anchor> anchors, const VecX& x, const VecX& v,
             const Vec3& dv, double h, double t);
  // From now on node i leaves obstacle o alone where apart[i * obstacles + o].
  void keep_apart(std::vector<std::uint8_t> apart) { apart_ = std::move(apart); }
  // The model's obstacles have other motions since begin() (links): contacts go along with their surfaces.
  void follow_obstacles();
  // Nodes `which` (a flag each) are known to slide: friction on them is itself, and renew_friction() will be
  // asked. After begin().
  void slide(std::vector<std::uint8_t> which, const VecX& v);

  // Adds the forces of the active contacts on nodes at x, with the obstacles where they are at the end of the
  // step.
  void add_force(const VecX& x, VecX& f) const;
  // The same `remaining` seconds before the end of the step. Contacts that are open there, and so pull, go to
  // `closing`.
  void add_force(const VecX& x, double remaining, VecX& f, VecX& closing) const;
  // Adds factor times their stiffness. K's diagonal blocks come first in their columns.
  void add_stiffness(double factor, BlockMatrix& K) const;
  // Adds factor times stiffness times the velocity of the obstacles [N/s].
  void add_drag(double factor, VecX& rate) const;
  // Potential of the forces of add_force(x, f) [J].
  double potential(const VecX& x) const;
  // A contact is open at x.
  bool closes(const VecX& x) const;
  bool moves() const;  // an obstacle that is touched moves

  // Compares the contacts with where the nodes went. True: contacts that would pull were dropped, or nodes
  // have gone into (or through) an obstacle without being noticed and were added, and the step should be
  // solved again.
  bool revise(const VecX& x1);
  // Friction goes by the normal forces and velocities at the start of the step. A body that has just come
  // down does not feel the former yet, and one that is about to slide does not know it. True: at x1 normal
  // forces are others, or nodes that stick are held by more than friction can, or friction pushes nodes back;
  // friction goes by x1 now, and the step should be solved again; once.
  bool renew_friction(const VecX& x1);

  // The anchors after the step; nodes that touch no more have none.
  std::vector<Anchor> finish(const VecX& x1) const;

  // Nodes that passed through an obstacle and are out again on another side, in spite of all.
  std::vector<Contact> tunnelled(const VecX& x1) const;
  // How far a node moved [m].
  double travel(Index i, const VecX& x1) const { return (node(x1, i) - node(x_, i)).norm(); }

  // Nodes that are inside an obstacle at the time t, and the energy of their springs [J].
  std::vector<Contact> inside(const VecX& x, double t) const;
  double energy(const VecX& x, double t) const {
    return contact_energy(*model_, anchors_, x, t, inside(x, t));
  }

  const ContactModel& model() const { return *model_; }
  bool empty() const { return model_ == nullptr || model_->empty(); }
  bool settled() const { return revisions_ < kRevisions; }
  std::span<const ContactLaw> laws() const { return laws_; }
  std::span<const Anchor> anchors() const { return anchors_; }  // at the start of the step
  Index active() const;

 private:
  // After kFreeRevisions contacts are only added, after kRevisions nothing changes any more: a set that
  // cannot settle costs a little energy (a contact that pulls for one step), never the run.
  static constexpr int kFreeRevisions = 3, kRevisions = 6;
  static constexpr double kSteadyNormal = 0.1, kWrongFriction = 0.01;  // of the sum of normal forces

  std::vector<Contact> found(const VecX& v) const;  // by detect(), from the start of the step
  void leave_out_apart(std::vector<Contact>& contacts) const;
  ContactLaw law(const Contact& c) const;
  ContactLaw law(const Contact& c, const Vec3& step, double normal) const;
  bool slides(const Contact& c) const {
    return !slides_.empty() && slides_[static_cast<std::size_t>(c.node)];
  }

  const ContactModel* model_ = nullptr;
  std::span<const Anchor> anchors_;
  VecX x_, v_;
  double h_ = 0, t_ = 0;
  double tolerance_ = 0;  // [m]
  int revisions_ = 0;
  std::vector<std::uint8_t> apart_;   // by node and obstacle; empty: none
  std::vector<std::uint8_t> slides_;  // by node; empty: none
  bool renewed_ = false;              // friction
  std::vector<Placement> placement_;  // of the obstacles at the end of the step
  std::vector<ContactLaw> laws_;
};

}  // namespace limber
