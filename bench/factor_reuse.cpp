// Who wins when a Cholesky factor is reused, and where: Figures 5.4, 5.5, 5.7, 5.9 and 5.13 of the
// dissertation as tables and plots. All solvers of a table run in one process, one after the other, on the
// same scene; a run that several figures need is done once.
//
// Every table also exists with the chapter's matrix, whose elements are projected ("5.4p"): Newton's method
// then converges linearly, which makes the reuse of factors look better than it is.
//
//   bench_factor_reuse --figure 5.4 5.7 [--solver qlb auto] [--steps N] [--threads N] [--out DIR] [--scale N]
//
// DIR receives results.csv (one row per run), iterations.csv (per step), results.md and SVG plots: times of
// all solvers, iterations per step (Figures 5.7 and 5.10), and one summary of each figure with several
// variants.
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/methods/implicit/implicit_stage.hpp>
#include <limber/methods/implicit/options.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>

namespace {

using namespace limber;

const std::vector<std::string> kAll{
    "newton-direct",   "newton-pcg", "newton-l0", "newton-l1", "quasi-newton-l0",
    "quasi-newton-l1", "hybrid-l0",  "hybrid-l1", "qlb",       "auto"};
const std::vector<std::string> kMain{"newton-direct", "newton-l0", "hybrid-l0", "hybrid-l1", "qlb", "auto"};

// newton-direct on CHOLMOD instead of our own factorisation.
const std::string kCholmod = "newton-direct-cholmod";

struct Variant {
  std::string label, scene;
  std::vector<std::string> overrides;
};

struct Figure {
  std::string number, title;
  std::vector<std::string> solvers;
  std::vector<Variant> variants;
};

std::vector<Figure> figures() {
  const std::string projected = "/method/matrix=projected";
  std::vector<std::string> with_cholmod = kAll;
  with_cholmod.insert(with_cholmod.begin() + 1, kCholmod);
  return {
      {"5.4", "BAR, default parameters", with_cholmod, {{"default", "bar", {}}}},
      {"5.4p", "BAR, default parameters, projected matrix", kAll, {{"default", "bar", {projected}}}},
      {"5.5",
       "BAR, varied",
       kMain,
       {{"E = 6e3", "bar-e6e3", {}},
        {"default: E = 2e4, nu = 0.49", "bar", {}},
        {"E = 5e4", "bar-e5e4", {}},
        {"E = 1e5", "bar-e1e5", {}},
        {"nu = 0.42", "bar-nu42", {}},
        {"heterogeneous", "bar-hetero", {}},
        {"anisotropic", "bar-aniso", {}}}},
      {"5.5p",
       "BAR, varied, projected matrix",
       kMain,
       {{"E = 6e3", "bar-e6e3", {projected}},
        {"default: E = 2e4, nu = 0.49", "bar", {projected}},
        {"E = 1e5", "bar-e1e5", {projected}},
        {"nu = 0.42", "bar-nu42", {projected}}}},
      {"5.7", "BAR, nonlinear iterations per step", kMain, {{"default", "bar", {}}}},
      {"5.9",
       "ARMADILLO, varied",
       kMain,
       {{"default: BDF2, h = 1e-2", "armadillo", {}},
        {"Green-strain damping 1e-3 s", "armadillo-damped", {}},
        {"corotational", "armadillo-corotational", {}},
        {"St Venant-Kirchhoff", "armadillo-stvk", {}},
        {"BDF1", "armadillo-bdf1", {}},
        {"SDIRK2", "armadillo-sdirk2", {}},
        {"Baraff, factor kept for 2 steps", "armadillo-baraff", {"/method/keep=2"}},
        {"h = 5e-3", "armadillo-h5e-3", {}},
        {"h = 2e-2", "armadillo-h2e-2", {}}}},
      {"5.13",
       "BUNNY and DUCKS, contact between bodies",
       kMain,
       {{"bunny", "bunny", {}}, {"50 ducks", "ducks-50", {}}, {"100 ducks", "ducks", {}}}},
  };
}

std::vector<std::string> known_solvers() {
  std::vector<std::string> names = kAll;
  names.push_back(kCholmod);
  return names;
}

// The solvers in the order of the list, behind the one that speed-ups and differences are relative to.
std::vector<std::string> with_reference(const std::vector<std::string>& solvers) {
  std::vector<std::string> out{kAll.front()};
  for (const std::string& s : solvers)
    if (std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
  return out;
}

struct Result {
  std::string solver, failure;
  double wall = 0, cpu = 0;  // [s], of the steps alone
  std::map<std::string, double> phases, extra;
  std::map<std::string, int> fallbacks;
  std::vector<double> newton, quasi;  // per step
  double difference = 0;              // largest distance from newton-direct's last positions [m]
  VecX x;
  std::int64_t steps = 0;
};

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A coarser mesh, to try things out.
std::string coarser(const Variant& variant, int scale) {
  if (variant.scene.rfind("bar", 0) != 0) return "/bodies/0/refine=0";  // the armadillo's; others have none
  return fmt::format("/bodies/0/mesh/nodes=[{},{},{}]", 44 / scale + 1, 14 / scale + 1, 14 / scale + 1);
}

std::string scene_path(const Variant& variant) {
  return std::string(LIMBER_SOURCE_DIR) + "/scenes/implicit/" + variant.scene + ".json";
}

Result run(const Variant& variant, const std::string& solver, std::int64_t steps, int scale) {
  Result r;
  r.solver = solver;
  std::vector<std::string> overrides = variant.overrides;
  if (solver == "qlb" || solver == "auto")  // they decide for themselves
    std::erase_if(overrides, [](const std::string& o) { return o.rfind("/method/keep", 0) == 0; });
  if (solver == kCholmod)
    overrides.insert(overrides.end(), {"/method/solver=newton-direct", "/solver/backend=cholmod"});
  else
    overrides.push_back("/method/solver=" + solver);
  if (scale > 1) overrides.push_back(coarser(variant, scale));
  auto scene = std::make_shared<Scene>(load_scene(scene_path(variant), overrides));
  Simulation sim(scene);
  try {
    while (!sim.done() && (steps == 0 || r.steps < steps)) {
      const double cpu = cpu_seconds(), wall = wall_seconds();
      const StepReport report = sim.step();
      r.cpu += cpu_seconds() - cpu;
      r.wall += wall_seconds() - wall;
      ++r.steps;
      for (const auto& [name, seconds] : report.phases) r.phases[name] += seconds;
      for (const auto& [name, value] : report.extra) r.extra[name] += value;
      for (const auto& [name, count] : report.fallbacks) r.fallbacks[name] += count;
      r.newton.push_back(report.extra.at("newton_iterations"));
      r.quasi.push_back(report.extra.at("quasi_iterations"));
    }
  } catch (const Error& e) {
    r.failure = e.what();
  }
  r.x = sim.state().x;
  return r;
}

std::string fallbacks_text(const std::map<std::string, int>& fallbacks) {
  std::string text;
  for (const auto& [name, count] : fallbacks)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  return text;
}

std::string escaped(const std::string& text) {
  std::string s;
  for (const char c : text) s += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return s;
}

// One group of bars per variant, one row per solver: CPU time over the paler wall-clock time. Plain SVG.
struct Group {
  std::string label;
  const std::vector<Result>* results;
};
std::string bars_svg(const std::string& title, const std::vector<Group>& groups) {
  const double row = 22, left = 160, width = 400;
  double longest = 1e-9, height = 44;
  for (const Group& g : groups) {
    height += row * static_cast<double>(g.results->size() + 1);
    for (const Result& r : *g.results) longest = std::max({longest, r.cpu, r.wall});
  }
  std::string s = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"{:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"8\" y=\"18\" font-weight=\"bold\">{}</text>\n<text x=\"8\" y=\"34\">CPU (dark) and "
      "wall-clock (pale) seconds; in brackets: times faster than {} in CPU time</text>\n",
      height, escaped(title), groups.front().results->front().solver);
  double y = 40;
  for (const Group& g : groups) {
    s += fmt::format("<text x=\"8\" y=\"{:.0f}\" font-weight=\"bold\">{}</text>\n", y + 15, escaped(g.label));
    y += row;
    for (const Result& r : *g.results) {
      const double wall = width * r.wall / longest, cpu = width * r.cpu / longest;
      s += fmt::format(
          "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text><rect x=\"{:.0f}\" y=\"{:.0f}\" "
          "width=\"{:.1f}\" height=\"16\" fill=\"#c8d6e5\"/><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.1f}\" "
          "height=\"10\" fill=\"#4878a8\"/><text x=\"{:.1f}\" y=\"{:.0f}\">{:.1f} s ({:.2f}){}</text>\n",
          left - 6, y + 13, r.solver, left, y, wall, left, y + 3, cpu, left + 6 + std::max(wall, cpu), y + 13,
          r.cpu, g.results->front().cpu / r.cpu, r.failure.empty() ? "" : " failed");
      y += row;
    }
  }
  return s + "</svg>\n";
}

// Which solver wins where: CPU seconds and the ratio to newton-direct of every variant and solver, and how
// far `auto` is from the best of the others.
std::string summary(const Figure& figure, const std::vector<Group>& groups) {
  std::string head = "| variant |", rule = "|---|", body;
  for (const Result& r : *groups.front().results) {
    head += fmt::format(" {} |", r.solver);
    rule += "---|";
  }
  for (const Group& g : groups) {
    body += fmt::format("| {} |", g.label);
    double best = 1e300, automatic = 0;
    for (const Result& r : *g.results) {
      body += r.failure.empty() ? fmt::format(" {:.2f} ({:.2f}) |", r.cpu, g.results->front().cpu / r.cpu)
                                : fmt::format(" failed at step {} |", r.steps);
      if (!r.failure.empty()) continue;
      if (r.solver == "auto")
        automatic = r.cpu;
      else
        best = std::min(best, r.cpu);
    }
    body += automatic > 0 ? fmt::format(" {:.2f} |\n", automatic / best) : " |\n";
  }
  return fmt::format(
      "\n### Figure {}: {}, CPU seconds (times faster than {})\n\n{} auto / best other |\n{}---|\n{}",
      figure.number, figure.title, groups.front().results->front().solver, head, rule, body);
}

// Iterations per step, one line per solver; of hybrids also the share of Newton's method, dotted.
std::string iterations_svg(const std::string& title, const std::vector<Result>& results) {
  const std::vector<std::string> colours{"#4878a8", "#d1605e", "#6a9f58", "#e49444", "#967662", "#85b6b2",
                                         "#a87cb5", "#5b5b5b", "#c9b44b", "#d37295", "#2e8b8b"};
  double most = 1;
  std::size_t steps = 1;
  for (const Result& r : results)
    for (std::size_t k = 0; k < r.newton.size(); ++k) {
      most = std::max(most, r.newton[k] + r.quasi[k]);
      steps = std::max(steps, r.newton.size());
    }
  std::string s = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"700\" height=\"350\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"8\" y=\"18\" "
      "font-weight=\"bold\">{}</text>\n<text x=\"500\" y=\"34\">nonlinear iterations per step</text>"
      "<text x=\"8\" y=\"40\">{:.0f}</text><text x=\"8\" y=\"290\">0</text><path d=\"M40 35V290H680\" "
      "fill=\"none\" stroke=\"#bbb\"/><text x=\"610\" y=\"305\">step {}</text>\n",
      escaped(title), most, steps);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    const std::string& colour = colours[i % colours.size()];
    const auto line = [&](auto&& value, const char* dashes) {
      std::string points;
      for (std::size_t k = 0; k < r.newton.size(); ++k)
        points +=
            fmt::format("{:.1f},{:.1f} ", 40 + 640.0 * static_cast<double>(k) / static_cast<double>(steps),
                        290 - 255 * value(k) / most);
      s += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-dasharray=\"{}\" points=\"{}\"/>\n",
                       colour, dashes, points);
    };
    line([&](std::size_t k) { return r.newton[k] + r.quasi[k]; }, "none");
    if (r.solver.rfind("hybrid", 0) == 0) line([&](std::size_t k) { return r.newton[k]; }, "2 3");
    s += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", 20 + 112 * (i % 6),
                     325 + 16 * (i / 6), colour, r.solver);
  }
  return s + "</svg>\n";
}

