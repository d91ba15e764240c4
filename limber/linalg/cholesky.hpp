// Sparse Cholesky A = L L^T of a symmetric positive definite block matrix.
//
// analyze() once per epoch, factor() every step, solve() as often as needed. Nodes given as `tail` are
// eliminated last, in the given order. With A = [Aqq Aqt; Atq Att] and L = [Lqq 0; Ltq Ltt] the factor then
// already holds
//   the Schur complement   S = Att - Atq Aqq^-1 Aqt = Ltt Ltt^T                (tail_schur)
//   the condensation map   J = [-Aqq^-1 Aqt; I] = [-Lqq^-T Ltq^T; I]           (extend_from_tail)
// which is all that ConJac needs: no forward solves, and only as many backward solves as there are columns.
#pragma once

#include <limber/linalg/block_matrix.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace limber {

using RowMatX = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct CholeskyOptions {
  std::string backend = "auto";  // "auto" (the native one), "native", "cholmod" (if it is built in)
  std::string ordering =
      "auto";  // "auto" tries AMD and METIS and keeps the one with fewer flops; "amd"; "metis"
  // Factors of single precision ("native" only): half of the memory, on AVX2 twice the arithmetic. Solutions
  // have an error of about 1e-7 times the condition number. Right-hand sides and sums of solves are doubles.
  bool single = false;
};

struct FactorStatus {
  bool ok = true;
  Index node = -1;   // where the pivot failed: it was not positive, or only rounding error was left of it
  Index axis = 0;    // which of the node's three entries
  double pivot = 0;  // its value
};

struct CholeskyStats {
  std::string backend, ordering;
  double nnz = 0;           // scalar entries of L
  double stored = 0;        // doubles that hold them: padding and zeros of joined columns included
  double flops = 0;         // of one factorisation: sum of the squared column lengths
  double bytes = 0;         // factor and work space
  double seconds = 0;       // of the last factorisation
  long fronts = 0;          // dense pieces (fronts, supernodes)
  long analyses = 0;        // symbolic analyses so far
  long factorizations = 0;  // numeric factorisations so far
};

// The back ends of this program: "native", and "cholmod" if it is built in.
std::vector<std::string> cholesky_backends();

class CholeskyBackend;

class Cholesky {
 public:
  explicit Cholesky(CholeskyOptions options = {});
  ~Cholesky();
  Cholesky(Cholesky&&) noexcept;
  Cholesky& operator=(Cholesky&&) noexcept;

  void analyze(const BlockPattern& pattern, std::span<const Index> tail = {});
  // With a given order of elimination, whose last `tail` nodes are the tail: no ordering is looked for.
  // CHOLMOD finds its own for the others all the same.
  void analyze_in_order(const BlockPattern& pattern, std::span<const Index> order, Index tail = 0);
  // Factors from now on in single precision (CholeskyOptions::single) or not; the analysis serves both.
  // CHOLMOD stays at double.
  void set_single(bool single);
  // Numeric factorisation; the matrix must have the analysed pattern. After a failure the factor is unusable
  // until the next successful call. No allocation after the first call.
  [[nodiscard]] FactorStatus factor(const BlockMatrix& A);

  // Right-hand sides that are known before the matrix is factored go along with it, as further rows of every
  // front: their forward half is done by its products, and L is read once less. carry(), after analyze() and
  // with its pattern, makes room for so many columns (or leaves what is there, if that is more). B: at most
  // as many, in node order. Then what condense_to_tail(B) would give is known:
  // its tail rows by carried_to_tail(), and extend_carried() is extend_from_tail() of it, with T, one column
  // for each of B, in its tail rows. Without a tail solve_carried() is A^-1 B.
  void carry(const BlockPattern& pattern, Index columns);
  [[nodiscard]] FactorStatus factor(const BlockMatrix& A, const Eigen::Ref<const MatX>& B);
  MatX carried_to_tail() const;
  void extend_carried(const MatX& C, const MatX& T, RowMatX& J, MatX& X) const;
  MatX solve_carried() const;

  // B <- A^-1 B, columns are right-hand sides in node order.
  void solve(Eigen::Ref<VecX> b) const;
  void solve_many(Eigen::Ref<MatX> B) const;
  // The same with L rounded to single precision, for preconditioners: half of the memory to read, and that is
  // what a solve with one right-hand side costs. round_to_single() first, after every change of the factor.
  void round_to_single();
  void solve_rounded(Eigen::Ref<VecX> b) const;
  std::span<const Index> order() const;  // the node at position k of the elimination

  // Block elimination of everything but the tail, in two halves with one pass over the factor each.
  // B <- [Lqq^-1 Bq; Bt - Atq Aqq^-1 Bq], rows in elimination order: the tail is in the last 3t rows, which
  // are what the loads B amount to for the tail alone. Without a tail it is half of a solve, B <- L^-1 P B
  // with P A P^T = L L^T, and extend_from_tail is the other half.
  void condense_to_tail(Eigen::Ref<MatX> B) const;
  // J = [-Aqq^-1 Aqt; I] C: the quasistatic extension of the tail motions C (3t x k) to all nodes (3n x k).
  // X = [Lqq^-T (Yq - Ltq^T Yt); Yt]: the other half of condense_to_tail, once the motion of the tail stands
  // in the last rows of Y. With zeros there xq solves Aqq xq = bq.
  void extend_from_tail(const MatX& C, const MatX& Y, RowMatX& J, MatX& X) const;

  // S = Ltt Ltt^T, dense, 3t x 3t in the order of `tail`.
  void tail_schur(MatX& S) const;

  // The values of L as one array, for copies and extrapolation between factors of the same analysis; none in
  // single precision.
  std::span<double> factor_values();
  std::span<const double> factor_values() const;

  const CholeskyStats& stats() const;

 private:
  void check_pattern(const BlockMatrix& A) const;
  void check_rows(Eigen::Index rows, const char* call) const;
  void check_tail(Eigen::Index rows, const char* call) const;

  CholeskyOptions options_;
  std::unique_ptr<CholeskyBackend> backend_;
  Index room_ = 0;  // of carry()
  bool factored_ = false, rounded_ = false;
};

}  // namespace limber
