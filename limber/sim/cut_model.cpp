#include <limber/core/error.hpp>
#include <limber/mesh/cut.hpp>
#include <limber/scene/number_file.hpp>
#include <limber/sim/model.hpp>
#include <limber/sim/model_parts.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

namespace limber {
namespace {

// Adds to `ids` the new copies of its members.
void add_copies(const std::vector<Index>& copy_of, Index old_nodes, std::vector<Index>& ids) {
  std::vector<std::uint8_t> in(static_cast<std::size_t>(old_nodes), 0);
  for (Index i : ids) in[i] = 1;
  for (auto i = static_cast<std::size_t>(old_nodes); i < copy_of.size(); ++i)
    if (in[copy_of[i]]) ids.push_back(static_cast<Index>(i));
}

IndexRange body_elements(const Model& model, const EventSpec& event) {
  if (event.body.empty()) return {0, static_cast<Index>(model.mesh.elements.size())};
  for (const Body& body : model.bodies)
    if (body.name == event.body) return body.elements;
  throw Error(ErrorKind::kInput, fmt::format("/events: no body is called \"{}\"", event.body));
}

Face sorted(Face f) {
  std::sort(f.begin(), f.end());
  return f;
}

// Faces from a file: three node ids a row (two for the edges of a plane body), as numbered in the uncut body.
// After earlier cuts every copy of a node stands for it.
CutMesh cut_listed_faces(const Model& model, const EventSpec& event, IndexRange range) {
  const std::string path = (std::filesystem::path(model.scene->folder) / event.face_set).string();
  const NumberFile file = read_numbers(path);
  const auto columns = static_cast<std::size_t>(file.columns);
  if (columns != 2 && columns != 3)
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: {} numbers a row, expected the three node ids of a face (two of an edge of a plane "
                    "body)",
                    path, columns));
  const Index originals = 1 + *std::max_element(model.origin.begin(), model.origin.end());
  Index first = 0, count = originals;  // of the body's nodes
  if (!event.body.empty()) {
    std::size_t b = 0;
    while (model.bodies[b].name != event.body) ++b;
    auto of_body = [&](Index i) { return model.body_of_node[i] == static_cast<Index>(b); };
    while (!of_body(first)) ++first;
    count = 0;
    while (first + count < originals && of_body(first + count)) ++count;
  }
  std::vector<Face> listed;
  for (std::size_t k = 0; k + columns <= file.values.size(); k += columns) {
    Face f{-1, -1, -1};
    for (std::size_t c = 0; c < columns; ++c) {
      const double id = file.values[k + c];
      if (!(id >= 0 && id < count && id == std::floor(id)))
        throw Error(ErrorKind::kInput, fmt::format("{}: row {}: {} is not a node of the body, which has {}",
                                                   path, k / columns + 1, id, count));
      f[c] = first + static_cast<Index>(id);
    }
    listed.push_back(sorted(f));
  }
  std::sort(listed.begin(), listed.end());
  std::vector<Face> current;
  for (Index e = range.begin; e < range.end; ++e) {
    const Tet& t = model.mesh.elements[e];
    for (int skip = 0; skip < 4; ++skip) {
      const Face f{t[(skip + 1) % 4], t[(skip + 2) % 4], t[(skip + 3) % 4]};
      Face original;
      for (std::size_t c = 0; c < 3; ++c) original[c] = f[c] < 0 ? -1 : model.origin[f[c]];
      if (std::binary_search(listed.begin(), listed.end(), sorted(original))) current.push_back(f);
    }
  }
  return cut_by_faces(model.nodes(), model.mesh.elements, current);
}

CutMesh cut_along_plane(const Model& model, const EventSpec& event, IndexRange range) {
  std::vector<std::uint8_t> side(model.mesh.elements.size(), 0);
  for (Index e = range.begin; e < range.end; ++e) {
    const Tet& t = model.mesh.elements[e];
    const int k = t[3] < 0 ? 3 : 4;
    Vec3 center = Vec3::Zero();
    for (int c = 0; c < k; ++c) center += model.mesh.rest[t[c]] / k;
    side[e] = (center - event.point).dot(event.normal) >= 0;
  }
  return cut_by_side(model.nodes(), model.mesh.elements, side);
}

}  // namespace

Model cut_model(const Model& model, std::size_t event_index, CutSummary& summary,
                std::vector<Index>& copy_of) {
  const EventSpec& event = model.scene->events[event_index];
  const IndexRange range = body_elements(model, event);
  CutMesh cut =
      event.face_set.empty() ? cut_along_plane(model, event, range) : cut_listed_faces(model, event, range);
  const Index old_nodes = model.nodes();

  Model next;
  next.scene = model.scene;
  next.bodies = model.bodies;
  next.mesh.elements = std::move(cut.elements);
  next.mesh.material = model.mesh.material;
  next.mesh.rest = model.mesh.rest;
  next.body_of_node = model.body_of_node;
  next.origin = model.origin;
  for (auto i = static_cast<std::size_t>(old_nodes); i < cut.copy_of.size(); ++i) {
    next.mesh.rest.push_back(model.mesh.rest[cut.copy_of[i]]);
    next.body_of_node.push_back(model.body_of_node[cut.copy_of[i]]);
    next.origin.push_back(model.origin[cut.copy_of[i]]);
  }
  next.node_sets = model.node_sets;
  for (auto& [name, ids] : next.node_sets) add_copies(cut.copy_of, old_nodes, ids);
  next.element_sets = model.element_sets;
  next.holds = model.holds;
  for (Hold& hold : next.holds) add_copies(cut.copy_of, old_nodes, hold.nodes);
  next.loads = model.loads;
  for (Load& load : next.loads) add_copies(cut.copy_of, old_nodes, load.nodes);
  next.activations = model.activations;
  next.contact.obstacles = model.contact.obstacles;
  finish_model(next);

  summary.faces = cut.faces;
  summary.new_nodes = next.nodes() - old_nodes;
  summary.pieces_before = static_cast<Index>(model.pieces.size());
  summary.pieces_after = static_cast<Index>(next.pieces.size());
  copy_of = std::move(cut.copy_of);
  return next;
}

}  // namespace limber
