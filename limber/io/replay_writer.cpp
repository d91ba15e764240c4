#include <limber/core/error.hpp>
#include <limber/io/replay_layout.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace limber {

using namespace replay;

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
  w.write_chunk(kHead, header_payload(header));
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
                         (c.tag == kRows && c.step > step) || (c.tag == kExact && c.step > step) ||
                         (c.tag == kShapes && c.step > step);
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
        w.functions_ = t.functions;
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
  // A frame says by the number of its coordinates what they are.
  if (t.functions < 0 || t.basis.size() != n * static_cast<std::size_t>(t.functions) ||
      (t.functions > 0 && t.functions >= t.node_count()))
    throw Error(ErrorKind::kUsage,
                fmt::format("recording: a basis of {} numbers for {} functions of {} nodes", t.basis.size(),
                            t.functions, n));
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
  const bool exact = !t.exact_rest.empty();
  if (exact && t.exact_rest.size() != 3 * n)
    throw Error(ErrorKind::kUsage, "recording: the topology's exact rest shape has a wrong length");
  if (t.functions > 0 || !t.surfaces.empty() || exact) {
    put(out, t.functions);
    put_array(out, Type::kFloat, reinterpret_cast<const char*>(t.basis.data()), t.basis.size(), level_);
  }
  if (!t.surfaces.empty() || exact) put(out, static_cast<std::uint32_t>(t.surfaces.size()));
  for (const ReplaySurface& s : t.surfaces) put_surface(out, s, level_);
  if (exact) put_doubles(out, t.exact_rest, level_);
  write_chunk(kTopology, out);
  ++topologies_;
  nodes_ = t.node_count();
  elements_ = t.element_count();
  functions_ = t.functions;
}

void ReplayWriter::add_row(const ReplayRow& row) { rows_.push_back(row); }

void ReplayWriter::flush() {
  if (rows_.empty()) return;
  write_chunk(kRows, rows_payload(rows_));
  rows_.clear();
}

void ReplayWriter::add_frame(const ReplayFrame& f) {
  if (topologies_ == 0) throw Error(ErrorKind::kUsage, "recording: a frame before the first topology");
  const std::vector<float>& x = f.coordinates.empty() ? f.x : f.coordinates;
  const Index expected = 3 * (f.coordinates.empty() ? nodes_ : functions_);
  if (x.size() != static_cast<std::size_t>(expected) || f.obstacles.size() != obstacles_)
    throw Error(
        ErrorKind::kUsage,
        fmt::format("recording: frame of step {} has {} coordinates and {} obstacle poses; expected {} "
                    "and {}",
                    f.step, x.size(), f.obstacles.size(), expected, obstacles_));
  if (!f.velocity_coordinates.empty() && f.velocity_coordinates.size() != f.coordinates.size())
    throw Error(ErrorKind::kUsage,
                fmt::format("recording: frame of step {} has {} coordinates of velocities; expected {}",
                            f.step, f.velocity_coordinates.size(), f.coordinates.size()));
  flush();
  std::string out;
  put(out, f.step);
  put(out, f.t);
  put(out, static_cast<std::int32_t>(topologies_ - 1));
  put_array(out, Type::kFloat, reinterpret_cast<const char*>(x.data()), x.size(), level_);
  put_fields(out, f.node_fields, static_cast<std::size_t>(nodes_), "node", level_);
  put_fields(out, f.element_fields, static_cast<std::size_t>(elements_), "element", level_);
  for (const ReplayPose& p : f.obstacles) {
    put(out, p.translation);
    put(out, p.rotation);
    put(out, p.scale);
  }
  if (!f.velocity_coordinates.empty())
    put_array(out, Type::kFloat, reinterpret_cast<const char*>(f.velocity_coordinates.data()),
              f.velocity_coordinates.size(), level_);
  write_chunk(kFrame, out);
  ++frames_;
  if (f.exact_x.empty()) return;
  const auto all = 3 * static_cast<std::size_t>(nodes_);
  if (f.exact_x.size() != all || f.exact_v.size() != all)
    throw Error(
        ErrorKind::kUsage,
        fmt::format("recording: frame of step {} has {} exact positions and {} velocities; expected {}",
                    f.step, f.exact_x.size(), f.exact_v.size(), all));
  out.clear();
  put(out, f.step);
  put_doubles(out, f.exact_x, level_);
  put_doubles(out, f.exact_v, level_);
  write_chunk(kExact, out);
}

void ReplayWriter::add_shapes(std::int64_t step, const std::vector<ReplayShape>& shapes) {
  if (topologies_ == 0) throw Error(ErrorKind::kUsage, "recording: shapes before the first topology");
  std::string out;
  put(out, step);
  put(out, static_cast<std::int32_t>(topologies_ - 1));
  put(out, static_cast<std::uint32_t>(shapes.size()));
  for (const ReplayShape& s : shapes) {
    if (s.values.size() != 3 * static_cast<std::size_t>(nodes_))
      throw Error(ErrorKind::kUsage, fmt::format("recording: shape \"{}\" has {} numbers; expected {}",
                                                 s.name, s.values.size(), 3 * nodes_));
    put_string(out, s.name);
    put_array(out, Type::kFloat, reinterpret_cast<const char*>(s.values.data()), s.values.size(), level_);
  }
  write_chunk(kShapes, out);
}

void ReplayWriter::finish(const nlohmann::json& summary) {
  flush();
  write_chunk(kDone, text_of(summary));
}

}  // namespace limber
