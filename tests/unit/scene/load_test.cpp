#include <limber/core/error.hpp>
#include <limber/methods/conjac/options.hpp>
#include <limber/scene/hold_motion.hpp>
#include <limber/scene/load.hpp>
#include <limber/scene/selection.hpp>
#include <limber/scene/varying.hpp>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace limber {
namespace {

namespace fs = std::filesystem;

std::string all(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& p : problems) text += to_string(p) + "\n";
  return text;
}

std::string problems_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return all(try_read_scene(text, "s.json", overrides).problems);
}

Scene good(const std::string& text, const std::vector<std::string>& overrides = {}) {
  LoadResult r = try_read_scene(text, "s.json", overrides);
  EXPECT_EQ(all(r.problems), "");
  return std::move(r.scene);
}

// A minimal scene with `more` put into its top level.
std::string with(const std::string& more, const std::string& body = "") {
  return "{\"limber\": 1, \"bodies\": [{\"mesh\": {\"shape\": \"box\"}" + body + "}]" + more + "}";
}

TEST(Load, DefaultsFillAMinimalScene) {
  const Scene s = good(with(""));
  EXPECT_EQ(s.name, "s");
  EXPECT_EQ(s.h, 5e-3);
  EXPECT_EQ(s.end, 1);
  EXPECT_EQ(s.gravity, Vec3(0, -9.81, 0));
  EXPECT_EQ(s.method, "vanilla");
  EXPECT_EQ(*s.method_options, nlohmann::json({{"beta", 1}}));
  ASSERT_EQ(s.bodies.size(), 1u);
  EXPECT_EQ(s.bodies[0].name, "box");
  EXPECT_EQ(s.bodies[0].generate->size, Vec3(1, 1, 1));
  EXPECT_EQ(s.bodies[0].material.young.value, 1e5);
  EXPECT_EQ(s.bodies[0].material.poisson.value, 0.4);
  EXPECT_EQ(s.bodies[0].scale, Vec3(1, 1, 1));
  EXPECT_EQ(s.output.every, 1);
  EXPECT_FALSE(s.output.vtu);
  // The resolved scene is a scene, and resolves to itself.
  const Scene again = good(s.resolved->dump());
  EXPECT_EQ(again.resolved->dump(), s.resolved->dump());
}

