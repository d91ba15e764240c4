#include "fixtures.hpp"

#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/io/vtu.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/geometry.hpp>
#include <limber/mesh/surface.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

namespace limber {
namespace {

// A folder for one test, removed afterwards.
class Write : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "limber_write_XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

// Sets that overlap, fields, and coordinates with all their digits.
TetMesh rich_mesh() {
  TetMesh mesh = make_box({0.1, 0.2, 0.3}, {3, 4, 3});
  for (Index i = 0; i < static_cast<Index>(mesh.tets.size()); ++i) {
    if (i % 3 == 0) mesh.element_sets["third"].push_back(i);
    if (i % 2 == 0) mesh.element_sets["every other one"].push_back(i);
  }
  Field young{1, {}}, fibre{3, {}}, position{3, {}};
  for (std::size_t t = 0; t < mesh.tets.size(); ++t) {
    young.values.push_back(1e5 / 3 + double(t));
    for (int a = 0; a < 3; ++a) fibre.values.push_back(std::sin(double(3 * t + a)));
  }
  for (const Vec3& p : mesh.nodes) position.values.insert(position.values.end(), p.data(), p.data() + 3);
  mesh.element_fields["young"] = young;
  mesh.element_fields["fibre"] = fibre;
  mesh.node_fields["position"] = position;
  return mesh;
}

void expect_same(const Fields& a, const Fields& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, field] : a) {
    EXPECT_EQ(field.components, b.at(name).components) << name;
    EXPECT_EQ(field.values, b.at(name).values) << name;
  }
}

template <class Mesh>
void expect_same(const Mesh& a, const Mesh& b) {
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.node_sets, b.node_sets);
  EXPECT_EQ(a.element_sets, b.element_sets);
  expect_same(a.node_fields, b.node_fields);
  expect_same(a.element_fields, b.element_fields);
}

TEST_F(Write, MshAndVtuComeBackToTheBit) {
  const TetMesh mesh = rich_mesh();
  write_msh(path("b.msh"), mesh, Encoding::kBinary);
  write_msh(path("t.msh"), mesh, Encoding::kText);
  write_vtu(path("plain.vtu"), mesh);
  write_vtu(path("zlib.vtu"), mesh, {true, false});
  for (const char* name : {"b.msh", "t.msh", "plain.vtu", "zlib.vtu"}) {
    SCOPED_TRACE(name);
    const MeshFile file = read_mesh(path(name));
    EXPECT_TRUE(file.notices.empty());
    EXPECT_EQ(file.tets().tets, mesh.tets);
    expect_same(mesh, file.tets());
  }
}

TEST_F(Write, SurfacesComeBackToTheBit) {
  TriMesh mesh = surface_mesh(rich_mesh());
  mesh.element_sets["some"] = {0, 5, 7};
  write_msh(path("s.msh"), mesh);
  write_vtu(path("s.vtu"), mesh);
  for (const char* name : {"s.msh", "s.vtu"}) {
    const MeshFile file = read_mesh(path(name));
    EXPECT_EQ(file.triangles().triangles, mesh.triangles);
    expect_same(mesh, file.triangles());
  }
  write_ply(path("b.ply"), mesh, Encoding::kBinary);
  write_ply(path("t.ply"), mesh, Encoding::kText);
  write_obj(path("s.obj"), mesh);
  for (const char* name : {"b.ply", "t.ply", "s.obj"}) {
    const MeshFile file = read_mesh(path(name));
    EXPECT_EQ(file.triangles().nodes, mesh.nodes) << name;
    EXPECT_EQ(file.triangles().triangles, mesh.triangles) << name;
  }
}

