// Results of long preparations on disk, found again by a hash of all they depend on.
#pragma once

#include <limber/core/types.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace limber {

// 64-bit hash of everything that is fed to it, in order (FNV-1a over the bytes, then mixed).
class InputHash {
 public:
  InputHash& bytes(const void* data, std::size_t size);
  template <class Number>
  InputHash& number(Number value) {
    return bytes(&value, sizeof value);
  }
  template <class Number>
  InputHash& numbers(std::span<const Number> values) {
    number(values.size());
    return bytes(values.data(), values.size_bytes());
  }
  InputHash& text(const std::string& value) {
    number(value.size());
    return bytes(value.data(), value.size());
  }
  std::uint64_t value() const;

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

using CachedMatrices = std::map<std::string, MatX>;

// Where the library keeps such results when nobody says otherwise; empty, as it is at first: nowhere. A
// program sets it before it reads scenes. Process-wide.
void set_cache_folder(std::filesystem::path folder);
const std::filesystem::path& cache_folder();
// $LIMBER_CACHE, or limber in $XDG_CACHE_HOME or ~/.cache; empty when LIMBER_CACHE is set and empty.
std::filesystem::path user_cache_folder();

// What was stored in the folder for this kind and hash; false when there is nothing, or when it does not hold
// together (it is then made anew).
bool load_cached(const std::filesystem::path& folder, const std::string& kind, std::uint64_t hash,
                 CachedMatrices& out);
// Stores it; a folder that cannot be written is no error, and false is returned.
bool store_cached(const std::filesystem::path& folder, const std::string& kind, std::uint64_t hash,
                  const CachedMatrices& matrices);

}  // namespace limber
