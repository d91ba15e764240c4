// Subspace condensation against full space, frame by frame in one run (docs/methods/condense.md): `implicit`
// with a factor in every Newton iteration, with factors that are kept, and with conjugate gradients as the
// paper's baseline has them. Writes tables of iterations, averages and worst frames (Tables 1 and 2), and
// every frame as numbers and as Figures 7 and 9.
#include "plot.hpp"
#include "table.hpp"
#include "timing.hpp"

#include <limber/core/cache.hpp>
#include <limber/core/parallel.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <algorithm>
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
  // 0: every run has its own way from the first frame on; else every such frame of full space begins where
  // the first condense run is, so that a long scene can be compared in some of its frames.
  std::int64_t every = 0;
  bool pcg = false;  // condense by conjugate gradients as well, for Table 1
  double tolerance = 1e-4;
};

std::shared_ptr<const Scene> scene_of(const Settings& s, const std::string& name, const std::string& method) {
  std::vector<std::string> overrides = s.set;
  if (!method.empty()) overrides.push_back(method);
  return std::make_shared<const Scene>(
      load_scene(std::string(LIMBER_SOURCE_DIR) + "/scenes/condense/" + name + ".json", overrides));
}

struct Frame {
  bool done = false, compared = false;
  double seconds = 0, share = 1, iterations = 0, pcg = 0;
  double residual = 0;        // at its end [N]
  double error = 0, rms = 0;  // of the size: largest distance, root mean square
  double relative = 0;        // of the displacements, by root mean squares (Figure 7)
};

struct Run {
  std::string name;
  std::unique_ptr<Simulation> simulation;
  bool condense = false, pcg = false;
  std::vector<Frame> frames = {};
  std::map<std::string, double> phases = {};
};

std::vector<Run> make_runs(const Settings& s, const std::string& name) {
  std::vector<Run> runs;
  const auto own = scene_of(s, name, "");
  const std::string integrator = own->method_options->at("integrator");
  for (const std::string& solver : s.baselines)
    runs.push_back(
        {fmt::format("implicit {}", solver),
         std::make_unique<Simulation>(scene_of(
             s, name,
             fmt::format(R"(/method={{"type": "implicit", "integrator": "{}", "solver": "{}",
                            "tolerance_relative": {}, "body_contact": {}, "contact_gap": "nearest"}})",
                         integrator, solver, s.tolerance, own->method_options->at("body_contact").dump())))});
  std::vector<std::string> variants;
  for (const double radius : s.radii) variants.push_back(fmt::format("/method/radius={}", radius));
  if (variants.empty()) variants.push_back("");
  for (const std::string& variant : variants)
    for (const bool pcg : {false, true}) {
      if (pcg && !s.pcg) continue;
      Settings with = s;
      with.set.push_back(fmt::format("/method/tolerance_relative={}", s.tolerance));
      if (pcg) with.set.push_back(R"(/method/solver="pcg")");
      const auto scene = scene_of(with, name, variant);
      runs.push_back(
          {fmt::format("condense {}{}", scene->method_options->at("radius").dump(), pcg ? " pcg" : ""),
           std::make_unique<Simulation>(scene, Preparation{{}, user_cache_folder()}), true, pcg});
    }
  return runs;
}

void step_run(Run& run, Frame& frame) {
  const double start = now();
  const StepReport r = run.simulation->step();
  frame.seconds = now() - start;
  frame.done = true;
  frame.iterations = static_cast<double>(r.iterations);
  const auto extra = [&](const char* key, double otherwise) {
    return r.extra.count(key) ? r.extra.at(key) : otherwise;
  };
  frame.share = extra("full_share", 1);
  frame.residual = r.residual;
  frame.pcg = extra("pcg_iterations", 0);
  for (const auto& [phase, seconds] : r.phases) run.phases[phase] += seconds;
}

void compare_frame(const Model& model, const VecX& x, const VecX& reference, double size, Frame& frame) {
  double moved = 0;
  for (Index i = 0; i < model.nodes(); ++i) {
    frame.error = std::max(frame.error, (node(x, i) - node(reference, i)).norm() / size);
    moved += (node(reference, i) - model.mesh.rest[at(i)]).squaredNorm();
  }
  const double apart = (x - reference).norm();
  frame.rms = apart / std::sqrt(static_cast<double>(model.nodes())) / size;
  frame.relative = moved > 0 ? apart / std::sqrt(moved) : 0;
  frame.compared = true;
}

