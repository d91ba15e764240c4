// Methods as values: their memory in checkpoints, and what of a checkpoint must fit the scene.
#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/methods/conjac/memory.hpp>
#include <limber/methods/implicit/memory.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/checkpoint.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/simulation.hpp>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>

namespace limber {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Scene> falling_bar(const std::string& method) {
  LoadResult loaded = try_read_scene(R"({"limber": 1, "time": {"step": 0.005}, "method": )" + method + R"(,
      "bodies": [{"name": "bar", "mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [5, 3, 3]},
                  "material": {"young": 5e4}}],
      "obstacles": [{"name": "floor", "shape": "plane", "point": [0, 0, 0], "normal": [0, 1, 0]}]})",
                                     "bar.json");
  if (!loaded.problems.empty()) throw Error(ErrorKind::kInput, to_string(loaded.problems[0]));
  return std::make_shared<const Scene>(std::move(loaded.scene));
}

const char* const kAdaptive = R"({"type": "conjac", "dynamic": {"auto": 3}, "adaptive": {}})";
const char* const kBdf2 = R"({"type": "implicit", "integrator": "bdf2", "body_contact": true})";

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput) << e.what();
    return e.what();
  }
  return "";
}

// Through a file, as `--resume` does it.
Checkpoint reread(const State& state, const std::string& method) {
  const fs::path file = fs::temp_directory_path() / (std::to_string(::getpid()) + "_limber_memory_test.lmc");
  Checkpoint c;
  c.state = state;
  c.method = method;
  write_checkpoint(file, c);
  Checkpoint back = read_checkpoint(file);
  fs::remove(file);
  return back;
}

// Arrays that do not fit each other, the model or the method are refused with what is wrong, and are never
// stepped with.
TEST(Memory, InconsistentCheckpointsAreRefusedByName) {
  struct Case {
    const char *method, *name;
    std::function<void(State&)> spoil;
    const char* expected;
  };
  const auto conjac = [](State& s) -> ConJacMemory& { return memory_of<ConJacMemory>(s); };
  const auto implicit = [](State& s) -> ImplicitMemory& { return memory_of<ImplicitMemory>(s); };
  const Case cases[] = {
      {kAdaptive, "conjac", [](State& s) { s.contact_pairs.insert(s.contact_pairs.end(), 8, 0); },
       "contact_pairs"},
      {kAdaptive, "conjac", [](State& s) { s.contact_pairs.push_back(0); }, "contact_pairs"},
      {kAdaptive, "conjac",
       [](State& s) {
         s.contact_pairs = {45, 0};
         s.contact_anchors = {0, 0, 0};
       },
       "node 45"},
      {kAdaptive, "conjac",
       [](State& s) {
         s.contact_pairs = {4, 1};
         s.contact_anchors = {0, 0, 0};
       },
       "obstacle 1"},
      {kAdaptive, "conjac", [](State& s) { s.epoch = std::numeric_limits<std::int64_t>::max(); }, "topology"},
      {kAdaptive, "conjac", [](State& s) { s.epoch = -1; }, "topology"},
      {kAdaptive, "conjac", [](State& s) { s.step = -4; }, "step -4"},
      {kAdaptive, "conjac", [](State& s) { s.t = std::nan(""); }, "t = nan"},
      {kAdaptive, "conjac", [](State& s) { s.x.conservativeResize(30); }, "10 nodes"},
      {kAdaptive, "conjac", [](State& s) { s.v[7] = std::nan(""); }, "not finite"},
      {kAdaptive, "conjac", [](State& s) { s.joint_q = VecX::Zero(2); }, "joint positions"},
      {kAdaptive, "conjac", [](State& s) { s.joint_friction = VecX::Zero(2); }, "joints"},
      {kAdaptive, "conjac", [](State& s) { s.events_done = {5}; }, "event 5"},
      {kAdaptive, "conjac", [=](State& s) { conjac(s).liveliness_window.resize(3); }, "liveliness_window"},
      {kAdaptive, "conjac", [=](State& s) { conjac(s).liveliness_steps = -3; }, "liveliness_steps"},
      {kAdaptive, "conjac", [=](State& s) { conjac(s).region_age.push_back(1); }, "region_age"},
      {kAdaptive, "conjac", [=](State& s) { conjac(s).dynamic.resize(1); }, "dynamic"},
      {kAdaptive, "conjac", [=](State& s) { conjac(s).energy_excess = std::nan(""); }, "energy_excess"},
      {kBdf2, "implicit", [=](State& s) { implicit(s).v_prev.conservativeResize(5); }, "v_prev"},
      {kBdf2, "implicit", [=](State& s) { implicit(s).v_prev.resize(0); }, "v_prev"},
      {kBdf2, "implicit", [=](State& s) { implicit(s).x_prev[2] = std::nan(""); }, "x_prev"},
      {kBdf2, "implicit",
       [=](State& s) {
         implicit(s).coupled_nodes = {1, 2, 3};
       },
       "coupled_nodes"},
      {kBdf2, "implicit",
       [=](State& s) {
         implicit(s).coupled_nodes = {1, 2, 3, 45};
       },
       "node 45"},
      {kBdf2, "implicit", [=](State& s) { implicit(s).factor.x = VecX::Zero(7); }, "factor_x"},
      {kBdf2, "implicit",
       [=](State& s) {
         implicit(s).factor.x = VecX::Zero(135);
         implicit(s).factor.fixed.assign(4, 0);
       },
       "factor_fixed"},
      {kBdf2, "implicit", [=](State& s) { implicit(s).factor.steps = -1; }, "kept factor"},
  };
  for (const Case& c : cases) {
    Simulation sim(falling_bar(c.method));
    for (int k = 0; k < 3; ++k) sim.step();
    State state = sim.state();
    ASSERT_NO_THROW(sim.restore(reread(state, c.name).state));
    c.spoil(state);
    const std::string why = refusal([&] { sim.restore(reread(state, c.name).state); });
    EXPECT_NE(why.find(c.expected), std::string::npos) << c.expected << ": " << why;
  }
}

