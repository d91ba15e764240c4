// ConJac on the dragon: what a step costs against VANILLA, the smallest stable beta of both, and how lively
// each is.
//   bench_conjac cost    time per step by phase over the number of dynamic nodes (the paper's Figure 2)
//   bench_conjac search  smallest stable beta in steps of 0.1, with the same projected K for both
//   bench_conjac rest    distance of the resting shapes of hetero, twist and aniso from the full static
//   solution bench_conjac lively  energy and amplitude kept 0.5 s after the release, and the wall-clock
// Writes conjac-<what>.csv and conjac-<what>.md into the folder given by --out, and the Markdown to standard
// output.
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>
#include <limber/sim/static_solve.hpp>

#include "table.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

using namespace limber;

namespace {

constexpr double kRelease = 0.4, kLook = 0.9;  // of the scene [s]

// Where further dynamic nodes of the dragon sit, in the order in which they are added.
const std::vector<Vec3> kNodes = {
    {-.051, .072, .004},  {-.053, .056, .007}, {.020, .058, -.009}, {.050, .050, -.004}, {-.002, .080, -.014},
    {-.030, .030, -.001}, {.035, .030, 0},     {-.045, .040, .010}, {0, .030, 0},        {.010, .045, .010}};

std::shared_ptr<Scene> dragon(const std::vector<std::string>& overrides, int dynamic) {
  auto s = std::make_shared<Scene>(load_scene(LIMBER_SOURCE_DIR "/scenes/conjac/dragon.json", overrides));
  if (dynamic >= 0 && s->method == "conjac") {
    nlohmann::json points = nlohmann::json::array();
    for (int k = 0; k < dynamic; ++k) points.push_back({kNodes[k].x(), kNodes[k].y(), kNodes[k].z()});
    nlohmann::json& nodes = s->method_options["dynamic"] = nlohmann::json::array();
    if (dynamic > 0) nodes.push_back({{"nearest", points}});
  }
  return s;
}

// Fill, Factor, Solve, Other of the paper's Figure 2 from our phases.
std::map<std::string, double> by_column(const StepReport& r) {
  std::map<std::string, double> t;
  for (const auto& [name, seconds] : r.phases) {
    if (name == "analyze" || name == "static_start") continue;
    const std::string column = name == "assemble" ? "fill"
                               : name == "factor" ? "factor"
                               : name == "solve"  ? "solve"
                                                  : "other";
    t[column] += 1e3 * seconds;
  }
  return t;
}

// Runs of all configurations take turns, so that a busy moment of the machine hits them alike; the minimum
// over the rounds of each phase counts, and the median of whole steps. From `begin` on: while the dragon is
// pulled, held nodes move and impose a motion of their own, which is one right-hand side more; afterwards
// nodes that were held are dynamic. `only`: runs whose names contain one of these; none: all.
void cost(const std::string& out, int rounds, const std::string& name, double begin,
          const std::vector<std::string>& only) {
  struct Config {
    std::string name;
    std::unique_ptr<Simulation> sim;
    std::map<std::string, double> best;
    std::vector<double> totals;
  };
  std::vector<Config> configs;
  const auto wanted = [&](const std::string& name) {
    return only.empty() || name == "vanilla" || std::any_of(only.begin(), only.end(), [&](const auto& part) {
             return name.find(part) != std::string::npos;
           });
  };
  auto add = [&](const std::string& name, const std::vector<std::string>& o, int dynamic) {
    if (wanted(name)) configs.push_back({name, std::make_unique<Simulation>(dragon(o, dynamic)), {}, {}});
  };
  // Any beta costs the same; these are stable.
  add("vanilla", {"/method={\"type\": \"vanilla\", \"beta\": 2.0}"}, -1);
  for (int n : {0, 2, 4, 6, 8, 10})
    add(fmt::format("conjac {}", n), {"/method/time_rule=linear-implicit", "/method/beta=1.0"}, n);
  for (int n : {0, 4, 6, 10}) add(fmt::format("conjac {} guarded", n), {}, n);
  add("conjac 6 modes guarded", {R"(/method/dynamic=[{"modes": 6}])"}, -1);
  add("conjac 6 modes guarded, single precision",
      {R"(/method/dynamic=[{"modes": 6}])", "/method/precision=single"}, -1);
  for (Config& c : configs)
    while (c.sim->state().t < begin) c.sim->step();
  for (int round = 0; round < rounds; ++round)
    for (Config& c : configs) {
      const auto t = by_column(c.sim->step());
      double total = 0;
      for (const auto& [name, ms] : t) total += ms;
      if (round < 2) continue;  // the first steps touch memory for the first time
      for (const auto& [name, ms] : t) {
        const auto [it, fresh] = c.best.emplace(name, ms);
        if (!fresh) it->second = std::min(it->second, ms);
      }
      c.totals.push_back(total);
    }
  // What a step cannot do without: assembly, factor and one solve of the same matrix, with nothing around
  // them.
  const Model& model = configs[0].sim->model();
  const VecX& x = configs[0].sim->state().x;
  for (const char* backend : {"native", "cholmod"}) {
    Config bare{std::string("bare ") + backend, nullptr, {}, {}};
    if (!wanted(bare.name)) continue;
    try {
      Cholesky solver({backend, "auto"});
      solver.analyze(*model.pattern);
      fem::Assembled system;
      VecX b = VecX::Ones(3 * model.nodes());
      auto timed = [&](const char* name, auto&& work) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        const double ms =
            1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        const auto [it, fresh] = bare.best.emplace(name, ms);
        if (!fresh) it->second = std::min(it->second, ms);
      };
      bool ok = true;
      for (int round = 0; round < rounds; ++round) {
        timed("fill", [&] { fem::assemble(*model.elements, x, {}, system); });
        for (Index j = 0; j < model.nodes(); ++j)
          system.K.block(model.pattern->col_begin[j]).diagonal().array() +=
              1e4 * model.mass[3 * j] / (5e-3 * 5e-3);
        timed("factor", [&] { ok = ok && solver.factor(system.K).ok; });
        timed("solve", [&] { solver.solve(b); });
      }
      if (ok) configs.push_back(std::move(bare));
    } catch (const Error&) {
      continue;  // built without this back end
    }
  }
  const auto median = [](std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  };
  Table table{{"run", "fill ms", "factor ms", "solve ms", "other ms", "step ms", "against vanilla",
               "median step ms", "against vanilla"},
              {}};
  for (const Config& c : configs) {
    std::vector<std::string> row{c.name};
    double sum = 0, reference = 0;
    for (const char* k : {"fill", "factor", "solve", "other"}) {
      const double ms = c.best.count(k) ? c.best.at(k) : 0;
      sum += ms;
      row.push_back(fmt::format("{:.1f}", ms));
    }
    for (const auto& [k, ms] : configs[0].best) reference += ms;
    row.push_back(fmt::format("{:.1f}", sum));
    row.push_back(fmt::format("{:+.0f} %", 100 * (sum / reference - 1)));
    if (!c.totals.empty()) {
      row.push_back(fmt::format("{:.1f}", median(c.totals)));
      row.push_back(fmt::format("{:+.0f} %", 100 * (median(c.totals) / median(configs[0].totals) - 1)));
    } else {
      row.insert(row.end(), 2, "");
    }
    table.rows.push_back(row);
  }
  table.write(out, "conjac-cost-" + name);
}

