// Tasks with an order between some of them, run by several threads. Which thread runs a task, and when, is
// left open; tasks that touch the same memory must be ordered.
#pragma once

#include <limber/core/types.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace limber::sparse {

class TaskGraph {
 public:
  TaskGraph();
  ~TaskGraph();
  TaskGraph(TaskGraph&&) noexcept;
  TaskGraph& operator=(TaskGraph&&) noexcept;

  // Adds a task and returns its number. `cost`: an estimate, in any unit; urgent tasks go first.
  Index add(double cost);
  // `after` starts when `before` has ended. Tasks are added in an order that respects this.
  void order(Index before, Index after);
  // To be called once, when all is added.
  void finish();

  Index size() const;
  // Runs run(task, worker) for all tasks on `workers` threads, worker in [0, workers). Allocates nothing.
  void execute(int workers, const std::function<void(Index task, int worker)>& run);

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace limber::sparse
