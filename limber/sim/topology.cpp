#include <limber/sim/topology.hpp>

#include <limber/rigid/articulation.hpp>
#include <limber/rigid/link_surfaces.hpp>
#include <limber/sim/contact_state.hpp>
#include <limber/sim/embedded_surface.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/measured_fields.hpp>
#include <limber/sim/model.hpp>
#include <limber/sim/model_parts.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace limber {

void Transfer::add_copy(Index source) {
  from.push_back(source);
  weight.push_back(1.0);
  begin.push_back(static_cast<Index>(from.size()));
}

void Transfer::add(std::span<const std::pair<Index, double>> sources) {
  for (const auto& [source, w] : sources) {
    from.push_back(source);
    weight.push_back(w);
  }
  begin.push_back(static_cast<Index>(from.size()));
}

Transfer Transfer::copies(std::span<const Index> sources) {
  Transfer out;
  for (const Index i : sources) out.add_copy(i);
  return out;
}

Index Transfer::main(Index i) const {
  const std::span<const double> w = weights(i);
  return sources(i)[static_cast<std::size_t>(std::max_element(w.begin(), w.end()) - w.begin())];
}

bool Transfer::copies_only(Index i) const { return begin[i + 1] - begin[i] == 1; }

bool Transfer::stays(Index i) const { return copies_only(i) && from[begin[i]] == i; }

VecX Transfer::apply3(const VecX& old) const {
  VecX out(3 * rows());
  for (Index i = 0; i < rows(); ++i) {
    if (copies_only(i)) {
      node(out, i) = node(old, from[begin[i]]);
      continue;
    }
    Vec3 sum = Vec3::Zero();
    for (Index k = begin[i]; k < begin[i + 1]; ++k) sum += weight[k] * Vec3(node(old, from[k]));
    node(out, i) = sum;
  }
  return out;
}

std::vector<Index> Transfer::apply(const std::vector<Index>& set, Index old_items) const {
  std::vector<std::uint8_t> in(static_cast<std::size_t>(old_items), 0);
  std::vector<Index> out;
  for (const Index i : set) {
    in[i] = 1;
    if (i < rows() && stays(i)) out.push_back(i);
  }
  for (Index i = 0; i < rows(); ++i) {
    if (stays(i)) continue;
    const std::span<const Index> all = sources(i);
    if (!all.empty() && std::all_of(all.begin(), all.end(), [&](Index s) { return in[s] != 0; }))
      out.push_back(i);
  }
  return out;
}

Transfer compose(const Transfer& first, const Transfer& then) {
  Transfer out;
  std::vector<std::pair<Index, double>> sum;
  for (Index i = 0; i < then.rows(); ++i) {
    sum.clear();
    for (Index k = then.begin[i]; k < then.begin[i + 1]; ++k)
      for (Index j = first.begin[then.from[k]]; j < first.begin[then.from[k] + 1]; ++j) {
        const double w = then.weight[k] * first.weight[j];
        const auto known =
            std::find_if(sum.begin(), sum.end(), [&](const auto& s) { return s.first == first.from[j]; });
        if (known == sum.end())
          sum.emplace_back(first.from[j], w);
        else
          known->second += w;
      }
    out.add(sum);
  }
  return out;
}

std::uint64_t digest_of(const TopologyChange& change) {
  Hasher hasher;
  const auto add = [&](const auto& list) {
    hasher.add_word(list.size());
    hasher.add(list.data(), list.size() * sizeof(*list.data()));
  };
  add(change.rest);
  add(change.elements);
  for (const Transfer* t : {&change.nodes, &change.element_values}) {
    add(t->begin);
    add(t->from);
    add(t->weight);
  }
  return hasher.digest();
}

Topology compose(const Topology* before, TopologyChange change) {
  Topology out;
  static_cast<TopologyChange&>(out) = std::move(change);
  out.x = out.v = VecX();
  out.memory = {};
  if (before) {
    out.nodes = compose(before->nodes, out.nodes);
    out.element_values = compose(before->element_values, out.element_values);
  }
  out.digest = digest_of(out);
  return out;
}

