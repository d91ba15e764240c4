// Young's modulus and Poisson's ratio to Lame's constants: the one place where it is done and checked.
#pragma once

#include <limber/material/material.hpp>

#include <string>

namespace limber::material {

struct Lame {
  double mu;      // shear modulus [Pa]
  double lambda;  // [Pa]
};

// Throws Error(kInput) unless young > 0 and -1 < poisson < 0.5: where linear elasticity is stable.
Lame lame(double young, double poisson);

// Poisson's ratio from which on (included) the rest shape has the least energy of all shapes, so that a body
// has no better place to go; -1 (not included) is the bound of lame(). Below 0 lambda is negative, and some
// energies then reward it when an element collapses (stable neo-Hookean: F = 0 has lambda/2 more than the
// rest shape), shrinks (with the logarithm: to half its size, from about -0.89 on) or grows without end
// (fixed co-rotated).
double least_poisson(MaterialModel model);
// Of the model of this name in scene files; -1 for one that a program has added.
double least_poisson(const std::string& name);

}  // namespace limber::material
