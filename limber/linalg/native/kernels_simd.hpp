// The kernels of the factorisation in numbers of the type Real, for the instruction set that the including
// file is compiled for. kernels_table.hpp includes this twice, with Real double and float. Nothing of the
// standard library is used here: see LIMBER_INLINE.

constexpr bool kSingle = sizeof(Real) == 4;
#if defined(__AVX512F__)
// A tile: 3 registers of rows x 8 columns, 24 of 32 registers. A register holds one strip of doubles or two
// of floats.
constexpr int kLanes = 8, kRows = 3, kCols = 8;
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int kLanes = kSingle ? 8 : 4, kRows = kSingle ? 3 : 1, kCols = 4;  // 12 or 8 of 16 registers
#else
constexpr int kLanes = kSingle ? 4 : 2, kRows = 1, kCols = kSingle ? 4 : 2;  // 8 of 16 registers
#endif
constexpr int kParts = kStrip / kLanes;  // registers per column of a strip
constexpr Real kLargest = kSingle ? Real(3.4e38F) : Real(1.7e308);
constexpr long kDepth = 256;  // columns per pass of a product: a strip of it stays in the L1 cache
constexpr long kHeight = 24;  // strips per pass: with kDepth columns they stay in the L2 cache

typedef Real Vec __attribute__((vector_size(kLanes * sizeof(Real)), aligned(sizeof(Real)), may_alias));

inline Vec load(const Real* p) { return *reinterpret_cast<const Vec*>(p); }
inline void store(Real* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }

// Which rows of a tile share a register (or kParts of them): those of one strip,
struct OneStrip {
  static constexpr int kStrips = 1;
  typedef Vec Pack;
  static Pack gather(const Real* const* strips, long at) { return load(strips[0] + at); }
  static void scatter(Pack v, Real* const* strips, long at) { store(strips[0] + at, v); }
};
#if defined(__AVX512F__)
// or of two, which lie beside each other in a front and apart in a panel.
struct TwoStrips {
  static constexpr int kStrips = 2;
  typedef Real Pack __attribute__((vector_size(2 * kLanes * sizeof(Real)), aligned(sizeof(Real)), may_alias));
  LIMBER_INLINE static Pack gather(const Real* const* strips, long at) {
    return __builtin_shufflevector(load(strips[0] + at), load(strips[1] + at), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
                                   10, 11, 12, 13, 14, 15);
  }
  LIMBER_INLINE static void scatter(Pack v, Real* const* strips, long at) {
    store(strips[0] + at, __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7));
    store(strips[1] + at, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
  }
};
template <bool kSingle>
struct Tallest {
  typedef OneStrip Rows;
};
template <>
struct Tallest<true> {
  typedef TwoStrips Rows;
};
typedef Tallest<kSingle>::Rows Tall;
#else
typedef OneStrip Tall;
#endif

// S times Rows by C columns in registers.
template <int S, int C, class Rows>
struct Tile {
  static constexpr int kStrips = S * Rows::kStrips, kHigh = kStrip * Rows::kStrips;
  typedef typename Rows::Pack Pack;
  Pack t[S][C][kParts];

  void zero() {
    for (int s = 0; s < S; ++s)
      for (int c = 0; c < C; ++c)
        for (int h = 0; h < kParts; ++h) t[s][c][h] = Pack{};
  }
  void read(const Real* x, long ld) {
    for (int s = 0; s < S; ++s)
      for (int c = 0; c < C; ++c)
        for (int h = 0; h < kParts; ++h)
          t[s][c][h] = *reinterpret_cast<const Pack*>(x + kHigh * s + h * kLanes + c * ld);
  }
  void write(Real* x, long ld) const {
    for (int s = 0; s < S; ++s)
      for (int c = 0; c < C; ++c)
        for (int h = 0; h < kParts; ++h)
          *reinterpret_cast<Pack*>(x + kHigh * s + h * kLanes + c * ld) = t[s][c][h];
  }
  // t -= A B^T: a[s] the strips of A, b the C rows of B inside their strip.
  void subtract_product(const Real* const (&strips)[kStrips], const Real* __restrict b, long k) {
    const Real* a[kStrips];
    for (int s = 0; s < kStrips; ++s) a[s] = strips[s];
    for (long i = 0; i < k; ++i) {
      Pack x[S][kParts];
      for (int s = 0; s < S; ++s)
        for (int h = 0; h < kParts; ++h)
          x[s][h] = Rows::gather(a + s * Rows::kStrips, kStrip * i + h * kLanes);
      for (int c = 0; c < C; ++c) {
        const Real y = b[kStrip * i + c];
        for (int s = 0; s < S; ++s)
          for (int h = 0; h < kParts; ++h) t[s][c][h] -= x[s][h] * y;
      }
    }
  }
};

