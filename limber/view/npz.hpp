// NumPy's .npz: a zip archive of .npy arrays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace limber::view {

class NpzWriter {
 public:
  // Writes to `path` when finish() is called; until then to a temporary file beside it. `level` > 0 deflates.
  NpzWriter(const std::filesystem::path& path, int level);
  ~NpzWriter();

  // `shape` in C order; its product is the length of `values`.
  void add(const std::string& name, const std::vector<std::size_t>& shape, std::span<const float> values);
  void add(const std::string& name, const std::vector<std::size_t>& shape, std::span<const double> values);
  void add(const std::string& name, const std::vector<std::size_t>& shape,
           std::span<const std::int32_t> values);
  void add(const std::string& name, const std::vector<std::size_t>& shape,
           std::span<const std::int64_t> values);
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint32_t crc;
    std::uint64_t size, stored, offset;
    std::uint16_t method;
  };
  void add_bytes(const std::string& name, const char* type, const std::vector<std::size_t>& shape,
                 std::size_t count, const void* data, std::size_t size);

  std::filesystem::path path_, part_;
  std::ofstream out_;
  int level_;
  std::uint64_t offset_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace limber::view
