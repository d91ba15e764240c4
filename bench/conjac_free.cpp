// ConJac bodies that nothing holds: a free spin, a block that slides to a stop, flesh on a free hinge. Each
// against theory or against our full space at small steps.
#include "table.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>

using namespace limber;

namespace {

struct Named {
  const char *name, *method;
};

Simulation simulation(const std::string& json) {
  LoadResult r = try_read_scene(json, "./scene.json");
  if (!r.problems.empty()) throw Error(ErrorKind::kInput, to_string(r.problems.front()));
  return Simulation(std::make_shared<const Scene>(std::move(r.scene)));
}

Diagnostics measured(const Simulation& s) { return measure(s.model(), s.state(), {}); }

Vec3 center(const Simulation& s) {
  Vec3 sum = Vec3::Zero();
  double mass = 0;
  for (Index i = 0; i < s.model().nodes(); ++i) {
    sum += s.model().mass[3 * i] * node(s.state().x, i);
    mass += s.model().mass[3 * i];
  }
  return sum / mass;
}

// Spin about the centre of mass at zero momentum, elastic over kinetic energy at the start, drift.
void spin(double rate, const std::string& out) {
  Table table{
      {"method", "h [s]", "elastic / kinetic, most", "centre of mass [m]", "spin, change", "energy kept"},
      {}};
  const Named methods[] = {
      {"conjac, six nodes", R"({"type": "conjac", "dynamic": [{"auto": 6}]})"},
      {"conjac, six modes", R"({"type": "conjac"})"},
      {"linear-implicit", R"({"type": "conjac", "time_rule": "linear-implicit", "dynamic": [{"auto": 6}]})"},
      {"vanilla", R"({"type": "vanilla"})"},
      {"implicit sdirk2", R"({"type": "implicit", "integrator": "sdirk2"})"}};
  for (const Named& m : methods)
    for (const double h : {5e-3, 1e-3}) {
      Simulation s = simulation(
          R"({"limber": 1, "gravity": [0, 0, 0], "time": {"step": )" + fmt::format("{}", h) +
          R"(}, "method": )" + m.method +
          R"(, "bodies": [{"mesh": {"shape": "bar", "size": [0.03, 0.03, 0.09], "nodes": [4, 4, 10]},
          "material": {"young": 1e4, "poisson": 0.4}, "angular_velocity": [0, )" +
          fmt::format("{}", rate) + ", 0]}]}");
      const Diagnostics start = measured(s);
      const Vec3 c = center(s);
      double elastic = 0, away = 0, change = 0;
      for (int k = 0; k < std::lround(2 / h); ++k) {
        s.step();
        const Diagnostics now = measured(s);
        elastic = std::max(elastic, now.elastic / start.kinetic);
        away = std::max(away, (center(s) - c).norm());
        change = std::max(
            change, (now.angular_momentum - start.angular_momentum).norm() / start.angular_momentum.norm());
      }
      table.rows.push_back({m.name, number(h), number(elastic), number(away), number(change),
                            number(measured(s).total() / start.total())});
    }
  fmt::print("\nfree spin at {} rad/s, 2 s\n", rate);
  table.write(out, fmt::format("conjac-spin-{:.0f}", rate));
}

// Stopping distance over Coulomb's v^2 / (2 mu g).
void slide(double young, const std::string& out) {
  Table table{{"v [m/s], mu", "six nodes", "six modes", "linear-implicit", "vanilla", "implicit"}, {}};
  const char* methods[] = {R"({"type": "conjac", "dynamic": [{"auto": 6}]})", R"({"type": "conjac"})",
                           R"({"type": "conjac", "time_rule": "linear-implicit", "dynamic": [{"auto": 6}]})",
                           R"({"type": "vanilla"})", R"({"type": "implicit"})"};
  for (const auto& [v, mu] : {std::pair{0.5, 0.3}, {1.0, 0.3}, {1.0, 0.5}, {2.0, 0.5}}) {
    std::vector<std::string> row{fmt::format("{}, {}", v, mu)};
    for (const char* method : methods) {
      Simulation s =
          simulation(R"({"limber": 1, "time": {"step": 0.005}, "gravity": [0, -9.81, 0], "method": )" +
                     std::string(method) + R"(, "contact": {"friction": )" + fmt::format("{}", mu) +
                     R"(}, "obstacles": [{"shape": "plane", "normal": [0, 1, 0]}],
          "bodies": [{"mesh": {"shape": "box", "size": [0.1, 0.04, 0.1], "nodes": [6, 3, 6]},
          "material": {"young": )" +
                     fmt::format("{}", young) + R"(, "poisson": 0.4}, "velocity": [)" + fmt::format("{}", v) +
                     ", 0, 0]}]}");
      const double begin = center(s).x(), way = v * v / (2 * mu * 9.81);
      while (s.state().t < 2 * v / (mu * 9.81)) s.step();
      row.push_back(fmt::format("{:.3f}", (center(s).x() - begin) / way));
    }
    table.rows.push_back(row);
  }
  fmt::print("\nstopping distance over Coulomb's, h = 5 ms, E = {:g} Pa\n", young);
  table.write(out, fmt::format("conjac-slide-{:g}", young));
}

// Flesh on a free hinge: the angle against VANILLA at small steps, extrapolated, and the energy of both.
void hinge(double rate, const std::string& out) {
  const auto swing = [&](const char* method, double h) {
    Simulation s = simulation(
        R"({"limber": 1, "gravity": [0, -9.81, 1], "time": {"step": )" + fmt::format("{}", h) +
        R"(}, "method": )" + method +
        R"(, "bodies": [{"name": "flesh", "mesh": {"shape": "box", "size": [0.4, 0.1, 0.1], "nodes": [9, 3, 3]},
        "material": {"young": 2e4}}],
        "links": [{"name": "bone", "shapes": {"shape": "box", "size": [0.1, 0.05, 0.05], "position": [0.05, 0.05, 0.05],
        "density": 4000}}], "joints": [{"name": "hinge", "child": "bone", "axis": [0, 0, 1], "position": [0, 0.05, 0.05],
        "v": )" +
        fmt::format("{}", rate) +
        R"(}], "attachments": [{"link": "bone", "nodes": {"plane": {"point": [0.15, 0, 0], "normal": [-1, 0, 0]}}}]})");
    std::pair<std::vector<double>, double> run;
    for (int k = 0; k < std::lround(1 / h); ++k) {
      s.step();
      run.first.push_back(s.state().joint_q[0]);
    }
    run.second = measured(s).total();
    return run;
  };
  const char* vanilla = R"({"type": "vanilla"})";
  const auto coarse = swing(vanilla, 2e-4).first, fine = swing(vanilla, 1e-4).first;
  Table table{{"h [s]", "method", "rms error [rad]", "energy after 1 s [J]"}, {}};
  const Named methods[] = {
      {"guarded, six modes", R"({"type": "conjac"})"},
      {"guarded, 20 modes", R"({"type": "conjac", "dynamic": [{"modes": 20}]})"},
      {"linear-implicit, six modes", R"({"type": "conjac", "time_rule": "linear-implicit"})"},
      {"vanilla", vanilla}};
  for (const double h : {2e-3, 5e-3, 1e-2})
    for (const Named& m : methods) {
      const auto run = swing(m.method, h);
      double sum = 0;
      for (std::size_t k = 0; k < run.first.size(); ++k) {
        const auto at = static_cast<std::size_t>(std::lround(static_cast<double>(k + 1) * h / 2e-4)) - 1;
        const double error = run.first[k] - (2 * fine[2 * at + 1] - coarse[at]);
        sum += error * error;
      }
      table.rows.push_back({number(h), m.name, number(std::sqrt(sum / static_cast<double>(run.first.size()))),
                            number(run.second)});
    }
  fmt::print("\nflesh on a free hinge, bone at {} rad/s at the start\n", rate);
  table.write(out, fmt::format("conjac-hinge-{:.0f}", rate));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("ConJac bodies that nothing holds: free spin, sliding to a stop, flesh on a free hinge");
  std::string out = "out/bench", only;
  app.add_option("--out", out, "folder for CSV and Markdown");
  app.add_option("--only", only, "spin, slide or hinge");
  CLI11_PARSE(app, argc, argv);
  if (only.empty() || only == "spin")
    for (const double rate : {5.0, 20.0}) spin(rate, out);
  if (only.empty() || only == "slide")
    for (const double young : {1e5, 1e6}) slide(young, out);
  if (only.empty() || only == "hinge")
    for (const double rate : {0.0, 6.0}) hinge(rate, out);
}