TEST_F(Write, MeditAndTetgenComeBack) {
  TetMesh mesh = make_box({0.1, 0.2, 0.3}, {3, 4, 3});
  for (Index i = 0; i < 20; ++i) mesh.element_sets["a"].push_back(i);
  MeshFile file;
  file.mesh = mesh;
  for (const char* name : {"m.mesh", "m.ele"}) {
    write_mesh(path(name), file);
    const MeshFile back = read_mesh(path(name));
    EXPECT_EQ(back.tets().nodes, mesh.nodes) << name;
    EXPECT_EQ(back.tets().tets, mesh.tets) << name;
    EXPECT_EQ(back.tets().element_sets.at("group_1"), mesh.element_sets.at("a")) << name;
  }
  EXPECT_THROW(write_mesh(path("m.stl"), file), Error);
}

TEST_F(Write, FramesOfMixedCells) {
  const std::vector<double> x{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
  const std::vector<Tet> cells{{0, 1, 2, 3}, {0, 1, 3, -1}};
  const std::vector<double> density{7, 8}, time{0.25};
  const std::vector<std::uint8_t> dynamic{1, 0, 0, 1};
  const std::vector<Index> body{4, 5};
  VtuGrid grid;
  grid.points = x;
  grid.cells = cells;
  grid.point_data = {{"displacement", 3, std::span<const double>(x)},
                     {"dynamic <&\">", 1, std::span<const std::uint8_t>(dynamic)}};
  grid.cell_data = {{"density", 1, std::span<const double>(density)},
                    {"body", 1, std::span<const Index>(body)}};
  grid.field_data = {{"TimeValue", 1, std::span<const double>(time)}};
  write_vtu(path("f.vtu"), grid, {false, true});
  const MeshFile file = read_mesh(path("f.vtu"));
  EXPECT_EQ(file.tets().tets.size(), 1u);
  EXPECT_EQ(file.tets().element_fields.at("density").values, (std::vector<double>{7}));
  EXPECT_EQ(file.tets().element_fields.at("body").values, (std::vector<double>{4}));
  EXPECT_EQ(file.tets().node_fields.at("dynamic <&\">").values, (std::vector<double>{1, 0, 0, 1}));
  grid.cell_data[0].components = 3;
  EXPECT_THROW(write_vtu(path("g.vtu"), grid), Error);
  EXPECT_FALSE(std::filesystem::exists(path("g.vtu")));
}

TEST_F(Write, PlyFramesOfASurface) {
  const std::vector<double> x{0, 0, 0, 9, 9, 9, 1, 0, 0, 0, 1, 0};
  const std::vector<Index> nodes{0, 2, 3};
  write_ply(path("f.ply"), x, nodes, std::vector<Tri>{{0, 1, 2}});
  const MeshFile file = read_mesh(path("f.ply"));
  EXPECT_EQ(file.triangles().nodes, (std::vector<Vec3>{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}));
}

TEST_F(Write, Base64OfTheStandard) {  // RFC 4648, section 10
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : cases) {
    std::string out;
    append_base64(out, {reinterpret_cast<const std::uint8_t*>(plain), std::strlen(plain)});
    EXPECT_EQ(out, coded);
  }
}

TEST_F(Write, ReplacesWholeFilesOrNothing) {
  write_file_atomic(path("f"), "old");
  write_file_atomic(path("f"), "new", true);
  EXPECT_EQ(read_file(path("f")), "new");
  // A disk that is full: writing beyond a limit fails with "File too large".
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  rlimit small = limit;
  small.rlim_cur = 1000;
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    write_file_atomic(path("f"), std::string(5000, 'x'));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIo);
    message = e.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_NE(message.find("cannot write"), std::string::npos) << message;
  EXPECT_EQ(read_file(path("f")), "new");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 1u);  // no temporary is left
  try {
    write_file_atomic(path("no/such/folder"), "x");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(e.what()).find("No such file"), std::string::npos);
  }
}