TEST(Load, ReadsEveryPart) {
  const Scene s = good(R"json({
    // comments may stand anywhere
    "limber": 1, "name": "all-parts", "description": "x", /* and
    here */
    "time": {"step": 0.01, "end": 2}, "gravity": [0, 0, -1], "damping": {"mass": 0.1, "stiffness": 0.2},
    "method": {"type": "conjac", "dynamic": [{"auto": 3, "body": "muscle"}, {"nearest": [[1, 2, 3]]}], "gamma": 0.5,
               "time_rule": "midpoint"},
    "solver": {"backend": "cholmod", "ordering": "metis"},
    "bodies": [
      {"name": "muscle", "mesh": {"shape": "bar", "size": [1, 2, 3], "nodes": [7, 7, 21]},
       "fit": 0.5, "scale": 2, "rotation": [0, 0, 1.5], "translation": [1, 0, 0],
       "material": {"model": "arap", "young": "1e5 * (1 + x)", "poisson": {"field": "nu"},
                    "density": {"layers": {"axis": "y", "bounds": [0.1, 0.2, 0.5], "values": [1, 2, 3, 4]}},
                    "fibre": {"model": "fung", "stiffness": 5, "direction": ["x", "0", "1"], "activation": "a"}},
       "regions": [{"name": "hard", "elements": {"set": "bone"}, "young": 1e7}],
       "node_sets": {"top": {"box": {"min": [0, 0, 1], "max": [1, 1, 1]}}},
       "element_sets": {"low": {"formula": "z < 0"}},
       "velocity": [1, 2, 3], "angular_velocity": [0, 0, 1]},
      {"mesh": {"shape": "rectangle", "size": [1, 2], "nodes": [3, 4]}, "thickness": 0.5},
      {"mesh": {"shape": "rectangle"}}],
    "constraints": [{"body": "muscle", "nodes": {"set": "top", "not": {"ids": [3]}}, "axes": "xy", "from": 0.1, "until": 0.2,
                     "motion": [{"t": 0}, {"t": 1, "rotation": [0, 9, 0], "scale": 2}], "interpolation": "linear"}],
    "forces": [{"body": "rectangle", "force": [1, 0, 0], "ramp": 0.5}],
    "activations": [{"name": "a", "keys": [[0, 0], [0.5, 0.3]]}],
    "events": [{"time": 0.5, "body": "muscle", "normal": [0, 0, 1]}],
    "obstacles": [{"shape": "sphere", "radius": 2}, {"shape": "capsule", "end": [1, 0, 0], "friction": 0}],
    "contact": {"friction": 0.5},
    "output": {"every": 5, "fields": ["velocity"], "bodies": ["muscle"]},
    "tests": {"steps": 50, "max_displacement": [0.113, 1e-6]}
  })json");
  EXPECT_EQ(s.name, "all-parts");
  EXPECT_EQ(s.h, 0.01);
  EXPECT_EQ(s.damping_stiffness, 0.2);
  EXPECT_EQ(s.method, "conjac");
  EXPECT_EQ(s.method_options["gamma"], 0.5);
  EXPECT_EQ(s.method_options["beta"], 0.5) << "its own default, not that of vanilla";
  EXPECT_EQ(s.method_options["dynamic"].size(), 2u);
  const ConJacOptions options = ConJacOptions::read(*s.method_options, s.file);
  ASSERT_EQ(options.dynamic.size(), 2u);
  EXPECT_EQ(options.dynamic[0].automatic, 3);
  EXPECT_EQ(options.dynamic[0].body, "muscle");
  EXPECT_EQ(options.dynamic[1].nodes.kind, "nearest");
  EXPECT_EQ(options.dynamic[1].where, "s.json: /method/dynamic/1");
  ASSERT_EQ(s.bodies.size(), 3u);
  EXPECT_EQ(s.bodies[1].name, "rectangle");
  EXPECT_EQ(s.bodies[2].name, "rectangle-2");
  EXPECT_EQ(s.bodies[1].generate->size, Vec3(1, 2, 0));
  EXPECT_EQ(s.bodies[1].generate->nodes[1], 4);
  const BodySpec& b = s.bodies[0];
  EXPECT_EQ(b.generate->nodes, (std::array<Index, 3>{7, 7, 21}));
  EXPECT_EQ(b.scale, Vec3(2, 2, 2));
  EXPECT_EQ(b.fit, 0.5);
  EXPECT_EQ(b.material.model, MaterialModel::kArap);
  EXPECT_EQ(b.material.young.formula, "1e5 * (1 + x)");
  EXPECT_EQ(b.material.young.unit, "Pa");
  EXPECT_EQ(b.material.poisson.field, "nu");
  const std::vector<Vec3> c{Vec3(0, 0, 0), Vec3(0, 0.1, 0), Vec3(0, 0.3, 0), Vec3(0, 9, 0)};
  EXPECT_EQ(evaluate(b.material.density, c, {}, ""), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(b.material.fibre->model, FibreModel::kFung);
  EXPECT_EQ(b.material.fibre->formula[2], "1");
  EXPECT_EQ(b.regions[0].young->value, 1e7);
  EXPECT_FALSE(b.regions[0].poisson);
  EXPECT_EQ(b.node_sets[0].first, "top");
  EXPECT_EQ(b.velocity.value, Vec3(1, 2, 3));
  const ConstraintSpec& k = s.constraints[0];
  EXPECT_EQ(k.nodes.kind, "every");
  EXPECT_EQ(k.nodes.parts[1].parts[0].ids[0], 3);
  EXPECT_EQ(k.motion[1].rotation, Vec3(0, 9, 0));
  EXPECT_EQ(k.until, 0.2);
  EXPECT_EQ(s.forces[0].nodes.kind, "all");
  EXPECT_EQ(s.activations[0].keys[1].second, 0.3);
  EXPECT_EQ(s.events[0].normal, Vec3(0, 0, 1));
  EXPECT_EQ(s.obstacles[0].radius, 2);
  EXPECT_EQ(s.obstacles[1].friction, 0.0);
  EXPECT_EQ(s.contact.friction, 0.5);
  EXPECT_EQ(s.output.every, 5);
  EXPECT_EQ(s.tests["steps"], 50);
  EXPECT_EQ(good(s.resolved->dump()).resolved->dump(), s.resolved->dump());
}