// The same scene with damping until nothing moves, against Newton's method on the full system.
void rest(const std::string& out) {
  Table table{{"scene", "nodes", "steps", "largest distance from the static shape / size"}, {}};
  for (const char* name :
       {"hetero", "twist", "aniso-vertical", "aniso-horizontal", "aniso-diagonal", "aniso-helical"}) {
    const std::string path = std::string(LIMBER_SOURCE_DIR "/scenes/conjac/") + name + ".json";
    std::vector<std::string> overrides{"/damping/mass=25", "/time/end=100"};
    const bool twist = std::string(name) == "twist";
    if (twist)
      overrides.push_back(
          "/constraints/1/motion=[{\"t\": 0}, {\"t\": 0.5, \"rotation\": [0, 0, 1.5], \"translation\": "
          "[0.02, 0, -0.01]}]");
    auto scene = std::make_shared<Scene>(load_scene(path, overrides));
    Simulation sim(scene);
    double speed = 1;
    while ((speed > 1e-9 || sim.state().t < 1) && sim.state().step < 3000) {
      sim.step();
      speed = measure(sim.model(), sim.state(), {}).max_speed;
    }
    StepInput in;
    script_input(sim.model(), sim.state(), scene->h, in);
    VecX x = sim.state().x;
    for (Eigen::Index d = 0; d < x.size(); ++d)
      if (!in.fixed[static_cast<std::size_t>(d)])
        x[d] += 1e-4 * std::sin(static_cast<double>(d));  // so that Newton has to find it
    const StaticResult r = solve_static(sim.model(), in, x, 1e-12);
    if (!r.converged) fmt::print(stderr, "{}: {}\n", name, r.why);
    table.rows.push_back(
        {name, std::to_string(sim.model().nodes()), std::to_string(sim.state().step),
         fmt::format("{:.1e}", (x - sim.state().x).cwiseAbs().maxCoeff() / sim.model().size)});
    fmt::print(stderr, "{}: {} steps, {}\n", name, sim.state().step, table.rows.back().back());
  }
  table.write(out, "conjac-rest");
}