template <int S, class Of>
struct Shape {
  static constexpr int kRegisters = S;
  typedef Of Rows;
};
// Cuts the strips [i, to) into tiles, the tallest first: at(shape, first strip).
template <class At>
LIMBER_INLINE void in_tiles(long i, long to, const At& at) {
  constexpr int kHigh = Tall::kStrips;
  for (; i + kRows * kHigh <= to; i += kRows * kHigh) at(Shape<kRows, Tall>{}, i);
  if constexpr (kRows == 3)
    if (i + 2 * kHigh <= to) {
      at(Shape<2, Tall>{}, i);
      i += 2 * kHigh;
    }
  if constexpr (kHigh > 1)
    if (i + kHigh <= to) {
      at(Shape<1, Tall>{}, i);
      i += kHigh;
    }
  for (; i < to; ++i) at(Shape<1, OneStrip>{}, i);
}

template <int S, class Rows, bool kAdd>
inline void multiply_tiles(const PanelOf<const Real>& L, long a, const Real* b, long k0, long k1, Real* C,
                           long ld) {
  Tile<S, kCols, Rows> tile;
  const Real* strips[tile.kStrips];
  for (int s = 0; s < tile.kStrips; ++s) strips[s] = L.strip(a + s) + kStrip * k0;
  for (int c = 0; c < kStrip; c += kCols) {
    if (kAdd)
      tile.read(C + c * ld, ld);
    else
      tile.zero();
    tile.subtract_product(strips, b + kStrip * k0 + c, k1 - k0);
    tile.write(C + c * ld, ld);
  }
}

template <bool kAdd>
inline void multiply_pass(const PanelOf<const Real>& L, long a0, long a1, long b0, long b1, long k0, long k1,
                          bool lower, Real* C, long ld) {
  for (long block = a0; block < a1; block += kHeight) {
    const long end = block + kHeight < a1 ? block + kHeight : a1;
    for (long j = b0; j < b1 && !(lower && j >= end); ++j) {
      const Real* b = L.strip(j);
      Real* column = C + kStrip * (j - b0) * ld;
      in_tiles(lower && j > block ? j : block, end, [&](auto tile, long i) {
        multiply_tiles<tile.kRegisters, typename decltype(tile)::Rows, kAdd>(L, i, b, k0, k1,
                                                                             column + kStrip * (i - a0), ld);
      });
    }
  }
}

