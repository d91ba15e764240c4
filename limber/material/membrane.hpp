// A membrane in space as an element with a 3x3 deformation gradient: with F2 the 3x2 gradient of its plane, N
// the unit normal of the rest triangle and n that of the deformed one, F = F2 + n N^T has the singular values
// (s0, s1, 1). An energy of the singular values, taken there with Lame's lambda replaced by
//   lambda' = 2 lambda mu / (lambda + 2 mu),
// is a membrane that agrees with linear elasticity in plane stress at small strain, whatever the model: for
// St Venant-Kirchhoff it is mu |E|^2 + lambda'/2 tr(E)^2 of the 2x2 strain, for stable neo-Hookean
// mu/2 (Ic - 2) - mu (J - 1) + (lambda' + mu)/2 (J - 1)^2 with the ratio of areas J, and so on.
//
// n turns with F2, so the Hessian is not that of a 3x3 F: in the plane it is the same, and out of it, on
// n v_i^T, it is the geometric stiffness g_i / s_i (g_i = dpsi/ds_i), negative where the membrane is
// compressed: there it would buckle.
#pragma once

#include <limber/material/principal.hpp>

namespace limber::material {

inline double membrane_lambda(double mu, double lambda) { return 2 * lambda * mu / (lambda + 2 * mu); }

// Young's modulus from a membrane's constants.
template <class T>
T membrane_young(const T& mu, const T& lambda) {
  return T(4) * mu * (lambda + mu) / (lambda + T(2) * mu);
}

// The unit normal of the triangle with the edges a and b; any unit vector normal to a where it has no area.
template <class T>
V3<T> triangle_normal(const V3<T>& a, const V3<T>& b) {
  const V3<T> c = cross(a, b);
  const T length = vsqrt(dot(c, c));
  const auto flat = !(length > T(0));
  V3<T> n = scaled(c, T(1) / select(flat, T(1), length));
  if (any(flat)) {
    const T la = vsqrt(dot(a, a));
    const auto point = !(la > T(0));
    V3<T> q1, q2;
    complete_frame(select(point, V3<T>{{T(1), T(0), T(0)}}, scaled(a, T(1) / select(point, T(1), la))), q1,
                   q2);
    n = select(flat, q1, n);
  }
  return n;
}

// F = U diag(s0, s1, 1) V^T, s0 >= s1 >= 0, with n and N in the last columns of U and V; `t` is any vector in
// the plane of the rest triangle.
template <class T>
Svd<T> membrane_svd(const M3<T>& F, const V3<T>& t, const V3<T>& N) {
  const V3<T> t1 = scaled(t, T(1) / vsqrt(dot(t, t))), t2 = cross(N, t1), n = F * N;
  const V3<T> w1 = F * t1, w2 = F * t2;
  // One Jacobi rotation makes the images orthogonal, the longer one first; as in svd().
  const auto [c, s, r] = jacobi_rotation<T>(dot(w1, w1) - dot(w2, w2), T(2) * dot(w1, w2));
  V3<T> p1, p2, a, b;
  for (int i = 0; i < 3; ++i) {
    p1[i] = c * t1[i] + s * t2[i];
    p2[i] = c * t2[i] - s * t1[i];
    a[i] = c * w1[i] + s * w2[i];
    b[i] = c * w2[i] - s * w1[i];
  }
  const T length = vsqrt(dot(a, a));
  const auto collapsed = !(length > T(0));
  V3<T> u0 = scaled(a, T(1) / select(collapsed, T(1), length));
  if (any(collapsed)) {
    V3<T> q1, q2;
    complete_frame(n, q1, q2);
    u0 = select(collapsed, q1, u0);
  }
  const V3<T> u1 = cross(n, u0);
  Svd<T> out;
  set_column(out.U, 0, u0);
  set_column(out.U, 1, u1);
  set_column(out.U, 2, n);
  set_column(out.V, 0, p1);
  set_column(out.V, 1, p2);
  set_column(out.V, 2, N);
  out.s = {{length, dot(u1, b), T(1)}};
  return out;
}

// Turns the Hessian of a 3x3 F into that of a membrane; g0 and g1 are dpsi/ds.
template <class T>
void make_membrane(const V3<T>& s, const T& g0, const T& g1, Principal<T>& H) {
  H.scaling.zz = H.scaling.xz = H.scaling.yz = T(0);
  const T least(1e-8);
  H.twist[0] = H.flip[0] = g1 / vmax(s[1], least);
  H.twist[1] = H.flip[1] = g0 / vmax(s[0], least);
}

}  // namespace limber::material
