// Fixed co-rotated (Stomakhin et al. 2012):
//   psi = mu |S - I|^2 + lambda/2 (J - 1)^2,   F = R S, R a rotation, J = det F.
#pragma once

#include <limber/material/principal.hpp>

namespace limber::material {

template <class T>
struct FixedCorotated {
  static constexpr bool kForceNeedsSvd = true;
  static constexpr bool kScalingIsPsd = false;
  T mu, lambda;

  FixedCorotated(const T& mu_lame, const T& lambda_lame) : mu(mu_lame), lambda(lambda_lame) {}

  T psi(const V3<T>& s) const {
    const V3<T> e{{s[0] - T(1), s[1] - T(1), s[2] - T(1)}};
    const T j = s[0] * s[1] * s[2] - T(1);
    return mu * dot(e, e) + T(0.5) * lambda * j * j;
  }

  // dpsi/ds
  V3<T> stress(const V3<T>& s) const {
    const T c0 = s[1] * s[2], c1 = s[0] * s[2], c2 = s[0] * s[1];  // dJ/ds
    const T kappa = lambda * (s[0] * c0 - T(1));
    return {{T(2) * mu * (s[0] - T(1)) + kappa * c0, T(2) * mu * (s[1] - T(1)) + kappa * c1,
             T(2) * mu * (s[2] - T(1)) + kappa * c2}};
  }

  Principal<T> principal(const V3<T>& s) const {
    const T c0 = s[1] * s[2], c1 = s[0] * s[2], c2 = s[0] * s[1];
    const T J = s[0] * c0, kappa = lambda * (J - T(1)), off = lambda * J + kappa;
    Principal<T> H;
    H.scaling = {T(2) * mu + lambda * c0 * c0,
                 T(2) * mu + lambda * c1 * c1,
                 T(2) * mu + lambda * c2 * c2,
                 off * s[2],
                 off * s[1],
                 off * s[0]};
    H.twist[0] = T(2) * mu - T(4) * mu / pair_sum(s[1], s[2]) + kappa * s[0];
    H.twist[1] = T(2) * mu - T(4) * mu / pair_sum(s[0], s[2]) + kappa * s[1];
    H.twist[2] = T(2) * mu - T(4) * mu / pair_sum(s[0], s[1]) + kappa * s[2];
    for (int k = 0; k < 3; ++k) H.flip[k] = T(2) * mu - kappa * s[k];
    return H;
  }
};

}  // namespace limber::material
