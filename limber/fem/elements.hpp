// All elements of a model, prepared for assembly: rest geometry, material constants, batches, masses,
// pattern.
#pragma once

#include <limber/linalg/block_matrix.hpp>
#include <limber/material/material.hpp>
#include <limber/mesh/element_kind.hpp>

#include <memory>
#include <span>
#include <vector>

namespace limber::fem {

// What the model builder hands over, one entry per element.
struct ElementInput {
  std::vector<Vec3> rest;     // rest positions of all nodes [m]
  std::vector<Tet> elements;  // a triangle has -1 in the last entry
  std::vector<ElementMaterial> material;
  std::vector<ElementKind> kinds;  // empty: all are tetrahedra

  ElementKind kind(std::size_t e) const { return kinds.empty() ? ElementKind::kTetrahedron : kinds[e]; }
};

class Elements;  // opaque outside fem/

// Prepares the elements. Throws Error(kInput) that names the element when a rest element is inverted or
// degenerate or a parameter is outside its range.
std::shared_ptr<const Elements> make_elements(const ElementInput& input);

Index element_count(const Elements& elements);
Index node_count(const Elements& elements);
std::shared_ptr<const BlockPattern> pattern(const Elements& elements);
// Lumped mass of each node [kg].
const VecX& lumped_mass(const Elements& elements);
// Rest volume of each element [m^3].
const std::vector<double>& rest_volume(const Elements& elements);
ElementKind kind_of(const Elements& elements, Index e);

}  // namespace limber::fem
