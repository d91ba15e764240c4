// Which nodes of ConJac are dynamic.
#pragma once

#include <limber/sim/model.hpp>

#include <vector>

namespace limber {

struct DynamicNodes {
  std::vector<Index> nodes;  // representative nodes: those of the scene first, then the reserve
  Index chosen = 0;          // how many come from the scene
};

// The scene's dynamic nodes, and a reserve: a few well-spread nodes of every piece that could be left with
// too few dynamic and held nodes to fix its rigid motions. Reserve nodes are dynamic only while that is so.
DynamicNodes choose_dynamic_nodes(const Model& model);

using Adjacency = std::vector<std::vector<Index>>;  // neighbours of each node

// `count` of the `candidates` that are far from each other and from `avoid`, measured along the edges
// (farthest point first); the same for the same input. Throws Error(kInput) when there are too few
// candidates.
std::vector<Index> spread_nodes(const std::vector<Vec3>& rest, const Adjacency& edges,
                                const std::vector<Index>& candidates, const std::vector<Index>& avoid,
                                Index count);

}  // namespace limber
