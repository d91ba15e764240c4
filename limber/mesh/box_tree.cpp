#include <limber/mesh/box_tree.hpp>

#include <algorithm>
#include <array>
#include <numeric>

namespace limber {
namespace {

constexpr Index kBoxesOfLeaf = 4;

}  // namespace

void BoxTree::build(std::span<const Box> boxes, std::span<const Vec3> centers) {
  nodes_.clear();
  order_.resize(boxes.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::vector<Vec3> middle;
  if (centers.empty())
    for (const Box& b : boxes) middle.push_back(0.5 * (b.lo + b.hi));
  if (!boxes.empty()) split(centers.empty() ? middle : centers, 0, static_cast<Index>(boxes.size()));
  fit(boxes);
}

Index BoxTree::split(std::span<const Vec3> center, Index begin, Index end) {
  const auto self = static_cast<Index>(nodes_.size());
  nodes_.push_back({{}, begin, end, -1});
  if (end - begin <= kBoxesOfLeaf) return self;
  Box box;
  for (Index k = begin; k < end; ++k) box.add(center[order_[k]]);
  int axis = 0;
  box.size().maxCoeff(&axis);
  const Index middle = begin + (end - begin) / 2;
  std::nth_element(order_.begin() + begin, order_.begin() + middle, order_.begin() + end,
                   [&](Index a, Index b) {
                     return center[a][axis] != center[b][axis] ? center[a][axis] < center[b][axis] : a < b;
                   });
  split(center, begin, middle);
  const Index right = split(center, middle, end);
  nodes_[self].right = right;
  return self;
}

void BoxTree::fit(std::span<const Box> boxes) {
  fit_leaves(0, static_cast<Index>(nodes_.size()), [&](Index k) { return boxes[k]; });
  fit_above();
}

void BoxTree::fit_above() {
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {  // children come after their parents
    if (node->leaf()) continue;
    node->box = (&*node + 1)->box;
    join(node->box, nodes_[node->right].box);
  }
}

}  // namespace limber
