// Which nodes of ConJac are dynamic.
#pragma once

#include <limber/methods/conjac/options.hpp>
#include <limber/sim/model.hpp>

#include <vector>

namespace limber {

struct DynamicNodes {
  std::vector<Index> nodes;   // representative nodes: those of the scene first, then the reserve
  Index chosen = 0;           // how many come from the scene
  std::vector<Index> region;  // of the chosen: number of the node of the uncut body that it is a copy of
  Index regions = 0;
};

// The scene's dynamic nodes (`choices`), and a reserve: a few well-spread nodes of every piece that could be
// left with too few dynamic and held nodes to fix its rigid motions. Reserve nodes are dynamic only while
// that is so. `may_switch`: the scene's nodes are not always dynamic, and cannot be counted on.
DynamicNodes choose_dynamic_nodes(const Model& model, const std::vector<DynamicChoice>& choices,
                                  bool may_switch = false);

// The modes of every piece: the largest of what `choices` ask for its body.
std::vector<ModeChoice> choose_modes(const Model& model, const std::vector<DynamicChoice>& choices);

// Of every node of the uncut body: which source (index into `sources`) is nearest along the edges, and how
// far it is [m]. -1 and infinity where there is none.
struct NearestSource {
  std::vector<Index> source;
  std::vector<double> distance;
};
NearestSource nearest_source(const Model& model, const std::vector<Index>& sources);

using Adjacency = std::vector<std::vector<Index>>;  // neighbours of each node

// `count` of the `candidates` that are far from each other and from `avoid`, measured along the edges
// (farthest point first); the same for the same input. Throws Error(kInput) when there are too few
// candidates.
std::vector<Index> spread_nodes(const std::vector<Vec3>& rest, const Adjacency& edges,
                                const std::vector<Index>& candidates, const std::vector<Index>& avoid,
                                Index count);

}  // namespace limber
