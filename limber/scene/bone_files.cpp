#include <limber/scene/bone_files.hpp>

#include <limber/core/error.hpp>
#include <limber/io/bvh.hpp>
#include <limber/io/file.hpp>
#include <limber/io/gltf.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>

namespace limber {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostMotion = 64 << 20;  // bytes of a file

}  // namespace

void read_bone_files(const nlohmann::ordered_json& resolved, const std::string& folder, Scene& scene,
                     const std::function<void(const std::string&, const char*)>& problem) {
  using Json = nlohmann::ordered_json;
  const Json& bones = resolved["bones"];
  const std::size_t first = scene.constraints.size() - bones.size();
  const auto path_of = [&](const Json& motion) {
    return (fs::path(folder) / motion["file"].get<std::string>()).lexically_normal().string();
  };
  const auto name_of = [&](const Json& bone, const char* format, const char* key) {
    return bone[format].value(key, bone["name"].get<std::string>());
  };
  std::map<std::string, io::Bvh> bvh;
  std::map<std::string, io::Gltf> gltf;
  const auto bvh_motion = [&](const Json& bone) {
    const Json& motion = bone["bvh"];
    const std::string path = path_of(motion);
    if (!bvh.count(path)) bvh.emplace(path, io::read_bvh(path, read_file(path, kMostMotion)));
    return io::bvh_keys(bvh.at(path), name_of(bone, "bvh", "joint"), motion["start"].get<double>(),
                        motion["scale"].get<double>(), motion["every"].get<std::size_t>());
  };
  const auto gltf_motion = [&](const Json& bone) {
    const Json& motion = bone["gltf"];
    const std::string path = path_of(motion);
    if (!gltf.count(path))
      gltf.emplace(path, io::read_gltf(path, read_file(path, kMostMotion), [&](const std::string& buffer) {
                     return read_file((fs::path(path).parent_path() / buffer).lexically_normal().string(),
                                      kMostMotion);
                   }));
    io::GltfMotion out;
    out.node = name_of(bone, "gltf", "node");
    out.animation = motion.value("animation", std::string());
    out.start = motion["start"].get<double>();
    out.scale = motion["scale"].get<double>();
    out.rate = motion["rate"].get<double>();
    const std::string parent = bone.value("parent", std::string());
    for (const Json& carrier : bones) {
      if (parent.empty() || carrier["name"] != parent) continue;
      if (carrier.contains("gltf") && path_of(carrier["gltf"]) == path)
        out.carrier = name_of(carrier, "gltf", "node");
      out.own_parent = out.carrier.empty();
    }
    return io::gltf_keys(gltf.at(path), out);
  };
  for (std::size_t k = 0; k < bones.size(); ++k)
    for (const char* format : {"bvh", "gltf"}) {
      if (!bones[k].contains(format)) continue;
      const std::string pointer = fmt::format("/bones/{}/{}", k, format);
      try {
        scene.constraints[first + k].motion = format[0] == 'b' ? bvh_motion(bones[k]) : gltf_motion(bones[k]);
      } catch (const Error& e) {
        problem(pointer, e.what());
      }
    }
}

}  // namespace limber
