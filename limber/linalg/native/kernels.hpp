// The dense arithmetic of the native Cholesky.
//
// L is kept in panels, one per front. A front has K pivot columns and M further rows; its panel is a list of
// strips of 8 rows, each stored column after column (8 consecutive doubles per column). Pivot rows and
// further rows start a strip of their own, so both are padded with zero rows; a pivot strip ends with its
// last column on or below the diagonal. Products of pieces of L then read memory from front to back, at any
// size.
#pragma once

#include <cstdint>

// The kernels are compiled several times, for different instruction sets. What they share must leave no copy
// of its own behind: the linker would keep one of them for all.
#define LIMBER_INLINE __attribute__((always_inline)) inline

namespace limber::sparse {

inline constexpr int kStrip = 8;  // rows of a strip

LIMBER_INLINE long round_up(long n) { return (n + kStrip - 1) / kStrip * kStrip; }

// A panel in memory. `Value` is double or float, const or not.
template <class Value>
struct PanelOf {
  Value* values;
  long K, M;  // pivot columns, further rows (without padding)

  LIMBER_INLINE long pivot_strips() const { return (K + kStrip - 1) / kStrip; }
  LIMBER_INLINE long strips() const { return pivot_strips() + (M + kStrip - 1) / kStrip; }
  // The first entry (column 0) of strip s. Strip s of the pivots has 8 (s + 1) columns, K at most.
  LIMBER_INLINE long offset(long s) const {
    const long P = pivot_strips();
    return s < P ? kStrip * kStrip / 2 * s * (s + 1)
                 : kStrip * kStrip / 2 * P * (P - 1) + kStrip * K * (P > 0 ? s - P + 1 : 0);
  }
  LIMBER_INLINE Value* strip(long s) const { return values + offset(s); }
  LIMBER_INLINE long size() const { return offset(strips()); }
};
using ConstPanel = PanelOf<const double>;
using RoundedPanel = PanelOf<const float>;

// Columns of a block column: of an update in memory, and of a large front when it is factored in tiles.
// A multiple of 24, so that a tile cuts neither a node nor a strip.
inline constexpr long kBlock = 192;

// An update, M x M, is stored as its lower triangle, in block columns of kBlock columns that start with their
// diagonal. Rows are padded to whole strips.
LIMBER_INLINE std::int64_t update_offset(long M, long block) {
  const std::int64_t rows = round_up(M);
  return kBlock * (block * rows - kBlock * (static_cast<std::int64_t>(block) * (block - 1) / 2));
}
LIMBER_INLINE long update_ld(long M, long block) { return round_up(M) - block * kBlock; }
LIMBER_INLINE std::int64_t update_size(long M) {
  const long full = round_up(M) / kBlock, rest = round_up(M) - full * kBlock;
  return update_offset(M, full) + static_cast<std::int64_t>(rest) * rest;
}

// A piece of the rows of an update and where it goes in the parent's front.
struct Run {
  std::int32_t from;    // first row of the update
  std::int32_t to;      // first row of the parent's front, padding counted
  std::int32_t length;  // rows
};

template <class Real>
struct UpdateView {
  const Real* values;
  long M, columns;  // rows; columns, without those of carried rows, which nobody needs
  const Run* runs;
  int count;
  int node_rows;  // 3 or 1

  LIMBER_INLINE long ld(long c) const { return update_ld(M, c / kBlock); }
  // Column c, to be indexed by the row of the update, from c on.
  LIMBER_INLINE const Real* column(long c) const {
    const long block = c / kBlock;
    return values + update_offset(M, block) + (c - block * kBlock) * update_ld(M, block) - block * kBlock;
  }
};

struct BadPivot {
  long column = -1;  // of the panel; -1: none
  double value = 0;
};

// Factorisation, in numbers of the type Real: double, or float for a factor in single precision.
template <class Real>
struct FactorKernels {
  // C (+)= -A B^T: A the strips [a0, a1) of the panel, B the strips [b0, b1), both over columns [k0, k1).
  // C starts at the first row of strip a0 and the first row of b0, column-major with leading dimension ld.
  // With `lower` (a0 == b0) tiles above the diagonal are left out; without `add` C is overwritten.
  void (*multiply)(const PanelOf<const Real>& L, long a0, long a1, long b0, long b1, long k0, long k1,
                   bool lower, bool add, Real* C, long ld);

