// How replay.lmr is laid out: chunks, packed arrays, rows and the header. Only replay_writer.cpp and
// replay_reader.cpp use it.
#pragma once

#include <limber/io/replay.hpp>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

namespace limber::replay {

static_assert(std::endian::native == std::endian::little, "replay.lmr is little-endian");

inline constexpr char kMagic[8] = {'L', 'I', 'M', 'B', 'E', 'R', 'R', '1'};
constexpr std::uint32_t tag_of(const char (&s)[5]) {
  return static_cast<std::uint32_t>(s[0]) | static_cast<std::uint32_t>(s[1]) << 8 |
         static_cast<std::uint32_t>(s[2]) << 16 | static_cast<std::uint32_t>(s[3]) << 24;
}
inline constexpr std::uint32_t kHead = tag_of("HEAD"), kTopology = tag_of("TOPO"), kFrame = tag_of("FRAM"),
                               kRows = tag_of("ROWS"), kDone = tag_of("DONE"), kExact = tag_of("EXCT"),
                               kShapes = tag_of("SHAP");
// Tag, length (8 bytes), payload checksum, checksum of these 16 bytes.
inline constexpr std::size_t kChunkHeader = 20;
// Deflate cannot shrink data more than this: a bound on what a damaged length can make us allocate.
inline constexpr std::uint64_t kMaxRatio = 1032;

enum class Type : std::uint8_t { kFloat = 0, kByte = 1, kInt = 2 };
enum class Codec : std::uint8_t { kStored = 0, kDeflated = 1 };

std::uint32_t checksum(const void* data, std::size_t size);

[[noreturn]] void damaged(const std::string& what);  // throws Error(kIo)

// ---- writing

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void put_string(std::string& out, const std::string& s);
void put_array(std::string& out, Type type, const char* data, std::size_t count, int level);
void put_doubles(std::string& out, const std::vector<double>& values, int level);
void put_fields(std::string& out, const std::vector<ReplayField>& fields, std::size_t count, const char* of,
                int level);

void put_surface(std::string& out, const ReplaySurface& surface, int level);

template <std::size_t N>
void put_indices(std::string& out, const std::vector<std::array<Index, N>>& values, int level) {
  put_array(out, Type::kInt, reinterpret_cast<const char*>(values.data()), N * values.size(), level);
}

std::string rows_payload(const std::vector<ReplayRow>& rows);
std::string header_payload(const ReplayHeader& header);
std::string text_of(const nlohmann::json& j);

// ---- reading: what does not fit is reported by damaged()

// Reads a payload from its beginning to its end.
class Cursor {
 public:
  explicit Cursor(const std::string& data) : data_(data) {}

  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string string() {
    const auto size = get<std::uint32_t>();
    return std::string(take(size), size);
  }
  // Numbers of any stored type.
  std::vector<float> floats();
  std::vector<Index> indices();
  std::vector<double> doubles();  // stored as bytes
  // Groups of N indices, each in [lowest, limit).
  template <std::size_t N>
  std::vector<std::array<Index, N>> groups(Index lowest, Index limit) {
    const std::vector<Index> flat = indices();
    if (flat.size() % N != 0) damaged("an index list with a wrong length");
    std::vector<std::array<Index, N>> out(flat.size() / N);
    for (std::size_t i = 0; i < flat.size(); ++i) {
      if (flat[i] < lowest || flat[i] >= limit) damaged("an index outside its range");
      out[i / N][i % N] = flat[i];
    }
    return out;
  }
  std::vector<ReplayField> fields(std::size_t count);
  ReplaySurface surface(const std::vector<Tet>& elements);
  bool at_end() const { return at_ == data_.size(); }
  // A count of items that take at least `bytes` each: no more than can still follow.
  std::size_t bounded(std::size_t count, std::size_t bytes) const {
    if (count > (data_.size() - at_) / bytes) damaged("a list with an impossible length");
    return count;
  }

 private:
  template <class T>
  std::vector<T> array();
  const char* take(std::uint64_t size) {
    if (size > data_.size() - at_) damaged("a chunk that is too short");
    const char* p = data_.data() + at_;
    at_ += size;
    return p;
  }
  const std::string& data_;
  std::size_t at_ = 0;
};
std::vector<ReplayRow> parse_rows(const std::string& data);
ReplayHeader parse_header(const std::string& text);

}  // namespace limber::replay
