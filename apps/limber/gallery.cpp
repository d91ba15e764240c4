#include "gallery.hpp"

#include <algorithm>

namespace limber {

namespace fs = std::filesystem;

fs::path gallery_root() {
  std::error_code ec;
  if (fs::is_directory("scenes", ec)) return ".";
  for (fs::path at = fs::read_symlink("/proc/self/exe", ec).parent_path(); at.has_relative_path();
       at = at.parent_path()) {
    if (fs::is_directory(at / "scenes", ec) && fs::exists(at / "limber.schema.json", ec)) return at;
    if (fs::is_directory(at / "share/limber/scenes", ec)) return at / "share/limber";
  }
  return {};
}

std::vector<std::string> gallery_scenes() {
  std::vector<std::string> names;
  const fs::path root = gallery_root();
  if (root.empty()) return names;
  for (const auto& entry : fs::recursive_directory_iterator(root / "scenes"))
    if (entry.path().extension() == ".json")
      names.push_back(entry.path().lexically_relative(root).generic_string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string scene_path(const std::string& file) {
  std::error_code ec;
  if (fs::exists(file, ec) || !file.starts_with("scenes/")) return file;
  const fs::path root = gallery_root();
  const fs::path there = root / file;
  return !root.empty() && fs::exists(there, ec) ? there.string() : file;
}

}  // namespace limber
