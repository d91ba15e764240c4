// Multifrontal Cholesky of our own. See docs/linear-solver.md.
#pragma once

#include <limber/linalg/cholesky_backend.hpp>
#include <limber/linalg/native/solve_tasks.hpp>

#include <mutex>
#include <new>

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
  // `block`: rows of a node. A matrix has block^2 values per block of its pattern.
  explicit NativeBackend(int block = 3) : block_(block) { stats.backend = "native"; }
  void analyze(const BlockPattern& pattern, std::span<const Index> tail,
               const std::string& ordering) override;
  void analyze_in_order(const BlockPattern& pattern, std::span<const Index> order) override;
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
  std::span<double> factor_values() override { return {values_.data(), values_.size()}; }
  std::span<const Index> order() const override { return f_.order; }

 private:
  struct Space {  // of one thread
    Buffer updates, panel;
  };
  struct Columns;
  struct Sweep;
  template <class P>
  struct OneSweep;

  ConstPanel panel(const Front& front) const { return {values_.data() + front.values, front.K(), front.M()}; }

  // With the rows that carry right-hand sides.
  Panel whole_panel(const Front& front) {
    return {values_.data() + front.values, front.K(), front.factor_M()};
  }

  RoundedPanel rounded_panel(const Front& front) const {
    return {rounded_.data() + front.values, front.K(), front.M()};
  }

  double* update(const Front& front, const Space& space) const {
    return (front.shared ? shared_updates_.data() : space.updates.data()) + front.update;
  }

  void set_elimination(const BlockPattern& pattern, Elimination elimination);
  void lay_out(const BlockPattern& pattern);
  void prepare(const BlockMatrix& A, int workers);
  void run(const Task& task, const BlockMatrix& A, Space& space);
  bool children_failed(Index s) const;
  bool has_failed(Index s);
  void factor_front(Index s, const BlockMatrix& A, Space& space);
  void factor_diagonal_tile(Index s, long j, const BlockMatrix& A, Space& space);
  void factor_tile(const Front& front, long i, long j, const BlockMatrix& A, Space& space);
  void update_tile(const Front& front, long i, long j, const Space& space) const;
  // X, which starts at (row0, col0) of the front: the blocks of A and what is carried there; the updates of
  // the children.
  void add_entries(const Front& front, long row0, long row1, long col0, long col1, const BlockMatrix& A,
                   double* X, long ld) const;
  void add_children(const Front& front, long row0, long row1, long col0, long col1, double* X, long ld,
                    const Space& space) const;
  FactorStatus status() const;

  MatX tail_factor() const;  // Ltt
  void load_carried(const Columns& columns, Index front, int lanes, double* x) const;
  void extend(const MatX& C, const MatX* Y, const MatX* T, Eigen::Index count, RowMatX& J, MatX& X) const;
  void sweep(const Columns& columns, Part part) const;
  void sweep_one(const Columns& columns, Part part, bool rounded) const;
  void reserve_work(int lanes, std::size_t more) const;

  const int block_;
  Elimination elimination_;
  Index carried_nodes_ = 0;                          // room that was asked for
  const Eigen::Ref<const MatX>* carried_ = nullptr;  // while factoring
  Fronts f_;
  Plan plan_;
  Schedule schedule_;
  long most_rows_ = 0, most_pivots_ = 0;  // of a front, padding counted
  Buffer values_, shared_updates_;
  BufferOf<float> rounded_;  // values_, if asked for
  std::vector<Space> spaces_;
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
