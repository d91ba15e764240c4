#include <limber/core/error.hpp>
#include <limber/linalg/cholesky_backend.hpp>

#include <utility>

#include <fmt/format.h>

namespace limber {
namespace {

std::unique_ptr<CholeskyBackend> make_backend(const std::string& name, bool single) {
  if (name == "auto" || name == "native") return make_native_backend(single);
  if (name == "cholmod") {
    if (single)
      throw Error(
          ErrorKind::kUsage,
          "solver \"cholmod\" makes no factors in single precision; use \"native\", or double precision");
    if (make_cholmod_backend) return make_cholmod_backend();
    throw Error(ErrorKind::kUsage,
                "solver \"cholmod\": this program was built without it; use \"native\", or build with "
                "-DLIMBER_CHOLMOD=ON");
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("solver \"{}\": expected \"auto\", \"native\" or \"cholmod\"", name));
}

}  // namespace

std::vector<std::string> cholesky_backends() {
  std::vector<std::string> names{"native"};
  if (make_cholmod_backend) names.push_back("cholmod");
  return names;
}

Cholesky::Cholesky(CholeskyOptions options)
    : options_(std::move(options)), backend_(make_backend(options_.backend, options_.single)) {}
Cholesky::~Cholesky() = default;
Cholesky::Cholesky(Cholesky&&) noexcept = default;
Cholesky& Cholesky::operator=(Cholesky&&) noexcept = default;

void Cholesky::analyze(const BlockPattern& pattern, std::span<const Index> tail) {
  if (pattern.rows.begin.size() != static_cast<std::size_t>(pattern.n) + 1)
    throw Error(ErrorKind::kUsage, "Cholesky analysis: the pattern must come from make_block_pattern");
  factored_ = false;
  backend_->analyze(pattern, tail, options_.ordering);
  backend_->nodes = pattern.n;
  backend_->tail_nodes = static_cast<Index>(tail.size());
  backend_->blocks = pattern.blocks();
  ++backend_->stats.analyses;
}

void Cholesky::analyze_in_order(const BlockPattern& pattern, std::span<const Index> order, Index tail) {
  factored_ = false;
  backend_->analyze_in_order(pattern, order, tail);
  backend_->nodes = pattern.n;
  backend_->tail_nodes = tail;
  backend_->blocks = pattern.blocks();
  ++backend_->stats.analyses;
}

void Cholesky::check_pattern(const BlockMatrix& A) const {
  if (backend_->stats.analyses == 0 || !A.pattern || A.pattern->n != backend_->nodes ||
      A.pattern->blocks() != backend_->blocks)
    throw Error(ErrorKind::kUsage, "Cholesky: factor() needs the pattern that analyze() saw");
}

void Cholesky::set_single(bool single) {
  if (std::exchange(options_.single, single) == single) return;
  backend_->set_single(single);
  factored_ = false;
}

FactorStatus Cholesky::factor(const BlockMatrix& A) {
  check_pattern(A);
  const FactorStatus status = backend_->factor(A);
  backend_->carried = 0;
  factored_ = status.ok;
  rounded_ = false;
  ++backend_->stats.factorizations;
  return status;
}

void Cholesky::carry(const BlockPattern& pattern, Index columns) {
  if (columns <= room_) return;
  if (backend_->stats.analyses == 0 || pattern.n != backend_->nodes || pattern.blocks() != backend_->blocks)
    throw Error(ErrorKind::kUsage, "Cholesky: carry() needs the pattern that analyze() saw");
  backend_->carry(pattern, columns);
  room_ = columns;
  factored_ = false;
}

FactorStatus Cholesky::factor(const BlockMatrix& A, const Eigen::Ref<const MatX>& B) {
  check_pattern(A);
  if (B.rows() != 3 * static_cast<Eigen::Index>(backend_->nodes) || B.cols() > room_)
    throw Error(ErrorKind::kUsage,
                fmt::format("Cholesky: factor() got {} x {} numbers to carry, expected {} rows and at most "
                            "{} columns (see carry())",
                            B.rows(), B.cols(), 3 * static_cast<Eigen::Index>(backend_->nodes), room_));
  const FactorStatus status = backend_->factor_carrying(A, B);
  backend_->carried = B.cols();
  factored_ = status.ok;
  rounded_ = false;
  ++backend_->stats.factorizations;
  return status;
}

MatX Cholesky::carried_to_tail() const {
  check_rows(3 * static_cast<Eigen::Index>(backend_->nodes), "carried_to_tail");
  MatX T(3 * static_cast<Eigen::Index>(backend_->tail_nodes), backend_->carried);
  backend_->carried_to_tail(T);
  return T;
}

void Cholesky::extend_carried(const MatX& C, const MatX& T, RowMatX& J, MatX& X) const {
  check_rows(3 * static_cast<Eigen::Index>(backend_->nodes), "extend_carried");
  check_tail(C.rows(), "extend_carried");
  check_tail(T.rows(), "extend_carried");
  if (T.cols() != backend_->carried)
    throw Error(ErrorKind::kUsage, fmt::format("Cholesky: extend_carried() got {} columns, {} were carried",
                                               T.cols(), backend_->carried));
  backend_->extend_carried(C, T, J, X);
}

MatX Cholesky::solve_carried() const {
  MatX X;
  RowMatX none;
  extend_carried(MatX(0, 0), MatX(0, backend_->carried), none, X);
  return X;
}

void Cholesky::check_tail(Eigen::Index rows, const char* call) const {
  if (rows != 3 * static_cast<Eigen::Index>(backend_->tail_nodes))
    throw Error(ErrorKind::kUsage, fmt::format("Cholesky: {}() got {} rows for the tail, expected {}", call,
                                               rows, 3 * static_cast<Eigen::Index>(backend_->tail_nodes)));
}

void Cholesky::check_rows(Eigen::Index rows, const char* call) const {
  if (!factored_)
    throw Error(ErrorKind::kUsage, fmt::format("Cholesky: {}() without a successful factor()", call));
  if (rows != 3 * static_cast<Eigen::Index>(backend_->nodes))
    throw Error(ErrorKind::kUsage, fmt::format("Cholesky: {}() got {} rows, expected {}", call, rows,
                                               3 * static_cast<Eigen::Index>(backend_->nodes)));
}

void Cholesky::solve(Eigen::Ref<VecX> b) const {
  check_rows(b.size(), "solve");
  backend_->solve(b, CholeskyBackend::Part::kAll);
}

void Cholesky::round_to_single() {
  check_rows(3 * static_cast<Eigen::Index>(backend_->nodes), "round_to_single");
  backend_->round_to_single();
  rounded_ = true;
}

void Cholesky::solve_rounded(Eigen::Ref<VecX> b) const {
  check_rows(b.size(), "solve_rounded");
  if (!rounded_) throw Error(ErrorKind::kUsage, "Cholesky: solve_rounded() without round_to_single()");
  backend_->solve_rounded(b);
}

void Cholesky::solve_many(Eigen::Ref<MatX> B) const {
  check_rows(B.rows(), "solve_many");
  backend_->solve(B, CholeskyBackend::Part::kAll);
}

void Cholesky::condense_to_tail(Eigen::Ref<MatX> B) const {
  check_rows(B.rows(), "condense_to_tail");
  backend_->solve(B, CholeskyBackend::Part::kToTail);
}

void Cholesky::tail_schur(MatX& S) const {
  check_rows(3 * static_cast<Eigen::Index>(backend_->nodes), "tail_schur");
  backend_->tail_schur(S);
}

void Cholesky::extend_from_tail(const MatX& C, const MatX& Y, RowMatX& J, MatX& X) const {
  check_rows(Y.rows(), "extend_from_tail");
  check_tail(C.rows(), "extend_from_tail");
  backend_->extend_from_tail(C, Y, J, X);
}

std::span<double> Cholesky::factor_values() { return backend_->factor_values(); }
std::span<const double> Cholesky::factor_values() const { return backend_->factor_values(); }
std::span<const Index> Cholesky::order() const { return backend_->order(); }
const CholeskyStats& Cholesky::stats() const { return backend_->stats; }

}  // namespace limber
