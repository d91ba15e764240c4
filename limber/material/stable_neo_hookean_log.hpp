// Stable neo-Hookean in the form of 2018 (Smith, de Goes, Kim), with the term that keeps a collapsed element
// from being a local minimum:
//   psi = m/2 (Ic - 3) + L/2 (J - a)^2 - m/2 log(Ic + 1) - const,   a = 1 + 3 m / (4 L).
// m = 4/3 mu and L = lambda + 5/6 mu make small strain agree with linear elasticity; `a` makes the rest shape
// free of stress. psi is 0 there.
#pragma once

#include <limber/material/principal.hpp>

namespace limber::material {

template <class T>
struct StableNeoHookeanLog {
  static constexpr bool kForceNeedsSvd = false;
  static constexpr bool kScalingIsPsd = false;
  T m, L;

  StableNeoHookeanLog(const T& mu, const T& lambda) : m(mu * T(4.0 / 3)), L(lambda + mu * T(5.0 / 6)) {}

  T psi(const M3<T>& F) const {
    const T j = determinant(F) - T(1), Ic = squared_norm(F);
    return T(0.5) * m * (Ic - T(3) - vlog((Ic + T(1)) * T(0.25))) + j * (T(0.5) * L * j - T(0.75) * m);
  }

  M3<T> pk1(const M3<T>& F) const {
    M3<T> P = cofactor(F);
    const T kappa = L * (dot(column(F, 0), column(P, 0)) - T(1)) - T(0.75) * m;  // L (J - a)
    const T Ic = squared_norm(F), k = m * Ic / (Ic + T(1));
    for (int i = 0; i < 9; ++i) P.a[i] = k * F.a[i] + kappa * P.a[i];
    return P;
  }

  Principal<T> principal(const V3<T>& s) const {
    const T c0 = s[1] * s[2], c1 = s[0] * s[2], c2 = s[0] * s[1];  // dJ/ds
    const T J = s[0] * c0, Ic = dot(s, s);
    const T kappa = L * (J - T(1)) - T(0.75) * m;
    const T inverse = T(1) / (Ic + T(1));
    const T k = m * Ic * inverse;               // g_i = k s_i + kappa dJ/ds_i
    const T dk = T(2) * m * inverse * inverse;  // dk/ds_j = dk * s_j
    const T off = L * J + kappa;
    Principal<T> H;
    H.scaling = {k + dk * s[0] * s[0] + L * c0 * c0,
                 k + dk * s[1] * s[1] + L * c1 * c1,
                 k + dk * s[2] * s[2] + L * c2 * c2,
                 dk * c2 + off * s[2],
                 dk * c1 + off * s[1],
                 dk * c0 + off * s[0]};
    for (int i = 0; i < 3; ++i) {
      H.twist[i] = k + kappa * s[i];
      H.flip[i] = k - kappa * s[i];
    }
    return H;
  }
};

}  // namespace limber::material
