// What dynamic nodes, modes and both together are worth: error, energy kept and cost over unknowns.
#include "conjac_bar.hpp"
#include "table.hpp"

#include <limber/core/parallel.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>
#include <limber/sim/static_solve.hpp>

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <Eigen/Geometry>

#include <chrono>
#include <functional>
#include <memory>

using namespace limber;

namespace {

constexpr double kErrorTime = 0.2, kEnergyTime = 0.5;  // [s]

struct Choice {
  std::string name;
  nlohmann::json dynamic;  // null: vanilla
};

struct Study {
  std::string name;
  std::function<std::shared_ptr<Scene>()> scene;
  std::function<void(Simulation&)> start;  // shapes the initial state
  std::vector<Index> watched;              // nodes whose motion is compared; empty: the corners of the end
  double reference_step = 1e-4;            // [s]
  double reference_beta = 0.5;
};

// The static shape under a force on the end, found in ten steps of loading.
std::function<void(Simulation&)> pulled(const Vec3& force, bool corner) {
  return [=](Simulation& sim) {
    const Model& model = sim.model();
    State state = sim.state();
    StepInput in;
    script_input(model, state, sim.scene().h, in);
    std::vector<Index> nodes;
    for (Index i = 0; i < model.nodes(); ++i)
      if (model.mesh.rest[i].z() > .14 - 1e-9) nodes.push_back(i);
    if (corner) nodes = {nodes.back()};
    for (int k = 1; k <= 10; ++k) {
      in.force.setZero();
      for (Index i : nodes) node(in.force, i) = .1 * k * force / static_cast<double>(nodes.size());
      const StaticResult r = solve_static(model, in, state.x, 1e-7);
      if (!r.converged) fmt::print(stderr, "static solve {} failed: {}\n", k, r.why);
    }
    sim.restore(state);
  };
}

void twisted(Simulation& sim) {
  State state = sim.state();
  for (Index i = 0; i < sim.model().nodes(); ++i) {
    const Vec3 p = sim.model().mesh.rest[i];
    const Vec2 q = Eigen::Rotation2Dd(.25 * EIGEN_PI * p.z() / .14) * Vec2(p.x() - .02, p.y() - .02);
    node(state.x, i) = Vec3(q.x() + .02, q.y() + .02, p.z());
  }
  sim.restore(state);
}

struct Outcome {
  std::vector<VecX> path;  // of the watched nodes, from the start, at multiples of h
  double energy = 0;       // share of the total, over that at rest, that is left
  double ms = 0;           // a step, the median
  Index unknowns = 0;
  int fallbacks = 0, sweeps = 0, steps = 0;
  std::string failed;
};

Outcome simulate(const Study& study, const nlohmann::json& dynamic, double h, double sample, double beta) {
  Outcome out;
  auto s = study.scene();
  s->h = h;
  s->end = kEnergyTime;
  if (dynamic.is_null()) {
    s->method = "vanilla";
    *s->method_options = {{"beta", beta}};
  } else {
    s->method = "conjac";
    *s->method_options = {{"beta", .5},        {"gamma", 1. / 3},       {"time_rule", "guarded"},
                          {"newton_steps", 0}, {"static_start", false}, {"dynamic", dynamic}};
  }
  try {
    Simulation sim(s);
    if (study.start) study.start(sim);
    std::vector<Index> watched = study.watched;
    if (watched.empty())
      for (Index i = 0; i < sim.model().nodes(); ++i) {
        const Vec3 p = sim.model().mesh.rest[i];
        if (p.z() > .14 - 1e-9 && std::abs(p.x() - .02) > .0199 && std::abs(p.y() - .02) > .0199)
          watched.push_back(i);
      }
    const double e0 = measure(sim.model(), sim.state(), {}).total();
    // The potential of the rest shape under gravity is the zero of the energy.
    State rest = sim.state();
    StepInput in;
    script_input(sim.model(), initial_state(sim.model()), h, in);
    VecX x = initial_state(sim.model()).x;
    rest.v.setZero();
    if (solve_static(sim.model(), in, x, 1e-8).converged) rest.x = x;
    const double zero = measure(sim.model(), rest, {}).total();
    const auto every = static_cast<int>(std::lround(sample / h));
    std::vector<double> times;
    while (!sim.done()) {
      const auto begin = std::chrono::steady_clock::now();
      const StepReport r = sim.step();
      times.push_back(1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      for (const auto& f : r.fallbacks) out.fallbacks += f.second;
      if (r.extra.count("mode_sweeps")) out.sweeps += static_cast<int>(r.extra.at("mode_sweeps"));
      out.unknowns = r.dofs;
      ++out.steps;
      if (out.steps % every == 0 && sim.state().t < kErrorTime + 1e-9) {
        VecX p(3 * static_cast<Eigen::Index>(watched.size()));
        for (std::size_t k = 0; k < watched.size(); ++k)
          p.segment<3>(3 * static_cast<Eigen::Index>(k)) =
              node(sim.state().x, watched[k]) - sim.model().mesh.rest[watched[k]];
        out.path.push_back(p);
      }
    }
    std::sort(times.begin(), times.end());
    out.ms = times[times.size() / 2];
    out.energy = (measure(sim.model(), sim.state(), {}).total() - zero) / (e0 - zero);
  } catch (const std::exception& e) {
    out.failed = e.what();
  }
  return out;
}

// RMS of the distance over the RMS of the motion about its mean.
double error(const Outcome& a, const Outcome& reference) {
  VecX mean = VecX::Zero(reference.path.front().size());
  for (const VecX& p : reference.path) mean += p / static_cast<double>(reference.path.size());
  double distance = 0, motion = 0;
  for (std::size_t k = 0; k < reference.path.size(); ++k) {
    distance += (a.path[k] - reference.path[k]).squaredNorm();
    motion += (reference.path[k] - mean).squaredNorm();
  }
  return std::sqrt(distance / motion);
}

void compare(const Study& study, const std::vector<Choice>& choices, double h, const std::string& out) {
  const Outcome reference = simulate(study, nullptr, study.reference_step, h, study.reference_beta);
  if (!reference.failed.empty()) {
    fmt::print(stderr, "{}: reference: {}\n", study.name, reference.failed);
    return;
  }
  Table table{{study.name + fmt::format(", h = {}", h), "unknowns", "error", "energy left",
               "step, over vanilla", "fallbacks per step", "sweeps per step"},
              {}};
  double vanilla = 0;
  for (const Choice& c : choices) {
    const Outcome o = simulate(study, c.dynamic, h, h, 1);
    if (c.dynamic.is_null()) vanilla = o.ms;
    if (!o.failed.empty()) {
      table.rows.push_back({c.name, "", "failed: " + o.failed, "", "", "", ""});
      continue;
    }
    table.rows.push_back({c.name, std::to_string(o.unknowns), fmt::format("{:.3f}", error(o, reference)),
                          fmt::format("{:.3f}", o.energy),
                          vanilla > 0 ? fmt::format("{:.2f}", o.ms / vanilla) : "-",
                          fmt::format("{:.2f}", static_cast<double>(o.fallbacks) / o.steps),
                          fmt::format("{:.2f}", static_cast<double>(o.sweeps) / o.steps)});
  }
  table.rows.push_back({fmt::format("reference: vanilla, h = {}", study.reference_step), "", "",
                        fmt::format("{:.3f}", reference.energy), "", "", ""});
  table.write(out, fmt::format("conjac-modes-{}-{}", study.name, h));
}

nlohmann::json axis_nodes(int count) {
  nlohmann::json points = nlohmann::json::array();
  for (int k = 0; k < count; ++k) points.push_back({.02, .02, .14 * (k + 1) / count});
  return {{"nearest", points}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Error, energy and cost of ConJac with nodes, modes and both");
  std::string out = "out/bench", only;
  std::vector<double> steps{5e-3, 1e-2};
  bool creatures = false;
  int use_threads = 0;
  app.add_option("--out", out, "folder for CSV and Markdown");
  app.add_option("--only", only, "only the study of this name");
  app.add_option("--step", steps, "time steps [s]");
  app.add_flag("--creatures", creatures, "the dragon, pulled and let go, as well (minutes)");
  app.add_option("--threads", use_threads, "threads; 0: all cores");
  CLI11_PARSE(app, argc, argv);
  set_threads(use_threads);

  const auto modes = [](int n) { return nlohmann::json{{"modes", n}}; };
  const auto list = [](std::vector<nlohmann::json> items) { return nlohmann::json(std::move(items)); };
  const std::vector<Choice> choices = {{"vanilla", nullptr},
                                       {"4 nodes", list({axis_nodes(4)})},
                                       {"3 modes", list({modes(3)})},
                                       {"6 modes", list({modes(6)})},
                                       {"12 modes", list({modes(12)})},
                                       {"4 nodes, 6 modes", list({axis_nodes(4), modes(6)})}};
  const double area = .04 * .04;
  std::vector<Study> studies = {
      {"gravity",
       [] {
         auto s = conjac_bar(1e4, .4);
         s->gravity = {0, -9.81, 0};
         return s;
       },
       nullptr,
       {}},
      {"bend", [] { return conjac_bar(1e4, .4); }, pulled({.015 * 1e4 * area, 0, 0}, false), {}},
      {"twist", [] { return conjac_bar(1e4, .4); }, twisted, {}},
      {"axial", [] { return conjac_bar(1e4, .4); }, pulled({0, 0, .5 * 1e4 * area}, false), {}},
      {"corner49", [] { return conjac_bar(3e4, .49); }, pulled(Vec3(.1, .1, .2) * 3e4 * area, true), {}},
      {"axial49x", [] { return conjac_bar(3e4, .49); }, pulled({0, 0, 1e0 * 3e4 * area}, false), {}},
  };
  for (const double h : steps)
    for (const Study& s : studies)
      if (only.empty() || only == s.name) compare(s, choices, h, out);
  if (!creatures) return 0;

  // From the dragon's pulled shape, with all holds but the feet let go.
  const auto load = [](const std::vector<std::string>& more) {
    return std::make_shared<Scene>(load_scene(LIMBER_SOURCE_DIR "/scenes/conjac/dragon.json", more));
  };
  const auto pulled_scene = load({"/method={\"type\": \"static\"}", "/time/step=0.05", "/time/end=0.3"});
  Simulation puller(pulled_scene);
  while (!puller.done()) puller.step();
  const VecX shape = puller.state().x;
  Study dragon{"dragon",
               [&] {
                 auto s = load({});
                 s->constraints.resize(1);
                 return s;
               },
               [&](Simulation& sim) {
                 State state = sim.state();
                 state.x = shape;
                 sim.restore(state);
               },
               {},
               5e-4,
               1};
  for (const Vec3& p : {Vec3(-.051, .072, .004), Vec3(-.053, .056, .007), Vec3(.05, .05, -.004)}) {
    Index best = 0;
    for (Index i = 0; i < puller.model().nodes(); ++i)
      if ((puller.model().mesh.rest[i] - p).norm() < (puller.model().mesh.rest[best] - p).norm()) best = i;
    dragon.watched.push_back(best);
  }
  const nlohmann::json six = load({})->method_options["dynamic"];
  nlohmann::json both = six;
  both.push_back(modes(6));
  compare(dragon,
          {{"vanilla", nullptr},
           {"6 nodes", six},
           {"6 modes", list({modes(6)})},
           {"18 modes", list({modes(18)})},
           {"6 nodes, 6 modes", both}},
          5e-3, out);
}
