// The model of an InvariantEnergy psi(I1, I2, J): stress and Hessian of every isotropic energy from its
// derivatives in the invariants,
//   pk1 = 2 psi_1 F + 2 psi_2 (I1 F - F F^T F) + psi_J cof F,
// and in the frame of the singular values (principal.hpp), with k the third index beside i and j,
//   twist = 2 psi_1 + 2 psi_2 (s_k^2 + s_i s_j) + psi_J s_k,   flip = 2 psi_1 + 2 psi_2 (s_k^2 - s_i s_j) -
//   psi_J s_k,
// which need no division and so no care where singular values are equal.
#pragma once

#include <limber/material/invariant_energy.hpp>
#include <limber/material/principal.hpp>

namespace limber::material {

template <class T>
struct Invariants {
  static constexpr bool kForceNeedsSvd = false;
  static constexpr bool kScalingIsPsd = false;
  const InvariantEnergy* energy;
  T mu, lambda;

  struct Terms {
    T psi, d[3], dd[6];
  };

  T psi(const M3<T>& F) const {
    const M3<T> C = cofactor(F);
    T value = terms(squared_norm(F), squared_norm(C), dot(column(F, 0), column(C, 0))).psi;
    if (!energy->zero_at_rest) value -= terms(T(3), T(3), T(1)).psi;
    return value;
  }

  M3<T> pk1(const M3<T>& F) const {
    M3<T> P = cofactor(F);
    const T I1 = squared_norm(F);
    const Terms t = terms(I1, squared_norm(P), dot(column(F, 0), column(P, 0)));
    M3<T> Ft;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) Ft(i, j) = F(j, i);
    const M3<T> cubic = F * (Ft * F);
    const T linear = T(2) * (t.d[0] + t.d[1] * I1), third = T(-2) * t.d[1];
    for (int i = 0; i < 9; ++i) P.a[i] = linear * F.a[i] + third * cubic.a[i] + t.d[2] * P.a[i];
    return P;
  }

  Principal<T> principal(const V3<T>& s) const {
    const T q[3] = {s[0] * s[0], s[1] * s[1], s[2] * s[2]};
    const T I1 = q[0] + q[1] + q[2];
    const Terms t = terms(I1, q[0] * q[1] + q[0] * q[2] + q[1] * q[2], s[0] * s[1] * s[2]);
    // First derivatives of the invariants in s_i.
    T d[3][3];
    for (int i = 0; i < 3; ++i) {
      d[0][i] = T(2) * s[i];
      d[1][i] = T(2) * s[i] * (I1 - q[i]);
      d[2][i] = s[(i + 1) % 3] * s[(i + 2) % 3];
    }
    const int place[3][3] = {{0, 3, 4}, {3, 1, 5}, {4, 5, 2}};
    T H[3][3];
    for (int i = 0; i < 3; ++i)
      for (int j = i; j < 3; ++j) {
        T sum = i == j ? T(2) * t.d[0] + T(2) * t.d[1] * (I1 - q[i])
                       : T(4) * t.d[1] * s[i] * s[j] + t.d[2] * s[3 - i - j];
        for (int a = 0; a < 3; ++a)
          for (int b = 0; b < 3; ++b) sum += t.dd[place[a][b]] * d[a][i] * d[b][j];
        H[i][j] = sum;
      }
    Principal<T> out;
    out.scaling = {H[0][0], H[1][1], H[2][2], H[0][1], H[0][2], H[1][2]};
    for (int k = 0; k < 3; ++k) {
      const T pair = s[(k + 1) % 3] * s[(k + 2) % 3];
      out.twist[k] = T(2) * (t.d[0] + t.d[1] * (q[k] + pair)) + t.d[2] * s[k];
      out.flip[k] = T(2) * (t.d[0] + t.d[1] * (q[k] - pair)) - t.d[2] * s[k];
    }
    return out;
  }

 private:
  Terms terms(const T& I1, const T& I2, const T& J) const {
    Terms out;
    for (int lane = 0; lane < lanes_of(I1); ++lane) {
      const double invariants[3] = {lane_of(I1, lane), lane_of(I2, lane), lane_of(J, lane)},
                   lame[2] = {lane_of(mu, lane), lane_of(lambda, lane)};
      EnergyTerms e;
      energy->terms(*energy, invariants, lame, e);
      set_lane(out.psi, lane, e.psi);
      for (int i = 0; i < 3; ++i) set_lane(out.d[i], lane, e.d[i]);
      for (int k = 0; k < 6; ++k) set_lane(out.dd[k], lane, e.dd[k]);
    }
    return out;
  }
};

}  // namespace limber::material
