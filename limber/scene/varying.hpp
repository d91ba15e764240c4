// Numbers and vectors that vary over a body: one value per element or node.
#pragma once

#include <limber/mesh/mesh.hpp>
#include <limber/scene/scene.hpp>

#include <span>
#include <string>
#include <vector>

namespace limber {

// The value of each element. `centroids`: of the elements in the rest shape after the body's transform [m];
// `fields`: element fields of the mesh file; `folder`: what file names are relative to. Throws Error(kInput)
// or Error(kIo) that begins with the value's `where` and names the element when a number is missing, not
// finite or outside the range.
std::vector<double> evaluate(const Varying& varying, std::span<const Vec3> centroids, const Fields& fields,
                             const std::string& folder);

// The vector of each node. `nodes`: rest positions of the body's nodes after its transform [m]; `fields`:
// node fields of the mesh file. Throws likewise.
std::vector<Vec3> evaluate(const NodeVectors& vectors, std::span<const Vec3> nodes, const Fields& fields,
                           const std::string& folder);

// The unit fibre direction of each element in the rest shape.
std::vector<Vec3> fibre_directions(const FibreSpec& fibre, std::span<const Vec3> centroids,
                                   const Fields& fields, const std::string& folder);

}  // namespace limber
