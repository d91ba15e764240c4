// Energies as they appear in scene files: "mu/2*(I1 - 3) - mu*log(J) + lambda/2*log(J)^2".
//
//   I1 I2 J   invariants of F: |F|^2, (I1^2 - |F^T F|^2)/2, det F
//   mu lambda   Lame's constants of the element, from young and poisson
//   numbers, pi, + - * / ^ (right to left, before the sign), ( ), log exp sqrt
#pragma once

#include <limber/material/invariant_energy.hpp>

#include <memory>
#include <string>

namespace limber::material {

// Throws Error(kInput) that says at which character it stops making sense.
std::shared_ptr<const InvariantEnergy> parse_energy(const std::string& text);

}  // namespace limber::material
