// The Hessian of an isotropic energy psi(s0, s1, s2) in the frame of the singular values F = U diag(s) V^T
// (Smith, de Goes, Kim: Analytic Eigensystems for Isotropic Distortion Energies, 2019).
//
// There d2psi/dF2 falls apart into
//   scaling: the 3x3 matrix d2psi/(ds_i ds_j) on the diagonal of U^T dF V,
//   twist:   eigenvalue (g_i + g_j) / (s_i + s_j) on its antisymmetric part in the (i, j) plane,
//   flip:    eigenvalue (g_i - g_j) / (s_i - s_j) on its symmetric part there,          g_i = dpsi/ds_i,
// so that clamping six numbers and the eigenvalues of one 3x3 matrix is the exact projection of the 9x9 one.
#pragma once

#include <limber/material/svd.hpp>

namespace limber::material {

template <class T>
struct Principal {
  Sym3<T> scaling;
  T twist[3], flip[3];  // entry k: the pair (i, j) of the other two
};

// `scaling_is_psd`: the model promises that its scaling block needs no projection.
template <class T>
void project(Principal<T>& H, bool scaling_is_psd) {
  for (int k = 0; k < 3; ++k) {
    H.twist[k] = vmax(H.twist[k], T(0));
    H.flip[k] = vmax(H.flip[k], T(0));
  }
  if (!scaling_is_psd) H.scaling = project_psd(H.scaling);
}

// s_i + s_j as a divisor. It is >= 0 by the order of the singular values and 0 only where an inverted element
// has s1 = -s2: there the rotation in F = R S is not unique and energies of R have a kink.
template <class T>
T pair_sum(const T& si, const T& sj) {
  return vmax(si + sj, T(1e-8));
}

}  // namespace limber::material
