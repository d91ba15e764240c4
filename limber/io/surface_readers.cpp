// OBJ, STL, OFF and HOBAK's .tobj; PLY has its own file.
#include <limber/io/raw_mesh.hpp>
#include <limber/mesh/geometry.hpp>

#include <fmt/format.h>

#include <cstring>
#include <unordered_map>

namespace limber::io {
namespace {

void note_polygons(RawMesh& mesh, std::size_t polygons) {
  if (polygons > 0)
    mesh.notices.push_back(
        fmt::format("cut {} polygons with more than three corners into triangles", polygons));
}

}  // namespace

RawMesh read_obj(const std::string& name, std::string_view data) {
  RawMesh mesh;
  mesh.format = "OBJ";
  Cursor in(name, data);
  in.comments('#');
  std::string group;
  std::vector<std::pair<std::size_t, Index>> pending;  // forward references: faces may come before vertices
  std::vector<Index> corners;
  std::size_t polygons = 0;
  std::vector<Vec2> texture;  // "vt"
  std::vector<std::int64_t>
      uses;  // for each vertex the texture coordinate that its faces name; 0: none, -1: several
  while (in.skip_space()) {
    const std::string_view key = in.token();
    if (key == "v") {
      mesh.nodes.push_back(in.point("a vertex coordinate"));
      in.line();  // weight or colour
    } else if (key == "vt") {
      const double u = in.number("a texture coordinate");
      texture.emplace_back(u, in.more_in_line() ? in.number("a texture coordinate") : 0);
      in.line();
    } else if (key == "f") {
      corners.clear();
      while (in.more_in_line()) {
        std::string_view text = in.token();
        if (text == "\\") {  // the line goes on
          in.line();
          continue;
        }
        const std::size_t slash = text.find('/');
        std::int64_t vt = 0;
        if (slash != std::string_view::npos) {
          const std::string_view second = text.substr(slash + 1, text.find('/', slash + 1) - slash - 1);
          if (!second.empty()) vt = to_integer(in, second, "a texture coordinate of a face");
          if (vt < 0) vt += static_cast<std::int64_t>(texture.size()) + 1;
        }
        text = text.substr(0, slash);
        const std::int64_t i = to_integer(in, text, "a vertex of a face");
        const auto n = static_cast<std::int64_t>(mesh.nodes.size());
        if (i == 0 || i < -n || i > std::numeric_limits<Index>::max())
          in.fail(fmt::format("found vertex {}, but the numbers start at 1 and there are {} vertices so far",
                              i, n));
        corners.push_back(static_cast<Index>(i > 0 ? i - 1 : n + i));
        const auto v = static_cast<std::size_t>(corners.back());
        if (vt > 0 && v < mesh.nodes.size()) {
          uses.resize(mesh.nodes.size(), 0);
          uses[v] = uses[v] == 0 || uses[v] == vt ? vt : -1;
        }
      }
      if (corners.size() < 3)
        in.fail(fmt::format("found a face with {} vertices, expected at least 3", corners.size()));
      for (const Index i : corners)
        if (static_cast<std::size_t>(i) >= mesh.nodes.size()) pending.emplace_back(in.position(), i);
      polygons += corners.size() > 3;
      const auto first = static_cast<Index>(mesh.triangles.size());
      const auto made = static_cast<Index>(mesh.add_polygon(corners));
      if (!group.empty())
        for (Index t = first; t < first + made; ++t) mesh.triangle_groups[group].push_back(t);
    } else if (key == "g" || key == "o") {
      in.more_in_line();
      group = in.line();
    } else {
      in.line();
    }
  }
  for (const auto& [position, i] : pending)
    if (static_cast<std::size_t>(i) >= mesh.nodes.size()) {
      in.seek(position);
      in.bytes(0, "");  // the place the message names
      in.fail(fmt::format("found vertex {}, but there are only {}", i + 1, mesh.nodes.size()));
    }
  // Texture coordinates are a field of the nodes, unless a seam gives one node several, or some have none.
  if (uses.size() == mesh.nodes.size() && std::all_of(uses.begin(), uses.end(), [&](std::int64_t k) {
        return k > 0 && k <= static_cast<std::int64_t>(texture.size());
      })) {
    Field& uv = mesh.node_fields["uv"];
    uv.components = 2;
    for (const std::int64_t k : uses)
      for (int a = 0; a < 2; ++a) uv.values.push_back(texture[static_cast<std::size_t>(k - 1)][a]);
  }
  note_polygons(mesh, polygons);
  return mesh;
}

namespace {

// Vertices that are the same to the last bit are one node: STL has no other way to say so.
class Merger {
 public:
  explicit Merger(std::vector<Vec3>& nodes) : nodes_(nodes) {}
  Index add(Vec3 p) {
    for (int a = 0; a < 3; ++a) p[a] += 0.0;  // -0 is 0
    std::uint64_t h = 0;
    for (int a = 0; a < 3; ++a) {
      std::uint64_t bits;
      std::memcpy(&bits, &p[a], sizeof bits);
      h = (h ^ bits) * 0x9E3779B97F4A7C15ull;
      h ^= h >> 32;
    }
    const auto [begin, end] = known_.equal_range(h);
    for (auto it = begin; it != end; ++it)
      if (nodes_[it->second] == p) return it->second;
    known_.emplace(h, static_cast<Index>(nodes_.size()));
    nodes_.push_back(p);
    return static_cast<Index>(nodes_.size()) - 1;
  }

