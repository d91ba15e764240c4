// Medit .mesh and TetGen .node/.ele/.face.
#include <limber/io/raw_mesh.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace limber::io {
namespace {

void add_group(IndexSets& groups, std::int64_t reference, Index item) {
  if (reference != 0) groups[group_name(reference)].push_back(item);
}

template <std::size_t N>
std::array<Index, N> corners(Cursor& in, std::int64_t first, std::size_t nodes) {
  std::array<Index, N> c;
  for (Index& v : c)
    v = static_cast<Index>(in.integer("a node of an element", first, first + std::int64_t(nodes) - 1) -
                           first);
  return c;
}

}  // namespace

RawMesh read_medit(const std::string& name, std::string_view data) {
  RawMesh mesh;
  Cursor in(name, data);
  in.comments('#');
  if (data.size() >= 4 && (data.substr(0, 4) == std::string_view("\1\0\0\0", 4) ||
                           data.substr(0, 4) == std::string_view("\0\0\0\1", 4)))
    in.fail("this is a binary Medit file (.meshb), expected text; gmsh converts it");
  in.expect("MeshVersionFormatted");
  mesh.format = fmt::format("Medit, version {}", in.integer("the version", 1, 9));
  std::int64_t dimension = 0;
  const auto count = [&](const char* what, std::size_t numbers) {
    return in.count(in.integer("a count", 0), 2 * numbers, what);
  };
  const auto reference = [&] { return in.integer("a reference"); };
  while (in.skip_space()) {
    const std::string_view key = in.token();
    if (key == "End") break;
    if (key == "Dimension") {
      dimension = in.integer("the dimension", 2, 3);
    } else if (key == "Vertices") {
      if (dimension == 0) in.fail("found Vertices before Dimension");
      if (!mesh.nodes.empty()) in.fail("found a second section Vertices");
      const std::size_t n = count("vertices", static_cast<std::size_t>(dimension) + 1);
      for (std::size_t i = 0; i < n; ++i) {
        Vec3 p = Vec3::Zero();
        for (std::int64_t a = 0; a < dimension; ++a) p[a] = in.number("a vertex coordinate");
        // Not a set: programs number vertices, edges and faces independently, and often mean nothing by it.
        reference();
        mesh.nodes.push_back(p);
      }
    } else if (key == "Tetrahedra") {
      const std::size_t n = count("tetrahedra", 5);
      for (std::size_t i = 0; i < n; ++i) {
        mesh.tets.push_back(corners<4>(in, 1, mesh.nodes.size()));
        add_group(mesh.tet_groups, reference(), static_cast<Index>(mesh.tets.size()) - 1);
      }
    } else if (key == "Triangles") {
      const std::size_t n = count("triangles", 4);
      for (std::size_t i = 0; i < n; ++i) {
        mesh.triangles.push_back(corners<3>(in, 1, mesh.nodes.size()));
        add_group(mesh.triangle_groups, reference(), static_cast<Index>(mesh.triangles.size()) - 1);
      }
    } else if (key == "Edges") {
      const std::size_t n = count("edges", 3);
      for (std::size_t i = 0; i < n; ++i) {
        const auto edge = corners<2>(in, 1, mesh.nodes.size());
        const std::int64_t r = reference();
        for (const Index v : edge) add_group(mesh.node_sets, r, v);
      }
    } else if (key == "Hexahedra" || key == "Hexaedra" || key == "Prisms" || key == "Pyramids") {
      if (count("elements", 6) > 0) in.fail(fmt::format("the mesh has {}; Limber reads tetrahedra", key));
    } else if (!key.empty() && std::isalpha(static_cast<unsigned char>(key[0]))) {
      // Corners, Ridges, Normals, ...: numbers up to the next word.
      while (in.skip_space() && !std::isalpha(static_cast<unsigned char>(in.rest()[0]))) in.token();
    } else {
      in.fail(
          fmt::format("found {}, expected a keyword like Tetrahedra (are there more lines than announced?)",
                      in_quotes(key)));
    }
  }
  return mesh;
}

