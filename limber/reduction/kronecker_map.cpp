// F_c = I + U b_c with U = (u_1 u_2 ...), 3 x p, and b_c, p x 3. K is then six p x p matrices, sum of b_c
// H_c^ik b_c^T: a third fewer operations than (9 x r)^T (9 x 9) (9 x r), and one long matrix product.
#include <limber/core/parallel.hpp>
#include <limber/linalg/deformation_map.hpp>
#include <limber/linalg/strip_product.hpp>

#include <numeric>

namespace limber {

std::shared_ptr<const BlockPattern> dense_pattern(Index n) {
  std::vector<Index> begin(static_cast<std::size_t>(n) + 1), row;
  for (Index j = 0; j < n; ++j) {
    for (Index i = j; i < n; ++i) row.push_back(i);
    begin[at(j) + 1] = static_cast<Index>(row.size());
  }
  return std::make_shared<const BlockPattern>(make_block_pattern(std::move(begin), std::move(row)));
}

namespace {

constexpr int kBlocks = 6;
constexpr int kRow[kBlocks] = {0, 1, 2, 0, 0, 1}, kCol[kBlocks] = {0, 1, 2, 1, 2, 2};
constexpr long kLane = StripRows::kStrip;
constexpr std::ptrdiff_t kPointGrain = 64;

class KroneckerMap final : public DeformationMap {
 public:
  explicit KroneckerMap(const MatX& gradients)
      : p_(gradients.rows()),
        points_(static_cast<Index>(gradients.cols() / 3)),
        strips_((p_ + kLane - 1) / kLane),
        b_(gradients),
        rows_((1 + kBlocks) * strips_, gradients.cols()),
        product_(static_cast<std::size_t>(kBlocks * kLane * strips_ * kLane * strips_)),
        pattern_(dense_pattern(static_cast<Index>(p_))) {
    for (Eigen::Index c = 0; c < gradients.cols(); ++c)
      for (Eigen::Index j = 0; j < p_; ++j) rows_.strip(j / kLane)[kLane * c + j % kLane] = gradients(j, c);
  }

  Index points() const override { return points_; }
  const std::shared_ptr<const BlockPattern>& pattern() const override { return pattern_; }
  double congruence_flops() const override {
    const double p = static_cast<double>(p_), c = static_cast<double>(points_);
    return kBlocks * (2 * p * p * 3 * c + 2 * 9 * p * c);
  }

  void gradients(const VecX& u, std::vector<double>& F) const override {
    F.resize(9 * at(points_));
    const Eigen::Map<const Eigen::Matrix<double, 3, Eigen::Dynamic>> U(u.data(), 3, p_);
    parallel_ranges(points_, kPointGrain, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      Eigen::Map<Eigen::Matrix<double, 3, Eigen::Dynamic>> out(F.data() + 9 * begin, 3, 3 * (end - begin));
      out.noalias() = U * b_.middleCols(3 * begin, 3 * (end - begin));
    });
  }

  void add_transposed(const std::vector<double>& P, VecX& g) const override {
    const Eigen::Map<const Eigen::Matrix<double, 3, Eigen::Dynamic>> all(P.data(), 3, 3 * points_);
    Eigen::Map<Eigen::Matrix<double, 3, Eigen::Dynamic>> G(g.data(), 3, p_);
    const std::ptrdiff_t pieces = (points_ + kPointGrain - 1) / kPointGrain;
    std::vector<Eigen::Matrix<double, 3, Eigen::Dynamic>> part(static_cast<std::size_t>(pieces));
    parallel_ranges(points_, kPointGrain, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      part[static_cast<std::size_t>(begin / kPointGrain)].noalias() =
          all.middleCols(3 * begin, 3 * (end - begin)) *
          b_.middleCols(3 * begin, 3 * (end - begin)).transpose();
    });
    for (const auto& sum : part) G += sum;
  }

