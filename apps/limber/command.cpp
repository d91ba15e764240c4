#include "commands.hpp"
#include "help.hpp"

#include <limber/command.hpp>
#include <limber/core/build_info.hpp>
#include <limber/core/cache.hpp>
#include <limber/core/error.hpp>
#include <limber/core/instruction_set.hpp>
#include <limber/scene/suggest.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

// "limber rnu" -> `limber: there is no command "rnu", did you mean "run"?`
int wrong_usage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  const bool known = argc > 1 && std::find(names.begin(), names.end(), argv[1]) != names.end();
  if (argc > 1 && argv[1][0] != '-' && !known) {
    std::fprintf(stderr, "limber: there is no command \"%s\"%s\n", argv[1],
                 limber::did_you_mean_one_of(argv[1], names).c_str());
  } else {
    std::fprintf(stderr, "limber: %s\nlimber %s--help shows how it is used\n", error.what(),
                 known ? (std::string(argv[1]) + " ").c_str() : "");
  }
  return static_cast<int>(limber::ErrorKind::kUsage);
}

}  // namespace

int limber::command(int argc, char** argv) {
  CLI::App app{"Limber simulates soft bodies with far fewer unknowns than their meshes have."};
  app.name("limber");
  app.set_version_flag("--version", version());
  app.footer("Exit codes: 0 done, 1 wrong usage, 2 invalid scene or mesh, 3 simulation failed, 4 files.");
  app.require_subcommand(0, 1);
  std::function<int()> action;
  for (const auto add : {add_run_command, add_live_command, add_train_command, add_view_command,
                         add_compare_command, add_render_command, add_export_command, add_jelly_command,
                         add_check_command, add_list_command, add_info_command, add_mesh_command,
                         add_schema_command, add_bench_command, add_completion_command, add_man_command})
    add(app, action);
  use_plain_help(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return wrong_usage(app, error, argc, argv);
  }
  if (!action) {
    std::fputs(app.help().c_str(), stdout);
    return argc == 1 ? 0 : static_cast<int>(ErrorKind::kUsage);
  }
  try {
    // LIMBER_KERNELS=avx2 takes the kernels of that instruction set instead of the machine's best.
    if (const char* kernels = std::getenv("LIMBER_KERNELS")) choose_instruction_set(kernels);
    set_cache_folder(user_cache_folder());
    return action();
  } catch (const Error& error) {
    std::fprintf(stderr, "limber: %s\n", error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    std::fputs("limber: out of memory; the mesh is too large for this machine\n", stderr);
    return static_cast<int>(ErrorKind::kSimulation);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "limber: internal error, please report it: %s\n", error.what());
    return static_cast<int>(ErrorKind::kSimulation);
  }
}