double longest_side(const std::vector<Vec3>& nodes) {
  Vec3 low = nodes[0], high = nodes[0];
  for (const Vec3& x : nodes) {
    low = low.cwiseMin(x);
    high = high.cwiseMax(x);
  }
  return (high - low).maxCoeff();
}

// All frames as numbers, and Figures 7 (error against full space) and 9 (time and share of full nodes).
void write_frames(const Settings& s, const std::string& name, const std::vector<Run>& runs) {
  Table table{{"frame"}, {}};
  Plot error{name + ": error against full space", "frame", "relative error (L2)", false, true, {}},
      time{name + ": time of a frame", "frame", "ms", false, true, {}},
      share{name + ": share of nodes in full space", "frame", "%", false, false, {}};
  for (const Run& run : runs) {
    for (const char* what : {"ms", "full share", "residual [N]", "error max", "error rms", "error L2"})
      table.head.push_back(fmt::format("{} {}", run.name, what));
    Plot::Line errors{run.name, {}}, times{run.name, {}}, shares{run.name, {}};
    for (std::size_t k = 0; k < run.frames.size(); ++k) {
      const Frame& f = run.frames[k];
      if (!f.done) continue;
      const auto x = static_cast<double>(k + 1);
      times.points.emplace_back(x, 1e3 * f.seconds);
      if (!run.condense) continue;
      shares.points.emplace_back(x, 100 * f.share);
      if (f.compared) errors.points.emplace_back(x, f.relative);
    }
    time.lines.push_back(times);
    if (!run.condense) continue;
    error.lines.push_back(errors);
    share.lines.push_back(shares);
  }
  for (std::size_t k = 0; k < runs[0].frames.size(); ++k) {
    std::vector<std::string> row{fmt::format("{}", k + 1)};
    for (const Run& run : runs) {
      const Frame& f = run.frames[k];
      for (const double v : {1e3 * f.seconds, f.share, f.residual}) row.push_back(f.done ? number(v) : "");
      for (const double v : {f.error, f.rms, f.relative}) row.push_back(f.compared ? number(v) : "");
    }
    table.rows.push_back(std::move(row));
  }
  std::filesystem::create_directories(s.folder);
  std::ofstream csv(s.folder + "/" + name + "-frames.csv");
  csv << row_of_csv(table.head);
  for (const auto& row : table.rows) csv << row_of_csv(row);
  error.write(s.folder, name + "-figure7");
  time.write(s.folder, name + "-figure9-time");
  share.write(s.folder, name + "-figure9-share");
}

template <class Value>
double mean_of(const std::vector<Frame>& frames, Value&& value, bool compared = false) {
  double sum = 0, count = 0;
  for (const Frame& f : frames)
    if (f.done && (f.compared || !compared)) {
      sum += value(f);
      ++count;
    }
  return sum / std::max(1.0, count);
}

// How many times as fast as `base`, in the frames that both have.
double speed_up(const Run& base, const Run& run) {
  double a = 0, b = 0;
  for (std::size_t k = 0; k < run.frames.size(); ++k)
    if (base.frames[k].done) {
      a += base.frames[k].seconds;
      b += run.frames[k].seconds;
    }
  return a / b;
}