TEST(Load, TheMessageOfThePlan) {
  EXPECT_EQ(problems_of("{\n\"limber\": 1,\n\"bodies\": [{\"mesh\": {\"shape\": \"box\"},\n"
                        "\"material\": {\n\"youngs\": 3}}]}"),
            "s.json:5: /bodies/0/material/youngs: unknown key, did you mean \"young\"? [Pa]\n");
}

struct Wrong {
  const char* name;
  std::string text, message;
};
class Problems : public testing::TestWithParam<Wrong> {};

TEST_P(Problems, AreNamed) {
  const std::string found = problems_of(GetParam().text);
  EXPECT_NE(found.find(GetParam().message), std::string::npos) << found;
}

INSTANTIATE_TEST_SUITE_P(
    Scene, Problems,
    testing::Values(
        Wrong{"empty", "", "s.json:1: the file is empty; a scene is an object"},
        Wrong{"cut", "{\"limber\": 1,\n \"bod", "s.json:2: expected the closing quote"},
        Wrong{"list", "[1]", "a scene is an object"},
        Wrong{"trailing", with("") + "\n x", "s.json:2: expected the end of the file after"},
        Wrong{"twice", with(", \"name\": \"a\",\n\"name\": \"b\""),
              "s.json:2: /name: the key is given twice, first on line 1"},
        Wrong{"nan", with(",\n\"gravity\": [0, NaN, 0]"),
              "s.json:2: /gravity/1: expected a finite number, found NaN"},
        Wrong{"inf", with(", \"gravity\": [0, -Infinity, 0]"), "/gravity/1: expected a finite number"},
        Wrong{"huge", with(", \"gravity\": [0, 1e999, 0]"), "a double can hold, found 1e999"},
        Wrong{"pgs_by_newton",
              with(", \"method\": {\"type\": \"rigidify\", \"integrator\": \"bdf1\", \"contact\": \"pgs\"}"),
              "Gauss-Seidel's impulses belong"},
        Wrong{"filter_of_rigidify",
              with(", \"method\": {\"type\": \"rigidify\"}, \"contact\": {\"rule\": \"filter\"}"),
              "expected \"anchored\""},
        Wrong{"python", with(", \"output\": {\"vtu\": True}"), "JSON spells it true"},
        Wrong{"quote", "{'limber': 1}", "expected a key in double quotes"},
        Wrong{"comma", "{\"limber\": 1,}", "a comma before } is not allowed"},
        Wrong{"comment", "{ /* \"limber\": 1}", "needs its */"},
        Wrong{"utf8", "{\"limber\": 1, \"name\": \"\xff\"}", "not valid UTF-8"},
        Wrong{"deep", std::string(5000, '['), "nested more than 64 levels deep"},
        Wrong{"version", "{\"limber\": 2, \"bodies\": [{\"mesh\": {\"shape\": \"box\"}}]}",
              "/limber: expected a whole number equal to 1, found 2"},
        Wrong{"missing", "{\"limber\": 1}", "s.json:1: \"bodies\" is missing"},
        Wrong{"nobodies", "{\"limber\": 1, \"bodies\": []}", "\"bodies\" is missing: expected soft bodies"},
        Wrong{"notobject", "{\"limber\": 1, \"bodies\": [3]}", "/bodies/0: expected an object, found 3"},
        Wrong{"shape", "{\"limber\": 1, \"bodies\": [{\"mesh\": {\"shape\": \"spere\"}}]}",
              "/bodies/0/mesh/shape: found \"spere\", did you mean \"sphere\"?"},
        Wrong{"othershape", "{\"limber\": 1, \"bodies\": [{\"mesh\": {\"shape\": \"box\", \"radius\": 1}}]}",
              "/bodies/0/mesh/radius: a shape of \"box\" has no such key; it belongs to sphere, capsule"},
        Wrong{"meshfile", "{\"limber\": 1, \"bodies\": [{\"mesh\": \"no/such.msh\"}]}",
              "/bodies/0/mesh: there is no file"},
        Wrong{"negative", with(", \"time\": {\"step\": -1}"),
              "/time/step: expected a number more than 0 [s], found -1"},
        Wrong{"string", with(", \"time\": {\"step\": \"0.1\"}"), "found \"0.1\"; remove the quotes"},
        Wrong{"alias", with(", \"time\": {\"dt\": 0.1}"),
              "/time/dt: unknown key, did you mean \"step\"? [s]"},
        Wrong{"onepoint", with(", \"constraints\": [{\"nodes\": {\"nearest\": [1, 2, 3]}}]"),
              "/constraints/0/nodes/nearest: expected a list of such lists, found one: write [[1,2,3]]"},
        Wrong{"elsewhere", with("", ", \"poisson\": 0.3"),
              "/bodies/0/poisson: unknown key; \"poisson\" stands at /bodies/*/material/poisson"},
        Wrong{"nonsense", with(", \"qwertyuiop\": 0.3"),
              "/qwertyuiop: unknown key; known here: $schema, limber"},
        Wrong{"poisson", with("", ", \"material\": {\"poisson\": 0.5}"),
              "/poisson: expected a number in (-1, 0.5) or a formula of x, y, z, or an object, found 0.5"},
        Wrong{"auxetic", with("", ",\n\"material\": {\"poisson\": -0.2}"),
              "s.json:2: /bodies/0/material/poisson: expected a number in [0, 0.5) for the model "
              "\"stable-neo-hookean\", found -0.2; such a body can be made of \"stable-neo-hookean-log\", "
              "\"corotational\", \"arap\", \"st-venant-kirchhoff\""},
        Wrong{"auxeticregion",
              with("",
                   ", \"material\": {\"model\": \"stable-neo-hookean-log\"},"
                   "\"regions\": [{\"elements\": \"all\", \"poisson\": -0.85}]"),
              "/bodies/0/regions/0/poisson: expected a number in [-0.8, 0.5)"},
        Wrong{"steps", with(", \"time\": {\"step\": 1e-9, \"end\": 1e9}"),
              "/time/end: 1000000000 s is 1e+18 steps of 1e-09 s; a run has at most 1e+12"},
        Wrong{"formula", with("", ", \"material\": {\"young\": \"1 + q\"}"), "unknown name \"q\""},
        Wrong{"two", with("", ", \"material\": {\"young\": {\"file\": \"s\", \"field\": \"b\"}}"),
              "expected one of formula, file, field, layers, found 2"},
        Wrong{"layers",
              with("",
                   ", \"material\": {\"young\": {\"layers\": {\"axis\": \"x\", \"bounds\": [1, 2], "
                   "\"values\": [1]}}}"),
              "expected 3 values (one more than bounds), found 1"},
        Wrong{"vec", with(", \"gravity\": [0, 1]"),
              "/gravity: expected three numbers [m/s^2], found a list of 2"},
        Wrong{"vecitem", with(", \"gravity\": [0, 1, \"a\"]"), "/gravity: expected three numbers"},
        Wrong{"size", "{\"limber\": 1, \"bodies\": [{\"mesh\": {\"shape\": \"box\", \"size\": [1, 0, 1]}}]}",
              "/bodies/0/mesh/size/1: expected a number more than 0 [m], found 0"},
        Wrong{"set", with(", \"constraints\": [{\"nodes\": \"top\"}]"),
              "a named set is written {\"set\": \"top\"}"},
        Wrong{"box",
              with(", \"constraints\": [{\"nodes\": {\"box\": {\"min\": [0, 1, 0], \"max\": [1, 0, 1]}}}]"),
              "/constraints/0/nodes/box: min 1 is more than max 0 on axis y"},
        Wrong{"nothing", with(", \"constraints\": [{\"nodes\": {}}]"), "expected at least one of set, ids"},
        Wrong{"body", with(", \"constraints\": [{\"nodes\": \"all\", \"body\": \"boxx\"}]"),
              "/constraints/0/body: there is no body \"boxx\", did you mean \"box\"?"},
        Wrong{"whichbody",
              "{\"limber\": 1, \"bodies\": [{\"mesh\": {\"shape\": \"box\"}}, {\"mesh\": {\"shape\": "
              "\"bar\"}}],"
              "\"forces\": [{\"force\": [1, 0, 0]}]}",
              "/forces/0: \"body\" is missing: there are several; expected one of \"box\", \"bar\""},
        Wrong{"samename",
              "{\"limber\": 1, \"bodies\": [{\"name\": \"a\", \"mesh\": {\"shape\": \"box\"}},\n"
              "{\"name\": \"a\", \"mesh\": {\"shape\": \"bar\"}}]}",
              "s.json:2: /bodies/1/name: the name \"a\" is taken"},
        Wrong{"name", with(", \"name\": \"../x\""), "/name: expected a name of letters"},
        Wrong{"until", with(", \"constraints\": [{\"nodes\": \"all\", \"from\": 1, \"until\": 0.5}]"),
              "/constraints/0/until: 0.5 s is not after"},
        Wrong{"keys", with(", \"constraints\": [{\"nodes\": \"all\", \"motion\": [{\"t\": 1}, {\"t\": 1}]}]"),
              "/constraints/0/motion/1: times must ascend"},
        Wrong{"activation",
              with("",
                   ", \"material\": {\"fibre\": {\"stiffness\": 1, \"direction\": [1, 0, 0], "
                   "\"activation\": \"biceps\"}}"),
              "/bodies/0/material/fibre/activation: there is no activation \"biceps\"; there are none"},
        Wrong{"direction",
              with("", ", \"material\": {\"fibre\": {\"stiffness\": 1, \"direction\": [0, 0, 0]}}"),
              "must not be zero"},
        Wrong{"normal", with(", \"events\": [{\"time\": 1, \"normal\": [0, 0, 0]}]"),
              "a normal must not be zero"},
        Wrong{"auto", with(", \"method\": {\"type\": \"conjac\", \"dynamic\": {\"auto\": 3, \"ids\": [1]}}"),
              "stands alone"},
        Wrong{"othermethod", with(", \"method\": {\"gamma\": 1}"),
              "/method/gamma: a type of \"vanilla\" has no such key; it belongs to conjac"},
        Wrong{"include", with(", \"include\": \"nothing.json\""), "/include: nothing.json: cannot open"}),
    [](const auto& info) { return info.param.name; });

