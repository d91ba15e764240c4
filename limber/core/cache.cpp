#include <limber/core/cache.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace limber {
namespace {

constexpr std::array<char, 8> kCacheMagic{'l', 'i', 'm', 'b', 'e', 'r', 'c', '1'};

std::filesystem::path& chosen_folder() {
  static std::filesystem::path folder;
  return folder;
}

std::filesystem::path cache_path(const std::filesystem::path& folder, const std::string& kind,
                                 std::uint64_t hash) {
  return folder / fmt::format("{}-{:016x}.bin", kind, hash);
}

template <class Number>
void put_raw(std::ofstream& file, Number value) {
  file.write(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Number>
bool get_raw(std::ifstream& file, Number& value) {
  return static_cast<bool>(file.read(reinterpret_cast<char*>(&value), sizeof value));
}

}  // namespace

InputHash& InputHash::bytes(const void* data, std::size_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
  // Eight bytes at a time: one multiplication a word.
  for (; size >= 8; size -= 8, p += 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    state_ = (state_ ^ word) * 0x100000001b3u;
    state_ ^= state_ >> 32;
  }
  for (; size > 0; --size, ++p) state_ = (state_ ^ *p) * 0x100000001b3u;
  return *this;
}

std::uint64_t InputHash::value() const {
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void set_cache_folder(std::filesystem::path folder) { chosen_folder() = std::move(folder); }
const std::filesystem::path& cache_folder() { return chosen_folder(); }

std::filesystem::path user_cache_folder() {
  if (const char* own = std::getenv("LIMBER_CACHE")) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg)
    return std::filesystem::path(xdg) / "limber";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache" / "limber";
  return {};
}

bool load_cached(const std::filesystem::path& folder, const std::string& kind, std::uint64_t hash,
                 CachedMatrices& out) {
  out.clear();
  if (folder.empty()) return false;
  std::ifstream file(cache_path(folder, kind, hash), std::ios::binary);
  std::array<char, 8> magic{};
  std::uint64_t stored = 0, count = 0, sum = 0;
  if (!file.read(magic.data(), magic.size()) || magic != kCacheMagic || !get_raw(file, stored) ||
      stored != hash || !get_raw(file, count) || count > 1000)
    return false;
  InputHash check;
  for (std::uint64_t k = 0; k < count; ++k) {
    std::uint64_t length = 0, rows = 0, cols = 0;
    if (!get_raw(file, length) || length > 1000) return false;
    std::string name(length, ' ');
    if (!file.read(name.data(), static_cast<std::streamsize>(length)) || !get_raw(file, rows) ||
        !get_raw(file, cols) || rows > (1ull << 32) || cols > (1ull << 32) || rows * cols > (1ull << 32))
      return false;
    MatX m(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(cols));
    if (!file.read(reinterpret_cast<char*>(m.data()), static_cast<std::streamsize>(8 * rows * cols)))
      return false;
    check.bytes(m.data(), 8 * rows * cols);
    out.emplace(std::move(name), std::move(m));
  }
  return get_raw(file, sum) && sum == check.value();
}

bool store_cached(const std::filesystem::path& folder, const std::string& kind, std::uint64_t hash,
                  const CachedMatrices& matrices) {
  if (folder.empty()) return false;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  static std::atomic<int> number{0};
  const std::filesystem::path path = cache_path(folder, kind, hash);
  std::filesystem::path draft = path;
  draft += fmt::format(".{}.{}", ::getpid(), number++);
  {
    std::ofstream file(draft, std::ios::binary);
    file.write(kCacheMagic.data(), kCacheMagic.size());
    put_raw(file, hash);
    put_raw(file, static_cast<std::uint64_t>(matrices.size()));
    InputHash check;
    for (const auto& [name, m] : matrices) {
      put_raw(file, static_cast<std::uint64_t>(name.size()));
      file.write(name.data(), static_cast<std::streamsize>(name.size()));
      put_raw(file, static_cast<std::uint64_t>(m.rows()));
      put_raw(file, static_cast<std::uint64_t>(m.cols()));
      const std::size_t bytes = 8 * static_cast<std::size_t>(m.size());
      file.write(reinterpret_cast<const char*>(m.data()), static_cast<std::streamsize>(bytes));
      check.bytes(m.data(), bytes);
    }
    put_raw(file, check.value());
    if (!file) {
      file.close();
      std::filesystem::remove(draft, error);
      return false;
    }
  }
  std::filesystem::rename(draft, path, error);  // whole, or not at all
  if (!error) return true;
  std::filesystem::remove(draft, error);
  return false;
}

}  // namespace limber
