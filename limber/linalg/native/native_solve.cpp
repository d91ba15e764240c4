#include <limber/core/parallel.hpp>
#include <limber/linalg/native/native_backend.hpp>

#include <algorithm>

namespace limber::sparse {
namespace {

// Below this number of products [doubles of L times lanes] waking other threads costs more than it brings.
constexpr std::int64_t kSolveOnOneThread = 400'000;
constexpr Eigen::Index kMostLanes = 32;  // right-hand sides of one sweep
constexpr std::int64_t kLargePanel = 1
                                     << 18;  // doubles; with one right-hand side larger panels are shared out
constexpr long kPrefetch = 1 << 16;          // bytes of the next front
constexpr long kPieceStrips = 32;            // rows of a piece of such a panel
constexpr long kPieceColumns = 64;           // columns of a piece
constexpr long kSolveBlock = 384;            // pivot columns between two rounds

}  // namespace

// One pass over the tree with `lanes` right-hand sides. x: rows of the vector and own rows of units, block_
// per node, `lanes` doubles each.
struct NativeBackend::Sweep {
  const NativeBackend& b;
  int lanes;
  double* x;
  bool rounded = false;  // with the rounded copy of L; one lane

  double* node(Index row) const { return x + static_cast<long>(b.block_) * row * lanes; }

  // L is read once from beginning to end, strip by strip and not in the order that the hardware guesses.
  void prefetch(Index s) const {
    const Front& front = b.f_.fronts[s];
    const ConstPanel L = b.panel(front);
    const char* p = rounded ? reinterpret_cast<const char*>(b.rounded_panel(front).values)
                            : reinterpret_cast<const char*>(L.values);
    const long bytes = std::min<long>(kPrefetch, L.size() * (rounded ? 4 : 8));
    for (long at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, 0, 2);
  }

  // The lanes [lane, lane + width); `v` is scratch.
  void forward(Index s, int lane, int width, double* v) const {
    const Front& front = b.f_.fronts[s];
    if (width > 1)
      kernels().forward(b.panel(front), width, lanes, node(front.first) + lane, x + lane, places(front, v));
    else if (rounded)
      forward_one(front, b.rounded_panel(front), v);
    else
      forward_one(front, b.panel(front), v);
  }

  void backward(Index s, int lane, int width, double* v) const {
    const Front& front = b.f_.fronts[s];
    if (width > 1)
      kernels().backward(b.panel(front), width, lanes, node(front.first) + lane, x + lane, places(front, v));
    else if (rounded)
      backward_one(front, b.rounded_panel(front), v);
    else
      backward_one(front, b.panel(front), v);
  }

  template <class P>
  void forward_one(const Front& front, const P& L, double* v) const {
    const OneSide<P>& k = kernels().one_side(L);
    const long K = front.K(), Kp = front.padded_pivots();
    std::copy_n(node(front.first), K, v);
    std::fill(v + K, v + front.padded_rows(), 0.0);
    k.forward_pivots(L, 0, K, v);
    k.forward_rows(L, 0, K, L.pivot_strips(), L.strips(), v, v + Kp);
    std::copy_n(v, K, node(front.first));
    add_rows(front, v + Kp);
  }

  template <class P>
  void backward_one(const Front& front, const P& L, double* v) const {
    const OneSide<P>& k = kernels().one_side(L);
    const long K = front.K(), Kp = front.padded_pivots();
    std::copy_n(node(front.first), K, v);
    std::fill(v + K, v + Kp, 0.0);
    get_rows(front, v + Kp);
    double* sums = v + front.padded_rows();
    std::fill(sums, sums + kStrip * K, 0.0);
    k.backward_rows(L, 0, K, L.pivot_strips(), L.strips(), v + Kp, sums);
    k.backward_pivots(L, 0, K, v, sums);
    std::copy_n(v, K, node(front.first));
  }

