// Mesh files. Reading never trusts a file: whatever is wrong with it is an Error(kInput) that names the file,
// the line (or byte), what was found and what was expected. A file that cannot be opened or written is
// Error(kIo).
#pragma once

#include <limber/mesh/mesh.hpp>

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace limber {

// Gmsh groups, Medit references, TetGen regions and so on become sets: groups of the elements themselves are
// element sets, groups of lower dimension (faces, edges, points) are node sets. A group without a name is
// called group_<number>.
struct MeshFile {
  std::variant<TetMesh, TriMesh> mesh;  // tets if the file has any, otherwise triangles
  std::string format;                   // "Gmsh MSH 4.1, binary"
  std::vector<std::string> notices;     // what was mended or left out on the way, one line each
  std::vector<std::string> remarks;     // what is odd but usable (open edges, several parts), one line each

  bool has_tets() const { return std::holds_alternative<TetMesh>(mesh); }
  TetMesh& tets() { return std::get<TetMesh>(mesh); }
  const TetMesh& tets() const { return std::get<TetMesh>(mesh); }
  TriMesh& triangles() { return std::get<TriMesh>(mesh); }
  const TriMesh& triangles() const { return std::get<TriMesh>(mesh); }
};

struct ReadOptions {
  // Mend what can be mended (turn inverted elements, drop unused nodes), then refuse a mesh that cannot be
  // simulated (see mesh/check.hpp). Without it the mesh is as in the file; indices and numbers are still
  // checked.
  bool check = true;
};

// The format comes from the ending: .msh, .mesh (Medit), .node/.ele (TetGen, reads the other one too), .vtu,
// .vtk, .obj, .ply, .stl, .off, .tobj, .shape (round cones that are filled with tets, shape_reader.cpp).
MeshFile read_mesh(const std::string& path, const ReadOptions& options = {});
// The same, and an error when the file has no tets.
TetMesh read_tet_mesh(const std::string& path, std::vector<std::string>* notices = nullptr);
// A surface: the file's triangles, or the boundary of its tets. Nothing is refused but bad indices and
// numbers.
TriMesh read_surface(const std::string& path, std::vector<std::string>* notices = nullptr);

// A file in memory; `name` is for messages and its ending chooses the format. TetGen meshes need both parts.
MeshFile parse_mesh(const std::string& name, std::string_view data, std::string_view second_part = {},
                    const ReadOptions& options = {});

// Endings that read_mesh and write_mesh know, for messages.
const std::vector<std::string>& readable_formats();
const std::vector<std::string>& writable_formats();

enum class Encoding { kText, kBinary };

// Gmsh MSH 4.1. Element sets become physical groups, fields NodeData and ElementData, node sets NodeData of
// zeros and ones called "set:<name>"; reading it back gives the same mesh in the same order.
void write_msh(const std::string& path, const TetMesh& mesh, Encoding encoding = Encoding::kBinary);
void write_msh(const std::string& path, const TriMesh& mesh, Encoding encoding = Encoding::kBinary);
void write_obj(const std::string& path, const TriMesh& mesh);
void write_ply(const std::string& path, const TriMesh& mesh, Encoding encoding = Encoding::kBinary);
// Frames of a run: positions as floats straight from the state. `positions` is 3n, node-major [m]; only
// `nodes` (in that order) are written and the triangles index into it.
void write_ply(const std::string& path, std::span<const double> positions, std::span<const Index> nodes,
               std::span<const Tri> triangles);
void write_medit(const std::string& path, const TetMesh& mesh);
// path.node and path.ele; `path` may end in either.
void write_tetgen(const std::string& path, const TetMesh& mesh);

// By the ending: .msh (binary), .vtu, .mesh and .node/.ele for tets; .msh, .vtu, .obj, .ply for surfaces. A
// tet mesh written to .obj or .ply is written as its surface.
void write_mesh(const std::string& path, const MeshFile& mesh);

}  // namespace limber