// An independent reader: Debian's meshio, which ParaView users post-process with.
TEST_F(Write, MeshioReadsWhatWeWrite) {
  const std::string python = "/usr/bin/python3";
  if (std::system((python + " -c 'import meshio' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "python3-meshio is not installed";
  const TetMesh mesh = rich_mesh();
  TetMesh plain = mesh;  // meshio stumbles over elements of which only some are in groups
  plain.element_sets.clear();
  write_vtu(path("a.vtu"), mesh);
  write_vtu(path("z.vtu"), mesh, {true, false});
  write_vtu(path("s.vtu"), mesh, {true, true});
  write_msh(path("b.msh"), plain);
  write_msh(path("t.msh"), plain, Encoding::kText);
  write_medit(path("m.mesh"), mesh);
  write_ply(path("p.ply"), surface_mesh(mesh));
  write_obj(path("o.obj"), surface_mesh(mesh));
  write_pvd(path("run.pvd"), std::vector<std::pair<double, std::string>>{{0, "a.vtu"}, {0.1, "z.vtu"}});
  write_file_atomic(path("check.py"), R"(
import meshio, numpy as np, sys, xml.etree.ElementTree as xml
folder = sys.argv[1]
def volume(m):
    t = np.vstack([c.data for c in m.cells if c.type == "tetra"])
    a, b, c, d = (m.points[t[:, k]] for k in range(4))
    return np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) / 6
for name in ("a.vtu", "z.vtu", "s.vtu", "b.msh", "t.msh", "m.mesh"):
    m = meshio.read(folder + "/" + name)
    v = volume(m)
    assert m.points.shape == (36, 3), name
    assert len(v) == 72 and v.min() > 0 and abs(v.sum() - 0.006) < 1e-9, (name, v.sum())
    if name == "m.mesh": continue
    tolerance = 1e-6 if name == "s.vtu" else 0
    assert np.abs(m.point_data["position"] - m.points).max() <= tolerance, name
    young, fibre = m.cell_data["young"][0], m.cell_data["fibre"][0]
    assert np.abs(young.ravel() / (1e5 / 3 + np.arange(72)) - 1).max() <= tolerance + 1e-15, name
    assert fibre.shape == (72, 3) and np.abs(fibre - np.sin(np.arange(216)).reshape(72, 3)).max() <= tolerance + 1e-15
    x0 = m.point_data["set:x0"].ravel() != 0
    assert (x0 == (m.points[:, 0] == 0)).all(), name
    if name.endswith(".vtu"): assert (m.cell_data["set:third"][0] != 0).sum() == 24
for name in ("p.ply", "o.obj"):
    m = meshio.read(folder + "/" + name)
    t = np.vstack([c.data for c in m.cells if c.type == "triangle"])
    a, b, c = (m.points[t[:, k]] for k in range(3))
    assert abs(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6 - 0.006) < 1e-9, name
frames = [(float(d.get("timestep")), d.get("file")) for d in xml.parse(folder + "/run.pvd").iter("DataSet")]
assert frames == [(0, "a.vtu"), (0.1, "z.vtu")], frames
)");
  EXPECT_EQ(std::system((python + " " + path("check.py") + " " + folder_).c_str()), 0);
}

// Texture coordinates of OBJ files are the node field "uv", where every vertex has one.
TEST_F(Write, TextureCoordinatesComeBack) {
  TriMesh mesh;
  mesh.nodes = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0.5}, {0, 1, 0.5}};
  mesh.triangles = {{0, 1, 2}, {0, 2, 3}};
  mesh.node_fields["uv"] = {2, {0, 0, 1, 0, 1, 1.25, 0, 1.25}};
  write_obj(path("uv.obj"), mesh);
  const TriMesh back = read_surface(path("uv.obj"));
  ASSERT_EQ(back.node_fields.count("uv"), 1u);
  EXPECT_EQ(back.node_fields.at("uv").values, mesh.node_fields.at("uv").values);
  // A seam: one vertex with two of them.
  std::ofstream(path("seam.obj"))
      << "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nvt 5 5\n"
         "f 1/1 2/2 3/3\nf 1/5 3/3 4/4\n";
  EXPECT_EQ(read_surface(path("seam.obj")).node_fields.count("uv"), 0u);
}

}  // namespace
}  // namespace limber