  // Factors the columns [c0, c1) (c0 a multiple of 8, c1 too or K) of the rows in the strips [c0 / 8, end).
  // X: the assembled entries, less the products with columns before c0; its first entry is (c0, c0), and its
  // columns are padded to a multiple of 8.
  // `floor[c]`: the size that the pivot of column c must exceed.
  BadPivot (*factor)(const PanelOf<Real>& L, long c0, long c1, long end, const Real* X, long ld,
                     const double* floor);
  // The same columns for the strips [r0, r1) below, once the pivots are factored; X starts at (8 r0, c0).
  void (*solve_rows)(const PanelOf<Real>& L, long c0, long c1, long r0, long r1, const Real* X, long ld);

  // Adds the part of a child's update that falls into the rows [row0, row1) and columns [col0, col1) of the
  // front (lower triangle, padding counted) to C, which starts at (row0, col0).
  void (*add_update)(const UpdateView<Real>& update, long row0, long row1, long col0, long col1, Real* C,
                     long ld);
};

// Sweeps over panels of the type P. All sums are in double precision.
template <class P>
struct SweepKernels {
  // One front of a sweep with `lanes` right-hand sides (a multiple of `register_lanes`, up to 32). Rows are
  // `ld` doubles
  // apart: x1: the pivot rows; row r below them lies at x + below[r]. Forward: x1 <- L1^-1 x1, x2 += -L2 x1.
  // Backward: x1 <- L1^-T (x1 - L2^T x2).
  void (*forward)(const P& L, int lanes, long ld, double* x1, double* x, const long* below);
  void (*backward)(const P& L, int lanes, long ld, double* x1, const double* x, const long* below);

  // With one right-hand side, in pieces. `x`: the pivot rows with their padding. c0 is a multiple of 8, c1
  // too or K.
  // x[c0, c1) <- L^-1 x[c0, c1) with the diagonal block of these columns.
  void (*forward_pivots)(const P& L, long c0, long c1, double* x);
  // y -= L x over the columns [c0, c1), for the rows of the strips [s0, s1).
  void (*forward_rows)(const P& L, long c0, long c1, long s0, long s1, const double* x, double* y);
  // sums[8 (c - c0) ..] += terms of (L^T y)[c], to be added up, from the rows of the strips [s0, s1).
  void (*backward_rows)(const P& L, long c0, long c1, long s0, long s1, const double* y, double* sums);
  // x[c0, c1) <- L^-T (x - sums), with the diagonal block; `sums` is used up.
  void (*backward_pivots)(const P& L, long c0, long c1, double* x, double* sums);
};

// One set of kernels per instruction set.
struct Kernels {
  FactorKernels<double> in_double;
  FactorKernels<float> in_single;
  int register_lanes;  // of right-hand sides
  SweepKernels<ConstPanel> exact;
  SweepKernels<RoundedPanel> rounded;

  template <class Real>
  LIMBER_INLINE const FactorKernels<Real>& factor_in() const {
    if constexpr (sizeof(Real) == sizeof(double))
      return in_double;
    else
      return in_single;
  }
  LIMBER_INLINE const SweepKernels<ConstPanel>& sweeps(const ConstPanel&) const { return exact; }
  LIMBER_INLINE const SweepKernels<RoundedPanel>& sweeps(const RoundedPanel&) const { return rounded; }
};

// Of the chosen instruction set (core/instruction_set.hpp).
const Kernels& kernels();

}  // namespace limber::sparse
