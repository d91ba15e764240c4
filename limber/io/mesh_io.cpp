#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/raw_mesh.hpp>
#include <limber/io/shape_reader.hpp>
#include <limber/io/vtu.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/polygon.hpp>
#include <limber/mesh/surface.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace limber {
namespace {

using io::RawMesh;

std::string extension(const std::string& path) {
  std::string e = std::filesystem::path(path).extension().string();
  for (char& c : e)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return e;
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : " ") + w;
  return text;
}

// Sets that only the lower-dimensional cells of a volume mesh have: their nodes.
void add_nodes_of(const std::vector<Tri>& triangles, const IndexSets& groups, IndexSets& node_sets) {
  for (const auto& [name, members] : groups) {
    std::vector<Index>& set = node_sets[name];
    for (const Index t : members) set.insert(set.end(), triangles[t].begin(), triangles[t].end());
  }
}

MeshFile finish(const std::string& name, RawMesh raw, const ReadOptions& options) {
  MeshFile file;
  file.format = std::move(raw.format);
  file.notices = std::move(raw.notices);
  if (raw.tets.empty() && raw.triangles.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {} nodes but no tets and no triangles", name, raw.nodes.size()));
  io::fields_to_sets(raw.node_fields, raw.node_sets);
  const auto complete = [&](auto& mesh, auto& groups, auto& fields) {
    io::fields_to_sets(fields, groups);
    mesh.nodes = std::move(raw.nodes);
    mesh.node_sets = std::move(raw.node_sets);
    mesh.node_fields = std::move(raw.node_fields);
    mesh.element_sets = std::move(groups);
    mesh.element_fields = std::move(fields);
    io::tidy(mesh.node_sets);
    io::tidy(mesh.element_sets);
  };
  if (!raw.tets.empty()) {
    TetMesh mesh;
    add_nodes_of(raw.triangles, raw.triangle_groups, raw.node_sets);
    mesh.tets = std::move(raw.tets);
    complete(mesh, raw.tet_groups, raw.tet_fields);
    file.mesh = std::move(mesh);
  } else {
    TriMesh mesh;
    mesh.triangles = std::move(raw.triangles);
    complete(mesh, raw.triangle_groups, raw.triangle_fields);
    file.mesh = std::move(mesh);
  }
  if (!options.check) return file;
  const MeshReport report = std::visit(
      [&](auto& mesh) {
        if constexpr (std::is_same_v<std::decay_t<decltype(mesh)>, TetMesh>) {
          for (std::string& s : fix_mesh(mesh)) file.notices.push_back(std::move(s));
          return check_mesh(mesh);
        } else {
          const TriRole role = guess_role(mesh);
          for (std::string& s : fix_mesh(mesh, role)) file.notices.push_back(std::move(s));
          return check_mesh(mesh, role);
        }
      },
      file.mesh);
  if (!report.usable()) throw Error(ErrorKind::kInput, fmt::format("{}: {}", name, report.errors()));
  for (const MeshProblem& p : report.problems) file.remarks.push_back(p.message);
  return file;
}

RawMesh parse(const std::string& name, std::string_view data, std::string_view second,
              std::string_view third) {
  const std::string e = extension(name);
  if (e == ".msh") return io::read_msh(name, data);
  if (e == ".mesh") return io::read_medit(name, data);
  if (e == ".node" || e == ".ele") return io::read_tetgen(name, data, second, third);
  if (e == ".vtu") return io::read_vtu(name, data);
  if (e == ".vtk") return io::read_vtk(name, data);
  if (e == ".obj") return io::read_obj(name, data);
  if (e == ".ply") return io::read_ply(name, data);
  if (e == ".stl") return io::read_stl(name, data);
  if (e == ".off") return io::read_off(name, data);
  if (e == ".tobj") return io::read_tobj(name, data);
  if (e == ".shape") return io::read_shape(name, data);
  throw Error(ErrorKind::kInput, fmt::format("{}: \"{}\" is no mesh format known here, expected one of {}",
                                             name, e, list(readable_formats())));
}

// Either of x.node and x.ele stands for both.
std::string with_extension(const std::string& path, const char* e) {
  return std::filesystem::path(path).replace_extension(e).string();
}

TriMesh to_surface(const MeshFile& file) {
  return file.has_tets() ? surface_mesh(file.tets()) : file.triangles();
}

}  // namespace

namespace io {

std::size_t RawMesh::add_polygon(std::span<const Index> corners) {
  // Faces may name nodes that come later; where those are nobody knows yet.
  const bool known = std::all_of(corners.begin(), corners.end(),
                                 [&](Index i) { return static_cast<std::size_t>(i) < nodes.size(); });
  std::vector<Vec3> x(corners.size(), Vec3::Zero());
  for (std::size_t k = 0; known && k < corners.size(); ++k) x[k] = nodes[at(corners[k])];
  for (const Tri& t : cut_polygon(x))
    triangles.push_back({corners[at(t[0])], corners[at(t[1])], corners[at(t[2])]});
  return corners.size() - 2;
}

std::string group_name(std::int64_t number) { return fmt::format("group_{}", number); }

void tidy(IndexSets& sets) {
  for (auto& [name, set] : sets) {
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
  }
}

void fields_to_sets(Fields& fields, IndexSets& sets) {
  for (auto it = fields.begin(); it != fields.end();) {
    const auto& [name, field] = *it;
    if (!name.starts_with("set:") || name.size() == 4 || field.components != 1) {
      ++it;
      continue;
    }
    std::vector<Index>& set = sets[name.substr(4)];
    for (std::size_t i = 0; i < field.values.size(); ++i)
      if (field.values[i] != 0) set.push_back(static_cast<Index>(i));
    it = fields.erase(it);
  }
}

}  // namespace io

