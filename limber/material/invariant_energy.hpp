// An energy density of the invariants of F that is known only when the program runs: a formula of a scene
// file (energy_formula.hpp) or a function of a program that uses Limber (own_energy.hpp).
//
// A plain struct with a plain function: kernels of every instruction set call it, element by element.
#pragma once

namespace limber::material {

// psi and its derivatives in I1 = |F|^2, I2 = (I1^2 - |F^T F|^2)/2 and J = det F [Pa].
struct EnergyTerms {
  double psi = 0;
  double d[3] = {0, 0, 0};            // I1, I2, J
  double dd[6] = {0, 0, 0, 0, 0, 0};  // 11 22 33 12 13 23
};

struct InvariantEnergy {
  // `lame`: mu and lambda of the element [Pa].
  using Function = void (*)(const InvariantEnergy& self, const double invariants[3], const double lame[2],
                            EnergyTerms& out);
  Function terms = nullptr;
  bool zero_at_rest = true;  // psi(3, 3, 1) = 0; else it is taken off
};

}  // namespace limber::material
