#include <limber/core/error.hpp>
#include <limber/io/replay.hpp>

#include <fmt/format.h>
#include <zlib.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <system_error>

namespace limber {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "replay.lmr is little-endian");

constexpr char kMagic[8] = {'L', 'I', 'M', 'B', 'E', 'R', 'R', '1'};
constexpr std::uint32_t tag_of(const char (&s)[5]) {
  return static_cast<std::uint32_t>(s[0]) | static_cast<std::uint32_t>(s[1]) << 8 |
         static_cast<std::uint32_t>(s[2]) << 16 | static_cast<std::uint32_t>(s[3]) << 24;
}
constexpr std::uint32_t kHead = tag_of("HEAD"), kTopology = tag_of("TOPO"), kFrame = tag_of("FRAM"),
                        kRows = tag_of("ROWS"), kDone = tag_of("DONE");
constexpr std::size_t kChunkHeader =
    20;  // tag, length (8 bytes), payload checksum, checksum of these 16 bytes
// Deflate cannot shrink data more than this: a bound on what a damaged length can make us allocate.
constexpr std::uint64_t kMaxRatio = 1032;

enum class Type : std::uint8_t { kFloat = 0, kByte = 1, kInt = 2 };
enum class Codec : std::uint8_t { kStored = 0, kDeflated = 1 };

std::uint32_t checksum(const void* data, std::size_t size) {
  return static_cast<std::uint32_t>(crc32_z(0, static_cast<const Bytef*>(data), size));
}

[[noreturn]] void damaged(const std::string& what) { throw Error(ErrorKind::kIo, what); }

// ---- writing
// -----------------------------------------------------------------------------------------------

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void put_string(std::string& out, const std::string& s) {
  put(out, static_cast<std::uint32_t>(s.size()));
  out += s;
}

// All first bytes, then all second bytes, ...: the exponents of neighbouring numbers are alike, and deflate
// finds that only when they lie side by side.
std::string shuffled(const char* data, std::size_t count, std::size_t width) {
  std::string out(count * width, '\0');
  for (std::size_t b = 0; b < width; ++b)
    for (std::size_t i = 0; i < count; ++i) out[b * count + i] = data[i * width + b];
  return out;
}

void put_array(std::string& out, Type type, const char* data, std::size_t count, int level) {
  const std::size_t width = type == Type::kByte ? 1 : 4;
  put(out, type);
  const std::size_t size = count * width;
  if (level > 0 && size > 64) {
    const std::string plain = shuffled(data, count, width);
    uLongf packed_size = compressBound(static_cast<uLong>(size));
    std::string packed(packed_size, '\0');
    const int status =
        compress2(reinterpret_cast<Bytef*>(packed.data()), &packed_size,
                  reinterpret_cast<const Bytef*>(plain.data()), static_cast<uLong>(size), level);
    if (status == Z_OK && packed_size < size) {
      put(out, Codec::kDeflated);
      put(out, static_cast<std::uint64_t>(count));
      put(out, static_cast<std::uint64_t>(packed_size));
      out.append(packed, 0, packed_size);
      return;
    }
  }
  put(out, Codec::kStored);
  put(out, static_cast<std::uint64_t>(count));
  put(out, static_cast<std::uint64_t>(size));
  out.append(data, size);
}

void put_floats(std::string& out, const std::vector<float>& values, int level) {
  bool bytes = true;  // flags and small counts need no more than a byte
  for (float f : values)
    if (!(f >= 0 && f <= 255 && f == std::floor(f) && !(f == 0 && std::signbit(f)))) {
      bytes = false;
      break;
    }
  if (bytes) {
    const std::string small(values.begin(), values.end());
    put_array(out, Type::kByte, small.data(), small.size(), level);
  } else {
    put_array(out, Type::kFloat, reinterpret_cast<const char*>(values.data()), values.size(), level);
  }
}

template <std::size_t N>
void put_indices(std::string& out, const std::vector<std::array<Index, N>>& values, int level) {
  put_array(out, Type::kInt, reinterpret_cast<const char*>(values.data()), N * values.size(), level);
}

void put_fields(std::string& out, const std::vector<ReplayField>& fields, std::size_t count, const char* of,
                int level) {
  put(out, static_cast<std::uint32_t>(fields.size()));
  for (const ReplayField& f : fields) {
    if (f.components < 1 || f.values.size() != static_cast<std::size_t>(f.components) * count)
      throw Error(ErrorKind::kUsage,
                  fmt::format("recording: field '{}' has {} numbers; expected {} per {} for {} {}s", f.name,
                              f.values.size(), f.components, of, count, of));
    put_string(out, f.name);
    put_string(out, f.unit);
    put(out, static_cast<std::int32_t>(f.components));
    put_floats(out, f.values, level);
  }
}

