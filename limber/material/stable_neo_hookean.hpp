// Stable neo-Hookean without the logarithm (Smith, de Goes, Kim 2018; Kim and Eberle 2022):
//   psi = mu/2 (Ic - 3) + L/2 (J - a)^2 - const,   Ic = |F|^2, J = det F, L = lambda + mu, a = 1 + mu/L,
// written as mu/2 (Ic - 3) - mu (J - 1) + L/2 (J - 1)^2 so that psi is 0 in the rest shape. L in the place of
// lambda makes small strain agree with linear elasticity. Finite for every F, inverted ones included.
#pragma once

#include <limber/material/principal.hpp>

namespace limber::material {

template <class T>
struct StableNeoHookean {
  static constexpr bool kForceNeedsSvd = false;
  static constexpr bool kScalingIsPsd = false;
  T mu, L;

  StableNeoHookean(const T& mu_lame, const T& lambda) : mu(mu_lame), L(lambda + mu_lame) {}

  T psi(const M3<T>& F) const {
    const T j = determinant(F) - T(1);
    return T(0.5) * mu * (squared_norm(F) - T(3)) + j * (T(0.5) * L * j - mu);
  }

  M3<T> pk1(const M3<T>& F) const {
    M3<T> P = cofactor(F);
    const T kappa = L * (dot(column(F, 0), column(P, 0)) - T(1)) - mu;  // L (J - a)
    for (int i = 0; i < 9; ++i) P.a[i] = mu * F.a[i] + kappa * P.a[i];
    return P;
  }

  Principal<T> principal(const V3<T>& s) const {
    const T c0 = s[1] * s[2], c1 = s[0] * s[2], c2 = s[0] * s[1];  // dJ/ds
    const T J = s[0] * c0;
    const T kappa = L * (J - T(1)) - mu;
    const T off = L * J + kappa;  // L dJ/ds_i dJ/ds_j + kappa d2J/ds_i ds_j = off * s_k
    Principal<T> H;
    H.scaling = {mu + L * c0 * c0, mu + L * c1 * c1, mu + L * c2 * c2, off * s[2], off * s[1], off * s[0]};
    for (int k = 0; k < 3; ++k) {
      H.twist[k] = mu + kappa * s[k];
      H.flip[k] = mu - kappa * s[k];
    }
    return H;
  }
};

}  // namespace limber::material