  // A large front with one right-hand side, by all threads: blocks of pivots one after the other, the rows
  // below each (or the columns left of it) in pieces.
  template <class P>
  void forward_large(const Front& front, const P& L, double* v) const {
    const OneSide<P>& k = kernels().one_side(L);
    const long K = front.K(), Kp = front.padded_pivots();
    std::copy_n(node(front.first), K, v);
    std::fill(v + K, v + front.padded_rows(), 0.0);
    for (long c0 = 0; c0 < K; c0 += kSolveBlock) {
      const long c1 = std::min(K, c0 + kSolveBlock), first = round_up(c1) / kStrip;
      k.forward_pivots(L, c0, c1, v);
      parallel_ranges(L.strips() - first, kPieceStrips, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
        k.forward_rows(L, c0, c1, first + begin, first + end, v, v + kStrip * (first + begin));
      });
    }
    std::copy_n(v, K, node(front.first));
    add_rows(front, v + Kp);
  }

  template <class P>
  void backward_large(const Front& front, const P& L, double* v) const {
    const OneSide<P>& k = kernels().one_side(L);
    const long K = front.K();
    std::copy_n(node(front.first), K, v);
    std::fill(v + K, v + front.padded_pivots(), 0.0);
    get_rows(front, v + front.padded_pivots());
    double* sums = v + front.padded_rows();
    std::fill(sums, sums + kStrip * K, 0.0);
    for (long c0 = (K - 1) / kSolveBlock * kSolveBlock; c0 >= 0; c0 -= kSolveBlock) {
      const long c1 = std::min(K, c0 + kSolveBlock), first = round_up(c1) / kStrip;
      parallel_ranges(c1 - c0, kPieceColumns, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
        k.backward_rows(L, c0 + begin, c0 + end, first, L.strips(), v + kStrip * first,
                        sums + kStrip * (c0 + begin));
      });
      k.backward_pivots(L, c0, c1, v, sums + kStrip * c0);
    }
    std::copy_n(v, K, node(front.first));
  }

  // Where the rows below the pivots lie in x.
  const long* places(const Front& front, double* v) const {
    static_assert(sizeof(long) == sizeof(double));
    long* at = reinterpret_cast<long*>(v);
    const Index* rows = b.plan_.solve_row.data() + front.rows_begin;
    for (Index r = 0; r < front.rows; ++r)
      for (int a = 0; a < b.block_; ++a)
        at[b.block_ * r + a] = (static_cast<long>(b.block_) * rows[r] + a) * lanes;
    return at;
  }
  // With one right-hand side.
  void add_rows(const Front& front, const double* v) const {
    const Index* rows = b.plan_.solve_row.data() + front.rows_begin;
    if (b.block_ == 1)
      for (Index r = 0; r < front.rows; ++r) x[rows[r]] += v[r];
    else
      for (Index r = 0; r < front.rows; ++r, v += 3) {
        double* to = x + 3L * rows[r];
        for (int a = 0; a < 3; ++a) to[a] += v[a];
      }
  }
  void get_rows(const Front& front, double* v) const {
    const Index* rows = b.plan_.solve_row.data() + front.rows_begin;
    if (b.block_ == 1)
      for (Index r = 0; r < front.rows; ++r) *v++ = x[rows[r]];
    else
      for (Index r = 0; r < front.rows; ++r, v += 3) std::copy_n(x + 3L * rows[r], 3, v);
    std::fill(v, v + (round_up(front.M()) - front.M()), 0.0);
  }
};

namespace {

// Scratch of the calling thread.
double* scratch(std::size_t size) {
  thread_local Buffer buffer;
  if (buffer.size() < size) buffer.resize(size);
  return buffer.data();
}

// What a sweep does.
struct Course {
  bool forward = true, backward = true;
  bool tail = true;            // with the front of the tail; without it tail rows are summed or given
  bool input_ordered = false;  // rows of the input are in elimination order
  bool output_ordered = false;
};

}  // namespace

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

  Eigen::Index count() const { return extended + given; }
};

