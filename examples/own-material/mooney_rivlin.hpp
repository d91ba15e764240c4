// Mooney-Rivlin rubber, nearly incompressible: part of the shear resistance comes from I2. The invariants are
// taken of F without its change of volume, so that shear and volume do not mix.
#pragma once

#include <limber/limber.hpp>

struct MooneyRivlin {
  static constexpr const char* kName = "mooney-rivlin";
  static constexpr const char* kSummary =
      "0.7 mu/2 (I1 J^-2/3 - 3) + 0.3 mu/2 (I2 J^-4/3 - 3) + K/2 (J - 1)^2";

  // I1 = |F|^2, I2 = (I1^2 - |F^T F|^2)/2, J = det F; mu and lambda [Pa] from young and poisson of the scene.
  // T is a number that carries its derivatives.
  template <class T>
  static T psi(const T& I1, const T& I2, const T& J, double mu, double lambda) {
    const double share = 0.7, bulk = lambda + 2 * mu / 3;
    return mu / 2 * (share * (I1 * pow(J, -2.0 / 3) - 3) + (1 - share) * (I2 * pow(J, -4.0 / 3) - 3)) +
           bulk / 2 * (J - 1) * (J - 1);
  }
};
