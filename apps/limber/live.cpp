#include "commands.hpp"
#include "gallery.hpp"
#include "live_server.hpp"
#include "live_session.hpp"
#include "numbers.hpp"
#include "preparation.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/scene/load.hpp>
#include <limber/view/process.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

namespace limber {
namespace {

struct HoldOptions {
  std::string scene, folder = ".";
  std::vector<std::string> overrides;
  int port = 0, threads = 0;
  double speed = 1;
  bool open = true, paused = false;
};

volatile std::sig_atomic_t let_go = 0;

int hold_scene(const HoldOptions& o) {
  set_threads(o.threads);
  const auto scene = std::make_shared<const Scene>(load_scene(scene_path(o.scene), o.overrides));
  LiveSession session(scene, user_preparation(true), {o.folder, o.speed, !o.paused});
  const HoldServer server(session, scene->name, o.port);
  fmt::print("{} runs at {}\nonly this machine can open it; Ctrl-C ends it\n", scene->name, server.address());
  std::fflush(stdout);
  if (o.open) view::open_in_browser(server.address());
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { let_go = 1; });
  while (!let_go) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return 0;
}

}  // namespace

void add_live_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("live", "Run a scene in the browser, and take hold of it there");
  auto o = std::make_shared<HoldOptions>();
  command->add_option("scene", o->scene, "Scene file (JSON)")->required();
  command->add_option("--set", o->overrides, "Change a value of the scene: /method/beta=0.5")
      ->type_name("POINTER=VALUE");
  command->add_option("-o,--output", o->folder, "Folder for scenes that the page saves (default: this one)")
      ->check(CLI::ExistingDirectory);
  command->add_option("--speed", o->speed, "Simulated seconds per second")->check(CLI::Range(0.001, 100.0));
  command->add_option("--port", o->port, "Port on this machine (default: any that is free)")
      ->check(whole_number(0, 65535));
  command->add_option("--threads", o->threads, "Threads (default: all cores)")
      ->check(whole_number(1, kMostThreads));
  command->add_flag("--paused", o->paused, "Wait for the page to start it");
  command->add_flag("!--no-open", o->open, "Do not start a browser");
  command->callback([&action, o] { action = [o] { return hold_scene(*o); }; });
}

}  // namespace limber
