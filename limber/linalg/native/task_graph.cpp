#include <limber/core/parallel.hpp>
#include <limber/linalg/native/task_graph.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace limber::sparse {
namespace {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

struct TaskGraph::Data {
  std::vector<double> cost, urgency;  // urgency: cost of the longest chain that starts with the task
  std::vector<std::pair<Index, Index>> edges;
  std::vector<Index> begin, successor, predecessors;
  // While executing:
  std::vector<Index> waiting_for, ready;
  Index left = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int> available{0};  // tasks in `ready`, or 1 at the end; looked at without the mutex
};

TaskGraph::TaskGraph() : data_(std::make_unique<Data>()) {}
TaskGraph::~TaskGraph() = default;
TaskGraph::TaskGraph(TaskGraph&&) noexcept = default;
TaskGraph& TaskGraph::operator=(TaskGraph&&) noexcept = default;

Index TaskGraph::add(double cost) {
  data_->cost.push_back(cost);
  return size() - 1;
}

void TaskGraph::order(Index before, Index after) { data_->edges.push_back({before, after}); }

Index TaskGraph::size() const { return static_cast<Index>(data_->cost.size()); }

void TaskGraph::finish() {
  Data& d = *data_;
  const Index n = size();
  d.begin.assign(static_cast<std::size_t>(n) + 1, 0);
  d.predecessors.assign(n, 0);
  for (const auto& [before, after] : d.edges) {
    ++d.begin[before + 1];
    ++d.predecessors[after];
  }
  for (Index i = 0; i < n; ++i) d.begin[i + 1] += d.begin[i];
  d.successor.resize(d.edges.size());
  std::vector<Index> next(d.begin.begin(), d.begin.end() - 1);
  for (const auto& [before, after] : d.edges) d.successor[next[before]++] = after;
  d.edges = {};
  d.urgency = d.cost;
  for (Index i = n - 1; i >= 0; --i) {
    double longest = 0;
    for (Index k = d.begin[i]; k < d.begin[i + 1]; ++k)
      longest = std::max(longest, d.urgency[d.successor[k]]);
    d.urgency[i] += longest;
  }
  d.waiting_for.resize(n);
  d.ready.reserve(n);
}

void TaskGraph::execute(int workers, const std::function<void(Index, int)>& run) {
  Data& d = *data_;
  const auto less_urgent = [&](Index a, Index b) {
    return d.urgency[a] != d.urgency[b] ? d.urgency[a] < d.urgency[b] : a > b;
  };
  d.left = size();
  d.ready.clear();
  std::copy(d.predecessors.begin(), d.predecessors.end(), d.waiting_for.begin());
  for (Index i = 0; i < size(); ++i)
    if (d.waiting_for[i] == 0) d.ready.push_back(i);
  std::make_heap(d.ready.begin(), d.ready.end(), less_urgent);
  d.available = d.left == 0 ? 1 : static_cast<int>(d.ready.size());

  // A loop of `workers` iterations, each of which works until nothing is left: with fewer threads than
  // workers (nested regions, one core) the first iterations do all the work.
  parallel_for(workers, 1, [&](std::ptrdiff_t worker) {
    std::unique_lock<std::mutex> lock(d.mutex);
    while (d.left > 0) {
      if (d.ready.empty()) {
        // Look for a while before going to sleep: waking up takes longer than most tasks.
        lock.unlock();
        for (int i = 0; i < 2000 && d.available.load(std::memory_order_relaxed) == 0; ++i) pause();
        lock.lock();
        if (d.ready.empty() && d.left > 0) d.changed.wait(lock);
        continue;
      }
      std::pop_heap(d.ready.begin(), d.ready.end(), less_urgent);
      const Index task = d.ready.back();
      d.ready.pop_back();
      d.available.store(static_cast<int>(d.ready.size()), std::memory_order_relaxed);
      lock.unlock();
      run(task, static_cast<int>(worker));
      lock.lock();
      Index released = 0;
      for (Index k = d.begin[task]; k < d.begin[task + 1]; ++k)
        if (--d.waiting_for[d.successor[k]] == 0) {
          d.ready.push_back(d.successor[k]);
          std::push_heap(d.ready.begin(), d.ready.end(), less_urgent);
          ++released;
        }
      --d.left;
      d.available.store(d.left == 0 ? 1 : static_cast<int>(d.ready.size()), std::memory_order_relaxed);
      // This thread takes one of them itself.
      if (d.left == 0 || released > 1) d.changed.notify_all();
    }
  });
}

}  // namespace limber::sparse
