// One step of a mechanism in joint velocities: Bilateral Staggered Projections (Algorithm 3.2) when something
// rubs, and a single linear solve or contact QP when nothing does.
//
// Each iteration finds (1) the joint velocities with friction held, loops, motors, limits and contacts as
// rows (Eq. 3.8c); (2) the reaction in every joint, from leaves to root, each reaction going to the joint's
// *parent* (section 3.3.2.2); (3) the multipliers at the contact points inside each joint; (4) friction with
// these held.
//
// Where we leave the paper (settings.published = true follows its letter, see docs/methods/joints.md):
//  - Eq. 3.5a is f = M (J v_con - v_unc) / h. The acceleration of a link is J dv/dt + dJ/dt v, and without
//  the
//    second term the reaction lacks part of the centripetal force and J^T f is not zero, so that line 24
//    counts the quadratic velocity term twice. We include it; the last contact solve is then the result.
//  - Eq. 3.8b solves a second, maximal QP whose external impulses differ from those that act. We use those of
//    Eq. 3.8c, which needs no second QP.
//  - the quadratic velocity terms (gyroscopic torque, dJ/dt v) of Eq. 3.6 are explicit and gain energy, much
//  of it
//    where links spin fast. Ours keep momentum and energy: inertial_motion.hpp.
//  - friction may be solved in joint velocities (kReduced): one unknown per pin or slider instead of eight.
#pragma once

#include <limber/qp/staggered.hpp>
#include <limber/rigid/inner_contacts.hpp>

namespace limber::rigid {

enum class FrictionSpace { kReduced, kMaximal };

struct StepSettings {
  double h = 5e-3;  // [s]
  Vec3 gravity = Vec3(0, -9.81, 0);
  Stabilisation stabilisation;
  qp::StaggeredOptions staggered;
  FrictionSpace space = FrictionSpace::kReduced;
  bool published = false;        // Eqs. 3.5, 3.7 and 3.8 as printed; implies kMaximal
  bool reactions = false;        // report the forces of all joints (not when published)
  double regularisation = 1e-6;  // epsilon of Eq. 3.7, only when published; in the units of the scene
};

// What acts on the links from outside: wrenches [N m, N], 6 per link, and how they answer the new joint
// velocities (System::response, impulses). Either may be empty.
struct External {
  VecX force;
  MatX response;
};

struct JointState {
  VecX q, v;
  VecX friction;  // warm start: friction impulses of the last step (layout: see bisp.cpp); may be empty
};

struct StepOutcome {
  bool converged = true;
  bool inertia_settled = true;  // inertial_motion.hpp
  int iterations = 1;           // contact solves
  double change = 0;            // last relative change of the reactions
  double loop_error = 0;        // after projection [m]
  VecX motor;                   // per velocity: torque of speed motors [N m or N], zero elsewhere
  VecX
      friction_torque;  // per inner surface: friction torque about a pin, force along a slider, torque's norm
  VecX dry_friction;    // per velocity: torque of dry friction [N m or N]
  VecX contact_normal;  // per contact: impulse / h [N]
  std::vector<double> load;  // per inner surface: sum of |multipliers| / h [N]
  VecX joint_force;  // per joint, three numbers: its force on its child, without motors [N]; where asked for
  double friction_work = 0;  // on the mechanism during the step, negative [J]
  double motor_work = 0;     // [J]
};

// `contacts` are those of the positions at the start of the step. Advances `state` from t to t + settings.h.
StepOutcome step_bisp(const Mechanism& mechanism, const std::vector<InnerSurface>& surfaces,
                      const std::vector<Contact>& contacts, const External& external, double t,
                      const StepSettings& settings, JointState& state);

}  // namespace limber::rigid