void multiply(const PanelOf<const Real>& L, long a0, long a1, long b0, long b1, long k0, long k1, bool lower,
              bool add, Real* C, long ld) {
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
// As L D L^T first: one division per column is all that the next column waits for, and the square roots are
// taken together.
inline bool factor_8x8(Real* __restrict x, Real* __restrict inverse, int w, const double* floor,
                       BadPivot* bad) {
  Vec t[kStrip][kParts];
  Real pivot[kStrip] __attribute__((aligned(64)));
  for (int c = 0; c < kStrip; ++c)
    for (int h = 0; h < kParts; ++h) t[c][h] = load(x + kStrip * c + h * kLanes);
  for (int c = 0; c < kStrip; ++c) {
    const Real d = c < w ? t[c][c / kLanes][c % kLanes] : Real{1};
    pivot[c] = d;
    const Real inv = 1 / d;
    Vec scaled[kParts];
    for (int h = 0; h < kParts; ++h) scaled[h] = t[c][h] * inv;
    for (int j = c + 1; j < kStrip; ++j) {
      const Real y = t[c][j / kLanes][j % kLanes];
      for (int h = 0; h < kParts; ++h) t[j][h] -= scaled[h] * y;
    }
  }
  for (int c = 0; c < w; ++c)
    if (!(pivot[c] > floor[c] && pivot[c] <= kLargest)) {
      bad->column = c;
      bad->value = pivot[c];
      return false;
    }
  for (int c = 0; c < kStrip; ++c) inverse[c] = 1 / __builtin_sqrt(pivot[c]);
  for (int c = 0; c < kStrip; ++c) {
    for (int h = 0; h < kParts; ++h) store(x + kStrip * c + h * kLanes, t[c][h] * inverse[c]);
    for (int r = 0; r < c; ++r) x[kStrip * c + r] = 0;
  }
  return true;
}

// The columns [g, g + w) of S strips from strip `a` on, w <= kCols: X less the products with the columns [c0,
// g), times the inverse transpose of the diagonal block. `pivots`: the strip of the pivot rows, moved to the
// row of g; `d`: the diagonal block itself, 8x8, unit columns beyond the last one. X may be read beyond w
// columns.
template <int S, class Rows>
inline void solve_tile(const PanelOf<Real>& L, long a, const Real* pivots, const Real* __restrict d,
                       const Real* __restrict inverse, long c0, long g, int w, const Real* X, long ld) {
  Tile<S, kCols, Rows> tile;
  const Real* strips[tile.kStrips];
  for (int s = 0; s < tile.kStrips; ++s) strips[s] = L.strip(a + s) + kStrip * c0;
  tile.read(X, ld);
  tile.subtract_product(strips, pivots + kStrip * c0, g - c0);
  for (int c = 0; c < kCols; ++c) {
    const Real inv = inverse[c];
    for (int s = 0; s < S; ++s)
      for (int h = 0; h < kParts; ++h) tile.t[s][c][h] *= inv;
    for (int j = c + 1; j < kCols; ++j) {
      const Real y = d[kStrip * c + j];
      for (int s = 0; s < S; ++s)
        for (int h = 0; h < kParts; ++h) tile.t[s][j][h] -= tile.t[s][c][h] * y;
    }
  }
  for (int s = 0; s < S; ++s) {
    Real* to[Rows::kStrips];
    for (int i = 0; i < Rows::kStrips; ++i) to[i] = L.strip(a + s * Rows::kStrips + i) + kStrip * g;
    for (int c = 0; c < kCols; ++c)
      if (c < w)
        for (int h = 0; h < kParts; ++h) Rows::scatter(tile.t[s][c][h], to, kStrip * c + h * kLanes);
  }
}

inline void solve_group(const PanelOf<Real>& L, long c0, long g, int w, const Real* d, const Real* inverse,
                        long r0, long r1, const Real* X, long ld) {
  const Real* pivots = L.strip(g / kStrip);
  for (int c = 0; c < w; c += kCols) {
    const Real *p = pivots + c, *dc = d + (kStrip + 1) * c, *x = X + (g + c - c0) * ld;
    in_tiles(r0, r1, [&](auto tile, long r) {
      solve_tile<tile.kRegisters, typename decltype(tile)::Rows>(L, r, p, dc, inverse + c, c0, g + c, w - c,
                                                                 x + kStrip * (r - r0), ld);
    });
  }
}

BadPivot factor(const PanelOf<Real>& L, long c0, long c1, long end, const Real* X, long ld,
                const double* floor) {
  BadPivot bad;
  for (long g = c0; g < c1; g += kStrip) {
    const int w = static_cast<int>(c1 - g < kStrip ? c1 - g : kStrip);
    const long s = g / kStrip;
    const Real* x = X + (g - c0) * (ld + 1);
    Real* strip = L.strip(s);
    Real block[kStrip * kStrip] __attribute__((aligned(64))), inverse[kStrip];
    const Real* strips[1] = {strip + kStrip * c0};
    for (int c = 0; c < kStrip; c += kCols) {
      Tile<1, kCols, OneStrip> tile;
      tile.read(x + c * ld, ld);
      tile.subtract_product(strips, strip + kStrip * c0 + c, g - c0);
      tile.write(block + kStrip * c, kStrip);
    }
    if (!factor_8x8(block, inverse, w, floor + g, &bad)) {
      bad.column += g;
      return bad;
    }
    for (int i = 0; i < kStrip * w; i += kLanes) store(strip + kStrip * g + i, load(block + i));
    solve_group(L, c0, g, w, block, inverse, s + 1, end, X + kStrip * (s + 1) - c0, ld);
  }
  return bad;
}

void solve_rows(const PanelOf<Real>& L, long c0, long c1, long r0, long r1, const Real* X, long ld) {
  for (long g = c0; g < c1; g += kStrip) {
    const int w = static_cast<int>(c1 - g < kStrip ? c1 - g : kStrip);
    const Real* strip = L.strip(g / kStrip) + kStrip * g;
    Real block[kStrip * kStrip] __attribute__((aligned(64))), inverse[kStrip];
    for (int i = 0; i < kStrip * kStrip; i += kLanes)
      store(block + i, i < kStrip * w ? load(strip + i) : Vec{});
    for (int c = 0; c < kStrip; ++c) {
      if (c >= w) block[(kStrip + 1) * c] = 1;
      inverse[c] = 1 / block[(kStrip + 1) * c];
    }
    solve_group(L, c0, g, w, block, inverse, r0, r1, X, ld);
  }
}

// y[0, n) += x[0, n) for W columns each.
template <int W>
inline void add_columns(Real* __restrict y, long ldy, const Real* __restrict x, long ldx, long n) {
  long i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int c = 0; c < W; ++c) store(y + c * ldy + i, load(y + c * ldy + i) + load(x + c * ldx + i));
#if defined(__AVX512F__)
  if (i < n) {
    const __mmask8 rest = static_cast<__mmask8>((1 << (n - i)) - 1);
    for (int c = 0; c < W; ++c) {
      Real* to = y + c * ldy + i;
      const Real* from = x + c * ldx + i;
      if constexpr (kSingle)
        _mm256_mask_storeu_ps(
            to, rest, _mm256_add_ps(_mm256_maskz_loadu_ps(rest, to), _mm256_maskz_loadu_ps(rest, from)));
      else
        _mm512_mask_storeu_pd(
            to, rest, _mm512_add_pd(_mm512_maskz_loadu_pd(rest, to), _mm512_maskz_loadu_pd(rest, from)));
    }
  }
#else
  if (kLanes > 4 && i + 4 <= n) {
    for (int c = 0; c < W; ++c)
      for (int k = 0; k < 4; ++k) y[c * ldy + i + k] += x[c * ldx + i + k];
    i += 4;
  }
  if (i + 2 <= n) {
    for (int c = 0; c < W; ++c) {
      const Real *from = x + c * ldx + i, a = from[0], b = from[1];
      Real* to = y + c * ldy + i;
      to[0] += a;
      to[1] += b;
    }
    i += 2;
  }
  if (i < n)
    for (int c = 0; c < W; ++c) y[c * ldy + i] += x[c * ldx + i];
#endif
}

