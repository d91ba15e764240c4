// Singular values of a 3x3 matrix and the nearest positive semi-definite 3x3 matrix, without loops and
// branches, so that every lane of a Pack takes the same path.
//
// Both rest on one fact: of the three eigenvalues of a symmetric 3x3 matrix, the one farthest from the other
// two is well conditioned, with its eigenvector. It is split off by the closed formula; what is left is a 2x2
// problem.
#pragma once

#include <limber/material/small.hpp>

namespace limber::material {

// Two unit vectors that make (q1, q2, v) a right-handed frame; |v| = 1 (Duff et al. 2017).
template <class T>
void complete_frame(const V3<T>& v, V3<T>& q1, V3<T>& q2) {
  const T sign = select(v[2] < T(0), T(-1), T(1));
  const T a = T(-1) / (sign + v[2]);
  const T b = v[0] * v[1] * a;
  q1 = {{T(1) + sign * v[0] * v[0] * a, sign * b, -sign * v[0]}};
  q2 = {{b, sign + v[1] * v[1] * a, -v[1]}};
}

// The eigenvalue of A that lies farthest from the other two, and its unit eigenvector. Returns a mask: is it
// the largest (or else the smallest)? For a multiple of the identity any unit vector comes out.
template <class T>
auto isolated_eigenpair(const Sym3<T>& A, T& lambda, V3<T>& v) {
  const T q = (A.xx + A.yy + A.zz) * T(1.0 / 3);
  T xx = A.xx - q, yy = A.yy - q, zz = A.zz - q;
  const T p2 = (xx * xx + yy * yy + zz * zz + T(2) * (A.xy * A.xy + A.xz * A.xz + A.yz * A.yz)) * T(1.0 / 6);
  const T p = vsqrt(p2);
  const T scale = select(p > T(0), T(1) / p, T(0));
  // B = (A - q I) / p has the eigenvalues 2 cos(t), 2 cos(t +- 2 pi / 3) with cos(3 t) = det(B) / 2.
  xx *= scale;
  yy *= scale;
  zz *= scale;
  const T xy = A.xy * scale, xz = A.xz * scale, yz = A.yz * scale;
  const T det = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz);
  const auto largest = det >= T(0);
  const T r = vmin(T(0.5) * vabs(det), T(1));
  // c = cos(acos(r) / 3): a polynomial good to 5e-6, then one step of Halley's method on 4 c^3 - 3 c = r.
  T c = vfma(r, T(-0.004099405456427334), T(0.01764236488784462));
  c = vfma(r, c, T(-0.04600526135790896));
  c = vfma(r, c, T(0.16642901838062382));
  c = vfma(r, c, T(0.8660298533592382));
  const T g = (T(4) * c * c - T(3)) * c - r, dg = T(12) * c * c - T(3);
  c -= T(2) * g * dg / (T(2) * dg * dg - T(24) * g * c);
  const T beta = select(largest, T(2) * c, T(-2) * c);
  lambda = q + p * beta;
  // The adjugate of B - beta I is k v v^T with k > 0: take its longest column.
  xx -= beta;
  yy -= beta;
  zz -= beta;
  const T adj_xx = yy * zz - yz * yz, adj_yy = xx * zz - xz * xz, adj_zz = xx * yy - xy * xy;
  const T adj_xy = xz * yz - xy * zz, adj_xz = xy * yz - xz * yy, adj_yz = xy * xz - yz * xx;
  v = select(adj_xx >= adj_yy, V3<T>{{adj_xx, adj_xy, adj_xz}}, V3<T>{{adj_xy, adj_yy, adj_yz}});
  v = select(adj_zz > vmax(adj_xx, adj_yy), V3<T>{{adj_xz, adj_yz, adj_zz}}, v);
  v = scaled(v, T(1) / vsqrt(dot(v, v)));
  return largest;
}

// One Jacobi rotation: c = cos(t/2), s = sin(t/2) with t the angle of (d, h), r = |(d, h)|; c = 1 where both
// are zero. Two vectors a and b with d = |a|^2 - |b|^2 and h = 2 a.b become orthogonal, the longer one first,
// as c a + s b and c b - s a; and in axes turned likewise the symmetric matrix [m + d, h; h, m - d] is diag(m
// + r, m - r).
template <class T>
struct JacobiRotation {
  T c, s, r;
};

template <class T>
JacobiRotation<T> jacobi_rotation(const T& d, const T& h) {
  const T r = vsqrt(d * d + h * h);
  const auto rotate = r > T(0);
  const T half_inverse = T(0.5) / select(rotate, r, T(1));
  const T m = select(rotate, vsqrt((r + vabs(d)) * half_inverse), T(1));
  const T n = h * half_inverse / m;
  const auto ordered = d >= T(0);
  return {select(ordered, m, n), select(ordered, n, m), r};
}

// F = U diag(s) V^T with rotations U and V and s0 >= s1 >= |s2|: s2 < 0 where F inverts. Backward stable: the
// product is F to a few units in the last place of its norm, for repeated and zero singular values too.
template <class T>
struct Svd {
  M3<T> U, V;
  V3<T> s;
};

