// The tree of boxes: over triangles that stay (SurfaceTree, ClosedSurface) and over things that move, where
// it is built once and fitted again when they have moved. It halves what it holds at the median of the
// centres along the longest side of their box.
#pragma once

#include <limber/mesh/geometry.hpp>

#include <array>
#include <span>
#include <vector>

namespace limber {

inline bool overlap(const Box& a, const Box& b, double distance = 0) {
  // By numbers: searches for contacts spend their time here, and the compiler does not take apart an
  // expression of vectors.
  return a.lo[0] <= b.hi[0] + distance && b.lo[0] <= a.hi[0] + distance && a.lo[1] <= b.hi[1] + distance &&
         b.lo[1] <= a.hi[1] + distance && a.lo[2] <= b.hi[2] + distance && b.lo[2] <= a.hi[2] + distance;
}

inline void join(Box& box, const Box& other) {
  for (int k = 0; k < 3; ++k) {
    box.lo[k] = std::min(box.lo[k], other.lo[k]);
    box.hi[k] = std::max(box.hi[k], other.hi[k]);
  }
}

inline double squared_distance(const Box& box, const Vec3& x) {
  return (x - x.cwiseMax(box.lo).cwiseMin(box.hi)).squaredNorm();
}

inline Box triangle_box(std::span<const Vec3> x, const Tri& t) {
  Box box;
  for (const Index v : t) box.add(x[v]);
  return box;
}

class BoxTree {
 public:
  // `centers`: of the things, if those of their boxes will not do.
  void build(std::span<const Box> boxes, std::span<const Vec3> centers = {});
  void fit(std::span<const Box> boxes);
  // The same in two parts, the first of which can be done by many at a time: leaves among the nodes [begin,
  // end), where box_of(thing) is the box of a thing; then what is above them.
  template <class BoxOf>
  void fit_leaves(Index begin, Index end, BoxOf&& box_of) {
    for (Index i = begin; i < end; ++i) {
      Node& node = nodes_[static_cast<std::size_t>(i)];
      if (!node.leaf()) continue;
      node.box = {};
      for (Index k = node.begin; k < node.end; ++k)
        join(node.box, box_of(order_[static_cast<std::size_t>(k)]));
    }
  }
  void fit_above();
  // Things whose leaf of the tree is within `distance` of `box` along every axis, in a fixed order.
  void find(const Box& box, double distance, std::vector<Index>& out) const {
    find(box, distance, out, [](Index) { return false; });
  }
  // Without what is below nodes that `skip` says.
  template <class Skip>
  void find(const Box& box, double distance, std::vector<Index>& out, Skip&& skip) const {
    out.clear();
    std::array<Index, kStack> stack;
    int top = 0;
    if (!nodes_.empty()) stack[0] = 0, top = 1;
    while (top > 0) {
      const Index i = stack[static_cast<std::size_t>(--top)];
      const Node& node = nodes_[static_cast<std::size_t>(i)];
      if (!overlap(node.box, box, distance) || skip(i)) continue;
      if (node.right < 0) {
        out.insert(out.end(), order_.begin() + node.begin, order_.begin() + node.end);
      } else {
        stack[static_cast<std::size_t>(top++)] = node.right;
        stack[static_cast<std::size_t>(top++)] = i + 1;
      }
    }
  }
  const Box& box() const { return nodes_.front().box; }  // of all; there must be one

  // For walks of one's own. The first node is the root; a parent comes before its children.
  struct Node {
    Box box;
    Index begin = 0, end = 0;  // of order()
    Index right = -1;          // the second child; the first follows its parent. -1: a leaf
    bool leaf() const { return right < 0; }
  };
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Index> order() const { return order_; }  // the things, leaf by leaf
  static constexpr int kStack = 64;                        // a walk's stack holds no more: the tree halves

 private:
  Index split(std::span<const Vec3> center, Index begin, Index end);
  std::vector<Node> nodes_;
  std::vector<Index> order_;
};

}  // namespace limber
