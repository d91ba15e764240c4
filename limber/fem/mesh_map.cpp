#include <limber/fem/mesh_map.hpp>

#include <limber/core/parallel.hpp>
#include <limber/fem/laplacian.hpp>

namespace limber::fem {
namespace {

constexpr int kTensorRows[6] = {0, 1, 2, 0, 0, 1}, kTensorCols[6] = {0, 1, 2, 1, 2, 2};

class MeshMap final : public DeformationMap {
 public:
  MeshMap(const ElementInput& mesh, std::shared_ptr<const BlockPattern> pattern)
      : elements_(mesh.elements), pattern_(std::move(pattern)) {
    gradients_.reserve(elements_.size());
    begin_.assign(static_cast<std::size_t>(pattern_->n) + 1, 0);
    for (const Tet& t : elements_) {
      gradients_.push_back(shape_gradients(mesh.rest, t));
      for (const Index i : t) ++begin_[at(i) + 1];
    }
    for (Index i = 0; i < pattern_->n; ++i) begin_[at(i) + 1] += begin_[at(i)];
    around_.resize(at(begin_.back()));
    std::vector<Index> next(begin_.begin(), begin_.end() - 1);
    for (std::size_t e = 0; e < elements_.size(); ++e)
      for (int a = 0; a < 4; ++a) around_[at(next[at(elements_[e][a])]++)] = {static_cast<Index>(e), a};
  }

  Index points() const override { return static_cast<Index>(elements_.size()); }
  const std::shared_ptr<const BlockPattern>& pattern() const override { return pattern_; }
  double congruence_flops() const override { return 10 * 2 * 54.0 * static_cast<double>(elements_.size()); }

  void gradients(const VecX& u, std::vector<double>& F) const override {
    F.resize(9 * elements_.size());
    parallel_for(points(), 1024, [&](std::ptrdiff_t e) {
      const auto k = static_cast<std::size_t>(e);
      Mat3 f = Mat3::Zero();
      for (int a = 0; a < 4; ++a) f.noalias() += node(u, elements_[k][a]) * gradients_[k].col(a).transpose();
      Eigen::Map<Mat3>(F.data() + 9 * k) = f;
    });
  }

  void add_transposed(const std::vector<double>& P, VecX& g) const override {
    parallel_for(pattern_->n, 512, [&](std::ptrdiff_t i) {
      Vec3 sum = Vec3::Zero();
      for_around(static_cast<Index>(i), [&](const Corner& c) {
        sum.noalias() +=
            Eigen::Map<const Mat3>(P.data() + 9 * at(c.element)) * gradients_[at(c.element)].col(c.corner);
      });
      node(g, static_cast<Index>(i)) += sum;
    });
  }

  void add_congruence(const std::vector<double>& H, BlockMatrix& A) const override {
    parallel_for(pattern_->n, 256, [&](std::ptrdiff_t column) {
      const Index j = static_cast<Index>(column);
      for_around(j, [&](const Corner& c) {
        const auto& g = gradients_[at(c.element)];
        const double* h = H.data() + 54 * at(c.element);
        // (i, k) block times the gradient of this corner: a vector per pair of axes.
        Vec3 flux[3][3];
        for (int t = 0; t < 6; ++t) {
          const Eigen::Map<const Mat3> block(h + 9 * t);
          flux[kTensorRows[t]][kTensorCols[t]] = block * g.col(c.corner);
          if (t >= 3) flux[kTensorCols[t]][kTensorRows[t]] = block.transpose() * g.col(c.corner);
        }
        for (int b = 0; b < 4; ++b) {
          const Index i = elements_[at(c.element)][b];
          if (i < j) continue;
          auto to = A.block(pattern_->find(i, j));
          for (int r = 0; r < 3; ++r)
            for (int s = 0; s < 3; ++s) to(r, s) += g.col(b).dot(flux[r][s]);
        }
      });
    });
  }

 private:
  struct Corner {
    Index element;
    int corner;
  };
  template <class Visit>
  void for_around(Index i, Visit&& visit) const {
    for (Index k = begin_[at(i)]; k < begin_[at(i) + 1]; ++k) visit(around_[at(k)]);
  }

  std::vector<Tet> elements_;
  std::vector<Eigen::Matrix<double, 3, 4>> gradients_;
  std::shared_ptr<const BlockPattern> pattern_;
  std::vector<Index> begin_;
  std::vector<Corner> around_;
};

}  // namespace

std::unique_ptr<DeformationMap> make_mesh_map(const ElementInput& mesh,
                                              std::shared_ptr<const BlockPattern> pattern) {
  return std::make_unique<MeshMap>(mesh, std::move(pattern));
}

}  // namespace limber::fem
