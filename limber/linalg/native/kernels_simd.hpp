// The kernels, for the instruction set that the including file is compiled for. Each kernels_*.cpp includes
// this inside a namespace of its own. Nothing of the standard library is used here, so that no shared inline
// function gets compiled for instructions that the machine may lack.

#if defined(__AVX512F__)
constexpr int kLanes = 8, kRows = 3, kCols = 8;  // a tile: 3 strips x 8 columns, 24 of 32 registers
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int kLanes = 4, kRows = 1, kCols = 4;  // 8 of 16 registers
#else
constexpr int kLanes = 2, kRows = 1, kCols = 2;  // 8 of 16 registers
#endif
constexpr int kParts = kStrip / kLanes;  // registers per column of a strip
constexpr long kDepth = 256;             // columns per pass of a product: a strip of it stays in the L1 cache
constexpr long kHeight = 24;             // strips per pass: with kDepth columns they stay in the L2 cache

typedef double Vec __attribute__((vector_size(kLanes * 8), aligned(8), may_alias));

inline Vec load(const double* p) { return *reinterpret_cast<const Vec*>(p); }
inline void store(double* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }

// S strips by C columns in registers.
template <int S, int C>
struct Tile {
  Vec t[S][C][kParts];

  void zero() {
    for (int s = 0; s < S; ++s)
      for (int c = 0; c < C; ++c)
        for (int h = 0; h < kParts; ++h) t[s][c][h] = Vec{};
  }
  void read(const double* x, long ld) {
    for (int s = 0; s < S; ++s)
      for (int c = 0; c < C; ++c)
        for (int h = 0; h < kParts; ++h) t[s][c][h] = load(x + kStrip * s + h * kLanes + c * ld);
  }
  void write(double* x, long ld) const {
    for (int s = 0; s < S; ++s)
      for (int c = 0; c < C; ++c)
        for (int h = 0; h < kParts; ++h) store(x + kStrip * s + h * kLanes + c * ld, t[s][c][h]);
  }
  // t -= A B^T: a[s] the strips of A, b the C rows of B inside their strip.
  void subtract_product(const double* const (&strips)[S], const double* __restrict b, long k) {
    const double* a[S];
    for (int s = 0; s < S; ++s) a[s] = strips[s];
    for (long i = 0; i < k; ++i) {
      Vec x[S][kParts];
      for (int s = 0; s < S; ++s)
        for (int h = 0; h < kParts; ++h) x[s][h] = load(a[s] + kStrip * i + h * kLanes);
      for (int c = 0; c < C; ++c) {
        const double y = b[kStrip * i + c];
        for (int s = 0; s < S; ++s)
          for (int h = 0; h < kParts; ++h) t[s][c][h] -= x[s][h] * y;
      }
    }
  }
};

template <int S, bool kAdd>
inline void multiply_tiles(const ConstPanel& L, long a, const double* b, long k0, long k1, double* C,
                           long ld) {
  const double* strips[S];
  for (int s = 0; s < S; ++s) strips[s] = L.strip(a + s) + kStrip * k0;
  for (int c = 0; c < kStrip; c += kCols) {
    Tile<S, kCols> tile;
    if (kAdd)
      tile.read(C + c * ld, ld);
    else
      tile.zero();
    tile.subtract_product(strips, b + kStrip * k0 + c, k1 - k0);
    tile.write(C + c * ld, ld);
  }
}

template <bool kAdd>
inline void multiply_pass(const ConstPanel& L, long a0, long a1, long b0, long b1, long k0, long k1,
                          bool lower, double* C, long ld) {
  for (long block = a0; block < a1; block += kHeight) {
    const long end = block + kHeight < a1 ? block + kHeight : a1;
    for (long j = b0; j < b1 && !(lower && j >= end); ++j) {
      const double* b = L.strip(j);
      double* column = C + kStrip * (j - b0) * ld;
      long i = lower && j > block ? j : block;
      for (; i + kRows <= end; i += kRows)
        multiply_tiles<kRows, kAdd>(L, i, b, k0, k1, column + kStrip * (i - a0), ld);
      if constexpr (kRows == 3)
        if (i + 2 <= end) {
          multiply_tiles<2, kAdd>(L, i, b, k0, k1, column + kStrip * (i - a0), ld);
          i += 2;
        }
      for (; i < end; ++i) multiply_tiles<1, kAdd>(L, i, b, k0, k1, column + kStrip * (i - a0), ld);
    }
  }
}