namespace {

std::string transfer_misfit(const char* name, const Transfer& t, std::size_t rows, Index old_items) {
  if (t.begin.size() != rows + 1 || t.begin[0] != 0 || t.from.size() != t.weight.size() ||
      t.begin.back() != static_cast<Index>(t.from.size()))
    return fmt::format("the transfer of {} has {} rows and {} sources, expected {} rows", name,
                       t.begin.size() - 1, t.from.size(), rows);
  for (std::size_t i = 0; i < rows; ++i) {
    if (t.begin[i + 1] <= t.begin[i] || t.begin[i + 1] > static_cast<Index>(t.from.size()))
      return fmt::format("the transfer of {} has no source for {}", name, i);
    double sum = 0;
    for (Index k = t.begin[i]; k < t.begin[i + 1]; ++k) {
      if (t.from[k] < 0 || t.from[k] >= old_items)
        return fmt::format("the transfer of {} names {} as a source; there are {}", name, t.from[k],
                           old_items);
      sum += t.weight[k];
    }
    if (!(std::abs(sum - 1) < 1e-9))
      return fmt::format("the transfer of {} has weights for {} that sum to {}, expected 1", name, i, sum);
  }
  return {};
}

}  // namespace

std::string misfit(const Model& model, const TopologyChange& change) {
  const auto old_elements = static_cast<Index>(model.mesh.elements.size());
  std::string why = transfer_misfit("nodes", change.nodes, change.rest.size(), model.nodes());
  if (why.empty())
    why = transfer_misfit("elements", change.element_values, change.elements.size(), old_elements);
  if (!why.empty()) return why;
  const auto dofs = static_cast<Eigen::Index>(3 * change.rest.size());
  for (const VecX* given : {&change.x, &change.v})
    if (given->size() != 0 && (given->size() != dofs || !given->allFinite()))
      return fmt::format("it gives {} numbers for positions or velocities, expected {} finite ones",
                         given->size(), dofs);
  for (const Vec3& x : change.rest)
    if (!x.allFinite()) return "a rest position is not finite";
  const auto n = static_cast<Index>(change.rest.size());
  const auto body_of = [&](Index element) {
    std::size_t b = 0;
    while (element >= model.bodies[b].elements.end) ++b;
    return static_cast<Index>(b);
  };
  Index last = 0;
  for (Index e = 0; e < static_cast<Index>(change.elements.size()); ++e) {
    const Index source = change.element_values.main(e), body = body_of(source);
    if (body < last) return fmt::format("element {} comes after those of a later body", e);
    last = body;
    for (std::size_t c = 0; c < 4; ++c) {
      const Index i = change.elements[e][c];
      if ((i < 0) != (model.mesh.elements[source][c] < 0) || i >= n)
        return fmt::format("element {} names node {}; there are {}", e, i, n);
      if (i >= 0 && model.body_of_node[change.nodes.main(i)] != body)
        return fmt::format("element {} has node {}, which belongs to another body", e, i);
    }
  }
  return {};
}

