#include "commands.hpp"
#include "gallery.hpp"
#include "preparation.hpp"

#include <limber/core/build_info.hpp>
#include <limber/core/error.hpp>
#include <limber/core/instruction_set.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/scene/suggest.hpp>
#include <limber/sim/advice.hpp>
#include <limber/sim/describe_run.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/simulation.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <memory>

namespace limber {
namespace {

struct SelfTest {
  double seconds = 0, ms_per_step = 0;
  std::uint64_t hash = 0;
};

// A bar that is let go: a second of honest work that goes through scene, mesh, assembly and factorisation.
SelfTest swing_bar(int thread_count) {
  set_threads(thread_count);
  LoadResult loaded = try_read_scene(R"({"limber": 1, "time": {"step": 0.005, "end": 1},
      "bodies": [{"mesh": {"shape": "bar", "size": [0.4, 0.1, 0.1], "nodes": [21, 6, 6]}, "material": {"young": 1e5}}],
      "constraints": [{"nodes": {"set": "x0"}}]})",
                                     "self-test.json");
  if (!loaded.problems.empty()) throw Error(ErrorKind::kSimulation, to_string(loaded.problems[0]));
  Simulation simulation(std::make_shared<const Scene>(std::move(loaded.scene)));
  const auto start = std::chrono::steady_clock::now();
  SelfTest out;
  constexpr int kSteps = 20;
  for (int i = 0; i < kSteps; ++i) simulation.step();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.ms_per_step = 1e3 * out.seconds / kSteps;
  out.hash = hash_state(simulation.state());
  // The free end has begun to fall, by less than free fall would take it.
  const double t = simulation.state().t;
  double lowest = 0;
  for (Index i = 0; i < simulation.model().nodes(); ++i)
    lowest = std::max(lowest, simulation.model().mesh.rest[static_cast<std::size_t>(i)].y() -
                                  node(simulation.state().x, i).y());
  if (!(lowest > 0.2 * 9.81 * t * t / 2) || !(lowest < 1.5 * 9.81 * t * t / 2))
    throw Error(ErrorKind::kSimulation,
                fmt::format("self test: the bar's end fell {} m in {} s; expected about {} m", lowest, t,
                            9.81 * t * t / 2));
  return out;
}

int info(bool json, bool test) {
  const int cores = threads();
  SelfTest one, all;
  if (test) {
    one = swing_bar(1);
    all = swing_bar(cores);
  }
  const Libraries libs = libraries();  // after the test: then everything has been loaded
  const bool same = one.hash == all.hash;
  if (json) {
    nlohmann::ordered_json out{{"limber", version()},
                               {"commit", commit()},
                               {"compiler", compiler()},
                               {"build", build_type()},
                               {"host", host_name()},
                               {"cpu", cpu_name()},
                               {"threads", cores},
                               {"kernels", name(instruction_set())},
                               {"suitesparse", libs.suitesparse},
                               {"eigen", libs.eigen},
                               {"solvers", cholesky_backends()}};
    if (test)
      out["self_test"] = {
          {"ms_per_step_1_thread", one.ms_per_step}, {"ms_per_step", all.ms_per_step}, {"same_bits", same}};
    fmt::print("{}\n", out.dump(2));
  } else {
    fmt::print("limber       {} ({})\n", version(), commit());
    fmt::print("built with   {}, {}\n", compiler(), build_type());
    fmt::print("machine      {}, {}, {} threads\n", host_name(), cpu_name(), cores);
    fmt::print("kernels      {}\n", name(instruction_set()));
    fmt::print("Cholesky     {}\n", joined(cholesky_backends()));
    if (!libs.suitesparse.empty()) fmt::print("SuiteSparse  {}\n", libs.suitesparse);
    fmt::print("Eigen        {}\n", libs.eigen);
    if (test)
      fmt::print("self test    passed: {:.2f} ms a step with 1 thread, {:.2f} ms with {}, {}\n",
                 one.ms_per_step, all.ms_per_step, cores, same ? "the same bits" : "DIFFERENT BITS");
  }
  if (test && !same)
    throw Error(ErrorKind::kSimulation, "self test: results depend on the number of threads");
  return 0;
}

// What the first step of a scene tells: its size, its unknowns, and what its method has to say.
int info_scene(const std::string& file, bool json) {
  const auto scene = std::make_shared<const Scene>(load_scene(scene_path(file)));
  Simulation simulation(scene, user_preparation(!json));
  const Model& model = simulation.model();
  std::vector<std::string> notes = advice(model);
  const StepReport first = simulation.step();
  for (std::string& notice : simulation.take_notices()) notes.push_back(std::move(notice));
  if (json) {
    const nlohmann::ordered_json out{
        {"scene", scene->name},          {"method", scene->method},
        {"nodes", model.nodes()},        {"elements", model.mesh.elements.size()},
        {"pieces", model.pieces.size()}, {"unknowns", first.dofs},
        {"first_step", first.extra},     {"notes", notes}};
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  fmt::print("scene        {} ({})\n", scene->name, file);
  fmt::print("bodies       {} nodes, {} elements, {} piece{}\n", model.nodes(), model.mesh.elements.size(),
             model.pieces.size(), model.pieces.size() == 1 ? "" : "s");
  fmt::print("method       {}, {} unknowns\n", scene->method, first.dofs);
  if (const std::string follows = followed_text(model, first); !follows.empty())
    fmt::print("follows      {}\n", follows);
  fmt::print("first step\n");
  for (const auto& [name, value] : first.extra) fmt::print("  {:<16} {:.6g}\n", name, value);
  for (const std::string& note : notes) fmt::print("  note: {}\n", note);
  return 0;
}

}  // namespace

void add_info_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand(
      "info",
      "Show versions and libraries, and run a short self test; or what the first step of a scene tells");
  auto json = std::make_shared<bool>(false), test = std::make_shared<bool>(true);
  auto scene = std::make_shared<std::string>();
  command->add_option("scene", *scene, "Scene file (JSON)");
  command->add_flag("--json", *json, "Print JSON");
  command->add_flag("!--no-test", *test, "Leave out the self test");
  command->callback([&action, json, test, scene] {
    action = [json, test, scene] { return scene->empty() ? info(*json, *test) : info_scene(*scene, *json); };
  });
}

}  // namespace limber