void multiply(const ConstPanel& L, long a0, long a1, long b0, long b1, long k0, long k1, bool lower, bool add,
              double* C, long ld) {
  for (long k = k0; k < k1 || !add; k += kDepth, add = true) {
    const long end = k + kDepth < k1 ? k + kDepth : k1;
    if (add)
      multiply_pass<true>(L, a0, a1, b0, b1, k, end, lower, C, ld);
    else
      multiply_pass<false>(L, a0, a1, b0, b1, k, end, lower, C, ld);
  }
}

// x, 8x8 column-major, becomes the factor of its lower triangle, with zeros above; columns from w on become
// those of the unit matrix. `inverse` gets the inverse of the diagonal. False, with `bad`, for a bad pivot.
inline bool factor_8x8(double* __restrict x, double* __restrict inverse, int w, const double* floor,
                       BadPivot* bad) {
  for (int c = 0; c < kStrip; ++c) {
    if (c >= w) {
      for (int r = 0; r < kStrip; ++r) x[kStrip * c + r] = r == c ? 1.0 : 0.0;
      inverse[c] = 1;
      continue;
    }
    const double d = x[kStrip * c + c];
    if (!(d > floor[c] && d <= 1.7e308)) {
      bad->column = c;
      bad->value = d;
      return false;
    }
    const double l = __builtin_sqrt(d), inv = 1 / l;
    inverse[c] = inv;
    Vec column[kParts];
    for (int h = 0; h < kParts; ++h) {
      column[h] = load(x + kStrip * c + h * kLanes) * inv;
      store(x + kStrip * c + h * kLanes, column[h]);
    }
    for (int j = c + 1; j < w; ++j) {
      const double y = x[kStrip * c + j];
      for (int h = 0; h < kParts; ++h)
        store(x + kStrip * j + h * kLanes, load(x + kStrip * j + h * kLanes) - column[h] * y);
    }
    x[kStrip * c + c] = l;
    for (int r = 0; r < c; ++r) x[kStrip * c + r] = 0;
  }
  return true;
}

// The columns [g, g + kCols) of S strips from strip `a` on: X less the products with the columns [c0, g),
// times the inverse transpose of the diagonal block. `pivots`: the strip of the pivot rows, moved to the row
// of g.
template <int S>
inline void solve_tile(const Panel& L, long a, const double* pivots, const double* inverse, long c0, long g,
                       int w, const double* X, long ld) {
  Tile<S, kCols> tile;
  const double* strips[S];
  for (int s = 0; s < S; ++s) strips[s] = L.strip(a + s) + kStrip * c0;
  if (w >= kCols) {
    tile.read(X, ld);
  } else {
    tile.zero();
    for (int s = 0; s < S; ++s)
      for (int c = 0; c < w; ++c)
        for (int h = 0; h < kParts; ++h) tile.t[s][c][h] = load(X + kStrip * s + h * kLanes + c * ld);
  }
  tile.subtract_product(strips, pivots + kStrip * c0, g - c0);
  const double* d = pivots + kStrip * g;
  for (int c = 0; c < kCols && c < w; ++c) {
    const double inv = inverse[c];
    for (int s = 0; s < S; ++s)
      for (int h = 0; h < kParts; ++h) tile.t[s][c][h] *= inv;
    for (int j = c + 1; j < kCols; ++j) {
      const double y = d[kStrip * c + j];
      for (int s = 0; s < S; ++s)
        for (int h = 0; h < kParts; ++h) tile.t[s][j][h] -= tile.t[s][c][h] * y;
    }
  }
  for (int s = 0; s < S; ++s) {
    double* out = L.strip(a + s) + kStrip * g;
    for (int c = 0; c < kCols && c < w; ++c)
      for (int h = 0; h < kParts; ++h) store(out + kStrip * c + h * kLanes, tile.t[s][c][h]);
  }
}

