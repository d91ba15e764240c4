#include <limber/methods/condense/basis.hpp>

#include <limber/core/parallel.hpp>
#include <limber/linalg/tall.hpp>

namespace limber::condense {
namespace {

// Lists by nodes from lists of nodes: what Basis and BasisRows find a node's rows by.
template <class Lists>
void index_rows(Index nodes, const Lists& lists, std::vector<Index>& begin,
                std::vector<Basis::Place>& place) {
  begin.assign(at(nodes) + 1, 0);
  for (const auto& list : lists)
    for (const Index i : list.nodes) ++begin[at(i) + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  place.resize(at(begin.back()));
  std::vector<Index> next(begin.begin(), begin.end() - 1);
  for (std::size_t d = 0; d < lists.size(); ++d)
    for (std::size_t k = 0; k < lists[d].nodes.size(); ++k)
      place[at(next[at(lists[d].nodes[k])]++)] = {static_cast<Index>(d), static_cast<Index>(k)};
}

}  // namespace

Basis::Basis(Index nodes, std::vector<Domain> domains) : domains_(std::move(domains)) {
  for (Domain& d : domains_) {
    d.first = columns_;
    columns_ += d.columns();
  }
  index_rows(nodes, domains_, begin_, place_);
}

VecX Basis::times(const VecX& q) const {
  VecX out = VecX::Zero(3 * static_cast<Eigen::Index>(nodes()));
  for (const Domain& d : domains_) {
    const VecX own = q.segment(d.first, d.columns());
    parallel_ranges(static_cast<std::ptrdiff_t>(d.nodes.size()), 1024,
                    [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                      const VecX part = d.U.middleRows(3 * begin, 3 * (end - begin)) * own;
                      for (std::ptrdiff_t k = begin; k < end; ++k)
                        node(out, d.nodes[static_cast<std::size_t>(k)]) += part.segment<3>(3 * (k - begin));
                    });
  }
  return out;
}

VecX Basis::transposed(const VecX& f) const {
  VecX out(columns_);
  for (const Domain& d : domains_) {
    MatX part(d.U.rows(), 1);
    for (std::size_t k = 0; k < d.nodes.size(); ++k)
      part.col(0).segment<3>(3 * static_cast<Eigen::Index>(k)) = node(f, d.nodes[k]);
    out.segment(d.first, d.columns()) = tall_product(d.U, part).col(0);
  }
  return out;
}

BasisRows::BasisRows(const Basis& basis, std::span<const Mat3> R, std::span<const Index> nodes)
    : nodes_(static_cast<Index>(nodes.size())), columns_(basis.columns()) {
  const std::vector<Domain>& domains = basis.domains();
  std::vector<std::vector<std::pair<Index, Index>>> rows(domains.size());  // place in the list, row
  for (std::size_t k = 0; k < nodes.size(); ++k)
    for (const Basis::Place& p : basis.places(nodes[k]))
      rows[at(p.domain)].emplace_back(static_cast<Index>(k), p.row);
  for (std::size_t d = 0; d < domains.size(); ++d) {
    if (rows[d].empty() || domains[d].columns() == 0) continue;
    Part part;
    part.first = domains[d].first;
    part.W.resize(3 * static_cast<Eigen::Index>(rows[d].size()), domains[d].columns());
    for (std::size_t k = 0; k < rows[d].size(); ++k) {
      const auto own = domains[d].U.middleRows<3>(3 * static_cast<Eigen::Index>(rows[d][k].second));
      auto to = part.W.middleRows<3>(3 * static_cast<Eigen::Index>(k));
      if (R.empty())
        to = own;
      else
        to.noalias() = R[at(nodes[at(rows[d][k].first)])] * own;
      part.nodes.push_back(rows[d][k].first);
    }
    parts_.push_back(std::move(part));
  }
  index_rows(nodes_, parts_, begin_, place_);
}

Index BasisRows::used_columns() const {
  Index sum = 0;
  for (const Part& p : parts_) sum += static_cast<Index>(p.W.cols());
  return sum;
}

VecX BasisRows::times(const VecX& q) const {
  VecX out = VecX::Zero(3 * static_cast<Eigen::Index>(nodes_));
  for (const Part& p : parts_) {
    const VecX own = p.W * q.segment(p.first, p.W.cols());
    for (std::size_t k = 0; k < p.nodes.size(); ++k)
      node(out, p.nodes[k]) += node(own, static_cast<Index>(k));
  }
  return out;
}

VecX BasisRows::transposed(const VecX& f) const {
  VecX out = VecX::Zero(columns_);
  for (const Part& p : parts_) {
    VecX own(p.W.rows());
    for (std::size_t k = 0; k < p.nodes.size(); ++k) node(own, static_cast<Index>(k)) = node(f, p.nodes[k]);
    out.segment(p.first, p.W.cols()).noalias() = p.W.transpose() * own;
  }
  return out;
}

// Plain loops here and below: with domains these are very many products of very small matrices.
void BasisRows::add_row(const Mat3& K, Index j, Eigen::Ref<RowMatX> row) const {
  for (Index k = begin_[at(j)]; k < begin_[at(j) + 1]; ++k) {
    const Part& p = parts_[at(place_[at(k)].domain)];
    const Eigen::Index columns = p.W.cols();
    const double* w = p.W.data() + 3 * static_cast<Eigen::Index>(place_[at(k)].row) * columns;
    for (int d = 0; d < 3; ++d) {
      double* out = row.data() + d * row.outerStride() + p.first;
      const double a = K(d, 0), b = K(d, 1), e = K(d, 2);
      for (Eigen::Index c = 0; c < columns; ++c)
        out[c] += a * w[c] + b * w[columns + c] + e * w[2 * columns + c];
    }
  }
}

MatX BasisRows::gram(const VecX& mass) const {
  MatX D = MatX::Zero(columns_, columns_);
  if (parts_.empty()) return D;
  RowMatX Y = RowMatX::Zero(3 * static_cast<Eigen::Index>(nodes_), columns_);
  std::vector<std::uint8_t> touched(at(nodes_) * parts_.size(), 0);
  parallel_for(nodes_, 256, [&](std::ptrdiff_t i) {
    const auto k = static_cast<Index>(i);
    add_row(mass[i] * Mat3::Identity(), k, Y.middleRows(3 * i, 3));
    touch(k, k, touched);
  });
  add_transposed_product(Y, touched, 1, D);
  return D;
}

void BasisRows::add_congruence(const BlockMatrix& K, double s, MatX& D) const {
  if (parts_.empty()) return;
  RowMatX Y = RowMatX::Zero(3 * static_cast<Eigen::Index>(nodes_), columns_);
  std::vector<std::uint8_t> touched(at(nodes_) * parts_.size(), 0);
  const BlockPattern& p = *K.pattern;
  parallel_for(nodes_, 64, [&](std::ptrdiff_t row) {
    const auto i = static_cast<Index>(row);
    auto own = Y.middleRows(3 * row, 3);
    const auto add = [&](Index j, const Mat3& block) {
      add_row(block, j, own);
      touch(i, j, touched);
    };
    for (Index k = p.rows.begin[at(i)]; k < p.rows.begin[at(i) + 1]; ++k)
      add(p.rows.col[at(k)], K.block(p.rows.block[at(k)]));
    for (Index b = p.col_begin[at(i)]; b < p.col_begin[at(i) + 1]; ++b)
      add(p.row[at(b)], K.block(b).transpose());
  });
  add_transposed_product(Y, touched, s, D);
}

void BasisRows::add_congruence(std::span<const Entry> K, double s, MatX& D) const {
  if (parts_.empty() || K.empty()) return;
  RowMatX Y = RowMatX::Zero(3 * static_cast<Eigen::Index>(nodes_), columns_);
  std::vector<std::uint8_t> touched(at(nodes_) * parts_.size(), 0);
  const auto add = [&](Index i, Index j, const Mat3& block) {
    add_row(block, j, Y.middleRows(3 * static_cast<Eigen::Index>(i), 3));
    touch(i, j, touched);
  };
  for (const Entry& e : K) {
    add(e.i, e.j, e.K);
    if (e.i != e.j) add(e.j, e.i, e.K.transpose());
  }
  add_transposed_product(Y, touched, s, D);
}

void BasisRows::touch(Index i, Index j, std::vector<std::uint8_t>& touched) const {
  for (Index k = begin_[at(j)]; k < begin_[at(j) + 1]; ++k)
    touched[at(i) * parts_.size() + at(place_[at(k)].domain)] = 1;
}

void BasisRows::add_transposed_product(const RowMatX& Y, const std::vector<std::uint8_t>& touched, double s,
                                       MatX& D) const {
  if (parts_.size() == 1 && parts_[0].nodes.size() == at(nodes_)) {
    const Part& only = parts_[0];
    const MatX left = only.W, right = Y.middleCols(only.first, only.W.cols());
    D.block(only.first, only.first, left.cols(), left.cols()) += s * tall_product(left, right);
    return;
  }
  RowMatX sum = RowMatX::Zero(columns_, columns_);
  for (Index i = 0; i < nodes_; ++i)
    for (std::size_t b = 0; b < parts_.size(); ++b) {
      if (!touched[at(i) * parts_.size() + b]) continue;
      const Eigen::Index right = parts_[b].W.cols();
      const double* y = Y.data() + 3 * static_cast<Eigen::Index>(i) * columns_ + parts_[b].first;
      for (Index k = begin_[at(i)]; k < begin_[at(i) + 1]; ++k) {
        const Part& a = parts_[at(place_[at(k)].domain)];
        const Eigen::Index left = a.W.cols();
        const double* w = a.W.data() + 3 * static_cast<Eigen::Index>(place_[at(k)].row) * left;
        for (Eigen::Index p = 0; p < left; ++p) {
          double* out = sum.data() + (a.first + p) * columns_ + parts_[b].first;
          const double w0 = w[p], w1 = w[left + p], w2 = w[2 * left + p];
          for (Eigen::Index c = 0; c < right; ++c)
            out[c] += w0 * y[c] + w1 * y[columns_ + c] + w2 * y[2 * columns_ + c];
        }
      }
    }
  D += s * sum;
}

}  // namespace limber::condense
