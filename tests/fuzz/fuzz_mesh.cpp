// All mesh readers. The format is guessed from the first bytes, so that mesh files are seeds as they are;
// TetGen's two files are joined by the character 0x1e.
#include <limber/core/error.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/mesh/check.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

const char* guess_name(std::string_view data) {
  const auto starts = [&](std::string_view s) { return data.starts_with(s); };
  if (starts("$")) return "f.msh";
  if (starts("Mesh")) return "f.mesh";
  if (starts("<")) return "f.vtu";
  if (starts("# vtk")) return "f.vtk";
  if (starts("ply")) return "f.ply";
  if (starts("OFF") || starts("COFF")) return "f.off";
  if (data.find('\x1e') != std::string_view::npos) return "f.node";
  if (starts("v") && data.find("\nt ") != std::string_view::npos) return "f.tobj";
  if (starts("v") || starts("#") || starts("o ")) return "f.obj";
  return "f.stl";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view data(reinterpret_cast<const char*>(bytes), size);
  const std::string name = guess_name(data);
  const std::size_t split = name == "f.node" ? data.find('\x1e') : data.size();
  const std::string_view second = split < data.size() ? data.substr(split + 1) : std::string_view();
  try {
    const limber::MeshFile file = limber::parse_mesh(name, data.substr(0, split), second);
    // What is accepted must be sound.
    const bool usable =
        file.has_tets() ? limber::check_mesh(file.tets()).usable()
                        : limber::check_mesh(file.triangles(), limber::guess_role(file.triangles())).usable();
    if (!usable) std::abort();
  } catch (const limber::Error& e) {
    if (e.kind() != limber::ErrorKind::kInput) std::abort();
  }
  return 0;
}
