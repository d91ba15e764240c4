// Soft bodies that hang on links. An attached node moves with its link, v_a = B u with u the joint velocities
// (the Jacobian of ConJac's MUSCLE scene), so that flesh and bones are one system:
//   [ A_ff    A_fa B           ] [v_f]   [ r_f             ]
//   [ Bᵀ A_af H + Bᵀ A_aa B    ] [ u ] = [ b + Bᵀ r_a      ]
// A, r: the soft bodies' system and right-hand side; H, b: those of the joints (Eq. 3.6). The method solves
// the soft part for u = 0 and for every unit joint velocity; what it leaves on the attached nodes, g - G u,
// acts on the links as an impulse and its response, and the joints are stepped as ever, with all their loops,
// motors, limits, contacts and friction.
//
// B is the product of two maps: attached nodes are rigid bodies that move with the twist of their link
// (VelocityMap), and the twists of the links are J u (the tree's Jacobian).
#pragma once

#include <limber/linalg/velocity_map.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/rigid/bisp.hpp>
#include <limber/sim/model.hpp>

namespace limber {

class LinkCoupling {
 public:
  explicit LinkCoupling(const Model& model);

  // The links of the state at the start of a step, and B.
  void begin(const State& state, const StepInput& in);

  std::vector<Index> nodes() const;  // attached ones, ascending
  const std::vector<Index>& dofs() const {
    return dofs_;
  }                                           // attached degrees of freedom that no script holds
  const MatX& B() const { return B_; }        // dofs x joint velocities
  const VecX& bias() const { return bias_; }  // acceleration of the attached points at constant u [m/s^2]
  // `fixed` with the attached degrees of freedom as well.
  std::vector<std::uint8_t> held(const std::vector<std::uint8_t>& fixed) const;

  // What else pushes links, by the wrench impulses g - G u: six rows for each of `links`.
  struct Pushed {
    std::vector<Index> links;
    VecX g;
    MatX G;
  };
  // Steps the joints from where they were at begin(): g [N s], one number per attached degree of freedom, and
  // G [N s per joint velocity]. Returns the new joint velocities.
  VecX step(const VecX& g, const MatX& G, const StepInput& in, State& state, const Pushed& pushed);
  VecX step(const VecX& g, const MatX& G, const StepInput& in, State& state) {
    return step(g, G, in, state, {});
  }
  // Puts the attached nodes of x and v where the links of `joints` are.
  void place(const State& joints, VecX& x, VecX& v) const;
  void place(State& state) const { place(state, state.x, state.v); }

  const rigid::Articulation& articulation() const { return *model_.articulation; }
  const rigid::StepOutcome& outcome() const { return outcome_; }

 private:
  const Model& model_;
  rigid::StepSettings settings_;
  rigid::Motion motion_;
  rigid::JointState start_;
  VelocityMap attached_;      // attachment by attachment, from the twists of links
  std::vector<Index> links_;  // that have attachments, in the order of attached_'s blocks
  std::vector<Index> dofs_;
  std::vector<Index> place_;  // of each of dofs_ among the degrees of freedom of attached_
  MatX B_;
  VecX bias_;
  rigid::StepOutcome outcome_;
};

}  // namespace limber
