// A number with its first and second derivatives in three variables: forward automatic differentiation.
#pragma once

#include <cmath>

namespace limber::material {

struct Dual {
  double v = 0;
  double g[3] = {0, 0, 0};
  double h[6] = {0, 0, 0, 0, 0, 0};  // 11 22 33 12 13 23

  Dual() = default;
  Dual(double value) : v(value) {}  // implicit: constants in formulas (NOLINT)
  static Dual variable(double value, int k) {
    Dual out(value);
    out.g[k] = 1;
    return out;
  }
};

inline constexpr int kDualPair[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};

// f(a) from f, f' and f'' at a.
inline Dual chain(const Dual& a, double f, double df, double ddf) {
  Dual out(f);
  for (int i = 0; i < 3; ++i) out.g[i] = df * a.g[i];
  for (int k = 0; k < 6; ++k) out.h[k] = df * a.h[k] + ddf * a.g[kDualPair[k][0]] * a.g[kDualPair[k][1]];
  return out;
}

inline Dual operator+(Dual a, const Dual& b) {
  a.v += b.v;
  for (int i = 0; i < 3; ++i) a.g[i] += b.g[i];
  for (int k = 0; k < 6; ++k) a.h[k] += b.h[k];
  return a;
}
inline Dual operator-(Dual a, const Dual& b) {
  a.v -= b.v;
  for (int i = 0; i < 3; ++i) a.g[i] -= b.g[i];
  for (int k = 0; k < 6; ++k) a.h[k] -= b.h[k];
  return a;
}
inline Dual operator-(const Dual& a) { return Dual(0) - a; }
inline Dual operator*(const Dual& a, const Dual& b) {
  Dual out(a.v * b.v);
  for (int i = 0; i < 3; ++i) out.g[i] = a.g[i] * b.v + a.v * b.g[i];
  for (int k = 0; k < 6; ++k) {
    const int i = kDualPair[k][0], j = kDualPair[k][1];
    out.h[k] = a.h[k] * b.v + a.v * b.h[k] + a.g[i] * b.g[j] + a.g[j] * b.g[i];
  }
  return out;
}
inline Dual operator/(const Dual& a, const Dual& b) {
  const double r = 1 / b.v;
  return a * chain(b, r, -r * r, 2 * r * r * r);
}
inline Dual log(const Dual& a) { return chain(a, std::log(a.v), 1 / a.v, -1 / (a.v * a.v)); }
inline Dual exp(const Dual& a) {
  const double e = std::exp(a.v);
  return chain(a, e, e, e);
}
inline Dual sqrt(const Dual& a) {
  const double s = std::sqrt(a.v);
  return chain(a, s, 0.5 / s, -0.25 / (s * a.v));
}
inline Dual pow(const Dual& a, double n) {
  // Where a factor is zero the power beside it may not be finite.
  const double df = n == 0 ? 0 : n * std::pow(a.v, n - 1),
               ddf = n == 0 || n == 1 ? 0 : n * (n - 1) * std::pow(a.v, n - 2);
  return chain(a, std::pow(a.v, n), df, ddf);
}
inline Dual pow(const Dual& a, const Dual& b) {
  for (int i = 0; i < 3; ++i)
    if (b.g[i] != 0) return exp(b * log(a));
  return pow(a, b.v);
}

}  // namespace limber::material
