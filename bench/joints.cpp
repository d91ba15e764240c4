// Mechanisms: BISP against SP, cost over the length of a chain, torque of the walker over friction.
//   bench_joints friction  chain.json by bisp and by sp, alternating in one run
//   bench_joints agreement how far bisp and sp differ over step and tolerance
//   bench_joints length    frictionless chains of up to 1,000 links: time per step
//   bench_joints klann     torque and work of the motors over the friction of the pins
// Writes joints-<what>.csv into the folder given by --out and a Markdown table to standard output.
#include <limber/methods/methods.hpp>
#include <limber/rigid/bisp.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

using namespace limber;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::shared_ptr<const Scene> scene(const std::string& name, const std::vector<std::string>& overrides) {
  return std::make_shared<const Scene>(
      load_scene(LIMBER_SOURCE_DIR "/scenes/joints/" + name + ".json", overrides));
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

struct Run {
  std::unique_ptr<Simulation> simulation;
  std::vector<double> times;  // [s] per step
  double iterations = 0;
  int unfinished = 0;  // steps whose friction did not converge

  void step() {
    StepReport report;
    times.push_back(seconds_of([&] { report = simulation->step(); }));
    iterations += static_cast<double>(report.iterations);
    unfinished += report.fallbacks.count("friction_not_converged") ? 1 : 0;
  }
  double total() const { return std::accumulate(times.begin(), times.end(), 0.0); }
};

// Both methods step in turn, so that whatever else the machine does falls on both.
void friction(const std::string& folder, double end) {
  fmt::print(
      "| scene | method | tolerance | ms per step, median | mean | contact solves per step | not converged | "
      "difference of the joint angles at {} s [rad] |\n|---|---|---|---|---|---|---|---|\n",
      end);
  std::ofstream csv(folder + "/joints-friction.csv");
  csv << "scene,method,tolerance,median_ms,mean_ms,iterations,not_converged,difference_rad\n";
  for (const std::string name : {"chain", "chain-2r"})
    for (const std::string tolerance : {"1e-3", "1e-6"}) {
      std::vector<Run> runs;
      const std::vector<std::vector<std::string>> variants{
          {"/method/friction=bisp"},
          {"/method/friction=bisp", "/method/unknowns=tangents"},
          {"/method/friction=sp"}};
      for (std::vector<std::string> o : variants) {
        o.push_back("/method/tolerance=" + tolerance);
        runs.push_back({std::make_unique<Simulation>(scene(name, o)), {}, 0, 0});
      }
      const int steps = static_cast<int>(std::lround(end / runs[0].simulation->scene().h));
      for (int k = 0; k < steps; ++k)
        for (Run& r : runs) r.step();
      const char* names[] = {"bisp", "bisp, all tangents", "sp"};
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const Run& r = runs[i];
        const double difference =
            (r.simulation->state().joint_q - runs[0].simulation->state().joint_q).cwiseAbs().maxCoeff();
        const double n = static_cast<double>(r.times.size());
        fmt::print("| {} | {} | {} | {:.3f} | {:.3f} | {:.1f} | {} of {} | {:.2g} |\n", name, names[i],
                   tolerance, 1e3 * median(r.times), 1e3 * r.total() / n, r.iterations / n, r.unfinished,
                   r.times.size(), difference);
        csv << fmt::format("{},{},{},{},{},{},{},{}\n", name, names[i], tolerance, 1e3 * median(r.times),
                           1e3 * r.total() / n, r.iterations / n, r.unfinished, difference);
      }
      fmt::print("| {} | **sp / bisp** | {} | **{:.1f}** | **{:.1f}** | | | |\n", name, tolerance,
                 median(runs[2].times) / median(runs[0].times), runs[2].total() / runs[0].total());
    }
}