Model with_topology(const Model& base, const Topology& t) {
  const Index old_nodes = base.nodes();
  const auto old_elements = static_cast<Index>(base.mesh.elements.size());
  Model next;
  next.scene = base.scene;
  next.mesh.rest = t.rest;
  next.mesh.elements = t.elements;
  next.mesh.material.reserve(t.elements.size());
  next.bodies = base.bodies;
  for (Body& body : next.bodies) body.elements = {0, 0};
  std::size_t b = 0;
  for (Index e = 0; e < static_cast<Index>(t.elements.size()); ++e) {
    const Index source = t.element_values.main(e);
    next.mesh.material.push_back(base.mesh.material[source]);
    next.mesh.kinds.push_back(base.mesh.kind(static_cast<std::size_t>(source)));
    while (source >= base.bodies[b].elements.end) {
      next.bodies[b].elements.end = e;
      next.bodies[++b].elements.begin = e;
    }
    next.bodies[b].elements.end = e + 1;
  }
  for (++b; b < next.bodies.size(); ++b)
    next.bodies[b].elements = {static_cast<Index>(t.elements.size()), static_cast<Index>(t.elements.size())};
  for (Index i = 0; i < t.nodes.rows(); ++i) {
    next.body_of_node.push_back(base.body_of_node[t.nodes.main(i)]);
    next.origin.push_back(base.origin[t.nodes.main(i)]);
  }
  for (const auto& [name, ids] : base.node_sets) next.node_sets[name] = t.nodes.apply(ids, old_nodes);
  for (const auto& [name, ids] : base.element_sets)
    next.element_sets[name] = t.element_values.apply(ids, old_elements);
  next.holds = base.holds;
  for (Hold& hold : next.holds) hold.nodes = t.nodes.apply(hold.nodes, old_nodes);
  next.loads = base.loads;
  for (Load& load : next.loads) {
    const std::vector<Index> old = std::move(load.nodes);
    load.nodes = t.nodes.apply(old, old_nodes);
    if (load.acceleration.empty()) continue;
    VecX a = VecX::Zero(3 * old_nodes);
    for (std::size_t j = 0; j < old.size(); ++j) node(a, old[j]) = load.acceleration[j];
    const VecX carried = t.nodes.apply3(a);
    load.acceleration.clear();
    for (const Index i : load.nodes) load.acceleration.push_back(node(carried, i));
  }
  next.probes = base.probes;
  for (Probe& probe : next.probes)
    probe.items = MeasuredFields::of_elements(base.scene->probes[probe.probe].value)
                      ? t.element_values.apply(probe.items, old_elements)
                      : t.nodes.apply(probe.items, old_nodes);
  next.velocity = t.nodes.apply3(base.velocity);
  next.activations = base.activations;
  next.contact.obstacles = base.contact.obstacles;
  next.articulation = base.articulation;
  next.link_surfaces = base.link_surfaces;
  if (base.articulation && !base.articulation->attachments.empty()) {
    // A node hangs on a link if all that it comes from does.
    std::vector<Index> attached(static_cast<std::size_t>(old_nodes), -1), ids;
    for (std::size_t k = 0; k < base.articulation->attachments.size(); ++k) {
      ids.push_back(base.articulation->attachments[k].node);
      attached[ids.back()] = static_cast<Index>(k);
    }
    auto articulation = std::make_shared<rigid::Articulation>(*base.articulation);
    articulation->attachments.clear();
    for (const Index i : t.nodes.apply(ids, old_nodes)) {
      rigid::Attachment a = base.articulation->attachments[attached[t.nodes.main(i)]];
      const Index link = a.link;
      a.node = i;
      bool one_link = true;
      if (!t.nodes.copies_only(i)) a.x.setZero();
      for (Index k = t.nodes.begin[i]; k < t.nodes.begin[i + 1] && !t.nodes.copies_only(i); ++k) {
        const rigid::Attachment& source = base.articulation->attachments[attached[t.nodes.from[k]]];
        one_link = one_link && source.link == link;
        a.x += t.nodes.weight[k] * source.x;
      }
      if (one_link) articulation->attachments.push_back(a);
    }
    next.articulation = std::move(articulation);
  }
  // Bound anew: a cut has given other nodes to the elements, none to the surface, whose faces across it are
  // gone.
  for (const auto& e : base.embedded) add_embedded(e->body, e->surface, next);
  finish_model(next);
  return next;
}

void carry_state(const Model& before, const TopologyChange& change, State& state) {
  const std::vector<Anchor> old = anchors_of(state);
  std::vector<Anchor> anchors;
  for (Index i = 0; i < change.nodes.rows() && !old.empty(); ++i)
    for (std::size_t o = 0; o < before.contact.obstacles.size() && change.nodes.copies_only(i); ++o)
      if (const Anchor* a = find_anchor(old, change.nodes.main(i), static_cast<Index>(o)))
        anchors.push_back({i, a->obstacle, a->point});
  store_anchors(anchors, state);
  state.x = change.x.size() > 0 ? change.x : change.nodes.apply3(state.x);
  state.v = change.v.size() > 0 ? change.v : change.nodes.apply3(state.v);
  state.topology = std::make_shared<const Topology>(compose(state.topology.get(), change));
  state.epoch += 1;
  if (change.memory.empty()) return;
  state.memory = change.memory;
  state.memory.set_epoch(state.epoch);
}

void add_bodies(const Model& base_before, const Model& base, State& state) {
  const Index first = base_before.nodes();
  if (state.topology) {
    Topology next = *state.topology;
    const Index shift = next.nodes.rows() - first;
    for (Index i = first; i < base.nodes(); ++i) {
      next.rest.push_back(base.mesh.rest[at(i)]);
      next.nodes.add_copy(i);
    }
    for (std::size_t e = base_before.mesh.elements.size(); e < base.mesh.elements.size(); ++e) {
      Tet element = base.mesh.elements[e];
      for (Index& i : element)
        if (i >= 0) i += shift;  // triangles have three nodes
      next.elements.push_back(element);
      next.element_values.add_copy(static_cast<Index>(e));
    }
    next.digest = digest_of(next);
    state.topology = std::make_shared<const Topology>(std::move(next));
  }
  const State start = initial_state(base);
  const auto append = [&](const VecX& of_start, VecX& to) {
    const Eigen::Index old = to.size(), added = of_start.size() - 3 * static_cast<Eigen::Index>(first);
    to.conservativeResize(old + added);
    to.tail(added) = of_start.tail(added);
  };
  append(start.x, state.x);
  append(start.v, state.v);
}

}  // namespace limber
