// The kernels of forward and backward sweeps over panels of doubles and floats; included by
// kernels_table.hpp.

#if defined(__AVX512F__)
constexpr int kLanes = 8;
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int kLanes = 4;
#else
constexpr int kLanes = 2;
#endif
constexpr int kParts = kStrip / kLanes;  // registers per column of a strip
constexpr long kDepth = 256;             // columns per pass: their right-hand sides stay in the cache

typedef double Vec __attribute__((vector_size(kLanes * 8), aligned(8), may_alias));
typedef float RoundedVec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline Vec load(const double* p) { return *reinterpret_cast<const Vec*>(p); }
// By the instruction itself: what the compiler makes of __builtin_convertvector goes through memory.
inline Vec load(const float* p) {
#if defined(__AVX512F__)
  return _mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined(__AVX2__) && defined(__FMA__)
  return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
  return __builtin_convertvector(*reinterpret_cast<const RoundedVec*>(p), Vec);
#endif
}
inline void store(double* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }

// Keeps a value in its register: without it the compiler folds one load into each of its uses.
inline void pin(Vec& v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#elif defined(__x86_64__)
  asm("" : "+x"(v));
#endif
}

// ---- many right-hand sides: they lie in the lanes ----

constexpr int kSides = kLanes == 8 ? 4 : 2;  // registers of right-hand sides at a time, at most
constexpr int kGroup = 4;                    // rows or columns of L at a time
constexpr long kPassStrips = 4;  // strips of rows below that pass by all columns of a backward sweep

// Rows or columns of the front times V registers of right-hand sides.
template <int V>
struct Sides {
  Vec t[kGroup][V];

  void zero() {
    for (int r = 0; r < kGroup; ++r)
      for (int v = 0; v < V; ++v) t[r][v] = Vec{};
  }
  void read(const double* x, long ld, long count) {
    for (int r = 0; r < kGroup; ++r)
      for (int v = 0; v < V; ++v) t[r][v] = r < count ? load(x + r * ld + v * kLanes) : Vec{};
  }
  void write(double* x, long ld, long count) const {
    for (int r = 0; r < kGroup; ++r)
      if (r < count)
        for (int v = 0; v < V; ++v) store(x + r * ld + v * kLanes, t[r][v]);
  }
  // t[r] -= sum over k of l[k * step + r * row_step] x[k]
  template <class Real>
  void subtract_product(const Real* l, long step, long row_step, const double* x, long ld, long k) {
    for (long i = 0; i < k; ++i) {
      Vec y[V];
      for (int v = 0; v < V; ++v) {
        y[v] = load(x + i * ld + v * kLanes);
        pin(y[v]);
      }
      for (int r = 0; r < kGroup; ++r) {
        const double a = l[i * step + r * row_step];
        for (int v = 0; v < V; ++v) t[r][v] -= y[v] * a;
      }
    }
  }
};

// Columns go in blocks of kDepth, so that their right-hand sides stay in the cache while all rows below pass
// by.
template <int V, class P>
void forward_sides(const P& L, long ld, double* x1, double* x, const long* below) {
  const long pivot_strips = L.pivot_strips();
  for (long c0 = 0; c0 < L.K; c0 += kDepth) {
    const long c1 = c0 + kDepth < L.K ? c0 + kDepth : L.K;
    for (long row = c0; row < c1; row += kGroup) {
      const auto* l = L.strip(row / kStrip) + row % kStrip;
      Sides<V> t;
      t.read(x1 + row * ld, ld, c1 - row);
      t.subtract_product(l + kStrip * c0, kStrip, 1, x1 + c0 * ld, ld, row - c0);
      for (int c = 0; c < kGroup && row + c < c1; ++c) {
        const auto* column = l + kStrip * (row + c);
        const double inverse = 1.0 / column[c];
        for (int v = 0; v < V; ++v) t.t[c][v] *= inverse;
        for (int r = c + 1; r < kGroup; ++r)
          for (int v = 0; v < V; ++v) t.t[r][v] -= t.t[c][v] * column[r];
      }
      t.write(x1 + row * ld, ld, c1 - row);
    }
    for (long row = round_up(c1); row < L.K; row += kGroup) {
      Sides<V> t;
      t.read(x1 + row * ld, ld, L.K - row);
      t.subtract_product(L.strip(row / kStrip) + row % kStrip + kStrip * c0, kStrip, 1, x1 + c0 * ld, ld,
                         c1 - c0);
      t.write(x1 + row * ld, ld, L.K - row);
    }
    for (long row = 0; row < L.M; row += kGroup) {
      const auto* l = L.strip(pivot_strips + row / kStrip) + row % kStrip;
      Sides<V> t;
      t.zero();
      t.subtract_product(l + kStrip * c0, kStrip, 1, x1 + c0 * ld, ld, c1 - c0);
      for (int r = 0; r < kGroup; ++r)
        if (row + r < L.M) {
          double* to = x + below[row + r];
          for (int v = 0; v < V; ++v) store(to + v * kLanes, load(to + v * kLanes) + t.t[r][v]);
        }
    }
  }
}

