// Readers against files that other programs made.
#include "fixtures.hpp"

#include <limber/core/error.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/remesh.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

using test::fixture;

double volume(const TetMesh& mesh, const std::vector<Index>& tets) {
  double v = 0;
  for (const Index t : tets) v += tet_volume(mesh.nodes, mesh.tets[t]);
  return v;
}

double volume(const TetMesh& mesh) {
  std::vector<Index> all;
  for (std::size_t t = 0; t < mesh.tets.size(); ++t) all.push_back(static_cast<Index>(t));
  return volume(mesh, all);
}

// Two unit cubes, x from 0 to 2.
TEST(Solid, HasItsNodesAndVolume) {
  for (const char* name :
       {"gmsh22_text.msh",   "gmsh22_binary.msh", "gmsh41_text.msh",     "gmsh41_binary.msh",
        "gmsh41_order2.msh", "gmsh.mesh",         "meshio.mesh",         "gmsh_text.vtk",
        "gmsh_binary.vtk",   "meshio_text.vtk",   "meshio_binary.vtk",   "vtk_text.vtk",
        "vtk_binary.vtk",    "meshio_text.vtu",   "meshio_plain.vtu",    "meshio_zlib.vtu",
        "vtk_text.vtu",      "vtk_inline.vtu",    "vtk_inline_zlib.vtu", "vtk_raw.vtu",
        "vtk_raw_zlib.vtu",  "vtk_base64.vtu",    "vtk_base64_zlib.vtu", "meshio.node",
        "meshio.ele"}) {
    SCOPED_TRACE(name);
    const MeshFile file = read_mesh(fixture(name));
    ASSERT_TRUE(file.has_tets());
    const TetMesh& mesh = file.tets();
    EXPECT_EQ(mesh.nodes.size(), 23u);
    EXPECT_EQ(mesh.tets.size(), 48u);
    EXPECT_NEAR(volume(mesh), 2, 1e-12);
    EXPECT_TRUE(check_mesh(mesh).problems.empty());
    const Box box = bounding_box(mesh.nodes);
    EXPECT_EQ(box.lo, Vec3(0, 0, 0));
    EXPECT_EQ(box.hi, Vec3(2, 1, 1));
  }
}

TEST(GmshGroups, BecomeSets) {
  for (const char* name : {"gmsh22_text.msh", "gmsh22_binary.msh", "gmsh41_text.msh", "gmsh41_binary.msh",
                           "gmsh41_order2.msh"}) {
    SCOPED_TRACE(name);
    const MeshFile file = read_mesh(fixture(name));
    const TetMesh& mesh = file.tets();
    ASSERT_EQ(mesh.element_sets.size(), 2u);
    EXPECT_NEAR(volume(mesh, mesh.element_sets.at("left")), 1, 1e-12);
    EXPECT_NEAR(volume(mesh, mesh.element_sets.at("right half")), 1, 1e-12);
    for (const Index t : mesh.element_sets.at("left"))
      for (const Index v : mesh.tets[t]) EXPECT_LE(mesh.nodes[v][0], 1);
    ASSERT_EQ(mesh.node_sets.size(), 4u);
    EXPECT_EQ(mesh.node_sets.at("clamped").size(), 5u);
    for (const Index v : mesh.node_sets.at("clamped")) EXPECT_EQ(mesh.nodes[v][0], 0);
    EXPECT_EQ(mesh.node_sets.at("bottom").size(), 8u);
    for (const Index v : mesh.node_sets.at("bottom")) EXPECT_EQ(mesh.nodes[v][2], 0);
    ASSERT_EQ(mesh.node_sets.at("rim").size(), 2u);
    for (const Index v : mesh.node_sets.at("rim")) EXPECT_EQ(mesh.nodes[v].tail<2>(), Vec2(0, 0));
    ASSERT_EQ(mesh.node_sets.at("tip").size(), 1u);
    EXPECT_EQ(mesh.nodes[mesh.node_sets.at("tip")[0]], Vec3(2, 1, 0));
  }
}

