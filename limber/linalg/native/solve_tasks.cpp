#include <limber/linalg/native/solve_tasks.hpp>

#include <algorithm>

namespace limber::sparse {
namespace {

class TreeTasks {
 public:
  TreeTasks(const Fronts& f, const Plan& plan) : f_(f), plan_(plan) {
    first_.assign(f.fronts.size(), -1);
    last_.assign(f.fronts.size(), -1);
  }

  // Children before parents: their last task before the parent's first.
  SolveTasks forward() {
    for (Index u = 0; u < static_cast<Index>(plan_.units.size()); ++u) add_unit(u);
    for (Index k = 0; k < static_cast<Index>(plan_.top.size()); ++k) {
      add_front(k, true);
      const Front& front = f_.fronts[plan_.top[k]];
      Index seen = -1;  // children of one unit follow each other
      for (Index c = 0; c < front.children; ++c) {
        const Index task = last_[f_.children[front.children_begin + c]];
        if (task != seen) out_.graph.order(task, first_[plan_.top[k]]);
        seen = task;
      }
    }
    return finish();
  }

  SolveTasks backward() {
    const auto after_parent = [&](Index s) {
      if (const Index parent = f_.fronts[s].parent; parent != -1) out_.graph.order(last_[parent], first_[s]);
    };
    for (Index k = static_cast<Index>(plan_.top.size()); k-- > 0;) {
      add_front(k, false);
      after_parent(plan_.top[k]);
    }
    for (Index u = static_cast<Index>(plan_.units.size()); u-- > 0;) {
      add_unit(u);
      after_parent(plan_.units[u].end - 1);  // all subtrees of a unit have the same parent
    }
    return finish();
  }

 private:
  SolveTasks finish() {
    out_.graph.finish();
    return std::move(out_);
  }

  Index add(SolveTask task, double numbers) {
    out_.tasks.push_back(task);
    return out_.graph.add(numbers);
  }

  void add_unit(Index u) {
    const Unit& unit = plan_.units[u];
    double numbers = 0;
    for (Index s = unit.begin; s < unit.end; ++s) numbers += size(f_.fronts[s]);
    const Index task = add({SolveTask::Kind::kUnit, u}, numbers);
    std::fill(first_.begin() + unit.begin, first_.begin() + unit.end, task);
    std::fill(last_.begin() + unit.begin, last_.begin() + unit.end, task);
  }

  void add_front(Index k, bool forward) {
    const Index s = plan_.top[k];
    const Front& front = f_.fronts[s];
    if (!is_large(front)) {
      first_[s] = last_[s] = add({SolveTask::Kind::kFront, k}, size(front));
      return;
    }
    const long blocks = solve_blocks(front), strips = front.padded_rows() / kStrip;
    first_[s] = add({SolveTask::Kind::kBegin, k}, 0);
    std::vector<Index> open{first_[s]};  // what the next task waits for
    const auto after_open = [&](SolveTask task, double numbers) {
      const Index t = add(task, numbers);
      for (const Index before : open) out_.graph.order(before, t);
      return t;
    };
    for (long n = 0; n < blocks; ++n) {
      const long b = forward ? n : blocks - 1 - n;
      const long c0 = b * kSolveBlock, c1 = std::min(front.K(), c0 + kSolveBlock);
      const long below = strips - round_up(c1) / kStrip;
      const auto pivots = [&] {
        const auto width = static_cast<double>(c1 - c0);
        open = {after_open({SolveTask::Kind::kPivots, k, static_cast<Index>(b)}, 0.5 * width * width)};
      };
      const auto pieces = [&] {
        if (below == 0) return;
        const long count = forward ? (below + kPieceStrips - 1) / kPieceStrips
                                   : (c1 - c0 + kPieceColumns - 1) / kPieceColumns;
        const double numbers =
            static_cast<double>(kStrip * below) * static_cast<double>(c1 - c0) / static_cast<double>(count);
        std::vector<Index> made;
        for (long p = 0; p < count; ++p)
          made.push_back(after_open(
              {SolveTask::Kind::kPiece, k, static_cast<Index>(b), static_cast<Index>(p)}, numbers));
        open = std::move(made);
      };
      if (forward) pivots();
      pieces();
      if (!forward) pivots();
    }
    last_[s] = after_open({SolveTask::Kind::kEnd, k}, 0);
  }

  static double size(const Front& front) {
    return static_cast<double>(front.K()) * static_cast<double>(front.padded_rows());
  }

  const Fronts& f_;
  const Plan& plan_;
  SolveTasks out_;
  std::vector<Index> first_, last_;  // task of each front
};

}  // namespace

SolveTasks forward_tasks(const Fronts& fronts, const Plan& plan) { return TreeTasks(fronts, plan).forward(); }
SolveTasks backward_tasks(const Fronts& fronts, const Plan& plan) {
  return TreeTasks(fronts, plan).backward();
}

}  // namespace limber::sparse