TEST(Load, NamesOfBodiesAndObstacles) {
  const std::string box = "{\"mesh\": {\"shape\": \"box\"}}", plane = "{\"shape\": \"plane\"}";
  const Scene s = good("{\"limber\": 1, \"bodies\": [" + box +
                       ", {\"name\": \"box-2\", \"mesh\": {\"shape\": \"bar\"}}, " + box + ", " + box +
                       "], \"obstacles\": [" + plane + ", {\"name\": \"plane-2\", \"shape\": \"sphere\"}, " +
                       plane + ", {\"shape\": \"sphere\"}]}");
  std::vector<std::string> bodies, obstacles;
  for (const BodySpec& b : s.bodies) bodies.push_back(b.name);
  for (const ObstacleSpec& o : s.obstacles) obstacles.push_back(o.name);
  EXPECT_EQ(bodies, (std::vector<std::string>{"box", "box-2", "box-3", "box-4"}));
  EXPECT_EQ(obstacles, (std::vector<std::string>{"plane", "plane-2", "plane-3", "sphere"}));
  EXPECT_EQ(good(s.resolved->dump()).resolved->dump(), s.resolved->dump());
}

TEST(Load, AllProblemsInOnePass) {
  const std::string found = problems_of(
      "{\"limber\": 1, \"bodies\": [{\"mesh\": {\"shape\": \"box\"}}],\n\"time\": {\"step\": 0},\n"
      "\"gravity\": 3,\n\"colour\": 1,\n\"constraints\": [{\"nodes\": {\"set\": 1}, \"body\": \"q\"}]}");
  for (const char* part : {"s.json:2: /time/step", "s.json:3: /gravity", "s.json:4: /colour",
                           "s.json:5: /constraints/0/nodes/set", "s.json:5: /constraints/0/body"})
    EXPECT_NE(found.find(part), std::string::npos) << part << "\n" << found;
  EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 5) << found;
}

