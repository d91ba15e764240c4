// How the fronts are shared out to threads, and where updates lie meanwhile.
#pragma once

#include <limber/linalg/native/fronts.hpp>
#include <limber/linalg/native/task_graph.hpp>

#include <vector>

namespace limber::sparse {

// Neighbouring subtrees that one thread works through, front by front: fronts [begin, end).
struct Unit {
  Index begin, end;
};

// What is done by one thread, and what in tiles. Depends on the matrix only: with it every sum has a fixed
// order, and results are the same bits for any number of threads.
struct Plan {
  std::vector<Unit> units;
  std::vector<Index> top;           // the other fronts, in order
  std::vector<Index> unit_of;       // per front; -1: top
  std::vector<std::uint8_t> tiled;  // per front: is it shared out in tiles
  double cost = 0;                  // of all [ns], estimated

  // Work space of a thread, in doubles: updates that are made and used inside a unit, and a panel.
  std::int64_t thread_updates = 0, thread_panel = 0;

  // Solves. An item (a unit, or a front above the units) adds what concerns later fronts to rows of its own
  // behind the vector, and the front above takes them over, child after child: every sum has a fixed order,
  // whoever comes first. `solve_row` is Fronts::row with these rows in place of positions outside the item.
  std::vector<Index> solve_row;
  std::vector<std::pair<Index, Index>> border;  // (row of the vector, own), item after item
  std::vector<Index> border_begin;              // per item: the units, then the fronts of `top`
  std::vector<std::pair<Index, Index>> taken;   // (where to, own row of a child), front after front
  std::vector<Index> taken_begin;               // per front of `top`
  Index solve_rows = 0;                         // nodes of the vector, own rows of units included

  // Does the update of front s leave the unit (or belong to a top front)?
  bool shares_update(const Fronts& fronts, Index s) const {
    const Index parent = fronts.fronts[s].parent;
    return parent != -1 && (unit_of[s] == -1 || unit_of[parent] != unit_of[s]);
  }
};

// Row or column blocks of a tiled front: those of the pivots, then those of the rows below.
inline long pivot_blocks(const Front& front) { return (front.K() + kBlock - 1) / kBlock; }
inline long row_blocks(const Front& front) { return (round_up(front.factor_M()) + kBlock - 1) / kBlock; }

// Sets Front::update for updates that stay in a unit.
Plan make_plan(Fronts& fronts);

struct Task {
  enum class Kind : std::uint8_t {
    kUnit,      // all fronts of a unit
    kFront,     // a front above the units
    kDiagonal,  // of a large front: the diagonal tile of pivot block j
    kPivots,    // the tile of row block i and pivot block j
    kUpdate,    // the tile (i, j) of the update
    kGate,      // nothing: what lies before it is done
  };
  Kind kind;
  Index front = -1;  // or unit
  Index i = 0, j = 0;
};

// The order of the work for some number of threads. Few threads need not go far ahead, and then the updates
// that wait to be used take little memory.
struct Schedule {
  int threads = 0;
  std::vector<Task> tasks;
  TaskGraph graph;
  std::int64_t shared_updates = 0;  // doubles
};

// Sets Front::update for updates that leave their unit.
Schedule make_schedule(Fronts& fronts, const Plan& plan, int threads);

}  // namespace limber::sparse
