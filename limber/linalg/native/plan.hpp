// How the fronts are shared out to threads, and where updates lie meanwhile. Nothing here depends on the
// number of threads, and no sum does on who computes it: results are the same bits for any number.
#pragma once

#include <limber/linalg/native/fronts.hpp>
#include <limber/linalg/native/task_graph.hpp>

#include <vector>

namespace limber::sparse {

// Neighbouring subtrees that one thread works through, front by front: fronts [begin, end).
struct Unit {
  Index begin, end;
};

struct Task {
  enum class Kind : std::uint8_t {
    kUnit,      // all fronts of a unit
    kFront,     // a front above the units
    kDiagonal,  // of a large front: the diagonal tile of pivot block j
    kPivots,    // the tile of row block i and pivot block j
    kUpdate,    // the tile (i, j) of the update
  };
  Kind kind;
  Index front;  // or unit
  Index i = 0, j = 0;
};

struct Plan {
  std::vector<Unit> units;
  std::vector<Index> top;           // the other fronts, in order
  std::vector<Index> unit_of;       // per front; -1: top
  std::vector<std::uint8_t> tiled;  // per front: is it shared out in tiles
  std::vector<Task> tasks;
  TaskGraph graph;
  double cost = 0;  // of all [ns], estimated

  // Work space, in doubles. Updates inside a unit lie in the space of the thread that works on it; those that
  // leave a unit, and those of top fronts, in the shared space.
  std::int64_t shared_updates = 0, thread_updates = 0, thread_panel = 0;

  // Solves. A unit adds what concerns later fronts to rows of its own behind the vector; `solve_row` is
  // Fronts::row with these rows in place of positions outside the unit, and the border lists them: (row of
  // the vector, own).
  std::vector<Index> solve_row;
  std::vector<std::pair<Index, Index>> border;
  std::vector<Index> border_begin;  // per unit
  Index solve_rows = 0;             // nodes of the vector, own rows of units included
};

// Row or column blocks of a tiled front: those of the pivots, then those of the rows below.
inline long pivot_blocks(const Front& front) { return (front.K() + kBlock - 1) / kBlock; }
inline long row_blocks(const Front& front) { return (round_up(front.M()) + kBlock - 1) / kBlock; }

// Sets Front::update too.
Plan make_plan(Fronts& fronts);

}  // namespace limber::sparse
