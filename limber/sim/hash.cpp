#include <limber/io/file.hpp>
#include <limber/scene/scene.hpp>
#include <limber/scene/spec.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/topology.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <type_traits>

namespace limber {

void Hasher::add_word(std::uint64_t word) {
  h_ = (h_ ^ word) * 0x9E3779B97F4A7C15u;
  h_ ^= h_ >> 32;
}

void Hasher::add(const void* data, std::size_t bytes) {
  const char* p = static_cast<const char*>(data);
  std::uint64_t word;
  for (; bytes >= 8; bytes -= 8, p += 8) {
    std::memcpy(&word, p, 8);
    add_word(word);
  }
  if (bytes > 0) {
    word = 0;
    std::memcpy(&word, p, bytes);
    add_word(word ^ static_cast<std::uint64_t>(bytes) << 56);
  }
}

std::uint64_t Hasher::digest() const {
  std::uint64_t h = h_;
  h ^= h >> 31;
  h *= 0xBF58476D1CE4E5B9u;
  return h ^ h >> 29;
}

std::uint64_t hash_bytes(std::string_view bytes) {
  Hasher hasher;
  hasher.add(bytes);
  return hasher.digest();
}

std::uint64_t hash_state(const State& state) {
  Hasher hasher;
  const auto add = [&](const char* name, const auto& value) {
    using T = std::decay_t<decltype(value)>;
    hasher.add(std::string_view(name));
    if constexpr (std::is_arithmetic_v<T>) {
      hasher.add(&value, sizeof value);
    } else {
      hasher.add_word(static_cast<std::uint64_t>(value.size()));
      hasher.add(value.data(), static_cast<std::size_t>(value.size()) * sizeof(*value.data()));
    }
  };
  visit(state, add);
  if (state.topology) hasher.add_word(state.topology->digest);
  state.memory.visit([&](const char* name, ConstFieldRef field) {
    std::visit([&](const auto* value) { add(name, *value); }, field);
  });
  return hasher.digest();
}

std::uint64_t hash_scene(const Scene& scene) {
  Json copy = *scene.resolved;
  for (const char* key : {"$schema", "name", "description", "output", "probes", "tests"}) copy.erase(key);
  copy["time"].erase("end");
  Hasher hasher;
  for_each_file(copy, [&](Json& value, const std::string&) {
    const std::filesystem::path path = std::filesystem::path(scene.folder) / value.get<std::string>();
    hasher.add(read_file(path.string()));
    value = path.extension().string();  // what is in a file counts, and how it is read; not where it is
    // TetGen meshes come in two files.
    std::error_code ec;
    for (const char* ending : {".node", ".ele"}) {
      const std::filesystem::path other = std::filesystem::path(path).replace_extension(ending);
      const bool pair = path.extension() == ".node" || path.extension() == ".ele";
      if (pair && other != path && std::filesystem::exists(other, ec)) hasher.add(read_file(other.string()));
    }
  });
  hasher.add(copy.dump());
  return hasher.digest();
}

std::string to_hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace limber
