// Multifrontal Cholesky of our own. See docs/linear-solver.md.
#pragma once

#include <limber/linalg/cholesky_backend.hpp>
#include <limber/linalg/native/solve_tasks.hpp>

#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace limber::sparse {

// Numbers on cache lines, without a constructor's pass over them.
template <class Number>
class BufferOf {
 public:
  void resize(std::size_t size) {
    if (size == size_) return;
    data_.reset(size == 0
                    ? nullptr
                    : static_cast<Number*>(::operator new (size * sizeof(Number), std::align_val_t{64})));
    size_ = size;
  }
  Number* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(Number* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<Number, Free> data_;
  std::size_t size_ = 0;
};
using Buffer = BufferOf<double>;

class NativeBackend final : public CholeskyBackend {
 public:
  // `block`: rows of a node. A matrix has block^2 values per block of its pattern. `single`: factors are made
  // and kept in single precision; right-hand sides and the sums of sweeps are doubles all the same.
  explicit NativeBackend(int block = 3, bool single = false) : block_(block), single_(single) {
    stats.backend = "native";
  }
  void analyze(const BlockPattern& pattern, std::span<const Index> tail,
               const std::string& ordering) override;
  void analyze_in_order(const BlockPattern& pattern, std::span<const Index> order, Index tail) override;
  void set_single(bool single) override { single_ = single; }
  FactorStatus factor(const BlockMatrix& A) override;
  void carry(const BlockPattern& pattern, Index columns) override;
  FactorStatus factor_carrying(const BlockMatrix& A, const Eigen::Ref<const MatX>& B) override;
  void carried_to_tail(MatX& T) const override;
  void extend_carried(const MatX& C, const MatX& T, RowMatX& J, MatX& X) const override;
  void solve(Eigen::Ref<MatX> B, Part part) const override;
  void round_to_single() override;
  void solve_rounded(Eigen::Ref<VecX> b) const override;
  void tail_schur(MatX& S) const override;
  void extend_from_tail(const MatX& C, const MatX& Y, RowMatX& J, MatX& X) const override;
  std::span<double> factor_values() override {
    if (single_) return {};
    return {in_double_.values.data(), in_double_.values.size()};
  }
  std::span<const Index> order() const override { return f_.order; }

 private:
  template <class Real>
  struct Space {  // of one thread
    BufferOf<Real> updates, panel;
  };
  // The panels of L, and where they are made.
  template <class Real>
  struct Numbers {
    BufferOf<Real> values, shared_updates;
    std::vector<Space<Real>> spaces;
  };
  struct Columns;
  template <class Real>
  struct Sweep;
  template <class Real>
  struct OneSweep;

  template <class Real>
  const Numbers<Real>& numbers() const {
    if constexpr (std::is_same_v<Real, double>)
      return in_double_;
    else
      return in_single_;
  }
  template <class Real>
  Numbers<Real>& numbers() {
    return const_cast<Numbers<Real>&>(std::as_const(*this).numbers<Real>());
  }

  template <class Real>
  PanelOf<const Real> panel(const Front& front) const {
    return {numbers<Real>().values.data() + front.values, front.K(), front.M()};
  }

  // With the rows that carry right-hand sides.
  template <class Real>
  PanelOf<Real> whole_panel(const Front& front) {
    return {numbers<Real>().values.data() + front.values, front.K(), front.factor_M()};
  }

  template <class Real>
  Real* update(const Front& front, const Space<Real>& space) const {
    return (front.shared ? numbers<Real>().shared_updates.data() : space.updates.data()) + front.update;
  }

  void set_elimination(const BlockPattern& pattern, Elimination elimination);
  void lay_out(const BlockPattern& pattern);
  template <class Real>
  FactorStatus factor_in(const BlockMatrix& A);
  template <class Real>
  void prepare(const BlockMatrix& A, int workers);
  template <class Real>
  void run(const Task& task, const BlockMatrix& A, Space<Real>& space);
  bool children_failed(Index s) const;
  bool has_failed(Index s);
  template <class Real>
  void factor_front(Index s, const BlockMatrix& A, Space<Real>& space);
  template <class Real>
  void factor_diagonal_tile(Index s, long j, const BlockMatrix& A, Space<Real>& space);
  template <class Real>
  void factor_tile(const Front& front, long i, long j, const BlockMatrix& A, Space<Real>& space);
  template <class Real>
  void update_tile(const Front& front, long i, long j, const Space<Real>& space) const;
  // X, which starts at (row0, col0) of the front: the blocks of A and what is carried there; the updates of
  // the children.
  template <class Real>
  void add_entries(const Front& front, long row0, long row1, long col0, long col1, const BlockMatrix& A,
                   Real* X, long ld) const;
  template <class Real>
  void add_children(const Front& front, long row0, long row1, long col0, long col1, Real* X, long ld,
                    const Space<Real>& space) const;
  FactorStatus status() const;

  MatX tail_factor() const;  // Ltt
  template <class Real>
  void load_carried(const Columns& columns, Index front, int lanes, double* x) const;
  void extend(const MatX& C, const MatX* Y, const MatX* T, Eigen::Index count, RowMatX& J, MatX& X) const;
  void sweep(const Columns& columns, Part part, bool single) const;
  template <class Real>
  void sweep_many(const Columns& columns, Part part) const;
  void sweep_one(const Columns& columns, Part part, bool single) const;
  void reserve_work(int lanes, std::size_t more) const;

  // Entry (r, c) of the panel of a front, of whichever precision it is.
  double entry(const Front& front, long strip, long row, long column) const;

  const int block_;
  bool single_;
  Elimination elimination_;
  Index carried_nodes_ = 0;                          // room that was asked for
  const Eigen::Ref<const MatX>* carried_ = nullptr;  // while factoring
  Fronts f_;
  Plan plan_;
  Schedule schedule_;
  long most_rows_ = 0, most_pivots_ = 0;  // of a front, padding counted
  Numbers<double> in_double_;
  Numbers<float> in_single_;          // also a rounded copy of L, if asked for
  std::vector<double> floor_;         // per scalar column: what a pivot must exceed
  std::vector<BadPivot> bad_;         // per front
  std::vector<std::uint8_t> failed_;  // per front: it or a front below has a bad pivot
  mutable std::mutex solving_;        // guards the work space of solves
  mutable SolveTasks forward_, backward_;
  std::vector<std::size_t> large_space_;  // per front of the top: where its numbers lie in a solve
  std::size_t large_spaces_ = 0;
  mutable Buffer work_;
};

}  // namespace limber::sparse
