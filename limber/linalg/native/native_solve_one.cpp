// Solves with one right-hand side: rows lie in the SIMD lanes, threads share the tree.
#include <limber/core/parallel.hpp>
#include <limber/linalg/native/native_sweep.hpp>

#include <algorithm>

namespace limber::sparse {

// One pass over the tree. x: rows of the vector and own rows of items, block_ numbers per node; Real: of the
// numbers of L, or of its rounded copy.
template <class Real>
struct NativeBackend::OneSweep {
  using P = PanelOf<const Real>;
  const NativeBackend& b;
  const Columns& c;
  const Course course;
  double* x;

  double* node(Index row) const { return x + static_cast<long>(b.block_) * row; }
  P panel(const Front& front) const { return b.panel<Real>(front); }
  const SweepKernels<P>& side(const P& L) const { return kernels().sweeps(L); }

  // --- one front. `v`: its pivots and rows, with their padding; in the backward sweep the sums behind them.
  void forward(Index s, double* v) const {
    const Front& front = b.f_.fronts[s];
    const P L = panel(front);
    begin_forward(front, v);
    side(L).forward_pivots(L, 0, front.K(), v);
    side(L).forward_rows(L, 0, front.K(), L.pivot_strips(), L.strips(), v, v + front.padded_pivots());
    end_forward(front, v);
  }
  void begin_forward(const Front& front, double* v) const {
    std::copy_n(node(front.first), front.K(), v);
    std::fill(v + front.K(), v + front.padded_rows(), 0.0);
  }
  void end_forward(const Front& front, const double* v) const {
    std::copy_n(v, front.K(), node(front.first));
    const Index* rows = b.plan_.solve_row.data() + front.rows_begin;
    v += front.padded_pivots();
    if (b.block_ == 1)
      for (Index r = 0; r < front.rows; ++r) x[rows[r]] += v[r];
    else
      for (Index r = 0; r < front.rows; ++r, v += 3) {
        double* to = x + 3L * rows[r];
        for (int a = 0; a < 3; ++a) to[a] += v[a];
      }
  }

  void backward(Index s, double* v) const {
    const Front& front = b.f_.fronts[s];
    const P L = panel(front);
    double* sums = begin_backward(front, v);
    side(L).backward_rows(L, 0, front.K(), L.pivot_strips(), L.strips(), v + front.padded_pivots(), sums);
    side(L).backward_pivots(L, 0, front.K(), v, sums);
    std::copy_n(v, front.K(), node(front.first));
  }
  double* begin_backward(const Front& front, double* v) const {
    std::copy_n(node(front.first), front.K(), v);
    std::fill(v + front.K(), v + front.padded_pivots(), 0.0);
    double* to = v + front.padded_pivots();
    const Index* rows = b.plan_.solve_row.data() + front.rows_begin;
    if (b.block_ == 1)
      for (Index r = 0; r < front.rows; ++r) *to++ = x[rows[r]];
    else
      for (Index r = 0; r < front.rows; ++r, to += 3) std::copy_n(x + 3L * rows[r], 3, to);
    double* sums = v + front.padded_rows();
    std::fill(to, sums, 0.0);
    std::fill(sums, sums + kStrip * front.K(), 0.0);
    return sums;
  }

  // --- items
  void load(Index begin, Index end) const { c.load(b.f_, course.input_ordered, begin, end, 1, x); }
  void save(Index begin, Index end) const { c.save(b.f_, course.output_ordered, begin, end, 1, x); }
  void clear_border(std::size_t item) const {
    for (Index k = b.plan_.border_begin[item]; k < b.plan_.border_begin[item + 1]; ++k)
      std::fill_n(node(b.plan_.border[k].second), b.block_, 0.0);
  }
  void fetch_border(std::size_t item) const {
    for (Index k = b.plan_.border_begin[item]; k < b.plan_.border_begin[item + 1]; ++k)
      std::copy_n(node(b.plan_.border[k].first), b.block_, node(b.plan_.border[k].second));
  }
  std::size_t item_of_top(Index k) const { return b.plan_.units.size() + static_cast<std::size_t>(k); }
  bool skipped(Index s) const { return b.f_.is_tail(s) && !course.tail; }
  double* large_space(Index k) const {
    return x + round_up(static_cast<long>(b.block_) * b.plan_.solve_rows) +
           b.large_space_[static_cast<std::size_t>(k)];
  }
  double* scratch() const {
    return solve_scratch(static_cast<std::size_t>(b.most_rows_ + kStrip * b.most_pivots_));
  }