std::string rows_payload(const std::vector<ReplayRow>& rows) {
  std::string out;
  put(out, static_cast<std::uint32_t>(rows.size()));
  const std::vector<std::pair<std::string, double>>* names = nullptr;
  for (const ReplayRow& r : rows) {
    put(out, r.step);
    put(out, r.t);
    bool same = names && names->size() == r.values.size();
    for (std::size_t i = 0; same && i < r.values.size(); ++i) same = (*names)[i].first == r.values[i].first;
    put(out, static_cast<std::uint8_t>(same));  // names are written where they change
    if (!same) {
      put(out, static_cast<std::uint32_t>(r.values.size()));
      for (const auto& v : r.values) put_string(out, v.first);
      names = &r.values;
    }
    for (const auto& v : r.values) put(out, v.second);
  }
  return out;
}

// ---- reading
// -----------------------------------------------------------------------------------------------

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
  template <class T>
  std::vector<T> array() {
    const Type type = get<Type>();
    const Codec codec = get<Codec>();
    const auto count = get<std::uint64_t>(), stored = get<std::uint64_t>();
    if (type > Type::kInt || codec > Codec::kDeflated) damaged("an array of unknown type");
    const char* bytes = take(stored);
    const std::uint64_t width = type == Type::kByte ? 1 : 4;
    if (count > stored * kMaxRatio + 64) damaged("an array with an impossible length");
    const std::uint64_t size = count * width;
    std::string plain;
    if (codec == Codec::kDeflated) {
      std::string packed(size, '\0');
      uLongf n = static_cast<uLongf>(size);
      if (uncompress(reinterpret_cast<Bytef*>(packed.data()), &n, reinterpret_cast<const Bytef*>(bytes),
                     static_cast<uLong>(stored)) != Z_OK ||
          n != size)
        damaged("an array that cannot be unpacked");
      plain.resize(size);
      for (std::uint64_t b = 0; b < width; ++b)
        for (std::uint64_t i = 0; i < count; ++i) plain[i * width + b] = packed[b * count + i];
    } else {
      if (stored != size) damaged("an array with a wrong length");
      plain.assign(bytes, size);
    }
    std::vector<T> out(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (type == Type::kByte) {
        out[i] = static_cast<T>(static_cast<std::uint8_t>(plain[i]));
      } else if (type == Type::kInt) {
        std::int32_t v;
        std::memcpy(&v, plain.data() + 4 * i, 4);
        out[i] = static_cast<T>(v);
      } else {
        float v;
        std::memcpy(&v, plain.data() + 4 * i, 4);
        if constexpr (std::is_integral_v<T>) damaged("numbers where indices were expected");
        out[i] = static_cast<T>(v);
      }
    }
    return out;
  }
  // Groups of N indices, each in [lowest, limit).
  template <std::size_t N>
  std::vector<std::array<Index, N>> groups(Index lowest, Index limit) {
    const std::vector<Index> flat = array<Index>();
    if (flat.size() % N != 0) damaged("an index list with a wrong length");
    std::vector<std::array<Index, N>> out(flat.size() / N);
    for (std::size_t i = 0; i < flat.size(); ++i) {
      if (flat[i] < lowest || flat[i] >= limit) damaged("an index outside its range");
      out[i / N][i % N] = flat[i];
    }
    return out;
  }
  std::vector<ReplayField> fields(std::size_t count) {
    std::vector<ReplayField> out(bounded(get<std::uint32_t>(), 14));
    for (ReplayField& f : out) {
      f.name = string();
      f.unit = string();
      f.components = get<std::int32_t>();
      f.values = array<float>();
      if (f.components < 1 || f.values.size() != static_cast<std::size_t>(f.components) * count)
        damaged("a field with a wrong length");
    }
    return out;
  }
  // A count of items that take at least `bytes` each: no more than can still follow.
  std::size_t bounded(std::size_t count, std::size_t bytes) const {
    if (count > (data_.size() - at_) / bytes) damaged("a list with an impossible length");
    return count;
  }

 private:
  const char* take(std::uint64_t size) {
    if (size > data_.size() - at_) damaged("a chunk that is too short");
    const char* p = data_.data() + at_;
    at_ += size;
    return p;
  }
  const std::string& data_;
  std::size_t at_ = 0;
};

