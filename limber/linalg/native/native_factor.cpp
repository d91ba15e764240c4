#include <limber/core/parallel.hpp>
#include <limber/linalg/native/native_backend.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>

namespace limber {

std::unique_ptr<CholeskyBackend> make_native_backend(bool single) {
  return std::make_unique<sparse::NativeBackend>(3, single);
}

namespace sparse {
namespace {

// Below this estimate [ns] waking other threads costs more than it brings.
constexpr double kFactorOnOneThread = 150e3;

// The rows [begin, end) of block i of a tiled front: blocks of pivots, then of rows below, padding counted.
std::pair<long, long> block_rows(const Front& front, long i) {
  const long P = pivot_blocks(front);
  if (i < P) return {i * kBlock, std::min(front.padded_pivots(), (i + 1) * kBlock)};
  const long begin = front.padded_pivots() + (i - P) * kBlock;
  return {begin, std::min(front.factor_rows(), begin + kBlock)};
}

}  // namespace

void NativeBackend::analyze(const BlockPattern& pattern, std::span<const Index> tail,
                            const std::string& ordering) {
  set_elimination(pattern, eliminate(pattern, tail, ordering, block_));
}

void NativeBackend::analyze_in_order(const BlockPattern& pattern, std::span<const Index> order, Index tail) {
  set_elimination(pattern, eliminate_in_order(pattern, order, tail, block_));
}

void NativeBackend::carry(const BlockPattern& pattern, Index columns) {
  const Index nodes = (columns + block_ - 1) / block_;
  if (nodes <= f_.carried) return;
  carried_nodes_ = nodes;
  lay_out(pattern);
}

void NativeBackend::set_elimination(const BlockPattern& pattern, Elimination e) {
  elimination_ = std::move(e);
  lay_out(pattern);
}

void NativeBackend::lay_out(const BlockPattern& pattern) {
  const Elimination& e = elimination_;
  f_ = make_fronts(pattern, e, block_, carried_nodes_);
  plan_ = make_plan(f_);
  schedule_ = Schedule();
  forward_ = forward_tasks(f_, plan_);
  backward_ = backward_tasks(f_, plan_);
  large_space_.clear();
  large_spaces_ = 0;
  for (const Index s : plan_.top) {
    large_space_.push_back(large_spaces_);
    if (is_large(f_.fronts[s]))
      large_spaces_ += static_cast<std::size_t>(f_.fronts[s].padded_rows() + kStrip * f_.fronts[s].K());
  }
  in_single_ = {};
  in_double_ = {};
  most_rows_ = most_pivots_ = 0;
  for (const Front& front : f_.fronts) {
    most_rows_ = std::max(most_rows_, front.padded_rows());
    most_pivots_ = std::max(most_pivots_, front.padded_pivots());
  }
  floor_.assign(static_cast<std::size_t>(block_) * f_.order.size() + kStrip, 0);
  bad_.assign(f_.fronts.size(), {});
  failed_.assign(f_.fronts.size(), 0);

  stats.ordering = e.ordering;
  stats.nnz = e.nnz;
  stats.flops = e.flops;
  stats.fronts = static_cast<long>(f_.fronts.size());
  stats.stored = static_cast<double>(f_.values);
}

template <class Real>
void NativeBackend::prepare(const BlockMatrix& A, int workers) {
  Numbers<Real>& own = numbers<Real>();
  if (schedule_.threads != workers) {
    schedule_ = make_schedule(f_, plan_, workers);
    in_single_.spaces.clear();
    in_double_.spaces.clear();
  }
  if (own.spaces.empty()) {
    own.values.resize(static_cast<std::size_t>(f_.values));
    own.shared_updates.resize(static_cast<std::size_t>(schedule_.shared_updates));
    own.spaces.resize(workers);
    for (Space<Real>& space : own.spaces) {
      space.updates.resize(static_cast<std::size_t>(plan_.thread_updates));
      space.panel.resize(static_cast<std::size_t>(plan_.thread_panel));
    }
    stats.bytes =
        sizeof(Real) * static_cast<double>(own.values.size() + own.shared_updates.size() +
                                           own.spaces.size() * (plan_.thread_updates + plan_.thread_panel)) +
        8.0 * static_cast<double>(floor_.size()) +
        4.0 * static_cast<double>(f_.row.size() + plan_.solve_row.size() + f_.order.size()) +
        static_cast<double>(f_.runs.size() * sizeof(Run) + f_.entries.size() * sizeof(Entry) +
                            f_.fronts.size() * sizeof(Front));
  }
  const double lost = single_ ? kLostPivotInSingle : kLostPivot;
  parallel_for(static_cast<std::ptrdiff_t>(f_.order.size()), 8192, [&](std::ptrdiff_t k) {
    const double* block = A.values.data() + block_ * block_ * f_.diagonal[k];
    for (int a = 0; a < block_; ++a) floor_[block_ * k + a] = std::max(0.0, lost * block[(block_ + 1) * a]);
  });
  std::fill(bad_.begin(), bad_.end(), BadPivot());
  std::fill(failed_.begin(), failed_.end(), std::uint8_t{0});
}

FactorStatus NativeBackend::factor_carrying(const BlockMatrix& A, const Eigen::Ref<const MatX>& B) {
  carried_ = &B;
  const FactorStatus status = factor(A);
  carried_ = nullptr;
  return status;
}

FactorStatus NativeBackend::factor(const BlockMatrix& A) {
  return single_ ? factor_in<float>(A) : factor_in<double>(A);
}

template <class Real>
FactorStatus NativeBackend::factor_in(const BlockMatrix& A) {
  const auto start = std::chrono::steady_clock::now();
  const int workers = plan_.cost < kFactorOnOneThread ? 1 : threads();
  prepare<Real>(A, workers);
  schedule_.graph.execute(workers, [&](Index task, int worker) {
    run<Real>(schedule_.tasks[task], A, numbers<Real>().spaces[worker]);
  });
  stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return status();
}

// The first bad pivot in elimination order. A bad pivot stops the fronts above it only, so this one is found
// whatever the order in which threads came to the others.
FactorStatus NativeBackend::status() const {
  for (std::size_t s = 0; s < bad_.size(); ++s)
    if (bad_[s].column >= 0) {
      const Index column = static_cast<Index>(bad_[s].column);
      return {false, f_.order[f_.fronts[s].first + column / block_], column % block_, bad_[s].value};
    }
  return {};
}

template <class Real>
void NativeBackend::run(const Task& task, const BlockMatrix& A, Space<Real>& space) {
  switch (task.kind) {
    case Task::Kind::kUnit:
      for (Index s = plan_.units[task.front].begin; s < plan_.units[task.front].end; ++s)
        factor_front(s, A, space);
      break;
    case Task::Kind::kFront:
      factor_front(task.front, A, space);
      break;
    case Task::Kind::kDiagonal:
      if (task.j == 0) failed_[task.front] = children_failed(task.front);
      if (!has_failed(task.front)) factor_diagonal_tile(task.front, task.j, A, space);
      break;
    case Task::Kind::kPivots:
      if (!has_failed(task.front)) factor_tile(f_.fronts[task.front], task.i, task.j, A, space);
      break;
    case Task::Kind::kUpdate:
      if (!has_failed(task.front)) update_tile(f_.fronts[task.front], task.i, task.j, space);
      break;
    case Task::Kind::kGate:
      break;
  }
}

bool NativeBackend::children_failed(Index s) const {
  const Front& front = f_.fronts[s];
  for (Index c = 0; c < front.children; ++c)
    if (failed_[f_.children[front.children_begin + c]]) return true;
  return false;
}

template <class Real>
void NativeBackend::add_entries(const Front& front, long row0, long row1, long col0, long col1,
                                const BlockMatrix& A, Real* X, long ld) const {
  const Entry* const end = f_.entries.data() + front.entries_begin + front.entries;
  const Entry* entry =
      std::lower_bound(end - front.entries, end, col0, [](const Entry& e, long col) { return e.col < col; });
  constexpr std::ptrdiff_t kAhead = 12;  // blocks that are on their way: the matrix is not in this order
  const std::size_t size = static_cast<std::size_t>(block_) * static_cast<std::size_t>(block_);
  const auto values = [&](const Entry& e) {
    return A.values.data() + size * static_cast<std::size_t>(e.block < 0 ? ~e.block : e.block);
  };
  for (; entry != end && entry->col < col1; ++entry) {
    if (end - entry > kAhead) {
      const double* next = values(entry[kAhead]);
      __builtin_prefetch(next);
      __builtin_prefetch(next + size - 1);
    }
    if (entry->row < row0 || entry->row >= row1) continue;
    Real* x = X + (entry->row - row0) + (entry->col - col0) * ld;
    const double* a = values(*entry);
    if (block_ == 1)
      *x += static_cast<Real>(*a);
    else if (entry->block < 0)
      for (int c = 0; c < 3; ++c)
        for (int r = 0; r < 3; ++r) x[r + c * ld] += static_cast<Real>(a[c + 3 * r]);
    else
      for (int c = 0; c < 3; ++c)
        for (int r = 0; r < 3; ++r) x[r + c * ld] += static_cast<Real>(a[r + 3 * c]);
  }
  if (carried_ == nullptr) return;
  const long first = front.padded_pivots() + front.M();
  const long begin = std::max(row0, first),
             last = std::min(row1, first + static_cast<long>(carried_->cols()));
  for (long col = col0; col < col1 && begin < last; ++col) {
    const Index node = f_.order[front.first + static_cast<Index>(col / block_)];
    const double* b = carried_->data() + static_cast<long>(block_) * node + col % block_;
    Real* x = X + (col - col0) * ld - row0;
    for (long r = begin; r < last; ++r) x[r] += static_cast<Real>(b[(r - first) * carried_->outerStride()]);
  }
}

template <class Real>
void NativeBackend::add_children(const Front& front, long row0, long row1, long col0, long col1, Real* X,
                                 long ld, const Space<Real>& space) const {
  for (Index c = 0; c < front.children; ++c) {
    const Front& child = f_.fronts[f_.children[front.children_begin + c]];
    const UpdateView<Real> view{update(child, space),
                                child.factor_M(),
                                child.M(),
                                f_.runs.data() + child.runs_begin,
                                child.runs,
                                block_};
    kernels().factor_in<Real>().add_update(view, row0, row1, col0, col1, X, ld);
  }
}

template <class Real>
void NativeBackend::factor_front(Index s, const BlockMatrix& A, Space<Real>& space) {
  const Front& front = f_.fronts[s];
  if ((failed_[s] = children_failed(s))) return;
  const FactorKernels<Real>& k = kernels().factor_in<Real>();
  const PanelOf<Real> L = whole_panel<Real>(front);
  const PanelOf<const Real> done{L.values, L.K, L.M};
  const long K = front.K(), rows = front.factor_rows(), strips = L.strips();
  Real* X = space.panel.data();
  for (long c0 = 0; c0 < K; c0 += kBlock) {
    const long c1 = std::min(K, c0 + kBlock), ld = rows - c0, strip = c0 / kStrip;
    std::fill(X, X + ld * round_up(c1 - c0), Real{0});
    add_entries(front, c0, rows, c0, c1, A, X, ld);
    add_children(front, c0, rows, c0, c1, X, ld, space);
    k.multiply(done, strip, strips, strip, round_up(c1) / kStrip, 0, c0, true, true, X, ld);
    bad_[s] = k.factor(L, c0, c1, strips, X, ld, floor_.data() + static_cast<long>(block_) * front.first);
    if ((failed_[s] = bad_[s].column >= 0)) return;
  }
  if (front.parent == -1) return;  // nobody takes an update
  Real* U = update(front, space);
  // Columns of carried rows are products of right-hand sides with each other: nobody needs them.
  const long first = L.pivot_strips(), block_strips = kBlock / kStrip, last = front.padded_rows() / kStrip;
  for (long j = 0; first + j * block_strips < last; ++j) {
    const long begin = first + j * block_strips, end = std::min(last, begin + block_strips);
    Real* C = U + update_offset(front.factor_M(), j);
    const long ld = update_ld(front.factor_M(), j);
    k.multiply(done, begin, strips, begin, end, 0, K, true, false, C, ld);
    add_children(front, begin * kStrip, rows, begin * kStrip, end * kStrip, C, ld, space);
  }
}

template <class Real>
void NativeBackend::factor_diagonal_tile(Index s, long j, const BlockMatrix& A, Space<Real>& space) {
  const Front& front = f_.fronts[s];
  const PanelOf<Real> L = whole_panel<Real>(front);
  const auto [begin, end] = block_rows(front, j);
  const long c1 = std::min(front.K(), end);
  Real* X = space.panel.data();
  std::fill(X, X + kBlock * (end - begin), Real{0});
  add_entries(front, begin, end, begin, c1, A, X, kBlock);
  add_children(front, begin, end, begin, c1, X, kBlock, space);
  kernels().factor_in<Real>().multiply({L.values, L.K, L.M}, begin / kStrip, end / kStrip, begin / kStrip,
                                       end / kStrip, 0, begin, true, true, X, kBlock);
  bad_[s] = kernels().factor_in<Real>().factor(L, begin, c1, end / kStrip, X, kBlock,
                                               floor_.data() + static_cast<long>(block_) * front.first);
  if (bad_[s].column >= 0) std::atomic_ref<std::uint8_t>(failed_[s]).store(1, std::memory_order_relaxed);
}

// Tiles of earlier columns may still run when a later diagonal tile fails; whether they do is all the same.
bool NativeBackend::has_failed(Index s) {
  return std::atomic_ref<std::uint8_t>(failed_[s]).load(std::memory_order_relaxed) != 0;
}

template <class Real>
void NativeBackend::factor_tile(const Front& front, long i, long j, const BlockMatrix& A,
                                Space<Real>& space) {
  const PanelOf<Real> L = whole_panel<Real>(front);
  const auto [row0, row1] = block_rows(front, i);
  const auto [col0, col_end] = block_rows(front, j);
  const long col1 = std::min(front.K(), col_end);
  Real* X = space.panel.data();
  std::fill(X, X + kBlock * (col_end - col0), Real{0});
  add_entries(front, row0, row1, col0, col1, A, X, kBlock);
  add_children(front, row0, row1, col0, col1, X, kBlock, space);
  kernels().factor_in<Real>().multiply({L.values, L.K, L.M}, row0 / kStrip, row1 / kStrip, col0 / kStrip,
                                       col_end / kStrip, 0, col0, false, true, X, kBlock);
  kernels().factor_in<Real>().solve_rows(L, col0, col1, row0 / kStrip, row1 / kStrip, X, kBlock);
}

template <class Real>
void NativeBackend::update_tile(const Front& front, long i, long j, const Space<Real>& space) const {
  const long P = pivot_blocks(front);
  const auto [row0, row1] = block_rows(front, P + i);
  const long col0 = block_rows(front, P + j).first;
  const long col1 = std::min(block_rows(front, P + j).second, front.padded_rows());
  if (col0 >= col1) return;  // of carried rows only: see factor_front
  const long ld = update_ld(front.factor_M(), j);
  Real* C = update(front, space) + update_offset(front.factor_M(), j) + (i - j) * kBlock;
  kernels().factor_in<Real>().multiply(panel<Real>(front), row0 / kStrip, row1 / kStrip, col0 / kStrip,
                                       col1 / kStrip, 0, front.K(), i == j, false, C, ld);
  add_children(front, row0, row1, col0, col1, C, ld, space);
}

}  // namespace sparse
}  // namespace limber