 private:
  std::vector<Vec3>& nodes_;
  std::unordered_multimap<std::uint64_t, Index> known_;
};

RawMesh read_stl_binary(const std::string& name, std::string_view data) {
  RawMesh mesh;
  mesh.format = "STL, binary";
  Cursor in(name, data);
  in.binary(true);
  in.bytes(80, "the STL header");
  const std::size_t n = in.count(in.read<std::uint32_t>("the number of triangles"), 50, "triangles");
  Merger merger(mesh.nodes);
  mesh.triangles.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    in.bytes(12, "a normal");  // often not a number, and not needed
    Tri t;
    for (Index& v : t) {
      Vec3 p;
      for (int a = 0; a < 3; ++a) p[a] = in.read<float>("a vertex coordinate");
      v = merger.add(p);
    }
    in.bytes(2, "the attribute");
    mesh.triangles.push_back(t);
  }
  if (!in.at_end())
    in.fail(fmt::format("{} bytes follow the {} triangles that were announced", in.remaining(), n));
  return mesh;
}

RawMesh read_stl_text(const std::string& name, std::string_view data) {
  RawMesh mesh;
  mesh.format = "STL, text";
  Cursor in(name, data);
  Merger merger(mesh.nodes);
  in.expect("solid");
  in.line();
  for (;;) {
    const std::string_view key = in.token("\"facet\" or \"endsolid\"");
    if (key == "endsolid") {
      in.line();
      if (!in.skip_space()) return mesh;
      in.expect("solid");
      in.line();
      continue;
    }
    if (key != "facet") in.fail(fmt::format("found {}, expected \"facet\" or \"endsolid\"", in_quotes(key)));
    in.line();  // the normal
    in.expect("outer");
    in.expect("loop");
    Tri t;
    for (Index& v : t) {
      in.expect("vertex");
      v = merger.add(in.point("a vertex coordinate"));
    }
    in.expect("endloop");
    in.expect("endfacet");
    mesh.triangles.push_back(t);
  }
}

}  // namespace

RawMesh read_stl(const std::string& name, std::string_view data) {
  // Some binary files begin with "solid" too; their length gives them away.
  bool binary = !data.starts_with("solid");
  if (data.size() >= 84) {
    std::uint32_t n;
    std::memcpy(&n, data.data() + 80, sizeof n);
    binary = binary || data.size() == 84 + 50 * static_cast<std::size_t>(n);
  }
  RawMesh mesh = binary ? read_stl_binary(name, data) : read_stl_text(name, data);
  // A triangle whose corners were merged has no area and would only be in the way.
  const std::size_t before = mesh.triangles.size();
  std::erase_if(mesh.triangles, [](const Tri& t) { return t[0] == t[1] || t[1] == t[2] || t[2] == t[0]; });
  if (mesh.triangles.size() < before)
    mesh.notices.push_back(
        fmt::format("left out {} triangles with two corners in one place", before - mesh.triangles.size()));
  return mesh;
}

RawMesh read_off(const std::string& name, std::string_view data) {
  RawMesh mesh;
  mesh.format = "OFF";
  Cursor in(name, data);
  in.comments('#');
  // Coordinates come first whatever else a vertex has: COFF colours, NOFF normals, STOFF texture coordinates.
  const std::string_view head = in.token("\"OFF\"");
  if (head != "OFF" && head != "COFF" && head != "NOFF" && head != "CNOFF" && head != "STOFF")
    in.fail(fmt::format("found {}, expected \"OFF\" (or COFF, NOFF, STOFF)", in_quotes(head)));
  if (in.more_in_line() && in.rest().starts_with("BINARY"))
    in.fail("binary OFF is not read; convert it to text");
  const std::int64_t vertices = in.integer("the number of vertices", 0);
  const std::int64_t faces = in.integer("the number of faces", 0);
  in.integer("the number of edges");
  const std::size_t n = in.count(vertices, 6, "vertices");
  in.count(faces, 2, "faces");
  mesh.nodes.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    mesh.nodes.push_back(in.point("a vertex coordinate"));
    in.line();
  }
  std::vector<Index> corners;
  std::size_t polygons = 0;
  for (std::int64_t f = 0; f < faces; ++f) {
    const std::size_t k = in.count(in.integer("the number of corners of a face", 1), 2, "corners of a face");
    corners.clear();
    for (std::size_t c = 0; c < k; ++c)
      corners.push_back(static_cast<Index>(in.integer("a vertex of a face", 0, vertices - 1)));
    in.line();            // colour
    if (k < 3) continue;  // points and lines are allowed and mean nothing here
    polygons += k > 3;
    mesh.add_polygon(corners);
  }
  note_polygons(mesh, polygons);
  return mesh;
}

RawMesh read_tobj(const std::string& name, std::string_view data) {
  RawMesh mesh;
  mesh.format = "HOBAK tobj";
  Cursor in(name, data);
  while (in.skip_space()) {
    const std::string_view key = in.token();
    if (key == "v") {
      mesh.nodes.push_back(in.point("a vertex coordinate"));
    } else if (key == "t") {
      Tet t;
      for (Index& v : t)
        v = static_cast<Index>(
            in.integer("a vertex of a tet", 0, static_cast<std::int64_t>(mesh.nodes.size()) - 1));
      mesh.tets.push_back(t);
    } else {
      in.fail(fmt::format("found {}, expected \"v\" or \"t\"", in_quotes(key)));
    }
  }
  return mesh;
}

}  // namespace limber::io
