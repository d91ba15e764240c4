// The order in which a sparse Cholesky eliminates nodes, and what follows from it: elimination tree and fill.
#pragma once

#include <limber/linalg/block_matrix.hpp>

#include <span>
#include <string>
#include <vector>

namespace limber::sparse {

struct Elimination {
  std::string ordering;         // "amd", "metis" or "given"
  std::vector<Index> order;     // position -> node
  std::vector<Index> position;  // node -> position
  std::vector<Index> parent;    // elimination tree, by position; -1: a root
  std::vector<Index> count;     // blocks in the column of L, the diagonal included
  Index tail = 0;               // so many positions at the end are the tail, in the given order
  double nnz = 0;               // scalar entries of L
  double flops = 0;             // of the factorisation: sum of the squared column lengths
};

// Orders the nodes outside `tail` by "amd", "metis", or ("auto") whichever leads to fewer flops, postorders
// them, and appends the tail, which is taken as dense. Throws Error(kUsage) for an unknown ordering or a tail
// with repeated or unknown nodes. `block`: rows of a node, for the counts of entries and flops.
Elimination eliminate(const BlockPattern& pattern, std::span<const Index> tail, const std::string& ordering,
                      int block = 3);

// The same with an order that is given: `order` holds every node once, in the order of elimination, the tail
// at its end, and is postordered only, which fills nothing more. For matrices whose pattern or tail changes
// from step to step and whose order is known from before.
Elimination eliminate_in_order(const BlockPattern& pattern, std::span<const Index> order, Index tail,
                               int block = 3);

// Calls visit(k) for every neighbour k of `node`, itself excluded.
template <class Visit>
void for_neighbours(const BlockPattern& p, Index node, Visit&& visit) {
  for (Index k = p.rows.begin[node]; k < p.rows.begin[node + 1]; ++k) visit(p.rows.col[k]);
  for (Index b = p.col_begin[node] + 1; b < p.col_begin[node + 1]; ++b) visit(p.row[b]);
}

}  // namespace limber::sparse