  void forward_unit(Index u) const {
    const Unit& unit = b.plan_.units[u];
    const auto [begin, end] = positions(b.f_, unit);
    load(begin, end);
    clear_border(static_cast<std::size_t>(u));
    double* v = scratch();
    for (Index s = unit.begin; s < unit.end; ++s) {
      if (s + 1 < unit.end) prefetch_panel(panel(b.f_.fronts[s + 1]));
      forward(s, v);
    }
  }
  void backward_unit(Index u) const {
    const Unit& unit = b.plan_.units[u];
    const auto [begin, end] = positions(b.f_, unit);
    fetch_border(static_cast<std::size_t>(u));
    double* v = scratch();
    for (Index s = unit.end; s-- > unit.begin;) {
      if (s > unit.begin) prefetch_panel(panel(b.f_.fronts[s - 1]));
      b.load_carried<Real>(c, s, 1, x);
      backward(s, v);
    }
    save(begin, end);
  }
  // Pivots of front k of the top, with what the items below it have for them and for its rows.
  void gather(Index k) const {
    const Front& front = b.f_.fronts[b.plan_.top[k]];
    load(front.first, front.first + front.pivots);
    clear_border(item_of_top(k));
    for (Index j = b.plan_.taken_begin[k]; j < b.plan_.taken_begin[k + 1]; ++j) {
      const double* from = node(b.plan_.taken[j].second);
      double* to = node(b.plan_.taken[j].first);
      for (int a = 0; a < b.block_; ++a) to[a] += from[a];
    }
  }

  void run_forward(const SolveTask& task) const {
    if (task.kind == SolveTask::Kind::kUnit) return forward_unit(task.item);
    const Index s = b.plan_.top[task.item];
    const Front& front = b.f_.fronts[s];
    if (task.kind == SolveTask::Kind::kFront || task.kind == SolveTask::Kind::kBegin) gather(task.item);
    if (skipped(s)) return;
    if (task.kind == SolveTask::Kind::kFront) return forward(s, scratch());
    const P L = panel(front);
    double* v = large_space(task.item);
    const long c0 = task.block * kSolveBlock, c1 = std::min(front.K(), c0 + kSolveBlock);
    if (task.kind == SolveTask::Kind::kBegin) begin_forward(front, v);
    if (task.kind == SolveTask::Kind::kPivots) side(L).forward_pivots(L, c0, c1, v);
    if (task.kind == SolveTask::Kind::kPiece) {
      const long first = round_up(c1) / kStrip + task.piece * kPieceStrips;
      side(L).forward_rows(L, c0, c1, first, std::min(L.strips(), first + kPieceStrips), v,
                           v + kStrip * first);
    }
    if (task.kind == SolveTask::Kind::kEnd) end_forward(front, v);
  }

  void run_backward(const SolveTask& task) const {
    if (task.kind == SolveTask::Kind::kUnit) return backward_unit(task.item);
    const Index s = b.plan_.top[task.item];
    const Front& front = b.f_.fronts[s];
    if (task.kind == SolveTask::Kind::kFront || task.kind == SolveTask::Kind::kBegin) {
      fetch_border(item_of_top(task.item));
      b.load_carried<Real>(c, s, 1, x);
    }
    if (!skipped(s)) {
      const P L = panel(front);
      double* v = large_space(task.item);
      double* sums = v + front.padded_rows();
      const long c0 = task.block * kSolveBlock, c1 = std::min(front.K(), c0 + kSolveBlock);
      if (task.kind == SolveTask::Kind::kFront) backward(s, scratch());
      if (task.kind == SolveTask::Kind::kBegin) begin_backward(front, v);
      if (task.kind == SolveTask::Kind::kPiece) {
        const long begin = c0 + task.piece * kPieceColumns, end = std::min(c1, begin + kPieceColumns);
        const long first = round_up(c1) / kStrip;
        side(L).backward_rows(L, begin, end, first, L.strips(), v + kStrip * first, sums + kStrip * begin);
      }
      if (task.kind == SolveTask::Kind::kPivots) side(L).backward_pivots(L, c0, c1, v, sums + kStrip * c0);
      if (task.kind == SolveTask::Kind::kEnd) std::copy_n(v, front.K(), node(front.first));
    }
    if (task.kind == SolveTask::Kind::kFront || task.kind == SolveTask::Kind::kEnd)
      save(front.first, front.first + front.pivots);
  }

  // By one thread in the order of the list, by several as they come: every sum is the same.
  template <class Run>
  void all(SolveTasks& work, Run&& run) const {
    const int workers = b.f_.values < kSolveOnOneThread ? 1 : threads();
    if (workers == 1) {
      for (const SolveTask& task : work.tasks) run(task);
    } else {
      work.graph.execute(workers, [&](Index task, int) { run(work.tasks[task]); });
    }
  }

  void run() const {
    if (course.forward) {
      all(b.forward_, [&](const SolveTask& task) { run_forward(task); });
    } else {
      load(0, static_cast<Index>(b.f_.order.size()));
    }
    if (course.backward)
      all(b.backward_, [&](const SolveTask& task) { run_backward(task); });
    else
      save(0, static_cast<Index>(b.f_.order.size()));
  }
};

void NativeBackend::sweep_one(const Columns& columns, Part part, bool single) const {
  reserve_work(1, large_spaces_);
  if (single)
    OneSweep<float>{*this, columns, Course(part), work_.data()}.run();
  else
    OneSweep<double>{*this, columns, Course(part), work_.data()}.run();
}

}  // namespace limber::sparse
