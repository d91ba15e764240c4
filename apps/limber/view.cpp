#include "commands.hpp"
#include "numbers.hpp"

#include <limber/core/error.hpp>
#include <limber/view/fields.hpp>
#include <limber/view/page.hpp>
#include <limber/view/process.hpp>
#include <limber/view/server.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

namespace limber {
namespace {

namespace fs = std::filesystem;

struct ViewOptions {
  std::string folder, output;
  bool serve = false, open = true, inside = true;
  int port = 0;
  double max_mb = 15;
};

volatile std::sig_atomic_t stopped = 0;

int serve(const ViewOptions& o) {
  if (!fs::is_directory(o.folder))
    throw Error(ErrorKind::kIo,
                fmt::format("{}: is not a folder; expected the output folder of a run", o.folder));
  // A run writes them in its first moments.
  if (!fs::exists(fs::path(o.folder) / "run.json") && !fs::exists(fs::path(o.folder) / "replay.lmr"))
    throw Error(ErrorKind::kIo,
                fmt::format("{}: is not the output folder of a run: it has neither run.json nor replay.lmr",
                            o.folder));
  const view::LiveServer server(o.folder, o.port);
  fmt::print("following {} at {}\nonly this machine can open it; Ctrl-C ends it\n", o.folder,
             server.address());
  std::fflush(stdout);
  if (o.open) view::open_in_browser(server.address());
  std::signal(SIGINT, [](int) { stopped = 1; });
  std::signal(SIGTERM, [](int) { stopped = 1; });
  while (!stopped) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return 0;
}

int make_page(const ViewOptions& o) {
  const fs::path recording = view::find_recording(o.folder);
  fs::path html = o.output.empty() ? recording.parent_path() / "index.html" : fs::path(o.output);
  view::PageOptions options;
  options.max_bytes = o.max_mb * 1e6;
  options.inside = o.inside;
  if (::isatty(STDERR_FILENO) == 1)
    options.progress = [](double share) {
      fmt::print(stderr, "\rwriting the page: {:.0f} %\x1b[K", 100 * share);
    };
  const view::PageReport report = view::write_page(recording, html, options);
  if (options.progress) fmt::print(stderr, "\r\x1b[K");
  for (const std::string& n : report.notices) fmt::print(stderr, "limber: {}\n", n);
  if (!report.failure.empty()) throw Error(ErrorKind::kIo, report.failure);
  fmt::print("{}: {} frames, {:.1f} MB, positions within {} m{}\n", html.string(), report.frames,
             static_cast<double>(report.bytes) / 1e6, view::short_number(report.error),
             report.inside ? "" : "; without the inside");
  if (o.open && !view::open_in_browser(fs::absolute(html).string()))
    fmt::print("open it in a browser: file://{}\n", fs::absolute(html).lexically_normal().string());
  return 0;
}

}  // namespace

void add_view_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("view", "Open the page of a run in the browser");
  auto o = std::make_shared<ViewOptions>();
  command->add_option("folder", o->folder, "Output folder of a run, or its replay.lmr")->required();
  command->add_option("-o,--output", o->output,
                      "Where to write the page (default: index.html in the folder)");
  command->add_flag("--serve", o->serve,
                    "Follow a run that is still going, at an address of this machine only");
  command->add_option("--port", o->port, "Port of --serve (default: any free one)")
      ->check(whole_number(0, 65535));
  command->add_flag("!--no-open", o->open, "Do not start the browser");
  command->add_flag("!--no-inside", o->inside, "Leave out what a cut would show");
  command->add_option("--max-mb", o->max_mb, "Largest size of the page [MB]")
      ->check(more_than_zero())
      ->capture_default_str();
  command->callback([&action, o] { action = [o] { return o->serve ? serve(*o) : make_page(*o); }; });
}

}  // namespace limber
