// Sparse Cholesky of a symmetric positive definite matrix with one number per pair of nodes: Laplacians.
#pragma once

#include <limber/linalg/cholesky.hpp>

#include <span>

namespace limber {

// The lower triangle, one number per block of the pattern.
struct ScalarMatrix {
  std::shared_ptr<const BlockPattern> pattern;
  std::vector<double> values;

  explicit ScalarMatrix(std::shared_ptr<const BlockPattern> p = nullptr)
      : pattern(std::move(p)), values(pattern ? pattern->row.size() : 0, 0.0) {}
};

// y = A x with the whole symmetric matrix; x and y differ.
void multiply(const ScalarMatrix& A, const VecX& x, VecX& y);

// The native factorisation with nodes of one row. A block solver on L (x) I3 would hold nine times the
// entries and do 27 times the work.
class ScalarCholesky {
 public:
  explicit ScalarCholesky(std::string ordering = "auto");
  ~ScalarCholesky();

  void analyze(const BlockPattern& pattern);
  // With an order of elimination that is known already: order[k] is the node that is eliminated k-th.
  void analyze_in_order(const BlockPattern& pattern, std::span<const Index> order);
  // The matrix must have the analysed pattern. FactorStatus::axis is 0.
  [[nodiscard]] FactorStatus factor(const ScalarMatrix& A);
  // B <- A^-1 B, columns are right-hand sides.
  void solve(Eigen::Ref<MatX> B) const;
  const CholeskyStats& stats() const;

 private:
  std::string ordering_;
  std::unique_ptr<CholeskyBackend> backend_;
  bool factored_ = false;
};

}  // namespace limber
