#include <limber/linalg/scalar_cholesky.hpp>

#include <limber/core/error.hpp>
#include <limber/linalg/native/native_backend.hpp>

#include <fmt/format.h>

namespace limber {

void multiply(const ScalarMatrix& A, const VecX& x, VecX& y) {
  const BlockPattern& p = *A.pattern;
  y = VecX::Zero(p.n);
  for (Index j = 0; j < p.n; ++j) {
    double sum = A.values[p.col_begin[j]] * x[j];
    for (Index b = p.col_begin[j] + 1; b < p.col_begin[j + 1]; ++b) {
      sum += A.values[b] * x[p.row[b]];
      y[p.row[b]] += A.values[b] * x[j];
    }
    y[j] += sum;
  }
}

ScalarCholesky::ScalarCholesky(std::string ordering)
    : ordering_(std::move(ordering)), backend_(std::make_unique<sparse::NativeBackend>(1)) {}
ScalarCholesky::~ScalarCholesky() = default;

void ScalarCholesky::analyze(const BlockPattern& pattern) {
  factored_ = false;
  backend_->analyze(pattern, {}, ordering_);
  backend_->nodes = pattern.n;
  backend_->blocks = pattern.blocks();
  ++backend_->stats.analyses;
}

void ScalarCholesky::analyze_in_order(const BlockPattern& pattern, std::span<const Index> order) {
  factored_ = false;
  backend_->analyze_in_order(pattern, order, 0);
  backend_->nodes = pattern.n;
  backend_->blocks = pattern.blocks();
  ++backend_->stats.analyses;
}

FactorStatus ScalarCholesky::factor(const ScalarMatrix& A) {
  if (A.values.size() != static_cast<std::size_t>(backend_->blocks) || backend_->blocks == 0)
    throw Error(ErrorKind::kUsage, fmt::format("ScalarCholesky::factor: the matrix has {} entries, {} were "
                                               "analysed",
                                               A.values.size(), backend_->blocks));
  BlockMatrix values;  // the back end reads one number per block
  values.pattern = A.pattern;
  values.values = A.values;
  const FactorStatus status = backend_->factor(values);
  factored_ = status.ok;
  ++backend_->stats.factorizations;
  return status;
}

void ScalarCholesky::solve(Eigen::Ref<MatX> B) const {
  if (!factored_ || B.rows() != backend_->nodes)
    throw Error(ErrorKind::kUsage, fmt::format("ScalarCholesky::solve: {} rows, expected {}, and a factor",
                                               B.rows(), backend_->nodes));
  backend_->solve(B, CholeskyBackend::Part::kAll);
}

const CholeskyStats& ScalarCholesky::stats() const { return backend_->stats; }

}  // namespace limber
