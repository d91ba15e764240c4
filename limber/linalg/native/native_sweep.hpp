// What a sweep over the tree reads, does and writes; shared by solves with one and with many right-hand
// sides.
#pragma once

#include <limber/linalg/native/native_backend.hpp>

#include <algorithm>

namespace limber::sparse {

// Below this number of products [doubles of L times lanes] waking other threads costs more than it brings.
inline constexpr std::int64_t kSolveOnOneThread = 400'000;

// What a sweep does.
struct Course {
  bool forward = true, backward = true;
  bool tail = true;            // with the front of the tail; without it tail rows are summed or given
  bool input_ordered = false;  // rows of the input are in elimination order
  bool output_ordered = false;

  explicit Course(CholeskyBackend::Part part) {
    using Part = CholeskyBackend::Part;
    if (part == Part::kAll) return;
    forward = part == Part::kToTail;
    backward = !forward;
    tail = false;
    input_ordered = backward;
    output_ordered = forward;
  }
};

// The columns of one sweep: some of C and J, then some of `in` and `out` (which may be the same).
struct NativeBackend::Columns {
  const MatX* C = nullptr;  // tail motions that are extended to J; the other rows start at zero
  RowMatX* J = nullptr;
  Eigen::Index first_extended = 0, extended = 0;
  const double* in = nullptr;
  Eigen::Index in_ld = 0;
  double* out = nullptr;
  Eigen::Index out_ld = 0;
  Eigen::Index given = 0;
  // Instead of `in`: what went along with the factorisation, from the column `carried` on, and for rows of
  // the tail T.
  Eigen::Index carried = -1;
  const MatX* T = nullptr;

  Eigen::Index count() const { return extended + given; }

  // The nodes at the positions [begin, end) of the elimination order; x: f.block rows of `lanes` numbers
  // per position, from position 0 on.
  void load(const Fronts& f, bool ordered, Index begin, Index end, int lanes, double* x) const {
    const Index head = static_cast<Index>(f.order.size()) - f.tail;
    const int block = f.block;
    for (Index k = begin; k < end; ++k) {
      double* to = x + static_cast<long>(block) * k * lanes;
      std::fill(to, to + block * lanes, 0.0);
      if (k >= head)
        for (Eigen::Index i = 0; i < extended; ++i)
          for (int a = 0; a < block; ++a)
            to[a * lanes + i] = (*C)(block * (k - head) + a, first_extended + i);
      to += extended;
      if (carried >= 0) {  // and of the other rows load_carried()
        for (Eigen::Index i = 0; k >= head && i < given; ++i)
          for (int a = 0; a < block; ++a) to[a * lanes + i] = (*T)(block * (k - head) + a, carried + i);
        continue;
      }
      const double* from = in + block * static_cast<Eigen::Index>(ordered ? k : f.order[k]);
      for (Eigen::Index i = 0; i < given; ++i)
        for (int a = 0; a < block; ++a) to[a * lanes + i] = from[a + i * in_ld];
    }
  }

  void save(const Fronts& f, bool ordered, Index begin, Index end, int lanes, const double* x) const {
    const int block = f.block;
    for (Index k = begin; k < end; ++k) {
      const double* from = x + static_cast<long>(block) * k * lanes;
      const Eigen::Index row = block * static_cast<Eigen::Index>(ordered ? k : f.order[k]);
      if (extended > 0)
        for (int a = 0; a < block; ++a) {
          double* to = &(*J)(row + a, first_extended);
          for (Eigen::Index i = 0; i < extended; ++i) to[i] = from[a * lanes + i];
        }
      from += extended;
      for (Eigen::Index i = 0; i < given; ++i)
        for (int a = 0; a < block; ++a) out[row + a + i * out_ld] = from[a * lanes + i];
    }
  }
};

// L is read once from beginning to end, strip by strip and not in the order that the hardware guesses: this
// asks for the beginning of the next panel.
template <class P>
void prefetch_panel(const P& L) {
  constexpr long kMost = 1 << 16;  // bytes
  const char* p = reinterpret_cast<const char*>(L.values);
  const long bytes = std::min<long>(kMost, static_cast<long>(L.size() * sizeof(*L.values)));
  for (long at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, 0, 2);
}

// Positions of a unit's pivots.
inline std::pair<Index, Index> positions(const Fronts& f, const Unit& unit) {
  const Front& last = f.fronts[unit.end - 1];
  return {f.fronts[unit.begin].first, last.first + last.pivots};
}

// Scratch of the calling thread.
inline double* solve_scratch(std::size_t size) {
  thread_local Buffer buffer;
  if (buffer.size() < size) buffer.resize(size);
  return buffer.data();
}

}  // namespace limber::sparse
