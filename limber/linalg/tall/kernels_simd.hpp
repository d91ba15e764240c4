// The kernels, for the instruction set that the including file is compiled for. Each kernels_*.cpp includes
// this inside a namespace of its own. Rows lie in the lanes, eight of them whatever the width is, and every
// sum has one product to fuse: AVX2 and AVX-512 give the same bits.

constexpr int kWide = 8;  // rows at a time
#if defined(__AVX512F__)
constexpr int kLanes = 8, kColumns = 4;  // columns of each side at a time
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int kLanes = 4, kColumns = 2;
#else
constexpr int kLanes = 2, kColumns = 1;
#endif
constexpr int kParts = kWide / kLanes;

typedef double Vec __attribute__((vector_size(kLanes * 8), aligned(8), may_alias));

inline Vec load(const double* p) { return *reinterpret_cast<const Vec*>(p); }
inline void store(double* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }

// P columns of A times Q columns of B.
template <int P, int Q>
struct Sums {
  Vec t[P][Q][kParts];

  void zero() {
    for (int i = 0; i < P; ++i)
      for (int j = 0; j < Q; ++j)
        for (int h = 0; h < kParts; ++h) t[i][j][h] = Vec{};
  }
  void add_rows(const double* a, long lda, const double* b, long ldb) {
    for (int h = 0; h < kParts; ++h) {
      Vec x[P];
      for (int i = 0; i < P; ++i) x[i] = load(a + i * lda + h * kLanes);
      for (int j = 0; j < Q; ++j) {
        const Vec y = load(b + j * ldb + h * kLanes);
        for (int i = 0; i < P; ++i) t[i][j][h] += x[i] * y;
      }
    }
  }
  void write(double* C, long ldc) const {
    for (int i = 0; i < P; ++i)
      for (int j = 0; j < Q; ++j) {
        double s[kWide];
        for (int h = 0; h < kParts; ++h) store(s + h * kLanes, t[i][j][h]);
        C[i + j * ldc] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
      }
  }
};

template <int P, int Q>
void product_of_columns(long n, const double* A, long lda, const double* B, long ldb, double* C, long ldc) {
  Sums<P, Q> sums;
  sums.zero();
  long r = 0;
  for (; r + kWide <= n; r += kWide) sums.add_rows(A + r, lda, B + r, ldb);
  if (r < n) {  // the last rows, and zeros
    double a[P * kWide] = {}, b[Q * kWide] = {};
    for (long k = 0; k < n - r; ++k) {
      for (int i = 0; i < P; ++i) a[i * kWide + k] = A[r + k + i * lda];
      for (int j = 0; j < Q; ++j) b[j * kWide + k] = B[r + k + j * ldb];
    }
    sums.add_rows(a, kWide, b, kWide);
  }
  sums.write(C, ldc);
}

void transposed_product(long n, const double* A, long lda, long p, const double* B, long ldb, long q,
                        double* C) {
  long j = 0;
  for (; j + kColumns <= q; j += kColumns) {
    long i = 0;
    for (; i + kColumns <= p; i += kColumns)
      product_of_columns<kColumns, kColumns>(n, A + i * lda, lda, B + j * ldb, ldb, C + i + j * p, p);
    for (; i < p; ++i)
      product_of_columns<1, kColumns>(n, A + i * lda, lda, B + j * ldb, ldb, C + i + j * p, p);
  }
  for (; j < q; ++j) {
    long i = 0;
    for (; i + kColumns <= p; i += kColumns)
      product_of_columns<kColumns, 1>(n, A + i * lda, lda, B + j * ldb, ldb, C + i + j * p, p);
    for (; i < p; ++i) product_of_columns<1, 1>(n, A + i * lda, lda, B + j * ldb, ldb, C + i + j * p, p);
  }
}

// kWide rows, Q columns of X.
template <int Q>
inline void product_of_rows(const double* A, long lda, long p, const double* C, long ldc, bool subtract,
                            double* X, long ldx) {
  Vec t[Q][kParts];
  for (int j = 0; j < Q; ++j)
    for (int h = 0; h < kParts; ++h) t[j][h] = subtract ? -load(X + j * ldx + h * kLanes) : Vec{};
  for (long i = 0; i < p; ++i)
    for (int h = 0; h < kParts; ++h) {
      const Vec a = load(A + i * lda + h * kLanes);
      for (int j = 0; j < Q; ++j) t[j][h] += a * C[i + j * ldc];
    }
  for (int j = 0; j < Q; ++j)
    for (int h = 0; h < kParts; ++h) store(X + j * ldx + h * kLanes, subtract ? -t[j][h] : t[j][h]);
}

template <int Q>
void product_to_columns(long n, const double* A, long lda, long p, const double* C, long ldc, bool subtract,
                        double* X, long ldx) {
  long r = 0;
  for (; r + kWide <= n; r += kWide) product_of_rows<Q>(A + r, lda, p, C, ldc, subtract, X + r, ldx);
  for (; r < n; ++r)
    for (int j = 0; j < Q; ++j) {
      double t = subtract ? -X[r + j * ldx] : 0;
      for (long i = 0; i < p; ++i) t += A[r + i * lda] * C[i + j * ldc];
      X[r + j * ldx] = subtract ? -t : t;
    }
}

void product(long n, const double* A, long lda, long p, const double* C, long ldc, long q, bool subtract,
             double* X, long ldx) {
  long j = 0;
  for (; j + 4 <= q; j += 4)
    product_to_columns<4>(n, A, lda, p, C + j * ldc, ldc, subtract, X + j * ldx, ldx);
  for (; j < q; ++j) product_to_columns<1>(n, A, lda, p, C + j * ldc, ldc, subtract, X + j * ldx, ldx);
}
