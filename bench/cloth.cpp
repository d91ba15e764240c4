// Cloth over sharp edges (docs/methods/cloth.md): table and figures of chapter 2 of Weidner's dissertation.
//   table   the scenes of scenes/cloth with the columns of Table 2.1: most faces, most EOL vertices, shares
//   of
//           detection, remeshing, filling the matrix and velocities (contact and solve), time of a step
//   edge    EDGE in its variants: where the lowest corner of the cloth is, over time
//   long    THROW, JAWS and TURN for 10,000 steps: is the mesh sound in every step, does memory grow
//   lores   LO-RES: distance of both coarse cloths to the fine EOL one, over time
#include "plot.hpp"
#include "table.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/methods/cloth/cloth_mesh.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <ctime>
#include <map>

#include <unistd.h>

using namespace limber;

namespace {

std::string g_folder = "out/bench/cloth";

double cpu_now() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Simulation simulation_of(const std::string& name) {
  return Simulation(std::make_shared<const Scene>(
      load_scene(std::string(LIMBER_SOURCE_DIR) + "/scenes/cloth/" + name + ".json")));
}

// Where points of the material are in space.
std::vector<Vec3> places(const Simulation& sim, const std::vector<Vec2>& points) {
  const Sheet sheet = cloth::sheet_of(sim.model(), sim.state(), cloth::find_charts(sim.model()));
  const SheetLocator locator(sheet);
  std::vector<Vec3> out;
  for (const Vec2& p : points) {
    const SheetLocator::Place place = locator.find(p, 0);
    Vec3 x = Vec3::Zero();
    for (std::size_t k = 0; k < 3; ++k)
      x += place.weights[k] * sheet.x[at(sheet.triangles[at(place.triangle)][k])];
    out.push_back(x);
  }
  return out;
}

std::int64_t steps_of(const Simulation& sim, std::int64_t most) {
  return most > 0 ? std::min(most, sim.total_steps()) : sim.total_steps();
}

void table(const std::vector<std::string>& scenes, std::int64_t most) {
  Table out;
  out.head = {"scene",      "steps",    "faces",          "EOL [%]",       "detect [%]",
              "remesh [%]", "fill [%]", "velocities [%]", "QP iterations", "parts",
              "fallbacks",  "ms/step",  "slowest [ms]"};
  for (const std::string& name : scenes) {
    Simulation sim = simulation_of(name);
    double faces = 0, eol = 0, iterations = 0, parts = 0, total = 0, slowest = 0;
    std::map<std::string, double> phase;
    std::map<std::string, int> fallbacks;
    std::int64_t done = 0;
    const std::int64_t steps = steps_of(sim, most);
    std::string failed;
    for (; done < steps; ++done) {
      const double start = cpu_now();
      StepReport r;
      try {
        r = sim.step();
      } catch (const Error& e) {
        failed = e.what();
        break;
      }
      const double time = cpu_now() - start;
      total += time;
      slowest = std::max(slowest, time);
      faces = std::max(faces, r.extra["faces"]);
      eol = std::max(eol, r.extra["eol"] / static_cast<double>(sim.model().nodes()));
      iterations += r.iterations;
      parts += r.extra.count("parts") ? r.extra["parts"] : 1;
      for (const auto& [what, seconds] : r.phases) phase[what] += seconds;
      for (const auto& [what, count] : r.fallbacks) fallbacks[what] += count;
    }
    double phases = 0;  // [s] by the clock, as its parts are
    for (const auto& [what, seconds] : phase) phases += seconds;
    const auto share = [&](double seconds) {
      return fmt::format("{:.1f}", 100 * seconds / std::max(phases, 1e-12));
    };
    std::string counted;
    for (const auto& [what, count] : fallbacks)
      counted += fmt::format("{}{} {}", counted.empty() ? "" : "; ", what, count);
    const double n = std::max<double>(1, static_cast<double>(done));
    out.rows.push_back({name, fmt::format("{}{}", done, failed.empty() ? "" : " (failed)"),
                        fmt::format("{}", faces), eol > 0 ? fmt::format("{:.1f}", 100 * eol) : "-",
                        share(phase["detect"]), share(phase["remesh"]), share(phase["assemble"]),
                        share(phase["contact"] + phase["solve"]), fmt::format("{:.1f}", iterations / parts),
                        fmt::format("{:.1f}", parts / n), counted.empty() ? "none" : counted,
                        fmt::format("{:.1f}", 1e3 * total / n), fmt::format("{:.0f}", 1e3 * slowest)});
    if (!failed.empty()) fmt::print("{}: {}\n", name, failed);
  }
  out.write(g_folder, "table");
}

void edge(std::int64_t most) {
  Plot height, way;
  height.title = "EDGE: the corner that hangs down";
  height.x_label = way.x_label = "time [s]";
  height.y_label = "z of the lower corner [m]";
  way.title = "EDGE: the corner that hangs down";
  way.y_label = "x of the lower corner [m]";
  Table out;
  out.head = {"variant", "z at 0.35 s [m]", "z at 0.55 s [m]", "x at 0.55 s [m]", "x at 0.65 s [m]"};
  for (const char* variant :
       {"edge-eol", "edge-regular", "edge-irregular", "edge-adaptive", "edge-conformal", "edge-cone"}) {
    Simulation sim = simulation_of(variant);
    Plot::Line z{variant, {}, false}, x{variant, {}, false};
    const std::int64_t steps = steps_of(sim, most);
    std::map<int, Vec3> at_time;
    for (std::int64_t k = 0; k < steps; ++k) {
      try {
        sim.step();
      } catch (const Error& e) {
        fmt::print("{}: {}\n", variant, e.what());
        break;
      }
      const Vec3 corner = places(sim, {Vec2(0, 0)}).front();
      z.points.emplace_back(sim.time(), corner[2]);
      x.points.emplace_back(sim.time(), corner[0]);
      at_time[static_cast<int>(std::lround(1e3 * sim.time()))] = corner;
    }
    const auto cell = [&](int ms, int axis) {
      return at_time.count(ms) ? fmt::format("{:.3f}", at_time[ms][axis]) : std::string("-");
    };
    out.rows.push_back({variant, cell(350, 2), cell(550, 2), cell(550, 0), cell(650, 0)});
    height.lines.push_back(std::move(z));
    way.lines.push_back(std::move(x));
  }
  out.write(g_folder, "edge");
  height.write(g_folder, "edge-height");
  way.write(g_folder, "edge-way");
}

void lores(std::int64_t most) {
  std::vector<Vec2> points;
  for (int i = 0; i <= 10; ++i)
    for (int j = 0; j <= 10; ++j) points.emplace_back(0.1 * i, 0.1 * j);
  Simulation fine = simulation_of("edge-eol"), eol = simulation_of("lores-eol"),
             regular = simulation_of("lores-regular");
  Plot plot;
  plot.title = "LO-RES: mean distance to the fine EOL cloth";
  plot.x_label = "time [s]";
  plot.y_label = "distance [m]";
  plot.lines = {{"EOL, coarse", {}, false}, {"regular, 242 faces", {}, false}};
  Table out;
  out.head = {"time [s]", "EOL [mm]", "regular [mm]", "EOL faces"};
  const std::int64_t steps = steps_of(fine, most);
  for (std::int64_t k = 0; k < steps; ++k) {
    const StepReport r = eol.step();
    fine.step();
    regular.step();
    const std::vector<Vec3> a = places(fine, points);
    double distance[2] = {0, 0};
    int which = 0;
    for (const Simulation* sim : {&eol, &regular}) {
      const std::vector<Vec3> b = places(*sim, points);
      for (std::size_t i = 0; i < points.size(); ++i)
        distance[which] += (a[i] - b[i]).norm() / static_cast<double>(points.size());
      plot.lines[static_cast<std::size_t>(which)].points.emplace_back(fine.time(), distance[which]);
      ++which;
    }
    if ((k + 1) % 10 == 0)
      out.rows.push_back({fmt::format("{:.2f}", fine.time()), fmt::format("{:.1f}", 1e3 * distance[0]),
                          fmt::format("{:.1f}", 1e3 * distance[1]), fmt::format("{}", r.extra.at("faces"))});
  }
  out.write(g_folder, "lores");
  plot.write(g_folder, "lores");
}

double resident_megabytes() {
  double pages = 0;
  if (std::FILE* f = std::fopen("/proc/self/statm", "r")) {
    double all = 0;
    if (std::fscanf(f, "%lf %lf", &all, &pages) != 2) pages = 0;
    std::fclose(f);
  }
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// Past the end of the scene too: what is scripted stays where it is then.
void long_runs(const std::vector<std::string>& scenes, std::int64_t steps) {
  Table out;
  out.head = {"scene",    "steps", "remeshed",          "with EOL",   "inverted",      "defects",
              "area off", "faces", "largest |v| [m/s]", "MB at 10 %", "MB at the end", "fallbacks"};
  for (const std::string& name : scenes) {
    Simulation sim = simulation_of(name);
    const auto charts = cloth::find_charts(sim.model());
    const double area = material_area(cloth::sheet_of(sim.model(), sim.state(), charts));
    std::int64_t done = 0, remeshed = 0, with_eol = 0, inverted = 0, defects = 0;
    double off = 0, faces = 0, speed = 0, early = 0;
    std::map<std::string, int> fallbacks;
    std::string failed;
    Index nodes = sim.model().nodes();
    for (; done < steps; ++done) {
      StepReport r;
      try {
        r = sim.step();
      } catch (const Error& e) {
        failed = e.what();
        break;
      }
      const Sheet sheet = cloth::sheet_of(sim.model(), sim.state(), charts);
      const std::vector<std::string> found = sheet_defects(sheet);
      if (!found.empty() && defects++ == 0) fmt::print("{} step {}: {}\n", name, done, found.front());
      inverted += r.inverted > 0;
      with_eol += r.extra["eol"] > 0;
      remeshed += sim.model().nodes() != nodes;
      nodes = sim.model().nodes();
      off = std::max(off, std::abs(material_area(sheet) / area - 1));
      faces = std::max(faces, r.extra["faces"]);
      for (const Vec3& v : sheet.v) speed = std::max(speed, v.norm());
      for (const auto& [what, count] : r.fallbacks) fallbacks[what] += count;
      if (done == steps / 10) early = resident_megabytes();
      if ((done + 1) % std::max<std::int64_t>(1, steps / 20) == 0) {
        fmt::print(
            "{}: {} steps, with EOL {}, inverted {}, defects {}, area off {:.1e}, faces {}, {:.0f} MB\n",
            name, done + 1, with_eol, inverted, defects, off, r.extra["faces"], resident_megabytes());
        std::fflush(stdout);
      }
    }
    std::string counted;
    for (const auto& [what, count] : fallbacks)
      counted += fmt::format("{}{} {}", counted.empty() ? "" : "; ", what, count);
    if (!failed.empty()) fmt::print("{}: {}\n", name, failed);
    out.rows.push_back({name, fmt::format("{}{}", done, failed.empty() ? "" : " (failed)"),
                        fmt::format("{}", remeshed), fmt::format("{}", with_eol), fmt::format("{}", inverted),
                        fmt::format("{}", defects), fmt::format("{:.1e}", off), fmt::format("{}", faces),
                        fmt::format("{:.2f}", speed), fmt::format("{:.0f}", early),
                        fmt::format("{:.0f}", resident_megabytes()), counted.empty() ? "none" : counted});
  }
  out.write(g_folder, "long");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("cloth over sharp edges: table and figures of chapter 2 of Weidner's dissertation");
  std::vector<std::string> parts{"table"},
      scenes{"edge-regular", "edge-irregular", "edge-adaptive", "edge-conformal", "edge-eol",
             "wire-regular", "wire-irregular", "wire-adaptive", "wire-conformal", "wire-eol",
             "nails",        "lores-regular",  "lores-eol"};
  std::int64_t steps = 0;
  int count = 1;
  app.add_option("parts", parts, "table, edge, lores, long");
  app.add_option("--scenes", scenes, "of the table");
  app.add_option("--steps", steps, "at most; 0: all");
  app.add_option("--threads", count);
  app.add_option("--output", g_folder, "folder for tables and figures");
  CLI11_PARSE(app, argc, argv);
  set_threads(count);
  try {
    for (const std::string& part : parts) {
      if (part == "table") table(scenes, steps);
      if (part == "edge") edge(steps);
      if (part == "lores") lores(steps);
      if (part == "long")
        long_runs(app.count("--scenes") ? scenes : std::vector<std::string>{"throw", "jaws", "turn"},
                  steps > 0 ? steps : 10000);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
