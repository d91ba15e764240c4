// ConJac that adapts and touches.
//   bench_adaptive armadillo  adaptive against always dynamic: wall-clock, nodes and difference in motion
//   bench_adaptive modes      the same with twelve modes instead of five nodes
//   bench_adaptive bunny      seeded orientations of the bunny: do they all come to rest, and how deep do
//   they go?
// Writes adaptive-<what>.csv and adaptive-<what>.md into the folder given by --out, and the Markdown to
// standard output.
#include "table.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <Eigen/Geometry>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

using namespace limber;

namespace {

std::shared_ptr<Scene> scene(const std::string& name, const std::vector<std::string>& overrides) {
  return std::make_shared<Scene>(
      load_scene(std::string(LIMBER_SOURCE_DIR "/scenes/conjac/") + name + ".json", overrides));
}

// All runs take turns step by step, so that a busy moment of the machine hits them alike.
void armadillo(const std::string& out, double end, bool modes) {
  struct Run {
    std::string name;
    std::unique_ptr<Simulation> sim;
    double seconds = 0, dynamic = 0, switches = 0;
    double largest = 0, squares = 0;  // distance from the always dynamic run [m], [m^2]
    long analyses = 0;
    std::string series = {};  // the metrics over time
  };
  const std::string until = fmt::format("/time/end={}", end);
  std::vector<Run> runs;
  const auto add = [&](const std::string& name, const std::string& change, const std::string& more = {}) {
    std::vector<std::string> changes{until, change};
    if (!more.empty()) changes.push_back(more);
    runs.push_back({name, std::make_unique<Simulation>(scene("armadillo", changes))});
  };
  if (modes) {
    add("always dynamic", "/method/adaptive=null", R"(/method/dynamic=[{"modes": 12}])");
    add("asleep when calm", "/method/adaptive={}", R"(/method/dynamic=[{"modes": 12}])");
  } else {
    add("always dynamic", "/method/adaptive=null");
    add("threshold 0.02/s", "/method/adaptive/threshold=0.02");
    add("threshold 0.1/s", "/method/adaptive/threshold=0.1");
  }
  add("always quasistatic", "/method/adaptive=null", "/method/dynamic=[]");
  double moved = 0;  // largest displacement of the always dynamic run [m]
  while (!runs[0].sim->done())
    for (Run& r : runs) {
      const bool first = r.sim->state().step == 0;  // analyses, and touches memory for the first time
      const auto begin = std::chrono::steady_clock::now();
      const StepReport report = r.sim->step();
      if (!first)
        r.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      r.dynamic += modes ? (report.extra.count("dynamic_modes") ? report.extra.at("dynamic_modes")
                                                                : static_cast<double>(report.dofs))
                         : report.extra.at("dynamic_nodes");
      r.analyses = report.symbolic_analyses;
      const VecX apart = r.sim->state().x - runs[0].sim->state().x;
      double here = 0;
      for (Index i = 0; i < r.sim->model().nodes(); ++i) here = std::max(here, node(apart, i).norm());
      r.largest = std::max(r.largest, here);
      r.squares += apart.squaredNorm() / r.sim->model().nodes();
      if (&r == &runs[0])
        moved = std::max(moved, measure(r.sim->model(), r.sim->state(), {}).max_displacement);
      if (!report.extra.count("switches")) continue;
      r.switches += report.extra.at("switches");
      std::string row = fmt::format("{}", r.sim->state().t);
      for (const auto& [name, value] : report.extra)
        if (name.starts_with("liveliness/") || name.starts_with("dynamic")) row += fmt::format(",{}", value);
      if (r.series.empty()) {
        r.series = "t";
        for (const auto& extra : report.extra)
          if (extra.first.starts_with("liveliness/") || extra.first.starts_with("dynamic"))
            r.series += "," + extra.first;
        r.series += "\n";
      }
      r.series += row + "\n";
    }
  Table table{{"run", "s of steps", "saved", modes ? "mean dynamic modes" : "mean dynamic nodes", "switches",
               "analyses", "largest difference mm", "RMS difference mm", "energy at the end mJ"},
              {}};
  for (const Run& r : runs) {
    const auto steps = static_cast<double>(r.sim->state().step);
    table.rows.push_back({r.name, fmt::format("{:.2f}", r.seconds),
                          fmt::format("{:.1f} %", 100 * (1 - r.seconds / runs[0].seconds)),
                          fmt::format("{:.2f}", r.dynamic / steps), fmt::format("{}", r.switches),
                          std::to_string(r.analyses), fmt::format("{:.2f}", 1e3 * r.largest),
                          fmt::format("{:.3f}", 1e3 * std::sqrt(r.squares / steps)),
                          fmt::format("{:.4f}", 1e3 * measure(r.sim->model(), r.sim->state(), {}).total())});
  }
  const std::string file = modes ? "adaptive-modes" : "adaptive-armadillo";
  table.write(out, file);
  fmt::print("\nlargest displacement {:.1f} mm, size {:.1f} mm\n", 1e3 * moved,
             1e3 * runs[0].sim->model().size);
  for (const Run& r : runs)
    if (!r.series.empty()) {
      std::string name = r.name;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == ' ' || c == '/'; }, '-');
      std::ofstream(out + "/" + file + "-" + name + ".csv") << r.series;
    }
}

