// The factorisation by CHOLMOD's supernodal module. The matrix is handed over already permuted, so that
// CHOLMOD neither orders nor copies it.
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/cholesky_backend.hpp>
#include <limber/linalg/elimination.hpp>

#include <cholmod.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

// Present in OpenBLAS only.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace limber {
namespace {

// Columns of a solve that go to one thread; fixed, so that bits do not depend on the thread count.
constexpr Eigen::Index kPiece = 16;

struct Common {
  cholmod_common c;
  Common() {
    cholmod_start(&c);
    c.supernodal = CHOLMOD_SUPERNODAL;
    c.nmethods = 1;
    c.method[0].ordering = CHOLMOD_NATURAL;
    c.postorder = 0;
    c.print = 0;
    c.error_handler = nullptr;
  }
  ~Common() { cholmod_finish(&c); }
  Common(const Common&) = delete;
  Common& operator=(const Common&) = delete;
};

// CHOLMOD starts OpenMP threads for loops of a few microseconds, however few cores there are. While this
// object lives it starts none.
class NoThreads {
 public:
  NoThreads() : levels_(omp_get_max_active_levels()) { omp_set_max_active_levels(0); }
  ~NoThreads() { omp_set_max_active_levels(levels_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  int levels_;
};

// Borrows the columns of a matrix for CHOLMOD.
cholmod_dense borrow(double* x, std::size_t rows, std::size_t cols) {
  cholmod_dense d{};
  d.nrow = rows;
  d.ncol = cols;
  d.nzmax = rows * cols;
  d.d = rows;
  d.x = x;
  d.xtype = CHOLMOD_REAL;
  d.dtype = CHOLMOD_DOUBLE;
  return d;
}

class CholmodBackend final : public CholeskyBackend {
 public:
  CholmodBackend() { stats.backend = "cholmod"; }
  ~CholmodBackend() override { cholmod_free_factor(&L_, &common_.c); }

  void analyze(const BlockPattern& p, std::span<const Index> tail, const std::string& ordering) override {
    const sparse::Elimination e = sparse::eliminate(p, tail, ordering);
    order_ = e.order;
    head_ = 3 * static_cast<Eigen::Index>(p.n - e.tail);
    stats.ordering = e.ordering;
    stats.flops = e.flops;
    permute(p, e);
    cholmod_free_factor(&L_, &common_.c);
    stats.nnz = e.nnz;
    if (p.n == 0) return;
    cholmod_sparse A = borrow_matrix();
    L_ = cholmod_analyze(&A, &common_.c);
    check("analysis");
  }

  FactorStatus factor(const BlockMatrix& A) override {
    if (openblas_set_num_threads) openblas_set_num_threads(1);
    parallel_for(static_cast<std::ptrdiff_t>(source_.size()), 16384,
                 [&](std::ptrdiff_t k) { values_[k] = A.values[source_[k]]; });
    if (values_.empty()) return {};
    if (const FactorStatus bad = find_not_finite(); !bad.ok) return bad;
    cholmod_sparse S = borrow_matrix();
    common_.c.status = CHOLMOD_OK;
    const NoThreads no_threads;
    cholmod_factorize(&S, L_, &common_.c);
    if (common_.c.status == CHOLMOD_NOT_POSDEF) return failure(static_cast<Eigen::Index>(L_->minor));
    check("factorisation");
    stats.bytes = static_cast<double>(common_.c.memory_usage) + 12.0 * static_cast<double>(values_.size());
    return find_lost_pivot();
  }

  void solve(Eigen::Ref<MatX> B, Part part) const override {
    if (B.rows() == 0) return;
    const Eigen::Index pieces = (B.cols() + kPiece - 1) / kPiece;
    parallel_for(pieces, 1, [&](std::ptrdiff_t piece) {
      const Eigen::Index first = piece * kPiece, cols = std::min(kPiece, B.cols() - first);
      MatX X(B.rows(), cols), E(std::max<std::size_t>(1, L_->maxesize), cols);
      Common common;
      cholmod_dense x = borrow(X.data(), X.rows(), cols), work = borrow(E.data(), E.rows(), cols);
      if (part == Part::kFromTail)
        X = B.middleCols(first, cols);
      else
        for (std::size_t k = 0; k < order_.size(); ++k)
          X.middleRows<3>(3 * k) = B.block(3 * static_cast<Eigen::Index>(order_[k]), first, 3, cols);
      auto tail = X.bottomRows(X.rows() - head_);
      if (part == Part::kFromTail) tail = tail_factor().transpose() * MatX(tail);
      if (part != Part::kFromTail) cholmod_super_lsolve(L_, &x, &work, &common.c);
      if (part != Part::kToTail) cholmod_super_ltsolve(L_, &x, &work, &common.c);
      if (part == Part::kToTail) tail = tail_factor() * MatX(tail);
      if (part == Part::kToTail)
        B.middleCols(first, cols) = X;
      else
        for (std::size_t k = 0; k < order_.size(); ++k)
          B.block(3 * static_cast<Eigen::Index>(order_[k]), first, 3, cols) = X.middleRows<3>(3 * k);
    });
  }

  void tail_schur(MatX& S) const override {
    const MatX Ltt = tail_factor();
    S.noalias() = Ltt * Ltt.transpose();
  }

  void extend_from_tail(const MatX& C, const MatX& Y, RowMatX& J, MatX& X) const override {
    // L^T x = [y; Ltt^T c] has xt = c and Lqq^T xq = y - Ltq^T c.
    MatX all(Y.rows(), C.cols() + Y.cols());
    all.leftCols(C.cols()).setZero();
    all.bottomLeftCorner(C.rows(), C.cols()) = C;
    all.rightCols(Y.cols()) = Y;
    solve(all, Part::kFromTail);
    J = all.leftCols(C.cols());
    X = all.rightCols(Y.cols());
  }

  std::span<double> factor_values() override {
    return L_ && L_->x ? std::span<double>(static_cast<double*>(L_->x), L_->xsize) : std::span<double>();
  }
  std::span<const Index> order() const override { return order_; }

 private:
  // The lower triangle of P A P^T, column by column, and where each entry comes from.
  void permute(const BlockPattern& p, const sparse::Elimination& e) {
    const Index n = p.n;
    // Blocks of each permuted column: (row position, block, is it transposed).
    struct Entry {
      Index row, block;
      bool transposed;
    };
    std::vector<Entry> column;
    begin_.assign(1, 0);
    row_.clear();
    source_.clear();
    diagonal_.clear();
    for (Index k = 0; k < n; ++k) {
      const Index j = e.order[k];
      column.clear();
      for (Index b = p.col_begin[j]; b < p.col_begin[j + 1]; ++b)
        if (e.position[p.row[b]] >= k) column.push_back({e.position[p.row[b]], b, false});
      for (Index r = p.rows.begin[j]; r < p.rows.begin[j + 1]; ++r)
        if (e.position[p.rows.col[r]] > k)
          column.push_back({e.position[p.rows.col[r]], p.rows.block[r], true});
      std::sort(column.begin(), column.end(), [](const Entry& a, const Entry& b) { return a.row < b.row; });
      for (int c = 0; c < 3; ++c) {
        for (const Entry& entry : column)
          for (int r = entry.row == k ? c : 0; r < 3; ++r) {
            if (entry.row == k && r == c) diagonal_.push_back(static_cast<Index>(row_.size()));
            row_.push_back(3 * entry.row + r);
            source_.push_back(9 * static_cast<std::size_t>(entry.block) +
                              static_cast<std::size_t>(entry.transposed ? 3 * r + c : 3 * c + r));
          }
        begin_.push_back(static_cast<int>(row_.size()));
      }
    }
    values_.resize(row_.size());
  }

  cholmod_sparse borrow_matrix() {
    cholmod_sparse A{};
    A.nrow = A.ncol = begin_.size() - 1;
    A.nzmax = row_.size();
    A.p = begin_.data();
    A.i = row_.data();
    A.x = values_.data();
    A.stype = -1;
    A.itype = CHOLMOD_INT;
    A.xtype = CHOLMOD_REAL;
    A.dtype = CHOLMOD_DOUBLE;
    A.sorted = A.packed = 1;
    return A;
  }

  void check(const char* what) {
    if (common_.c.status < CHOLMOD_OK)
      throw Error(ErrorKind::kSimulation, fmt::format("CHOLMOD {} of {} nodes failed (status {})", what,
                                                      order_.size(), common_.c.status));
  }

  FactorStatus status_at(Eigen::Index column, double pivot) const {
    return {false, order_[column / 3], static_cast<Index>(column % 3), pivot};
  }

  // BLAS does not notice numbers that are not finite.
  FactorStatus find_not_finite() const {
    for (std::size_t j = 0; j + 1 < begin_.size(); ++j)
      for (int k = begin_[j]; k < begin_[j + 1]; ++k)
        if (!std::isfinite(values_[k])) return status_at(static_cast<Eigen::Index>(j), values_[k]);
    return {};
  }

  // The columns before `j` are good: the pivot is A_jj - sum of L_jk^2.
  FactorStatus failure(Eigen::Index j) const {
    double pivot = values_[diagonal_[j]];
    for_supernodes(
        [&](Eigen::Index first, Eigen::Index cols, const int* rows, Eigen::Index count, const double* x) {
          for (Eigen::Index r = 0; r < count; ++r)
            if (rows[r] == j)
              for (Eigen::Index c = 0; c < cols && first + c < j; ++c)
                pivot -= x[r + c * count] * x[r + c * count];
        });
    return status_at(j, pivot);
  }

  FactorStatus find_lost_pivot() const {
    FactorStatus status;
    for_supernodes(
        [&](Eigen::Index first, Eigen::Index cols, const int*, Eigen::Index count, const double* x) {
          for (Eigen::Index c = 0; c < cols && status.ok; ++c) {
            const double l = x[c + c * count];
            if (!(l * l > kLostPivot * values_[diagonal_[first + c]]) || !std::isfinite(l))
              status = status_at(first + c, l * l);
          }
        });
    return status;
  }

  MatX tail_factor() const {
    const Eigen::Index t = 3 * static_cast<Eigen::Index>(order_.size()) - head_;
    MatX Ltt = MatX::Zero(t, t);
    if (t == 0) return Ltt;
    for_supernodes(
        [&](Eigen::Index first, Eigen::Index cols, const int* rows, Eigen::Index count, const double* x) {
          for (Eigen::Index c = std::max<Eigen::Index>(0, head_ - first); c < cols; ++c)
            for (Eigen::Index r = c; r < count; ++r)
              Ltt(rows[r] - head_, first + c - head_) = x[r + c * count];
        });
    return Ltt;
  }

  // visit(first column, columns, row indices, rows, values with leading dimension `rows`)
  template <class Visit>
  void for_supernodes(Visit&& visit) const {
    const auto super = static_cast<const int*>(L_->super), pi = static_cast<const int*>(L_->pi),
               px = static_cast<const int*>(L_->px), s = static_cast<const int*>(L_->s);
    for (std::size_t k = 0; k < L_->nsuper; ++k)
      visit(super[k], super[k + 1] - super[k], s + pi[k], pi[k + 1] - pi[k],
            static_cast<const double*>(L_->x) + px[k]);
  }

  Common common_;
  cholmod_factor* L_ = nullptr;
  std::vector<Index> order_;
  Eigen::Index head_ = 0;  // scalar columns before the tail
  std::vector<int> begin_, row_;
  std::vector<std::size_t> source_;
  std::vector<double> values_;
  std::vector<Index> diagonal_;
};

}  // namespace

std::unique_ptr<CholeskyBackend> make_cholmod_backend() { return std::make_unique<CholmodBackend>(); }

}  // namespace limber
