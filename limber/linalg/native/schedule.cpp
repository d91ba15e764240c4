#include <limber/linalg/native/first_fit.hpp>
#include <limber/linalg/native/plan.hpp>

#include <algorithm>

namespace limber::sparse {
namespace {

// A unit or a top front. Items are numbered in the order of their fronts.
struct Item {
  Index unit = -1, front = -1;
  Index gate = 0;           // it starts when all items before this one are done
  std::vector<Index> last;  // the tasks that complete it
};

class Builder {
 public:
  Builder(Fronts& f, const Plan& plan, int threads) : f_(f), plan_(plan) {
    out_.threads = threads;
    // How far ahead of the oldest unfinished item a unit may start.
    ahead_ = threads == 1 ? 1 : 4 * threads;
  }

  Schedule build() {
    find_items();
    for (Index k = 0; k < static_cast<Index>(items_.size()); ++k) {
      add_gate(k);
      if (items_[k].unit != -1)
        add_unit(items_[k]);
      else if (plan_.tiled[items_[k].front])
        add_tiles(items_[k]);
      else
        add_front(items_[k]);
    }
    place_updates();
    out_.graph.finish();
    return std::move(out_);
  }

 private:
  void find_items() {
    item_of_.assign(f_.fronts.size(), -1);
    for (Index s = 0; s < static_cast<Index>(f_.fronts.size()); ++s) {
      const Index unit = plan_.unit_of[s];
      if (unit == -1 || s == plan_.units[unit].begin) {
        items_.emplace_back();
        items_.back().unit = unit;
        items_.back().front = s;
      }
      item_of_[s] = static_cast<Index>(items_.size()) - 1;
    }
  }

  Index add(Task::Kind kind, Index front, long i, long j, double cost) {
    out_.tasks.push_back({kind, front, static_cast<Index>(i), static_cast<Index>(j)});
    return out_.graph.add(cost);
  }

  // Before item k: a gate behind the items that must be done before it, when there is none yet.
  void add_gate(Index k) {
    Item& item = items_[k];
    if (item.unit == -1) {
      // A top front starts after its children, and they after their gates.
      const Front& front = f_.fronts[item.front];
      for (Index c = 0; c < front.children; ++c)
        item.gate = std::max(item.gate, items_[item_of_[f_.children[front.children_begin + c]]].gate);
      return;
    }
    item.gate = std::max<Index>(0, k - ahead_ + 1);
    if (item.gate <= gated_) {
      item.gate = gated_;
      return;
    }
    const Index gate = add(Task::Kind::kGate, -1, 0, 0, 0);
    if (gate_task_ != -1) out_.graph.order(gate_task_, gate);
    for (; gated_ < item.gate; ++gated_)
      for (const Index task : items_[gated_].last) out_.graph.order(task, gate);
    gate_task_ = gate;
  }

  void add_unit(Item& item) {
    const Unit& unit = plan_.units[item.unit];
    double cost = 0;
    for (Index s = unit.begin; s < unit.end; ++s) cost += front_cost(f_.fronts[s].K(), f_.fronts[s].M());
    item.last = {add(Task::Kind::kUnit, item.unit, 0, 0, cost)};
    if (gate_task_ != -1) out_.graph.order(gate_task_, item.last[0]);
  }

  void add_front(Item& item) {
    const Front& front = f_.fronts[item.front];
    item.last = {add(Task::Kind::kFront, item.front, 0, 0, front_cost(front.K(), front.M()))};
    after_children(item.front, item.last[0]);
  }

  // Tile (i, j) takes the products of all blocks before j at once, so it waits for the tile to its left and,
  // below the diagonal, for the diagonal tile of its columns.
  void add_tiles(Item& item) {
    const Index s = item.front;
    const long P = pivot_blocks(f_.fronts[s]), Q = row_blocks(f_.fronts[s]);
    const double product = 2.0 * kBlock * kBlock * kBlock / 50;  // [ns]
    std::vector<Index> tile(static_cast<std::size_t>((P + Q) * P));
    const auto at = [&](long i, long j) -> Index& { return tile[static_cast<std::size_t>(i * P + j)]; };
    for (long j = 0; j < P; ++j)
      for (long i = j; i < P + Q; ++i) {
        at(i, j) = add(i == j ? Task::Kind::kDiagonal : Task::Kind::kPivots, s, i, j,
                       product * (static_cast<double>(j) + 0.7));
        if (i == 0 && j == 0) after_children(s, at(i, j));
        if (i > j) out_.graph.order(at(j, j), at(i, j));
        if (j > 0) out_.graph.order(at(i, j - 1), at(i, j));
      }
    if (f_.fronts[s].parent == -1) {  // nobody takes an update
      for (long i = Q == 0 ? P - 1 : P; i < P + Q; ++i) item.last.push_back(at(i, P - 1));
      return;
    }
    for (long j = P; j < P + Q; ++j)
      for (long i = j; i < P + Q; ++i) {
        const Index task = add(Task::Kind::kUpdate, s, i - P, j - P, product * static_cast<double>(P));
        out_.graph.order(at(i, P - 1), task);
        if (i != j) out_.graph.order(at(j, P - 1), task);
        item.last.push_back(task);
      }
  }

  void after_children(Index s, Index task) {
    const Front& front = f_.fronts[s];
    Index seen = -1;  // children of one unit follow each other
    for (Index c = 0; c < front.children; ++c) {
      const Index item = item_of_[f_.children[front.children_begin + c]];
      if (item == seen) continue;
      seen = item;
      for (const Index before : items_[item].last) out_.graph.order(before, task);
    }
  }

  // An update may lie where another one lay if that one's parent is done before: the parent lies behind the
  // gate, or below the front that the new update comes from.
  void place_updates() {
    FirstFit memory;
    std::vector<Index> placed;
    for (Index s = 0; s < static_cast<Index>(f_.fronts.size()); ++s) {
      Front& front = f_.fronts[s];
      if (!plan_.shares_update(f_, s)) continue;
      const Item& item = items_[item_of_[s]];
      memory.clear();
      for (const Index a : placed) {
        const Index up = f_.fronts[a].parent;
        const bool below = item.unit == -1 && up >= front.subtree && up < s;
        if (!below && item_of_[up] >= item.gate)
          memory.avoid(f_.fronts[a].update, update_size(f_.fronts[a].factor_M()));
      }
      front.update = memory.place(update_size(front.factor_M()));
      front.shared = true;
      placed.push_back(s);
    }
    out_.shared_updates = memory.length();
  }

  Fronts& f_;
  const Plan& plan_;
  Schedule out_;
  std::vector<Item> items_;
  std::vector<Index> item_of_;  // per front
  Index ahead_ = 1, gated_ = 0, gate_task_ = -1;
};

}  // namespace

Schedule make_schedule(Fronts& fronts, const Plan& plan, int threads) {
  return Builder(fronts, plan, threads).build();
}

}  // namespace limber::sparse
