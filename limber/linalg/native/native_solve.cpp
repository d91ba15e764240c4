// Solves with many right-hand sides, and what solves with one and with many have in common.
#include <limber/core/parallel.hpp>
#include <limber/linalg/native/native_sweep.hpp>
#include <limber/linalg/tall.hpp>

#include <algorithm>

namespace limber::sparse {
namespace {

constexpr Eigen::Index kMostLanes = 32;  // right-hand sides of one sweep
constexpr Eigen::Index kFewRows = 96;    // of a tail, whose product is not worth pieces

}  // namespace

// One pass over the tree with `lanes` right-hand sides. x: rows of the vector and own rows of items,
// block_ per node, `lanes` doubles each.
template <class Real>
struct NativeBackend::Sweep {
  const NativeBackend& b;
  int lanes;
  double* x;

  double* node(Index row) const { return x + static_cast<long>(b.block_) * row * lanes; }

  // The lanes [lane, lane + width); `v` is scratch.
  void forward(Index s, int lane, int width, double* v) const {
    const Front& front = b.f_.fronts[s];
    const PanelOf<const Real> L = b.panel<Real>(front);
    kernels().sweeps(L).forward(L, width, lanes, node(front.first) + lane, x + lane, places(front, v));
  }
  void backward(Index s, int lane, int width, double* v) const {
    const Front& front = b.f_.fronts[s];
    const PanelOf<const Real> L = b.panel<Real>(front);
    kernels().sweeps(L).backward(L, width, lanes, node(front.first) + lane, x + lane, places(front, v));
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

  // Own rows of an item: to zero, or what the vector has there; and what front k of the top takes over.
  void clear_border(std::size_t item, int lane, int width) const {
    for (Index k = b.plan_.border_begin[item]; k < b.plan_.border_begin[item + 1]; ++k)
      for (int a = 0; a < b.block_; ++a)
        std::fill_n(node(b.plan_.border[k].second) + a * lanes + lane, width, 0.0);
  }
  void fetch_border(std::size_t item, int lane, int width) const {
    for (Index k = b.plan_.border_begin[item]; k < b.plan_.border_begin[item + 1]; ++k)
      for (int a = 0; a < b.block_; ++a)
        std::copy_n(node(b.plan_.border[k].first) + a * lanes + lane, width,
                    node(b.plan_.border[k].second) + a * lanes + lane);
  }
  void take_over(std::size_t k, int lane, int width) const {
    for (Index j = b.plan_.taken_begin[k]; j < b.plan_.taken_begin[k + 1]; ++j)
      for (int a = 0; a < b.block_; ++a) {
        const double* from = node(b.plan_.taken[j].second) + a * lanes + lane;
        double* to = node(b.plan_.taken[j].first) + a * lanes + lane;
        for (int i = 0; i < width; ++i) to[i] += from[i];
      }
  }
};

void NativeBackend::sweep(const Columns& c, Part part, bool single) const {
  if (c.count() == 1) return sweep_one(c, part, single);
  if (single)
    sweep_many<float>(c, part);
  else
    sweep_many<double>(c, part);
}

template <class Real>
void NativeBackend::sweep_many(const Columns& c, Part part) const {
  const Course course(part);
  const int lanes = static_cast<int>(round_up(c.count())), wide = kernels().register_lanes;
  const int used = (static_cast<int>(c.count()) + wide - 1) / wide * wide;  // the others stand by
  reserve_work(lanes, 0);
  const Sweep<Real> sweep{*this, lanes, work_.data()};
  const auto load = [&](Index begin, Index end) {  // of fronts
    c.load(f_, course.input_ordered, f_.fronts[begin].first,
           f_.fronts[end - 1].first + f_.fronts[end - 1].pivots, lanes, work_.data());
    for (Index s = begin; s < end; ++s) load_carried<Real>(c, s, lanes, work_.data());
  };
  const auto save = [&](Index begin, Index end) {
    c.save(f_, course.output_ordered, begin, end, lanes, work_.data());
  };
  const std::size_t units = plan_.units.size();
  const std::size_t space = static_cast<std::size_t>(most_rows_ + kStrip * most_pivots_);
  const std::ptrdiff_t grain =
      f_.values * lanes < kSolveOnOneThread ? static_cast<std::ptrdiff_t>(units) + 1 : 1;
  // All that is read before anything is written in another order; else each unit is loaded when its turn
  // comes.
  const bool load_first = course.forward || c.in == c.out;
  if (load_first)
    parallel_for(static_cast<std::ptrdiff_t>(units), grain, [&](std::ptrdiff_t u) {
      const Unit& unit = plan_.units[u];
      load(unit.begin, unit.end);
      if (!course.forward) return;
      sweep.clear_border(static_cast<std::size_t>(u), 0, used);
      double* v = solve_scratch(space);
      for (Index s = unit.begin; s < unit.end; ++s) {
        if (s + 1 < unit.end) prefetch_panel(panel<Real>(f_.fronts[s + 1]));
        sweep.forward(s, 0, used, v);
      }
    });

  for (const Index s : plan_.top) load(s, s + 1);
  // Each lane goes its own way, so how many go together is free.
  const int sharers = grain == 1 ? threads() : 1;
  const int width = ((used + sharers - 1) / sharers + wide - 1) / wide * wide;
  parallel_for((used + width - 1) / width, 1, [&](std::ptrdiff_t group) {
    const int lane = static_cast<int>(group) * width, count = std::min(width, used - lane);
    double* v = solve_scratch(space);
    const auto skipped = [&](Index s) { return f_.is_tail(s) && !course.tail; };
    for (std::size_t k = 0; course.forward && k < plan_.top.size(); ++k) {
      sweep.clear_border(units + k, lane, count);
      sweep.take_over(k, lane, count);
      if (!skipped(plan_.top[k])) sweep.forward(plan_.top[k], lane, count, v);
    }
    for (std::size_t k = plan_.top.size(); course.backward && k-- > 0;) {
      sweep.fetch_border(units + k, lane, count);
      if (!skipped(plan_.top[k])) sweep.backward(plan_.top[k], lane, count, v);
    }
  });
  for (const Index s : plan_.top) save(f_.fronts[s].first, f_.fronts[s].first + f_.fronts[s].pivots);

  parallel_for(static_cast<std::ptrdiff_t>(units), grain, [&](std::ptrdiff_t u) {
    const Unit& unit = plan_.units[u];
    const auto [begin, end] = positions(f_, unit);
    if (course.backward) {
      if (!load_first) load(unit.begin, unit.end);
      sweep.fetch_border(static_cast<std::size_t>(u), 0, used);
      double* v = solve_scratch(space);
      for (Index s = unit.end; s-- > unit.begin;) {
        if (s > unit.begin) prefetch_panel(panel<Real>(f_.fronts[s - 1]));
        sweep.backward(s, 0, used, v);
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
    sweep(c, part, single_);
  }
}

void NativeBackend::round_to_single() {
  if (single_) return;
  const Buffer& exact = in_double_.values;
  in_single_.values.resize(exact.size());
  parallel_ranges(static_cast<std::ptrdiff_t>(exact.size()), 1 << 16,
                  [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                    std::copy(exact.data() + begin, exact.data() + end, in_single_.values.data() + begin);
                  });
}

void NativeBackend::solve_rounded(Eigen::Ref<VecX> b) const {
  const std::lock_guard<std::mutex> lock(solving_);
  Columns c;
  c.given = 1;
  c.in = c.out = b.data();
  c.in_ld = c.out_ld = b.size();
  sweep_one(c, Part::kAll, true);
}

void NativeBackend::extend(const MatX& C, const MatX* Y, const MatX* T, Eigen::Index count, RowMatX& J,
                           MatX& X) const {
  const std::lock_guard<std::mutex> lock(solving_);
  const Eigen::Index n = block_ * static_cast<Eigen::Index>(f_.order.size()), k = C.cols();
  J.resize(n, k);
  X.resize(n, count);
  for (Eigen::Index first = 0; first < k + count; first += kMostLanes) {
    const Eigen::Index last = std::min(first + kMostLanes, k + count);
    Columns c;
    c.C = &C;
    c.J = &J;
    c.first_extended = std::min(first, k);
    c.extended = std::min(last, k) - c.first_extended;
    const Eigen::Index given = std::max(first, k) - k;
    c.given = last - first - c.extended;
    if (Y != nullptr) {
      c.in = Y->data() + given * n;
    } else {
      c.carried = given;
      c.T = T;
    }
    c.out = X.data() + given * n;
    c.in_ld = c.out_ld = n;
    sweep(c, Part::kFromTail, single_);
  }
}

void NativeBackend::extend_from_tail(const MatX& C, const MatX& Y, RowMatX& J, MatX& X) const {
  extend(C, &Y, nullptr, Y.cols(), J, X);
}

void NativeBackend::extend_carried(const MatX& C, const MatX& T, RowMatX& J, MatX& X) const {
  extend(C, nullptr, &T, T.cols(), J, X);
}

// The rows of the panel below those of the matrix are (L^-1 B)^T, column by column of L.
template <class Real>
void NativeBackend::load_carried(const Columns& columns, Index s, int lanes, double* x) const {
  if (columns.carried < 0 || f_.is_tail(s)) return;
  const Front& front = f_.fronts[s];
  const PanelOf<const Real> L = panel<Real>(front);
  x += static_cast<long>(block_) * front.first * lanes + columns.extended;
  for (Eigen::Index i = 0; i < columns.given; ++i, ++x) {
    const long row = front.M() + columns.carried + i;
    const Real* from = L.strip(L.pivot_strips() + row / kStrip) + row % kStrip;
    for (long c = 0; c < L.K; ++c) x[c * lanes] = from[kStrip * c];
  }
}
template void NativeBackend::load_carried<double>(const Columns&, Index, int, double*) const;
template void NativeBackend::load_carried<float>(const Columns&, Index, int, double*) const;

double NativeBackend::entry(const Front& front, long strip, long row, long column) const {
  const auto of = [&](const auto& L) { return static_cast<double>(L.strip(strip)[kStrip * column + row]); };
  return single_ ? of(panel<float>(front)) : of(panel<double>(front));
}

// Ltt times what is left in the panel of the tail.
void NativeBackend::carried_to_tail(MatX& T) const {
  if (f_.tail == 0) return;
  const Front& front = f_.fronts.back();
  const long first = front.padded_pivots() / kStrip;
  MatX Y(front.K(), T.cols());
  for (Eigen::Index i = 0; i < T.cols(); ++i) {
    const long row = front.M() + i;
    for (long c = 0; c < front.K(); ++c) Y(c, i) = entry(front, first + row / kStrip, row % kStrip, c);
  }
  T.noalias() = tail_factor() * Y;
}

void NativeBackend::reserve_work(int lanes, std::size_t more) const {
  const std::size_t size = static_cast<std::size_t>(round_up(static_cast<long>(block_) * plan_.solve_rows)) *
                               static_cast<std::size_t>(lanes) +
                           more;
  if (work_.size() < size) work_.resize(size);
}

MatX NativeBackend::tail_factor() const {
  const Eigen::Index t = block_ * static_cast<Eigen::Index>(f_.tail);
  MatX Ltt = MatX::Zero(t, t);
  for (Eigen::Index r = 0; r < t; ++r)
    for (Eigen::Index c = 0; c <= r; ++c) Ltt(r, c) = entry(f_.fronts.back(), r / kStrip, r % kStrip, c);
  return Ltt;
}

void NativeBackend::tail_schur(MatX& S) const {
  const MatX Ltt = tail_factor();
  const Eigen::Index t = Ltt.rows();
  if (t <= kFewRows) {
    S.noalias() = Ltt * Ltt.transpose();
    return;
  }
  // Column k of the transposed factor ends at row k.
  const MatX U = Ltt.transpose();
  S.resize(t, t);
  for (Eigen::Index a = 0; a < t; a += kFewRows) {
    const Eigen::Index width = std::min(kFewRows, t - a), rows = a + width;
    S.block(a, a, t - a, width) = rows_product(U.block(0, a, rows, t - a), U.block(0, a, rows, width));
  }
  for (Eigen::Index c = 1; c < t; ++c)
    for (Eigen::Index r = 0; r < c; ++r) S(r, c) = S(c, r);
}

}  // namespace limber::sparse
