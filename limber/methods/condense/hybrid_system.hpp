// The energy of one step, of nodes in full space and of a subspace for all others (paper, section 3.2), and
// its Newton iterations.
//
//   E(x_f, q) = sum over T_act of E_e + sum over T_c in T_s of w_i E_i + c . (q - q_0) + contact - loads
//               + 1/2 q . S q                                                   (springs between domains)
//               + 1/2 (q - q_0) . Z (q - q_0)                                   (where points are too weak)
//               + w/2 |x - target|^2_M                                          (not if quasistatic)
//
// V_f: full nodes; V_s: the others, x_i = s_i + R_i U_i q; nodes that are fixed to bones are neither. T_act:
// elements with a node in V_f, all of them exactly; T_s: the others; T_c: cubature points. V_b: nodes of V_s
// that T_act touches, W_i = R_i U_i. With K = d2E/dx2 and f = -dE/dx (Eqs. 11 and 12)
//
//   [ K_ff          K_fb W_b                    ] [du_f]   [ f_f  ]
//   [ W_b^T K_bf    W_b^T K_bb W_b + K~ of T_s  ] [ dq ] = [ f~_s ]
//
// The anchor c stands for the points that the region switches off. Those that are left were trained together
// with them and do not integrate T_s by themselves. At the shape of the subspace, x_sub = s + R U q_0 for all
// nodes, the reduced force is made that of all points: c = (points that are off)(x_sub) - W^T dE_act(x_sub).
// A column that lives in the region is moved by the error of that force alone, when points that are left
// hardly resist it. Then the reduced force of T_s at x_sub is made exact, by a look at all its elements once
// a step, and Z gives such columns the stiffness that T_s has for them at rest.
#pragma once

#include <limber/contact/body_contact.hpp>
#include <limber/contact/contact_energy.hpp>
#include <limber/core/phase_clock.hpp>
#include <limber/fem/plan.hpp>
#include <limber/fem/rounding.hpp>
#include <limber/linalg/bordered.hpp>
#include <limber/linalg/pcg.hpp>
#include <limber/methods/condense/memory.hpp>
#include <limber/methods/condense/subspace.hpp>

#include <functional>
#include <map>
#include <optional>
#include <span>

namespace limber::condense {

// What the energy of a step consists of besides positions.
struct HybridStep {
  const SkinnedBody* skin = nullptr;  // at the end of the step
  double t = 0;                       // of the pose [s]
  VecX joints;                        // of the pose, where links are bones
  VecX load;                          // on all nodes [N]
  double inertia = 0;                 // w [1/s^2]; 0: quasistatic
  VecX target;                        // x at which the inertial part is least; empty: quasistatic
  double damping = 0;                 // stiffness damping over the time step: b / g
  // Positions before the step and the weights of their elastic forces, for damping.
  std::vector<std::pair<double, const VecX*>> history;
  std::vector<double> activation;
};

struct NewtonReport {
  bool converged = false;
  std::string why;
  int iterations = 0, factorizations = 0, evaluations = 0, pcg = 0;
  double first_residual = 0, residual = 0;  // [N]
  double elastic = 0;                       // energy as the hybrid has it [J]
  Index inverted = 0;                       // among the elements that are looked at
  int refound = 0;                          // times that a node in contact slid to another face
  std::map<std::string, int> fallbacks;
};

// Another place where a solve may begin, which it does if the energy is lower there. The residual that it
// ends at follows from that at the first place all the same.
struct HybridStart {
  VecX xf, q;  // as place() takes them
};

// How long a solve goes on.
struct SolveLimits {
  int newton = -1;  // iterations of Newton's method itself after the kept factor was of no use; < 0: all
};

// The skinned body at a time, with joints at these positions.
using PoseAt = std::function<void(double t, const VecX& joints, SkinnedBody& out)>;

// The rows of some nodes.
VecX gathered(const VecX& whole, std::span<const Index> nodes);

class HybridSystem {
 public:
  HybridSystem(const Model& model, const Skeleton& skeleton, const Subspace& subspace,
               const CondenseOptions& options, PoseAt pose_at);

  // 1 for nodes that are in full space; those fixed to bones are not, whatever it says. `exact`: all elements
  // of T_s instead of cubature points; so in any case in domains where a region leaves too few points for
  // their columns. `coupled`: pairs of contacts that the matrix has blocks for, as far as
  // they are full. `tail`: nodes that the factor eliminates last (see change_contacts). Nothing is made
  // anew where nothing changes.
  void set_region(const std::vector<std::uint8_t>& full, bool exact,
                  const std::vector<std::int64_t>& coupled = {}, const std::vector<std::int64_t>& tail = {});
  const std::vector<std::uint8_t>& full() const { return full_; }
  bool all_full() const { return subspace_nodes_ == 0; }
  Index full_nodes() const { return static_cast<Index>(full_nodes_.size()); }
  std::span<const Index> full_list() const { return full_nodes_; }
  Index edge_nodes() const { return static_cast<Index>(edge_nodes_.size()); }  // V_b
  Index points() const { return points_ ? static_cast<Index>(fem::element_count(*points_->elements)) : 0; }
  // Where a region has left too few points.
  Index exact_domains() const { return exact_domains_; }
  // It has left points that some column hardly feels: the anchor is exact, and has a stiffness.
  bool firm() const { return firm_.size() > 0; }
  Index active_elements() const { return active_ ? fem::element_count(*active_->elements) : 0; }

