// Any text is a scene or a list of problems; nothing crashes, hangs or escapes as another exception.
#include <limber/scene/load.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const limber::LoadResult first = limber::try_read_scene(text, "fuzz.json");
  if (!first.problems.empty()) return 0;
  // A good scene resolves to a good scene that means the same.
  const std::string resolved = first.scene.resolved->dump();
  const limber::LoadResult second = limber::try_read_scene(resolved, "fuzz.json");
  if (!second.problems.empty() || second.scene.resolved->dump() != resolved) std::abort();
  return 0;
}