inline void solve_group(const Panel& L, long c0, long g, int w, const double* inverse, long r0, long r1,
                        const double* X, long ld) {
  const double* pivots = L.strip(g / kStrip);
  for (int c = 0; c < w; c += kCols) {
    const double* p = pivots + c;
    const double* x = X + (g + c - c0) * ld;
    long r = r0;
    for (; r + kRows <= r1; r += kRows)
      solve_tile<kRows>(L, r, p, inverse + c, c0, g + c, w - c, x + kStrip * (r - r0), ld);
    if constexpr (kRows == 3)
      if (r + 2 <= r1) {
        solve_tile<2>(L, r, p, inverse + c, c0, g + c, w - c, x + kStrip * (r - r0), ld);
        r += 2;
      }
    for (; r < r1; ++r) solve_tile<1>(L, r, p, inverse + c, c0, g + c, w - c, x + kStrip * (r - r0), ld);
  }
}

BadPivot factor(const Panel& L, long c0, long c1, long end, const double* X, long ld, const double* floor) {
  BadPivot bad;
  for (long g = c0; g < c1; g += kStrip) {
    const int w = static_cast<int>(c1 - g < kStrip ? c1 - g : kStrip);
    const long s = g / kStrip;
    const double* x = X + (g - c0) * (ld + 1);
    double* strip = L.strip(s);
    double block[kStrip * kStrip] __attribute__((aligned(64))), inverse[kStrip];
    const double* strips[1] = {strip + kStrip * c0};
    for (int c = 0; c < w; c += kCols) {
      Tile<1, kCols> tile;
      tile.zero();
      for (int i = 0; i < kCols && c + i < w; ++i)
        for (int h = 0; h < kParts; ++h) tile.t[0][i][h] = load(x + (c + i) * ld + h * kLanes);
      tile.subtract_product(strips, strip + kStrip * c0 + c, g - c0);
      tile.write(block + kStrip * c, kStrip);
    }
    if (!factor_8x8(block, inverse, w, floor + g, &bad)) {
      bad.column += g;
      return bad;
    }
    for (int i = 0; i < kStrip * w; ++i) strip[kStrip * g + i] = block[i];
    solve_group(L, c0, g, w, inverse, s + 1, end, X + kStrip * (s + 1) - c0, ld);
  }
  return bad;
}

void solve_rows(const Panel& L, long c0, long c1, long r0, long r1, const double* X, long ld) {
  for (long g = c0; g < c1; g += kStrip) {
    const int w = static_cast<int>(c1 - g < kStrip ? c1 - g : kStrip);
    const double* strip = L.strip(g / kStrip) + kStrip * g;
    double inverse[kStrip] = {};
    for (int c = 0; c < w; ++c) inverse[c] = 1 / strip[kStrip * c + c];
    solve_group(L, c0, g, w, inverse, r0, r1, X, ld);
  }
}

inline void add(double* y, const double* x, long n) {
  long i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(y + i) + load(x + i));
  for (; i < n; ++i) y[i] += x[i];
}

void add_update(const UpdateView& update, long row0, long row1, long col0, long col1, double* C, long ld) {
  for (int q = 0; q < update.count; ++q) {
    const Run& columns = update.runs[q];
    const long begin = columns.to > col0 ? columns.to : col0;
    const long end = columns.to + columns.length < col1 ? columns.to + columns.length : col1;
    for (long col = begin; col < end; ++col) {
      const double* from = update.column(columns.from + (col - columns.to));
      double* to = C + (col - col0) * ld - row0;
      for (int p = q; p < update.count; ++p) {
        const Run& rows = update.runs[p];
        long first = rows.to > row0 ? rows.to : row0;
        if (p == q && col > first) first = col;
        const long last = rows.to + rows.length < row1 ? rows.to + rows.length : row1;
        if (first < last) add(to + first, from + rows.from + (first - rows.to), last - first);
      }
    }
  }
}
