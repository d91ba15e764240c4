// The kernels of forward and backward sweeps; included after kernels_simd.hpp, in the same way.

// ---- many right-hand sides: they lie in the lanes ----

constexpr int kSides = kLanes == 8 ? 4 : 2;  // registers of right-hand sides at a time, at most
constexpr int kSweepRows = 4;                // rows or columns of L at a time

// R consecutive rows (forward) or columns (backward) of the front times V registers of right-hand sides.
template <int V>
struct Sides {
  Vec t[kSweepRows][V];

  void zero() {
    for (int r = 0; r < kSweepRows; ++r)
      for (int v = 0; v < V; ++v) t[r][v] = Vec{};
  }
  void read(const double* x, long ld) {
    for (int r = 0; r < kSweepRows; ++r)
      for (int v = 0; v < V; ++v) t[r][v] = load(x + r * ld + v * kLanes);
  }
  void write(double* x, long ld) const {
    for (int r = 0; r < kSweepRows; ++r)
      for (int v = 0; v < V; ++v) store(x + r * ld + v * kLanes, t[r][v]);
  }
  // t[r] -= sum over k of l[k * step + r * row_step] x[k]
  void subtract_product(const double* l, long step, long row_step, const double* x, long ld, long k) {
    for (long i = 0; i < k; ++i) {
      Vec y[V];
      for (int v = 0; v < V; ++v) y[v] = load(x + i * ld + v * kLanes);
      for (int r = 0; r < kSweepRows; ++r) {
        const double a = l[i * step + r * row_step];
        for (int v = 0; v < V; ++v) t[r][v] -= y[v] * a;
      }
    }
  }
};

// Columns go in blocks of kDepth, so that their right-hand sides stay in the cache while all rows below pass
// by.
template <int V>
void forward_sides(const ConstPanel& L, double* x, long ld) {
  const long pivot_strips = L.pivot_strips(), strips = L.strips();
  for (long c0 = 0; c0 < L.K; c0 += kDepth) {
    const long c1 = c0 + kDepth < L.K ? c0 + kDepth : L.K;
    for (long row = c0; row < c1; row += kSweepRows) {
      const double* l = L.strip(row / kStrip) + row % kStrip;
      Sides<V> t;
      t.read(x + row * ld, ld);
      t.subtract_product(l + kStrip * c0, kStrip, 1, x + c0 * ld, ld, row - c0);
      for (int c = 0; c < kSweepRows && row + c < c1; ++c) {
        const double* column = l + kStrip * (row + c);
        const double inverse = 1 / column[c];
        for (int v = 0; v < V; ++v) t.t[c][v] *= inverse;
        for (int r = c + 1; r < kSweepRows; ++r)
          for (int v = 0; v < V; ++v) t.t[r][v] -= t.t[c][v] * column[r];
      }
      t.write(x + row * ld, ld);
    }
    for (long s = (c1 + kStrip - 1) / kStrip; s < strips; ++s)
      for (int half = 0; half < kStrip; half += kSweepRows) {
        const long row = kStrip * s + half;
        Sides<V> t;
        if (c0 == 0 && s >= pivot_strips)
          t.zero();
        else
          t.read(x + row * ld, ld);
        t.subtract_product(L.strip(s) + half + kStrip * c0, kStrip, 1, x + c0 * ld, ld, c1 - c0);
        t.write(x + row * ld, ld);
      }
  }
}

// The columns [c0, c1) less the products with the rows of the strips [s0, s1), which lie below them.
template <int V>
void backward_block(const ConstPanel& L, long c0, long c1, long s0, long s1, double* x, long ld) {
  for (long c = c0; c < c1; c += kSweepRows) {
    const long width = c1 - c < kSweepRows ? c1 - c : kSweepRows;
    Sides<V> t;
    t.read(x + c * ld, ld);
    for (long s = s0; s < s1; ++s) {
      const double* l = L.strip(s) + kStrip * c;
      if (width == kSweepRows)
        t.subtract_product(l, 1, kStrip, x + kStrip * s * ld, ld, kStrip);
      else
        for (long i = 0; i < kStrip; ++i)
          for (int r = 0; r < width; ++r)
            for (int v = 0; v < V; ++v)
              t.t[r][v] -= load(x + (kStrip * s + i) * ld + v * kLanes) * l[kStrip * r + i];
    }
    t.write(x + c * ld, ld);
  }
}

