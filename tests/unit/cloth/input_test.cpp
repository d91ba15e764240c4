// Cloth that cannot be, or that is hard: a message, or a fallback that is counted.
#include <limber/core/error.hpp>
#include <limber/methods/cloth/cloth_mesh.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include <fmt/format.h>

namespace limber::cloth {
namespace {

// An OBJ file of a grid of nx x ny squares of side `edge`: `place` is where a material point is in space.
std::string grid_obj(int nx, int ny, double edge, const std::function<Vec3(double, double)>& place) {
  std::string out;
  for (int j = 0; j <= ny; ++j)
    for (int i = 0; i <= nx; ++i) {
      const Vec3 x = place(i * edge, j * edge);
      out += fmt::format("v {} {} {}\nvt {} {}\n", x[0], x[1], x[2], i * edge, j * edge);
    }
  for (int j = 0; j < ny; ++j)
    for (int i = 0; i < nx; ++i) {
      const int a = j * (nx + 1) + i + 1, b = a + 1, c = a + nx + 1, d = c + 1;
      out += fmt::format("f {0}/{0} {1}/{1} {3}/{3}\nf {0}/{0} {3}/{3} {2}/{2}\n", a, b, c, d);
    }
  return out;
}

Simulation simulate_cloth(const std::string& obj, const std::string& method, const std::string& obstacles,
                          const std::string& elements = "cloth-uv") {
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / ("cloth-" + name + ".obj");
  std::ofstream(file) << obj;
  const std::string text = fmt::format(
      R"({{"limber": 1, "time": {{"step": 0.005, "end": 100}}, "gravity": [0, 0, -10],
          "method": {{"type": "cloth"{}}},
          "bodies": [{{"name": "rag", "elements": "{}", "thickness": 0.001, "area_density": 0.05,
                      "mesh": "{}", "material": {{"model": "corotational", "young": 5e4, "poisson": 0}},
                      "bending": 1e-5}}],
          "obstacles": [{}]}})",
      method, elements, file.string(), obstacles);
  return Simulation(std::make_shared<const Scene>(read_scene(text, "rag.json")));
}

std::string refusal(const std::string& obj, const std::string& method = "", const std::string& obstacles = "",
                    const std::string& elements = "cloth") {
  try {
    simulate_cloth(obj, method, obstacles, elements);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return e.what();
  }
  return "";
}

constexpr const char* kEol = R"(, "eol": true, "size_min": 0.04, "size_max": 0.1)";

Vec3 flat(double u, double v) { return {u, v, 0}; }

// Runs; the mesh is sound and everything finite after every step. The sum of fallbacks by name.
std::map<std::string, int> run_soundly(Simulation& sim, int steps) {
  std::map<std::string, int> out;
  const auto charts = find_charts(sim.model());
  const double area = material_area(sheet_of(sim.model(), sim.state(), charts));
  for (int k = 0; k < steps; ++k) {
    const StepReport report = sim.step();
    EXPECT_EQ(report.inverted, 0) << "step " << k;
    const Sheet sheet = sheet_of(sim.model(), sim.state(), charts);
    const auto defects = sheet_defects(sheet);
    EXPECT_TRUE(defects.empty()) << "step " << k << ": " << defects.front();
    EXPECT_NEAR(material_area(sheet), area, 1e-12);
    for (const Vec3& v : sheet.v) EXPECT_LT(v.norm(), 20) << "step " << k;
    for (const auto& [name, count] : report.fallbacks) out[name] += count;
    if (::testing::Test::HasFailure()) break;
  }
  return out;
}

// Texture coordinates are the rest shape: a cylinder that has been bent from a flat sheet is not stretched,
// and may be remeshed; as "cloth" alone it is curved at rest.
TEST(ClothInput, TextureCoordinatesAreTheMaterial) {
  const auto bent = [](double u, double v) {
    return Vec3(0.2 * std::sin(u / 0.2), v, 0.2 * std::cos(u / 0.2));
  };
  const std::string obj = grid_obj(16, 8, 0.025, bent);
  Simulation sim = simulate_cloth(obj, kEol, "");
  EXPECT_NEAR(material_area(sheet_of(sim.model(), sim.state(), find_charts(sim.model()))), 0.4 * 0.2, 1e-12);
  for (Index i = 0; i < sim.model().nodes(); ++i) {
    const Vec3 x = node(sim.state().x, i);
    EXPECT_NEAR(std::hypot(x[0], x[2]), 0.2, 1e-9);  // it begins where the file has it
  }
  const Diagnostics d = sim.measured({});
  // Chords of 1/8 rad are shorter than their arcs by 1/384: 1/2 E e^2 per area; and it is bent.
  EXPECT_LT(d.elastic, 0.08 * (0.5 * 50 * std::pow(0.125 * 0.125 / 24, 2) * 1.5 + 1e-5 / (0.2 * 0.2) * 1.5));
  EXPECT_GT(d.elastic, 0);
  EXPECT_NE(refusal(obj, kEol).find("flat"), std::string::npos);
  std::string bare = obj;  // without vt
  for (std::size_t k; (k = bare.find("vt ")) != std::string::npos;) bare.erase(k, bare.find('\n', k) - k + 1);
  for (std::size_t k; (k = bare.find('/')) != std::string::npos;)
    bare.erase(k, bare.find_first_of(" \n", k) - k);
  const std::string why = refusal(bare, "", "", "cloth-uv");
  EXPECT_NE(why.find("texture"), std::string::npos) << why;
  EXPECT_NE(why.find("\"rag\""), std::string::npos) << why;
}

