#include "commands.hpp"

#include <limber/core/error.hpp>
#include <limber/view/export.hpp>
#include <limber/view/page.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <memory>

namespace limber {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string folder, output;
  view::ExportOptions run;
};

int export_command(ExportOptions o) {
  const fs::path recording = view::find_recording(o.folder);
  const ReplayReader reader(recording);
  if (const std::string damage = reader.damage(); !damage.empty())
    fmt::print(stderr, "limber: {}: {}\n", o.folder, damage);
  const bool file = o.run.format != "obj" && o.run.format != "ply" && o.run.format != "vtu";
  fs::path target = o.output;
  if (target.empty()) target = recording.parent_path() / (file ? "run." + o.run.format : o.run.format);
  if (isatty(STDERR_FILENO))
    o.run.progress = [](Index done, Index total) {
      fmt::print(stderr, "\rframe {}/{}{}", done, total, done == total ? "\n" : "");
    };
  for (const fs::path& p : view::export_run(reader, o.run, target))
    fmt::print("{}{}\n", p.string(), !file && p.extension() != ".pvd" ? " and following" : "");
  return 0;
}

}  // namespace

void add_export_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("export", "Write a run in other programs' formats");
  auto o = std::make_shared<ExportOptions>();
  command->add_option("folder", o->folder, "Output folder of a run, or its replay.lmr")->required();
  command
      ->add_option("--format", o->run.format,
                   "obj, ply (surface per frame), vtu (volume, with run.pvd), glb (animated), pc2, mdd "
                   "(point caches), "
                   "npz (NumPy)")
      ->required()
      ->check(CLI::IsMember({"obj", "ply", "vtu", "glb", "pc2", "mdd", "npz"}));
  command->add_option("-o,--output", o->output,
                      "Folder (obj, ply, vtu) or file (others); default: in the run's folder");
  command->add_option("--fields", o->run.fields, "Only these fields, separated by commas")->delimiter(',');
  command->add_option("--body", o->run.body, "Only this body");
  command->add_flag("--each-body", o->run.each_body, "Every body for itself");
  command->add_option("--first", o->run.first, "First frame")->capture_default_str();
  command->add_option("--last", o->run.last, "Last frame (default: the last one)");
  command->add_option("--every", o->run.every, "Every k-th frame")->capture_default_str();
  command->add_flag("--compress", o->run.compress, "Smaller vtu and npz files, slower to write");
  command->callback([&action, o] { action = [o] { return export_command(*o); }; });
}

}  // namespace limber
