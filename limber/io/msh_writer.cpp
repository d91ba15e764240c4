// Gmsh MSH 4.1. An entity of that format carries any number of physical groups, and an element belongs to one
// entity: elements are grouped by the combination of sets they are in. Tags are index + 1, which is how the
// reader restores the order.
#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/mesh/geometry.hpp>

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace limber {
namespace {

static_assert(std::endian::native == std::endian::little, "the writers store numbers as they lie in memory");

constexpr int kTriType = 2, kTetType = 4;

// Numbers as text or bytes, by the encoding.
class Out {
 public:
  explicit Out(Encoding encoding) : binary_(encoding == Encoding::kBinary) {}

  template <class T>
  Out& put(T value) {
    if (!binary_) {
      fmt::format_to(std::back_inserter(text), "{} ", value);
    } else {
      char bytes[sizeof value];
      std::memcpy(bytes, &value, sizeof value);
      text.append(bytes, sizeof value);
    }
    return *this;
  }
  // Ends a line of a text file; binary data has none.
  void line() {
    if (!binary_) text.back() = '\n';
  }
  void section(const char* name) { text += fmt::format("${}\n", name); }
  void end(const char* name) { text += fmt::format("{}$End{}\n", binary_ ? "\n" : "", name); }
  void raw(std::string_view s) { text += s; }

  std::string text;

 private:
  bool binary_;
};

// Elements that are in the same sets.
struct Entity {
  std::vector<int> groups;  // 1 is the first set by name
  std::vector<Index> elements;
};

// One entity per combination of sets, in the order in which combinations first appear.
std::vector<Entity> make_entities(const IndexSets& sets, std::size_t elements) {
  std::vector<std::vector<int>> membership(elements);
  int group = 1;
  for (const auto& [name, set] : sets) {
    for (const Index i : set) membership[i].push_back(group);
    ++group;
  }
  std::map<std::vector<int>, std::size_t> place;
  std::vector<Entity> entities;
  for (std::size_t i = 0; i < elements; ++i) {
    const auto [it, is_new] = place.emplace(membership[i], entities.size());
    if (is_new) entities.push_back({membership[i], {}});
    entities[it->second].elements.push_back(static_cast<Index>(i));
  }
  return entities;
}

void put_data(Out& out, const char* section, const std::string& name, const Field& field, std::size_t count) {
  // Gmsh knows 1, 3 and 9 components; others are padded with zeros.
  const int stored = field.components == 1 ? 1 : field.components <= 3 ? 3 : 9;
  if (field.components > 9)
    throw Error(ErrorKind::kUsage,
                fmt::format("field \"{}\" has {} components, MSH has at most 9", name, field.components));
  out.section(section);
  out.raw(fmt::format("1\n\"{}\"\n1\n0\n3\n0\n{}\n{}\n", name, stored, count));
  for (std::size_t i = 0; i < count; ++i) {
    out.put(static_cast<int>(i + 1));
    for (int c = 0; c < stored; ++c)
      out.put(c < field.components ? field.values[i * field.components + c] : 0.0);
    out.line();
  }
  out.end(section);
}

template <class Mesh, std::size_t N>
void write_any(const std::string& path, const Mesh& mesh, const std::vector<std::array<Index, N>>& elements,
               Encoding encoding) {
  constexpr int kDim = N - 1;
  const bool binary = encoding == Encoding::kBinary;
  for (const auto* sets : {&mesh.node_sets, &mesh.element_sets})
    for (const auto& [name, set] : *sets)
      if (name.find('"') != std::string::npos || name.find('\n') != std::string::npos)
        throw Error(ErrorKind::kUsage,
                    fmt::format("{}: the set name '{}' cannot be stored in MSH", path, name));
  const std::vector<Entity> entities = make_entities(mesh.element_sets, elements.size());

  Out out(encoding);
  out.raw(fmt::format("$MeshFormat\n4.1 {} 8\n", binary ? 1 : 0));
  if (binary) out.put(1).raw("\n");
  out.raw("$EndMeshFormat\n");
  if (!mesh.element_sets.empty()) {
    out.raw(fmt::format("$PhysicalNames\n{}\n", mesh.element_sets.size()));
    int group = 1;
    for (const auto& [name, set] : mesh.element_sets)
      out.raw(fmt::format("{} {} \"{}\"\n", kDim, group++, name));
    out.raw("$EndPhysicalNames\n");
  }

  out.section("Entities");
  for (int d = 0; d < 4; ++d) out.put(d == kDim ? entities.size() : std::size_t{0});
  out.line();
  const Box box = bounding_box(mesh.nodes);
  for (std::size_t e = 0; e < entities.size(); ++e) {
    out.put(static_cast<int>(e + 1));
    for (const Vec3& p : {box.lo, box.hi})
      for (int a = 0; a < 3; ++a) out.put(p[a]);
    out.put(entities[e].groups.size());
    for (const int g : entities[e].groups) out.put(g);
    out.put(std::size_t{0});  // no bounding entities
    out.line();
  }
  out.end("Entities");

  // All nodes in one block, of the first entity.
  out.section("Nodes");
  const std::size_t n = mesh.nodes.size();
  out.put(std::size_t{1}).put(n).put(std::size_t{1}).put(n).line();
  out.put(kDim).put(1).put(0).put(n).line();
  for (std::size_t i = 1; i <= n; ++i) out.put(i).line();
  for (const Vec3& p : mesh.nodes) out.put(p[0]).put(p[1]).put(p[2]).line();
  out.end("Nodes");

  out.section("Elements");
  out.put(entities.size()).put(elements.size()).put(std::size_t{1}).put(elements.size()).line();
  for (std::size_t e = 0; e < entities.size(); ++e) {
    const std::vector<Index>& members = entities[e].elements;
    out.put(kDim).put(static_cast<int>(e + 1)).put(N == 4 ? kTetType : kTriType).put(members.size()).line();
    for (const Index i : members) {
      out.put(static_cast<std::size_t>(i) + 1);
      for (const Index v : elements[i]) out.put(static_cast<std::size_t>(v) + 1);
      out.line();
    }
  }
  out.end("Elements");
  for (const auto& [name, set] : mesh.node_sets) {
    Field flags{1, std::vector<double>(n, 0.0)};
    for (const Index i : set) flags.values[i] = 1;
    put_data(out, "NodeData", "set:" + name, flags, n);
  }
  for (const auto& [name, field] : mesh.node_fields) put_data(out, "NodeData", name, field, n);
  for (const auto& [name, field] : mesh.element_fields)
    put_data(out, "ElementData", name, field, elements.size());
  write_file_atomic(path, out.text);
}

}  // namespace

void write_msh(const std::string& path, const TetMesh& mesh, Encoding encoding) {
  write_any(path, mesh, mesh.tets, encoding);
}
void write_msh(const std::string& path, const TriMesh& mesh, Encoding encoding) {
  write_any(path, mesh, mesh.triangles, encoding);
}

}  // namespace limber
