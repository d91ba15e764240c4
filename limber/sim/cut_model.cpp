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
    const int k = corners(t);
    Vec3 center = Vec3::Zero();
    for (int c = 0; c < k; ++c) center += model.mesh.rest[t[c]] / k;
    side[e] = (center - event.point).dot(event.normal) >= 0;
  }
  return cut_by_side(model.nodes(), model.mesh.elements, side);
}

}  // namespace

TopologyChange cut_of_event(const Model& model, std::size_t event_index, CutSummary& summary) {
  const EventSpec& event = model.scene->events[event_index];
  const IndexRange range = body_elements(model, event);
  CutMesh cut =
      event.face_set.empty() ? cut_along_plane(model, event, range) : cut_listed_faces(model, event, range);
  summary.faces = cut.faces;
  summary.new_nodes = static_cast<Index>(cut.copy_of.size()) - model.nodes();
  TopologyChange change;
  change.rest.reserve(cut.copy_of.size());
  for (const Index i : cut.copy_of) change.rest.push_back(model.mesh.rest[i]);
  change.nodes = Transfer::copies(cut.copy_of);
  for (Index e = 0; e < static_cast<Index>(cut.elements.size()); ++e) change.element_values.add_copy(e);
  change.elements = std::move(cut.elements);
  return change;
}

}  // namespace limber
