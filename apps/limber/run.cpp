#include "commands.hpp"
#include "gallery.hpp"
#include "numbers.hpp"
#include "preparation.hpp"
#include "progress.hpp"

#include <limber/core/build_info.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/advice.hpp>
#include <limber/sim/describe_run.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/recorder.hpp>
#include <limber/sim/simulation.hpp>
#include <limber/view/process.hpp>
#include <limber/view/server.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace limber {
namespace {

struct RunOptions {
  std::string scene, output, solver, checkpoint;
  std::vector<std::string> overrides;
  std::int64_t steps = -1, every = 0;
  double until = -1;
  int threads = 0;
  bool vtu = false, lossless = false, resume = false, overwrite = false, view = false, verbose = false,
       quiet = false, json = false, dump = false;
};

volatile std::sig_atomic_t stop_requested = 0;

// The first Ctrl-C lets the step finish; the second one ends the program as usual.
void catch_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of write(), not the end
}

std::string quoted(const std::string& word) {
  const std::string safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-=,:+";
  if (!word.empty() && word.find_first_not_of(safe) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// The command that goes on with this run.
std::string resume_command(const RunOptions& o) {
  std::string out = "limber run " + quoted(o.scene);
  if (!o.output.empty()) out += " -o " + quoted(o.output);
  for (const std::string& set : o.overrides) out += " --set " + quoted(set);
  if (!o.solver.empty()) out += " --solver " + quoted(o.solver);
  if (o.steps >= 0) out += fmt::format(" --steps {}", o.steps);
  if (o.until >= 0) out += fmt::format(" --until {}", o.until);
  if (o.every > 0) out += fmt::format(" --every {}", o.every);
  if (o.lossless) out += " --lossless";
  if (o.threads > 0) out += fmt::format(" --threads {}", o.threads);
  return out + " --resume";
}

std::int64_t target_of(const RunOptions& o, const Simulation& simulation) {
  if (o.steps >= 0) return o.steps;
  if (o.until >= 0) {
    const double steps = std::ceil(o.until / simulation.scene().h - 1e-6);
    if (steps > static_cast<double>(kMostSteps))
      throw Error(ErrorKind::kUsage,
                  fmt::format("--until {} s is {:.3g} steps of {} s; a run has at most {:.0e}", o.until,
                              steps, simulation.scene().h, static_cast<double>(kMostSteps)));
    return static_cast<std::int64_t>(steps);
  }
  return simulation.total_steps();
}

// A page in the browser that follows the run while it is going.
class LivePage {
 public:
  explicit LivePage(const std::filesystem::path& folder) : server_(folder) {
    fmt::print(stderr, "follow the run at {}\n", server_.address());
    opened_ = view::open_in_browser(server_.address());
    if (!opened_) fmt::print(stderr, "no browser could be started: open this address on this machine\n");
  }

  // A page that is open, or about to open, is still told how the run ended.
  ~LivePage() {
    server_.run_ended();
    using namespace std::chrono_literals;
    const bool hurry = stop_requested || std::uncaught_exceptions() > 0;
    for (auto left = (hurry ? 2s : 10s) / 50ms; left > 0 && !server_.delivered() && awaited(); --left)
      std::this_thread::sleep_for(50ms);
  }

 private:
  bool awaited() const {
    const std::optional<double> silence = server_.silence();
    return silence ? *silence < 5 : opened_;
  }

  view::LiveServer server_;
  bool opened_ = false;
};

struct Outcome {
  std::string status = "finished";
  double wall = 0;  // [s], of the loop
};

Outcome loop(Simulation& simulation, Recorder& recorder, RunFolder& folder, Progress& progress,
             std::int64_t target, const RunOptions& o) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto seconds = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  Outcome outcome;
  recorder.begin();
  while (simulation.steps_done() < target) {
    if (stop_requested) {
      outcome.status = "interrupted";
      break;
    }
    const auto start = Clock::now();
    const StepReport report = simulation.step();
    const double step_seconds = seconds(start);
    recorder.record(report, step_seconds);
    progress.step(simulation.steps_done(), simulation.time(), report, seconds(start));
    for (const std::string& notice : simulation.take_notices()) {
      folder.log(notice);
      progress.say(notice);
    }
    if (o.verbose)
      for (const auto& [name, count] : report.fallbacks)
        progress.say(fmt::format("step {}: fallback {} ({})", simulation.steps_done(), name, count));
  }
  recorder.finish(outcome.status, {}, [&](double share) { progress.page(share); });
  outcome.wall = seconds(begin);
  return outcome;
}

void print_summary(const RunOptions& o, const Outcome& outcome, const Simulation& simulation,
                   const Recorder& recorder, const RunFolder& folder, std::int64_t target) {
  const State& state = simulation.state();
  const Scene& scene = simulation.scene();
  if (o.json) {
    const Diagnostics& d = recorder.diagnostics();
    Json out{{"status", outcome.status},
             {"scene", scene.name},
             {"folder", folder.path().string()},
             {"steps", state.step},
             {"target_steps", target},
             {"t", state.t},
             {"hash", to_hex(hash_state(state))},
             {"frames", recorder.frames()},
             {"wall_s", outcome.wall},
             {"kinetic_energy", d.kinetic},
             {"elastic_energy", d.elastic},
             {"gravity_energy", d.gravity},
             {"max_displacement", d.max_displacement},
             {"timings", recorder.timings().json()}};
    out["fallbacks"] = Json::object();
    for (const auto& [name, count] : recorder.fallbacks()) out["fallbacks"][name] = count;
    if (!recorder.follows().empty()) out["follows"] = recorder.follows();
    if (outcome.status == "interrupted") out["resume"] = resume_command(o);
    fmt::print("{}\n", out.dump(2));
    return;
  }
  if (o.quiet) {
    if (outcome.status == "interrupted") fmt::print(stderr, "go on with: {}\n", resume_command(o));
    return;
  }
  std::uint64_t steps = 0;
  for (const Timings::Phase& p : recorder.timings().phases())
    if (p.name == "step") steps = p.count;
  const double step_total = recorder.timings().total("step");
  fmt::print(
      "{}: {} steps to t = {:.6g} s in {:.1f} s{}\n",
      outcome.status == "finished" ? "done" : "stopped at step " + fmt::format("{}/{}", state.step, target),
      steps, state.t, outcome.wall,
      steps > 0 ? fmt::format(", {:.3g} ms a step", 1e3 * step_total / static_cast<double>(steps)) : "");
  if (steps > 0) fmt::print("{}", recorder.timings().table(outcome.wall));
  if (!recorder.fallbacks().empty()) {
    std::string list;
    for (const auto& [name, count] : recorder.fallbacks())
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", name, count);
    fmt::print("fallbacks: {} (log.txt says in which steps)\n", list);
  }
  if (!recorder.follows().empty()) fmt::print("follows: {}\n", recorder.follows());
  fmt::print("results in {}\n", folder.path().string());
  fmt::print("  index.html   the page to open in a browser\n");
  if (scene.output.vtu)
    fmt::print("  run.pvd      {} frames for ParaView\n", recorder.frames());
  else
    fmt::print("  replay.lmr   {} frames; for ParaView: limber export {} --format vtu\n", recorder.frames(),
               quoted(folder.path().string()));
  fmt::print("  steps.csv    energies, momenta, counts and times of every step\n");
  if (outcome.status == "interrupted") fmt::print("go on with: {}\n", resume_command(o));
}

int run(RunOptions o) {
  // "run --resume scene.json": the file is the scene, not a checkpoint.
  if (o.scene.empty()) std::swap(o.scene, o.checkpoint);
  if (o.scene.empty())
    throw Error(ErrorKind::kUsage, "run: which scene? limber run --help shows how it is used");
  set_threads(o.threads);
  std::vector<std::string> overrides = o.overrides;
  if (!o.solver.empty()) overrides.push_back("/solver/backend=" + o.solver);
  if (o.vtu) overrides.push_back("/output/vtu=true");
  if (o.lossless) overrides.push_back("/output/lossless=true");
  if (o.every > 0) overrides.push_back(fmt::format("/output/every={}", o.every));
  const auto scene = std::make_shared<const Scene>(load_scene(scene_path(o.scene), overrides));
  Simulation simulation(scene, user_preparation(!o.quiet));
  const std::int64_t target = target_of(o, simulation);

  RunFolderRequest request;
  request.folder = o.output.empty() ? "out/" + scene->name : o.output;
  request.overwrite = o.overwrite;
  request.resume = o.resume;
  if (!o.checkpoint.empty()) request.checkpoint = o.checkpoint;
  catch_signals();
  RunFolder folder(*scene, request);
  if (folder.start()) simulation.restore(folder.start()->state);
  if (simulation.state().step > target)
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: the run is at step {} already, beyond the wanted end at step {}",
                            folder.path().string(), simulation.state().step, target));
  describe_run(simulation, o.overrides, target, folder);
  folder.log(fmt::format("limber {} ({}), {} threads, {}", version(), commit(), threads(), o.scene));

  Progress progress(!o.quiet, target, scene->h, 3 * static_cast<std::int64_t>(simulation.model().nodes()));
  for (const std::string& notice : folder.notices()) progress.say(notice);
  for (const std::string& line : advice(simulation.model())) {
    progress.say("note: " + line);
    folder.log(line);
  }
  for (const std::string& notice : simulation.take_notices()) {
    progress.say("note: " + notice);
    folder.log(notice);
  }
  Recorder recorder(folder, simulation, target);
  for (const std::string& notice : recorder.notices()) progress.say(notice);
  std::optional<LivePage> page;
  if (o.view) page.emplace(folder.path());
  Outcome outcome;
  try {
    outcome = loop(simulation, recorder, folder, progress, target, o);
  } catch (const Error& e) {
    progress.clear();
    if (e.kind() == ErrorKind::kIo)
      throw Error(e.kind(),
                  fmt::format("{}\nwhat was recorded up to step {} stays readable in {}; make room and go on "
                              "with: {}",
                              e.what(), simulation.state().step, folder.path().string(), resume_command(o)));
    folder.log(e.what());
    recorder.finish("failed", e.what());
    if (o.dump) dump_failure(folder, simulation, e.what());
    throw Error(e.kind(),
                fmt::format("{}\nwhat was recorded before is in {}{}", e.what(), folder.path().string(),
                            o.dump ? "; failure.lmc and failure.json hold the state before the step"
                                   : "; --dump-on-failure also saves the state before the step"));
  }
  progress.clear();
  print_summary(o, outcome, simulation, recorder, folder, target);
  return 0;
}

}  // namespace

