// As rigid as possible: psi = mu |F - R|^2, R the rotation nearest to F. At small strain it is linear
// elasticity with lambda = 0, that is Poisson's ratio 0 and Young's modulus 2 mu; the given Poisson's ratio
// only enters through mu.
#pragma once

#include <limber/material/principal.hpp>

namespace limber::material {

template <class T>
struct Arap {
  static constexpr bool kForceNeedsSvd = true;
  static constexpr bool kScalingIsPsd = true;
  T mu;

  Arap(const T& mu_lame, const T& /*lambda*/) : mu(mu_lame) {}

  T psi(const V3<T>& s) const {
    const V3<T> e{{s[0] - T(1), s[1] - T(1), s[2] - T(1)}};
    return mu * dot(e, e);
  }

  // dpsi/ds
  V3<T> stress(const V3<T>& s) const {
    return {{T(2) * mu * (s[0] - T(1)), T(2) * mu * (s[1] - T(1)), T(2) * mu * (s[2] - T(1))}};
  }

  Principal<T> principal(const V3<T>& s) const {
    Principal<T> H;
    H.scaling = {T(2) * mu, T(2) * mu, T(2) * mu, T(0), T(0), T(0)};
    H.twist[0] = T(2) * mu - T(4) * mu / pair_sum(s[1], s[2]);
    H.twist[1] = T(2) * mu - T(4) * mu / pair_sum(s[0], s[2]);
    H.twist[2] = T(2) * mu - T(4) * mu / pair_sum(s[0], s[1]);
    for (T& flip : H.flip) flip = T(2) * mu;
    return H;
  }
};

}  // namespace limber::material
