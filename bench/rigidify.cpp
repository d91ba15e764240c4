// Adaptive rigidification against the same step with nothing rigid, side by side in one run
// (docs/methods/rigidify.md).
//   table1       the scenes of scenes/rigidify: ratio of the times of all steps and mean of the ratios of
//   steps, with and
//                without contact, the worst stretch of 100 steps, error, rigid share, and where the time goes
//   cantilever   error and ratio against the threshold (Figure 5), in 3D and in the plane
//   beam         what is rigid against threshold, damping, resolution and stiffness (Figure 4)
//   wheels       when and where wheels with other thresholds fall over (Figure 7)
//   predict      error in shape and in energies, and ratio, against how often elements are predicted
#include "table.hpp"
#include "timing.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

using namespace limber;

namespace {

std::string g_folder = "out/bench/rigidify";
bool g_alone = false;    // no full run: for profiles
int g_repeat = 1;        // runs, of each step of which the fastest counts
bool g_thrifty = false;  // the full run saves what can be saved without pieces, too
nlohmann::json g_method = nlohmann::json::object();  // options that every scene gets

std::vector<std::string> g_changes;  // POINTER=VALUE, of every scene

std::shared_ptr<Scene> scene_named(const std::string& name) {
  auto scene = std::make_shared<Scene>(
      load_scene(std::string(LIMBER_SOURCE_DIR) + "/scenes/rigidify/" + name + ".json", g_changes));
  for (const auto& [key, value] : g_method.items()) scene->method_options[key] = value;
  return scene;
}

// Two runs of one scene, adaptive and full.
struct Comparison {
  double adaptive = 0, full = 0;                          // [s], all steps
  double adaptive_without_contact = 0, full_without = 0;  // [s]
  double mean = 0, worst = 1e9;                           // of the ratios of steps; of stretches of 100 steps
  double error = 0, size = 1;                             // [m]
  double converged = 0, full_converged = 0;  // [m], both against a third run: full, with Newton's method
  double rigid = 0;                          // mean share of the elements
  double solves = 0, full_solves = 0;        // mean number of linear systems a step
  std::map<std::string, double> phases;      // of the adaptive run [s]
  // Of 100 steps: first, ratio, rigid %, ms of both, new masks, ms that only the adaptive run takes.
  std::vector<std::vector<std::string>> stretches;
  std::map<std::string, long> fallbacks;  // of the adaptive run
  Index elements = 0;
};

// The share of a step that was contact.
double contact_share(const StepReport& r) {
  double contact = 0, all = 1e-12;
  for (const auto& [name, seconds] : r.phases) {
    all += seconds;
    if (name == "contact") contact += seconds;
  }
  return contact / all;
}

Comparison compare(const std::shared_ptr<Scene>& scene, std::int64_t steps, bool newton = false) {
  auto plain = std::make_shared<Scene>(*scene);
  // A tolerance that nothing stays below: no piece, but a system for each object, and corrected factors.
  plain->method_options["tolerance"] = g_thrifty ? 1e-9 : 0.0;
  const auto distance = [&](const Simulation& p, const Simulation& q) {
    double worst = 0;
    for (Index i = 0; i < p.model().nodes(); ++i)
      worst = std::max(worst, (node(p.state().x, i) - node(q.state().x, i)).norm());
    return worst;
  };
  Comparison out;
  struct Step {
    double a = 1e9, b = 1e9;                         // [s], the least of all repetitions
    double contact_a = 0, contact_b = 0, own = 1e9;  // shares; [s]
    double rigid = 0;
    long analyses = 0;
  };
  std::vector<Step> all;
  for (int repetition = 0; repetition < g_repeat; ++repetition) {
    Simulation a(scene), b(plain);
    std::optional<Simulation> third;
    if (newton && repetition == 0) {
      auto converged = std::make_shared<Scene>(*plain);
      converged->method_options["integrator"] = "bdf1";
      third.emplace(converged);
    }
    out.size = a.model().size;
    out.elements = static_cast<Index>(a.model().mesh.elements.size());
    if (steps <= 0) steps = a.total_steps();
    all.resize(static_cast<std::size_t>(steps));
    for (Step& step : all) {
      // Who goes first finds less of its own in the caches: they take turns.
      StepReport ra, rb;
      double ta = 0, tb = 0;
      const auto advance = [](Simulation& sim, StepReport& report, double& time) {
        const double t = now();
        report = sim.step();
        time = now() - t;
      };
      const bool first = (&step - all.data() + repetition) % 2 == 0;
      if (first) advance(a, ra, ta);
      if (!g_alone) advance(b, rb, tb);
      if (!first) advance(a, ra, ta);
      double own = 0;
      for (const auto& [name, seconds] : ra.phases)
        if (name == "analyse" || name == "quick solve" || name == "pieces" || name == "strain rates")
          own += seconds;
      step.a = std::min(step.a, ta);
      step.b = std::min(step.b, tb);
      step.own = std::min(step.own, own);
      if (repetition > 0) continue;
      step.contact_a = contact_share(ra);
      step.contact_b = contact_share(rb);
      step.rigid = 1 - ra.extra.at("elastic_elements") / out.elements;
      step.analyses = ra.symbolic_analyses;
      out.solves += ra.iterations / static_cast<double>(steps);
      out.full_solves += rb.iterations / static_cast<double>(steps);
      for (const auto& [name, seconds] : ra.phases) out.phases[name] += seconds;
      for (const auto& [name, count] : ra.fallbacks) out.fallbacks[name] += count;
      if (!g_alone) out.error = std::max(out.error, distance(a, b));
      if (third) {
        third->step();
        out.converged = std::max(out.converged, distance(a, *third));
        out.full_converged = std::max(out.full_converged, distance(b, *third));
      }
    }
  }
  double stretch_a = 0, stretch_b = 0, stretch_rigid = 0, stretch_own = 0;
  long stretch_analyses = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Step& s = all[k];
    out.adaptive += s.a;
    out.full += s.b;
    out.adaptive_without_contact += s.a * (1 - s.contact_a);
    out.full_without += s.b * (1 - s.contact_b);
    out.mean += s.b / s.a / static_cast<double>(steps);
    out.rigid += s.rigid / static_cast<double>(steps);
    stretch_a += s.a;
    stretch_b += s.b;
    stretch_rigid += s.rigid;
    stretch_own += s.own;
    if ((k + 1) % 100 != 0) continue;
    out.worst = std::min(out.worst, stretch_b / stretch_a);
    out.stretches.push_back({std::to_string(k - 99), number(stretch_b / stretch_a), number(stretch_rigid),
                             number(10 * stretch_a), number(10 * stretch_b),
                             std::to_string(s.analyses - stretch_analyses), number(10 * stretch_own)});
    stretch_a = stretch_b = stretch_rigid = stretch_own = 0;
    stretch_analyses = s.analyses;
  }
  return out;
}