std::vector<ReplayRow> parse_rows(const std::string& data) {
  Cursor c(data);
  std::vector<ReplayRow> rows(c.bounded(c.get<std::uint32_t>(), 17));
  std::vector<std::string> names;
  for (ReplayRow& r : rows) {
    r.step = c.get<std::int64_t>();
    r.t = c.get<double>();
    if (!c.get<std::uint8_t>()) {
      names.resize(c.bounded(c.get<std::uint32_t>(), 4));
      for (std::string& n : names) n = c.string();
    }
    r.values.reserve(c.bounded(names.size(), 8));
    for (const std::string& n : names) r.values.emplace_back(n, c.get<double>());
  }
  return rows;
}

json to_json(const Vec3& v) { return json::array({v.x(), v.y(), v.z()}); }
Vec3 vec3(const json& j) { return {j.at(0).get<double>(), j.at(1).get<double>(), j.at(2).get<double>()}; }

json to_json(const ReplayHeader& h) {
  json obstacles = json::array();
  for (const ReplayObstacle& o : h.obstacles) {
    json j{{"name", o.name},
           {"shape", o.shape},
           {"point", to_json(o.point)},
           {"end", to_json(o.end)},
           {"normal", to_json(o.normal)},
           {"size", to_json(o.size)},
           {"radius", o.radius}};
    if (!o.nodes.empty()) {
      j["nodes"] = json::array();
      for (const Vec3& p : o.nodes) j["nodes"].push_back(to_json(p));
      j["triangles"] = o.triangles;
    }
    obstacles.push_back(std::move(j));
  }
  return {{"scene", h.scene},
          {"description", h.description},
          {"method", h.method},
          {"version", h.version},
          {"h", h.h},
          {"end", h.end},
          {"gravity", to_json(h.gravity)},
          {"parameters", h.parameters},
          {"facts", h.facts},
          {"obstacles", std::move(obstacles)}};
}

ReplayHeader parse_header(const std::string& text) {
  const json j = json::parse(text);
  ReplayHeader h;
  h.scene = j.at("scene").get<std::string>();
  h.description = j.at("description").get<std::string>();
  h.method = j.at("method").get<std::string>();
  h.version = j.at("version").get<std::string>();
  h.h = j.at("h").get<double>();
  h.end = j.at("end").get<double>();
  h.gravity = vec3(j.at("gravity"));
  h.parameters = j.at("parameters");
  h.facts = j.at("facts");
  for (const json& o : j.at("obstacles")) {
    ReplayObstacle out;
    out.name = o.at("name").get<std::string>();
    out.shape = o.at("shape").get<std::string>();
    out.point = vec3(o.at("point"));
    out.end = vec3(o.at("end"));
    out.normal = vec3(o.at("normal"));
    out.size = vec3(o.at("size"));
    out.radius = o.at("radius").get<double>();
    if (o.contains("nodes")) {
      for (const json& p : o.at("nodes")) out.nodes.push_back(vec3(p));
      out.triangles = o.at("triangles").get<std::vector<Tri>>();
      for (const Tri& t : out.triangles)
        for (Index i : t)
          if (i < 0 || i >= static_cast<Index>(out.nodes.size()))
            damaged("an obstacle's index outside its range");
    }
    h.obstacles.push_back(std::move(out));
  }
  return h;
}

// Runs `parse` over the payload; what it finds wrong is reported with the file and the part's name.
template <class Parse>
auto parsed(const std::filesystem::path& path, const std::string& data, const std::string& part,
            Parse&& parse) {
  Cursor c(data);
  try {
    return parse(c);
  } catch (const Error& e) {
    throw Error(ErrorKind::kIo,
                fmt::format("{}: {} holds {}; the recording was not written by this version of "
                            "limber, or is damaged",
                            path.string(), part, e.what()));
  }
}

