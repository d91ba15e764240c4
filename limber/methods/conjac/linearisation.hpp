// What passes between the lines of ConJac's algorithm box.
#pragma once

#include <limber/methods/common/link_contact.hpp>
#include <limber/methods/conjac/reduced_step.hpp>

#include <cstddef>
#include <vector>

namespace limber {

// Where a step begins; held nodes have the velocity that the script gives them.
struct StepStart {
  VecX x, v;
};

// A piece that nothing holds or touches, and how it spins at the start of a step (free_spin.hpp).
struct FreeSpin {
  std::size_t piece = 0;
  Vec3 center = Vec3::Zero(), velocity = Vec3::Zero();  // of mass [m], [m/s]
  Vec3 momentum = Vec3::Zero(), omega = Vec3::Zero();   // spin about the centre [kg m^2/s], [rad/s]
  Vec3 angle = Vec3::Zero();                            // turned where the step is linearised [rad]
};

// What became of it at the end of the step.
struct Turn {
  Mat3 rotation = Mat3::Identity();
  Vec3 momentum = Vec3::Zero();  // spin about the centre [kg m^2/s]
};

// Lines 4 and 5: f, K, J, b, and the condensed system that they make.
struct Linearisation {
  double fraction = 0;  // of the step that lies before
  VecX x, v;            // there: positions [m], and the velocities of the start [m/s]
  std::vector<FreeSpin> spins;
  VecX loads;       // gravity and the script's forces [N]
  VecX force;       // these, elastic and contact forces [N]
  VecX unbalanced;  // what of it pushes the quasistatic nodes: less M a of pieces that accelerate as a whole
                    // [N]
  VecX moving;      // M a of the condensed motion, where bodies slide: what is left of force on the way [N]
  VecX correction;  // gamma h b of Eq. 13: how far the quasistatic nodes go to their equilibrium [m]
  VecX closing;     // how far they go in this step to close contacts [m]
  LinkTouches touches;     // of links
  ReducedSystems reduced;  // of Eq. 11
};

// Lines 7 and 8: all nodes at the end of the step.
struct Moved {
  VecX x, v;
  ReducedMotion motion;   // of the unknowns that moved them
  VecX imposed;           // velocities that held nodes and bones impose on all [m/s]
  VecX w = {};            // what held nodes and obstacles impose, without links; empty: Condensation::w
  double bones = 0;       // work of the links [J]
  double dissipated = 0;  // by Rayleigh damping [J]
  std::vector<Turn> turns = {};  // of the Linearisation's spins
};

}  // namespace limber
