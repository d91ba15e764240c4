// What a scene must have for `cloth`: each throws Error(kInput) with what it found.
#pragma once

#include <limber/methods/cloth/cloth_mesh.hpp>

namespace limber::cloth {

// All bodies are cloth.
void require_cloth(const Model& model);
// Edges have at most two triangles, which turn the same way.
void require_surface(const Model& model, const std::vector<Tri>& triangles, const std::vector<Hinge>& hinges);
// For remeshing: flat at rest, of one material, with one fan of triangles around each vertex.
void require_flat(const Model& model, const std::vector<Tri>& triangles,
                  const std::vector<std::optional<Chart>>& charts);

}  // namespace limber::cloth
