// Steps of building a model that several files share.
#pragma once

#include <limber/sim/model.hpp>

#include <string>
#include <vector>

namespace limber {

struct TexturedSurface;

// Nodes of `body` (of all bodies when empty; sets then go by "body/set" if there are several bodies), by
// their rest positions.
std::vector<Index> select_nodes(const Model& model, const Selection& selection, const std::string& body);

// Elements of it, by their centroids.
std::vector<Index> select_elements(const Model& model, const Selection& selection, const std::string& body);

// Binds a surface to the tetrahedra of a body, in their rest shape.
void add_embedded(Index body, std::shared_ptr<const TexturedSurface> surface, Model& model);

// Computes what follows from mesh, holds and loads: elements, pattern, masses, pieces.
void finish_model(Model& model);

}  // namespace limber