// The largest difference between bisp and sp over the run, beside the error that either makes by its step.
void agreement(const std::string& folder, double end) {
  fmt::print(
      "| step [ms] | tolerance | bisp - sp [rad] | centre of mass [mm] | bisp, error of its step [mm] | "
      "sp, error of its step [mm] | sp not settled |\n|---|---|---|---|---|---|---|\n");
  std::ofstream csv(folder + "/joints-agreement.csv");
  csv << "step,tolerance,difference_rad,difference_m,bisp_error_m,sp_error_m,sp_not_settled,steps\n";
  struct Path {
    std::vector<VecX> q;
    std::vector<Vec3> center;  // one entry per 5 ms
    int unfinished = 0, steps = 0;
  };
  const auto path = [&](const char* friction, int divide, const char* tolerance) {
    Run r{std::make_unique<Simulation>(scene("chain", {std::string("/method/friction=") + friction,
                                                       std::string("/method/tolerance=") + tolerance,
                                                       fmt::format("/time/step={}", 5e-3 / divide)})),
          {},
          0,
          0};
    Path p;
    for (int k = 1; k <= std::lround(end / 5e-3) * divide; ++k) {
      r.step();
      if (k % divide) continue;
      p.q.push_back(r.simulation->state().joint_q);
      p.center.push_back(measure(r.simulation->model(), r.simulation->state(), {}).center_of_mass);
    }
    p.unfinished = r.unfinished;
    p.steps = static_cast<int>(r.times.size());
    return p;
  };
  const auto apart = [](const Path& a, const Path& b) {
    double angle = 0, center = 0;
    for (std::size_t k = 0; k < a.q.size(); ++k) {
      angle = std::max(angle, (a.q[k] - b.q[k]).cwiseAbs().maxCoeff());
      center = std::max(center, (a.center[k] - b.center[k]).norm());
    }
    return std::pair(angle, center);
  };
  for (const char* tolerance : {"1e-3", "1e-6"}) {
    std::map<int, std::pair<Path, Path>> paths;
    for (const int divide : {1, 2, 4, 8})
      paths[divide] = {path("bisp", divide, tolerance), path("sp", divide, tolerance)};
    for (const int divide : {1, 2, 4}) {
      const auto& [bisp, sp] = paths[divide];
      const auto [angle, center] = apart(bisp, sp);
      // The error of a first-order step h from the solutions at h and h / 2.
      const double own = 2 * apart(bisp, paths[2 * divide].first).second;
      const double other = 2 * apart(sp, paths[2 * divide].second).second;
      fmt::print("| {} | {} | {:.2g} | {:.2g} | {:.2g} | {:.2g} | {} of {} |\n", 5.0 / divide, tolerance,
                 angle, 1e3 * center, 1e3 * own, 1e3 * other, sp.unfinished, sp.steps);
      csv << fmt::format("{},{},{},{},{},{},{},{}\n", 5e-3 / divide, tolerance, angle, center, own, other,
                         sp.unfinished, sp.steps);
    }
  }
}

rigid::Mechanism chain(int n) {
  std::vector<rigid::Link> links;
  std::vector<rigid::Joint> joints;
  for (int i = 0; i < n; ++i) {
    rigid::Link link;
    link.name = "l" + std::to_string(i);
    link.inertia =
        rigid::moved(rigid::box_inertia(Vec3(0.1, 0.02, 0.02), 1000), {Mat3::Identity(), Vec3(0.05, 0, 0)});
    rigid::Joint joint;
    joint.name = "j" + std::to_string(i);
    joint.parent = i ? links.back().name : "world";
    joint.child = link.name;
    joint.frame.p = Vec3(i ? 0.1 : 0, 0, 0);
    joint.axis = i % 2 ? Vec3::UnitY() : Vec3::UnitZ();
    links.push_back(link);
    joints.push_back(joint);
  }
  return rigid::make_mechanism(links, joints);
}

