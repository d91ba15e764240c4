// A tree of boxes over things that move: built once, fitted again when they have moved.
#pragma once

#include <limber/mesh/geometry.hpp>

#include <span>
#include <vector>

namespace limber {

inline bool overlap(const Box& a, const Box& b, double distance = 0) {
  return (a.lo.array() <= b.hi.array() + distance).all() && (b.lo.array() <= a.hi.array() + distance).all();
}

class BoxTree {
 public:
  void build(std::span<const Box> boxes);
  void fit(std::span<const Box> boxes);
  // Things whose leaf of the tree is within `distance` of `box` along every axis, in a fixed order.
  void find(const Box& box, double distance, std::vector<Index>& out) const;
  const Box& box() const { return nodes_.front().box; }  // of all; there must be one

 private:
  struct Node {
    Box box;
    Index begin = 0, end = 0;  // of order_
    Index right = -1;          // the second child; the first follows its parent. -1: a leaf
  };
  Index split(const std::vector<Vec3>& center, Index begin, Index end);
  std::vector<Node> nodes_;
  std::vector<Index> order_;
};

}  // namespace limber
