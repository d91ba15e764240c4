// Polar decomposition F = R S with a rotation R and a symmetric S, and its rates in closed form (ConJac,
// Eqs. 15 to 19; dR/dF after Smith, de Goes, Kim 2019). In an inverted element R stays a rotation and S has a
// negative eigenvalue.
#pragma once

#include <limber/material/principal.hpp>

namespace limber::material {

// R = U V^T (Eq. 18)
template <class T>
M3<T> rotation(const Svd<T>& d) {
  return times_diagonal_transposed(d.U, V3<T>{{T(1), T(1), T(1)}}, d.V);
}

// S = V diag(s) V^T (Eq. 18)
template <class T>
M3<T> stretch(const Svd<T>& d) {
  return times_diagonal_transposed(d.V, d.s, d.V);
}

// A X B^T
template <class T>
M3<T> between(const M3<T>& A, const M3<T>& X, const M3<T>& B) {
  const M3<T> AX = A * X;
  M3<T> C;
  for (int j = 0; j < 3; ++j) set_column(C, j, AX * V3<T>{{B(j, 0), B(j, 1), B(j, 2)}});
  return C;
}

// U^T X V
template <class T>
M3<T> in_singular_frame(const Svd<T>& d, const M3<T>& X) {
  M3<T> C;
  for (int j = 0; j < 3; ++j) set_column(C, j, transposed_times(d.U, X * column(d.V, j)));
  return C;
}

// dR/dt = dR/dF : dF/dt (Eq. 19). With G = U^T dF/dt V it is U W V^T, W_ij = (G_ij - G_ji) / (s_i + s_j).
template <class T>
M3<T> rotation_rate(const Svd<T>& d, const M3<T>& Fdot) {
  const M3<T> G = in_singular_frame(d, Fdot);
  M3<T> W;
  for (int i = 0; i < 3; ++i) {
    W(i, i) = T(0);
    for (int j = 0; j < i; ++j) {
      W(i, j) = (G(i, j) - G(j, i)) / pair_sum(d.s[i], d.s[j]);
      W(j, i) = -W(i, j);
    }
  }
  return between(d.U, W, d.V);
}

// dS/dt = R^T (dF/dt - dR/dt S) (Eq. 17), with dR/dt inserted: V Q V^T, Q_ij = (s_i G_ij + s_j G_ji) / (s_i +
// s_j). Nothing is left to cancel, so that a rigid motion gives zero to rounding.
template <class T>
M3<T> stretch_rate(const Svd<T>& d, const M3<T>& Fdot) {
  const M3<T> G = in_singular_frame(d, Fdot);
  M3<T> Q;
  for (int i = 0; i < 3; ++i) {
    Q(i, i) = G(i, i);
    for (int j = 0; j < i; ++j) {
      Q(i, j) = (d.s[i] * G(i, j) + d.s[j] * G(j, i)) / pair_sum(d.s[i], d.s[j]);
      Q(j, i) = Q(i, j);
    }
  }
  return between(d.V, Q, d.V);
}

}  // namespace limber::material
