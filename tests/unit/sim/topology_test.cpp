// Topology as a value: cuts and remeshing by one function, in checkpoints and recordings; and the outer loop
// around methods that do not move the nodes in every step.
#include <limber/core/error.hpp>
#include <limber/io/replay.hpp>
#include <limber/methods/methods.hpp>
#include <limber/methods/vanilla/vanilla.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/checkpoint.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/recorder.hpp>
#include <limber/sim/simulation.hpp>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

namespace limber {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Scene> scene_from(const std::string& text) {
  LoadResult loaded = try_read_scene(text, "scene.json");
  if (!loaded.problems.empty()) throw Error(ErrorKind::kInput, to_string(loaded.problems[0]));
  return std::make_shared<const Scene>(std::move(loaded.scene));
}

State through_a_file(const State& state, const std::string& method) {
  const fs::path file =
      fs::temp_directory_path() / (std::to_string(::getpid()) + "_limber_topology_test.lmc");
  Checkpoint c;
  c.state = state;
  c.method = method;
  write_checkpoint(file, c);
  State back = read_checkpoint(file).state;
  fs::remove(file);
  return back;
}

TEST(Transfer, WeighsAndComposes) {
  Transfer first;  // 0, 1, the middle of both
  first.add_copy(0);
  first.add_copy(1);
  const std::pair<Index, double> middle[] = {{0, 0.5}, {1, 0.5}};
  first.add(middle);
  Transfer then;  // 2, a quarter from 0 to 2, 1
  then.add_copy(2);
  const std::pair<Index, double> quarter[] = {{0, 0.5}, {2, 0.5}};
  then.add(quarter);
  then.add_copy(1);
  const Transfer both = compose(first, then);
  VecX old(6);
  old << 0, 0, 0, 4, 8, -4;
  const VecX direct = both.apply3(old), in_turn = then.apply3(first.apply3(old));
  EXPECT_LT((direct - in_turn).norm(), 1e-14);
  EXPECT_EQ(direct[3], 1);
  EXPECT_EQ(both.main(1), 0);
  EXPECT_TRUE(first.stays(1));
  EXPECT_FALSE(then.stays(0));
  // A new item is in a set if all that it comes from is.
  EXPECT_EQ(first.apply({1, 0}, 2), (std::vector<Index>{1, 0, 2}));
  EXPECT_EQ(first.apply({1}, 2), (std::vector<Index>{1}));
}

const char* const kHanging = R"({"limber": 1, "time": {"step": 0.002, "end": 1},
  "links": [{"name": "bone", "shapes": {"shape": "box", "size": [0.1, 0.1, 0.1], "position": [-0.05, 0.05, 0.05]}}],
  "joints": [{"name": "hinge", "child": "bone", "position": [-0.1, 0.05, 0.05], "axis": [0, 0, 1]}],
  "bodies": [{"name": "flesh", "mesh": {"shape": "bar", "size": [0.2, 0.1, 0.1], "nodes": [5, 3, 3]},
              "material": {"young": 5e4}}],
  "attachments": [{"link": "bone", "nodes": {"set": "x0"}}],
  "events": [{"time": 0.01, "point": [0, 0.05, 0], "normal": [0, 1, 0]}],
  "method": )";

// The cut goes through attached nodes: both copies hang on the bone, and the bone is still there.
TEST(Topology, LinksSurviveACut) {
  for (const std::string method :
       {R"({"type": "vanilla"})",
        R"({"type": "conjac", "dynamic": {"auto": 4}, "time_rule": "linear-implicit"})"}) {
    const auto scene = scene_from(std::string(kHanging) + method + "}");
    Simulation whole(scene), first(scene);
    const std::size_t attached = whole.model().articulation->attachments.size();
    for (int k = 0; k < 12; ++k) whole.step();
    ASSERT_EQ(whole.state().epoch, 1);
    ASSERT_TRUE(whole.model().articulation);
    EXPECT_TRUE(whole.model().link_surfaces);
    EXPECT_EQ(whole.model().articulation->attachments.size(), attached + 3) << "one line of nodes is doubled";
    EXPECT_EQ(whole.model().pieces.size(), 2u);
    const rigid::Articulation& a = *whole.model().articulation;
    rigid::Motion motion;
    rigid::update_motion(a.mechanism, whole.state().joint_q, whole.state().joint_v, motion);
    for (const rigid::Attachment& at : a.attachments)
      EXPECT_LT(
          (motion.links[static_cast<std::size_t>(at.link)].pose * at.x - Vec3(node(whole.state().x, at.node)))
              .norm(),
          1e-12);
    // Stopped after the cut, and before it.
    for (const int stop : {3, 8}) {
      Simulation before(scene), after(scene);
      for (int k = 0; k < stop; ++k) before.step();
      after.restore(through_a_file(before.state(), scene->method));
      for (int k = stop; k < 12; ++k) after.step();
      EXPECT_EQ(hash_state(after.state()), hash_state(whole.state())) << method << " stopped at " << stop;
    }
  }
}

