#include <limber/methods/conjac/dynamic_nodes.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/conjac/rigid_motion.hpp>
#include <limber/methods/conjac/worst_modes.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/sim/model_parts.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include <fmt/format.h>

namespace limber {
namespace {

// Neighbours along mesh edges; of the uncut body when `uncut`, with copies of a node standing for the node
// itself.
Adjacency mesh_edges(const Model& model, bool uncut) {
  Adjacency edges(static_cast<std::size_t>(model.nodes()));
  const BlockPattern& p = *model.pattern;
  for (Index j = 0; j < p.n; ++j)
    for (Index b = p.col_begin[j] + 1; b < p.col_begin[j + 1]; ++b) {
      const Index i = uncut ? model.origin[p.row[b]] : p.row[b], k = uncut ? model.origin[j] : j;
      edges[k].push_back(i);
      edges[i].push_back(k);
    }
  return edges;
}

// Lowers `distance` to the distance from `source` along the edges (Dijkstra), where that is less. `label`, if
// given, becomes `name` there.
void spread_distance(const std::vector<Vec3>& rest, const Adjacency& edges, Index source,
                     std::vector<double>& distance, std::vector<Index>* label = nullptr, Index name = 0) {
  using Item = std::pair<double, Index>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
  distance[source] = 0;
  if (label) (*label)[source] = name;
  queue.push({0.0, source});
  while (!queue.empty()) {
    const auto [d, i] = queue.top();
    queue.pop();
    if (d > distance[i]) continue;
    for (Index j : edges[i]) {
      const double through = d + (rest[j] - rest[i]).norm();
      if (through < distance[j]) {
        distance[j] = through;
        if (label) (*label)[j] = name;
        queue.push({through, j});
      }
    }
  }
}

// Nodes that some constraint holds from the start and never lets go.
std::vector<std::uint8_t> held_for_good(const Model& model) {
  std::vector<std::uint8_t> held(3 * static_cast<std::size_t>(model.nodes()), 0);
  for (const Hold& hold : model.holds) {
    const ConstraintSpec& spec = model.scene->constraints[hold.constraint];
    if (spec.from > 0 || spec.until) continue;
    for (Index i : hold.nodes)
      for (int k = 0; k < 3; ++k)
        if (spec.axes.find("xyz"[k]) != std::string::npos)
          held[3 * static_cast<std::size_t>(i) + static_cast<std::size_t>(k)] = 1;
  }
  for (const Body& body : model.bodies)
    if (moves_in_plane(body.kind))
      for (Index e = body.elements.begin; e < body.elements.end; ++e)
        for (int k = 0; k < 3; ++k) held[3 * static_cast<std::size_t>(model.mesh.elements[e][k]) + 2] = 1;
  return held;
}

}  // namespace

std::vector<Index> spread_nodes(const std::vector<Vec3>& rest, const Adjacency& edges,
                                const std::vector<Index>& candidates, const std::vector<Index>& avoid,
                                Index count) {
  std::vector<Index> chosen;
  std::vector<double> distance(rest.size(), std::numeric_limits<double>::infinity());
  for (Index i : avoid) spread_distance(rest, edges, i, distance);
  if (avoid.empty() && !candidates.empty() && count > 0) {
    // Nothing to stay away from yet: begin at an end of the body, the node farthest from the first candidate.
    std::vector<double> from_first = distance;
    spread_distance(rest, edges, candidates.front(), from_first);
    Index end = candidates.front();
    for (Index i : candidates)
      if (std::isfinite(from_first[i]) && from_first[i] > from_first[end]) end = i;
    chosen.push_back(end);
    spread_distance(rest, edges, end, distance);
  }
  while (static_cast<Index>(chosen.size()) < count) {
    Index best = -1;
    for (Index i : candidates)
      if (distance[i] > 0 && (best < 0 || distance[i] > distance[best])) best = i;
    if (best < 0)
      throw Error(ErrorKind::kInput,
                  fmt::format("/method/dynamic: {} well-spread nodes were asked for, but there are only {}",
                              count, chosen.size()));
    chosen.push_back(best);
    spread_distance(rest, edges, best, distance);
  }
  return chosen;
}

NearestSource nearest_source(const Model& model, const std::vector<Index>& sources) {
  NearestSource out;
  out.source.assign(static_cast<std::size_t>(model.nodes()), -1);
  out.distance.assign(static_cast<std::size_t>(model.nodes()), std::numeric_limits<double>::infinity());
  const Adjacency edges = mesh_edges(model, true);
  for (std::size_t k = 0; k < sources.size(); ++k)
    spread_distance(model.mesh.rest, edges, sources[k], out.distance, &out.source, static_cast<Index>(k));
  return out;
}

std::vector<ModeChoice> choose_modes(const Model& model, const std::vector<DynamicChoice>& choices) {
  std::vector<ModeChoice> out(model.pieces.size());
  for (const DynamicChoice& choice : choices) {
    if (choice.modes.count == 0) continue;
    for (std::size_t p = 0; p < out.size(); ++p) {
      const Body& body = model.bodies[model.body_of_node[model.pieces[p].nodes.front()]];
      if (choice.body.empty() || choice.body == body.name)
        if (choice.modes.count > out[p].count) out[p] = choice.modes;
    }
  }
  return out;
}

DynamicNodes choose_dynamic_nodes(const Model& model, const std::vector<DynamicChoice>& choices,
                                  bool may_switch) {
  // Chosen on the uncut body, so that a cut never moves them; both copies of a node that a cut went through
  // stay dynamic.
  DynamicNodes out;
  std::vector<std::uint8_t> taken(static_cast<std::size_t>(model.nodes()), 0);
  const std::vector<std::uint8_t> held = held_for_good(model);
  auto holds = [&](Index i) {
    return held[3 * static_cast<std::size_t>(i)] != 0 && held[3 * static_cast<std::size_t>(i) + 1] != 0;
  };
  auto take = [&](Index original) {
    if (taken[original]) return;
    for (Index i = 0; i < model.nodes(); ++i)
      if (model.origin[i] == original) {
        taken[i] = 1;
        out.nodes.push_back(i);
        out.region.push_back(out.regions);
      }
    ++out.regions;
  };
  const Adjacency uncut = mesh_edges(model, true);
  for (const DynamicChoice& choice : choices) {
    if (choice.modes.count > 0) continue;
    Selection all;
    all.where = choice.where;
    const std::vector<Index> body =
        select_nodes(model, choice.automatic > 0 ? all : choice.nodes, choice.body);
    if (choice.automatic == 0) {
      for (Index i : body) take(model.origin[i]);
      continue;
    }
    std::vector<Index> candidates, avoid;
    for (Index i : body) {
      if (model.origin[i] != i) continue;  // a copy
      (holds(i) || taken[i] ? avoid : candidates).push_back(i);
    }
    if (choice.automatic > static_cast<Index>(candidates.size()))
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: expected at most {}, the nodes that nothing holds, found {}",
                              choice.where.empty() ? "/method/dynamic" : choice.where, candidates.size(),
                              choice.automatic));
    std::vector<std::uint8_t> fixed = held;
    for (Index i = 0; i < model.nodes(); ++i)
      if (taken[i]) std::fill_n(fixed.begin() + 3 * i, 3, std::uint8_t{1});
    if (model.articulation)
      for (const rigid::Attachment& a : model.articulation->attachments)
        std::fill_n(fixed.begin() + 3 * a.node, 3, std::uint8_t{1});
    const std::vector<Index> spread =
        spread_nodes(model.mesh.rest, uncut, candidates, avoid, choice.automatic);
    for (Index i :
         worst_mode_nodes(model, fixed, candidates, spread, {model.scene->solver, model.scene->ordering}))
      take(i);
  }
  out.chosen = static_cast<Index>(out.nodes.size());

  VecX x(3 * model.nodes());
  for (Index i = 0; i < model.nodes(); ++i) node(x, i) = model.mesh.rest[i];
  const Adjacency edges = mesh_edges(model, false);
  for (const Piece& piece : model.pieces) {
    std::vector<std::uint8_t> fixed = held;
    std::vector<Index> have, candidates;
    for (Index i : piece.nodes) (taken[i] ? have : candidates).push_back(i);
    if (!may_switch)
      for (Index i : have) std::fill_n(fixed.begin() + 3 * i, 3, std::uint8_t{1});
    Vec3 center;
    if (free_rigid_motions(model, piece, x, fixed, center).cols() == 0) continue;
    // Four spread nodes of a solid are not in line; a piece of four nodes gets them all.
    const auto reserve = static_cast<Index>(std::min<std::size_t>(4, candidates.size()));
    for (Index i : spread_nodes(model.mesh.rest, edges, candidates, have, reserve)) out.nodes.push_back(i);
  }
  return out;
}

}  // namespace limber