struct Run {
  bool stable = true;
  std::string why;
  double held = 0;       // elastic energy at the release over that of the resting body [J]
  double left = 0;       // energy above rest at kLook, over that at the release
  double amplitude = 0;  // half the range of the lower jaw's height from 0.3 s to 0.6 s after the release [m]
  double seconds = 0;    // wall-clock of the steps
  int fallbacks = 0;
};

// Stable: all numbers finite; energy after the release never more than 1.5 times the energy held; it does not
// grow in the last 0.2 s; no element is inverted in the last 0.2 s.
Run run(const std::vector<std::string>& overrides, int dynamic, double rest_energy) {
  Run r;
  Simulation sim(dragon(overrides, dynamic));
  Index jaw = 0;
  for (Index i = 0; i < sim.model().nodes(); ++i)
    if ((sim.model().mesh.rest[i] - kNodes[1]).norm() < (sim.model().mesh.rest[jaw] - kNodes[1]).norm())
      jaw = i;
  double low = 1e300, high = -1e300, late_min = 1e300, late_max = 0;
  try {
    while (!sim.done()) {
      const auto begin = std::chrono::steady_clock::now();
      const StepReport report = sim.step();
      r.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      for (const auto& f : report.fallbacks) r.fallbacks += f.second;
      const double t = sim.state().t;
      const double e = measure(sim.model(), sim.state(), {}).total() - rest_energy;
      if (t < kRelease + 1e-9) r.held = e;
      if (std::abs(t - kLook) < 1e-9) r.left = e / r.held;
      if (t > kRelease + 1e-9 && e > 1.5 * r.held) {
        r.stable = false;
        r.why = fmt::format("energy {:.1f} times what was held at t = {:.3f}", e / r.held, t);
        return r;
      }
      if (t > .7 && t < 1.0 + 1e-9) {
        low = std::min(low, sim.state().x[3 * jaw + 1]);
        high = std::max(high, sim.state().x[3 * jaw + 1]);
      }
      if (t > .8) {
        if (report.inverted > 0) {
          r.stable = false;
          r.why = fmt::format("{} inverted elements at t = {:.3f}", report.inverted, t);
        }
        late_min = std::min(late_min, e);
        late_max = std::max(late_max, e - late_min);
      }
    }
  } catch (const std::exception& e) {
    r.stable = false;
    r.why = e.what();
    return r;
  }
  if (late_max > .05 * r.held) {
    r.stable = false;
    r.why = "energy grows late";
  }
  r.amplitude = .5 * (high - low);
  return r;
}

// Total energy of the dragon at rest under gravity.
double rest_energy() {
  Simulation sim(
      dragon({"/method={\"type\": \"static\"}", "/constraints/1/until=1e-9", "/constraints/2/until=1e-9",
              "/constraints/3/until=1e-9", "/constraints/4/until=1e-9"},
             -1));
  sim.step();
  sim.step();
  return measure(sim.model(), sim.state(), {}).total();
}

std::string beta_option(double beta) { return fmt::format("{:.1f}", beta); }