TEST(Read, AllGmshVersionsAgreeToTheBit) {
  const MeshFile first = read_mesh(fixture("gmsh22_binary.msh"));
  for (const char* name : {"gmsh22_text.msh", "gmsh41_text.msh", "gmsh41_binary.msh"}) {
    const MeshFile other = read_mesh(fixture(name));
    EXPECT_EQ(other.tets().nodes, first.tets().nodes) << name;
    EXPECT_EQ(other.tets().node_sets, first.tets().node_sets) << name;
    EXPECT_EQ(other.tets().tets, first.tets().tets) << name;
  }
}

TEST(Read, SurfaceOfGmshHasCurvesAsNodeSets) {
  const MeshFile file = read_mesh(fixture("gmsh41_surface.msh"));
  ASSERT_FALSE(file.has_tets());
  const TriMesh& mesh = file.triangles();
  EXPECT_EQ(mesh.element_sets.count("clamped"), 1u);
  EXPECT_EQ(mesh.element_sets.at("clamped").size(), 4u);
  EXPECT_EQ(mesh.node_sets.at("rim").size(), 2u);
}

TEST(CellNumbers, BecomeElementFields) {
  for (const char* name :
       {"meshio_text.vtk", "meshio_binary.vtk", "vtk_text.vtk", "vtk_binary.vtk", "meshio_text.vtu",
        "meshio_plain.vtu", "meshio_zlib.vtu", "vtk_text.vtu", "vtk_inline.vtu", "vtk_inline_zlib.vtu",
        "vtk_raw.vtu", "vtk_raw_zlib.vtu", "vtk_base64.vtu", "vtk_base64_zlib.vtu"}) {
    SCOPED_TRACE(name);
    const MeshFile file = read_mesh(fixture(name));
    const TetMesh& mesh = file.tets();
    const Field& region = mesh.element_fields.at("region");
    ASSERT_EQ(region.components, 1);
    ASSERT_EQ(region.values.size(), 48u);
    for (std::size_t t = 0; t < 48; ++t) {
      double x = 0;
      for (const Index v : mesh.tets[t]) x += mesh.nodes[v][0] / 4;
      EXPECT_EQ(region.values[t], x < 1 ? 1 : 7);
    }
    const auto position = mesh.node_fields.find("position");
    if (position == mesh.node_fields.end()) continue;  // VTK's files have none
    ASSERT_EQ(position->second.components, 3);
    for (std::size_t i = 0; i < mesh.nodes.size(); ++i)
      for (int a = 0; a < 3; ++a) EXPECT_EQ(position->second.values[3 * i + a], mesh.nodes[i][a]);
  }
}

TEST(Read, ReferencesAndRegionsBecomeSets) {
  const MeshFile medit = read_mesh(fixture("meshio.mesh"));
  EXPECT_NEAR(volume(medit.tets(), medit.tets().element_sets.at("group_1")), 1, 1e-12);
  EXPECT_NEAR(volume(medit.tets(), medit.tets().element_sets.at("group_7")), 1, 1e-12);
  const MeshFile tetgen = read_mesh(fixture("tetgen.ele"));
  EXPECT_NEAR(volume(tetgen.tets()), 1, 1e-12);
  EXPECT_EQ(tetgen.tets().element_sets.at("group_11").size(), 24u);
  for (const Index v : tetgen.tets().node_sets.at("group_5"))
    EXPECT_EQ(tetgen.tets().nodes[v][0], 0);  // from .face
  EXPECT_TRUE(check_mesh(tetgen.tets()).problems.empty());
}