template <class T>
Svd<T> svd(const M3<T>& F) {
  const V3<T> f0 = column(F, 0), f1 = column(F, 1), f2 = column(F, 2);
  const Sym3<T> C{dot(f0, f0), dot(f1, f1), dot(f2, f2), dot(f0, f1), dot(f0, f2), dot(f1, f2)};
  T lambda;
  V3<T> v, q1, q2;
  const auto largest = isolated_eigenpair(C, lambda, v);
  complete_frame(v, q1, q2);
  // One Jacobi rotation makes F q1 and F q2 orthogonal, the longer one first. It works on F itself: F^T F
  // would lose half of the digits of small singular values.
  const V3<T> w = F * v, w1 = F * q1, w2 = F * q2;
  const auto [c, s, r] = jacobi_rotation<T>(dot(w1, w1) - dot(w2, w2), T(2) * dot(w1, w2));
  V3<T> p1, p2, wp1, wp2;
  for (int i = 0; i < 3; ++i) {
    p1[i] = vfma(s, q2[i], c * q1[i]);
    p2[i] = vfma(-s, q1[i], c * q2[i]);
    wp1[i] = vfma(s, w2[i], c * w1[i]);
    wp2[i] = vfma(-s, w1[i], c * w2[i]);
  }
  // (v, p1, p2) or (p1, p2, v): both right-handed, singular values descending.
  Svd<T> out;
  set_column(out.V, 0, select(largest, v, p1));
  set_column(out.V, 1, select(largest, p1, p2));
  set_column(out.V, 2, select(largest, p2, v));
  const V3<T> a = select(largest, w, wp1), b = select(largest, wp1, wp2), e = select(largest, wp2, w);
  // Gram-Schmidt from the longest column down.
  const T na = vsqrt(dot(a, a));
  const auto collapsed = !(na > T(0));
  const V3<T> u0 =
      select(collapsed, V3<T>{{T(1), T(0), T(0)}}, scaled(a, T(1) / select(collapsed, T(1), na)));
  const T overlap = dot(u0, b);
  const V3<T> t{{vfma(-overlap, u0[0], b[0]), vfma(-overlap, u0[1], b[1]), vfma(-overlap, u0[2], b[2])}};
  const T nt = vsqrt(dot(t, t));
  const auto line = !(nt > T(1e-14) * na);  // F maps everything to (nearly) one line, or to a point
  V3<T> u1 = scaled(t, T(1) / select(line, T(1), nt));
  if (any(line)) {
    complete_frame(u0, q1, q2);
    u1 = select(line, q1, u1);
  }
  const V3<T> u2 = cross(u0, u1);
  set_column(out.U, 0, u0);
  set_column(out.U, 1, u1);
  set_column(out.U, 2, u2);
  out.s = {{na, dot(u1, b), dot(u2, e)}};
  return out;
}

// The nearest positive semi-definite matrix in the Frobenius norm: negative eigenvalues become zero.
template <class T>
Sym3<T> project_psd(const Sym3<T>& A) {
  // Nothing to do if all leading minors are positive, by more than rounding errors.
  const T trace = A.xx + A.yy + A.zz, size = T(1e-10) * trace * trace;
  const T minor = A.xx * A.yy - A.xy * A.xy;
  const T det = A.xx * (A.yy * A.zz - A.yz * A.yz) - A.xy * (A.xy * A.zz - A.yz * A.xz) +
                A.xz * (A.xy * A.yz - A.yy * A.xz);
  const auto definite = (A.xx > T(0)) & (minor > size) & (det > size * trace);
  if (!any(!definite)) return A;
  T lambda;
  V3<T> v, q1, q2;
  isolated_eigenpair(A, lambda, v);
  complete_frame(v, q1, q2);
  const M3<T> full{{A.xx, A.xy, A.xz, A.xy, A.yy, A.yz, A.xz, A.yz, A.zz}};
  const V3<T> Aq1 = full * q1, Aq2 = full * q2;
  // On the plane of q1 and q2 the clamped matrix is alpha A + gamma I.
  const T mean = T(0.5) * (dot(q1, Aq1) + dot(q2, Aq2)), half = T(0.5) * (dot(q1, Aq1) - dot(q2, Aq2));
  const T off = dot(q1, Aq2);
  const T radius = vsqrt(half * half + off * off);
  const T high = vmax(mean + radius, T(0)), low = vmax(mean - radius, T(0));
  const auto split = radius > T(0);
  const T alpha = select(split, T(0.5) * (high - low) / select(split, radius, T(1)), T(0));
  const T gamma = high - alpha * (mean + radius);
  const T k = vmax(lambda, T(0)) - alpha * lambda - gamma;
  // A lane that needs nothing keeps its bits, whatever the others do: how many there are depends on the
  // machine.
  return {select(definite, A.xx, alpha * A.xx + gamma + k * v[0] * v[0]),
          select(definite, A.yy, alpha * A.yy + gamma + k * v[1] * v[1]),
          select(definite, A.zz, alpha * A.zz + gamma + k * v[2] * v[2]),
          select(definite, A.xy, alpha * A.xy + k * v[0] * v[1]),
          select(definite, A.xz, alpha * A.xz + k * v[0] * v[2]),
          select(definite, A.yz, alpha * A.yz + k * v[1] * v[2])};
}

}  // namespace limber::material
