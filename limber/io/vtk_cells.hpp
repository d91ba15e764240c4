// Cells and data arrays as both VTK formats have them.
#pragma once

#include <limber/io/raw_mesh.hpp>

namespace limber::io {

// Collects cells by their VTK type and remembers where in the file's order each element was.
class VtkCells {
 public:
  VtkCells(RawMesh& mesh, const Cursor& in) : mesh_(mesh), in_(in) {}

  // `nodes` must be checked already.
  void add(std::int64_t type, std::span<const Index> nodes);
  // Data of all cells in file order; what belongs to tets and triangles is kept.
  void add_cell_field(const std::string& name, int components, const std::vector<double>& values);
  std::size_t size() const { return cells_; }
  // Adds the notices.
  void finish();

 private:
  RawMesh& mesh_;
  const Cursor& in_;
  std::size_t cells_ = 0, polygons_ = 0;
  std::vector<Index> tet_cells_, triangle_cells_;
  const char* higher_order_ = nullptr;
};

// Keeps the field unless it has a number that is not finite: then a notice says so. Readers leave the
// decision to use a field to others, and a bad one must not make the mesh unreadable.
void add_field(RawMesh& mesh, Fields& fields, const std::string& name, int components,
               std::vector<double> values);

}  // namespace limber::io
