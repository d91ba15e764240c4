// Several doubles that go through the same arithmetic together: one element per lane. Code that is templated
// on its scalar type T runs on `double` (tests, single elements) and on `Pack` (assembly) alike; for both
// there are vsqrt, vfma, vabs, vmin, vmax, vexp, vlog, select and any.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

// Files are compiled for different instruction sets, and the linker keeps one copy of what several of them
// define: so the packs of each have a namespace of their own, and what is not about packs is always inlined.
#if defined(__AVX512F__)
#define LIMBER_PACK_NAMESPACE pack_avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define LIMBER_PACK_NAMESPACE pack_avx2
#else
#define LIMBER_PACK_NAMESPACE pack_base
#endif
#define LIMBER_SCALAR __attribute__((always_inline)) inline

namespace limber {

LIMBER_SCALAR double select(bool m, double a, double b) { return m ? a : b; }
LIMBER_SCALAR bool any(bool m) { return m; }
LIMBER_SCALAR double vsqrt(double a) { return std::sqrt(a); }
LIMBER_SCALAR double vabs(double a) { return std::abs(a); }
LIMBER_SCALAR double vexp(double a) { return std::exp(a); }
LIMBER_SCALAR double vlog(double a) { return std::log(a); }
LIMBER_SCALAR double vfma(double a, double b, double c) { return a * b + c; }

// NaN in `a` gives `b`.
template <class T>
LIMBER_SCALAR T vmin(T a, T b) {
  return select(a < b, a, b);
}
template <class T>
LIMBER_SCALAR T vmax(T a, T b) {
  return select(a > b, a, b);
}

// Lanes one by one, for what cannot be done to all at once.
LIMBER_SCALAR int lanes_of(double) { return 1; }
LIMBER_SCALAR double lane_of(double a, int) { return a; }
LIMBER_SCALAR void set_lane(double& a, int, double value) { a = value; }

inline namespace LIMBER_PACK_NAMESPACE {

#if defined(__AVX512F__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;  // two SSE registers on plain x86-64
#endif

struct Mask {
  typedef std::int64_t V __attribute__((vector_size(8 * kLanes)));
  V v;

  Mask operator&(Mask b) const { return {v & b.v}; }
  Mask operator|(Mask b) const { return {v | b.v}; }
  Mask operator!() const { return {~v}; }
  bool operator[](int lane) const { return v[lane] != 0; }
};

struct Pack {
  typedef double V __attribute__((vector_size(8 * kLanes)));
  V v;

  Pack() = default;
  Pack(double a) : v(a - V{}) {}  // implicit: constants in formulas broadcast (NOLINT)
  explicit Pack(V a) : v(a) {}

  static Pack load(const double* p) {
    Pack a;
    __builtin_memcpy(&a.v, p, sizeof(V));
    return a;
  }
  void store(double* p) const { __builtin_memcpy(p, &v, sizeof(V)); }
  double operator[](int lane) const { return v[lane]; }
  void set(int lane, double a) { v[lane] = a; }

  friend Pack operator+(Pack a, Pack b) { return Pack(a.v + b.v); }
  friend Pack operator-(Pack a, Pack b) { return Pack(a.v - b.v); }
  friend Pack operator*(Pack a, Pack b) { return Pack(a.v * b.v); }
  friend Pack operator/(Pack a, Pack b) { return Pack(a.v / b.v); }
  friend Pack operator-(Pack a) { return Pack(-a.v); }
  Pack& operator+=(Pack b) { return *this = *this + b; }
  Pack& operator-=(Pack b) { return *this = *this - b; }
  Pack& operator*=(Pack b) { return *this = *this * b; }
  friend Mask operator<(Pack a, Pack b) { return {a.v < b.v}; }
  friend Mask operator>(Pack a, Pack b) { return {a.v > b.v}; }
  friend Mask operator<=(Pack a, Pack b) { return {a.v <= b.v}; }
  friend Mask operator>=(Pack a, Pack b) { return {a.v >= b.v}; }
  friend Mask operator==(Pack a, Pack b) { return {a.v == b.v}; }
};

inline Pack select(Mask m, Pack a, Pack b) { return Pack(m.v ? a.v : b.v); }

inline bool any(Mask m) {
  std::int64_t all = 0;
  for (int i = 0; i < kLanes; ++i) all |= m.v[i];
  return all != 0;
}

inline Pack vsqrt(Pack a) {
#if defined(__AVX512F__)
  // The masked form: g++ 12 warns of its own plain one.
  return Pack(static_cast<Pack::V>(_mm512_maskz_sqrt_pd(0xff, static_cast<__m512d>(a.v))));
#elif defined(__AVX__)
  return Pack(static_cast<Pack::V>(_mm256_sqrt_pd(static_cast<__m256d>(a.v))));
#elif defined(__SSE2__)
  double t[kLanes];
  a.store(t);
  for (int i = 0; i < kLanes; i += 2) _mm_storeu_pd(t + i, _mm_sqrt_pd(_mm_loadu_pd(t + i)));
  return Pack::load(t);
#else
  for (int i = 0; i < kLanes; ++i) a.set(i, std::sqrt(a[i]));
  return a;
#endif
}

// a * b + c, rounded once where the instruction set can. Written out where it pays: left to the compiler
// (-ffp-contract), which of the two products in a * b + c * d is fused would depend on the instruction set.
inline Pack vfma(Pack a, Pack b, Pack c) {
#if defined(__AVX512F__)
  return Pack(static_cast<Pack::V>(
      _mm512_fmadd_pd(static_cast<__m512d>(a.v), static_cast<__m512d>(b.v), static_cast<__m512d>(c.v))));
#elif defined(__AVX2__) && defined(__FMA__)
  return Pack(static_cast<Pack::V>(
      _mm256_fmadd_pd(static_cast<__m256d>(a.v), static_cast<__m256d>(b.v), static_cast<__m256d>(c.v))));
#else
  return a * b + c;
#endif
}

inline Pack vabs(Pack a) {
  return Pack((Pack::V)((Mask::V)a.v & (Mask::V{} + std::numeric_limits<std::int64_t>::max())));
}

// Lane i of p[j] becomes lane j of p[i].
inline void transpose(Pack p[kLanes]) {
  const auto exchange = [](Pack& a, Pack& b, auto low, auto high) {
    const Pack::V l = low(a.v, b.v), h = high(a.v, b.v);
    a.v = l;
    b.v = h;
  };
#if defined(__AVX512F__)
  for (int i = 0; i < 8; i += 2)
    exchange(
        p[i], p[i + 1],
        [](auto a, auto b) { return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14); },
        [](auto a, auto b) { return __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15); });
  for (int i : {0, 1, 4, 5})
    exchange(
        p[i], p[i + 2],
        [](auto a, auto b) { return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13); },
        [](auto a, auto b) { return __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15); });
  for (int i = 0; i < 4; ++i)
    exchange(
        p[i], p[i + 4],
        [](auto a, auto b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11); },
        [](auto a, auto b) { return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15); });
#else
  for (int i = 0; i < 4; i += 2)
    exchange(
        p[i], p[i + 1], [](auto a, auto b) { return __builtin_shufflevector(a, b, 0, 4, 2, 6); },
        [](auto a, auto b) { return __builtin_shufflevector(a, b, 1, 5, 3, 7); });
  for (int i = 0; i < 2; ++i)
    exchange(
        p[i], p[i + 2], [](auto a, auto b) { return __builtin_shufflevector(a, b, 0, 1, 4, 5); },
        [](auto a, auto b) { return __builtin_shufflevector(a, b, 2, 3, 6, 7); });
#endif
}

inline int lanes_of(const Pack&) { return kLanes; }
inline double lane_of(const Pack& a, int lane) { return a[lane]; }
inline void set_lane(Pack& a, int lane, double value) { a.set(lane, value); }

inline Pack vexp(Pack a) {
  for (int i = 0; i < kLanes; ++i) a.set(i, std::exp(a[i]));
  return a;
}
inline Pack vlog(Pack a) {
  for (int i = 0; i < kLanes; ++i) a.set(i, std::log(a[i]));
  return a;
}

}  // namespace LIMBER_PACK_NAMESPACE
}  // namespace limber
