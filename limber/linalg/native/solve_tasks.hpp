// A solve with one right-hand side as tasks over the tree of fronts.
#pragma once

#include <limber/linalg/native/plan.hpp>

#include <vector>

namespace limber::sparse {

// Panels above this many doubles are shared out: blocks of pivots one after the other, the rows below each
// (in the backward sweep: its columns) in pieces. What is a piece depends on the matrix only.
inline constexpr std::int64_t kLargePanel = 1 << 17;
inline constexpr long kSolveBlock = 384;   // pivot columns between two rounds
inline constexpr long kPieceStrips = 32;   // strips of a piece, forward
inline constexpr long kPieceColumns = 64;  // columns of a piece, backward

inline bool is_large(const Front& front) { return front.K() * front.padded_rows() > kLargePanel; }
inline long solve_blocks(const Front& front) { return (front.K() + kSolveBlock - 1) / kSolveBlock; }

struct SolveTask {
  enum class Kind : std::uint8_t {
    kUnit,    // all fronts of a unit
    kFront,   // a front above the units
    kBegin,   // of a large one: what comes before its first block
    kPivots,  // the pivots of one block
    kPiece,   // a piece of the rows below a block (of its columns)
    kEnd,     // what comes after its last block
  };
  Kind kind;
  Index item;  // unit, or number of the front in Plan::top
  Index block = 0, piece = 0;
};

struct SolveTasks {
  std::vector<SolveTask> tasks;  // in an order in which one thread can do them
  TaskGraph graph;
};

// From the leaves to the root, and back.
SolveTasks forward_tasks(const Fronts& fronts, const Plan& plan);
SolveTasks backward_tasks(const Fronts& fronts, const Plan& plan);

}  // namespace limber::sparse