// kGroup columns of a strip as doubles. Floats are widened together: each by itself, where it is used, takes
// two instructions.
inline const double* widened(const double* l, double*) { return l; }
inline const double* widened(const float* l, double* wide) {
  for (int i = 0; i < kGroup * kStrip; i += kLanes) store(wide + i, load(l + i));
  return wide;
}

// The columns [c0, c1) less the products with `rows` rows y from strip s on, which lie below them.
template <int V, class P>
inline void backward_pass(const P& L, long c0, long c1, long s, long rows, const double* y, long ldy,
                          double* x1, long ld) {
  double wide[kGroup * kStrip] __attribute__((aligned(64)));
  for (long c = c0; c < c1; c += kGroup) {
    const long width = c1 - c < kGroup ? c1 - c : kGroup;
    Sides<V> t;
    t.read(x1 + c * ld, ld, width);
    for (long r = 0; r < rows; r += kStrip) {
      const auto* l = L.strip(s + r / kStrip) + kStrip * c;
      const long count = rows - r < kStrip ? rows - r : kStrip;
      // The next columns of this strip, which the hardware does not guess.
      const auto* next = l + (c + kGroup < c1 ? kStrip * kGroup : 0);
      for (int i = 0; i < kGroup; ++i) __builtin_prefetch(next + kStrip * i);
      if (width == kGroup)
        t.subtract_product(widened(l, wide), 1, kStrip, y + r * ldy, ldy, count);
      else
        for (long i = 0; i < count; ++i)
          for (int j = 0; j < width; ++j)
            for (int v = 0; v < V; ++v) t.t[j][v] -= load(y + (r + i) * ldy + v * kLanes) * l[kStrip * j + i];
    }
    t.write(x1 + c * ld, ld, width);
  }
}

template <int V, class P>
void backward_sides(const P& L, long ld, double* x1, const double* x, const long* below) {
  constexpr long kPass = kPassStrips * kStrip;
  double y[kPass * V * kLanes] __attribute__((aligned(64)));
  const long pivot_strips = L.pivot_strips();
  for (long row = 0; row < L.M; row += kPass) {
    const long rows = row + kPass < L.M ? kPass : L.M - row;
    for (long r = 0; r < rows; ++r)
      for (int v = 0; v < V; ++v) store(y + (r * V + v) * kLanes, load(x + below[row + r] + v * kLanes));
    backward_pass<V>(L, 0, L.K, pivot_strips + row / kStrip, rows, y, V * kLanes, x1, ld);
  }
  for (long block = (L.K - 1) / kDepth * kDepth; block >= 0; block -= kDepth) {
    const long end = block + kDepth < L.K ? block + kDepth : L.K;
    for (long c = block + (end - 1 - block) / kStrip * kStrip; c >= block; c -= kStrip) {
      // The strip's own 8x8 block, then the columns of this block to its left.
      const auto* l = L.strip(c / kStrip) + kStrip * c;
      const int width = static_cast<int>(end - c < kStrip ? end - c : kStrip);
      for (int r = width - 1; r >= 0; --r) {
        Vec t[V];
        for (int v = 0; v < V; ++v) t[v] = load(x1 + (c + r) * ld + v * kLanes);
        for (int i = r + 1; i < width; ++i)
          for (int v = 0; v < V; ++v) t[v] -= load(x1 + (c + i) * ld + v * kLanes) * l[kStrip * r + i];
        const double inverse = 1.0 / l[kStrip * r + r];
        for (int v = 0; v < V; ++v) store(x1 + (c + r) * ld + v * kLanes, t[v] * inverse);
      }
      if (c > block) backward_pass<V>(L, block, c, c / kStrip, width, x1 + c * ld, ld, x1, ld);
    }
    for (long row = block; block > 0 && row < end; row += kPass)
      backward_pass<V>(L, 0, block, row / kStrip, row + kPass < end ? kPass : end - row, x1 + row * ld, ld,
                       x1, ld);
  }
}

// `sides(V)`, V registers at a time, until all lanes are done.
template <class Sweep>
inline void in_registers(int lanes, const Sweep& sides) {
  for (int done = 0; done < lanes;) {
    const int left = (lanes - done) / kLanes, v = left == 3 ? 3 : left < kSides ? left : kSides;
    sides(v, done);
    done += v * kLanes;
  }
}

template <class P>
void forward(const P& L, int lanes, long ld, double* x1, double* x, const long* below) {
  in_registers(lanes, [&](int v, int lane) {
    if (v == 1) forward_sides<1>(L, ld, x1 + lane, x + lane, below);
    if (v == 2) forward_sides<2>(L, ld, x1 + lane, x + lane, below);
    if (v == 3) forward_sides<3>(L, ld, x1 + lane, x + lane, below);
    if constexpr (kSides == 4)
      if (v == 4) forward_sides<4>(L, ld, x1 + lane, x + lane, below);
  });
}

