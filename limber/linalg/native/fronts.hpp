// The fronts of the native Cholesky: which columns are eliminated together, which rows they touch, how their
// updates reach their parents, and where everything lies in memory. All of it follows from the pattern.
#pragma once

#include <limber/linalg/elimination.hpp>
#include <limber/linalg/native/kernels.hpp>

#include <cstdint>
#include <vector>

namespace limber::sparse {

// A block of the matrix and where it goes in its front.
struct Entry {
  Index block;  // of the matrix; ~block when it goes there transposed
  Index row;    // first row of the front, padding counted
  Index col;    // first pivot column
};

struct Front {
  int block = 3;                   // rows of a node: 3, or 1 for a scalar matrix
  Index first = 0, pivots = 0;     // nodes, by position in the elimination order
  Index rows_begin = 0, rows = 0;  // nodes below the pivots
  Index carried = 0;               // as many more below these in its panel: Fronts::carried
  Index parent = -1;               // the front that takes the update
  Index subtree = 0;               // first front of the subtree; fronts are postordered
  Index runs_begin = 0, runs = 0;  // how the update goes into the parent
  Index entries_begin = 0, entries = 0;
  Index children_begin = 0, children = 0;
  std::int64_t values = 0;  // where the panel starts
  std::int64_t update = 0;  // where the update starts, in the work space of
  bool shared = false;      // all threads, or of the thread that makes and uses it

  long K() const { return static_cast<long>(block) * pivots; }
  long M() const { return static_cast<long>(block) * rows; }
  long padded_pivots() const { return round_up(K()); }
  long padded_rows() const { return padded_pivots() + round_up(M()); }
  // Below the pivots for the factorisation, which sees carried rows as any others; sweeps do not see them.
  long factor_M() const { return static_cast<long>(block) * (rows + carried); }
  long factor_rows() const { return padded_pivots() + round_up(factor_M()); }
};

struct Fronts {
  std::vector<Front> fronts;  // postordered
  std::vector<Index> order;   // position -> node
  std::vector<Index> row;     // rows of all fronts, as positions, ascending in a front
  std::vector<Run> runs;
  std::vector<Entry> entries;  // of a front ascending by column
  std::vector<Index> children;
  std::vector<std::int64_t> diagonal;  // per position: the block of the matrix that holds its diagonal
  Index tail = 0;                      // nodes; the last front when positive
  Index carried = 0;        // room for right-hand sides that go along, in nodes: rows of every front
  int block = 3;            // rows of a node
  std::int64_t values = 0;  // length of all panels

  bool is_tail(Index f) const { return tail > 0 && f + 1 == static_cast<Index>(fronts.size()); }
};

// Joins columns to fronts where that is estimated to be faster, and orders the fronts so that a stack of
// updates stays small. `block`: rows of a node; `carried`: of Fronts, which changes nothing else.
Fronts make_fronts(const BlockPattern& pattern, const Elimination& elimination, int block = 3,
                   Index carried = 0);

// Estimated time of a front [ns], from measured speeds of its parts (docs/linear-solver.md).
double front_cost(long K, long M);

}  // namespace limber::sparse