void table1(const std::vector<std::string>& scenes, std::int64_t steps, bool newton) {
  Table table{
      {"scene", "tets", "steps", "total", "mean", "without contact", "worst 100", "rigid %", "error/size %"},
      {}};
  Table profile{{"scene", "phase", "ms a step (wall)", "share %"}, {}};
  Table stretches{
      {"scene", "from step", "ratio", "rigid %", "ms a step", "full run", "analyses", "ms of its own (wall)"},
      {}};
  for (const std::string& name : scenes) {
    const auto scene = scene_named(name);
    const std::int64_t all = static_cast<std::int64_t>(std::llround(scene->end / scene->h));
    const std::int64_t n = steps > 0 ? std::min(steps, all) : all;
    const Comparison c = compare(scene, n, newton);
    table.rows.push_back({name, std::to_string(c.elements), std::to_string(n), number(c.full / c.adaptive),
                          number(c.mean), number(c.full_without / c.adaptive_without_contact),
                          number(c.worst), number(100 * c.rigid), number(100 * c.error / c.size)});
    for (std::vector<std::string> row : c.stretches) {
      row.insert(row.begin(), name);
      stretches.rows.push_back(row);
    }
    double sum = 1e-12;  // of phases, by the clock on the wall
    for (const auto& [phase, seconds] : c.phases) sum += seconds;
    for (const auto& [phase, seconds] : c.phases)
      profile.rows.push_back(
          {name, phase, number(1e3 * seconds / static_cast<double>(n)), number(100 * seconds / sum)});
    profile.rows.push_back(
        {name, "systems a step; full run", number(c.solves) + "; " + number(c.full_solves), ""});
    profile.rows.push_back({name, "all; full run",
                            fmt::format("{:.3g}; {:.3g}", 1e3 * c.adaptive / static_cast<double>(n),
                                        1e3 * c.full / static_cast<double>(n)),
                            ""});
    fmt::print("{}: {} times as fast\n", name, number(c.full / c.adaptive));
    for (const auto& [what, times] : c.fallbacks) fmt::print("{}: {} {} times\n", name, what, times);
    if (newton)
      fmt::print("{}: distance from converged steps, in % of the size: adaptive {}, full {}\n", name,
                 number(100 * c.converged / c.size), number(100 * c.full_converged / c.size));
    std::fflush(stdout);
  }
  table.write(g_folder, "table1");
  profile.write(g_folder, "profile");
  stretches.write(g_folder, "stretches");
}

