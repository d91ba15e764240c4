// Symmetric matrices between scipy's rows and blocks of 3x3.
#pragma once

#include "common.hpp"

#include <limber/linalg/cholesky.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace limber::python {

// The whole symmetric matrix in compressed rows.
struct Rows {
  std::vector<double> data;
  std::vector<std::int32_t> indices, indptr;
};

inline Rows to_rows(const BlockMatrix& A) {
  const BlockPattern& p = *A.pattern;
  const std::size_t blocks = 2 * p.row.size() - static_cast<std::size_t>(p.n);
  Rows out;
  out.data.resize(9 * blocks);
  out.indices.resize(9 * blocks);
  out.indptr.reserve(3 * static_cast<std::size_t>(p.n) + 1);
  out.indptr.push_back(0);
  std::size_t k = 0;
  for (Index i = 0; i < p.n; ++i)
    for (int a = 0; a < 3; ++a) {
      const auto put = [&](Index j, Index b, bool transposed) {
        const double* v = A.values.data() + 9 * static_cast<std::size_t>(b);
        for (int c = 0; c < 3; ++c, ++k) {
          out.indices[k] = 3 * j + c;
          out.data[k] = transposed ? v[3 * a + c] : v[a + 3 * c];
        }
      };
      for (Index r = p.rows.begin[at(i)]; r < p.rows.begin[at(i) + 1]; ++r)
        put(p.rows.col[at(r)], p.rows.block[at(r)], false);
      put(i, p.col_begin[at(i)], false);
      for (Index b = p.col_begin[at(i)] + 1; b < p.col_begin[at(i) + 1]; ++b) put(p.row[at(b)], b, true);
      out.indptr.push_back(static_cast<std::int32_t>(k));
    }
  return out;
}

inline py::tuple arrays_of(Rows rows) {
  return py::make_tuple(owned_list(std::move(rows.data)), owned_list(std::move(rows.indices)),
                        owned_list(std::move(rows.indptr)));
}

// A symmetric matrix that came as compressed rows with sorted columns, its upper triangle counting. Rows are
// filled up to a multiple of three with ones on the diagonal.
class Symmetric {
 public:
  Symmetric(const Indices& indptr, const Indices& indices) {
    n_ = static_cast<Index>(indptr.size()) - 1;
    if (n_ < 1) wrong_call("the matrix has no rows");
    indptr_.assign(indptr.data(), indptr.data() + indptr.size());
    indices_.assign(indices.data(), indices.data() + indices.size());
    const Index blocks = (n_ + 2) / 3;
    std::vector<Index> begin{0}, row, mark(at(blocks), -1);
    for (Index j = 0; j < blocks; ++j) {
      const auto first = static_cast<std::ptrdiff_t>(row.size());
      row.push_back(j);
      mark[at(j)] = j;
      for (Index r = 3 * j; r < std::min(n_, 3 * j + 3); ++r)
        for (std::int64_t k = indptr_[at(r)]; k < indptr_[at(r) + 1]; ++k) {
          const auto i = static_cast<Index>(indices_[static_cast<std::size_t>(k)] / 3);
          if (i <= j || mark[at(i)] == j) continue;
          mark[at(i)] = j;
          row.push_back(i);
        }
      std::sort(row.begin() + first + 1, row.end());
      begin.push_back(static_cast<Index>(row.size()));
    }
    matrix_ = BlockMatrix(
        std::make_shared<const BlockPattern>(make_block_pattern(std::move(begin), std::move(row))));
  }

  bool same(const Indices& indptr, const Indices& indices) const {
    return static_cast<std::size_t>(indptr.size()) == indptr_.size() &&
           static_cast<std::size_t>(indices.size()) == indices_.size() &&
           std::equal(indptr_.begin(), indptr_.end(), indptr.data()) &&
           std::equal(indices_.begin(), indices_.end(), indices.data());
  }

  BlockMatrix& fill(const Doubles& data) {
    if (static_cast<std::size_t>(data.size()) != indices_.size())
      wrong_call("the matrix has not as many numbers as places");
    const BlockPattern& p = *matrix_.pattern;
    std::fill(matrix_.values.begin(), matrix_.values.end(), 0.0);
    for (Index r = 0; r < n_; ++r) {
      const Index j = r / 3;
      for (std::int64_t k = indptr_[at(r)]; k < indptr_[at(r) + 1]; ++k) {
        const auto c = static_cast<Index>(indices_[static_cast<std::size_t>(k)]);
        if (c / 3 < j) continue;
        // Entry (r, c) of the upper triangle is (c, r) of block (c / 3, j).
        matrix_.block(p.find(c / 3, j))(c % 3, r % 3) += data.data()[k];
      }
    }
    for (Index r = n_; r < 3 * p.n; ++r) matrix_.block(p.col_begin[at(r / 3)])(r % 3, r % 3) = 1;
    return matrix_;
  }

  Index size() const { return n_; }
  const BlockPattern& pattern() const { return *matrix_.pattern; }
  BlockMatrix& matrix() { return matrix_; }

 private:
  Index n_ = 0;
  std::vector<std::int64_t> indptr_, indices_;
  BlockMatrix matrix_;
};

[[noreturn]] inline void bad_pivot(const FactorStatus& status) {
  throw Error(ErrorKind::kSimulation,
              fmt::format("the matrix is not positive definite: row {} has the pivot {:.3g}",
                          3 * status.node + status.axis, status.pivot));
}

}  // namespace limber::python