TEST(Load, NumbersAndEscapes) {
  const Scene s = good(with(R"(, "description": "\u00e9\ud83d\ude00\"\\\/\n", "gravity": [0, 1E+2, -0.5e-1],
                            "output": {"every": 3.0})"));
  EXPECT_EQ(s.description, "\xC3\xA9\xF0\x9F\x98\x80\"\\/\n");
  EXPECT_EQ(s.gravity, Vec3(0, 100, -0.05));
  EXPECT_EQ(s.output.every, 3);
  for (const char* number : {"+1", "01", ".5", "1.", "1e", "0x10", "- 1"})
    EXPECT_NE(problems_of(with(", \"gravity\": [0, 0, " + std::string(number) + "]")), "") << number;
  for (const char* text : {"\"\\q\"", "\"\\u12\"", "\"\\ud800\"", "\"a\nb\""})
    EXPECT_NE(problems_of(with(", \"description\": " + std::string(text))), "") << text;
}

TEST(Load, OverridesGoThroughTheSameChecks) {
  const Scene s = good(with(""), {"/method/beta=0.5", "/name=other", "/bodies/0/material/young=2e5",
                                  "/time/end=3", "/gravity=[0, 0, 0]", "/bodies/0/mesh/size=[1,2,3]"});
  EXPECT_EQ(s.method_options["beta"], 0.5);
  EXPECT_EQ(s.name, "other");
  EXPECT_EQ(s.bodies[0].material.young.value, 2e5);
  EXPECT_EQ(s.end, 3);
  EXPECT_EQ(s.bodies[0].generate->size, Vec3(1, 2, 3));
  EXPECT_EQ(good(with(", \"name\": \"x\""), {"/name=null"}).name, "s") << "null takes the default";
  EXPECT_EQ(good(with(""), {"/constraints/-={\"nodes\": \"all\"}"}).constraints.size(), 1u) << "created";
  EXPECT_NE(
      problems_of(with(""), {"/method/beta=-1"}).find("--set: /method/beta: expected a number at least 0"),
      std::string::npos);
  EXPECT_NE(problems_of(with(""), {"/method/bta=1"}).find("did you mean \"beta\""), std::string::npos);
  EXPECT_NE(problems_of(with(""), {"method/beta=1"}).find("as in --set /method/beta=0.5"), std::string::npos);
  EXPECT_NE(problems_of(with(""), {"/method/beta"}).find("as in --set"), std::string::npos);
  EXPECT_NE(
      problems_of(with(""), {"/bodies/1/name=a"}).find("there is no /bodies/1; the list has 1 items, 0 to 0"),
      std::string::npos);
  EXPECT_NE(problems_of(with(""), {"/gravity=[1, 2"}).find("expected"), std::string::npos);
  EXPECT_NE(problems_of(with(""), {"/time=3"}).find("--set: /time: expected an object, found 3"),
            std::string::npos);
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("limber_load_" + std::to_string(::getpid()));  // tests run side by side
    fs::remove_all(root_);
    fs::create_directories(root_ / "sub");
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string put(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
    return (root_ / name).string();
  }
  fs::path root_;
};

TEST_F(Files, IncludesMergeAndTheFileWins) {
  put("sub/mesh.msh", "");
  put("sub/common.json", R"({"time": {"step": 0.1, "end": 5}, "gravity": [1, 1, 1],
      "bodies": [{"mesh": "mesh.msh"}], "output": {"every": 7}})");
  put("more.json", R"({"include": "sub/common.json", "gravity": [2, 2, 2], "output": null})");
  const std::string path = put("s.json", R"({"limber": 1, "include": ["more.json"], "time": {"end": 1}})");
  const Scene s = load_scene(path);
  EXPECT_EQ(s.h, 0.1);
  EXPECT_EQ(s.end, 1);
  EXPECT_EQ(s.gravity, Vec3(2, 2, 2));
  EXPECT_EQ(s.output.every, 1);
  EXPECT_EQ(s.bodies[0].mesh_file, "sub/mesh.msh") << "meant from the file that says it";
  EXPECT_FALSE(s.resolved->contains("include"));
  EXPECT_EQ(rebase_files(s, (root_ / "sub").string())["bodies"][0]["mesh"], "mesh.msh");
}