  void add_congruence(const std::vector<double>& H, BlockMatrix& A) const override {
    // Rows after those of b: -b_c H_c^ik, one set per block.
    parallel_ranges(points_, kPointGrain, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      for (std::ptrdiff_t c = begin; c < end; ++c)
        for (int t = 0; t < kBlocks; ++t) {
          const double* h = H.data() + 54 * c + 9 * t;
          for (long s = 0; s < strips_; ++s) {
            const double* b = rows_.strip(s) + kLane * 3 * c;
            double* y = rows_.strip(strips_ * (1 + t) + s) + kLane * 3 * c;
            for (int j = 0; j < 3;
                 ++j)  // y_j = sum over l of h(j, l) b_l: K_ik[a][b] = sum of b_aj h_jl b_bl
              for (int r = 0; r < kLane; ++r)
                y[kLane * j + r] = -(h[j] * b[r] + h[3 + j] * b[kLane + r] + h[6 + j] * b[2 * kLane + r]);
          }
        }
    });
    const long n = kLane * strips_;
    parallel_for(kBlocks * strips_, 1, [&](std::ptrdiff_t k) {
      const long first = strips_ + k;
      rows_.negative_product(0, strips_, first, first + 1, product_.data() + k * n * kLane, n);
    });
    // product_ of block t: entry (a, b) at t n n + b n + a.
    const BlockPattern& pattern = *pattern_;
    parallel_for(p_, 8, [&](std::ptrdiff_t b) {
      for (Eigen::Index a = b; a < p_; ++a) {
        double* to = A.values.data() + 9 * (pattern.col_begin[static_cast<std::size_t>(b)] + (a - b));
        for (int t = 0; t < kBlocks; ++t) {
          const double* K = product_.data() + static_cast<long>(t) * n * n;
          to[kRow[t] + 3 * kCol[t]] += K[b * n + a];
          if (kRow[t] != kCol[t]) to[kCol[t] + 3 * kRow[t]] += K[a * n + b];
        }
      }
    });
  }

 private:
  Eigen::Index p_;  // functions
  Index points_;
  long strips_;
  MatX b_;                               // p x 3 points
  mutable StripRows rows_;               // scratch, except for its first strips: b
  mutable std::vector<double> product_;  // scratch
  std::shared_ptr<const BlockPattern> pattern_;
};

class DenseMap final : public DeformationMap {
 public:
  explicit DenseMap(const MatX& jacobian)
      : points_(static_cast<Index>(jacobian.rows() / 9)),
        J_(MatX::Zero(jacobian.rows(), (jacobian.cols() + 2) / 3 * 3)),
        pattern_(dense_pattern(static_cast<Index>(J_.cols() / 3))) {
    J_.leftCols(jacobian.cols()) = jacobian;
  }

  Index points() const override { return points_; }
  const std::shared_ptr<const BlockPattern>& pattern() const override { return pattern_; }
  double congruence_flops() const override {
    const double r = static_cast<double>(J_.cols()), c = static_cast<double>(points_);
    return 2 * r * r * 9 * c + 2 * 81 * r * c;
  }

  void gradients(const VecX& u, std::vector<double>& F) const override {
    F.resize(9 * at(points_));
    Eigen::Map<VecX>(F.data(), J_.rows()).noalias() = J_ * u;
  }

  void add_transposed(const std::vector<double>& P, VecX& g) const override {
    g.noalias() += J_.transpose() * Eigen::Map<const VecX>(P.data(), J_.rows());
  }

  void add_congruence(const std::vector<double>& H, BlockMatrix& A) const override {
    MatX Y(J_.rows(), J_.cols());
    parallel_for(points_, 16, [&](std::ptrdiff_t c) {
      Eigen::Matrix<double, 9, 9> h;
      for (int t = 0; t < kBlocks; ++t)
        for (int l = 0; l < 3; ++l)
          for (int j = 0; j < 3; ++j) {
            const double value = H[static_cast<std::size_t>(54 * c + 9 * t + j + 3 * l)];
            h(kRow[t] + 3 * j, kCol[t] + 3 * l) = value;
            h(kCol[t] + 3 * l, kRow[t] + 3 * j) = value;
          }
      Y.middleRows(9 * c, 9).noalias() = h * J_.middleRows(9 * c, 9);
    });
    const Index n = pattern_->n;
    parallel_for((n + 7) / 8, 1, [&](std::ptrdiff_t piece) {  // columns of eight nodes at a time
      const Index first = static_cast<Index>(8 * piece), count = std::min<Index>(8, n - first);
      const MatX K = J_.rightCols(J_.cols() - 3 * first).transpose() * Y.middleCols(3 * first, 3 * count);
      for (Index b = first; b < first + count; ++b)
        for (Index a = b; a < n; ++a)
          A.block(pattern_->col_begin[at(b)] + a - b) += K.block<3, 3>(3 * (a - first), 3 * (b - first));
    });
  }

 private:
  Index points_;
  MatX J_;  // 9 points x unknowns
  std::shared_ptr<const BlockPattern> pattern_;
};

}  // namespace

std::unique_ptr<DeformationMap> make_kronecker_map(const MatX& gradients) {
  return std::make_unique<KroneckerMap>(gradients);
}

std::unique_ptr<DeformationMap> make_dense_map(const MatX& jacobian) {
  return std::make_unique<DenseMap>(jacobian);
}

}  // namespace limber
