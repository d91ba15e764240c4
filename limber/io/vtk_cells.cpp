#include <limber/io/vtk_cells.hpp>

#include <fmt/format.h>

#include <cmath>

namespace limber::io {
namespace {

CellKind vtk_kind(std::int64_t type) {
  switch (type) {
    case 1:
      return {0, 1, 1, "points"};
    case 2:
      return {0, 0, 1, "points"};
    case 3:
      return {1, 2, 2, "lines"};
    case 4:
      return {1, 0, 2, "lines"};
    case 5:
      return {2, 3, 3, "triangles"};
    case 6:
      return {2, 0, 3, "triangle strips"};
    case 7:
      return {2, 0, 3, "polygons"};
    case 8:
      return {2, 4, 4, "pixels"};
    case 9:
      return {2, 4, 4, "quadrangles"};
    case 10:
      return {3, 4, 4, "tets"};
    case 11:
      return {3, 8, 8, "voxels"};
    case 12:
      return {3, 8, 8, "hexahedra"};
    case 13:
      return {3, 6, 6, "prisms"};
    case 14:
      return {3, 5, 5, "pyramids"};
    case 21:
      return {1, 3, 2, "lines of second order"};
    case 22:
      return {2, 6, 3, "triangles of second order"};
    case 23:
      return {2, 8, 4, "quadrangles of second order"};
    case 24:
      return {3, 10, 4, "tets of second order"};
    case 25:
      return {3, 20, 8, "hexahedra"};
    case 26:
      return {3, 15, 6, "prisms"};
    case 27:
      return {3, 13, 5, "pyramids"};
    case 28:
      return {2, 9, 4, "quadrangles of second order"};
    case 71:
      return {3, 0, 4, "tets of higher order"};
    default:
      return {-1, 0, 0, "cells"};
  }
}

}  // namespace

void VtkCells::add(std::int64_t type, std::span<const Index> nodes) {
  const auto cell = static_cast<Index>(cells_++);
  const CellKind kind = vtk_kind(type);
  if (kind.dim < 0) in_.fail(fmt::format("cell {} has VTK type {}, which is not known here", cell, type));
  if (!kind.usable()) in_.fail(fmt::format("cell {} is one of the {}; Limber reads tets", cell, kind.name));
  const auto n = static_cast<int>(nodes.size());
  if (kind.nodes > 0 ? n != kind.nodes : n < kind.corners)
    in_.fail(fmt::format("cell {} has {} nodes, expected {} for {}", cell, n,
                         kind.nodes > 0 ? kind.nodes : kind.corners, kind.name));
  if (kind.dim < 2) return;
  if (kind.nodes > kind.corners || type == 71) higher_order_ = kind.name;
  if (kind.dim == 3) {
    mesh_.tets.push_back({nodes[0], nodes[1], nodes[2], nodes[3]});
    tet_cells_.push_back(cell);
    return;
  }
  if (type == 6) {  // a strip: every node after the second makes a triangle, turning in alternation
    for (std::size_t k = 0; k + 2 < nodes.size(); ++k) {
      mesh_.triangles.push_back(k % 2 == 0 ? Tri{nodes[k], nodes[k + 1], nodes[k + 2]}
                                           : Tri{nodes[k + 1], nodes[k], nodes[k + 2]});
      triangle_cells_.push_back(cell);
    }
    return;
  }
  std::vector<Index> corners(nodes.begin(), nodes.begin() + (type == 7 ? n : kind.corners));
  if (type == 8) std::swap(corners[2], corners[3]);  // a pixel counts row by row
  polygons_ += corners.size() > 3;
  triangle_cells_.insert(triangle_cells_.end(), mesh_.add_polygon(corners), cell);
}

void VtkCells::add_cell_field(const std::string& name, int components, const std::vector<double>& values) {
  const auto gather = [&](const std::vector<Index>& cells, Fields& fields) {
    if (cells.empty()) return;
    std::vector<double> own;
    own.reserve(cells.size() * components);
    for (const Index c : cells)
      for (int k = 0; k < components; ++k)
        own.push_back(values[static_cast<std::size_t>(c) * components + k]);
    add_field(mesh_, fields, name, components, std::move(own));
  };
  gather(tet_cells_, mesh_.tet_fields);
  if (tet_cells_.empty()) gather(triangle_cells_, mesh_.triangle_fields);
}

void VtkCells::finish() {
  if (higher_order_) mesh_.notices.push_back(fmt::format("used only the corners of {}", higher_order_));
  if (polygons_ > 0)
    mesh_.notices.push_back(
        fmt::format("cut {} polygons with more than three corners into triangles", polygons_));
}

void add_field(RawMesh& mesh, Fields& fields, const std::string& name, int components,
               std::vector<double> values) {
  for (const double v : values)
    if (!std::isfinite(v)) {
      mesh.notices.push_back(
          fmt::format("left out field \"{}\", which has numbers that are not finite", name));
      return;
    }
  fields[name] = {components, std::move(values)};
}

}  // namespace limber::io
