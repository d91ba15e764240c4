// Subspace mixed FEM: the tables and figures of its paper, and of docs/methods/mixed.md.
//
//   convergence   iterations to 1e-3 against the stiffness ratio, and the swing (bar with four soft joints)
//   table1        ms per step of one iteration: mixed, FEM, all nodes, full space; four scenes, the paper's
//   sizes mesh          the same m and C on meshes of growing size, and what preparation takes cubature
//   static deflection of a cantilever against m and C (Fig. 14), all elements as points beside it figures the
//   sword's angle and the pendulum's angular momentum after few iterations (Figs. 7, 13) octobot       error
//   over the iterations of one step for three moduli of the stiff parts (Fig. 9) pareto        error and time
//   against m and C (Fig. 11) bases         a turn and a sag with skinning, homogeneous and handle weights
//   and linear modes (Figs. 3, 5)
//
// Tables are written as CSV and Markdown, figures as SVG.
#include "plot.hpp"
#include "table.hpp"

#include "../tests/unit/reduction/jointed_bar.hpp"

#include <limber/core/cache.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include <CLI/CLI.hpp>

using namespace limber;

namespace {

std::string g_folder = "out/bench/mixed";

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct BarProblem {
  JointedBar bar;
  ReducedBar reduced;
  double h = 0.01;
  BlockMatrix Hu;
  mixed::Sqp sqp;
  VecX u0, weight;

  BarProblem(double ratio, Index modes, Index points)
      : bar(ratio),
        reduced(bar, modes, points),
        Hu(diagonal_matrix(reduced.map->pattern(),
                           VecX::Constant(3 * reduced.basis.functions(), 1 / (h * h)))),
        sqp(*reduced.map, bar.points(reduced.cubature)) {
    u0 = reduced.reduced(bar.bent_displacement(86 * M_PI / 180));
    VecX g(3 * bar.mass.size());
    for (Index i = 0; i < bar.mass.size(); ++i) node(g, i) = Vec3(0, -9.81, 0);
    weight = reduced.reduced(g);
  }
  mixed::StepProblem problem(const VecX& anchor, const VecX& force) const {
    mixed::StepProblem p;
    p.Hu = &Hu;
    p.anchor = anchor;
    p.gradient = -force;
    p.inertia = bar.total_mass / (h * h);
    return p;
  }
};

void convergence() {
  Table table{{"stiff/soft", "solver", "error after 1", "2", "3", "5", "10", "iterations to 1e-3"}, {}};
  Plot plot{"One step from a bent state: error over iterations",
            "iteration",
            "error / length of the step",
            false,
            true,
            {}};
  for (const double ratio : {1.0, 1e2, 1e4, 1e6}) {
    BarProblem p(ratio, 8, 160);
    const mixed::StepProblem problem = p.problem(p.u0, VecX::Zero(p.u0.size()));
    const auto iterates = [&](mixed::SqpOptions o) {
      mixed::SqpState s;
      s.u = p.u0;
      p.sqp.start(s);
      PhaseClock clock;
      std::vector<VecX> out;
      p.sqp.solve(problem, o, s, clock, [&](const VecX& u) { out.push_back(u); });
      return out;
    };
    mixed::SqpOptions o;
    o.iterations = 60;
    o.tolerance = 1e-14;
    const VecX end = iterates(o).back();
    o.tolerance = 0;
    o.iterations = 100;
    for (const auto& [name, is_mixed, twist] :
         {std::tuple("FEM", false, 0), std::tuple("mixed (paper)", true, 0),
          std::tuple("mixed, twist from 2", true, 2), std::tuple("mixed, twist from 4", true, 4)}) {
      o.mixed = is_mixed;
      o.twist_from = twist;
      const std::vector<VecX> u = iterates(o);
      std::vector<std::string> row{number(ratio), name};
      std::string needed = "> 100";
      for (std::size_t k = u.size(); k-- > 0;)
        if ((u[k] - end).norm() < 1e-3 * (p.u0 - end).norm())
          needed = fmt::format("{}", k + 1);
        else
          break;
      for (const std::size_t k : {1, 2, 3, 5, 10})
        row.push_back(number((u[std::min(k, u.size()) - 1] - end).norm() / (p.u0 - end).norm()));
      row.push_back(needed);
      table.rows.push_back(row);
      if (twist == 4 || ratio < 1e4) continue;
      plot.lines.push_back({fmt::format("{}, {:.0e}", name, ratio), {}, ratio > 1e4});
      for (std::size_t k = 0; k < std::min<std::size_t>(20, u.size()); ++k)
        plot.lines.back().points.emplace_back(k + 1,
                                              std::max(1e-14, (u[k] - end).norm() / (p.u0 - end).norm()));
    }
  }
  table.write(g_folder, "convergence");
  plot.write(g_folder, "convergence");

  BarProblem p(1e4, 8, 160);
  const auto swing = [&](bool is_mixed, int iterations, bool extrapolate, std::vector<double>& tip) {
    mixed::SqpState s;
    s.u = VecX::Zero(p.u0.size());
    VecX v = s.u;
    p.sqp.start(s);
    double peak = 0;
    PhaseClock clock;
    for (int k = 0; k < 80; ++k) {
      const VecX u = s.u;
      mixed::SqpOptions o;
      o.mixed = is_mixed;
      o.iterations = iterations;
      o.tolerance = iterations > 20 ? 1e-12 : 0;
      if (extrapolate) s.u = u + p.h * v;
      p.sqp.solve(p.problem(u + p.h * v, p.weight), o, s, clock);
      v = (s.u - u) / p.h;
      peak = std::max(peak, 0.5 * v.squaredNorm());
      const VecX x = p.reduced.displacement(s.u);
      tip.push_back(x[x.size() - 2]);
    }
    return peak;
  };
  std::vector<double> reference;
  const double converged = swing(true, 60, true, reference);
  Table energy{{"iterations", "FEM from u", "mixed from u", "FEM from u+hv", "mixed from u+hv"}, {}};
  Plot curves{
      "Swing of the jointed bar, one and two iterations", "step", "height of the tip [m]", false, false, {}};
  const auto curve = [&](const std::string& name, const std::vector<double>& tip, bool dashed) {
    curves.lines.push_back({name, {}, dashed});
    for (std::size_t k = 0; k < tip.size(); ++k)
      curves.lines.back().points.emplace_back(static_cast<double>(k + 1), tip[k]);
  };
  curve("converged", reference, true);
  for (const int iterations : {1, 2, 4}) {
    std::vector<std::string> row{fmt::format("{}", iterations)};
    for (const bool extrapolate : {false, true})
      for (const bool is_mixed : {false, true}) {
        std::vector<double> tip;
        const double peak = swing(is_mixed, iterations, extrapolate, tip);
        double error = 0;
        for (std::size_t k = 0; k < tip.size(); ++k) error += std::pow(tip[k] - reference[k], 2);
        row.push_back(fmt::format("{:.4f}, {:.2f}", std::sqrt(error / 80), peak / converged));
        if (iterations < 4 && !extrapolate)
          curve(fmt::format("{}, {} from u", is_mixed ? "mixed" : "FEM", iterations), tip, false);
      }
    energy.rows.push_back(row);
  }
  fmt::print("\nswing: rms error of the tip [m], peak kinetic energy / converged\n");
  energy.write(g_folder, "swing");
  curves.write(g_folder, "swing");
}

const std::string kScenes = std::string(LIMBER_SOURCE_DIR) + "/scenes/mixed/";

// A scene of the gallery with other options, and with a mesh of about `tets` elements instead of its own (0:
// its own).
std::shared_ptr<const Scene> gallery_scene(const std::string& name, std::vector<std::string> overrides,
                                           double tets = 0) {
  if (tets > 0) {
    std::ifstream file(kScenes + name + ".shape");
    std::string text, line;
    while (std::getline(file, line))
      text += line.starts_with("tets ") ? fmt::format("tets {:.0f}\n", tets) : line + "\n";
    std::filesystem::create_directories(g_folder);
    const auto shape = std::filesystem::absolute(fmt::format("{}/{}-{:.0f}.shape", g_folder, name, tets));
    std::ofstream(shape) << text;
    overrides.push_back("/bodies/0/mesh=" + shape.string());
  }
  return std::make_shared<const Scene>(load_scene(kScenes + name + ".json", overrides));
}

struct Measured {
  double step_ms = 0;                 // the least of several groups of steps, the outer loop included
  double expand_ms = 0;               // positions and velocities of all nodes
  double prepare_s = 0, again_s = 0;  // model and method: the first time, and with a cache
  std::size_t tets = 0;
  Index nodes = 0, dofs = 0;
  std::map<std::string, double> phases_ms;  // per step
  std::map<std::string, int> fallbacks;
};

Measured measure_scene(const std::shared_ptr<const Scene>& scene, int steps, int groups,
                       const std::filesystem::path& cache = {}) {
  Measured out;
  double start = now();
  Preparation preparation;
  preparation.cache = cache;
  Simulation sim(scene, preparation);
  out.prepare_s = now() - start;
  if (!cache.empty()) {
    start = now();
    Simulation again(scene, preparation);
    out.again_s = now() - start;
  }
  out.tets = sim.model().mesh.elements.size();
  out.nodes = sim.model().nodes();
  out.step_ms = out.expand_ms = 1e300;
  sim.step();
  for (int g = 0; g < groups; ++g) {
    start = now();
    std::map<std::string, double> phases;
    for (int k = 0; k < steps; ++k) {
      const StepReport report = sim.step();
      out.dofs = report.dofs;
      for (const auto& [name, seconds] : report.phases) phases[name] += 1e3 * seconds / steps;
      for (const auto& [name, count] : report.fallbacks) out.fallbacks[name] += count;
    }
    const double ms = 1e3 * (now() - start) / steps;
    if (ms < out.step_ms) {
      out.step_ms = ms;
      out.phases_ms = phases;
    }
    start = now();
    sim.state();
    out.expand_ms = std::min(out.expand_ms, 1e3 * (now() - start));
  }
  return out;
}

void print_phases(const std::string& what, const Measured& m) {
  fmt::print("{}: {:.3f} ms a step:", what, m.step_ms);
  for (const auto& [name, ms] : m.phases_ms) fmt::print(" {} {:.3f}", name, ms);
  for (const auto& [name, count] : m.fallbacks) fmt::print(" {}:{}", name, count);
  fmt::print("\n");
  std::fflush(stdout);
}

// Table 1: one iteration a step. Full space is measured on at most `full` elements (0: not at all).
void table1(double share, double full) {
  Table table{{"scene", "nodes", "tets", "m", "C", "mixed ms", "FEM ms", "all nodes ms", "full mixed ms",
               "full / mixed", "paper: mixed", "paper: full / mixed"},
              {}};
  const double paper_ms[] = {1.19, 2.01, 7.37, 5.87}, paper_full[] = {3099, 11443, 263545, 7484};
  int k = 0;
  for (const std::string name : {"octobot", "swordsman", "quadruped", "crab"}) {
    const double tets = share < 1 ? share * (name == "octobot"     ? 132124
                                             : name == "quadruped" ? 531565
                                                                   : 225000)
                                  : 0;
    const auto scene = gallery_scene(name, {"/method/iterations=1", "/obstacles=[]"}, tets);
    const Measured m = measure_scene(scene, 20, 4, cache_folder());
    print_phases(name + ", mixed", m);
    const Measured f = measure_scene(
        gallery_scene(name, {"/method/iterations=1", "/method/variant=fem", "/obstacles=[]"}, tets), 20, 4,
        cache_folder());
    print_phases(name + ", FEM", f);
    std::string full_ms = "-", ratio = "-";
    if (static_cast<double>(m.tets) <= full) {
      const Measured whole = measure_scene(
          gallery_scene(name, {"/method/iterations=1", "/method/space=full", "/obstacles=[]"}, tets), 1, 2);
      print_phases(name + ", full space", whole);
      full_ms = number(whole.step_ms);
      ratio = number(whole.step_ms / m.step_ms);
    }
    table.rows.push_back({name, fmt::format("{}", m.nodes), fmt::format("{}", m.tets),
                          scene->method_options->at("modes").dump(),
                          scene->method_options->at("points").dump(), number(m.step_ms), number(f.step_ms),
                          number(m.expand_ms), full_ms, ratio, number(paper_ms[k]),
                          number(paper_full[k] / paper_ms[k])});
    ++k;
  }
  table.write(g_folder, "table1");
}

// The same m and C on meshes of growing size.
void mesh_sizes(double most) {
  Table table{{"tets", "nodes", "ms per step", "unknowns", "preparation s", "again s"}, {}};
  const std::filesystem::path cache = std::filesystem::absolute(g_folder + "/cache");
  for (const double tets : {1e4, 5e4, 2e5, 531565.0}) {
    if (tets > most) break;
    std::filesystem::remove_all(cache);
    const auto scene = gallery_scene("quadruped", {"/method/iterations=1"}, tets);
    { const Model once = build_model(scene); }  // the mesh is in the cache of meshes now
    const Measured m = measure_scene(scene, 60, 8, cache);
    print_phases(fmt::format("{} tets", m.tets), m);
    table.rows.push_back({fmt::format("{}", m.tets), fmt::format("{}", m.nodes),
                          fmt::format("{:.3f}", m.step_ms), fmt::format("{}", m.dofs), number(m.prepare_s),
                          number(m.again_s)});
  }
  std::filesystem::remove_all(cache);
  table.write(g_folder, "mesh");
}

// Static solution: implicit Euler with ever longer steps.
VecX equilibrium(const DeformationMap& map, std::vector<mixed::Point> points, const VecX& mass, double total,
                 const VecX& force, const std::vector<std::uint8_t>* fixed) {
  mixed::Sqp sqp(map, std::move(points));
  mixed::SqpState s;
  s.u = VecX::Zero(force.size());
  sqp.start(s);
  PhaseClock clock;
  for (const double h : {0.1, 1.0, 10.0, 1e3}) {
    const BlockMatrix Hu = diagonal_matrix(map.pattern(), mass / (h * h));
    for (int k = 0; k < (h < 1 ? 15 : 4); ++k) {
      mixed::StepProblem p;
      p.Hu = &Hu;
      p.anchor = s.u;
      p.gradient = -force;
      p.inertia = total / (h * h);
      p.fixed = fixed;
      mixed::SqpOptions o;
      o.iterations = 60;
      o.tolerance = 1e-9;
      sqp.solve(p, o, s, clock);
    }
  }
  return s.u;
}

// Rows that differ by more than a thousandth of the largest number.
template <class Features>
std::size_t different_features(const Features& x) {
  const double step = 1e-3 * static_cast<double>(x.cwiseAbs().maxCoeff());
  std::set<std::vector<long>> seen;
  for (Eigen::Index e = 0; e < x.rows(); ++e) {
    std::vector<long> cell;
    for (Eigen::Index d = 0; d < x.cols(); ++d)
      cell.push_back(std::lround(static_cast<double>(x(e, d)) / step));
    seen.insert(std::move(cell));
  }
  return seen.size();
}

void cubature(double gravity) {
  const JointedBar bar(1e4);
  const auto map = fem::make_mesh_map(bar.mesh, bar.pattern);
  const Eigen::Index n = 3 * bar.mass.size();
  VecX mass(n), down(n), force(n);
  std::vector<std::uint8_t> fixed(static_cast<std::size_t>(n));
  for (Eigen::Index d = 0; d < n; ++d) {
    mass[d] = bar.mass[d / 3];
    down[d] = d % 3 == 1 ? -gravity : 0;
    force[d] = mass[d] * down[d];
    fixed[static_cast<std::size_t>(d)] = bar.pinned[static_cast<std::size_t>(d / 3)];
  }
  const VecX full = equilibrium(*map, bar.all_points(), mass, bar.total_mass, force, &fixed);
  const auto error = [&](const ReducedBar& r) {
    const VecX u = equilibrium(*r.map, bar.points(r.cubature), VecX::Ones(3 * r.basis.functions()),
                               bar.total_mass, r.reduced(down), nullptr);
    return r.displacement(u)[n - 2] / full[n - 2] - 1;
  };
  Table table{{"m", "C", "features", "exponent", "error, three seeds", "points in joints",
               "different features", "all elements"},
              {}};
  Plot plot{"Fig. 14: too few points make a body too soft",
            "points per mode",
            "deflection / that of full FEM",
            true,
            true,
            {}};
  for (const Index m : {8, 16})
    for (const bool strain : {false, true}) {
      plot.lines.push_back({fmt::format("m = {}, {}", m, strain ? "weights and places" : "weights"), {}});
      for (const Index per : {5, 7, 10, 14, 20, 28, 40})
        plot.lines.back().points.emplace_back(per,
                                              1 + error(ReducedBar(bar, m, per * m, true, 0, 1, strain)));
    }
  plot.write(g_folder, "cubature");
  for (const auto& [m, c] :
       {std::pair(4, 80), std::pair(8, 40), std::pair(8, 160), std::pair(8, 320), std::pair(16, 320)}) {
    const std::string all = fmt::format("{:+.3f}", error(ReducedBar(bar, m, -1)));
    for (const bool strain : {false, true})
      for (const double exponent : {0.0, 2.0}) {
        std::string errors, joints;
        std::size_t different = 0;
        for (const std::uint64_t seed : {1, 2, 3}) {
          const ReducedBar r(bar, m, c, true, exponent, seed, strain);
          int soft = 0;
          for (const Index e : r.cubature.elements) soft += bar.mesh.material[at(e)].young < 2e5;
          errors += fmt::format("{}{:+.3f}", seed == 1 ? "" : " ", error(r));
          joints += fmt::format("{}{}", seed == 1 ? "" : " ", soft);
          different = different_features(r.features(exponent, strain));
        }
        table.rows.push_back({fmt::format("{}", m), fmt::format("{}", c),
                              strain ? "weights and places" : "weights", number(exponent), errors, joints,
                              fmt::format("{}", different), all});
      }
  }
  fmt::print("\ntip deflection of full FEM: {:.4f} m\n", full[n - 2]);
  table.write(g_folder, "cubature");
}

void pareto() {
  Table table{{"m", "C", "error", "ms per iteration"}, {}};
  JointedBar bar(1);
  const double h = 0.01;
  const auto map = fem::make_mesh_map(bar.mesh, bar.pattern);
  const Eigen::Index n = 3 * bar.mass.size();
  VecX mass(n);
  for (Eigen::Index d = 0; d < n; ++d) mass[d] = bar.mass[d / 3];
  const VecX start = bar.bent_displacement(86 * M_PI / 180);
  std::vector<std::uint8_t> fixed(static_cast<std::size_t>(n));
  for (Eigen::Index d = 0; d < n; ++d)
    fixed[static_cast<std::size_t>(d)] = bar.pinned[static_cast<std::size_t>(d / 3)];
  Plot plot{"Fig. 11: error and time against m and C",
            "ms per iteration",
            "gradient of the full problem [N]",
            true,
            true,
            {}};
  for (const Index m : {2, 4, 8, 12}) {
    plot.lines.push_back({fmt::format("m = {}, C = 5 m ... 40 m", m), {}});
    for (const Index per : {5, 10, 20, 40}) {
      const Index c = std::min<Index>(per * m, 960);
      const ReducedBar r(bar, m, c);
      const BlockMatrix Hu =
          diagonal_matrix(r.map->pattern(), VecX::Constant(3 * r.basis.functions(), 1 / (h * h)));
      mixed::Sqp sqp(*r.map, bar.points(r.cubature));
      mixed::SqpState s;
      s.u = r.reduced(start);
      sqp.start(s);
      mixed::StepProblem p;
      p.Hu = &Hu;
      p.anchor = s.u;
      p.gradient = VecX::Zero(s.u.size());
      p.inertia = bar.total_mass / (h * h);
      mixed::SqpOptions o;
      o.iterations = 40;
      o.tolerance = 1e-10;
      PhaseClock clock;
      const double begin = now();
      const int iterations = sqp.solve(p, o, s, clock).iterations;
      const double seconds = (now() - begin) / iterations;
      // The gradient of the full problem at the expanded solution.
      mixed::Sqp whole(*map, bar.all_points());
      const VecX x = r.displacement(s.u);
      VecX g = (mass / (h * h)).cwiseProduct(x - r.displacement(p.anchor));
      whole.elastic(x, &g);
      for (Eigen::Index d = 0; d < n; ++d)
        if (fixed[static_cast<std::size_t>(d)]) g[d] = 0;
      table.rows.push_back(
          {fmt::format("{}", m), fmt::format("{}", c), number(g.norm()), number(1e3 * seconds)});
      plot.lines.back().points.emplace_back(1e3 * seconds, g.norm());
    }
  }
  table.write(g_folder, "pareto");
  plot.write(g_folder, "pareto");
}

// What a few iterations do to the motion of a scene: `quantity` after every step from `from` to `to`, against
// the converged solution in the same subspace.
void motion(const std::string& name, double tets, int from, int to, const std::string& title,
            const std::function<double(const Simulation&)>& quantity) {
  const auto series = [&](const std::string& variant, int iterations, const std::string& start) {
    std::vector<std::string> set{"/method/variant=" + variant, "/method/start=" + start,
                                 fmt::format("/method/iterations={}", iterations)};
    if (iterations > 20) set.push_back("/method/tolerance=1e-9");
    Simulation sim(gallery_scene(name, set, tets), Preparation{{}, cache_folder()});
    std::vector<double> out;
    for (int k = 0; k < to; ++k) {
      sim.step();
      if (k >= from) out.push_back(quantity(sim));
    }
    return out;
  };
  const std::vector<double> converged = series("mixed", 60, "extrapolated");
  double most = 0;
  for (const double q : converged) most = std::max(most, std::abs(q));
  Table table{{"iterations", "FEM from u", "mixed from u", "FEM from u+hv", "mixed from u+hv"}, {}};
  Table curves{{"step", "converged"}, {}};
  Plot plot{title + ", from u", "step", title.substr(title.find(' ', 5) + 1), false, false, {}};
  const auto curve = [&](const std::string& label, const std::vector<double>& q, bool dashed) {
    plot.lines.push_back({label, {}, dashed});
    for (std::size_t k = 0; k < q.size(); ++k)
      plot.lines.back().points.emplace_back(from + static_cast<double>(k) + 1, q[k]);
  };
  curve("converged", converged, true);
  for (std::size_t k = 0; k < converged.size(); ++k)
    curves.rows.push_back({fmt::format("{}", from + static_cast<int>(k) + 1), number(converged[k])});
  for (const int iterations : {1, 2, 4}) {
    std::vector<std::string> row{fmt::format("{}", iterations)};
    for (const std::string start : {"current", "extrapolated"})
      for (const std::string variant : {"fem", "mixed"}) {
        const std::vector<double> q = series(variant, iterations, start);
        double error = 0, peak = 0;
        curves.head.push_back(fmt::format("{} {} {}", variant, iterations, start));
        for (std::size_t k = 0; k < q.size(); ++k) {
          error += std::pow(q[k] - converged[k], 2) / static_cast<double>(q.size());
          peak = std::max(peak, std::abs(q[k]));
          curves.rows[k].push_back(number(q[k]));
        }
        row.push_back(fmt::format("{:.3f}, {:.2f}", std::sqrt(error) / most, peak / most));
        if (start == "current") curve(fmt::format("{}, {}", variant, iterations), q, false);
      }
    table.rows.push_back(row);
  }
  fmt::print("\n{}: rms error / converged peak, peak / converged peak (converged peak {:.4g})\n", title,
             most);
  table.write(g_folder, name);
  std::ofstream csv(g_folder + "/" + name + "-curves.csv");
  csv << joined(curves.head, ",") << "\n";
  for (const auto& r : curves.rows) csv << joined(r, ",") << "\n";
  plot.write(g_folder, name);
}

Index nearest_node(const Model& model, const Vec3& x) {
  Index best = 0;
  for (Index i = 1; i < model.nodes(); ++i)
    if ((model.mesh.rest[at(i)] - x).squaredNorm() < (model.mesh.rest[at(best)] - x).squaredNorm()) best = i;
  return best;
}

// Fig. 7: the angle by which the sword has turned, in the first 25 steps after the tail is let go.
// Fig. 13: angular momentum of the pendulum about its axis after the twist is let go.
void figures(double tets) {
  motion("swordsman", tets, 100, 125, "Fig. 7, angle of the sword [rad]", [](const Simulation& sim) {
    const Index a = nearest_node(sim.model(), {.31, .66, .16}),
                b = nearest_node(sim.model(), {.36, 1.1, .25});
    const Vec3 X = sim.model().mesh.rest[at(b)] - sim.model().mesh.rest[at(a)];
    const Vec3 x = node(sim.state().x, b) - node(sim.state().x, a);
    return std::atan2(cross(X, x).norm(), X.dot(x));
  });
  motion("pendulum", tets, 100, 250, "Fig. 13, angular momentum [kg m^2/s]",
         [](const Simulation& sim) { return measure(sim.model(), sim.state(), {}).angular_momentum[1]; });
}

// Fig. 9: how one step converges for three moduli of the stiff parts. The step begins in a state that a
// converged run has reached, on the floor.
void octobot(double tets) {
  Plot plot{"Fig. 9: iterations of one step, three moduli",
            "iteration",
            "error / length of the step",
            false,
            true,
            {}};
  Table table{{"stiff parts [Pa]", "solver", "error after 1", "2", "5", "10", "30"}, {}};
  for (const double stiff : {1e6, 1e8, 1e10}) {
    const auto after = [&](const std::string& variant, int iterations, int twist, const State* state) {
      std::vector<std::string> set{"/method/variant=" + variant,
                                   fmt::format("/method/iterations={}", iterations),
                                   fmt::format("/method/twist_from={}", twist),
                                   "/method/start=current",
                                   "/obstacles/0/friction=0",
                                   fmt::format("/method/tolerance={}", iterations > 40 ? 1e-11 : 0)};
      const auto plain = gallery_scene("octobot", set, tets);
      for (std::size_t k = 0; k < plain->bodies[0].regions.size(); ++k)
        set.push_back(fmt::format("/bodies/0/regions/{}/young={:g}", k, stiff));
      Simulation sim(gallery_scene("octobot", set, tets), Preparation{{}, cache_folder()});
      if (state) sim.restore(*state);
      for (int k = 0; k < (state ? 1 : 40); ++k) sim.step();
      return State(sim.state());
    };
    const State begin = after("mixed", 80, 2, nullptr);
    const State end = after("mixed", 80, 2, &begin);
    const double length = (end.x - begin.x).norm();
    for (const auto& [name, variant, twist] :
         {std::tuple("FEM", "fem", 0), std::tuple("mixed (paper)", "mixed", 0),
          std::tuple("mixed", "mixed", 2)}) {
      std::vector<std::string> row{number(stiff), name};
      plot.lines.push_back({fmt::format("{}, {:.0e} Pa", name, stiff), {}, stiff < 1e7});
      for (const int k : {1, 2, 3, 4, 5, 7, 10, 15, 20, 30}) {
        const double error = (after(variant, k, twist, &begin).x - end.x).norm() / length;
        plot.lines.back().points.emplace_back(k, std::max(error, 1e-12));
        if (k == 1 || k == 2 || k == 5 || k == 10 || k == 30) row.push_back(number(error));
      }
      table.rows.push_back(row);
    }
  }
  table.write(g_folder, "octobot");
  plot.write(g_folder, "octobot");
}

// Other bases with as many unknowns and points: a pinned bar with soft joints falls under ever more gravity,
// until its blocks turn far.
void bases() {
  const auto bar = [&](const std::string& basis, double gravity) {
    nlohmann::json method{{"type", "mixed"}, {"iterations", 40}, {"tolerance", 1e-9}};
    if (basis == "full")
      method["space"] = "full";
    else
      method.update({{"basis", basis}, {"modes", 12}, {"points", 480}});
    const nlohmann::json scene{
        {"limber", 1},
        {"name", "bases"},
        {"gravity", {0, -gravity, 0}},
        {"time", {{"step", 0.005}, {"end", 1}}},
        {"method", method},
        {"bodies",
         {{{"mesh", {{"shape", "bar"}, {"size", {1, 0.08, 0.08}}, {"nodes", {41, 3, 3}}}},
           {"material",
            {{"model", "fixed-corotated"},
             {"young", "1e8 - 99.9e6 * (abs(mod(x, 0.2) - 0.1) > 0.075 and x > 0.1 and x < 0.9)"},
             {"poisson", 0.45}}}}}},
        {"constraints", {{{"nodes", {{"set", "x0"}}}}}}};
    LoadResult loaded = try_read_scene(scene.dump(), "bases.json");
    if (!loaded.problems.empty()) throw Error(ErrorKind::kInput, to_string(loaded.problems.front()));
    return std::make_shared<const Scene>(std::move(loaded.scene));
  };
  const std::vector<double> gravities{0.1, 1, 5, 20};
  Table table{{"basis", "unknowns"}, {}};
  Plot plot{"Other bases: a pinned bar with soft joints falls",
            "gravity [m/s^2]",
            "rms error / rms motion",
            true,
            true,
            {}};
  std::map<double, std::vector<VecX>> reference;
  for (const double g : gravities) table.head.push_back(fmt::format("error at {:g} m/s^2", g));
  for (const std::string basis : {"full", "skinning", "homogeneous", "handles", "linear"}) {
    std::vector<std::string> row{basis, ""};
    if (basis != "full") plot.lines.push_back({basis, {}});
    for (const double gravity : gravities) {
      Simulation sim(bar(basis, gravity));
      double apart = 0, moved = 0;
      for (std::size_t k = 0; k < 100; ++k) {
        row[1] = fmt::format("{}", sim.step().dofs);
        const VecX& x = sim.state().x;
        if (basis == "full") reference[gravity].push_back(x);
        const VecX& truth = reference[gravity][k];
        apart += (x - truth).squaredNorm();
        for (Index i = 0; i < sim.model().nodes(); ++i)
          moved += (node(truth, i) - sim.model().mesh.rest[at(i)]).squaredNorm();
      }
      row.push_back(number(std::sqrt(apart / moved)));
      if (basis != "full") plot.lines.back().points.emplace_back(gravity, std::sqrt(apart / moved));
    }
    if (basis != "full") table.rows.push_back(row);
  }
  table.write(g_folder, "bases");
  plot.write(g_folder, "bases");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Subspace mixed FEM: tables and figures");
  app.require_subcommand(1);
  int threads = 0;
  std::function<void()> action;
  double share = 1, most = 1e9, gravity = 1, full = 0, tets = 20000;
  app.add_option("-o,--output", g_folder, "Folder for tables")->capture_default_str();
  app.add_option("--threads", threads, "Threads; 0: all cores");
  const auto command = [&](const char* name, const char* help, std::function<void()> work) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->callback([&action, work] { action = work; });
    return sub;
  };
  command("convergence", "Errors of iterations and energy of a swing", convergence);
  CLI::App* sub = command("table1", "Table 1: milliseconds per iteration", [&] { table1(share, full); });
  sub->add_option("--share", share, "Of the paper's number of elements")->capture_default_str();
  sub->add_option("--full", full, "Full space as well, of meshes up to this many elements")
      ->capture_default_str();
  sub = command("mesh", "The same m and C on meshes of growing size", [&] { mesh_sizes(most); });
  sub->add_option("--most", most, "Most elements");
  sub = command("cubature", "Static deflection against m and C (Fig. 14)", [&] { cubature(gravity); });
  sub->add_option("--gravity", gravity, "[m/s^2]")->capture_default_str();
  sub = command("figures", "Motion after few iterations: sword and pendulum (Figs. 7, 13)",
                [&] { figures(tets); });
  sub->add_option("--tets", tets, "Elements of the meshes")->capture_default_str();
  sub = command("octobot", "Error over the iterations of one step, three moduli (Fig. 9)",
                [&] { octobot(tets); });
  sub->add_option("--tets", tets, "Elements of the mesh")->capture_default_str();
  command("bases", "Other bases: a pinned bar falls (Figs. 3, 5)", bases);
  command("pareto", "Error and time against m and C (Fig. 11)", pareto);
  CLI11_PARSE(app, argc, argv);
  try {
    set_threads(threads);
    set_cache_folder(user_cache_folder());
    action();
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return e.exit_code();
  }
}