double smallest_beta(bool conjac, int dynamic, double rest, Table& table) {
  for (double beta = .1; beta < 6.05; beta += .1) {
    const auto o = conjac ? std::vector<std::string>{"/method/time_rule=linear-implicit",
                                                     "/method/beta=" + beta_option(beta)}
                          : std::vector<std::string>{
                                "/method={\"type\": \"vanilla\", \"beta\": " + beta_option(beta) + "}"};
    const Run r = run(o, dynamic, rest);
    fmt::print(stderr, "{} beta {:.1f}: {}\n", conjac ? "conjac" : "vanilla", beta,
               r.stable ? "stable" : r.why);
    if (!r.stable) continue;
    table.rows.push_back({conjac ? fmt::format("conjac, n_d = {}", dynamic) : "vanilla", beta_option(beta),
                          fmt::format("{:.4f}", r.left)});
    return beta;
  }
  table.rows.push_back({conjac ? "conjac" : "vanilla", "none up to 6", ""});
  return 6;
}

void search(const std::string& out) {
  const double rest = rest_energy();
  Table table{{"method (h = 5e-3, projected K)", "smallest stable beta", "energy left 0.5 s after release"},
              {}};
  smallest_beta(false, -1, rest, table);
  for (int n : {2, 6, 10}) smallest_beta(true, n, rest, table);
  table.write(out, "conjac-search");
}

void lively(const std::string& out, double vanilla_beta) {
  const double rest = rest_energy();
  Table table{{"run", "energy left 0.5 s after release", "late amplitude of the jaw, mm", "wall-clock, s",
               "fallbacks"},
              {}};
  auto add = [&](const std::string& name, const std::vector<std::string>& o, int n) {
    const Run r = run(o, n, rest);
    table.rows.push_back({name, r.stable ? fmt::format("{:.4f}", r.left) : "unstable: " + r.why,
                          fmt::format("{:.2f}", 1e3 * r.amplitude), fmt::format("{:.1f}", r.seconds),
                          fmt::format("{}", r.fallbacks)});
    fmt::print(stderr, "{}: {} {:.3f}\n", name, r.stable ? "stable" : r.why, r.left);
  };
  const std::string vanilla = "/method={\"type\": \"vanilla\", \"beta\": ";
  add(fmt::format("vanilla, h = 5e-3, beta {}", vanilla_beta), {vanilla + beta_option(vanilla_beta) + "}"},
      -1);
  add(fmt::format("vanilla, h = 2e-3, beta {}", vanilla_beta),
      {vanilla + beta_option(vanilla_beta) + "}", "/time/step=0.002"}, -1);
  add("vanilla, h = 5e-4, beta 1 (reference)", {vanilla + "1.0}", "/time/step=0.0005"}, -1);
  add("conjac 6, paper's rule, beta 0.5, h = 5e-3", {"/method/time_rule=linear-implicit"}, 6);
  for (int n : {2, 6, 10}) add(fmt::format("conjac {}, default, h = 5e-3", n), {}, n);
  add("conjac 6, default, h = 1e-2", {"/time/step=0.01"}, 6);
  table.write(out, "conjac-lively");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("ConJac against VANILLA on the dragon");
  std::string what, out = "out/bench";
  std::vector<std::string> only;
  int rounds = 25, use_threads = 0;
  double beta = 0.7;
  app.add_option("what", what, "cost, search, rest or lively")
      ->required()
      ->check(CLI::IsMember({"cost", "search", "rest", "lively"}));
  app.add_option("--out", out, "folder for CSV and Markdown");
  app.add_option("--rounds", rounds, "steps per configuration (cost)");
  app.add_option("--only", only, "runs whose names contain one of these (cost; vanilla always runs)");
  app.add_option("--threads", use_threads, "threads; 0: all cores");
  app.add_option("--vanilla-beta", beta,
                 "beta of VANILLA (lively): the smallest stable one that search found");
  CLI11_PARSE(app, argc, argv);
  set_threads(use_threads);
  if (what == "cost") {
    cost(out, rounds, "pulled", 0, only);
    cost(out, rounds, "released", kRelease + .05, only);
  }
  if (what == "search") search(out);
  if (what == "rest") rest(out);
  if (what == "lively") lively(out, beta);
}
