#include "commands.hpp"
#include "gallery.hpp"
#include "numbers.hpp"
#include "preparation.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/advice.hpp>
#include <limber/sim/simulation.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

namespace limber {
namespace {

struct CheckOptions {
  std::vector<std::string> scenes, overrides;
  bool run = false;
  int threads = 0;
};

void describe(const Scene& scene, const Model& model) {
  double mass = 0;
  for (Index i = 0; i < model.nodes(); ++i) mass += model.mass[3 * static_cast<Eigen::Index>(i)];
  std::size_t held = 0;
  for (const Hold& hold : model.holds) held += hold.nodes.size();
  fmt::print("{}: good\n", scene.file);
  fmt::print("  {} {}, {} nodes, {} elements, {:.4g} kg, {} held nodes\n", model.bodies.size(),
             model.bodies.size() == 1 ? "body" : "bodies", model.nodes(), model.mesh.elements.size(), mass,
             held);
  fmt::print("  {} for {:.6g} s in steps of {:.6g} s\n", scene.method, scene.end, scene.h);
}

// Runs the scene and compares with its "tests". Returns the number of expectations that do not hold.
int run_tests(Simulation& simulation) {
  const nlohmann::json& tests = *simulation.scene().tests;
  const std::int64_t steps = tests.value("steps", simulation.total_steps());
  double first_energy = 0, largest_energy = 0, drift = 0;
  std::int64_t fallbacks = 0, inverted = 0;
  Diagnostics d;
  const auto watch = [&](const StepInput& input) {
    d = simulation.measured(input.activation);
    largest_energy = std::max(largest_energy, d.kinetic + d.elastic);
    drift = std::max(drift, std::abs(d.total() - first_energy));
  };
  StepInput input;
  script_input(simulation.model(), simulation.state(), simulation.scene().h, input);
  first_energy = simulation.measured(input.activation).total();
  for (std::int64_t s = 0; s < steps; ++s) {
    const StepReport report = simulation.step();
    for (const auto& fallback : report.fallbacks) fallbacks += fallback.second;
    inverted = std::max<std::int64_t>(inverted, report.inverted);
    watch(simulation.input());
  }
  int wrong = 0;
  const auto say = [&](const char* name, bool good, const std::string& text) {
    fmt::print("  {} {}: {}\n", good ? "ok   " : "WRONG", name, text);
    wrong += !good;
  };
  const auto expect = [&](const char* name, double found) {
    if (!tests.contains(name)) return;
    const double value = tests[name][0], tolerance = tests[name][1];
    say(name, std::abs(found - value) <= tolerance,
        fmt::format("{:.9g}, expected {} +- {}", found, value, tolerance));
  };
  const auto at_most = [&](const char* name, double found) {
    if (!tests.contains(name)) return;
    const double most = tests[name];
    say(name, found <= most, fmt::format("{:.9g}, at most {}", found, most));
  };
  expect("max_displacement", d.max_displacement);
  expect("max_speed", d.max_speed);
  expect("kinetic_energy", d.kinetic);
  expect("elastic_energy", d.elastic);
  at_most("energy_drift", largest_energy > 0 ? drift / largest_energy : 0);
  at_most("fallbacks", static_cast<double>(fallbacks));
  at_most("inverted", static_cast<double>(inverted));
  fmt::print("  {} steps\n", steps);
  return wrong;
}

int check(const CheckOptions& o) {
  set_threads(o.threads);
  std::string problems;
  int wrong = 0;
  for (const std::string& file : o.scenes) {
    try {
      const auto scene = std::make_shared<const Scene>(load_scene(scene_path(file), o.overrides));
      Preparation preparation = user_preparation(o.run);
      preparation.train = o.run;
      std::string prepared;  // what the method says at the end, where it has something to train
      if (!o.run)
        preparation.progress = [&](std::string_view what, double share) {
          if (share == 1) prepared = what;
        };
      Simulation simulation(scene, preparation);
      describe(*scene, simulation.model());
      if (!prepared.empty()) fmt::print("  prepared: {}\n", prepared);
      for (const std::string& line : advice(simulation.model())) fmt::print("  note: {}\n", line);
      for (const std::string& notice : simulation.take_notices()) fmt::print("  note: {}\n", notice);
      if (o.run) wrong += run_tests(simulation);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kIo && o.scenes.size() == 1) throw;
      problems += (problems.empty() ? "" : "\n") + std::string(e.what());
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::kInput, problems);
  if (wrong > 0)
    throw Error(ErrorKind::kSimulation, fmt::format("{} of the scene's own expectations do not hold", wrong));
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command =
      app.add_subcommand("check", "Look for everything that is wrong with a scene, without running it");
  auto o = std::make_shared<CheckOptions>();
  command->add_option("scene", o->scenes, "Scene files (JSON)")->required();
  command->add_option("--set", o->overrides, "Change a value of the scene: /method/beta=0.5")
      ->type_name("POINTER=VALUE");
  command->add_flag("--run", o->run, "Also run it and compare with its \"tests\"");
  command->add_option("--threads", o->threads, "Threads (default: all cores)")
      ->check(whole_number(1, kMostThreads));
  command->callback([&action, o] { action = [o] { return check(*o); }; });
}

}  // namespace limber
