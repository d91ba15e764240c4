#include "commands.hpp"
#include "gallery.hpp"

#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/scene/spec.hpp>
#include <limber/scene/suggest.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

namespace limber {
namespace {

namespace fs = std::filesystem;

void print_section(const char* title, const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  fmt::print("{}\n", title);
  for (const auto& [name, text] : rows) fmt::print("  {:<{}}  {}\n", name, width, text);
  fmt::print("\n");
}

// A scene's description without checking the rest of it: a scene that is broken is still listed.
std::string description_of(const fs::path& file) {
  try {
    const LoadResult loaded = try_load_scene(file.string());
    if (!loaded.problems.empty())
      return fmt::format("({}: {})", loaded.problems[0].pointer, loaded.problems[0].message);
    return loaded.scene.description;
  } catch (const std::exception& e) {
    return fmt::format("({})", e.what());
  }
}

std::vector<std::pair<std::string, std::string>> scenes() {
  std::vector<std::pair<std::string, std::string>> rows;
  const fs::path root = gallery_root();
  for (const std::string& name : gallery_scenes()) rows.emplace_back(name, description_of(root / name));
  return rows;
}

std::vector<std::pair<std::string, std::string>> method_rows() {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Method* m : methods()) {
    rows.emplace_back(m->spec.name, m->spec.summary);
    rows.emplace_back("", "can: " + joined(capability_names(m->spec.can)));
  }
  return rows;
}

}  // namespace

void add_list_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("list", "List methods, materials, shapes and scenes");
  auto what = std::make_shared<std::string>();
  command->add_option("what", *what, "Only these: methods, materials, fibres, shapes or scenes")
      ->check(CLI::IsMember({"methods", "materials", "fibres", "shapes", "scenes", "scene-names"}));
  command->callback([&action, what] {
    action = [what] {
      if (*what == "scene-names") {  // for the shells' completion
        for (const std::string& name : gallery_scenes()) fmt::print("{}\n", name);
        return 0;
      }
      const auto wanted = [&](const char* name) { return what->empty() || *what == name; };
      if (wanted("methods")) print_section("methods (/method/type)", method_rows());
      if (wanted("materials"))
        print_section("materials (/bodies/*/material/model)", value_meanings("/bodies/*/material/model"));
      if (wanted("fibres"))
        print_section("fibres (/bodies/*/material/fibre/model)", value_meanings("#fibre/model"));
      if (wanted("shapes"))
        print_section("shapes (/bodies/*/mesh/shape)", value_meanings("/bodies/*/mesh/shape"));
      if (wanted("scenes")) print_section("scenes (limber run FILE, from any folder)", scenes());
      return 0;
    };
  });
}

}  // namespace limber
