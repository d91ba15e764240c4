#include <limber/core/parallel.hpp>

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <thread>
#include <vector>

namespace limber {
namespace {

std::atomic<int> requested_threads{0};
thread_local bool inside = false;
thread_local int index_of_thread = 0;

// A pool of sleeping workers. Not OpenMP's: its workers spin between loops, which is fast on a quiet machine
// and costs milliseconds a loop on a busy one, and its runtime cannot be checked by the thread sanitizer.
class Pool {
 public:
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : workers_) t.join();
  }

  void run(std::ptrdiff_t pieces, int helpers, void (*piece)(void*, std::ptrdiff_t), void* context) {
    const std::lock_guard one_caller(caller_);
    {
      const std::lock_guard lock(mutex_);
      while (static_cast<int>(workers_.size()) < helpers)
        workers_.emplace_back([this, id = static_cast<int>(workers_.size())] { work(id); });
      piece_ = piece;
      context_ = context;
      pieces_ = pieces;
      next_.store(0, std::memory_order_relaxed);
      helpers_ = helpers;
      running_ = helpers;
      ++generation_;
    }
    wake_.notify_all();
    take();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  void take() {
    for (;;) {
      const std::ptrdiff_t p = next_.fetch_add(1, std::memory_order_relaxed);
      if (p >= pieces_) return;
      piece_(context_, p);
    }
  }

  void work(int id) {
    inside = true;
    index_of_thread = id + 1;
    long seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || (generation_ != seen && id < helpers_); });
        if (stop_) return;
        seen = generation_;
      }
      take();
      const std::lock_guard lock(mutex_);
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::mutex caller_, mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  long generation_ = 0;
  int helpers_ = 0, running_ = 0;
  bool stop_ = false;
  void (*piece_)(void*, std::ptrdiff_t) = nullptr;
  void* context_ = nullptr;
  std::ptrdiff_t pieces_ = 0;
  std::atomic<std::ptrdiff_t> next_{0};
};

struct PoolOwner {
  Pool* pool = new Pool;
  ~PoolOwner() { delete pool; }
};

PoolOwner& pool_owner() {
  static PoolOwner owner;
  return owner;
}

// A process that forks (Python's multiprocessing does) has the memory of the workers and not their threads,
// and must not wait for them. It goes on with a pool of its own; the old one cannot even be destroyed there.
Pool& pool() {
  static const int handler = ::pthread_atfork(nullptr, nullptr, [] { pool_owner().pool = new Pool; });
  static_cast<void>(handler);
  return *pool_owner().pool;
}

}  // namespace

void set_threads(int n) { requested_threads = std::max(0, n); }

int threads() {
  const int n = requested_threads;
  return n > 0 ? n : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int thread_index() { return index_of_thread; }

void detail::run_pieces(std::ptrdiff_t pieces, void (*piece)(void*, std::ptrdiff_t), void* context) {
  const auto helpers = static_cast<int>(std::min<std::ptrdiff_t>(threads(), pieces)) - 1;
  if (helpers <= 0 || inside) {
    for (std::ptrdiff_t p = 0; p < pieces; ++p) piece(context, p);
    return;
  }
  inside = true;
  pool().run(pieces, helpers, piece, context);
  inside = false;
}

}  // namespace limber