int run_scene(const std::string& scene, const std::string& output, bool view, bool quiet) {
  RunOptions o;
  o.scene = scene;
  o.output = output;
  o.overwrite = true;
  o.view = view;
  o.quiet = quiet;
  return run(std::move(o));
}

void add_run_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("run", "Simulate a scene and record the run");
  auto o = std::make_shared<RunOptions>();
  command->add_option("scene", o->scene, "Scene file (JSON)");
  command->add_option("-o,--output", o->output, "Run folder (default: out/NAME)");
  command->add_option("--set", o->overrides, "Change a value of the scene: /method/beta=0.5")
      ->type_name("POINTER=VALUE");
  CLI::Option* steps = command
                           ->add_option("--steps", o->steps,
                                        "End after this many steps, counted from the beginning of the run")
                           ->check(whole_number(0, kMostSteps));
  command->add_option("--until", o->until, "End at this time [s]")->check(at_least_zero())->excludes(steps);
  command->add_option("--every", o->every, "Record a frame every this many steps")
      ->check(whole_number(1, 1'000'000'000));
  command
      ->add_option("--resume", o->checkpoint,
                   "Go on from the newest checkpoint of the run folder, or from this one")
      ->expected(0, 1)
      ->type_name("[CHECKPOINT]");
  command->add_flag("--vtu", o->vtu, "Write frames for ParaView too (/output/vtu)");
  command->add_flag("--lossless", o->lossless, "Keep 64-bit numbers in the recording too (/output/lossless)");
  command->add_flag("--overwrite", o->overwrite, "Replace whatever run the folder holds");
  command
      ->add_option("--threads", o->threads, "Threads; the results do not depend on it (default: all cores)")
      ->check(whole_number(1, kMostThreads));
  command->add_option("--solver", o->solver, "Sparse Cholesky: auto, native or cholmod");
  CLI::Option* quiet = command->add_flag("-q,--quiet", o->quiet, "Say nothing but errors");
  command->add_flag("-v,--verbose", o->verbose, "Say more")->excludes(quiet);
  command->add_flag("--view", o->view, "Follow the run in the browser while it is going");
  command->add_flag("--json", o->json, "Print the summary as JSON");
  command->add_flag("--dump-on-failure", o->dump, "When a step fails, save the state before it and a report");
  command->callback([&action, o, command] {
    o->resume = command->count("--resume") > 0;
    action = [o] { return run(*o); };
  });
}

}  // namespace limber
