#include <limber/linalg/native/plan.hpp>

#include <algorithm>

namespace limber::sparse {
namespace {

// Subtrees of at most this share of the whole work stay on one thread.
constexpr double kUnitShare = 1.0 / 32;
constexpr double kUnitMin = 50e3;  // [ns]
constexpr double kTiledMin = 8e6;  // flops

// First fit for blocks of memory whose times of use are known.
class FirstFit {
 public:
  std::int64_t place(std::int64_t size, std::vector<std::pair<std::int64_t, std::int64_t>>& used) {
    std::sort(used.begin(), used.end());
    std::int64_t at = 0;
    for (const auto& [begin, end] : used) {
      if (begin - at >= size) break;
      at = std::max(at, end);
    }
    length_ = std::max(length_, at + size);
    return at;
  }
  std::int64_t length() const { return length_; }

 private:
  std::int64_t length_ = 0;
};

void choose_units(const Fronts& f, Plan& plan) {
  const Index n = static_cast<Index>(f.fronts.size());
  std::vector<double> cost(n, 0), subtree(n, 0);
  for (Index s = 0; s < n; ++s) {
    cost[s] = front_cost(f.fronts[s].K(), f.fronts[s].M());
    plan.cost += cost[s];
    subtree[s] += cost[s];
    if (f.fronts[s].parent != -1) subtree[f.fronts[s].parent] += subtree[s];
  }
  const double limit = std::max(kUnitMin, plan.cost * kUnitShare);
  plan.unit_of.assign(n, -1);
  double filled = 0;
  Index last_parent = -2;
  for (Index s = 0; s < n; ++s) {
    const Index parent = f.fronts[s].parent;
    const bool small = subtree[s] <= limit && !f.is_tail(s);
    if (!small) {
      plan.top.push_back(s);
      last_parent = -2;
      continue;
    }
    const bool root = parent == -1 || subtree[parent] > limit || f.is_tail(parent);
    if (!root) continue;
    // A whole subtree [subtree, s]; it joins the subtree before it when both have the same parent.
    if (last_parent == parent && filled + subtree[s] <= limit) {
      plan.units.back().end = s + 1;
      filled += subtree[s];
    } else {
      plan.units.push_back({f.fronts[s].subtree, s + 1});
      filled = subtree[s];
    }
    last_parent = parent;
  }
  for (Index u = 0; u < static_cast<Index>(plan.units.size()); ++u)
    for (Index s = plan.units[u].begin; s < plan.units[u].end; ++s) plan.unit_of[s] = u;
  plan.tiled.assign(n, 0);
  for (const Index s : plan.top) {
    const double k = static_cast<double>(f.fronts[s].K()), m = static_cast<double>(f.fronts[s].M());
    plan.tiled[s] = !f.is_tail(s) && k * k * k / 3 + k * k * m + k * m * m > kTiledMin;
  }
}

bool leaves_unit(const Fronts& f, const Plan& plan, Index s) {
  const Index parent = f.fronts[s].parent;
  return parent == -1 || plan.unit_of[parent] != plan.unit_of[s];
}

void place_updates(Fronts& f, Plan& plan) {
  std::vector<std::pair<std::int64_t, std::int64_t>> used;
  // Inside units: one after the other, an update is used up when its parent is done.
  for (const Unit& unit : plan.units) {
    FirstFit memory;
    std::vector<Index> live;
    for (Index s = unit.begin; s < unit.end; ++s) {
      if (!leaves_unit(f, plan, s)) {
        used.clear();
        for (const Index a : live)
          used.push_back({f.fronts[a].update, f.fronts[a].update + update_size(f.fronts[a].M())});
        f.fronts[s].update = memory.place(update_size(f.fronts[s].M()), used);
      }
      std::erase_if(live, [&](Index a) { return f.fronts[a].parent == s; });
      if (!leaves_unit(f, plan, s)) live.push_back(s);
    }
    plan.thread_updates = std::max(plan.thread_updates, memory.length());
  }
  // In the shared space an update may lie where another one lay only if that one's parent is known to be
  // done: it is below the front that the new update comes from.
  FirstFit memory;
  std::vector<Index> placed;
  for (Index s = 0; s < static_cast<Index>(f.fronts.size()); ++s) {
    Front& front = f.fronts[s];
    if (front.rows == 0 || (plan.unit_of[s] != -1 && !leaves_unit(f, plan, s))) continue;
    used.clear();
    for (const Index a : placed) {
      const Index up = f.fronts[a].parent;
      const bool done = plan.unit_of[s] == -1 && up >= front.subtree && up < s;
      if (!done) used.push_back({f.fronts[a].update, f.fronts[a].update + update_size(f.fronts[a].M())});
    }
    front.update = memory.place(update_size(front.M()), used);
    front.shared = true;
    placed.push_back(s);
  }
  plan.shared_updates = memory.length();
  for (Index s = 0; s < static_cast<Index>(f.fronts.size()); ++s) {
    const Front& front = f.fronts[s];
    const std::int64_t panel =
        plan.tiled[s] ? kBlock * kBlock : front.padded_rows() * std::min(kBlock, front.padded_pivots());
    plan.thread_panel = std::max(plan.thread_panel, panel);
  }
}

void make_tasks(const Fronts& f, Plan& plan) {
  const Index n = static_cast<Index>(f.fronts.size());
  std::vector<std::vector<Index>> last(n);  // the tasks that complete a front
  const auto add = [&](Task::Kind kind, Index front, long i, long j, double cost) {
    plan.tasks.push_back({kind, front, static_cast<Index>(i), static_cast<Index>(j)});
    return plan.graph.add(cost);
  };
  const auto after_children = [&](Index s, Index task) {
    const Front& front = f.fronts[s];
    std::vector<Index> before;
    for (Index c = 0; c < front.children; ++c) {
      const auto& tasks = last[f.children[front.children_begin + c]];
      before.insert(before.end(), tasks.begin(), tasks.end());
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (const Index b : before) plan.graph.order(b, task);
  };
  Index unit = 0;
  for (Index s = 0; s < n; ++s) {
    const Front& front = f.fronts[s];
    if (plan.unit_of[s] != -1) {
      if (s + 1 != plan.units[unit].end) continue;
      double cost = 0;
      for (Index k = plan.units[unit].begin; k <= s; ++k)
        cost += front_cost(f.fronts[k].K(), f.fronts[k].M());
      const Index task = add(Task::Kind::kUnit, unit, 0, 0, cost);
      for (Index k = plan.units[unit].begin; k <= s; ++k) last[k] = {task};
      ++unit;
      continue;
    }
    if (!plan.tiled[s]) {
      last[s] = {add(Task::Kind::kFront, s, 0, 0, front_cost(front.K(), front.M()))};
      after_children(s, last[s][0]);
      continue;
    }
    // Tile (i, j) takes the products of all blocks before j at once, so it waits for the tiles to its left
    // and, below the diagonal, for the diagonal tile of its columns.
    const long P = pivot_blocks(front), Q = row_blocks(front);
    const double unit_cost = 2.0 * kBlock * kBlock * kBlock / 52;
    std::vector<Index> tile(static_cast<std::size_t>((P + Q) * P));
    const auto at = [&](long i, long j) -> Index& { return tile[static_cast<std::size_t>(i * P + j)]; };
    for (long j = 0; j < P; ++j)
      for (long i = j; i < P + Q; ++i) {
        at(i, j) = add(i == j ? Task::Kind::kDiagonal : Task::Kind::kPivots, s, i, j,
                       unit_cost * (static_cast<double>(j) + 0.7));
        if (i == j && j == 0) after_children(s, at(i, j));
        if (i > j) plan.graph.order(at(j, j), at(i, j));
        if (j > 0) plan.graph.order(at(i, j - 1), at(i, j));
      }
    if (Q == 0) last[s] = {at(P - 1, P - 1)};
    for (long j = P; j < P + Q; ++j)
      for (long i = j; i < P + Q; ++i) {
        const Index task = add(Task::Kind::kUpdate, s, i - P, j - P, unit_cost * static_cast<double>(P));
        plan.graph.order(at(i, P - 1), task);
        if (i != j) plan.graph.order(at(j, P - 1), task);
        last[s].push_back(task);
      }
  }
  plan.graph.finish();
}

void find_solve_rows(const Fronts& f, Plan& plan) {
  Index next = static_cast<Index>(f.order.size());
  std::vector<Index> own(f.order.size());
  plan.solve_row = f.row;
  plan.border_begin.push_back(0);
  for (const Unit& unit : plan.units) {
    for (Index root = unit.begin; root < unit.end; ++root) {
      if (!leaves_unit(f, plan, root)) continue;
      const Front& top = f.fronts[root];
      const Index end = top.first + top.pivots;
      for (Index r = 0; r < top.rows; ++r) {
        own[f.row[top.rows_begin + r]] = next;
        plan.border.push_back({f.row[top.rows_begin + r], next++});
      }
      for (Index s = top.subtree; s <= root; ++s)
        for (Index r = 0; r < f.fronts[s].rows; ++r) {
          Index& row = plan.solve_row[f.fronts[s].rows_begin + r];
          if (row >= end) row = own[row];
        }
    }
    plan.border_begin.push_back(static_cast<Index>(plan.border.size()));
  }
  plan.solve_rows = next;
}

}  // namespace

Plan make_plan(Fronts& f) {
  Plan plan;
  choose_units(f, plan);
  place_updates(f, plan);
  make_tasks(f, plan);
  find_solve_rows(f, plan);
  return plan;
}

}  // namespace limber::sparse
