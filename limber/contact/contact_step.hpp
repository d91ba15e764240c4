// Contact in one implicit step: which contacts are part of the system, their forces, and what remains of
// them.
#pragma once

#include <limber/contact/penalty.hpp>

#include <span>
#include <vector>

namespace limber {

// Use: begin(); then add() to the system, solve, revise(x1) and again while that says so; finish().
// Contacts are chosen for the end of the step (an active-set iteration), so that a node neither dives into an
// obstacle for a step before it is noticed nor is held back when it leaves.
class ContactStep {
 public:
  // Contacts of the step from t to t + h for nodes at x that are expected to move at v.
  void begin(const ContactModel& model, std::span<const Anchor> anchors, const VecX& x, const VecX& v,
             double h, double t);

  // Adds forces at x and stiffness of the active contacts. K's diagonal blocks come first in their columns.
  void add(const VecX& x, VecX& f, BlockMatrix& K) const;
  void add_force(const VecX& x, VecX& f) const;
  void add_stiffness(double factor, BlockMatrix& K) const;

  // Compares the contacts with where the nodes went. True: contacts that would pull were dropped, or nodes
  // have gone into (or through) an obstacle without being noticed and were added, and the step should be
  // solved again.
  bool revise(const VecX& x1);

  // The anchors after the step; nodes that touch no more have none.
  std::vector<Anchor> finish(const VecX& x1) const;

  // Nodes that passed through an obstacle and are out again on another side, in spite of all.
  std::vector<Contact> tunnelled(const VecX& x1) const;
  // How far a node moved [m].
  double travel(Index i, const VecX& x1) const { return (node(x1, i) - node(x_, i)).norm(); }

  bool settled() const { return revisions_ < kRevisions; }
  std::span<const ContactLaw> laws() const { return laws_; }
  Index active() const;

 private:
  // After kFreeRevisions contacts are only added, after kRevisions nothing changes any more: a set that
  // cannot settle costs a little energy (a contact that pulls for one step), never the run.
  static constexpr int kFreeRevisions = 3, kRevisions = 6;

  ContactLaw law(const Contact& c) const;

  const ContactModel* model_ = nullptr;
  std::span<const Anchor> anchors_;
  VecX x_, v_;
  double h_ = 0, t_ = 0;
  double tolerance_ = 0;  // [m]
  int revisions_ = 0;
  std::vector<Placement> placement_;  // of the obstacles at the end of the step
  std::vector<ContactLaw> laws_;
};

}  // namespace limber
