// Young's modulus and Poisson's ratio to Lame's constants: the one place where it is done and checked.
#pragma once

namespace limber::material {

struct Lame {
  double mu;      // shear modulus [Pa]
  double lambda;  // [Pa]
};

// Throws Error(kInput) unless young > 0 and 0 <= poisson < 0.5. Linear elasticity is stable down to -1, but
// below 0 lambda is negative, and two of the models then reward it when an element collapses (stable
// neo-Hookean: F = 0 has less energy than the rest shape) or grows without end (fixed co-rotated).
Lame lame(double young, double poisson);

}  // namespace limber::material