// A uniformly distributed rotation vector [rad].
Vec3 random_rotation(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  double c[4];
  for (double& v : c) v = normal(random);
  Eigen::Quaterniond q(c[3], c[2], c[1], c[0]);
  q.normalize();
  const Eigen::AngleAxisd turn(q);
  return turn.angle() * turn.axis();
}

// At rest: no node faster than 1 mm/s for a tenth of a second. It is then watched for a quarter of a second
// more.
void bunny(const std::string& out, unsigned first, unsigned count, double h, double end,
           const std::string& method) {
  constexpr double kSpeed = 1e-3;  // [m/s]
  constexpr double size = .1;      // the bunny's longest side [m]
  Table table{
      {"seed", "rest after s", "largest penetration / size", "largest energy gain / fall", "bounce mm",
       "drift after mm", "speed after mm/s", "iterations per step", "unsettled", "warnings"},
      {}};
  int rested = 0;
  double deepest = 0;
  for (unsigned seed = first; seed < first + count; ++seed) {
    std::vector<std::string> change{fmt::format("/time/step={}", h)};
    if (!method.empty()) change.push_back("/method=" + method);
    auto s = scene("bunny", change);
    s->bodies[0].rotation = random_rotation(seed);
    Simulation sim(s);
    Diagnostics d = measure(sim.model(), sim.state(), {});
    double least = d.total(), gain = 0, depth = 0, calm = 0, low = d.center_of_mass.y(), bounce = 0;
    const double start = d.gravity;
    double lowest = start, iterations = 0;
    int unsettled = 0, warnings = 0;
    bool at_rest = false;
    while (sim.state().t < end && !at_rest) {
      const StepReport r = sim.step();
      d = measure(sim.model(), sim.state(), {});
      gain = std::max(gain, d.total() - least);
      least = std::min(least, d.total());
      lowest = std::min(lowest, d.gravity);
      depth = std::max(depth, r.extra.at("contact_depth"));
      iterations += r.iterations;
      unsettled += r.fallbacks.count("contacts_unsettled") ? 1 : 0;
      warnings += static_cast<int>(r.warnings.size());
      low = std::min(low, d.center_of_mass.y());
      bounce = std::max(bounce, d.center_of_mass.y() - low);
      calm = d.max_speed < kSpeed ? calm + h : 0;
      at_rest = calm > .1;
    }
    const double steps = static_cast<double>(sim.state().step), t = sim.state().t - calm;
    const VecX x = sim.state().x;
    double speed = 0;
    for (double more = 0; at_rest && more < .25; more += h) {
      sim.step();
      speed = std::max(speed, measure(sim.model(), sim.state(), {}).max_speed);
    }
    const double drift = (sim.state().x - x).cwiseAbs().maxCoeff();
    rested += at_rest && speed < kSpeed;
    deepest = std::max(deepest, depth / size);
    table.rows.push_back({std::to_string(seed), at_rest ? fmt::format("{:.2f}", t) : "not",
                          fmt::format("{:.4f}", depth / size), fmt::format("{:.1e}", gain / (start - lowest)),
                          fmt::format("{:.1f}", 1e3 * bounce), fmt::format("{:.4f}", 1e3 * drift),
                          fmt::format("{:.3f}", 1e3 * speed), fmt::format("{:.2f}", iterations / steps),
                          std::to_string(unsettled), std::to_string(warnings)});
    fmt::print(stderr, "{}\n", joined(table.rows.back(), " "));
  }
  table.write(out, "adaptive-bunny");
  fmt::print("\n{} of {} came to rest; largest penetration {:.2f} % of the size\n", rested, count,
             100 * deepest);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("ConJac that adapts and touches");
  std::string what, out = "out/bench", method;
  double end = 0, h = 5e-3;
  unsigned first = 1, count = 20;
  int threads = 0;
  app.add_option("what", what, "armadillo, modes or bunny")
      ->required()
      ->check(CLI::IsMember({"armadillo", "modes", "bunny"}));
  app.add_option("--out", out, "Folder for the tables");
  app.add_option("--end", end, "Time to run [s]; armadillo and modes: 6, bunny: 5 at most");
  app.add_option("--step", h, "bunny: time step [s]");
  app.add_option("--first", first, "bunny: first seed");
  app.add_option("--count", count, "bunny: how many orientations");
  app.add_option("--method", method, "bunny: another /method, as JSON");
  app.add_option("--threads", threads, "Threads; 0: all");
  CLI11_PARSE(app, argc, argv);
  set_threads(threads);
  try {
    if (what != "bunny")
      armadillo(out, end > 0 ? end : 6, what == "modes");
    else
      bunny(out, first, count, h, end > 0 ? end : 5, method);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
  return 0;
}