void NativeBackend::sweep(const Columns& c, Part part, bool rounded) const {
  Course course;
  if (part == Part::kLower) course = {true, false, true, false, true};
  if (part == Part::kUpper) course = {false, true, true, true, false};
  if (part == Part::kToTail) course = {true, false, false, false, true};
  if (part == Part::kFromTail) course = {false, true, false, true, false};

  const int lanes = c.count() == 1 ? 1 : static_cast<int>(round_up(c.count()));
  reserve_work(lanes);
  const Index head = static_cast<Index>(f_.order.size()) - f_.tail;
  const Sweep sweep{*this, lanes, work_.data(), rounded};
  const auto load = [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      double* x = sweep.node(k);
      std::fill(x, x + block_ * lanes, 0.0);
      if (k >= head)
        for (Eigen::Index i = 0; i < c.extended; ++i)
          for (int a = 0; a < block_; ++a)
            x[a * lanes + i] = (*c.C)(block_ * (k - head) + a, c.first_extended + i);
      x += c.extended;
      const double* from = c.in + block_ * static_cast<Eigen::Index>(course.input_ordered ? k : f_.order[k]);
      for (Eigen::Index i = 0; i < c.given; ++i)
        for (int a = 0; a < block_; ++a) x[a * lanes + i] = from[a + i * c.in_ld];
    }
  };
  const auto save = [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      const double* x = sweep.node(k);
      const Eigen::Index row = block_ * static_cast<Eigen::Index>(course.output_ordered ? k : f_.order[k]);
      if (c.extended > 0)
        for (int a = 0; a < block_; ++a) {
          double* to = &(*c.J)(row + a, c.first_extended);
          for (Eigen::Index i = 0; i < c.extended; ++i) to[i] = x[a * lanes + i];
        }
      x += c.extended;
      for (Eigen::Index i = 0; i < c.given; ++i)
        for (int a = 0; a < block_; ++a) c.out[row + a + i * c.out_ld] = x[a * lanes + i];
    }
  };
  const auto positions = [&](const Unit& unit) {
    const Front& last = f_.fronts[unit.end - 1];
    return std::pair<Index, Index>(f_.fronts[unit.begin].first, last.first + last.pivots);
  };
  const std::ptrdiff_t units = static_cast<std::ptrdiff_t>(plan_.units.size());
  const std::size_t space = static_cast<std::size_t>(most_rows_ + kStrip * most_pivots_);

  const std::ptrdiff_t grain = f_.values * lanes < kSolveOnOneThread ? units + 1 : 1;
  // All that is read before anything is written in another order; else each unit is loaded when its turn
  // comes.
  const bool load_first = course.forward || c.in == c.out;
  if (load_first)
    parallel_for(units, grain, [&](std::ptrdiff_t u) {
      const Unit& unit = plan_.units[u];
      const auto [begin, end] = positions(unit);
      load(begin, end);
      if (!course.forward) return;
      for (Index k = plan_.border_begin[u]; k < plan_.border_begin[u + 1]; ++k)
        std::fill_n(sweep.node(plan_.border[k].second), block_ * lanes, 0.0);
      double* v = scratch(space);
      for (Index s = unit.begin; s < unit.end; ++s) {
        if (s + 1 < unit.end) sweep.prefetch(s + 1);
        sweep.forward(s, 0, lanes, v);
      }
    });

  for (const Index s : plan_.top) load(f_.fronts[s].first, f_.fronts[s].first + f_.fronts[s].pivots);
  // Each lane goes its own way, so how many go together is free.
  const int sharers = grain == 1 ? threads() : 1;
  const int width = lanes == 1 ? 1 : static_cast<int>(round_up((lanes + sharers - 1) / sharers));
  parallel_for((lanes + width - 1) / width, 1, [&](std::ptrdiff_t group) {
    const int lane = static_cast<int>(group) * width, count = std::min(width, lanes - lane);
    double* v = scratch(space);
    const auto skipped = [&](Index s) { return f_.is_tail(s) && !course.tail; };
    const auto large = [&](Index s) {
      return lanes == 1 && f_.fronts[s].K() * f_.fronts[s].padded_rows() > kLargePanel;
    };
    if (course.forward) {
      for (const auto& [row, own] : plan_.border)
        for (int a = 0; a < block_; ++a) {
          const double* from = sweep.node(own) + a * lanes + lane;
          double* to = sweep.node(row) + a * lanes + lane;
          for (int i = 0; i < count; ++i) to[i] += from[i];
        }
      for (const Index s : plan_.top) {
        if (skipped(s)) continue;
        if (large(s) && rounded)
          sweep.forward_large(f_.fronts[s], rounded_panel(f_.fronts[s]), v);
        else if (large(s))
          sweep.forward_large(f_.fronts[s], panel(f_.fronts[s]), v);
        else
          sweep.forward(s, lane, count, v);
      }
    }
    if (course.backward)
      for (auto s = plan_.top.rbegin(); s != plan_.top.rend(); ++s) {
        if (skipped(*s)) continue;
        if (large(*s) && rounded)
          sweep.backward_large(f_.fronts[*s], rounded_panel(f_.fronts[*s]), v);
        else if (large(*s))
          sweep.backward_large(f_.fronts[*s], panel(f_.fronts[*s]), v);
        else
          sweep.backward(*s, lane, count, v);
      }
  });
  for (const Index s : plan_.top) save(f_.fronts[s].first, f_.fronts[s].first + f_.fronts[s].pivots);

  parallel_for(units, grain, [&](std::ptrdiff_t u) {
    const Unit& unit = plan_.units[u];
    const auto [begin, end] = positions(unit);
    if (course.backward) {
      if (!load_first) load(begin, end);
      for (Index k = plan_.border_begin[u]; k < plan_.border_begin[u + 1]; ++k)
        std::copy_n(sweep.node(plan_.border[k].first), block_ * lanes, sweep.node(plan_.border[k].second));
      double* v = scratch(space);
      for (Index s = unit.end; s-- > unit.begin;) {
        if (s > unit.begin) sweep.prefetch(s - 1);
        sweep.backward(s, 0, lanes, v);
      }
    }
    save(begin, end);
  });
}