template <class P>
void backward(const P& L, int lanes, long ld, double* x1, const double* x, const long* below) {
  in_registers(lanes, [&](int v, int lane) {
    if (v == 1) backward_sides<1>(L, ld, x1 + lane, x + lane, below);
    if (v == 2) backward_sides<2>(L, ld, x1 + lane, x + lane, below);
    if (v == 3) backward_sides<3>(L, ld, x1 + lane, x + lane, below);
    if constexpr (kSides == 4)
      if (v == 4) backward_sides<4>(L, ld, x1 + lane, x + lane, below);
  });
}

// ---- one right-hand side: rows lie in the lanes ----

// y[8] -= the strip l times x over k columns
template <class Value>
inline void subtract_strip(const Value* l, const double* x, long k, double* y) {
  Vec t[4][kParts];
  for (int i = 0; i < 4; ++i)
    for (int h = 0; h < kParts; ++h) t[i][h] = Vec{};
  long j = 0;
  for (; j + 4 <= k; j += 4)
    for (int i = 0; i < 4; ++i)
      for (int h = 0; h < kParts; ++h) t[i][h] += load(l + kStrip * (j + i) + h * kLanes) * x[j + i];
  for (; j < k; ++j)
    for (int h = 0; h < kParts; ++h) t[0][h] += load(l + kStrip * j + h * kLanes) * x[j];
  for (int h = 0; h < kParts; ++h)
    store(y + h * kLanes, load(y + h * kLanes) - ((t[0][h] + t[1][h]) + (t[2][h] + t[3][h])));
}

template <class P>
void forward_pivots(const P& L, long c0, long c1, double* x) {
  for (long g = c0; g < c1; g += kStrip) {
    const auto* l = L.strip(g / kStrip);
    subtract_strip(l + kStrip * c0, x + c0, g - c0, x + g);
    double inverse[kStrip];
    const int w = static_cast<int>(c1 - g < kStrip ? c1 - g : kStrip);
    for (int c = 0; c < w; ++c) inverse[c] = 1.0 / l[kStrip * (g + c) + c];
    for (int c = 0; c < w; ++c) {
      const auto* column = l + kStrip * (g + c);
      const double y = x[g + c] *= inverse[c];
      for (int r = c + 1; r < kStrip; ++r) x[g + r] -= column[r] * y;
    }
  }
}

template <class P>
void forward_rows(const P& L, long c0, long c1, long s0, long s1, const double* x, double* y) {
  for (long s = s0; s < s1; ++s)
    subtract_strip(L.strip(s) + kStrip * c0, x + c0, c1 - c0, y + kStrip * (s - s0));
}

template <class P>
void backward_rows(const P& L, long c0, long c1, long s0, long s1, const double* y, double* sums) {
  long s = s0;
  for (; s + 2 <= s1; s += 2) {
    const auto *l0 = L.strip(s) + kStrip * c0, *l1 = L.strip(s + 1) + kStrip * c0;
    const double* z = y + kStrip * (s - s0);
    Vec y0[kParts], y1[kParts];
    for (int h = 0; h < kParts; ++h) {
      y0[h] = load(z + h * kLanes);
      y1[h] = load(z + kStrip + h * kLanes);
    }
    for (long c = 0; c < kStrip * (c1 - c0); c += kStrip)
      for (int h = 0; h < kParts; ++h)
        store(sums + c + h * kLanes, load(sums + c + h * kLanes) + load(l0 + c + h * kLanes) * y0[h] +
                                         load(l1 + c + h * kLanes) * y1[h]);
  }
  for (; s < s1; ++s) {
    const auto* l = L.strip(s) + kStrip * c0;
    const double* z = y + kStrip * (s - s0);
    for (long c = 0; c < kStrip * (c1 - c0); c += kStrip)
      for (int h = 0; h < kParts; ++h)
        store(sums + c + h * kLanes,
              load(sums + c + h * kLanes) + load(l + c + h * kLanes) * load(z + h * kLanes));
  }
}

template <class P>
void backward_pivots(const P& L, long c0, long c1, double* x, double* sums) {
  for (long g = (c1 - 1) / kStrip * kStrip; g >= c0; g -= kStrip) {
    const auto* l = L.strip(g / kStrip);
    const int w = static_cast<int>(c1 - g < kStrip ? c1 - g : kStrip);
    double inverse[kStrip];
    for (int c = 0; c < w; ++c) inverse[c] = 1.0 / l[kStrip * (g + c) + c];
    for (int c = w - 1; c >= 0; --c) {
      const double* t = sums + kStrip * (g + c - c0);
      double y = x[g + c] - (((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7])));
      const auto* column = l + kStrip * (g + c);
      for (int r = w - 1; r > c; --r) y -= column[r] * x[g + r];
      x[g + c] = y * inverse[c];
    }
    if (g > c0) {
      double z[kStrip] = {};
      for (int r = 0; r < w; ++r) z[r] = x[g + r];
      backward_rows(L, c0, g, g / kStrip, g / kStrip + 1, z, sums);
    }
  }
}

template <class P>
constexpr SweepKernels<P> sweep_kernels() {
  return {forward<P>, backward<P>, forward_pivots<P>, forward_rows<P>, backward_rows<P>, backward_pivots<P>};
}
