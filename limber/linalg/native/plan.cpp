#include <limber/linalg/native/first_fit.hpp>
#include <limber/linalg/native/plan.hpp>

#include <algorithm>

namespace limber::sparse {
namespace {

// Subtrees of at most this share of the whole work stay on one thread.
constexpr double kUnitShare = 1.0 / 32;
constexpr double kUnitMin = 50e3;  // [ns]
constexpr double kTiledMin = 8e6;  // flops

void choose_units(const Fronts& f, Plan& plan) {
  const Index n = static_cast<Index>(f.fronts.size());
  std::vector<double> subtree(n, 0);  // cost
  for (Index s = 0; s < n; ++s) {
    const double cost = front_cost(f.fronts[s].K(), f.fronts[s].M());
    plan.cost += cost;
    subtree[s] += cost;
    if (f.fronts[s].parent != -1) subtree[f.fronts[s].parent] += subtree[s];
  }
  const double limit = std::max(kUnitMin, plan.cost * kUnitShare);
  const auto in_unit = [&](Index s) { return subtree[s] <= limit && !f.is_tail(s); };
  plan.unit_of.assign(n, -1);
  double filled = 0;
  Index last_parent = -2;
  for (Index s = 0; s < n; ++s) {
    const Index parent = f.fronts[s].parent;
    if (!in_unit(s)) {
      plan.top.push_back(s);
      last_parent = -2;
      continue;
    }
    if (parent != -1 && in_unit(parent)) continue;
    // A whole subtree [subtree, s]; it joins the one before it when both have the same parent.
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

// Inside a unit fronts come one after the other, and an update is used up when its parent is done.
void place_updates(Fronts& f, Plan& plan) {
  for (const Unit& unit : plan.units) {
    FirstFit memory;
    std::vector<Index> live;
    for (Index s = unit.begin; s < unit.end; ++s) {
      const bool stays = !plan.shares_update(f, s);
      if (stays) {
        memory.clear();
        for (const Index a : live) memory.avoid(f.fronts[a].update, update_size(f.fronts[a].factor_M()));
        f.fronts[s].update = memory.place(update_size(f.fronts[s].factor_M()));
      }
      std::erase_if(live, [&](Index a) { return f.fronts[a].parent == s; });
      if (stays) live.push_back(s);
    }
    plan.thread_updates = std::max(plan.thread_updates, memory.length());
  }
  for (Index s = 0; s < static_cast<Index>(f.fronts.size()); ++s) {
    const Front& front = f.fronts[s];
    const std::int64_t panel =
        plan.tiled[s] ? kBlock * kBlock : front.factor_rows() * std::min(kBlock, front.padded_pivots());
    plan.thread_panel = std::max(plan.thread_panel, panel);
  }
}

void find_solve_rows(const Fronts& f, Plan& plan) {
  Index next = static_cast<Index>(f.order.size());
  std::vector<Index> own(f.order.size());
  std::vector<Index> first_own(f.fronts.size(), -1);  // of the fronts whose rows leave their item
  plan.solve_row = f.row;
  plan.border_begin.push_back(0);
  const auto add_border = [&](Index root) {
    const Front& top = f.fronts[root];
    const Index end = top.first + top.pivots;
    first_own[root] = next;
    for (Index r = 0; r < top.rows; ++r) {
      own[f.row[top.rows_begin + r]] = next;
      plan.border.push_back({f.row[top.rows_begin + r], next++});
    }
    const Index first = plan.unit_of[root] == -1 ? root : top.subtree;
    for (Index s = first; s <= root; ++s)
      for (Index r = 0; r < f.fronts[s].rows; ++r) {
        Index& row = plan.solve_row[f.fronts[s].rows_begin + r];
        if (row >= end) row = own[row];
      }
  };
  for (const Unit& unit : plan.units) {
    for (Index root = unit.begin; root < unit.end; ++root)
      if (plan.shares_update(f, root)) add_border(root);
    plan.border_begin.push_back(static_cast<Index>(plan.border.size()));
  }
  for (const Index s : plan.top) {
    if (f.fronts[s].parent != -1) add_border(s);
    plan.border_begin.push_back(static_cast<Index>(plan.border.size()));
  }
  plan.solve_rows = next;

  plan.taken_begin.push_back(0);
  for (const Index s : plan.top) {
    const Front& front = f.fronts[s];
    const auto rows = f.row.begin() + front.rows_begin;
    for (Index c = 0; c < front.children; ++c) {
      const Index child = f.children[front.children_begin + c];
      for (Index r = 0; r < f.fronts[child].rows; ++r) {
        Index to = f.row[f.fronts[child].rows_begin + r];
        if (to >= front.first + front.pivots)
          to = plan.solve_row[front.rows_begin + (std::lower_bound(rows, rows + front.rows, to) - rows)];
        plan.taken.push_back({to, first_own[child] + r});
      }
    }
    plan.taken_begin.push_back(static_cast<Index>(plan.taken.size()));
  }
}

}  // namespace

Plan make_plan(Fronts& f) {
  Plan plan;
  choose_units(f, plan);
  place_updates(f, plan);
  find_solve_rows(f, plan);
  return plan;
}

}  // namespace limber::sparse
