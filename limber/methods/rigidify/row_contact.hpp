// Contact of `rigidify`: rows on velocities (contact/contact_rows.hpp) with obstacles and between bodies, and
// one of two laws for them. Both are the same for rigid and for elastic nodes, and their force at rest
// depends on the depth alone (paper, section 3.3): an object at rest presses the same way before and after it
// becomes rigid.
//
// Springs (penalty): those of contact/row_springs.hpp; K (h + b) takes part in the system (b: stiffness
// damping). What is at rest stays at rest.
// PGS (section 3.3, Eqs. 12 to 15): impulses on the solution without contact, by qp/friction_pgs.hpp.
#pragma once

#include <limber/contact/body_contact.hpp>
#include <limber/contact/contact_force.hpp>
#include <limber/contact/contact_rows.hpp>
#include <limber/contact/row_springs.hpp>
#include <limber/methods/rigidify/mixed_system.hpp>
#include <limber/methods/rigidify/options.hpp>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace limber::rigidify {

class RowContact {
 public:
  RowContact(const Model& model, const RigidifyOptions& options);

  struct Law : RowSpring {
    Vec3 kept = Vec3::Zero();  // PGS: impulse of the last step [N s]
  };

  bool between_bodies() const { return bodies_.has_value(); }
  bool possible() const { return !model_.contact.empty() || bodies_.has_value(); }
  // Contacts of the step for nodes at x that move at v. Objects that touched nothing in the last step are
  // expected to gain h times gravity.
  // Of objects that are rigid and stay where they are, pairs with each other are known from before.
  void begin(RigidifyMemory& memory, const VecX& x, const VecX& v, const StepInput& in);
  // What is wrong with a memory from a file; empty: nothing.
  std::string misfit(const RigidifyMemory& memory) const;
  const std::vector<Law>& laws() const { return laws_; }
  // Objects (1) that do not deform and touch themselves nowhere: nobody looks for it. From the next begin()
  // or revise() on.
  void leave_alone(const std::vector<std::uint8_t>& objects);
  // Of every object: whether it has a row with itself, open or closed.
  std::vector<std::uint8_t> objects_near_themselves() const;
  // Nodes of rows between bodies, open ones too: so the pattern does not change when they close.
  std::vector<std::array<Index, 4>> couplings() const;
  std::vector<Index> objects_with_new_contacts() const;

  // Springs. The impulse at the start of the step, h F(x), and (h^2 + h b) S times the velocity of obstacles.
  // `known`: velocities of driven nodes, 3n; empty: none.
  void add_impulse(double h, double damping, const VecX& known, VecX& impulse) const;
  // A += (h^2 + h b) Gᵀ S G of active rows; or of those that press when nodes have moved by `moved`, and of
  // friction.
  void add_stiffness(double h, double damping, const VecX& x, std::span<const RigidPiece> pieces,
                     MixedSystem& system, const VecX* moved = nullptr) const;
  // Compares with the velocities v1 of the step: true when rows were dropped or added.
  bool revise(const VecX& v1);
  // Tells the system of these. False: it has not the couplings that they need.
  bool change_springs(double h, double damping, const VecX& x, std::span<const RigidPiece> pieces,
                      MixedSystem& system) const;
  bool settled() const { return revisions_ < kRevisions; }
  // For Newton's method, at the displacement d of the step: forces and energy. A row presses where it is
  // closed; what was closed at the start rubs, so that forces have no jumps.
  double add_force(const VecX& d, VecX& f) const;

  // PGS: adds what impulses change to the unknowns. False: it has not converged.
  bool solve_pgs(double h, const VecX& x, std::span<const RigidPiece> pieces, const MixedSystem& system,
                 const VecX& known, VecX& u, VecX& impulses) const;

  // About what impulse contacts will have in this step, on nodes, for the quick solve: that of the last step,
  // and what it takes to stop the node by itself (section 3.5.1). `compliance(i)`: (A^-1)_ii of a node
  // [1/kg].
  template <class Compliance>
  VecX predict(double h, double damping, const VecX& v, Compliance&& compliance) const {
    VecX out = VecX::Zero(v.size());
    for (const Law& law : laws_) {
      double a = compliance(law.row.node);
      if (law.row.face[0] >= 0)
        for (std::size_t k = 0; k < 3; ++k)
          a += law.row.weight[k] * law.row.weight[k] * compliance(law.row.face[k]);
      add_to_nodes(law.row, predict_row(law, h, damping, v, a), out);
    }
    return out;
  }

  // Ends the step: nodes moved at v1.
  void finish(double h, const VecX& v1, const VecX& impulses, RigidifyMemory& memory,
              StepReport& report) const;
  // What the step had, for output: forces at its end, or impulses over its length. `damping`: as in
  // add_stiffness(); none with Newton's method.
  std::vector<ContactForce> forces(double damping, const VecX& v1, const VecX& impulses) const;

 private:
  // In the first revision contacts are dropped and looked for, in the second those that are known may close;
  // then nothing changes any more: a contact that pulls for one step costs little, another factorisation
  // much.
  static constexpr int kFreeRevisions = 1, kRevisions = 2;
  Vec3 predict_row(const Law& law, double h, double damping, const VecX& v, double compliance) const;
  void append(const std::vector<Contact>& contacts, std::vector<Law>& laws) const;
  void append(std::span<const BodyContact::Pair> pairs, std::vector<Law>& laws) const;
  void look_for_pairs(RigidifyMemory& memory, const VecX& expected);
  void begin_friction(Law& law, const VecX& v) const;

  const Model& model_;
  const RigidifyOptions options_;
  std::optional<BodyContact> bodies_;
  const RigidifyMemory* memory_ = nullptr;
  VecX x_, v_, expected_;  // at the start of the step; velocities that contacts were looked for with
  double h_ = 0, t_ = 0, tolerance_ = 0;
  int revisions_ = 0;
  bool looked_again_ = false;     // for contacts between bodies
  std::vector<Law> laws_;         // by id
  std::vector<Law> revised_;      // that the last revise() dropped or added
  std::vector<Index> new_pairs_;  // nodes of rows between bodies that were found after couplings() was asked
};

}  // namespace limber::rigidify
