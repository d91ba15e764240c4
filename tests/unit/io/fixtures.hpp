// The mesh files of tests/data/meshes.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace limber::test {

inline std::string fixture(const std::string& name) {
  return std::string(LIMBER_SOURCE_DIR) + "/tests/data/meshes/" + name;
}

// All mesh files there, in a fixed order.
inline std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture(""))) {
    const std::string e = entry.path().extension().string();
    if (e != ".py" && e != ".md" && e != ".geo") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace limber::test