TEST(Memory, IsWhatTheMethodNeedsToGoOn) {
  for (const char* method : {kAdaptive, kBdf2}) {
    const auto scene = falling_bar(method);
    Simulation whole(scene), first(scene), second(scene);
    for (int k = 0; k < 12; ++k) whole.step();
    for (int k = 0; k < 6; ++k) first.step();
    second.restore(reread(first.state(), scene->method).state);
    for (int k = 0; k < 6; ++k) second.step();
    EXPECT_EQ(hash_state(second.state()), hash_state(whole.state())) << method;
  }
}

// A file with fields of one's own choice, and a right checksum.
std::string file_with(std::uint32_t version, const std::vector<std::pair<std::string, double>>& fields) {
  std::string out = "LIMBERCK";
  const auto put = [&](const auto& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(version);
  put(std::uint32_t{0});
  put(std::uint64_t{7});
  put(std::uint64_t{2});
  out += "{}";
  put(static_cast<std::uint32_t>(fields.size()));
  for (const auto& [name, value] : fields) {
    put(static_cast<std::uint32_t>(name.size()));
    out += name;
    const bool whole = name == "step" || name == "epoch";
    put(std::uint32_t{whole ? 2u : 1u});
    put(std::uint64_t{1});
    if (whole)
      put(static_cast<std::int64_t>(value));
    else
      put(value);
  }
  put(hash_bytes(out));
  return out;
}

TEST(Memory, CheckpointFieldsAreReadByName) {
  // In any order, and with those left out that have a sound default.
  const Checkpoint c =
      parse_checkpoint(file_with(2, {{"v", 4}, {"x", 3}, {"epoch", 1}, {"t", 0.5}, {"step", 9}}), "file");
  EXPECT_EQ(c.state.step, 9);
  EXPECT_EQ(c.state.v[0], 4);
  EXPECT_TRUE(c.state.contact_pairs.empty());
  EXPECT_TRUE(c.state.memory.empty());
  const auto why = [](const std::string& bytes) { return refusal([&] { parse_checkpoint(bytes, "file"); }); };
  EXPECT_NE(why(file_with(2, {{"v", 4}, {"x", 3}, {"epoch", 1}, {"t", 0.5}})).find("\"step\" is missing"),
            std::string::npos);
  EXPECT_NE(why(file_with(2, {{"v", 4}, {"x", 3}, {"epoch", 1}, {"t", 0.5}, {"step", 9}, {"spin", 1}}))
                .find("\"spin\" is not known"),
            std::string::npos);
  EXPECT_NE(why(file_with(2, {{"v", 4}, {"v", 3}})).find("two fields \"v\""), std::string::npos);
  EXPECT_NE(why(file_with(1, {{"t", 0.5}, {"step", 9}})).find("layout 1"), std::string::npos);
  Simulation sim(falling_bar(kAdaptive));
  sim.step();
  EXPECT_NE(refusal([&] { reread(sim.state(), "warp"); }).find("\"warp\""), std::string::npos);
}

// Capabilities are what scenes are checked against.
TEST(Methods, ScenesAreCheckedAgainstWhatAMethodCanDo) {
  const auto problem = [](const std::string& text) {
    const LoadResult loaded = try_read_scene(text, "s.json");
    return loaded.problems.empty() ? std::string() : to_string(loaded.problems[0]);
  };
  const std::string bar = R"("bodies": [{"mesh": {"shape": "bar"}}])";
  const std::string bones =
      R"("bones": [{"name": "b", "head": [0, 0, 0], "tail": [0, 0, 1], "radius": 0.1}], )";
  const std::string links = R"("links": [{"name": "a", "shapes": {"shape": "box", "size": [1, 1, 1]}}])";
  for (const Method* m : methods()) {
    const std::string head = R"({"limber": 1, "method": {"type": ")" + std::string(m->spec.name) + "\"" +
                             (m->spec.name == "conjac" ? R"(, "dynamic": "all")" : "") + "}, " +
                             (m->spec.name == "condense" ? bones : "");
    const std::string alone = problem(head + bar + "}");
    EXPECT_EQ(alone.empty(), m->spec.can.bodies) << m->spec.name << ": " << alone;
    if (m->spec.can.bodies && !m->spec.can.links) {
      const std::string both = problem(head + bar + ", " + links + "}");
      EXPECT_NE(both.find("does not move links"), std::string::npos) << m->spec.name << ": " << both;
    }
    EXPECT_FALSE(capability_names(m->spec.can).empty());
  }
}