const std::vector<std::string>& readable_formats() {
  static const std::vector<std::string> kFormats{".msh", ".mesh", ".node", ".ele", ".vtu",  ".vtk",
                                                 ".obj", ".ply",  ".stl",  ".off", ".tobj", ".shape"};
  return kFormats;
}

const std::vector<std::string>& writable_formats() {
  static const std::vector<std::string> kFormats{".msh", ".vtu", ".mesh", ".node", ".ele", ".obj", ".ply"};
  return kFormats;
}

MeshFile parse_mesh(const std::string& name, std::string_view data, std::string_view second_part,
                    const ReadOptions& options) {
  return finish(name, parse(name, data, second_part, {}), options);
}

MeshFile read_mesh(const std::string& path, const ReadOptions& options) {
  const std::string e = extension(path);
  if (e != ".node" && e != ".ele") return parse_mesh(path, read_file(path), {}, options);
  const std::string node = read_file(with_extension(path, ".node")),
                    ele = read_file(with_extension(path, ".ele"));
  const std::string face_path = with_extension(path, ".face");
  std::error_code none;
  const std::string face = std::filesystem::exists(face_path, none) ? read_file(face_path) : "";
  return finish(path, parse(path, node, ele, face), options);
}

TetMesh read_tet_mesh(const std::string& path, std::vector<std::string>* notices) {
  MeshFile file = read_mesh(path);
  if (!file.has_tets())
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: found a surface of {} triangles, expected tets; `limber mesh tet` makes them from a "
                    "closed surface",
                    path, file.triangles().triangles.size()));
  if (notices) {
    notices->insert(notices->end(), file.notices.begin(), file.notices.end());
    notices->insert(notices->end(), file.remarks.begin(), file.remarks.end());
  }
  return std::move(file.tets());
}

TriMesh read_surface(const std::string& path, std::vector<std::string>* notices) {
  MeshFile file = read_mesh(path, {false});
  if (notices) notices->insert(notices->end(), file.notices.begin(), file.notices.end());
  if (file.has_tets()) {
    fix_mesh(file.tets());
    return surface_mesh(file.tets());
  }
  return std::move(file.triangles());
}

void write_mesh(const std::string& path, const MeshFile& file) {
  const std::string e = extension(path);
  if (e == ".obj") return write_obj(path, to_surface(file));
  if (e == ".ply") return write_ply(path, to_surface(file));
  if (e == ".msh") return std::visit([&](const auto& mesh) { write_msh(path, mesh); }, file.mesh);
  if (e == ".vtu") return std::visit([&](const auto& mesh) { write_vtu(path, mesh); }, file.mesh);
  if (e != ".mesh" && e != ".node" && e != ".ele")
    throw Error(ErrorKind::kUsage, fmt::format("{}: cannot write \"{}\", expected one of {}", path, e,
                                               list(writable_formats())));
  if (!file.has_tets())
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{}: \"{}\" is written for tets only; surfaces go to .msh .vtu .obj .ply", path, e));
  if (e == ".mesh") return write_medit(path, file.tets());
  write_tetgen(path, file.tets());
}

namespace {

// Region numbers for formats that have one number per element: the first set an element is in, counted from 1
// in the order of names; 0 without one.
std::vector<Index> region_numbers(const TetMesh& mesh) {
  std::vector<Index> region(mesh.tets.size(), 0);
  Index number = 1;
  for (const auto& [name, set] : mesh.element_sets) {
    for (const Index i : set)
      if (region[i] == 0) region[i] = number;
    ++number;
  }
  return region;
}

}  // namespace

void write_medit(const std::string& path, const TetMesh& mesh) {
  std::string out = fmt::format("MeshVersionFormatted 2\nDimension 3\nVertices\n{}\n", mesh.nodes.size());
  auto to = std::back_inserter(out);
  for (const Vec3& p : mesh.nodes) fmt::format_to(to, "{} {} {} 0\n", p[0], p[1], p[2]);
  fmt::format_to(to, "Tetrahedra\n{}\n", mesh.tets.size());
  const std::vector<Index> region = region_numbers(mesh);
  for (std::size_t e = 0; e < mesh.tets.size(); ++e) {
    const Tet& t = mesh.tets[e];
    fmt::format_to(to, "{} {} {} {} {}\n", t[0] + 1, t[1] + 1, t[2] + 1, t[3] + 1, region[e]);
  }
  out += "End\n";
  write_file_atomic(path, out);
}

void write_tetgen(const std::string& path, const TetMesh& mesh) {
  std::string node = fmt::format("{} 3 0 0\n", mesh.nodes.size());
  auto to = std::back_inserter(node);
  for (std::size_t i = 0; i < mesh.nodes.size(); ++i)
    fmt::format_to(to, "{} {} {} {}\n", i, mesh.nodes[i][0], mesh.nodes[i][1], mesh.nodes[i][2]);
  const bool regions = !mesh.element_sets.empty();
  std::string ele = fmt::format("{} 4 {}\n", mesh.tets.size(), regions ? 1 : 0);
  auto ele_to = std::back_inserter(ele);
  const std::vector<Index> region = region_numbers(mesh);
  for (std::size_t e = 0; e < mesh.tets.size(); ++e) {
    const Tet& t = mesh.tets[e];
    fmt::format_to(ele_to, "{} {} {} {} {}", e, t[0], t[1], t[2], t[3]);
    if (regions) fmt::format_to(ele_to, " {}", region[e]);
    ele += '\n';
  }
  write_file_atomic(with_extension(path, ".node"), node);
  write_file_atomic(with_extension(path, ".ele"), ele);
}

}  // namespace limber
