// St Venant-Kirchhoff: psi = mu |E|^2 + lambda/2 tr(E)^2 with Green's strain E = (F^T F - I) / 2. Polynomial
// in F, but soft in compression: the force has a maximum at s = 1/sqrt(3) and an inverted element does not
// come back.
#pragma once

#include <limber/material/principal.hpp>

namespace limber::material {

template <class T>
struct StVenantKirchhoff {
  static constexpr bool kForceNeedsSvd = false;
  static constexpr bool kScalingIsPsd = false;
  T mu, lambda;

  StVenantKirchhoff(const T& mu_lame, const T& lambda_lame) : mu(mu_lame), lambda(lambda_lame) {}

  static Sym3<T> green_strain(const M3<T>& F) {
    const V3<T> f0 = column(F, 0), f1 = column(F, 1), f2 = column(F, 2);
    return {T(0.5) * (dot(f0, f0) - T(1)), T(0.5) * (dot(f1, f1) - T(1)), T(0.5) * (dot(f2, f2) - T(1)),
            T(0.5) * dot(f0, f1),          T(0.5) * dot(f0, f2),          T(0.5) * dot(f1, f2)};
  }

  T psi(const M3<T>& F) const {
    const Sym3<T> E = green_strain(F);
    const T trace = E.xx + E.yy + E.zz;
    return mu * (E.xx * E.xx + E.yy * E.yy + E.zz * E.zz + T(2) * (E.xy * E.xy + E.xz * E.xz + E.yz * E.yz)) +
           T(0.5) * lambda * trace * trace;
  }

  M3<T> pk1(const M3<T>& F) const {
    const Sym3<T> E = green_strain(F);
    const T t = lambda * (E.xx + E.yy + E.zz), k = T(2) * mu;
    return F * M3<T>{{k * E.xx + t, k * E.xy, k * E.xz, k * E.xy, k * E.yy + t, k * E.yz, k * E.xz, k * E.yz,
                      k * E.zz + t}};
  }

  Principal<T> principal(const V3<T>& s) const {
    const T q0 = s[0] * s[0], q1 = s[1] * s[1], q2 = s[2] * s[2];
    const T t = T(0.5) * lambda * (q0 + q1 + q2 - T(3)) - mu;  // g_i = s_i (mu q_i + t)
    const T diagonal = T(3) * mu + lambda;
    Principal<T> H;
    H.scaling = {diagonal * q0 + t,    diagonal * q1 + t,    diagonal * q2 + t,
                 lambda * s[0] * s[1], lambda * s[0] * s[2], lambda * s[1] * s[2]};
    H.twist[0] = mu * (q1 + q2 - s[1] * s[2]) + t;
    H.twist[1] = mu * (q0 + q2 - s[0] * s[2]) + t;
    H.twist[2] = mu * (q0 + q1 - s[0] * s[1]) + t;
    H.flip[0] = mu * (q1 + q2 + s[1] * s[2]) + t;
    H.flip[1] = mu * (q0 + q2 + s[0] * s[2]) + t;
    H.flip[2] = mu * (q0 + q1 + s[0] * s[1]) + t;
    return H;
  }
};

}  // namespace limber::material