TEST(ClothInput, NonManifoldClothIsRefused) {
  const std::string grid = grid_obj(2, 2, 0.1, flat);
  // A third triangle at the edge between nodes 4 and 5 (counted from 0).
  const std::string fin = grid + "v 0.1 0.1 0.1\nvt 0.1 0.05\nf 5/5 6/6 10/10\n";
  for (const char* method : {"", kEol}) {
    const std::string why = refusal(fin, method);
    EXPECT_NE(why.find("more than two triangles"), std::string::npos) << why;
    EXPECT_NE(why.find("nodes 4 and 5"), std::string::npos) << why;
  }
  // A Moebius strip has no side that could be up.
  const std::string strip =
      "v 1 0 0\nv 0.3 1 0.2\nv -0.8 0.6 -0.2\nv -0.8 -0.6 0.2\nv 0.3 -1 -0.2\n"
      "f 1 2 3\nf 2 4 3\nf 3 4 5\nf 4 1 5\nf 5 1 2\n";
  EXPECT_NE(refusal(strip).find("opposite ways"), std::string::npos) << refusal(strip);
  // Two pieces that share one vertex: fine for cloth that stays as it is, not for remeshing.
  const std::string bow = "v 0 0 0\nv 1 0 0\nv 0.5 0.5 0\nv 1 1 0\nv 0 1 0\nf 1 2 3\nf 3 4 5\n";
  EXPECT_EQ(refusal(bow), "");
  EXPECT_NE(refusal(bow, kEol).find("cloth that is remeshed"), std::string::npos) << refusal(bow, kEol);
}

TEST(ClothInput, OverlappingStartIsRefused) {
  const std::string obj = grid_obj(8, 8, 0.05, flat);
  const std::string box =
      R"({"name": "block", "shape": "box", "size": [0.3, 0.3, 0.3], "point": [0.2, 0.2, 0.0]})";
  for (const char* method : {"", kEol}) {
    const std::string why = refusal(obj, method, box);
    EXPECT_NE(why.find("\"rag\""), std::string::npos) << why;
    EXPECT_NE(why.find("m deep at ("), std::string::npos) << why;
  }
}

// Contact between bodies does not see sheets: no silence about it.
TEST(ClothInput, ContactBetweenBodiesIsRefused) {
  for (const char* method : {"implicit", "cloth"}) {
    const std::string text = fmt::format(
        R"({{"limber": 1, "time": {{"step": 0.005, "end": 1}}, "method": {{"type": "{}", "body_contact": true}},
            "bodies": [{{"name": "rag", "elements": "cloth", "mesh": {{"shape": "rectangle", "size": [1, 1], "nodes": [3, 3]}}}}]}})",
        method);
    try {
      Simulation sim(std::make_shared<const Scene>(read_scene(text, "rag.json")));
      ADD_FAILURE() << method;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInput);
      EXPECT_NE(std::string(e.what()).find("body_contact"), std::string::npos) << e.what();
    }
  }
}

// Half of it lies on the box, the other half is folded back onto that, the crease on the edge: it turns by
// 180 degrees there.
TEST(ClothInput, ClothFoldedOntoAnEdgeStaysSound) {
  const std::string obj = grid_obj(
      12, 6, 0.05, [](double u, double v) { return u <= 0.3 ? Vec3(u, v, 1e-4) : Vec3(0.6 - u, v, 2e-4); });
  const std::string box =
      R"({"shape": "box", "size": [1, 1, 0.5], "point": [-0.2, 0.15, -0.25], "friction": 0.2})";
  for (const char* method : {"", R"(, "mesh": "conformal", "size_min": 0.04, "size_max": 0.1)", kEol}) {
    SCOPED_TRACE(method);
    Simulation sim = simulate_cloth(obj, method, box);
    run_soundly(sim, 60);
    for (Index i = 0; i < sim.model().nodes(); ++i) EXPECT_GT(sim.state().x[3 * i + 2], -5e-3);
  }
}

// A box whose edges are shorter than the smallest triangles that remeshing makes: no vertices slide over
// them, edges and triangles of the cloth stop there all the same.
TEST(ClothInput, EdgesShorterThanTrianglesAreCounted) {
  const std::string obj = grid_obj(8, 8, 0.05, [](double u, double v) { return Vec3(u, v, 0.003); });
  const std::string box =
      R"({"shape": "box", "size": [0.02, 0.02, 0.02], "point": [0.213, 0.187, -0.01], "friction": 0.2})";
  Simulation sim = simulate_cloth(obj, kEol, box);
  const auto fallbacks = run_soundly(sim, 20);
  EXPECT_GT(fallbacks.count("short-edge"), 0u);
  // It hangs over the box instead of falling through it.
  double highest = -1;
  for (Index i = 0; i < sim.model().nodes(); ++i) highest = std::max(highest, sim.state().x[3 * i + 2]);
  EXPECT_GT(highest, -0.005);
}

}  // namespace
}  // namespace limber::cloth