// The exact step, and the published one with explicit quadratic terms, in turn.
void length(const std::string& folder) {
  fmt::print("| links | ms per step | µs per link | explicit terms, ms | ratio |\n|---|---|---|---|---|\n");
  std::ofstream csv(folder + "/joints-length.csv");
  csv << "links,ms_per_step,us_per_link,published_ms\n";
  for (const int n : {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}) {
    const rigid::Mechanism m = chain(n);
    const rigid::JointState start{rigid::initial_positions(m), rigid::initial_velocities(m), {}};
    std::array<rigid::JointState, 2> state{start, start};
    std::array<std::vector<double>, 2> times;
    const int repeats = std::max(20, 20000 / n);
    for (int k = 0; k < repeats; ++k)
      for (std::size_t form = 0; form < 2; ++form) {
        rigid::StepSettings settings;
        settings.h = 1e-4;
        settings.published = form == 1;
        times[form].push_back(
            seconds_of([&] { rigid::step_bisp(m, {}, {}, {}, k * settings.h, settings, state[form]); }));
      }
    const double t = median(times[0]), published = median(times[1]);
    fmt::print("| {} | {:.4f} | {:.3f} | {:.4f} | {:.2f} |\n", n, 1e3 * t, 1e6 * t / n, 1e3 * published,
               t / published);
    csv << fmt::format("{},{},{},{}\n", n, 1e3 * t, 1e6 * t / n, 1e3 * published);
  }
}

void klann(const std::string& folder, double end) {
  fmt::print(
      "| μ of the pins | mean torque [N m] | largest | smallest | work of the motors [J] | negative part [J] "
      "| "
      "distance [m] | loop gap, largest [m] | not settled | ms per step "
      "|\n|---|---|---|---|---|---|---|---|---|---|\n");
  std::ofstream csv(folder + "/joints-klann.csv");
  csv << "mu,t,torque_front,torque_back,power,x,y\n";
  for (const char* mu : {"0", "0.2", "0.4", "0.6", "0.8"}) {
    Simulation s(scene("klann", {std::string("/method/mu=") + mu}));
    const double h = s.scene().h;
    const int steps = static_cast<int>(std::lround(end / h));
    double sum = 0, high = -1e9, low = 1e9, work = 0, negative = 0, gap = 0, time = 0;
    int count = 0, unfinished = 0;
    Vec3 start = Vec3::Zero(), now = start;
    for (int k = 0; k < steps; ++k) {
      StepReport r;
      time += seconds_of([&] { r = s.step(); });
      const double torque = r.extra.at("torque/front-motor") + r.extra.at("torque/back-motor");
      const double power = r.extra.at("power/motors");
      unfinished += r.fallbacks.count("friction_not_converged") ? 1 : 0;
      now = measure(s.model(), s.state(), {}).center_of_mass;
      csv << fmt::format("{},{},{},{},{},{},{}\n", mu, s.state().t, r.extra.at("torque/front-motor"),
                         r.extra.at("torque/back-motor"), power, now[0], now[1]);
      gap = std::max(gap, r.extra.at("loop_error"));
      if (s.state().t < 1) {  // the motors have reached their speed
        start = now;
        continue;
      }
      sum += torque;
      high = std::max(high, torque);
      low = std::min(low, torque);
      work += h * power;
      negative += h * std::min(0.0, power);
      ++count;
    }
    fmt::print("| {} | {:.3f} | {:.2f} | {:.2f} | {:.1f} | {:.2f} | {:.2f} | {:.1e} | {} of {} | {:.2f} |\n",
               mu, sum / count, high, low, work, negative, (now - start).norm(), gap, unfinished, steps,
               1e3 * time / steps);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Mechanisms and friction inside joints");
  app.require_subcommand(1);
  std::string folder = "out/bench";
  double end = 0;
  app.add_option("--out", folder, "Folder for the tables");
  app.add_option("--end", end, "Simulated time [s]");
  app.add_subcommand("friction", "BISP against SP")->callback([&] {
    std::filesystem::create_directories(folder);
    friction(folder, end > 0 ? end : 2);
  });
  app.add_subcommand("agreement", "How far BISP and SP differ")->callback([&] {
    std::filesystem::create_directories(folder);
    agreement(folder, end > 0 ? end : 1);
  });
  app.add_subcommand("length", "Cost over the length of a chain")->callback([&] {
    std::filesystem::create_directories(folder);
    length(folder);
  });
  app.add_subcommand("klann", "Torque over friction")->callback([&] {
    std::filesystem::create_directories(folder);
    klann(folder, end > 0 ? end : 20);
  });
  CLI11_PARSE(app, argc, argv);
  return 0;
}
