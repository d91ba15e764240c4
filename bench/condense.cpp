// Subspace condensation against full space, frame by frame in one run (docs/methods/condense.md): `implicit`
// with a factor in every Newton iteration, with factors that are kept, and with conjugate gradients as the
// paper's baseline has them. Writes tables of the averages and worst frames (Tables 1 and 2), and every frame
// (Figures 7 and 9).
#include "table.hpp"
#include "timing.hpp"

#include <limber/core/cache.hpp>
#include <limber/core/parallel.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <cmath>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

using namespace limber;

namespace {

struct Settings {
  std::string folder = "out/bench/condense";
  std::vector<std::string> scenes{"capsule"};
  std::vector<std::string> set;  // of all runs
  std::vector<double> radii;     // none: the scene's
  std::vector<std::string> baselines{"newton-direct", "auto", "newton-pcg"};
  std::int64_t steps = 0;
  double tolerance = 1e-4;
};

std::shared_ptr<const Scene> scene_of(const Settings& s, const std::string& name, const std::string& method) {
  std::vector<std::string> overrides = s.set;
  if (!method.empty()) overrides.push_back(method);
  return std::make_shared<const Scene>(
      load_scene(std::string(LIMBER_SOURCE_DIR) + "/scenes/condense/" + name + ".json", overrides));
}

struct Run {
  std::string name;
  std::unique_ptr<Simulation> simulation;
  std::vector<double> seconds, share, error, rms, iterations;
  std::map<std::string, double> phases;
};

void compare_scene(const Settings& s, const std::string& name, Table& table, Table& newton) {
  const Preparation preparation{{}, user_cache_folder()};
  std::vector<Run> runs;
  const bool dynamic = scene_of(s, name, "")->method_options->at("integrator") == "bdf1";
  for (const std::string& solver : s.baselines)
    runs.push_back(
        {fmt::format("implicit {}", solver),
         std::make_unique<Simulation>(scene_of(
             s, name,
             fmt::format(
                 R"(/method={{"type": "implicit", "integrator": "{}", "solver": "{}", "tolerance_relative": {}}})",
                 dynamic ? "bdf1" : "quasistatic", solver, s.tolerance))),
         {},
         {},
         {},
         {},
         {},
         {}});
  std::vector<std::string> variants;
  for (const double radius : s.radii) variants.push_back(fmt::format("/method/radius={}", radius));
  if (variants.empty()) variants.push_back("");
  for (const std::string& variant : variants) {
    Settings own = s;
    own.set.push_back(fmt::format("/method/tolerance_relative={}", s.tolerance));
    const auto scene = scene_of(own, name, variant);
    runs.push_back({fmt::format("condense {}", scene->method_options->at("radius").dump()),
                    std::make_unique<Simulation>(scene, preparation),
                    {},
                    {},
                    {},
                    {},
                    {},
                    {}});
  }
  const Simulation& first = *runs[0].simulation;
  double size = 0;
  for (int axis = 0; axis < 3; ++axis) {
    double low = 1e300, high = -1e300;
    for (const Vec3& x : first.model().mesh.rest) {
      low = std::min(low, x[axis]);
      high = std::max(high, x[axis]);
    }
    size = std::max(size, high - low);
  }
  const std::int64_t steps = s.steps > 0 ? s.steps : first.total_steps();
  for (std::int64_t k = 0; k < steps; ++k) {
    for (Run& run : runs) {
      const double start = now();
      const StepReport r = run.simulation->step();
      run.seconds.push_back(now() - start);
      run.iterations.push_back(static_cast<double>(r.iterations));
      run.share.push_back(r.extra.count("full_share") ? r.extra.at("full_share") : 1.0);
      const VecX &x = run.simulation->state().x, &reference = runs[0].simulation->state().x;
      double worst = 0;
      for (Index i = 0; i < first.model().nodes(); ++i)
        worst = std::max(worst, (node(x, i) - node(reference, i)).norm());
      run.error.push_back(worst / size);
      run.rms.push_back((x - reference).norm() / std::sqrt(static_cast<double>(first.model().nodes())) /
                        size);
      for (const auto& [phase, seconds] : r.phases) run.phases[phase] += seconds;
    }
    if (k % 5 == 4) fmt::print(stderr, "{}: {} of {} frames\n", name, k + 1, steps);
  }
  Table frames{{"frame"}, {}};
  for (const Run& run : runs)
    for (const char* what : {"ms", "full share", "error max", "error rms"})
      frames.head.push_back(fmt::format("{} {}", run.name, what));
  for (std::size_t k = 0; k < static_cast<std::size_t>(steps); ++k) {
    std::vector<std::string> row{fmt::format("{}", k + 1)};
    for (const Run& run : runs)
      for (const double v : {1e3 * run.seconds[k], run.share[k], run.error[k], run.rms[k]})
        row.push_back(number(v));
    frames.rows.push_back(std::move(row));
  }
  std::filesystem::create_directories(s.folder);
  std::ofstream csv(s.folder + "/" + name + "-frames.csv");
  csv << joined(frames.head, ",") << "\n";
  for (const auto& row : frames.rows) csv << joined(row, ",") << "\n";

  const auto mean = [](const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return sum / static_cast<double>(v.size());
  };
  for (const Run& run : runs) {
    if (run.name.rfind("condense", 0) != 0) {
      newton.rows.push_back(
          {name, run.name, number(1e3 * mean(run.seconds)), number(mean(run.iterations)), "", ""});
      continue;
    }
    // Frames in which the subspace was alone.
    double alone = 0, count = 0;
    std::size_t slowest = 0;
    for (std::size_t k = 0; k < run.seconds.size(); ++k) {
      if (run.share[k] == 0) {
        alone += run.seconds[k];
        ++count;
      }
      if (run.seconds[k] > run.seconds[slowest]) slowest = k;
    }
    std::string where;
    for (const auto& [phase, seconds] : run.phases)
      where += fmt::format("{}{} {:.3g}", where.empty() ? "" : ", ", phase,
                           1e3 * seconds / static_cast<double>(steps));
    newton.rows.push_back({name, run.name, number(1e3 * mean(run.seconds)), number(mean(run.iterations)),
                           count > 0 ? number(1e3 * alone / count) : "-", where});
    std::vector<std::string> row{name, fmt::format("{}", first.model().nodes()), run.name,
                                 fmt::format("{:.1f} %", 100 * mean(run.share)),
                                 fmt::format("{:.1f} %", 100 * run.share[slowest])};
    std::string averages, worst;
    for (const Run& base : runs) {
      if (base.name.rfind("condense", 0) == 0) continue;
      averages +=
          fmt::format("{}{:.1f}", averages.empty() ? "" : " / ", mean(base.seconds) / mean(run.seconds));
      worst +=
          fmt::format("{}{:.1f}", worst.empty() ? "" : " / ", base.seconds[slowest] / run.seconds[slowest]);
    }
    double greatest = 0;
    for (const double e : run.error) greatest = std::max(greatest, e);
    row.insert(row.end(), {averages, worst, fmt::format("{:.2f} %", 100 * greatest),
                           fmt::format("{:.2f} %", 100 * mean(run.rms))});
    table.rows.push_back(std::move(row));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"condense against implicit in full space, frame by frame"};
  Settings s;
  int thread_count = 1;
  app.add_option("scenes", s.scenes, "Names of scenes in scenes/condense");
  app.add_option("-o,--output", s.folder, "Folder for the tables");
  app.add_option("--set", s.set, "Change a value of the scenes: /bodies/0/mesh/edge=0.02");
  app.add_option("--radius", s.radii, "Influence radii, one run each (default: the scene's)");
  app.add_option("--baselines", s.baselines, "Solvers of implicit; the first is the reference of errors");
  app.add_option("--steps", s.steps, "Frames (default: all)");
  app.add_option("--tolerance", s.tolerance, "Relative residual at which solves end, of all runs");
  app.add_option("--threads", thread_count, "Threads");
  CLI11_PARSE(app, argc, argv);
  set_threads(thread_count);
  set_cache_folder(user_cache_folder());
  std::string ratios;
  for (const std::string& b : s.baselines) ratios += (ratios.empty() ? "" : " / ") + b;
  Table table{{"scene", "nodes", "run", "full, mean", "full, slowest frame",
               "speed-up, mean (" + ratios + ")", "in its slowest frame", "error, max", "rms"},
              {}};
  Table newton{{"scene", "run", "ms a frame", "Newton iterations", "ms, subspace alone", "phases [ms]"}, {}};
  for (const std::string& name : s.scenes) compare_scene(s, name, table, newton);
  newton.write(s.folder, "table1");
  table.write(s.folder, "table2");
  return 0;
}
