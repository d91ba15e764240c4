#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/io/tetrahedralize.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/quality.hpp>
#include <limber/mesh/remesh.hpp>
#include <limber/mesh/surface.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <numbers>

namespace limber {
namespace {

bool have_tetgen() { return std::system("command -v tetgen > /dev/null 2>&1") == 0; }

TEST(Tetrahedralize, MeetsTheWantedNumber) {
  if (!have_tetgen()) GTEST_SKIP() << "tetgen is not installed";
  const TriMesh ball = surface_mesh(make_sphere(0.1, 0.008));
  TetrahedralizeOptions options;
  options.vertices = 700;
  const TetMesh mesh = tetrahedralize(ball, options);
  EXPECT_NEAR(double(mesh.nodes.size()), 700, 21);
  EXPECT_TRUE(check_mesh(mesh).problems.empty());
  const QualitySummary q = summarize_quality(mesh);
  EXPECT_NEAR(q.volume, 4 * std::numbers::pi / 3 * 1e-3, 0.02 * 4.2e-3);
  EXPECT_GT(q.least, 0.15);
  EXPECT_GT(q.mean, 0.6);
}

TEST(Tetrahedralize, WrapsWhatIsBroken) {
  if (!have_tetgen()) GTEST_SKIP() << "tetgen is not installed";
  TriMesh broken = surface_mesh(make_torus(0.1, 0.04, 0.01));
  broken.triangles.resize(broken.triangles.size() - 10);
  TetrahedralizeOptions options;
  options.vertices = 800;
  try {
    tetrahedralize(broken, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(e.what()).find("the surface is open"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("--wrap"), std::string::npos) << e.what();
  }
  options.wrap = true;
  options.feature_angle = 180;
  const TetMesh mesh = tetrahedralize(broken, options);
  EXPECT_TRUE(check_mesh(mesh).problems.empty());
  const double pi = std::numbers::pi;
  EXPECT_NEAR(summarize_quality(mesh).volume, 2 * pi * pi * 0.1 * 0.04 * 0.04, 0.05 * 3.2e-3);
}

TEST(Tetrahedralize, SaysWhatIsMissing) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  try {
    run_tetgen(surface_mesh(make_sphere(0.1, 0.05)), 1.4, 10);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(e.what()).find("apt install tetgen"), std::string::npos) << e.what();
  }
  ::setenv("PATH", path.c_str(), 1);
}

TEST(Assets, AreSoundAndOfTheAnnouncedSize) {
  const struct {
    const char* name;
    double nodes, tets, height;
  } kAssets[] = {
      {"dragon", 10500, 37500, 0.084}, {"bunny", 6000, 27700, 0.097}, {"armadillo", 5200, 18500, 0.123}};
  for (const auto& a : kAssets) {
    SCOPED_TRACE(a.name);
    std::vector<std::string> notices;
    const TetMesh mesh =
        read_tet_mesh(std::string(LIMBER_SOURCE_DIR) + "/assets/" + a.name + ".msh", &notices);
    EXPECT_TRUE(notices.empty());
    EXPECT_NEAR(double(mesh.nodes.size()), a.nodes, 0.02 * a.nodes);
    EXPECT_NEAR(double(mesh.tets.size()), a.tets, 0.02 * a.tets);
    EXPECT_GT(summarize_quality(mesh).least, 0.2);
    const Box box = bounding_box(mesh.nodes);
    EXPECT_EQ(box.lo[1], 0);
    EXPECT_NEAR(box.hi[1], a.height, 1e-3);
  }
}

// The command, as a person runs it.
class MeshCommand : public testing::Test {
 protected:
  void SetUp() override {
    limber_ = std::string(LIMBER_BINARY_DIR) + "/apps/limber/limber";
    if (!std::filesystem::exists(limber_)) GTEST_SKIP() << limber_ << " is not built";
    folder_ = testing::TempDir() + "limber_mesh_XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  // Exit code of `limber mesh ...`; what it printed is in output_.
  int run(const std::string& arguments) {
    const int status =
        std::system(("cd " + folder_ + " && " + limber_ + " mesh " + arguments + " > log 2>&1").c_str());
    output_ = read_file(folder_ + "/log");
    return WEXITSTATUS(status);
  }
  bool said(const std::string& text) const { return output_.find(text) != std::string::npos; }

  std::string limber_, folder_, output_;
};

TEST_F(MeshCommand, GeneratesConvertsAndTells) {
  EXPECT_EQ(run("generate bar -o bar.msh --size 0.06 0.06 0.2 --nodes 7 7 21"), 0) << output_;
  EXPECT_TRUE(said("1029 nodes, 4320 tets")) << output_;
  EXPECT_EQ(run("info bar.msh"), 0) << output_;
  EXPECT_TRUE(said("node set \"z1\": 49") && said("no problems found") && said("1 connected part"))
      << output_;
  EXPECT_EQ(run("convert bar.msh bar.vtu --scale 2"), 0) << output_;
  EXPECT_NEAR(summarize_quality(read_mesh(folder_ + "/bar.vtu").tets()).volume, 8 * 0.06 * 0.06 * 0.2, 1e-12);
  EXPECT_EQ(run("surface bar.vtu -o bar.ply"), 0) << output_;
  EXPECT_TRUE(said("1104 triangles")) << output_;
  for (const char* shape : {"sphere", "capsule", "cylinder", "torus", "rectangle"})
    EXPECT_EQ(run("generate " + std::string(shape) + " -o s.msh"), 0) << output_;
}

TEST_F(MeshCommand, EndsWithTheRightCode) {
  EXPECT_EQ(run("info none.msh"), 4);
  EXPECT_EQ(run("generate blob -o a.msh"), 1);
  EXPECT_EQ(run("generate box -o a.xyz"), 1);
  EXPECT_EQ(run("generate sphere -o a.msh --edge 1e-9"), 2);
  EXPECT_EQ(run("convert"), 1);
  write_file_atomic(folder_ + "/flat.tobj", "v 0 0 0\nv 1 0 0\nv 2 0 0\nv 3 0 0\nt 0 1 2 3\n");
  EXPECT_EQ(run("info flat.tobj"), 2);
  EXPECT_TRUE(said("1 tet without volume: 0")) << output_;
  EXPECT_EQ(run("convert flat.tobj a.msh"), 2);
  EXPECT_EQ(run("generate sphere -o no/such/folder/a.msh"), 4);
}

}  // namespace
}  // namespace limber
