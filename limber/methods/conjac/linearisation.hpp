// What passes between the lines of ConJac's algorithm box.
#pragma once

#include <limber/methods/conjac/reduced_step.hpp>

namespace limber {

// Where a step begins; held nodes have the velocity that the script gives them.
struct StepStart {
  VecX x, v;
};

// Lines 4 and 5: f, K, J, b, and the condensed system that they make.
struct Linearisation {
  double fraction = 0;     // of the step: taken at x0 + fraction h v0
  VecX loads;              // gravity and the script's forces [N]
  VecX force;              // these, elastic and contact forces [N]
  VecX correction;         // h b of Eq. 12: how far the quasistatic nodes are from their equilibrium [m]
  VecX closing;            // how far they go in this step to close contacts [m]
  ReducedSystems reduced;  // of Eq. 11
};

// Lines 7 and 8: all nodes at the end of the step.
struct Moved {
  VecX x, v;
  ReducedMotion motion;   // of the unknowns that moved them
  double dissipated = 0;  // by Rayleigh damping [J]
};

}  // namespace limber