RawMesh read_tetgen(const std::string& name, std::string_view node, std::string_view ele,
                    std::string_view face) {
  RawMesh mesh;
  mesh.format = "TetGen";
  const std::string stem = name.substr(0, name.rfind('.'));

  Cursor in(stem + ".node", node);
  in.comments('#');
  const std::int64_t points = in.integer("the number of points", 0);
  const std::int64_t dimension = in.integer("the dimension");
  if (dimension == 2)
    in.fail(
        "found 2 as the dimension, expected 3: this is a planar mesh of Triangle; gmsh can save it as .msh");
  if (dimension != 3) in.fail(fmt::format("found {} as the dimension, expected 3", dimension));
  const std::int64_t attributes = in.integer("the number of attributes", 0, 1000);
  const std::int64_t markers = in.more_in_line() ? in.integer("the number of boundary markers", 0, 1) : 0;
  const std::size_t n =
      in.count(points, 2 * static_cast<std::size_t>(1 + dimension + attributes + markers), "points");
  std::int64_t first = 0;  // indices start at 0 or 1: the first point tells
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t id = in.integer("the index of a point");
    if (i == 0) first = id;
    if (i == 0 && first != 0 && first != 1)
      in.fail(fmt::format("found {} as the first index, expected 0 or 1", id));
    if (id != first + static_cast<std::int64_t>(i))
      in.fail(fmt::format("found {} as the index of a point, expected {}", id,
                          first + static_cast<std::int64_t>(i)));
    mesh.nodes.push_back(in.point("a point coordinate"));
    for (std::int64_t a = 0; a < attributes; ++a) in.number("an attribute");
    // Boundary markers of points are TetGen's own numbering of facets; 0 and 1 only say inside and boundary.
    if (markers) {
      const std::int64_t marker = in.integer("a boundary marker");
      if (marker != 1) add_group(mesh.node_sets, marker, static_cast<Index>(i));
    }
  }

  Cursor tets(stem + ".ele", ele);
  tets.comments('#');
  const std::int64_t elements = tets.integer("the number of tetrahedra", 0);
  const std::int64_t per_tet = tets.integer("the number of nodes of a tetrahedron", 4, 10);
  const std::int64_t regions = tets.more_in_line() ? tets.integer("the number of attributes", 0, 1000) : 0;
  if (per_tet != 4 && per_tet != 10)
    tets.fail(fmt::format("found {} nodes per tetrahedron, expected 4 or 10", per_tet));
  const std::size_t m =
      tets.count(elements, 2 * static_cast<std::size_t>(1 + per_tet + regions), "tetrahedra");
  for (std::size_t i = 0; i < m; ++i) {
    tets.integer("the index of a tetrahedron");
    mesh.tets.push_back(corners<4>(tets, first, n));
    for (std::int64_t k = 4; k < per_tet; ++k)
      tets.integer("a node of an element", first, first + points - 1);
    for (std::int64_t a = 0; a < regions; ++a) {
      const double r = tets.number("a region");  // written as a real number by some versions
      if (a == 0 && r == std::floor(r) && std::abs(r) < 1e9)
        add_group(mesh.tet_groups, static_cast<std::int64_t>(r), static_cast<Index>(i));
    }
  }
  if (per_tet == 10) mesh.notices.push_back("used only the corners of tets of second order");

  if (!face.empty()) {
    Cursor faces(stem + ".face", face);
    faces.comments('#');
    const std::int64_t announced = faces.integer("the number of faces", 0);
    const std::int64_t marked =
        faces.more_in_line() ? faces.integer("the number of boundary markers", 0, 1) : 0;
    const std::size_t f = faces.count(announced, 2 * static_cast<std::size_t>(4 + marked), "faces");
    for (std::size_t i = 0; i < f; ++i) {
      faces.integer("the index of a face");
      mesh.triangles.push_back(corners<3>(faces, first, n));
      if (marked) add_group(mesh.triangle_groups, faces.integer("a boundary marker"), static_cast<Index>(i));
      faces.line();  // neighbours, second-order nodes
    }
  }
  return mesh;
}

}  // namespace limber::io