void cantilever(std::int64_t steps) {
  Table table{{"scene", "tau_E", "tolerance %/s", "error/length %", "ratio", "rigid %"}, {}};
  for (const std::string name : {"cantilever-2d", "cantilever"})
    for (const double tau : {1e-6, 1e-5, 1e-4, 1e-3, 1e-2}) {
      auto scene = scene_named(name);
      scene->method_options["tolerance"] = 100 * std::sqrt(0.1 * tau);
      const Comparison c = compare(scene, steps);
      table.rows.push_back({name, number(tau), number(100 * std::sqrt(0.1 * tau)), number(100 * c.error / 4),
                            number(c.full / c.adaptive), number(100 * c.rigid)});
    }
  table.write(g_folder, "cantilever");
}

void beam(std::int64_t steps) {
  Table table{{"changed", "value", "ratio", "rigid %", "error/length %"}, {}};
  const auto row = [&](const std::string& what, double value, const std::shared_ptr<Scene>& scene) {
    const Comparison c = compare(scene, steps);
    table.rows.push_back(
        {what, number(value), number(c.full / c.adaptive), number(100 * c.rigid), number(100 * c.error / 4)});
  };
  const auto base = [] {
    auto scene = scene_named("cantilever");
    scene->forces.clear();
    scene->damping_mass = 1e-5;
    scene->damping_stiffness = 0.1;
    scene->method_options["threshold_ratio"] = 100.0;
    scene->method_options["tolerance"] = 100 * std::sqrt(1e-7);
    return scene;
  };
  for (const double tau : {1e-6, 1e-5, 1e-4, 1e-3}) {
    auto scene = base();
    scene->method_options["tolerance"] = 100 * std::sqrt(1e-2 * tau);
    row("threshold tau_E", tau, scene);
  }
  for (const double damping : {0.01, 0.05, 0.1, 0.5}) {
    auto scene = base();
    scene->damping_stiffness = damping;
    row("damping [s]", damping, scene);
  }
  for (const Index n : {3, 5, 7, 9}) {
    auto scene = base();
    scene->bodies[0].generate->nodes = {n, n, 4 * n - 3};
    row("nodes across", n, scene);
  }
  for (const double young : {1e4, 5e4, 1e5, 1e6}) {
    auto scene = base();
    scene->bodies[0].material.young = Varying{young};
    row("Young's modulus [Pa]", young, scene);
  }
  table.write(g_folder, "beam");
}

// Wheels that roll askew fall over: when their axis has come within 30 degrees of the vertical. The tread is
// flat and 0.6 m wide, so that a wheel that leans by less than atan 0.3 stands up again.
void wheels(std::int64_t steps, double lean) {
  Table table{{"tau_E", "falls at [s]", "at x [m]", "y [m]", "rigid %"}, {}};
  for (const double tau : {0.0, 5e-5, 5e-4, 5e-3, 5e-2}) {
    auto scene = scene_named("wheel");
    scene->bodies[0].rotation = Vec3(M_PI / 2 - lean, 0, 0);
    scene->h = 0.002;
    scene->method_options["tolerance"] = 100 * std::sqrt(0.1 * tau);
    Simulation sim(scene);
    const Model& model = sim.model();
    Index front = 0, back = 0;  // nodes at the two ends of the axis
    const auto reach = [&](Index i, double side) {
      const Vec3 r = model.mesh.rest[at(i)] - Vec3(0, 0, 1.1);
      return (r - side * 0.3 * Vec3::UnitY()).norm();
    };
    for (Index i = 0; i < model.nodes(); ++i) {
      if (reach(i, 1) < reach(front, 1)) front = i;
      if (reach(i, -1) < reach(back, -1)) back = i;
    }
    double rigid = 0;
    std::vector<std::string> fell{"not yet", "", ""};
    std::int64_t k = 0;
    for (; k < steps; ++k) {
      const StepReport r = sim.step();
      rigid += 1 - r.extra.at("elastic_elements") / static_cast<double>(model.mesh.elements.size());
      const Vec3 axis = (node(sim.state().x, front) - node(sim.state().x, back)).normalized();
      if (std::abs(axis[2]) < std::cos(M_PI / 6)) continue;
      const Vec3 c = measure(model, sim.state(), {}).center_of_mass;
      fell = {number(sim.state().t), number(c[0]), number(c[1])};
      break;
    }
    table.rows.push_back(
        {number(tau), fell[0], fell[1], fell[2], number(100 * rigid / static_cast<double>(k + 1))});
  }
  table.write(g_folder, "wheels");
}