std::shared_ptr<const Scene> two_bars(const std::string& method, const std::string& more = "") {
  return scene_from(R"({"limber": 1, "name": "bar", "time": {"step": 0.002, "end": 1}, "method": )" + method +
                    R"(,
    "bodies": [{"name": "a", "mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [5, 3, 3]}, "material": {"young": 5e4}},
               {"name": "b", "mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [4, 2, 2]},
                "translation": [0, 0.2, 0], "material": {"young": 5e4}}],
    "constraints": [{"body": "a", "nodes": {"set": "x0"}}, {"body": "b", "nodes": {"set": "x0"}}],
    "obstacles": [{"name": "floor", "shape": "plane", "point": [0, -0.005, 0], "normal": [0, 1, 0]}])" +
                    more + "}");
}

// Checkpoints hold the topology: nothing is replayed, and cuts upon cuts come out the same.
TEST(Topology, ACheckpointAfterCutsIsComplete) {
  const std::string cuts = R"(, "events": [
     {"body": "a", "time": 0.004, "point": [0.1, 0, 0], "normal": [1, 0, 0]},
     {"body": "a", "time": 0.008, "point": [0, 0.025, 0], "normal": [0, 1, 0]},
     {"body": "b", "time": 0.008, "point": [0.1, 0, 0], "normal": [1, 0, 0]}])";
  for (const std::string method :
       {R"({"type": "vanilla"})",
        R"({"type": "conjac", "dynamic": {"auto": 3, "body": "a"}, "adaptive": {}})",
        R"({"type": "implicit", "body_contact": true})"}) {
    const auto scene = two_bars(method, cuts);
    Simulation whole(scene);
    for (int k = 0; k < 10; ++k) whole.step();
    ASSERT_EQ(whole.state().epoch, 3);
    for (const int stop : {3, 5, 7}) {
      Simulation before(scene), after(scene);
      for (int k = 0; k < stop; ++k) before.step();
      after.restore(through_a_file(before.state(), scene->method));
      EXPECT_EQ(after.model().nodes(), before.model().nodes());
      EXPECT_EQ(after.model().mesh.elements, before.model().mesh.elements);
      EXPECT_EQ(after.model().node_sets, before.model().node_sets);
      EXPECT_EQ(after.model().mass, before.model().mass);
      for (int k = stop; k < 10; ++k) after.step();
      EXPECT_EQ(hash_state(after.state()), hash_state(whole.state())) << method << " stopped at " << stop;
    }
  }
}

