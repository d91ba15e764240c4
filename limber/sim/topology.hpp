// Topology as a value: a change of it (a cut, a remesh) says what the new mesh is and from where each of its
// nodes and elements takes its values. One function applies it, whoever asked for it.
#pragma once

#include <limber/core/types.hpp>
#include <limber/mesh/mesh.hpp>
#include <limber/sim/memory.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace limber {

struct Model;
struct State;

// New items as weighted sums of old ones: item i is the sum of weight[k] * old item from[k], k from begin[i]
// to begin[i + 1]. Weights of an item sum to one.
struct Transfer {
  std::vector<Index> begin{0}, from;
  std::vector<double> weight;

  Index rows() const { return static_cast<Index>(begin.size()) - 1; }
  void add_copy(Index source);
  void add(std::span<const std::pair<Index, double>> sources);
  static Transfer copies(std::span<const Index> sources);

  std::span<const Index> sources(Index i) const {
    return {from.data() + begin[i], from.data() + begin[i + 1]};
  }
  std::span<const double> weights(Index i) const {
    return {weight.data() + begin[i], weight.data() + begin[i + 1]};
  }
  Index main(Index i) const;        // the source with the largest weight, the first of several
  bool copies_only(Index i) const;  // it has one source
  bool stays(Index i) const;        // it is old item i itself

  VecX apply3(const VecX& old) const;  // of three numbers an item
  // What becomes of a set of old items: those that stay, in its order, then every new item all of whose
  // sources are in it.
  std::vector<Index> apply(const std::vector<Index>& set, Index old_items) const;
};
// `then` after `first`.
Transfer compose(const Transfer& first, const Transfer& then);

struct TopologyChange {
  std::vector<Vec3> rest;     // of the new nodes [m]
  std::vector<Tet> elements;  // in new node numbers; those of a body together, bodies in their order
  Transfer nodes, element_values;
  std::string what;  // for the log: "cut: separated 120 faces"
  // Where the method that asks for the change knows better than weighted sums: positions and velocities of
  // the new nodes, 3n, and its memory, which is then not carried over. Empty: weighted sums, and
  // Stepper::carry. No part of a Topology: what they say is in the State at once.
  VecX x = {}, v = {};
  MethodMemory memory = {};
};

// All changes since the beginning as one: with the scene it makes the model of this epoch. Part of the State.
struct Topology : TopologyChange {
  std::uint64_t digest = 0;  // of all that is above
};
// The topology after `change`; `before` is null at epoch 0.
Topology compose(const Topology* before, TopologyChange change);
std::uint64_t digest_of(const TopologyChange& change);

// What is wrong with a change of `model`, empty: nothing.
std::string misfit(const Model& model, const TopologyChange& change);
// The model of `base` (of epoch 0) with this topology.
Model with_topology(const Model& base, const Topology& topology);
// Carries everything but the method's memory over to the new nodes, and counts the epoch. Positions and
// velocities are weighted sums; a copy of a node that holds on to an obstacle holds on to it as well.
void carry_state(const Model& before, const TopologyChange& change, State& state);
// Lets the bodies that `base` has after those of `base_before` (both of epoch 0) come in as they are at time
// 0: the topology, positions and velocities get their nodes at the end.
void add_bodies(const Model& base_before, const Model& base, State& state);

}  // namespace limber
