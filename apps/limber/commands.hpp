// The sub-commands, one file each. Adding a command: declare it here, name it in command.cpp.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace limber {

// Adds the sub-command's options to `app`. When the user chose it, `action` becomes the function that does
// the work; its result is the exit code. Errors are thrown as limber::Error.
void add_run_command(CLI::App& app, std::function<int()>& action);
void add_live_command(CLI::App& app, std::function<int()>& action);
void add_check_command(CLI::App& app, std::function<int()>& action);
void add_list_command(CLI::App& app, std::function<int()>& action);
void add_info_command(CLI::App& app, std::function<int()>& action);
void add_schema_command(CLI::App& app, std::function<int()>& action);
void add_mesh_command(CLI::App& app, std::function<int()>& action);
void add_view_command(CLI::App& app, std::function<int()>& action);
void add_compare_command(CLI::App& app, std::function<int()>& action);
void add_render_command(CLI::App& app, std::function<int()>& action);
void add_export_command(CLI::App& app, std::function<int()>& action);
void add_train_command(CLI::App& app, std::function<int()>& action);
void add_completion_command(CLI::App& app, std::function<int()>& action);
void add_man_command(CLI::App& app, std::function<int()>& action);
void add_bench_command(CLI::App& app, std::function<int()>& action);
void add_jelly_command(CLI::App& app, std::function<int()>& action);

// `limber run SCENE -o OUTPUT --overwrite`; its exit code.
int run_scene(const std::string& scene, const std::string& output, bool view, bool quiet);

}  // namespace limber
