#include "commands.hpp"
#include "gallery.hpp"
#include "preparation.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <memory>

namespace limber {
namespace {

struct TrainOptions {
  std::string scene;
  std::vector<std::string> set;
  int threads = 0;
  bool quiet = false;
};

int train(const TrainOptions& o) {
  set_threads(o.threads);
  Preparation preparation = user_preparation(false);
  if (preparation.cache.empty())
    throw Error(ErrorKind::kUsage,
                "LIMBER_CACHE is empty, so that nothing could be kept; name a folder, or leave it unset");
  preparation.progress = [quiet = o.quiet](std::string_view what, double share) {
    if (!quiet) fmt::print(stderr, "{:3.0f} %  {}\n", 100 * share, what);
  };
  const auto start = std::chrono::steady_clock::now();
  const Simulation simulation(std::make_shared<const Scene>(load_scene(scene_path(o.scene), o.set)),
                              preparation);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{}: the method \"{}\" is prepared ({:.1f} s); what can be kept of it is in {}\n",
             simulation.scene().name, simulation.scene().method, seconds, preparation.cache.string());
  return 0;
}

}  // namespace

void add_train_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command =
      app.add_subcommand("train", "Train or prepare a scene's method now, and keep it for later runs");
  auto o = std::make_shared<TrainOptions>();
  command->add_option("scene", o->scene, "Scene file (JSON)")->required();
  command->add_option("--set", o->set, "Change a value of the scene: /method/poses=24");
  command->add_option("--threads", o->threads, "Threads; 0: all cores")->check(CLI::Range(0, 1024));
  command->add_flag("-q,--quiet", o->quiet, "Say nothing on the way");
  command->callback([&action, o] { action = [o] { return train(*o); }; });
}

}  // namespace limber
