// Liveliness on bars: how much energy is left 1 s after a bar is let go from the static state under a load,
// for ConJac's time rules and for the paper's. The eight load cases are bends and pulls of growing violence.
#include "conjac_bar.hpp"

#include <limber/core/parallel.hpp>
#include <limber/methods/methods.hpp>
#include <limber/sim/simulation.hpp>
#include <limber/sim/static_solve.hpp>

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

using namespace limber;

namespace {

struct Case {
  const char* name;
  double young, poisson;
  Vec3 load;    // in units of E A
  bool corner;  // grabbed at one corner, else at the whole end
};

const std::vector<Case> kCases = {
    {"bend", 1e4, .4, {.015, 0, 0}, false},     {"axial", 1e4, .4, {0, 0, .5}, false},
    {"axial2", 1e4, .4, {0, 0, 1}, false},      {"bend49", 3e4, .49, {.03, 0, 0}, false},
    {"axial49", 3e4, .49, {0, 0, .5}, false},   {"axial49x", 3e4, .49, {0, 0, 1}, false},
    {"corner49", 3e4, .49, {.1, .1, .2}, true}, {"corner49x", 3e4, .49, {.3, .3, .6}, true},
};

std::shared_ptr<Scene> bar_scene(const Case& c, const std::string& method, nlohmann::json options,
                                 int dynamic, double h) {
  auto s = conjac_bar(c.young, c.poisson);
  s->h = h;
  s->end = 1;
  s->method = method;
  *s->method_options = std::move(options);
  ForceSpec pull;
  pull.nodes.kind = c.corner ? "nearest" : "set";
  pull.nodes.name = "z1";
  pull.nodes.points = {Vec3(.04, .04, .14)};
  pull.force = c.load * c.young * .04 * .04;
  pull.until = 0;  // let go before the first step: it only shapes the start
  s->forces.push_back(pull);
  nlohmann::json points = nlohmann::json::array();
  if (dynamic < 8)
    for (int k = 0; k < dynamic; ++k) points.push_back({.02, .02, .14 * (k + 1) / dynamic});
  else
    for (int k = 0; k < dynamic / 4; ++k)
      for (double x : {0., .04})
        for (double y : {0., .04}) points.push_back({x, y, .14 * (k + 1) / (dynamic / 4)});
  if (dynamic > 0) s->method_options["dynamic"] = nlohmann::json::array({{{"nearest", points}}});
  return s;
}

// The static shape under the case's load, found in ten steps of loading.
VecX loaded_shape(const Case& c) {
  const auto scene = bar_scene(c, "vanilla", {{"beta", 1.0}}, 0, 5e-3);
  const Model model = build_model(scene);
  State state = initial_state(model);
  StepInput in;
  script_input(model, state, scene->h, in);
  const ForceSpec& pull = scene->forces[0];
  for (int k = 1; k <= 10; ++k) {
    in.force.setZero();
    for (Index i : model.loads[0].nodes)
      node(in.force, i) = .1 * k * model.mass[3 * i] * pull.force / model.loads[0].mass;
    const StaticResult r = solve_static(model, in, state.x, 1e-7);
    if (!r.converged) fmt::print(stderr, "{}: static solve {} failed: {}\n", c.name, k, r.why);
  }
  return state.x;
}

struct Outcome {
  double left = 0;  // energy after 1 s over energy at release
  double top = 0;   // largest energy over energy at release
  int fallbacks = 0, steps = 0;
  std::string failed;
};

Outcome run(const Case& c, const VecX& start, const std::string& method, const nlohmann::json& options,
            int dynamic, double h) {
  Outcome out;
  Simulation sim(bar_scene(c, method, options, dynamic, h));
  State state = sim.state();
  state.x = start;
  sim.restore(state);
  const double e0 = measure(sim.model(), sim.state(), {}).elastic;
  try {
    while (!sim.done()) {
      const StepReport r = sim.step();
      for (const auto& f : r.fallbacks) out.fallbacks += f.second;
      ++out.steps;
      const Diagnostics d = measure(sim.model(), sim.state(), {});
      out.left = (d.kinetic + d.elastic) / e0;
      out.top = std::max(out.top, out.left);
    }
  } catch (const std::exception& e) {
    out.failed = e.what();
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Energy that eight bars keep after they are let go, by time rule");
  int dynamic = 4;
  std::string wanted;
  app.add_option("dynamic", dynamic, "Dynamic nodes")->check(CLI::Range(0, 1000000));
  app.add_option("--only", wanted, "Only the columns that begin with this");
  CLI11_PARSE(app, argc, argv);
  set_threads(1);
  const nlohmann::json base = {{"beta", .5}, {"gamma", 1. / 3}, {"newton_steps", 2}, {"static_start", false}};
  auto with = [&](const std::string& rule, int newton, double gamma) {
    nlohmann::json o = base;
    o["time_rule"] = rule;
    o["newton_steps"] = newton;
    o["gamma"] = gamma;
    return o;
  };
  struct Column {
    std::string name, method;
    nlohmann::json options;
  };
  std::vector<Column> columns = {
      {"vanilla, beta 0.5", "vanilla", {{"beta", .5}}},
      {"paper, beta 0.5", "conjac", with("linear-implicit", 0, 1. / 3)},
      {"trapezoidal", "conjac", with("trapezoidal", 2, 1. / 3)},
      {"midpoint", "conjac", with("midpoint", 0, 1. / 3)},
      {"guarded", "conjac", with("guarded", 0, 1. / 3)},
      {"guarded, 2 Newton steps", "conjac", with("guarded", 2, 1. / 3)},
  };
  std::erase_if(columns, [&](const Column& k) { return k.name.compare(0, wanted.size(), wanted) != 0; });
  for (double h : {5e-3, 1e-2}) {
    fmt::print("\nn_d = {}, h = {}\n\n| scene |", dynamic, h);
    for (const Column& k : columns) fmt::print(" {} |", k.name);
    fmt::print("\n|---|");
    for (std::size_t k = 0; k < columns.size(); ++k) fmt::print("---|");
    fmt::print("\n");
    for (const Case& c : kCases) {
      const VecX start = loaded_shape(c);
      fmt::print("| {} |", c.name);
      for (const Column& k : columns) {
        const Outcome o = run(c, start, k.method, k.options, dynamic, h);
        if (!o.failed.empty()) {
          fmt::print(" blew up |");
          fmt::print(stderr, "{}, {}: {}\n", c.name, k.name, o.failed);
        } else
          fmt::print(" {:.4f}{}{} |", o.left, o.top > 1.05 ? fmt::format(" (top {:.2f})", o.top) : "",
                     o.fallbacks ? fmt::format(" [{}]", o.fallbacks) : "");
        std::fflush(stdout);
      }
      fmt::print("\n");
    }
  }
}
