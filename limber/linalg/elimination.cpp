#include <limber/core/error.hpp>
#include <limber/linalg/elimination.hpp>

#include <amd.h>
#include <fmt/format.h>
#include <metis.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

namespace limber::sparse {
namespace {

// Adjacency of the nodes outside the tail, renumbered.
struct Graph {
  std::vector<Index> node;  // vertex -> node of the pattern
  std::vector<Index> begin, neighbour;
};

Graph graph_without_tail(const BlockPattern& p, const std::vector<char>& in_tail) {
  Graph g;
  std::vector<Index> vertex(p.n, -1);
  for (Index i = 0; i < p.n; ++i)
    if (!in_tail[i]) {
      vertex[i] = static_cast<Index>(g.node.size());
      g.node.push_back(i);
    }
  g.begin.push_back(0);
  for (const Index i : g.node) {
    for_neighbours(p, i, [&](Index k) {
      if (!in_tail[k]) g.neighbour.push_back(vertex[k]);
    });
    g.begin.push_back(static_cast<Index>(g.neighbour.size()));
  }
  return g;
}

std::vector<Index> amd_order(const Graph& g) {
  const Index n = static_cast<Index>(g.node.size());
  std::vector<Index> order(n);
  double control[AMD_CONTROL], info[AMD_INFO];
  amd_defaults(control);
  const int status = ::amd_order(n, g.begin.data(), g.neighbour.data(), order.data(), control, info);
  if (status != AMD_OK && status != AMD_OK_BUT_JUMBLED)
    throw Error(ErrorKind::kSimulation,
                fmt::format("AMD ordering of {} nodes failed (status {})", n, status));
  return order;
}

std::vector<Index> metis_order(Graph& g) {
  static_assert(sizeof(idx_t) == sizeof(Index), "METIS must be built with 32-bit indices");
  idx_t n = static_cast<idx_t>(g.node.size());
  std::vector<Index> order(n), position(n);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  // METIS draws from the C library's random numbers: one at a time keeps an order reproducible.
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  const int status =
      METIS_NodeND(&n, g.begin.data(), g.neighbour.data(), nullptr, options, order.data(), position.data());
  if (status != METIS_OK)
    throw Error(ErrorKind::kSimulation,
                fmt::format("METIS ordering of {} nodes failed (status {})", n, status));
  return order;
}

// Parents by Liu's algorithm: climb from every earlier neighbour, with shortcuts to the ancestor reached
// last.
void find_parents(const BlockPattern& p, Elimination& e) {
  std::vector<Index> ancestor(p.n, -1);
  e.parent.assign(p.n, -1);
  const auto climb = [&](Index from, Index to) {
    for (Index k = from; k != -1 && k < to;) {
      const Index next = ancestor[k];
      ancestor[k] = to;
      if (next == -1) e.parent[k] = to;
      k = next;
    }
  };
  for (Index i = 0; i < p.n; ++i) {
    for_neighbours(p, e.order[i], [&](Index node) {
      if (e.position[node] < i) climb(e.position[node], i);
    });
    if (i > p.n - e.tail) climb(i - 1, i);
  }
}

void set_order(Elimination& e, std::vector<Index> order) {
  e.order = std::move(order);
  e.position.resize(e.order.size());
  for (std::size_t k = 0; k < e.order.size(); ++k) e.position[e.order[k]] = static_cast<Index>(k);
}

// Visits children before parents, each subtree in one piece; the tail stays last and in order.
void postorder_head(const BlockPattern& p, Elimination& e) {
  const Index head = p.n - e.tail;
  std::vector<Index> first_child(head, -1), next_sibling(head, -1), roots;
  for (Index k = head - 1; k >= 0; --k) {
    const Index up = e.parent[k];
    if (up == -1 || up >= head) {
      roots.push_back(k);
    } else {
      next_sibling[k] = first_child[up];
      first_child[up] = k;
    }
  }
  std::vector<Index> order, stack;
  order.reserve(p.n);
  for (auto root = roots.rbegin(); root != roots.rend(); ++root) {
    stack.push_back(*root);
    while (!stack.empty()) {
      const Index k = stack.back();
      if (first_child[k] != -1) {
        stack.push_back(first_child[k]);
        first_child[k] = next_sibling[first_child[k]];
      } else {
        order.push_back(e.order[k]);
        stack.pop_back();
      }
    }
  }
  order.insert(order.end(), e.order.begin() + head, e.order.end());
  set_order(e, std::move(order));
  find_parents(p, e);
}

// The row i of L is the union of the tree paths from its neighbours up to i.
void count_fill(const BlockPattern& p, int block, Elimination& e) {
  std::vector<Index> mark(p.n, -1);
  e.count.assign(p.n, 1);
  for (Index i = 0; i < p.n; ++i) {
    mark[i] = i;
    const auto climb = [&](Index k) {
      for (; k < i && mark[k] != i; k = e.parent[k]) {
        mark[k] = i;
        ++e.count[k];
      }
    };
    for_neighbours(p, e.order[i], [&](Index node) { climb(e.position[node]); });
    for (Index k = p.n - e.tail; k < i; ++k) climb(k);
  }
  e.nnz = e.flops = 0;
  for (const Index c : e.count) {
    for (int a = 0; a < block; ++a) {  // the columns of a node
      const double rows = static_cast<double>(block) * c - a;
      e.nnz += rows;
      e.flops += rows * rows;
    }
  }
}

}  // namespace

Elimination eliminate(const BlockPattern& pattern, std::span<const Index> tail, const std::string& ordering,
                      int block) {
  if (ordering != "auto" && ordering != "amd" && ordering != "metis")
    throw Error(ErrorKind::kUsage,
                fmt::format("ordering \"{}\": expected \"auto\", \"amd\" or \"metis\"", ordering));
  std::vector<char> in_tail(pattern.n, 0);
  for (const Index t : tail) {
    if (t < 0 || t >= pattern.n || in_tail[t])
      throw Error(
          ErrorKind::kUsage,
          fmt::format("Cholesky analysis: tail node {} is repeated or outside 0 to {}", t, pattern.n - 1));
    in_tail[t] = 1;
  }
  Graph graph = graph_without_tail(pattern, in_tail);
  const auto attempt = [&](const char* name) {
    Elimination e;
    e.ordering = name;
    e.tail = static_cast<Index>(tail.size());
    std::vector<Index> order(graph.node.size());
    if (graph.neighbour.empty())
      std::iota(order.begin(), order.end(), 0);  // any order will do, and neither library takes no edges
    else
      order = e.ordering == "amd" ? amd_order(graph) : metis_order(graph);
    for (Index& v : order) v = graph.node[v];
    order.insert(order.end(), tail.begin(), tail.end());
    set_order(e, std::move(order));
    find_parents(pattern, e);
    postorder_head(pattern, e);
    count_fill(pattern, block, e);
    return e;
  };
  if (ordering != "auto") return attempt(ordering.c_str());
  Elimination amd = attempt("amd"), metis = attempt("metis");
  return metis.flops < amd.flops ? metis : amd;
}

Elimination eliminate_in_order(const BlockPattern& pattern, std::span<const Index> order, Index tail,
                               int block) {
  std::vector<char> seen(at(pattern.n), 0);
  for (const Index i : order)
    if (i < 0 || i >= pattern.n || std::exchange(seen[at(i)], 1))
      throw Error(ErrorKind::kUsage,
                  fmt::format("Cholesky analysis: node {} of the given order is repeated or outside 0 to {}",
                              i, pattern.n - 1));
  if (static_cast<Index>(order.size()) != pattern.n)
    throw Error(ErrorKind::kUsage, fmt::format("Cholesky analysis: the given order has {} nodes, expected {}",
                                               order.size(), pattern.n));
  Elimination e;
  e.ordering = "given";
  e.tail = tail;
  set_order(e, {order.begin(), order.end()});
  find_parents(pattern, e);
  postorder_head(pattern, e);
  count_fill(pattern, block, e);
  return e;
}

}  // namespace limber::sparse
