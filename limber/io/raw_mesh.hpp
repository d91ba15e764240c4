// What the readers of limber/io fill before it becomes a TetMesh or a TriMesh.
#pragma once

#include <limber/io/cursor.hpp>
#include <limber/io/mesh_io.hpp>

namespace limber::io {

struct RawMesh {
  std::vector<Vec3> nodes;
  std::vector<Tet> tets;
  std::vector<Tri> triangles;
  IndexSets tet_groups, triangle_groups;  // indices into the lists above
  IndexSets node_sets;
  Fields node_fields, tet_fields, triangle_fields;
  std::string format;
  std::vector<std::string> notices;

  // Adds a polygon as triangles (cut_polygon()); returns how many.
  std::size_t add_polygon(std::span<const Index> corners);
};

// "group_7": the name of a group that has a number only.
std::string group_name(std::int64_t number);
// Sorts and removes repetitions.
void tidy(IndexSets& sets);
// Fields called "set:<name>" become sets (indices with a value other than 0).
void fields_to_sets(Fields& fields, IndexSets& sets);

// Element types by number of corners and dimension, shared by Gmsh and VTK readers.
struct CellKind {
  int dim;           // 0 to 3; -1: not known
  int nodes;         // per element in the file, 0: any number
  int corners;       // the first so many are the corners
  const char* name;  // plural, for messages
  bool usable() const { return dim >= 0 && (dim < 3 || corners == 4) && (dim < 2 || corners >= 3); }
};

// Readers. `name` is for messages.
RawMesh read_msh(const std::string& name, std::string_view data);
RawMesh read_medit(const std::string& name, std::string_view data);
RawMesh read_tetgen(const std::string& name, std::string_view node, std::string_view ele,
                    std::string_view face);
RawMesh read_vtu(const std::string& name, std::string_view data);
RawMesh read_vtk(const std::string& name, std::string_view data);
RawMesh read_obj(const std::string& name, std::string_view data);
RawMesh read_ply(const std::string& name, std::string_view data);
RawMesh read_stl(const std::string& name, std::string_view data);
RawMesh read_off(const std::string& name, std::string_view data);
RawMesh read_tobj(const std::string& name, std::string_view data);

}  // namespace limber::io
