// What rounding leaves of elastic forces and energies, for solvers that must know when to stop.
#pragma once

#include <limber/fem/elements.hpp>

namespace limber::fem {

struct Rounding {
  double force = 0;   // |f| that rounding the positions brings, per size of the positions [N/m]
  double energy = 0;  // sum of E times volume: terms of that size cancel in the elastic energy [J]
};
Rounding rounding(const ElementInput& mesh, const std::vector<double>& rest_volume);

}  // namespace limber::fem