void NativeBackend::solve(Eigen::Ref<MatX> B, Part part) const {
  const std::lock_guard<std::mutex> lock(solving_);
  for (Eigen::Index first = 0; first < B.cols(); first += kMostLanes) {
    Columns c;
    c.given = std::min(kMostLanes, B.cols() - first);
    c.in = c.out = B.data() + first * B.outerStride();
    c.in_ld = c.out_ld = B.outerStride();
    sweep(c, part);
  }
}

void NativeBackend::round_to_single() {
  rounded_.resize(values_.size());
  parallel_ranges(static_cast<std::ptrdiff_t>(values_.size()), 1 << 16,
                  [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                    std::copy(values_.data() + begin, values_.data() + end, rounded_.data() + begin);
                  });
}

void NativeBackend::solve_rounded(Eigen::Ref<VecX> b) const {
  const std::lock_guard<std::mutex> lock(solving_);
  Columns c;
  c.given = 1;
  c.in = c.out = b.data();
  c.in_ld = c.out_ld = b.size();
  sweep(c, Part::kAll, true);
}

void NativeBackend::extend_from_tail(const MatX& C, const MatX& Y, RowMatX& J, MatX& X) const {
  const std::lock_guard<std::mutex> lock(solving_);
  const Eigen::Index n = block_ * static_cast<Eigen::Index>(f_.order.size()), k = C.cols();
  J.resize(n, k);
  X.resize(n, Y.cols());
  for (Eigen::Index first = 0; first < k + Y.cols(); first += kMostLanes) {
    const Eigen::Index last = std::min(first + kMostLanes, k + Y.cols());
    Columns c;
    c.C = &C;
    c.J = &J;
    c.first_extended = std::min(first, k);
    c.extended = std::min(last, k) - c.first_extended;
    const Eigen::Index given = std::max(first, k) - k;
    c.given = last - first - c.extended;
    c.in = Y.data() + given * n;
    c.out = X.data() + given * n;
    c.in_ld = c.out_ld = n;
    sweep(c, Part::kFromTail);
  }
}

void NativeBackend::reserve_work(int lanes) const {
  const std::size_t size = static_cast<std::size_t>(block_) * static_cast<std::size_t>(plan_.solve_rows) *
                           static_cast<std::size_t>(lanes);
  if (work_.size() < size) work_.resize(size);
}

void NativeBackend::tail_schur(MatX& S) const {
  const Eigen::Index t = block_ * static_cast<Eigen::Index>(f_.tail);
  MatX Ltt = MatX::Zero(t, t);
  if (t > 0) {
    const ConstPanel L = panel(f_.fronts.back());
    for (Eigen::Index r = 0; r < t; ++r)
      for (Eigen::Index c = 0; c <= r; ++c) Ltt(r, c) = L.strip(r / kStrip)[kStrip * c + r % kStrip];
  }
  S.noalias() = Ltt * Ltt.transpose();
}

}  // namespace limber::sparse