template <int V>
void backward_sides(const ConstPanel& L, double* x, long ld) {
  constexpr long kDeep = kDepth / kStrip;
  const long pivot_strips = L.pivot_strips(), strips = L.strips();
  for (long s = pivot_strips; s < strips; s += kDeep)
    backward_block<V>(L, 0, L.K, s, s + kDeep < strips ? s + kDeep : strips, x, ld);
  for (long block = (L.K - 1) / kDepth * kDepth; block >= 0; block -= kDepth) {
    const long end = block + kDepth < L.K ? block + kDepth : L.K;
    for (long c = block + (end - 1 - block) / kStrip * kStrip; c >= block; c -= kStrip) {
      // The strip's own 8x8 block, then the columns of this block to its left.
      const double* l = L.strip(c / kStrip) + kStrip * c;
      const int width = static_cast<int>(end - c < kStrip ? end - c : kStrip);
      for (int r = width - 1; r >= 0; --r) {
        Vec t[V];
        for (int v = 0; v < V; ++v) t[v] = load(x + (c + r) * ld + v * kLanes);
        for (int i = r + 1; i < width; ++i)
          for (int v = 0; v < V; ++v) t[v] -= load(x + (c + i) * ld + v * kLanes) * l[kStrip * r + i];
        const double inverse = 1 / l[kStrip * r + r];
        for (int v = 0; v < V; ++v) store(x + (c + r) * ld + v * kLanes, t[v] * inverse);
      }
      if (c > block) backward_block<V>(L, block, c, c / kStrip, c / kStrip + 1, x, ld);
    }
    if (block > 0) backward_block<V>(L, 0, block, block / kStrip, (end + kStrip - 1) / kStrip, x, ld);
  }
}

void forward(const ConstPanel& L, int lanes, double* x) {
  int done = 0;
  for (; done + kSides * kLanes <= lanes; done += kSides * kLanes) forward_sides<kSides>(L, x + done, lanes);
  if constexpr (kSides == 4) {
    if (lanes - done == 3 * kLanes) forward_sides<3>(L, x + done, lanes);
    if (lanes - done == 2 * kLanes) forward_sides<2>(L, x + done, lanes);
    if (lanes - done == 1 * kLanes) forward_sides<1>(L, x + done, lanes);
  }
}

void backward(const ConstPanel& L, int lanes, double* x) {
  int done = 0;
  for (; done + kSides * kLanes <= lanes; done += kSides * kLanes) backward_sides<kSides>(L, x + done, lanes);
  if constexpr (kSides == 4) {
    if (lanes - done == 3 * kLanes) backward_sides<3>(L, x + done, lanes);
    if (lanes - done == 2 * kLanes) backward_sides<2>(L, x + done, lanes);
    if (lanes - done == 1 * kLanes) backward_sides<1>(L, x + done, lanes);
  }
}

// ---- one right-hand side: rows lie in the lanes ----

// y[8] -= the strip l times x over k columns
inline void subtract_strip(const double* l, const double* x, long k, double* y) {
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

void forward_pivots(const ConstPanel& L, long c0, long c1, double* x) {
  for (long g = c0; g < c1; g += kStrip) {
    const double* l = L.strip(g / kStrip);
    subtract_strip(l + kStrip * c0, x + c0, g - c0, x + g);
    double inverse[kStrip];
    const int w = static_cast<int>(c1 - g < kStrip ? c1 - g : kStrip);
    for (int c = 0; c < w; ++c) inverse[c] = 1 / l[kStrip * (g + c) + c];
    for (int c = 0; c < w; ++c) {
      const double* column = l + kStrip * (g + c);
      const double y = x[g + c] *= inverse[c];
      for (int r = c + 1; r < kStrip; ++r) x[g + r] -= column[r] * y;
    }
  }
}

void forward_rows(const ConstPanel& L, long c0, long c1, long s0, long s1, const double* x, double* y) {
  for (long s = s0; s < s1; ++s)
    subtract_strip(L.strip(s) + kStrip * c0, x + c0, c1 - c0, y + kStrip * (s - s0));
}

void backward_rows(const ConstPanel& L, long c0, long c1, long s0, long s1, const double* y, double* sums) {
  long s = s0;
  for (; s + 2 <= s1; s += 2) {
    const double *l0 = L.strip(s) + kStrip * c0, *l1 = L.strip(s + 1) + kStrip * c0;
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
    const double* l = L.strip(s) + kStrip * c0;
    const double* z = y + kStrip * (s - s0);
    for (long c = 0; c < kStrip * (c1 - c0); c += kStrip)
      for (int h = 0; h < kParts; ++h)
        store(sums + c + h * kLanes,
              load(sums + c + h * kLanes) + load(l + c + h * kLanes) * load(z + h * kLanes));
  }
}

void backward_pivots(const ConstPanel& L, long c0, long c1, double* x, double* sums) {
  for (long g = (c1 - 1) / kStrip * kStrip; g >= c0; g -= kStrip) {
    const double* l = L.strip(g / kStrip);
    const int w = static_cast<int>(c1 - g < kStrip ? c1 - g : kStrip);
    double inverse[kStrip];
    for (int c = 0; c < w; ++c) inverse[c] = 1 / l[kStrip * (g + c) + c];
    for (int c = w - 1; c >= 0; --c) {
      const double* t = sums + kStrip * (g + c - c0);
      double y = x[g + c] - (((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7])));
      const double* column = l + kStrip * (g + c);
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
