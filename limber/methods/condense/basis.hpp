// The columns of a subspace: one set for the whole body, or sets of their own for the flesh around each bone
// (paper, section 4.1: skeletal decomposition), which overlap where skinning weights do.
#pragma once

#include <limber/linalg/cholesky.hpp>

#include <span>
#include <vector>

namespace limber::condense {

// Nodes that the same columns move.
struct Domain {
  std::vector<Index> nodes;  // ascending
  MatX U;                    // three rows for each of them
  Index first = 0;           // of its columns, among those of all domains

  Index columns() const { return static_cast<Index>(U.cols()); }
};

// U, 3n x r, without what is zero in it.
class Basis {
 public:
  Basis() = default;
  Basis(Index nodes, std::vector<Domain> domains);  // numbers their columns one after the other

  Index nodes() const { return begin_.empty() ? 0 : static_cast<Index>(begin_.size()) - 1; }
  Index columns() const { return columns_; }
  const std::vector<Domain>& domains() const { return domains_; }

  // Where the rows of a node are.
  struct Place {
    Index domain, row;  // row: in nodes
  };
  std::span<const Place> places(Index node) const {
    return std::span(place_).subspan(at(begin_[at(node)]), at(begin_[at(node) + 1] - begin_[at(node)]));
  }

  // U q and U^T f, of all nodes. The same bits for any number of threads.
  VecX times(const VecX& q) const;
  VecX transposed(const VecX& f) const;

 private:
  std::vector<Domain> domains_;
  Index columns_ = 0;
  std::vector<Index> begin_;
  std::vector<Place> place_;
};

// W = R U of some nodes, by domains: what is summed over single nodes and elements costs as much as the
// columns that move them, not as all.
class BasisRows {
 public:
  BasisRows() = default;
  // `R` of all nodes; none: W = U.
  BasisRows(const Basis& basis, std::span<const Mat3> R, std::span<const Index> nodes);

  Index nodes() const { return nodes_; }
  Index columns() const { return columns_; }  // of all domains
  Index used_columns() const;                 // of those that move one of the nodes
  VecX times(const VecX& q) const;            // W q
  VecX transposed(const VecX& f) const;       // W^T f
  // row (3 x r) += K W_j
  void add_row(const Mat3& K, Index j, Eigen::Ref<RowMatX> row) const;
  // W^T diag(mass) W, mass with one entry for each node.
  MatX gram(const VecX& mass) const;
  // D += s W^T K W with K of these nodes.
  void add_congruence(const BlockMatrix& K, double s, MatX& D) const;
  // The same of single blocks: (i, j) and, where they differ, its transpose at (j, i).
  struct Entry {
    Index i, j;
    Mat3 K;
  };
  void add_congruence(std::span<const Entry> K, double s, MatX& D) const;

 private:
  struct Part {
    Index first = 0;
    std::vector<Index> nodes;  // in the list
    RowMatX W;
  };
  // D += s W^T Y, with Y as sparse as `touched` says: node by node, which parts.
  void add_transposed_product(const RowMatX& Y, const std::vector<std::uint8_t>& touched, double s,
                              MatX& D) const;
  void touch(Index i, Index j, std::vector<std::uint8_t>& touched) const;

  Index nodes_ = 0, columns_ = 0;
  std::vector<Part> parts_;
  std::vector<Index> begin_;
  std::vector<Basis::Place> place_;  // by nodes: part and row
};

}  // namespace limber::condense
