// Scene files: text, includes, overrides, checks, and the plain data that comes out.
#pragma once

#include <limber/scene/json_text.hpp>
#include <limber/scene/scene.hpp>

#include <span>
#include <string>
#include <vector>

namespace limber {

// Steps that a run may have: more would take centuries, and numbers of steps stay exact in a double.
inline constexpr std::int64_t kMostSteps = 1'000'000'000'000;

// What reading a scene gave; `scene` only counts when there are no problems.
struct LoadResult {
  Scene scene;
  std::vector<Problem> problems;
};

// Reads a scene file. `overrides`: "/method/beta=0.5", a JSON pointer and a JSON value or a bare text; they
// go through the same checks. Throws Error(kIo) only when the file itself cannot be read.
LoadResult try_load_scene(const std::string& path, std::span<const std::string> overrides = {});
// The same for a text; `path` names it in messages, and files are relative to its folder.
LoadResult try_read_scene(std::string_view text, const std::string& path,
                          std::span<const std::string> overrides = {});

// Everything that is wrong with a scene file, in the order of the file; empty when it is good.
std::vector<Problem> check_scene(const std::string& path, std::span<const std::string> overrides = {});

// Throws Error(kInput) with all problems, one per line.
Scene load_scene(const std::string& path, std::span<const std::string> overrides = {});
// The same for a text.
Scene read_scene(std::string_view text, const std::string& path, std::span<const std::string> overrides = {});

// The scene with another value (JSON) at a pointer, as an event "set" gives it one during a run. Throws
// Error(kInput) when that is no scene, or not a value that may change.
Scene set_value(const Scene& scene, const std::string& pointer, const std::string& value);

// A selection from JSON that has passed the checks (method options hold some). Keys that are no part of a
// selection ("body") are skipped.
Selection read_selection(const nlohmann::json& value, const std::string& where = {});

// The resolved scene with its file names rewritten to be relative to another folder, so that it can be run
// from there.
Json rebase_files(const Scene& scene, const std::string& folder);

}  // namespace limber