// Node by node: W columns, and the whole diagonal block although only its lower triangle is used.
template <int W>
inline void add_nodes(const UpdateView<Real>& update, long row0, long row1, long col0, long col1, Real* C,
                      long ld) {
  int first_rows = 0;  // runs before it lie above row0
  while (first_rows < update.count && update.runs[first_rows].to + update.runs[first_rows].length <= row0)
    ++first_rows;
  for (int q = 0; q < update.count; ++q) {
    const Run& columns = update.runs[q];
    if (columns.to >= col1 || columns.from >= update.columns) break;
    const long begin = columns.to > col0 ? columns.to : col0;
    const long end = columns.to + columns.length < col1 ? columns.to + columns.length : col1;
    for (long col = begin; col < end; col += W) {
      const long from_col = columns.from + (col - columns.to), from_ld = update.ld(from_col);
      const Real* from = update.column(from_col);
      Real* to = C + (col - col0) * ld - row0;
      for (int p = first_rows > q ? first_rows : q; p < update.count; ++p) {
        const Run& rows = update.runs[p];
        if (rows.to >= row1) break;
        long first = rows.to > row0 ? rows.to : row0;
        if (p == q && col > first) first = col;
        const long last = rows.to + rows.length < row1 ? rows.to + rows.length : row1;
        add_columns<W>(to + first, ld, from + rows.from + (first - rows.to), from_ld, last - first);
      }
    }
  }
}

void add_update(const UpdateView<Real>& update, long row0, long row1, long col0, long col1, Real* C,
                long ld) {
  if (update.node_rows == 1)
    add_nodes<1>(update, row0, row1, col0, col1, C, ld);
  else
    add_nodes<3>(update, row0, row1, col0, col1, C, ld);
}

constexpr FactorKernels<Real> factor_kernels() { return {multiply, factor, solve_rows, add_update}; }
