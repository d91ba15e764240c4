// The kinds of elements, and what the rest of the code asks of them. All are linear, with one deformation
// gradient each.
#pragma once

#include <limber/mesh/mesh.hpp>

#include <cstdint>

namespace limber {

enum class ElementKind : std::uint8_t {
  kTetrahedron,    // "tetrahedron"
  kPlaneTriangle,  // "plane-triangle": plane strain in the xy plane; z of its nodes is inert
  kClothTriangle,  // "cloth-triangle": a membrane in space; resists stretch and shear in its plane
};

inline const char* name_of(ElementKind kind) {
  switch (kind) {
    case ElementKind::kPlaneTriangle:
      return "plane-triangle";
    case ElementKind::kClothTriangle:
      return "cloth-triangle";
    case ElementKind::kTetrahedron:
      break;
  }
  return "tetrahedron";
}

inline bool is_triangle(ElementKind kind) { return kind != ElementKind::kTetrahedron; }
// Nodes of an element. A triangle has -1 in the entries of its Tet after them.
inline int corners(ElementKind kind) { return is_triangle(kind) ? 3 : 4; }
// Its rest volume is area times the material's thickness.
inline bool has_thickness(ElementKind kind) { return is_triangle(kind); }
// Its nodes move in their plane z = constant only.
inline bool moves_in_plane(ElementKind kind) { return kind == ElementKind::kPlaneTriangle; }
// Things can touch it all over, and not only at its border.
inline bool is_sheet(ElementKind kind) { return kind == ElementKind::kClothTriangle; }

// The same from the nodes alone.
inline int corners(const Tet& t) { return t[3] < 0 ? 3 : 4; }
// A triangle as an element.
inline Tet as_element(const Tri& t) { return {t[0], t[1], t[2], -1}; }

}  // namespace limber
