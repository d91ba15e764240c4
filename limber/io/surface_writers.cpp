// OBJ and PLY.
#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/mesh_io.hpp>

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace limber {
namespace {

static_assert(std::endian::native == std::endian::little, "the writers store numbers as they lie in memory");

template <class T>
void append(std::string& out, const T& value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

std::string ply_header(Encoding encoding, const char* number, std::size_t nodes, std::size_t triangles) {
  return fmt::format(
      "ply\nformat {} 1.0\nelement vertex {}\nproperty {} x\nproperty {} y\nproperty {} z\nelement face "
      "{}\nproperty "
      "list uchar int vertex_indices\nend_header\n",
      encoding == Encoding::kBinary ? "binary_little_endian" : "ascii", nodes, number, number, number,
      triangles);
}

void append_faces(std::string& out, std::span<const Tri> triangles) {
  for (const Tri& t : triangles) {
    out += '\3';
    append(out, t);
  }
}

}  // namespace

void write_obj(const std::string& path, const TriMesh& mesh) {
  std::string out;
  out.reserve(60 * mesh.nodes.size() + 24 * mesh.triangles.size());
  auto to = std::back_inserter(out);
  for (const Vec3& p : mesh.nodes) fmt::format_to(to, "v {} {} {}\n", p[0], p[1], p[2]);
  const auto uv = mesh.node_fields.find("uv");
  if (uv != mesh.node_fields.end() && uv->second.components == 2 &&
      uv->second.values.size() == 2 * mesh.nodes.size()) {
    const std::vector<double>& p = uv->second.values;
    for (std::size_t i = 0; i < p.size(); i += 2) fmt::format_to(to, "vt {} {}\n", p[i], p[i + 1]);
    for (const Tri& t : mesh.triangles) {
      const Index a = t[0] + 1, b = t[1] + 1, c = t[2] + 1;
      fmt::format_to(to, "f {}/{} {}/{} {}/{}\n", a, a, b, b, c, c);
    }
  } else {
    for (const Tri& t : mesh.triangles) fmt::format_to(to, "f {} {} {}\n", t[0] + 1, t[1] + 1, t[2] + 1);
  }
  write_file_atomic(path, out);
}

void write_ply(const std::string& path, const TriMesh& mesh, Encoding encoding) {
  std::string out = ply_header(encoding, "double", mesh.nodes.size(), mesh.triangles.size());
  if (encoding == Encoding::kBinary) {
    for (const Vec3& p : mesh.nodes)
      for (int a = 0; a < 3; ++a) append(out, p[a]);
    append_faces(out, mesh.triangles);
  } else {
    auto to = std::back_inserter(out);
    for (const Vec3& p : mesh.nodes) fmt::format_to(to, "{} {} {}\n", p[0], p[1], p[2]);
    for (const Tri& t : mesh.triangles) fmt::format_to(to, "3 {} {} {}\n", t[0], t[1], t[2]);
  }
  write_file_atomic(path, out);
}

void write_ply(const std::string& path, std::span<const double> positions, std::span<const Index> nodes,
               std::span<const Tri> triangles) {
  std::string out = ply_header(Encoding::kBinary, "float", nodes.size(), triangles.size());
  out.reserve(out.size() + 12 * nodes.size() + 13 * triangles.size());
  for (const Index i : nodes)
    for (int a = 0; a < 3; ++a)
      append(out, static_cast<float>(positions[3 * static_cast<std::size_t>(i) + a]));
  append_faces(out, triangles);
  write_file_atomic(path, out);
}

}  // namespace limber
