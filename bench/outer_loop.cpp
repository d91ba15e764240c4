// What a step costs when the method costs nothing: the outer loop around an empty method, on a body of many
// nodes.
//   bench_outer_loop --nodes 47  a cube with 47 nodes along each edge
// One table: a method that leaves the nodes alone until somebody looks (reduced), one that may move them, and
// both with rows and without. Prints microseconds a step, and beside them the time of one pass over all
// positions.
#include "table.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/recorder.hpp>
#include <limber/sim/simulation.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

using namespace limber;

namespace {

struct Count {
  double steps = 0;
  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("steps", m.steps);
  }
};

class Empty final : public Stepper {
 public:
  explicit Empty(bool reduced) : reduced_(reduced) {}
  StepReport step(const Model&, State& state, const StepInput&) override {
    memory_of<Count>(state).steps += 1;
    return {};
  }
  bool reduced() const override { return reduced_; }

 private:
  bool reduced_;
};

template <bool kReduced>
std::unique_ptr<Stepper> make_empty(const Model&, const nlohmann::json&, const Preparation&) {
  return std::make_unique<Empty>(kReduced);
}

constinit const Method empty_reduced{
    .spec = {.name = "empty-reduced", .summary = "nothing, and the nodes are left alone", .entries = {}},
    .make = make_empty<true>,
    .memory = [] { return MethodMemory::of(Count{}, 0); }};
constinit const Method empty_nodes{
    .spec = {.name = "empty", .summary = "nothing, but the nodes might have moved", .entries = {}},
    .make = make_empty<false>,
    .memory = [] { return MethodMemory::of(Count{}, 0); }};

using Clock = std::chrono::steady_clock;
double micros(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::shared_ptr<const Scene> cube(const std::string& method, int nodes) {
  LoadResult loaded = try_read_scene(
      fmt::format(R"({{"limber": 1, "name": "outer-loop", "time": {{"step": 0.001, "end": 1000}},
        "method": {{"type": "{}"}},
        "bodies": [{{"mesh": {{"shape": "box", "size": [1, 1, 1], "nodes": [{}, {}, {}]}}}}],
        "constraints": [{{"nodes": {{"set": "x0"}}}}],
        "forces": [{{"nodes": {{"set": "x1"}}, "force": [1, 0, 0]}}],
        "output": {{"every": 1000000, "checkpoint_every": 1000000, "vtu": false}}}})",
                  method, nodes, nodes, nodes),
      "outer-loop.json");
  if (!loaded.problems.empty()) throw Error(ErrorKind::kInput, to_string(loaded.problems[0]));
  return std::make_shared<const Scene>(std::move(loaded.scene));
}

// The least of several blocks: what the machine can do when nobody disturbs it.
template <class F>
double least_micros(int blocks, int steps, F&& f) {
  double least = 1e300;
  for (int b = 0; b < blocks; ++b) {
    const auto start = Clock::now();
    for (int k = 0; k < steps; ++k) f();
    least = std::min(least, micros(start) / steps);
  }
  return least;
}

int run(int nodes, const std::string& out) {
  set_threads(1);
  register_method(empty_reduced);
  register_method(empty_nodes);
  Table table{{"method", "nodes", "step us", "step and row us", "one pass over x us"}, {}};
  for (const Method* method : {&empty_reduced, &empty_nodes}) {
    const auto scene = cube(std::string(method->spec.name), nodes);
    Simulation sim(scene);
    const int steps = sim.reduced() ? 2000 : 50, blocks = 5;
    const double bare = least_micros(blocks, steps, [&] { sim.step(); });

    const auto folder = std::filesystem::temp_directory_path() / "limber-bench-outer-loop";
    std::filesystem::remove_all(folder);
    double with_rows = 0;
    {
      RunFolderRequest request;
      request.folder = folder;
      RunFolder run_folder(*scene, request);
      Recorder recorder(run_folder, sim);
      recorder.begin();
      with_rows = least_micros(blocks, sim.reduced() ? steps : 5, [&] { recorder.record(sim.step(), 0); });
    }
    std::filesystem::remove_all(folder);
    double sum = 0;
    const double pass = least_micros(blocks, 20, [&] { sum += sim.state().x.sum(); });
    if (sum == 0.125) fmt::print("\n");  // so that the pass is made
    table.rows.push_back({std::string(method->spec.name), fmt::format("{}", sim.model().nodes()),
                          fmt::format("{:.2f}", bare), fmt::format("{:.1f}", with_rows),
                          fmt::format("{:.0f}", pass)});
  }
  table.write(out, "outer-loop");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The outer loop around an empty method"};
  int nodes = 47;
  std::string out = "out/bench";
  app.add_option("--nodes", nodes, "Nodes along each edge of a cube")->check(CLI::Range(2, 200));
  app.add_option("--out", out, "Folder for outer-loop.csv and outer-loop.md");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(nodes, out);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return e.exit_code();
  }
}