// How often elements are predicted, all beside one full run. Errors over the whole run, because at one moment
// of a swing they say little: of nodes the largest and the root of the mean square, of energies the root of
// the mean squared difference over that of the full run's energy about its mean.
void predict(const std::vector<std::string>& scenes, std::int64_t steps) {
  Table table{{"scene", "steps", "predict_every", "ratio", "rigid %", "analyses", "error/size %",
               "rms error/size %", "kinetic %", "elastic %"},
              {}};
  for (const std::string& name : scenes) {
    const std::vector<int> every{1, 2, 4};
    std::vector<std::unique_ptr<Simulation>> runs;  // the full one, then those
    for (std::size_t r = 0; r <= every.size(); ++r) {
      auto scene = scene_named(name);
      if (r == 0)
        scene->method_options["tolerance"] = 0.0;
      else
        scene->method_options["predict_every"] = every[r - 1];
      runs.push_back(std::make_unique<Simulation>(scene));
    }
    const Model& model = runs[0]->model();
    const std::int64_t n = steps > 0 ? std::min(steps, runs[0]->total_steps()) : runs[0]->total_steps();
    struct Sums {
      double time = 0, rigid = 0, worst = 0, squares = 0, kinetic = 0, elastic = 0;
      long analyses = 0;
    };
    std::vector<Sums> sums(runs.size());
    double sum[2] = {0, 0}, squares[2] = {0, 0};  // of the full run's energies
    for (std::int64_t k = 0; k < n; ++k) {
      Diagnostics full;
      for (std::size_t r = 0; r < runs.size(); ++r) {
        const double t = now();
        const StepReport report = runs[r]->step();
        sums[r].time += now() - t;
        sums[r].rigid +=
            1 - report.extra.at("elastic_elements") / static_cast<double>(model.mesh.elements.size());
        sums[r].analyses = report.symbolic_analyses;
        const Diagnostics d = measure(runs[r]->model(), runs[r]->state(), {});
        if (r == 0) {
          full = d;
          sum[0] += d.kinetic;
          sum[1] += d.elastic;
          squares[0] += d.kinetic * d.kinetic;
          squares[1] += d.elastic * d.elastic;
          continue;
        }
        for (Index i = 0; i < model.nodes(); ++i) {
          const double e = (node(runs[r]->state().x, i) - node(runs[0]->state().x, i)).squaredNorm();
          sums[r].worst = std::max(sums[r].worst, std::sqrt(e));
          sums[r].squares += e / static_cast<double>(model.nodes());
        }
        sums[r].kinetic += (d.kinetic - full.kinetic) * (d.kinetic - full.kinetic);
        sums[r].elastic += (d.elastic - full.elastic) * (d.elastic - full.elastic);
      }
    }
    const auto steps_run = static_cast<double>(n);
    const auto spread = [&](int e) { return squares[e] - sum[e] * sum[e] / steps_run; };
    for (std::size_t r = 1; r < runs.size(); ++r)
      table.rows.push_back({name, std::to_string(n), std::to_string(every[r - 1]),
                            number(sums[0].time / sums[r].time), number(100 * sums[r].rigid / steps_run),
                            std::to_string(sums[r].analyses), number(100 * sums[r].worst / model.size),
                            number(100 * std::sqrt(sums[r].squares / steps_run) / model.size),
                            number(100 * std::sqrt(sums[r].kinetic / spread(0))),
                            number(100 * std::sqrt(sums[r].elastic / spread(1)))});
  }
  table.write(g_folder, "predict");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("adaptive rigidification: tables and figures of its paper");
  std::vector<std::string> parts{"table1"}, scenes{"octopus", "blob", "wheel", "forest", "pachinko"};
  std::int64_t steps = 0;
  int count = 1;
  bool newton = false;
  double lean = 0.4;
  app.add_option("parts", parts, "table1, cantilever, beam, wheels, predict");
  app.add_option("--scenes", scenes, "of table1 and predict");
  app.add_option("--steps", steps, "at most; 0: all");
  app.add_option("--threads", count);
  app.add_option("--lean", lean, "of wheels [rad]");
  app.add_flag("--converged", newton, "table1: a third run with Newton's method as the measure of both");
  std::string method;
  app.add_option("--method", method, R"(options for all scenes, e.g. '{"contact": "pgs"}')");
  app.add_option("--set", g_changes, "POINTER=VALUE: changes every scene, as in limber run");
  app.add_option("--repeat", g_repeat,
                 "runs: of each step the least time counts, which other work disturbs less")
      ->check(CLI::PositiveNumber);
  app.add_flag(
      "--thrifty", g_thrifty,
      "table1: the full run has systems of objects and corrects factors for contacts, as the adaptive "
      "run does");
  app.add_flag("--alone", g_alone, "no full run: profiles only, ratios mean nothing");
  app.add_option("--output", g_folder, "folder for the tables");
  CLI11_PARSE(app, argc, argv);
  set_threads(count);
  try {
    if (!method.empty()) g_method = nlohmann::json::parse(method);
    for (const std::string& part : parts) {
      if (part == "table1") table1(scenes, steps, newton);
      if (part == "cantilever") cantilever(steps);
      if (part == "beam") beam(steps > 0 ? steps : 500);
      if (part == "predict") predict(scenes, steps);
      if (part == "wheels") wheels(steps > 0 ? steps : 4000, lean);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