std::string text_of(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

// ---- ReplayWriter
// ------------------------------------------------------------------------------------------

void ReplayWriter::open(const char* mode) {
  file_.reset(std::fopen(path_.c_str(), mode));
  if (!file_)
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot be opened for writing: {}", path_.string(), std::strerror(errno)));
}

ReplayWriter ReplayWriter::create(const std::filesystem::path& path, const ReplayHeader& header, int level) {
  ReplayWriter w;
  w.path_ = path;
  w.level_ = level;
  w.obstacles_ = header.obstacles.size();
  w.open("wb");
  if (std::fwrite(kMagic, 1, sizeof kMagic, w.file_.get()) != sizeof kMagic)
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
  w.write_chunk(kHead, text_of(to_json(header)));
  return w;
}

ReplayWriter ReplayWriter::resume(const std::filesystem::path& path, std::int64_t step, Index topologies,
                                  int level) {
  ReplayWriter w;
  w.path_ = path;
  w.level_ = level;
  std::uint64_t end = 0;
  {
    const ReplayReader reader(path);
    w.obstacles_ = reader.header_.obstacles.size();
    end = reader.good_end_;
    for (const ReplayReader::Chunk& c : reader.chunks_) {
      const bool later = c.tag == kDone || (c.tag == kFrame && (c.step > step || c.topology >= topologies)) ||
                         (c.tag == kTopology && (c.step > step || c.topology >= topologies)) ||
                         (c.tag == kRows && c.step > step);
      if (later) {
        end = c.offset - kChunkHeader;
        // A chunk of rows may reach beyond the step: its first part is written again.
        if (c.tag == kRows)
          for (ReplayRow& r : parse_rows(reader.payload(c)))
            if (r.step <= step) w.rows_.push_back(std::move(r));
        break;
      }
      if (c.tag == kFrame) ++w.frames_;
      if (c.tag == kTopology) {
        const ReplayTopology t = reader.topology(w.topologies_++);
        w.nodes_ = t.node_count();
        w.elements_ = t.element_count();
      }
    }
  }
  std::error_code error;
  std::filesystem::resize_file(path, end, error);
  if (error)
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot be shortened: {}", path.string(), error.message()));
  w.open("ab");
  return w;
}

void ReplayWriter::write_chunk(std::uint32_t tag, const std::string& payload) {
  std::string out;
  out.reserve(kChunkHeader + payload.size());
  put(out, tag);
  put(out, static_cast<std::uint64_t>(payload.size()));
  put(out, checksum(payload.data(), payload.size()));
  put(out, checksum(out.data(), out.size()));
  out += payload;
  if (std::fwrite(out.data(), 1, out.size(), file_.get()) != out.size() || std::fflush(file_.get()) != 0)
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
}

void ReplayWriter::add_topology(const ReplayTopology& t) {
  flush();
  const auto n = static_cast<std::size_t>(t.node_count());
  if (t.rest.size() != 3 * n || t.surface_element.size() != t.surface.size())
    throw Error(ErrorKind::kUsage, "recording: the topology's arrays do not fit together");
  std::string out;
  put(out, t.step);
  put(out, t.node_count());
  put(out, t.element_count());
  put_array(out, Type::kFloat, reinterpret_cast<const char*>(t.rest.data()), t.rest.size(), level_);
  put_indices(out, t.elements, level_);
  put_indices(out, t.surface, level_);
  put_array(out, Type::kInt, reinterpret_cast<const char*>(t.surface_element.data()),
            t.surface_element.size(), level_);
  put(out, static_cast<std::uint32_t>(t.bodies.size()));
  for (const ReplayBody& b : t.bodies) {
    put_string(out, b.name);
    put(out, b.element_begin);
    put(out, b.element_end);
  }
  put(out, static_cast<std::uint32_t>(t.regions.size()));
  for (const std::string& r : t.regions) put_string(out, r);
  put_fields(out, t.node_fields, n, "node", level_);
  put_fields(out, t.element_fields, t.elements.size(), "element", level_);
  write_chunk(kTopology, out);
  ++topologies_;
  nodes_ = t.node_count();
  elements_ = t.element_count();
}

void ReplayWriter::add_row(const ReplayRow& row) { rows_.push_back(row); }

void ReplayWriter::flush() {
  if (rows_.empty()) return;
  write_chunk(kRows, rows_payload(rows_));
  rows_.clear();
}

void ReplayWriter::add_frame(const ReplayFrame& f) {
  if (topologies_ == 0) throw Error(ErrorKind::kUsage, "recording: a frame before the first topology");
  if (f.x.size() != 3 * static_cast<std::size_t>(nodes_) || f.obstacles.size() != obstacles_)
    throw Error(
        ErrorKind::kUsage,
        fmt::format("recording: frame of step {} has {} coordinates and {} obstacle poses; expected {} "
                    "and {}",
                    f.step, f.x.size(), f.obstacles.size(), 3 * nodes_, obstacles_));
  flush();
  std::string out;
  put(out, f.step);
  put(out, f.t);
  put(out, static_cast<std::int32_t>(topologies_ - 1));
  put_array(out, Type::kFloat, reinterpret_cast<const char*>(f.x.data()), f.x.size(), level_);
  put_fields(out, f.node_fields, static_cast<std::size_t>(nodes_), "node", level_);
  put_fields(out, f.element_fields, static_cast<std::size_t>(elements_), "element", level_);
  for (const ReplayPose& p : f.obstacles) {
    put(out, p.translation);
    put(out, p.rotation);
    put(out, p.scale);
  }
  write_chunk(kFrame, out);
  ++frames_;
}

void ReplayWriter::finish(const json& summary) {
  flush();
  write_chunk(kDone, text_of(summary));
}

// ---- ReplayReader
// ------------------------------------------------------------------------------------------

ReplayReader::ReplayReader(const std::filesystem::path& path) : path_(path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
  char magic[sizeof kMagic] = {};
  in.read(magic, sizeof magic);
  if (!in || std::memcmp(magic, kMagic, sizeof magic) != 0)
    throw Error(
        ErrorKind::kIo,
        fmt::format("{}: is not a recording (it does not begin with '{}'); expected the replay.lmr of a "
                    "run folder",
                    path.string(), std::string(kMagic, sizeof kMagic)));
  good_end_ = sizeof kMagic;
  in.close();
  refresh();
  if (chunks_.empty() || chunks_.front().tag != kHead)
    throw Error(ErrorKind::kIo,
                fmt::format("{}: the recording is damaged: its header cannot be read, so nothing "
                            "in it can be shown; run the scene again",
                            path.string()));
}

bool ReplayReader::refresh() {
  std::ifstream in(path_, std::ios::binary | std::ios::ate);
  if (!in)
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot be opened: {}", path_.string(), std::strerror(errno)));
  const auto size = static_cast<std::uint64_t>(in.tellg());
  if (size < good_end_)
    throw Error(
        ErrorKind::kIo,
        fmt::format("{}: the recording was replaced while it was being read; open it again", path_.string()));
  const std::size_t before = chunks_.size();
  tail_.clear();
  while (good_end_ < size) {
    if (size - good_end_ < kChunkHeader) {
      tail_ = "it ends in the middle of a chunk";
      break;
    }
    in.seekg(static_cast<std::streamoff>(good_end_));
    std::string head(kChunkHeader, '\0');
    in.read(head.data(), kChunkHeader);
    Cursor c(head);
    Chunk chunk;
    chunk.tag = c.get<std::uint32_t>();
    chunk.length = c.get<std::uint64_t>();
    const auto sum = c.get<std::uint32_t>(), head_sum = c.get<std::uint32_t>();
    if (!in || head_sum != checksum(head.data(), kChunkHeader - 4)) {
      tail_ =
          fmt::format("the chunk at byte {} has a damaged head, so what follows cannot be found", good_end_);
      break;
    }
    chunk.offset = good_end_ + kChunkHeader;
    if (chunk.length > size - chunk.offset) {
      tail_ = "it ends in the middle of a chunk";
      break;
    }
    std::string data(chunk.length, '\0');
    in.read(data.data(), static_cast<std::streamsize>(chunk.length));
    if (!in) {
      tail_ = "it cannot be read to its end";
      break;
    }
    good_end_ = chunk.offset + chunk.length;
    bool good = sum == checksum(data.data(), data.size());
    if (good) {
      try {
        add(chunk, data);
      } catch (const Error&) {
        good = false;
      } catch (const json::exception&) {
        good = false;
      }
    }
    if (!good) {
      ++skipped_;
      if (chunk.tag == kTopology) {  // its place is kept, so that later topologies keep their numbers
        chunk.length = 0;
        topology_chunks_.push_back(chunk);
      }
    }
  }
  return chunks_.size() > before;
}

void ReplayReader::add(Chunk chunk, const std::string& data) {
  Cursor c(data);
  if (chunk.tag == kHead) {
    header_ = parse_header(data);
  } else if (chunk.tag == kTopology) {
    chunk.step = c.get<std::int64_t>();
    chunk.nodes = c.get<Index>();
    chunk.elements = c.get<Index>();
    chunk.topology = static_cast<Index>(topology_chunks_.size());
    topology_chunks_.push_back(chunk);
  } else if (chunk.tag == kFrame) {
    chunk.step = c.get<std::int64_t>();
    chunk.t = c.get<double>();
    chunk.topology = c.get<std::int32_t>();
    if (chunk.topology < 0 || chunk.topology >= topology_count() ||
        topology_chunks_[static_cast<std::size_t>(chunk.topology)].length == 0)
      damaged("a frame without its topology");
    frame_chunks_.push_back(chunk);
  } else if (chunk.tag == kRows) {
    std::vector<ReplayRow> rows = parse_rows(data);
    for (const ReplayRow& r : rows) chunk.step = std::max(chunk.step, r.step);
    rows_.insert(rows_.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  } else if (chunk.tag == kDone) {
    summary_ = json::parse(data);
    finished_ = true;
  }  // other tags are from a later version: stepped over
  chunks_.push_back(chunk);
}

std::string ReplayReader::payload(const Chunk& chunk) const {
  std::ifstream in(path_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(chunk.offset));
  std::string data(chunk.length, '\0');
  in.read(data.data(), static_cast<std::streamsize>(chunk.length));
  if (!in) throw Error(ErrorKind::kIo, fmt::format("{}: cannot be read any more", path_.string()));
  return data;
}

ReplayTopology ReplayReader::topology(Index i) const {
  const Chunk& chunk = topology_chunks_.at(static_cast<std::size_t>(i));
  return parsed(path_, payload(chunk), fmt::format("topology {}", i), [&](Cursor& c) {
    ReplayTopology t;
    t.step = c.get<std::int64_t>();
    const auto n = c.get<Index>(), m = c.get<Index>();
    t.rest = c.array<float>();
    t.elements = c.groups<4>(-1, n);
    if (t.rest.size() != 3 * static_cast<std::size_t>(n) || t.element_count() != m)
      damaged("a mesh with a wrong length");
    t.surface = c.groups<3>(0, n);
    t.surface_element = c.array<Index>();
    if (t.surface_element.size() != t.surface.size()) damaged("a surface with a wrong length");
    for (Index e : t.surface_element)
      if (e < 0 || e >= m) damaged("a surface triangle without its element");
    t.bodies.resize(c.bounded(c.get<std::uint32_t>(), 12));
    for (ReplayBody& b : t.bodies) {
      b.name = c.string();
      b.element_begin = c.get<Index>();
      b.element_end = c.get<Index>();
      if (b.element_begin < 0 || b.element_begin > b.element_end || b.element_end > m)
        damaged("a body outside the mesh");
    }
    t.regions.resize(c.bounded(c.get<std::uint32_t>(), 4));
    for (std::string& r : t.regions) r = c.string();
    t.node_fields = c.fields(static_cast<std::size_t>(n));
    t.element_fields = c.fields(static_cast<std::size_t>(m));
    return t;
  });
}

ReplayFrame ReplayReader::frame(Index i) const {
  const Chunk& chunk = frame_chunks_.at(static_cast<std::size_t>(i));
  const Chunk& topology = topology_chunks_[static_cast<std::size_t>(chunk.topology)];
  return parsed(path_, payload(chunk), fmt::format("frame {}", i), [&](Cursor& c) {
    ReplayFrame f;
    f.step = c.get<std::int64_t>();
    f.t = c.get<double>();
    f.topology = c.get<std::int32_t>();
    f.x = c.array<float>();
    if (f.x.size() != 3 * static_cast<std::size_t>(topology.nodes)) damaged("positions with a wrong length");
    f.node_fields = c.fields(static_cast<std::size_t>(topology.nodes));
    f.element_fields = c.fields(static_cast<std::size_t>(topology.elements));
    f.obstacles.resize(header_.obstacles.size());
    for (ReplayPose& p : f.obstacles) {
      p.translation = c.get<std::array<float, 3>>();
      p.rotation = c.get<std::array<float, 4>>();
      p.scale = c.get<float>();
    }
    return f;
  });
}

std::string ReplayReader::damage() const {
  std::string out;
  if (skipped_ > 0)
    out = fmt::format("{} damaged part{} of the recording {} left out", skipped_, skipped_ == 1 ? "" : "s",
                      skipped_ == 1 ? "was" : "were");
  if (!tail_.empty())
    out += fmt::format("{}{}", out.empty() ? "the recording is not whole: " : "; and ", tail_);
  if (!out.empty())
    out += fmt::format(". {} frame{} could be read", frame_count(), frame_count() == 1 ? "" : "s");
  return out;
}

}  // namespace limber