std::string table(const Figure& figure, const Variant& variant, const std::vector<Result>& results) {
  std::string s = fmt::format("\n### Figure {}: {}, {}\n\n", figure.number, figure.title, variant.label);
  s +=
      "| solver | wall s | CPU s | speed-up (CPU) | Newton its | quasi its | CG its | factors | assemble s | "
      "factor s | "
      "solve s | force s | max diff m | fallbacks "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  const double base = results.front().cpu;
  for (const Result& r : results) {
    auto phase = [&](const char* name) { return r.phases.count(name) ? r.phases.at(name) : 0.0; };
    auto extra = [&](const char* name) { return r.extra.count(name) ? r.extra.at(name) : 0.0; };
    s += fmt::format(
        "| {} | {:.2f} | {:.2f} | {:.2f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.2f} | {:.2f} | {:.2f} | "
        "{:.2f} | {:.1e} | {} |\n",
        r.solver, r.wall, r.cpu, base / r.cpu, extra("newton_iterations"), extra("quasi_iterations"),
        extra("pcg_iterations"), extra("factorizations"), phase("assemble"), phase("factor"), phase("solve"),
        phase("force"), r.difference,
        r.failure.empty() ? fallbacks_text(r.fallbacks)
                          : fmt::format("stopped at step {}: {}", r.steps, r.failure));
  }
  return s;
}

