// 3-vectors and 3x3 matrices over a scalar type T that may be a Pack (Eigen is not made for that).
#pragma once

#include <limber/core/types.hpp>
#include <limber/material/pack.hpp>

namespace limber::material {

using limber::select;
using limber::vfma;

template <class T>
struct V3 {
  T a[3];
  T& operator[](int i) { return a[i]; }
  const T& operator[](int i) const { return a[i]; }
};

// Column-major, like Eigen's.
template <class T>
struct M3 {
  T a[9];
  T& operator()(int i, int j) { return a[i + 3 * j]; }
  const T& operator()(int i, int j) const { return a[i + 3 * j]; }
};

template <class T>
struct Sym3 {
  T xx, yy, zz, xy, xz, yz;
};

template <class T>
T dot(const V3<T>& a, const V3<T>& b) {
  return vfma(a[2], b[2], vfma(a[1], b[1], a[0] * b[0]));
}

template <class T>
V3<T> cross(const V3<T>& a, const V3<T>& b) {
  return {
      {vfma(a[1], b[2], -(a[2] * b[1])), vfma(a[2], b[0], -(a[0] * b[2])), vfma(a[0], b[1], -(a[1] * b[0]))}};
}

template <class T>
V3<T> scaled(const V3<T>& a, T s) {
  return {{a[0] * s, a[1] * s, a[2] * s}};
}

template <class M, class T>
V3<T> select(M m, const V3<T>& a, const V3<T>& b) {
  return {{select(m, a[0], b[0]), select(m, a[1], b[1]), select(m, a[2], b[2])}};
}

template <class T>
V3<T> column(const M3<T>& A, int j) {
  return {{A(0, j), A(1, j), A(2, j)}};
}

template <class T>
void set_column(M3<T>& A, int j, const V3<T>& v) {
  for (int i = 0; i < 3; ++i) A(i, j) = v[i];
}

template <class T>
V3<T> operator*(const M3<T>& A, const V3<T>& v) {
  V3<T> r;
  for (int i = 0; i < 3; ++i) r[i] = vfma(A(i, 2), v[2], vfma(A(i, 1), v[1], A(i, 0) * v[0]));
  return r;
}

template <class T>
V3<T> transposed_times(const M3<T>& A, const V3<T>& v) {
  return {{dot(column(A, 0), v), dot(column(A, 1), v), dot(column(A, 2), v)}};
}

template <class T>
M3<T> operator*(const M3<T>& A, const M3<T>& B) {
  M3<T> C;
  for (int j = 0; j < 3; ++j) set_column(C, j, A * column(B, j));
  return C;
}

// A diag(d) B^T
template <class T>
M3<T> times_diagonal_transposed(const M3<T>& A, const V3<T>& d, const M3<T>& B) {
  M3<T> C;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i)
      C(i, j) = vfma(A(i, 2) * d[2], B(j, 2), vfma(A(i, 1) * d[1], B(j, 1), A(i, 0) * d[0] * B(j, 0)));
  return C;
}

template <class T>
T squared_norm(const M3<T>& A) {
  T s = A.a[0] * A.a[0];
  for (int i = 1; i < 9; ++i) s = vfma(A.a[i], A.a[i], s);
  return s;
}

// d(det A)/dA, and with it det A = dot(column 0, cofactor column 0).
template <class T>
M3<T> cofactor(const M3<T>& A) {
  M3<T> C;
  set_column(C, 0, cross(column(A, 1), column(A, 2)));
  set_column(C, 1, cross(column(A, 2), column(A, 0)));
  set_column(C, 2, cross(column(A, 0), column(A, 1)));
  return C;
}

template <class T>
T determinant(const M3<T>& A) {
  return dot(column(A, 0), cross(column(A, 1), column(A, 2)));
}

inline M3<double> from_eigen(const Mat3& A) {
  M3<double> B;
  for (int i = 0; i < 9; ++i) B.a[i] = A.data()[i];
  return B;
}

inline Mat3 to_eigen(const M3<double>& A) { return Mat3(A.a); }

}  // namespace limber::material