TEST(Topology, OneThatDoesNotFitIsRefused) {
  const auto scene =
      two_bars(R"({"type": "vanilla"})",
               R"(, "events": [{"body": "a", "time": 0, "point": [0.1, 0, 0], "normal": [1, 0, 0]}])");
  Simulation sim(scene);
  sim.step();
  const State good = sim.state();
  ASSERT_TRUE(good.topology);
  const std::pair<const char*, std::function<void(Topology&)>> wrong[] = {
      {"names node", [](Topology& t) { t.elements[0][1] = 100000; }},
      {"names node", [](Topology& t) { t.elements[0][3] = -1; }},
      {"as a source", [](Topology& t) { t.nodes.from[3] = -2; }},
      {"sum to", [](Topology& t) { t.nodes.weight[3] = 0.5; }},
      {"rows", [](Topology& t) { t.rest.pop_back(); }},
      {"not finite", [](Topology& t) { t.rest[2].x() = std::nan(""); }},
      {"another body",
       [](Topology& t) {
         t.elements[0][0] = static_cast<Index>(t.rest.size()) - 9;
         t.nodes.from[t.rest.size() - 9] = 50;
       }},
      {"later body",
       [](Topology& t) {
         std::swap(t.element_values.from.front(), t.element_values.from.back());
         std::swap(t.elements.front(), t.elements.back());
       }},
  };
  for (const auto& [expected, spoil] : wrong) {
    State bad = good;
    auto topology = std::make_shared<Topology>(*good.topology);
    spoil(*topology);
    bad.topology = topology;
    try {
      sim.restore(through_a_file(bad, "vanilla"));
      ADD_FAILURE() << expected << ": accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInput);
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
  }
  State lost = good;
  lost.topology = nullptr;
  EXPECT_THROW(sim.restore(lost), Error);
  EXPECT_NO_THROW(sim.restore(good)) << "a state that was refused has changed nothing";
}

// vanilla, which before every second step splits an element at its centre into four.
class Splitting final : public Stepper {
 public:
  explicit Splitting(const Model& model) : vanilla_(vanilla_method.make(model, {{"beta", 1.0}}, {})) {}
  StepReport step(const Model& model, State& state, const StepInput& in) override {
    return vanilla_->step(model, state, in);
  }

  std::optional<TopologyChange> change(const Model& model, const State& state) override {
    if (state.step % 2 == 0 || state.step > 5) return std::nullopt;
    TopologyChange out;
    out.what = "split";
    out.rest = model.mesh.rest;
    for (Index i = 0; i < model.nodes(); ++i) out.nodes.add_copy(i);
    const Index split = 7;
    const Tet t = model.mesh.elements[split];
    std::vector<std::pair<Index, double>> corners;
    Vec3 center = Vec3::Zero();
    for (const Index i : t) {
      corners.emplace_back(i, 0.25);
      center += 0.25 * model.mesh.rest[static_cast<std::size_t>(i)];
    }
    out.nodes.add(corners);
    out.rest.push_back(center);
    for (Index e = 0; e < static_cast<Index>(model.mesh.elements.size()); ++e) {
      for (std::size_t c = 0; c < (e == split ? 4u : 1u); ++c) {
        Tet part = model.mesh.elements[static_cast<std::size_t>(e)];
        if (e == split) part[c] = model.nodes();
        out.elements.push_back(part);
        out.element_values.add_copy(e);
      }
    }
    return out;
  }

 private:
  std::unique_ptr<Stepper> vanilla_;
};

constinit const Method splitting_method{
    .spec = {.name = "test-splitting", .summary = "splits elements", .entries = {}},
    .make = [](const Model& model, const nlohmann::json&, const Preparation&) -> std::unique_ptr<Stepper> {
      return std::make_unique<Splitting>(model);
    }};

// x, v and an own number, expanded only when somebody looks.
struct Fall {
  double speed = 0, way = 0;
  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("speed", m.speed);
    visitor("way", m.way);
  }
};
int expanded = 0;
class Falling final : public Stepper {
 public:
  StepReport step(const Model&, State& state, const StepInput& in) override {
    StepReport report;
    Fall& fall = memory_of<Fall>(state);
    if (state.step == 50) {
      report.status = StepStatus::kFailed;
      report.why = "it is enough";
      return report;
    }
    fall.speed += in.h * in.gravity.y();
    fall.way += in.h * fall.speed;
    report.energy["kinetic"] = 0.5 * fall.speed * fall.speed;
    return report;
  }
  bool reduced() const override { return true; }
  void expand(const Model& model, State& state) const override {
    ++expanded;
    const Fall& fall = memory_of<Fall>(state);
    for (Index i = 0; i < model.nodes(); ++i) {
      node(state.x, i) = model.mesh.rest[static_cast<std::size_t>(i)] + Vec3(0, fall.way, 0);
      node(state.v, i) = Vec3(0, fall.speed, 0);
    }
  }
};
constinit const Method falling_method{
    .spec = {.name = "test-falling", .summary = "falls", .entries = {}},
    .make = [](const Model&, const nlohmann::json&, const Preparation&) -> std::unique_ptr<Stepper> {
      return std::make_unique<Falling>();
    },
    .memory = [] { return MethodMemory::of(Fall{}, 0); }};

void register_once();  // below

TEST(Topology, AMethodMayRemesh) {
  register_once();
  const auto scene = two_bars(R"({"type": "test-splitting"})");
  Simulation whole(scene), first(scene);
  const double mass = whole.model().mass.sum();
  const Index nodes = whole.model().nodes();
  const std::size_t elements = whole.model().mesh.elements.size();
  for (int k = 0; k < 2; ++k) whole.step();
  const Vec3 before = measure(whole.model(), whole.state(), {}).center_of_mass;
  for (int k = 0; k < 6; ++k) whole.step();
  EXPECT_EQ(whole.state().epoch, 3);
  EXPECT_EQ(whole.model().nodes(), nodes + 3);
  EXPECT_EQ(whole.model().mesh.elements.size(), elements + 9);
  EXPECT_NEAR(whole.model().mass.sum(), mass, 1e-12 * mass);
  EXPECT_LT(measure(whole.model(), whole.state(), {}).center_of_mass.y(), before.y());
  EXPECT_EQ(whole.model().bodies[1].elements.size(), 3 * 1 * 1 * 6) << "ranges of later bodies have moved on";
  for (const int stop : {1, 2, 4, 7}) {
    Simulation one(scene), two(scene);
    for (int k = 0; k < stop; ++k) one.step();
    two.restore(through_a_file(one.state(), scene->method));
    for (int k = stop; k < 8; ++k) two.step();
    EXPECT_EQ(hash_state(two.state()), hash_state(whole.state())) << "stopped at " << stop;
  }
}