TEST_F(Files, ProblemsNameTheIncludedFile) {
  const std::string common = put("sub/common.json", "{\n\"time\": {\n\"step\": -1}}");
  const std::string path = put(
      "s.json",
      "{\"limber\": 1, \"include\": \"sub/common.json\", \"bodies\": [{\"mesh\": {\"shape\": \"box\"}}]}");
  EXPECT_NE(all(check_scene(path)).find(common + ":3: /time/step"), std::string::npos)
      << all(check_scene(path));
}

TEST_F(Files, IncludeCyclesAreFound) {
  put("a.json", R"({"include": "b.json"})");
  put("b.json", R"({"include": "./sub/../a.json"})");
  const std::string path = put("s.json", R"({"limber": 1, "include": "a.json"})");
  EXPECT_NE(all(check_scene(path)).find("includes itself"), std::string::npos) << all(check_scene(path));
}

TEST_F(Files, UnreadableFiles) {
  EXPECT_THROW(
      {
        try {
          load_scene((root_ / "missing.json").string());
        } catch (const Error& e) {
          EXPECT_EQ(e.kind(), ErrorKind::kIo);
          throw;
        }
      },
      Error);
  try {
    load_scene(root_.string());
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("is a folder"), std::string::npos);
  }
  try {
    load_scene(put("bad.json", "{\"limber\": 1}"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
  }
}

// Under the filter alpha is a drag: it is there only when somebody asks for it.
TEST(Load, AlphaOfContactDependsOnTheRule) {
  EXPECT_EQ(good(with("")).contact.alpha, 0.1);
  EXPECT_EQ(good(with(", \"contact\": {\"rule\": \"filter\"}")).contact.alpha, 0);
  EXPECT_EQ(good(with(", \"contact\": {\"rule\": \"filter\", \"alpha\": 0.2}")).contact.alpha, 0.2);
}

// A chain of bones becomes holds that follow each other.
TEST(Load, Bones) {
  const char* const text = R"({"limber": 1, "bodies": [{"name": "b", "mesh": {"shape": "box"}}],
    "bones": [{"name": "a", "head": [0, 0, 0], "tail": [1, 0, 0], "radius": 0.1,
               "motion": [{"t": 0}, {"t": 1, "rotation": [0, 0, 1.5707963267948966]}]},
              {"name": "c", "parent": "a", "joint": [1, 0, 0], "head": [1.1, 0, 0], "tail": [2, 0, 0], "radius": 0.1,
               "motion": [{"t": 0}, {"t": 1, "rotation": [0, 0, 1.5707963267948966]}]},
              {"name": "still", "head": [0, 1, 0], "tail": [1, 1, 0], "radius": 0.1}]})";
  const Scene s = read_scene(text, "bones.json");
  ASSERT_EQ(s.constraints.size(), 3u);
  EXPECT_EQ(s.constraints[1].parent, 0);
  EXPECT_EQ(s.constraints[1].center, Vec3(1, 0, 0));
  EXPECT_EQ(s.constraints[1].nodes.kind, "capsule");
  EXPECT_EQ(s.constraints[1].body, "b");
  EXPECT_TRUE(hold_moves(s, 1));
  EXPECT_FALSE(hold_moves(s, 2));
  // The end of the chain, (2, 0, 0): turned about (1, 0, 0) to (1, 1, 0), then about the origin to (-1, 1,
  // 0).
  const KeyPose p = hold_pose(s, 1, 1);
  const Vec3 c = s.constraints[1].center;
  EXPECT_LT((c + p.translation + p.scale * (p.R * (Vec3(2, 0, 0) - c)) - Vec3(-1, 1, 0)).norm(), 1e-14);

  const auto problems = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    const LoadResult r = try_read_scene(changed, "bones.json");
    return r.problems.empty() ? std::string() : to_string(r.problems[0]);
  };
  EXPECT_NE(problems("\"parent\": \"a\"", "\"parent\": \"still\"").find("there is no bone \"still\" before"),
            std::string::npos);
  EXPECT_NE(problems("\"name\": \"c\"", "\"name\": \"a\"").find("is taken"), std::string::npos);
  EXPECT_NE(problems("[{\"t\": 0}", "[{\"t\": 0, \"rotation\": [1, 0, 0]}").find("begins in the rest shape"),
            std::string::npos);
}

}  // namespace
}  // namespace limber
