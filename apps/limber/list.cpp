#include "commands.hpp"

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

// The gallery: ./scenes, or the one of the source tree that the program was built in.
fs::path gallery() {
  std::error_code ec;
  if (fs::is_directory("scenes", ec)) return "scenes";
  for (fs::path at = fs::read_symlink("/proc/self/exe", ec).parent_path(); at.has_relative_path();
       at = at.parent_path())
    if (fs::is_directory(at / "scenes", ec) && fs::exists(at / "limber.schema.json", ec))
      return at / "scenes";
  return {};
}

// A scene's description without checking the rest of it: a scene that is broken is still listed.
std::string description_of(const fs::path& file) {
  try {
    const LoadResult loaded = try_load_scene(file.string());
    if (!loaded.problems.empty()) return "(" + to_string(loaded.problems[0]) + ")";
    return loaded.scene.description;
  } catch (const std::exception& e) {
    return fmt::format("({})", e.what());
  }
}

std::vector<std::pair<std::string, std::string>> scenes() {
  std::vector<fs::path> files;
  const fs::path folder = gallery();
  if (folder.empty()) return {};
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::pair<std::string, std::string>> rows;
  for (const fs::path& file : files) rows.emplace_back(file.string(), description_of(file));
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
      ->check(CLI::IsMember({"methods", "materials", "fibres", "shapes", "scenes"}));
  command->callback([&action, what] {
    action = [what] {
      const auto wanted = [&](const char* name) { return what->empty() || *what == name; };
      if (wanted("methods")) print_section("methods (/method/type)", method_rows());
      if (wanted("materials"))
        print_section("materials (/bodies/*/material/model)", value_meanings("/bodies/*/material/model"));
      if (wanted("fibres"))
        print_section("fibres (/bodies/*/material/fibre/model)", value_meanings("#fibre/model"));
      if (wanted("shapes"))
        print_section("shapes (/bodies/*/mesh/shape)", value_meanings("/bodies/*/mesh/shape"));
      if (wanted("scenes")) print_section("scenes (limber run FILE)", scenes());
      return 0;
    };
  });
}

}  // namespace limber