// The recording has a topology where one is shown first, not one for every change.
TEST(Topology, IsRecordedWhereItChanged) {
  register_once();
  auto scene = std::make_shared<Scene>(*two_bars(R"({"type": "test-splitting"})"));
  scene->output.every = 4;
  scene->output.checkpoint_every = 6;
  scene->output.vtu = false;
  const fs::path folder = fs::temp_directory_path() / (std::to_string(::getpid()) + "_limber_topology_run");
  fs::remove_all(folder);
  const auto run_to = [&](std::int64_t end, bool resume) {
    RunFolderRequest request;
    request.folder = folder;
    request.resume = resume;
    RunFolder run_folder(*scene, request);
    Simulation sim(scene);
    if (run_folder.start()) sim.restore(run_folder.start()->state);
    Recorder recorder(run_folder, sim);
    recorder.begin();
    while (sim.steps_done() < end) recorder.record(sim.step(), 0);
    recorder.finish(end == 12 ? "finished" : "interrupted");
  };
  run_to(7, false);
  run_to(12, true);
  const ReplayReader reader(folder / "replay.lmr");
  ASSERT_EQ(reader.frame_count(), 4);  // steps 0, 4, 8, 12
  EXPECT_EQ(reader.topology_count(), 3) << "of epochs 0, 2 and 3";
  const Index expected[] = {0, 1, 2, 2};
  for (Index f = 0; f < 4; ++f) {
    EXPECT_EQ(reader.frame_topology(f), expected[f]);
    EXPECT_EQ(static_cast<Index>(reader.frame(f).x.size()), 3 * reader.topology(expected[f]).node_count());
  }
  fs::remove_all(folder);
}

TEST(OuterLoop, NodesOfAReducedMethodMoveWhenSomebodyLooks) {
  register_once();
  const auto scene = two_bars(R"({"type": "test-falling"})");
  Simulation seldom(scene), often(scene);
  expanded = 0;
  for (int k = 0; k < 40; ++k) seldom.step();
  EXPECT_EQ(expanded, 0);
  EXPECT_EQ(seldom.steps_done(), 40);
  for (int k = 0; k < 40; ++k) {
    often.step();
    (void)often.state();
  }
  EXPECT_EQ(expanded, 40);
  EXPECT_EQ(hash_state(seldom.state()), hash_state(often.state()));
  EXPECT_EQ(expanded, 41);
  EXPECT_LT(measure(seldom.model(), seldom.state(), {}).momentum.y(), 0);
  for (int k = 40; k < 50; ++k) seldom.step();
  const std::uint64_t last = hash_state(seldom.state());
  EXPECT_THROW(seldom.step(), Error);
  EXPECT_EQ(hash_state(seldom.state()), last);
}

TEST(OuterLoop, RowsBetweenMeasurementsHaveWhatTheMethodKnows) {
  register_once();
  auto scene = std::make_shared<Scene>(*two_bars(R"({"type": "test-falling"})"));
  scene->output.every = 5;
  scene->output.vtu = false;
  const fs::path folder = fs::temp_directory_path() / (std::to_string(::getpid()) + "_limber_rows_run");
  fs::remove_all(folder);
  {
    RunFolderRequest request;
    request.folder = folder;
    RunFolder run_folder(*scene, request);
    Simulation sim(scene);
    Recorder recorder(run_folder, sim);
    recorder.begin();
    expanded = 0;
    for (int k = 0; k < 10; ++k) recorder.record(sim.step(), 0);
    EXPECT_EQ(expanded, 2);
  }
  std::ifstream file(folder / "steps.csv");
  std::string line;
  std::vector<std::vector<std::string>> rows;
  while (std::getline(file, line)) {
    std::vector<std::string> cells{""};
    for (const char c : line) {
      if (c == ',')
        cells.emplace_back();
      else
        cells.back() += c;
    }
    rows.push_back(cells);
  }
  ASSERT_EQ(rows.size(), 12u);
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), name) - rows[0].begin());
  };
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const bool measured = (r - 1) % 5 == 0;
    EXPECT_EQ(rows[r][column("hash")].empty(), !measured) << r;
    EXPECT_EQ(rows[r][column("E_el")].empty(), !measured) << r;
    EXPECT_FALSE(rows[r][column("E_kin")].empty()) << r;
  }
  fs::remove_all(folder);
}