void compare_scene(const Settings& s, const std::string& name, Table& solves, Table& table) {
  std::vector<Run> runs = make_runs(s, name);
  const Model& model = runs[0].simulation->model();
  const double size = longest_side(model.mesh.rest);
  const std::int64_t steps = s.steps > 0 ? s.steps : runs[0].simulation->total_steps();
  Run& first = *std::find_if(runs.begin(), runs.end(), [](const Run& run) { return run.condense; });
  for (std::int64_t k = 0; k < steps; ++k) {
    const bool compared = s.every == 0 || k % s.every == s.every - 1;
    State start;
    if (s.every > 0 && compared) {
      start = first.simulation->state();
      start.memory = {};
    }
    for (Run& run : runs) {
      Frame& frame = run.frames.emplace_back();
      if (!run.condense && !compared) continue;
      if (!run.condense && s.every > 0) run.simulation->restore(start);
      step_run(run, frame);
      if (compared)
        compare_frame(model, run.simulation->state().x, runs[0].simulation->state().x, size, frame);
    }
    if (k % 5 == 4) fmt::print(stderr, "{}: {} of {} frames\n", name, k + 1, steps);
  }
  write_frames(s, name, runs);
  for (const Run& run : runs) {
    const double ms = 1e3 * mean_of(run.frames, [](const Frame& f) { return f.seconds; });
    const double newton = mean_of(run.frames, [](const Frame& f) { return f.iterations; });
    if (!run.condense) {
      solves.rows.push_back({name, run.name, number(ms), number(newton), "", "", ""});
      continue;
    }
    // Of the frames that full space has as well.
    std::size_t k = 0;
    for (std::size_t i = 0; i < run.frames.size(); ++i)
      if (run.frames[i].compared &&
          (!run.frames[k].compared || run.frames[i].seconds > run.frames[k].seconds))
        k = i;
    const Frame& slowest = run.frames[k];
    double alone = 0, count = 0, per_solve = 0, most = 0, greatest = 0, longest = 0;
    for (const Frame& f : run.frames) {
      longest = std::max(longest, f.seconds);
      if (f.share == 0) {
        alone += f.seconds;
        ++count;
      }
      most = std::max(most, f.pcg / std::max(1.0, f.iterations));
      per_solve += f.pcg;
      greatest = std::max(greatest, f.error);
    }
    per_solve /= std::max(1.0, newton * static_cast<double>(run.frames.size()));
    std::string where;
    for (const auto& [phase, seconds] : run.phases)
      where += fmt::format("{}{} {:.3g}", where.empty() ? "" : ", ", phase,
                           1e3 * seconds / static_cast<double>(steps));
    solves.rows.push_back({name, run.name, number(ms), number(newton),
                           run.pcg ? fmt::format("{:.0f} / {:.0f}", most, per_solve) : "",
                           count > 0 ? number(1e3 * alone / count) : "-", where});
    if (run.pcg) continue;
    std::string averages, worst, mean_to_worst;
    for (const Run& base : runs) {
      if (base.condense) continue;
      averages += fmt::format("{}{:.1f}", averages.empty() ? "" : " / ", speed_up(base, run));
      worst += fmt::format("{}{:.1f}", worst.empty() ? "" : " / ", base.frames[k].seconds / slowest.seconds);
      const double mean = mean_of(base.frames, [](const Frame& f) { return f.seconds; });
      mean_to_worst += fmt::format("{}{:.1f}", mean_to_worst.empty() ? "" : " / ", mean / longest);
    }
    table.rows.push_back(
        {name, fmt::format("{}", model.nodes()), run.name,
         fmt::format("{:.1f} %", 100 * mean_of(run.frames, [](const Frame& f) { return f.share; })),
         fmt::format("{:.1f} %", 100 * slowest.share), averages, worst, mean_to_worst,
         fmt::format("{:.2f} %", 100 * greatest),
         fmt::format("{:.2f} %", 100 * mean_of(
                                           run.frames, [](const Frame& f) { return f.rms; }, true))});
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
  app.add_option("--every", s.every,
                 "Full space only in every such frame, begun where condense is (default: runs of its own)");
  app.add_flag("--pcg", s.pcg, "condense with conjugate gradients as well: their iterations are Table 1");
  app.add_option("--tolerance", s.tolerance, "Relative residual at which solves end, of all runs");
  app.add_option("--threads", thread_count, "Threads");
  CLI11_PARSE(app, argc, argv);
  set_threads(thread_count);
  set_cache_folder(user_cache_folder());
  std::string ratios;
  for (const std::string& b : s.baselines) ratios += (ratios.empty() ? "" : " / ") + b;
  Table table{
      {"scene", "nodes", "run", "full, mean", "full, slowest frame", "speed-up, mean (" + ratios + ")",
       "in its slowest frame", "their mean over it", "error, max", "rms"},
      {}};
  Table solves{{"scene", "run", "ms a frame", "iterations", "of conjugate gradients, most / mean",
                "ms, subspace alone", "phases [ms]"},
               {}};
  for (const std::string& name : s.scenes) compare_scene(s, name, solves, table);
  solves.write(s.folder, "table1");
  table.write(s.folder, "table2");
  return 0;
}
