// Steps of building a model that several files share.
#pragma once

#include <limber/sim/model.hpp>

#include <string>
#include <vector>

namespace limber {

// Nodes of `body` (of all bodies when empty; sets then go by "body/set" if there are several bodies), by
// their rest positions.
std::vector<Index> select_nodes(const Model& model, const Selection& selection, const std::string& body);

// Computes what follows from mesh, holds and loads: elements, pattern, masses, pieces.
void finish_model(Model& model);

}  // namespace limber