  // Poses the step. `x`: where all nodes are now, those fixed to bones at the end of the step; the others may
  // be anywhere near. `q`: of the subspace.
  void pose(HybridStep step, const VecX& x, const VecX& q);
  // c at the posed step and the coordinates q.
  VecX make_anchor(const VecX& q);
  // `q`: that it was made at.
  void set_anchor(const VecX& c, const VecX& q) {
    anchor_ = c;
    anchor_q_ = q;
  }
  // Contacts of the full nodes: the step begins at t0 with nodes at x0 and ends at t; g: effective time step.
  // c: with g the velocity, (x - c)/g.
  void pose_contact(const VecX& x0, double t0, double t, const VecX& c, double g);
  bool revise_friction();                      // true: solve again
  std::vector<ContactForce> contact_forces();  // at the present unknowns, of all nodes, for output

  // Contacts of bodies with each other and themselves (null: not asked for). pose() once a step; the others
  // look at all nodes. Pairs whose nodes are all full, or fixed to bones, have an energy.
  BodyContact* bodies() { return bodies_ ? &*bodies_ : nullptr; }
  const BodyContact* bodies() const { return bodies_ ? &*bodies_ : nullptr; }
  // Nodes of pairs that press at x, those fixed to bones left out; pairs that training knows and that have
  // none of their nodes in this region are left out as well: they have points in the subspace.
  void add_pressing(const VecX& x, const std::vector<std::uint8_t>& region, std::vector<Index>& nodes) const;
  Index trained_pairs() const { return static_cast<Index>(trained_.size() / 4); }  // that have an energy
  // Takes the pairs of the region; makes the pattern anew when it lacks blocks of one that presses at x0 or
  // x1, and says so.
  bool couple_pairs(const VecX& x0, const VecX& x1);
  const std::vector<std::int64_t>& coupled() const { return coupled_; }
  const std::vector<std::int64_t>& tail() const { return tail_; }

  struct Point {
    double energy = 0, scale = 0;  // [J]
    double elastic = 0;            // [J]
    VecX rf, rs;                   // dE/dx_f, dE/dq [N]
    double norm = 0, rounding = 0;
    bool finite = false;
    Index first_bad = -1, inverted = 0;
  };
  // At the present unknowns.
  void evaluate(Point& point);
  // Present unknowns.
  const VecX& xf() const { return xf_; }
  const VecX& q() const { return q_; }
  void place(const VecX& xf, const VecX& q);
  // Where no node is full: goes to the training pose of the lowest energy, if that is below the present one.
  // A basis of few poses knows no way to them: straight lines between shapes stretch what has turned.
  void go_to_pose();

  // The matrix at the present unknowns, with a share of what makes every element positive semi-definite:
  // false when it is not positive definite.
  bool factor(double projected);
  const ReducedMatrix& matrix() const { return matrix_; }
  const BorderedSolver& solver() const { return solver_; }

  // Goes down the energy to where its gradient vanishes. `record`: what the kept factor was made from.
  NewtonReport solve(RegionFactor& record, PhaseClock& clock, const SolveLimits& limits = {},
                     const HybridStart* other = nullptr);
  // Around every step; the end only after it has succeeded.
  void begin_step() { step_cost_ = cost_before_ = 0; }
  void end_step(RegionFactor& record) const;

  // Positions of all nodes.
  VecX positions() const;

 private:
  struct Run;  // one call of solve()
  enum class End { kConverged, kLimit, kNoDescent, kBroken };

  MatX rest_stiffness(const std::vector<std::uint8_t>* active) const;
  MatX rest_stiffness_of_all() const;
  bool too_weak(const Domain& domain, const MatX& with_left);
  MatX missing_stiffness() const;
  void make_pattern();
  void make_contact();
  void reduced_mass();
  void assemble(double projected);
  void assemble_elastic(const VecX& x, const BasisRows& Wb, const BasisRows& Wp, double stiffness,
                        double inertia, const std::vector<double>& activation, double projected);
  void assemble_plan(const fem::Plan& plan, const VecX& x, const std::vector<double>& activation,
                     double projected, fem::Assembled& out);
  void collect_contact_blocks(bool exact);
  bool covered(const BodyContact::Pair& pair) const;
  bool in_subspace(const BodyContact::Pair& pair, const std::vector<std::uint8_t>& region) const;
  void collect_trained(bool exact);
  // A new pattern where one of the pairs that press at one of these places lacks a block; cover_present: at
  // the present unknowns, between two factors of a solve. True: there is one.
  bool cover(std::initializer_list<const VecX*> places);
  bool cover_present();
  void list_pairs();
  void add_contact_blocks(std::span<const std::int64_t> blocks, std::span<const double> values);