TEST(CubeSurface, IsClosedAndOutward) {
  for (const char* name : {"gmsh_text.stl", "gmsh_binary.stl", "meshio.obj", "meshio.off", "meshio_text.ply",
                           "meshio_binary.ply", "vtk_big.ply", "vtk_little.ply", "vtk_polydata.vtk"}) {
    SCOPED_TRACE(name);
    const MeshFile file = read_mesh(fixture(name));
    ASSERT_FALSE(file.has_tets());
    const TriMesh& mesh = file.triangles();
    EXPECT_EQ(mesh.nodes.size(), 14u);
    EXPECT_EQ(mesh.triangles.size(), 24u);
    EXPECT_TRUE(check_mesh(mesh, TriRole::kSurface).problems.empty());
    EXPECT_NEAR(enclosed_volume(mesh), 1, 1e-7);
    EXPECT_NEAR(surface_area(mesh), 6, 1e-6);
  }
}

TEST(Read, TobjOfHobak) {
  const MeshFile file = parse_mesh("a.tobj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nt 0 1 2 3\n");
  EXPECT_EQ(file.tets().tets, (std::vector<Tet>{{0, 1, 2, 3}}));
}

TEST(Read, ObjOddities) {
  // Comments, colours, texture and normal numbers, negative numbers, polygons, groups, a face before its
  // vertices.
  const MeshFile file =
      parse_mesh("a.obj",
                 "# cube\no base\nf 1/1/1 2//2 3/1 4\nv 0 0 0 0.5 0.5 0.5\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"
                 "v 0.5 0.5 1\ng side wall\ns off\nf -5 -4 \\\n -1\n",
                 {}, {false});
  const TriMesh& mesh = file.triangles();
  EXPECT_EQ(mesh.triangles, (std::vector<Tri>{{0, 1, 2}, {0, 2, 3}, {0, 1, 4}}));
  EXPECT_EQ(mesh.element_sets.at("base"), (std::vector<Index>{0, 1}));
  EXPECT_EQ(mesh.element_sets.at("side wall"), (std::vector<Index>{2}));
  ASSERT_EQ(file.notices.size(), 1u);
}

TEST(Read, MendsAndSaysSo) {
  const std::string text = "v 9 9 9\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nt 1 3 2 4\n";
  const MeshFile file = parse_mesh("a.tobj", text);
  EXPECT_EQ(file.tets().nodes.size(), 4u);
  EXPECT_GT(volume(file.tets()), 0);
  EXPECT_EQ(file.notices,
            (std::vector<std::string>{"turned 1 tet that was inverted", "dropped 1 node that no tet uses"}));
  const MeshFile raw = parse_mesh("a.tobj", text, {}, {false});
  EXPECT_EQ(raw.tets().nodes.size(), 5u);
  EXPECT_LT(volume(raw.tets()), 0);
}

TEST(Read, PlaneMeshesAreTurnedUp) {
  const MeshFile file = parse_mesh("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 2 1\n");
  EXPECT_EQ(file.triangles().triangles[0], (Tri{0, 1, 2}));
}

TEST(Read, UnusedNodesDoNotHideAPlaneMesh) {
  // Vertex 4 lies outside the plane but in no triangle; the triangle without area must still be refused.
  EXPECT_THROW(parse_mesh("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 2 2 3\n"), Error);
}

TEST(Read, TetsAreAskedFor) {
  try {
    read_tet_mesh(fixture("meshio.obj"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find("surface of 24 triangles"), std::string::npos) << e.what();
  }
  EXPECT_EQ(read_surface(fixture("gmsh41_binary.msh")).triangles.size(), 40u);
}

TEST(Read, MissingFilesAreIoErrors) {
  for (const char* name : {"none.msh", "none.node", "none.vtu"}) {
    try {
      read_mesh(fixture(name));
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kIo);
      EXPECT_NE(std::string(e.what()).find("No such file"), std::string::npos) << e.what();
    }
  }
  try {
    read_mesh(fixture("") + "../meshes");  // a folder, and no ending
    FAIL();
  } catch (const Error&) {
  }
}

}  // namespace
}  // namespace limber
