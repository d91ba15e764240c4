// Co-rotational linear elasticity, rotation not frozen:
//   psi = mu |S - I|^2 + lambda/2 tr(S - I)^2,   F = R S, R a rotation.
// In an inverted element S has a negative eigenvalue, so that the element is pushed back.
#pragma once

#include <limber/material/principal.hpp>

namespace limber::material {

template <class T>
struct Corotational {
  static constexpr bool kForceNeedsSvd = true;
  static constexpr bool kScalingIsPsd = true;  // 2 mu I + lambda 1 1^T, lambda >= 0
  T mu, lambda;

  Corotational(const T& mu_lame, const T& lambda_lame) : mu(mu_lame), lambda(lambda_lame) {}

  T psi(const V3<T>& s) const {
    const V3<T> e{{s[0] - T(1), s[1] - T(1), s[2] - T(1)}};
    const T trace = e[0] + e[1] + e[2];
    return mu * dot(e, e) + T(0.5) * lambda * trace * trace;
  }

  // dpsi/ds
  V3<T> stress(const V3<T>& s) const {
    const T t = lambda * (s[0] + s[1] + s[2] - T(3)) - T(2) * mu;
    return {{T(2) * mu * s[0] + t, T(2) * mu * s[1] + t, T(2) * mu * s[2] + t}};
  }

  Principal<T> principal(const V3<T>& s) const {
    const T t = T(2) * lambda * (s[0] + s[1] + s[2] - T(3)) - T(4) * mu;
    const T diagonal = T(2) * mu + lambda;
    Principal<T> H;
    H.scaling = {diagonal, diagonal, diagonal, lambda, lambda, lambda};
    H.twist[0] = T(2) * mu + t / pair_sum(s[1], s[2]);
    H.twist[1] = T(2) * mu + t / pair_sum(s[0], s[2]);
    H.twist[2] = T(2) * mu + t / pair_sum(s[0], s[1]);
    for (T& flip : H.flip) flip = T(2) * mu;
    return H;
  }
};

}  // namespace limber::material
