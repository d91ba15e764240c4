// What a factorisation behind Cholesky provides; see cholesky.hpp for the meaning. Only linalg/ includes
// this.
#pragma once

#include <limber/linalg/cholesky.hpp>

namespace limber {

// A pivot that is not larger than this times the diagonal entry it started from holds rounding errors only
// (a sum of squares cancels against the entry, with an error of a few 1e-16 of it): the matrix is singular to
// working precision.
inline constexpr double kLostPivot = 1e-15;
inline constexpr double kLostPivotInSingle = 5e-7;

// Arguments are checked by Cholesky: sizes agree, a factor exists.
class CholeskyBackend {
 public:
  virtual ~CholeskyBackend() = default;
  virtual void analyze(const BlockPattern& pattern, std::span<const Index> tail,
                       const std::string& ordering) = 0;
  // A back end that cannot take an order finds one by itself.
  virtual void analyze_in_order(const BlockPattern& pattern, std::span<const Index> order, Index tail) {
    analyze(pattern, order.last(static_cast<std::size_t>(tail)), "amd");
  }
  // Factors from now on in single precision; a back end that has none stays at double.
  virtual void set_single(bool) {}
  virtual FactorStatus factor(const BlockMatrix& A) = 0;
  // Right-hand sides that go along; a back end that cannot take them along sweeps them afterwards.
  virtual void carry(const BlockPattern&, Index) {}
  virtual FactorStatus factor_carrying(const BlockMatrix& A, const Eigen::Ref<const MatX>& B) {
    const FactorStatus status = factor(A);
    condensed_ = B;
    if (status.ok) solve(condensed_, Part::kToTail);
    return status;
  }
  virtual void carried_to_tail(MatX& T) const { T = condensed_.bottomRows(T.rows()); }
  virtual void extend_carried(const MatX& C, const MatX& T, RowMatX& J, MatX& X) const {
    MatX Y = condensed_;
    Y.bottomRows(T.rows()) = T;
    extend_from_tail(C, Y, J, X);
  }
  // kToTail, kFromTail: the two halves, without the tail's own factor; see condense_to_tail.
  enum class Part { kAll, kToTail, kFromTail };
  virtual void solve(Eigen::Ref<MatX> B, Part part) const = 0;
  // A back end without a rounded copy solves with the factor itself.
  virtual void round_to_single() {}
  virtual void solve_rounded(Eigen::Ref<VecX> b) const { solve(b, Part::kAll); }
  virtual void tail_schur(MatX& S) const = 0;
  virtual void extend_from_tail(const MatX& C, const MatX& Y, RowMatX& J, MatX& X) const = 0;
  virtual std::span<double> factor_values() = 0;
  virtual std::span<const Index> order() const = 0;

  CholeskyStats stats;
  Index nodes = 0, tail_nodes = 0, blocks = 0;
  Eigen::Index carried = 0;  // columns that went along with the last factorisation

 private:
  MatX condensed_;
};

std::unique_ptr<CholeskyBackend> make_native_backend(bool single);
// Null unless the program links limber_cholmod.
__attribute__((weak)) std::unique_ptr<CholeskyBackend> make_cholmod_backend();

}  // namespace limber
