#include <limber/linalg/native/fronts.hpp>

#include <algorithm>
#include <numeric>

namespace limber::sparse {
namespace {

// Columns that are eliminated together, while fronts are being joined.
struct Group {
  Index pivots = 0, rows = 0;  // nodes
  Index parent = -1;
  std::vector<Index> children;
  std::vector<Index> columns;  // positions of the elimination
};

// Consecutive columns with the same structure; the tail is one group.
std::vector<Group> fundamental_groups(const Elimination& e) {
  const Index n = static_cast<Index>(e.order.size()), head = n - e.tail;
  std::vector<Group> groups;
  std::vector<Index> group_of(n);
  for (Index j = 0; j < n; ++j) {
    const bool joins =
        j > 0 && (j < head ? e.parent[j - 1] == j && e.count[j - 1] == e.count[j] + 1 : j > head);
    if (!joins) groups.emplace_back();
    groups.back().columns.push_back(j);
    group_of[j] = static_cast<Index>(groups.size()) - 1;
  }
  for (Index g = 0; g < static_cast<Index>(groups.size()); ++g) {
    Group& group = groups[g];
    const Index last = group.columns.back();
    group.pivots = static_cast<Index>(group.columns.size());
    group.rows = e.count[last] - 1;
    const Index up = e.parent[last];
    if (up == -1 || last >= head) continue;
    group.parent = group_of[up];
    groups[group.parent].children.push_back(g);
  }
  return groups;
}

// Joins a front with its parent when the two cost more than the one that comes out, zeros included. The rows
// below the joined front are the parent's: a child has no others.
void join_groups(std::vector<Group>& groups, Index head_groups, int block) {
  const auto cost = [&](Index pivots, Index rows) {
    return front_cost(static_cast<long>(block) * pivots, static_cast<long>(block) * rows);
  };
  for (Index g = 0; g < head_groups; ++g) {
    Group& p = groups[g];
    const auto gain = [&](const Group& c) {
      return cost(c.pivots, c.rows) + cost(p.pivots, p.rows) - cost(p.pivots + c.pivots, p.rows);
    };
    std::vector<Index> candidates = p.children, kept;
    while (!candidates.empty()) {
      std::vector<std::pair<double, Index>> ranked;
      for (const Index c : candidates) ranked.push_back({-gain(groups[c]), c});
      std::sort(ranked.begin(), ranked.end());
      candidates.clear();
      for (const auto& [unused, c] : ranked) {
        Group& child = groups[c];
        if (gain(child) <= 0) {
          kept.push_back(c);
          continue;
        }
        p.pivots += child.pivots;
        p.columns.insert(p.columns.end(), child.columns.begin(), child.columns.end());
        candidates.insert(candidates.end(), child.children.begin(), child.children.end());
        child = Group();
      }
      // A larger front may take what it refused before; stop when a round brings nothing.
      if (!candidates.empty()) {
        candidates.insert(candidates.end(), kept.begin(), kept.end());
        kept.clear();
      }
    }
    p.children = std::move(kept);
    std::sort(p.columns.begin(), p.columns.end());  // the elimination is postordered: children first
    for (const Index c : p.children) groups[c].parent = g;
  }
}

// Children before parents. Among children the one that needs most memory beyond its own update comes first
// (Liu): what it leaves behind is all that waits while the others work.
std::vector<Index> stack_order(std::vector<Group>& groups, int block) {
  const Index count = static_cast<Index>(groups.size());
  std::vector<std::int64_t> peak(count, 0);
  std::vector<Index> roots;
  for (Index g = 0; g < count; ++g) {
    Group& group = groups[g];
    if (group.pivots == 0) continue;
    if (group.parent == -1) roots.push_back(g);
    const auto own = [&](Index c) { return update_size(static_cast<long>(block) * groups[c].rows); };
    std::sort(group.children.begin(), group.children.end(), [&](Index a, Index b) {
      const std::int64_t x = peak[a] - own(a), y = peak[b] - own(b);
      return x != y ? x > y : a < b;
    });
    std::int64_t waiting = 0;
    for (const Index c : group.children) {
      peak[g] = std::max(peak[g], waiting + peak[c]);
      waiting += own(c);
    }
    peak[g] = std::max(peak[g], waiting + own(g));
  }
  std::vector<Index> order;
  std::vector<std::pair<Index, std::size_t>> stack;
  for (const Index root : roots) {
    stack.push_back({root, 0});
    while (!stack.empty()) {
      auto& [g, next] = stack.back();
      if (next < groups[g].children.size()) {
        const Index child = groups[g].children[next++];
        stack.push_back({child, 0});
      } else {
        order.push_back(g);
        stack.pop_back();
      }
    }
  }
  return order;  // the tail, a root and the last group, comes last
}

// The rows of each front: what its columns of the matrix and the updates of its children reach beyond it.
void find_rows(const BlockPattern& p, const std::vector<Index>& position, Fronts& f) {
  std::vector<Index> mark(p.n, -1);
  for (Index s = 0; s < static_cast<Index>(f.fronts.size()); ++s) {
    Front& front = f.fronts[s];
    front.rows_begin = static_cast<Index>(f.row.size());
    const Index end = front.first + front.pivots;
    const auto take = [&](Index r) {
      if (r >= end && mark[r] != s) {
        mark[r] = s;
        f.row.push_back(r);
      }
    };
    for (Index k = front.first; k < end; ++k)
      for_neighbours(p, f.order[k], [&](Index node) { take(position[node]); });
    for (Index c = 0; c < front.children; ++c) {
      const Front& child = f.fronts[f.children[front.children_begin + c]];
      for (Index r = 0; r < child.rows; ++r) take(f.row[child.rows_begin + r]);
    }
    front.rows = static_cast<Index>(f.row.size()) - front.rows_begin;
    std::sort(f.row.begin() + front.rows_begin, f.row.end());
  }
}

void find_runs(Fronts& f) {
  const Index size = f.block;
  std::vector<Index> local(f.order.size());
  for (Front& parent : f.fronts) {
    for (Index k = 0; k < parent.pivots; ++k) local[parent.first + k] = size * k;
    for (Index k = 0; k < parent.rows; ++k)
      local[f.row[parent.rows_begin + k]] = static_cast<Index>(parent.padded_pivots()) + size * k;
    const Index pivot_end = parent.first + parent.pivots;
    for (Index c = 0; c < parent.children; ++c) {
      Front& child = f.fronts[f.children[parent.children_begin + c]];
      child.runs_begin = static_cast<Index>(f.runs.size());
      for (Index r = 0; r < child.rows; ++r) {
        const Index at = f.row[child.rows_begin + r], to = local[at];
        const bool starts_rows = r > 0 && at >= pivot_end && f.row[child.rows_begin + r - 1] < pivot_end;
        if (r > 0 && !starts_rows && f.runs.back().to + f.runs.back().length == to)
          f.runs.back().length += size;
        else
          f.runs.push_back({size * r, to, size});
      }
      if (f.carried > 0)
        f.runs.push_back({size * child.rows, static_cast<Index>(parent.padded_pivots()) + size * parent.rows,
                          size * f.carried});
      child.runs = static_cast<Index>(f.runs.size()) - child.runs_begin;
    }
  }
}

void find_entries(const BlockPattern& p, const std::vector<Index>& position, Fronts& f) {
  const Index size = f.block;
  std::vector<Index> local(p.n);
  f.entries.reserve(p.row.size());
  f.diagonal.resize(p.n);
  for (Front& front : f.fronts) {
    for (Index k = 0; k < front.pivots; ++k) local[front.first + k] = size * k;
    for (Index k = 0; k < front.rows; ++k)
      local[f.row[front.rows_begin + k]] = static_cast<Index>(front.padded_pivots()) + size * k;
    front.entries_begin = static_cast<Index>(f.entries.size());
    for (Index k = front.first; k < front.first + front.pivots; ++k) {
      const Index j = f.order[k], col = size * (k - front.first);
      f.diagonal[k] = p.col_begin[j];
      for (Index b = p.col_begin[j]; b < p.col_begin[j + 1]; ++b)
        if (position[p.row[b]] >= k) f.entries.push_back({b, local[position[p.row[b]]], col});
      for (Index r = p.rows.begin[j]; r < p.rows.begin[j + 1]; ++r)
        if (position[p.rows.col[r]] > k)
          f.entries.push_back({~p.rows.block[r], local[position[p.rows.col[r]]], col});
    }
    front.entries = static_cast<Index>(f.entries.size()) - front.entries_begin;
  }
}

}  // namespace

double front_cost(long K, long M) {
  const double k = static_cast<double>(K), kp = static_cast<double>(round_up(K)),
               m = static_cast<double>(round_up(M));
  const double flops = kp * kp * k / 3 + kp * k * m + k * m * (m + 8);
  return 400 + 12 * kp + 0.45 * k * (kp + m) + 0.35 * m * m / 2 + flops / 52;
}

Fronts make_fronts(const BlockPattern& p, const Elimination& e, int block, Index carried) {
  std::vector<Group> groups = fundamental_groups(e);
  const Index head_groups = static_cast<Index>(groups.size()) - (e.tail > 0 ? 1 : 0);
  join_groups(groups, head_groups, block);
  if (e.tail > 0) {
    // The parents of roots may be any tail column; they are one group. Children that were joined are gone.
    auto& children = groups.back().children;
    std::erase_if(children, [&](Index c) { return groups[c].pivots == 0; });
  }
  const std::vector<Index> order = stack_order(groups, block);

  Fronts f;
  f.tail = e.tail;
  f.block = block;
  f.carried = carried;
  std::vector<Index> front_of(groups.size(), -1);
  for (const Index g : order) {
    const Group& group = groups[g];
    Front front;
    front.block = block;
    front.carried = carried;
    front.first = static_cast<Index>(f.order.size());
    front.pivots = group.pivots;
    for (const Index k : group.columns) f.order.push_back(e.order[k]);
    front.children_begin = static_cast<Index>(f.children.size());
    front.children = static_cast<Index>(group.children.size());
    const Index s = static_cast<Index>(f.fronts.size());
    front.subtree = s;
    for (const Index c : group.children) {
      f.children.push_back(front_of[c]);
      f.fronts[front_of[c]].parent = s;
      front.subtree = std::min(front.subtree, f.fronts[front_of[c]].subtree);
    }
    front_of[g] = s;
    f.fronts.push_back(front);
  }
  std::vector<Index> position(p.n);
  for (Index k = 0; k < p.n; ++k) position[f.order[k]] = k;
  find_rows(p, position, f);
  find_runs(f);
  find_entries(p, position, f);
  for (Front& front : f.fronts) {
    front.values = f.values;
    f.values += ConstPanel{nullptr, front.K(), front.factor_M()}.size();  // a multiple of a cache line
  }
  return f;
}

}  // namespace limber::sparse