// Moves everything, then fails in one way or another.
class Spoiling final : public Stepper {
 public:
  StepReport step(const Model&, State& state, const StepInput&) override {
    StepReport report;
    state.x.array() += 0.01;
    state.v.setOnes();
    memory_of<Fall>(state).way += 1;
    if (state.step == 2) throw Error(ErrorKind::kSimulation, "thrown");
    if (state.step == 3) report.status = StepStatus::kFailed;
    if (state.step == 4) state.v[5] = std::nan("");
    if (state.step == 5) state.x[7] = 1e9;
    if (state.step == 6) state.v[5] = INFINITY;
    return report;
  }
};
constinit const Method spoiling_method{
    .spec = {.name = "test-spoiling", .summary = "fails", .entries = {}, .can = {.cuts = false}},
    .make = [](const Model&, const nlohmann::json&, const Preparation&) -> std::unique_ptr<Stepper> {
      return std::make_unique<Spoiling>();
    },
    .memory = [] { return MethodMemory::of(Fall{}, 0); }};

TEST(OuterLoop, AStepThatFailsChangesNothing) {
  register_once();
  const auto scene = two_bars(R"({"type": "test-spoiling"})");
  const std::pair<int, const char*> failures[] = {
      {2, "thrown"}, {3, "failed"}, {4, "not finite"}, {5, "blown up"}, {6, "not finite"}};
  for (const auto& [step, expected] : failures) {
    Simulation sim(scene);
    State state = sim.state();
    state.step = step;
    state.t = step * scene->h;
    sim.restore(state);
    const std::uint64_t before = hash_state(sim.state());
    try {
      sim.step();
      ADD_FAILURE() << "step " << step << " did not fail";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kSimulation);
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
    EXPECT_EQ(hash_state(sim.state()), before) << step;
  }
  Simulation good(scene);
  good.step();
  EXPECT_EQ(good.steps_done(), 1);
  EXPECT_NE(hash_state(good.state()), hash_state(Simulation(scene).state()));
}

TEST(Topology, AMethodThatCannotCutIsNotAskedTo) {
  register_once();
  try {
    two_bars(R"({"type": "test-spoiling"})", R"(, "events": [{"body": "a", "time": 0.1}])");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("\"test-spoiling\" does not cut"), std::string::npos) << e.what();
  }
}

// The script that only writes what changes says the same as one that starts anew in every step.
TEST(OuterLoop, TheScriptIsTheSameWhetherItRemembersOrNot) {
  const auto scene = scene_from(R"({"limber": 1, "time": {"step": 0.01, "end": 1},
    "bodies": [{"mesh": {"shape": "rectangle", "size": [1, 1], "nodes": [4, 4]}}],
    "activations": [{"name": "a", "keys": [[0, 0], [0.5, 0.5]]}],
    "constraints": [{"nodes": {"set": "x0"}, "until": 0.3},
                    {"nodes": {"set": "y0"}, "from": 0.1, "until": 0.5, "motion": [{"t": 0.1}, {"t": 0.5, "translation": [0, 0.1, 0]}]},
                    {"nodes": {"set": "x1"}, "axes": "y", "from": 0.2}],
    "forces": [{"nodes": {"set": "y1"}, "force": [1, 0, 0], "ramp": 0.2, "until": 0.4},
               {"nodes": {"set": "x1"}, "acceleration": [0, 1, 0], "from": 0.3}]})");
  const Model model = build_model(scene);
  State state = initial_state(model);
  Script script(model);
  for (int k = 0; k < 60; ++k) {
    state.t = 0.01 * k;
    const StepInput& kept = script.at(state, 0.01);
    StepInput fresh;
    script_input(model, state, 0.01, fresh);
    EXPECT_EQ(kept.fixed, fresh.fixed) << k;
    EXPECT_EQ(kept.fixed_velocity, fresh.fixed_velocity) << k;
    EXPECT_EQ(kept.force, fresh.force) << k;
    EXPECT_EQ(kept.activation, fresh.activation) << k;
    state.x += 0.01 * fresh.fixed_velocity;
  }
}

void register_once() {
  static const bool done = [] {
    register_method(splitting_method);
    register_method(falling_method);
    register_method(spoiling_method);
    return true;
  }();
  (void)done;
}

}  // namespace
}  // namespace limber