  void set_costs();
  static double tail_cost(Index nodes);
  bool small_region() const;
  bool fits_pattern(const RegionFactor& record) const;
  bool keep_factor(Run& run);
  bool recall(Run& run);
  bool make_factor(Run& run);
  void couple_present(Run& run);
  void take_tail();
  void find_tail();
  void change_contacts(NewtonReport& report);
  void precondition(VecX& z) const;
  void begin_at(Run& run, const HybridStart& other);
  bool drop_fading(Run& run);
  bool search_along(Run& run, const VecX& d);
  bool direct_direction(Run& run, VecX& d);
  bool pcg_direction(Run& run, VecX& d);
  bool jacobi_direction(Run& run, VecX& d);
  Product matrix_product() const;
  End newton(Run& run, int limit);
  End lbfgs(Run& run);

  const Model& model_;
  const Skeleton& skeleton_;
  const Subspace& subspace_;
  const CondenseOptions& options_;
  const PoseAt pose_at_;
  fem::Rounding rounding_;

  // Of the region.
  std::vector<std::uint8_t> full_;
  bool exact_ = false, ready_ = false;
  Index exact_domains_ = 0, anchored_count_ = 0;
  MatX with_all_, exact_all_;  // rest stiffness of all points, and of all elements, once they are needed
  struct WeakColumns {         // directions in which points left resist too little
    MatX directions;           // with_all_ times them; each has the stiffness 1 with all points
    MatX columns;
    VecX shares;  // with the points left
  } weak_;
  MatX firm_;                // Z [N/m]; empty: none
  double energy_scale_ = 0;  // E V of the elements that count, by their weights: rounding errors go by it [J]
  std::vector<Index> full_nodes_, edge_nodes_, point_nodes_;
  Index subspace_nodes_ = 0;
  std::optional<fem::Plan> active_, points_, off_;
  std::optional<fem::Plan> anchored_;  // active elements that the anchor makes up for, where not all of them
  std::vector<Index> full_of_,
      edge_of_;       // of the active plan's nodes: place in full_nodes_ or edge_nodes_, or -1
  struct Part {       // a block of the active plan's stiffness
    Index block, to;  // K_ff: where it goes
  };
  struct Coupling {
    Index block, i, j;  // places in full_nodes_/edge_nodes_
    bool transposed;
  };
  std::vector<Part> inner_;
  std::vector<Coupling> border_, corner_;
  std::shared_ptr<const BlockPattern> pattern_;
  BorderedSolver solver_;
  ContactModel contact_model_;
  std::optional<ContactEnergy> contact_;
  std::vector<Index> place_;  // of all nodes: where they are in full_nodes_, or -1
  std::optional<BodyContact> bodies_;
  std::vector<std::int64_t> coupled_;
  std::vector<Index> pair_nodes_, pair_blocks_;  // of pairs with an energy; blocks beside the diagonal
  std::vector<Index> trained_;                   // pairs with trained points, four nodes each
  std::vector<Index> trained_nodes_, trained_place_;
  BlockMatrix trained_matrix_;
  MatX contact_reduced_;  // what they add to D [N/m]; empty: nothing
  MatX mass_;             // of the subspace nodes: U_s^T M U_s

  // Of the step.
  HybridStep step_;
  BasisRows Wb_, Wp_, Wc_;  // of edge nodes, of the points' nodes, of those that trained contacts have
  VecX x_;                  // all nodes; those of V_s that nobody looks at are not kept up
  VecX xf_, q_, q0_;
  VecX full_load_, reduced_load_;  // [N]
  VecX reduced_inertia_;           // gradient of the inertial part at q0, over w
  VecX anchor_, anchor_q_;
  VecX full_mass_;
  double stiffness_ = 1;

  fem::Assembled active_force_, active_system_, points_force_, points_system_, whole_force_, projected_;
  VecX contact_force_;
  VecX body_force_;  // 3n, zero between two calls
  ReducedMatrix matrix_;
  BlockMatrix contact_matrix_;  // zero between two calls
  std::vector<std::int64_t> contact_block_;
  std::vector<double> contact_value_;

  // The kept factor, and what operations cost, in units of an arbitrary second.
  RegionFactor made_from_;
  std::vector<Mat3> factor_R_;  // of the full nodes, in the pose that it was made in
  bool fresh_ = false;          // it was made in the pose of this step
  // Nodes that touch are the factor's tail: what contacts add is changed in it between two factors.
  std::vector<std::int64_t> tail_;                  // ascending
  std::vector<Index> tail_place_;                   // of the full nodes: where they are in it, or -1
  std::vector<std::uint8_t> on_surface_;            // of all nodes
  std::vector<BorderedSolver::TailBlock> changed_;  // what was added to the kept factor
  struct Costs {
    double assemble = 0, force = 0, factor = 0, exact_factor = 0, solve = 0, multiply = 0, vectors = 0;
  } cost_;
  double step_cost_ = 0, cost_before_ = 0;  // of the current step, and of it before the factor was made
  Point trial_;
};

}  // namespace limber::condense