struct Counter {
  std::int64_t steps = 0;
  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("steps", m.steps);
  }
};

class Still final : public Stepper {
 public:
  explicit Still(double speed) : speed_(speed) {}
  StepReport step(const Model&, State& state, const StepInput&) override {
    StepReport report;
    report.extra["asked"] = speed_ * static_cast<double>(++memory_of<Counter>(state).steps);
    return report;
  }

 private:
  double speed_;
};

// clang-format off
constexpr Entry kStillEntries[] = {
    {.path = "/method[test-still]/speed", .type = Type::kNumber, .fallback = "2", .range = ranges::above(0), .text = "A number."},
};
// clang-format on

constinit const Method still_method{
    .spec = {.name = "test-still", .summary = "nothing moves", .entries = kStillEntries},
    .make = [](const Model&, const nlohmann::json& options,
               const Preparation& preparation) -> std::unique_ptr<Stepper> {
      preparation.say("standing still", 1);
      return std::make_unique<Still>(options.at("speed").get<double>());
    },
    .memory = [] { return MethodMemory::of(Counter{}, 0); }};

TEST(Methods, AProgramAddsItsOwn) {
  const std::string text = R"({"limber": 1, "method": {"type": "test-still", "speed": 3},
                               "bodies": [{"mesh": {"shape": "bar"}}]})";
  EXPECT_FALSE(try_read_scene(text, "s.json").problems.empty());
  const std::size_t before = methods().size();
  register_method(still_method);
  EXPECT_EQ(methods().size(), before + 1);
  EXPECT_THROW(register_method(still_method), Error);
  LoadResult loaded = try_read_scene(text, "s.json");
  ASSERT_TRUE(loaded.problems.empty()) << to_string(loaded.problems[0]);
  const LoadResult wrong = try_read_scene(R"({"limber": 1, "method": {"type": "test-still", "speed": 0},
                                              "bodies": [{"mesh": {"shape": "bar"}}]})",
                                          "s.json");
  ASSERT_EQ(wrong.problems.size(), 1u);
  EXPECT_NE(json_schema().find("test-still"), std::string::npos);
  double prepared = 0;
  Simulation sim(std::make_shared<const Scene>(std::move(loaded.scene)),
                 {.progress = [&](std::string_view, double share) { prepared = share; }});
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(sim.step().extra.at("asked"), 3);
  const Checkpoint c = reread(sim.state(), "test-still");
  sim.restore(c.state);
  EXPECT_EQ(sim.step().extra.at("asked"), 6);
}

}  // namespace
}  // namespace limber
