// For comparison with skinning: linear vibration modes and their modal derivatives (J. Barbic, D. James,
// 2005). They are exact for small motions; a body that turns far leaves their span.
#pragma once

#include <limber/fem/elements.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace limber {

struct LinearModes {
  MatX U;       // 3n x r, mass-orthonormal: modes first, then derivatives; a multiple of three columns
  VecX omega2;  // squared angular frequencies of the modes [1/s^2]; about 0 for free rigid motions
  Index derivatives = 0;  // columns of U that are derivatives
};

// As many modes k as fit with all k (k + 1) / 2 derivatives into `unknowns` columns. A derivative answers the
// second-order force of two modes,
//
//   (K - shift M) Psi_ij = -(dK/dx : Psi_j) Psi_i,
//
// by differences of K; the shift is zero where the body is held, and small and below zero where it is free.
// `mass`: lumped, one number per node; `pinned`: nodes that do not move (may be empty).
LinearModes linear_modes(const fem::ElementInput& mesh, const VecX& mass,
                         const std::vector<std::uint8_t>& pinned, Index unknowns,
                         const std::function<void(const std::string& what, double fraction)>& progress = {});

// The first `modes` vibration modes alone, mass-orthonormal columns.
MatX vibration_modes(const fem::ElementInput& mesh, const VecX& mass, const std::vector<std::uint8_t>& pinned,
                     Index modes);

}  // namespace limber