std::string csv_header() {
  return "figure,variant,solver,steps,wall_s,cpu_s,newton,quasi,cg,factorizations,assemble_s,factor_s,solve_"
         "s,"
         "force_s,max_difference_m,fallbacks,failure\n";
}

std::string csv_row(const Figure& figure, const Variant& variant, const Result& r) {
  auto of = [](const std::map<std::string, double>& m, const char* name) {
    return m.count(name) ? m.at(name) : 0.0;
  };
  return fmt::format(
      "{},\"{}\",{},{},{:.4f},{:.4f},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.3e},\"{}\",\"{}\"\n",
      figure.number, variant.label, r.solver, r.steps, r.wall, r.cpu, of(r.extra, "newton_iterations"),
      of(r.extra, "quasi_iterations"), of(r.extra, "pcg_iterations"), of(r.extra, "factorizations"),
      of(r.phases, "assemble"), of(r.phases, "factor"), of(r.phases, "solve"), of(r.phases, "force"),
      r.difference, fallbacks_text(r.fallbacks), r.failure);
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
}

// newton-direct per iteration against the bare operations: one assembly, factorisation, solve and force.
std::string compare_with_bare(const Result& direct, const Variant& variant, int scale) {
  std::vector<std::string> overrides = variant.overrides;
  if (scale > 1) overrides.push_back(coarser(variant, scale));
  auto scene = std::make_shared<Scene>(load_scene(scene_path(variant), overrides));
  const Model model = build_model(scene);
  const State state = initial_state(model);
  StepInput in;
  script_input(model, state, scene->h, in);
  ImplicitStage stage(model, ImplicitOptions::read(*scene->method_options).stage);
  stage.pose(in, {scene->h, 1, 0, true}, {&state.x, &state.v}, {});
  std::string text;
  for (const std::string& backend : cholesky_backends()) {
    Cholesky solver({backend, "auto"});
    solver.analyze(*model.pattern);
    BlockMatrix A;
    ImplicitStage::Point point;
    VecX b = VecX::Ones(3 * model.nodes());
    std::array<double, 5> best{1e9, 1e9, 1e9, 1e9, 1e9};
    for (int k = 0; k < 5; ++k) {
      double at = cpu_seconds();
      auto lap = [&](int i) {
        best[i] = std::min(best[i], cpu_seconds() - std::exchange(at, cpu_seconds()));
      };
      stage.matrix(direct.x, stage.key(), A);
      lap(0);
      if (!solver.factor(A).ok) return text;
      lap(1);
      solver.solve(b);
      lap(2);
      stage.evaluate(direct.x, point);
      lap(3);
      solver.round_to_single();
      at = cpu_seconds();
      solver.solve_rounded(b);
      lap(4);
    }
    const double bare = best[0] + best[1] + best[2] + best[3];
    const double each = direct.cpu / direct.extra.at("factorizations");
    text += fmt::format(
        "\nnewton-direct: {:.1f} ms CPU a factorisation, everything included. Bare, with {}: assembly {:.1f} "
        "+ "
        "factorisation {:.1f} + solve {:.1f} + force {:.1f} = {:.1f} ms (best of 5 each). Ratio {:.2f}. A "
        "solve with L in single precision: {:.1f} ms.\n",
        1e3 * each, backend, 1e3 * best[0], 1e3 * best[1], 1e3 * best[2], 1e3 * best[3], 1e3 * bare,
        each / bare, 1e3 * best[4]);
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Factor reuse: the figures of chapter 5 as tables");
  std::vector<std::string> wanted, only;
  std::string out;
  std::int64_t steps = 0;
  int threads = 0, scale = 1;
  app.add_option("--figure", wanted, "5.4, 5.4p, 5.5, 5.5p, 5.7, 5.9, 5.13; all when absent");
  app.add_option("--solver", only,
                 "only these solvers; newton-direct, which all others are compared with, always runs first")
      ->check(CLI::IsMember(known_solvers()));
  app.add_option("--steps", steps, "steps of every run; 0: to the scene's end");
  app.add_option("--threads", threads, "0: all cores");
  app.add_option("--scale", scale, "coarser meshes, to try things out: divides the bar's cells per edge")
      ->check(CLI::Range(1, 7));
  app.add_option("--out", out, "folder for tables (Markdown, CSV) and SVG plots");
  CLI11_PARSE(app, argc, argv);
  try {
    limber::set_threads(threads);
    std::string markdown = fmt::format("{} threads\n", limber::threads()), csv = csv_header();
    std::string per_step = "figure,variant,solver,step,newton,quasi\n";
    fmt::print("{}", markdown);
    if (!out.empty()) std::filesystem::create_directories(out);
    const std::filesystem::path folder(out);
    std::map<std::string, Result> done;  // by scene, overrides and solver
    for (Figure& figure : figures()) {
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), figure.number) == wanted.end()) continue;
      if (!only.empty()) figure.solvers = with_reference(only);
      std::vector<std::vector<Result>> all(figure.variants.size());
      std::vector<Group> groups;
      for (const Variant& variant : figure.variants) {
        std::vector<Result>& results = all[groups.size()];
        for (const std::string& solver : figure.solvers) {
          std::string name = variant.scene + " " + solver;
          for (const std::string& o : variant.overrides) name += " " + o;
          if (!done.count(name)) done[name] = run(variant, solver, steps, scale);
          results.push_back(done[name]);
          Result& r = results.back();
          if (r.x.size() == results[0].x.size())
            r.difference = (r.x - results[0].x).lpNorm<Eigen::Infinity>();
          csv += csv_row(figure, variant, r);
          for (std::size_t k = 0; k < r.newton.size(); ++k)
            per_step += fmt::format("{},\"{}\",{},{},{},{}\n", figure.number, variant.label, solver, k + 1,
                                    r.newton[k], r.quasi[k]);
          fmt::print(stderr, "{} {}: {:.2f} s\n", variant.label, solver, r.cpu);
        }
        groups.push_back({variant.label, &results});
        std::string text = table(figure, variant, results);
        if ((figure.number == "5.4" || figure.number == "5.9") && groups.size() == 1 &&
            results[0].solver == "newton-direct")
          text += compare_with_bare(results[0], variant, scale);
        fmt::print("{}", text);
        std::fflush(stdout);
        markdown += text;
        if (out.empty()) continue;
        const std::string name = fmt::format("figure-{}-{}", figure.number, groups.size());
        const std::string title =
            fmt::format("Figure {}: {}, {}", figure.number, figure.title, variant.label);
        write_text(folder / (name + ".svg"), bars_svg(title, {groups.back()}));
        write_text(folder / (name + "-iterations.svg"), iterations_svg(title, results));
        write_text(folder / "results.md", markdown);
        write_text(folder / "results.csv", csv);
        write_text(folder / "iterations.csv", per_step);
      }
      if (groups.size() < 2) continue;
      const std::string text = summary(figure, groups);
      fmt::print("{}", text);
      markdown += text;
      if (out.empty()) continue;
      write_text(folder / "results.md", markdown);
      write_text(folder / fmt::format("figure-{}.svg", figure.number),
                 bars_svg(fmt::format("Figure {}: {}", figure.number, figure.title), groups));
    }
  } catch (const limber::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return e.exit_code();
  }
  return 0;
}
