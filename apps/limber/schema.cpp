#include "commands.hpp"

#include <limber/scene/spec.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

namespace limber {

void add_schema_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("schema", "Print the JSON Schema of scene files (for editors)");
  auto reference = std::make_shared<bool>(false);
  command->add_flag("--reference", *reference, "Print the reference page (Markdown) instead");
  command->callback([&action, reference] {
    action = [reference] {
      std::fputs((*reference ? scene_reference() : json_schema()).c_str(), stdout);
      return 0;
    };
  });
}

}  // namespace limber
