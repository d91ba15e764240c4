#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/io/file.hpp>
#include <limber/io/replay_layout.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

namespace limber {

using namespace replay;
using nlohmann::json;

namespace {

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

// x + basis coordinates.
std::vector<float> expanded(const ReplayTopology& t, const std::vector<float>& coordinates,
                            std::vector<float> x) {
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Rows> basis(t.basis.data(), t.node_count(), t.functions),
      u(coordinates.data(), t.functions, 3);
  parallel_ranges(t.node_count(), 2048, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    Eigen::Map<Rows>(x.data() + 3 * begin, end - begin, 3).noalias() +=
        basis.middleRows(begin, end - begin) * u;
  });
  return x;
}

}  // namespace

ReplayReader::ReplayReader(const std::filesystem::path& path) : path_(path) {
  require_ordinary(path.string());
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
  } else if (chunk.tag == kExact) {
    chunk.step = c.get<std::int64_t>();
    exact_chunks_.push_back(chunk);
  } else if (chunk.tag == kShapes) {
    chunk.step = c.get<std::int64_t>();
    chunk.topology = c.get<std::int32_t>();
    if (chunk.topology < 0 || chunk.topology >= topology_count()) damaged("shapes without their topology");
    shape_chunks_.push_back(chunk);
  } else if (chunk.tag == kRows) {
    std::vector<ReplayRow> rows = parse_rows(data);
    for (const ReplayRow& r : rows) chunk.step = std::max(chunk.step, r.step);
    rows_.insert(rows_.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  } else if (chunk.tag == kDone) {
    *summary_ = json::parse(data);
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
    t.rest = c.floats();
    t.elements = c.groups<4>(-1, n);
    if (t.rest.size() != 3 * static_cast<std::size_t>(n) || t.element_count() != m)
      damaged("a mesh with a wrong length");
    t.surface = c.groups<3>(0, n);
    t.surface_element = c.indices();
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
    if (!c.at_end()) {
      t.functions = c.get<Index>();
      t.basis = c.floats();
      if (t.functions < 0 || (t.functions > 0 && t.functions >= n) ||
          t.basis.size() != static_cast<std::size_t>(n) * static_cast<std::size_t>(t.functions))
        damaged("a basis with a wrong length");
    }
    if (!c.at_end()) {
      t.surfaces.resize(c.bounded(c.get<std::uint32_t>(), 64));
      for (ReplaySurface& s : t.surfaces) s = c.surface(t.elements);
    }
    if (!c.at_end()) {
      t.exact_rest = c.doubles();
      if (t.exact_rest.size() != t.rest.size()) damaged("an exact rest shape with a wrong length");
    }
    return t;
  });
}

// Rest positions and basis of a topology; frames ask for the same one again and again.
std::shared_ptr<const ReplayTopology> ReplayReader::basis_of(Index i) const {
  const std::lock_guard lock(kept_->mutex);
  if (kept_->topology != i) {
    ReplayTopology whole = topology(i);
    auto part = std::make_shared<ReplayTopology>();
    part->rest = std::move(whole.rest);
    part->basis = std::move(whole.basis);
    part->functions = whole.functions;
    kept_->value = std::move(part);
    kept_->topology = i;
  }
  return kept_->value;
}

ReplayFrame ReplayReader::frame(Index i, bool positions) const {
  const Chunk& chunk = frame_chunks_.at(static_cast<std::size_t>(i));
  const Chunk& topology = topology_chunks_[static_cast<std::size_t>(chunk.topology)];
  return parsed(path_, payload(chunk), fmt::format("frame {}", i), [&](Cursor& c) {
    ReplayFrame f;
    f.step = c.get<std::int64_t>();
    f.t = c.get<double>();
    f.topology = c.get<std::int32_t>();
    f.x = c.floats();
    std::shared_ptr<const ReplayTopology> reduced;
    if (f.x.size() != 3 * static_cast<std::size_t>(topology.nodes)) {
      reduced = basis_of(chunk.topology);
      if (reduced->functions == 0 || f.x.size() != 3 * static_cast<std::size_t>(reduced->functions))
        damaged("positions with a wrong length");
      f.coordinates = std::exchange(f.x, {});
      if (positions) f.x = expanded(*reduced, f.coordinates, reduced->rest);
    }
    f.node_fields = c.fields(static_cast<std::size_t>(topology.nodes));
    f.element_fields = c.fields(static_cast<std::size_t>(topology.elements));
    f.obstacles.resize(header_.obstacles.size());
    for (ReplayPose& p : f.obstacles) {
      p.translation = c.get<std::array<float, 3>>();
      p.rotation = c.get<std::array<float, 4>>();
      p.scale = c.get<float>();
    }
    if (reduced && !c.at_end()) {
      f.velocity_coordinates = c.floats();
      if (f.velocity_coordinates.size() != f.coordinates.size()) damaged("velocities with a wrong length");
      if (positions)
        f.node_fields.insert(
            f.node_fields.begin(),
            {"velocity", "m/s", 3,
             expanded(*reduced, f.velocity_coordinates, std::vector<float>(reduced->rest.size(), 0.0f))});
    }
    return f;
  });
}

ReplayReader::Exact ReplayReader::exact(Index i) const {
  const Chunk& frame = frame_chunks_.at(static_cast<std::size_t>(i));
  const auto found = std::lower_bound(exact_chunks_.begin(), exact_chunks_.end(), frame.step,
                                      [](const Chunk& c, std::int64_t step) { return c.step < step; });
  if (found == exact_chunks_.end() || found->step != frame.step) return {};
  const auto all =
      3 * static_cast<std::size_t>(topology_chunks_[static_cast<std::size_t>(frame.topology)].nodes);
  return parsed(path_, payload(*found), fmt::format("the numbers of frame {}", i), [&](Cursor& c) {
    c.get<std::int64_t>();
    Exact out{c.doubles(), c.doubles()};
    if (out.x.size() != all || out.v.size() != all) damaged("exact positions with a wrong length");
    return out;
  });
}

std::vector<ReplayShape> ReplayReader::shapes(Index topology) const {
  const auto found = std::find_if(shape_chunks_.begin(), shape_chunks_.end(),
                                  [&](const Chunk& c) { return c.topology == topology; });
  if (found == shape_chunks_.end()) return {};
  const auto all = 3 * static_cast<std::size_t>(topology_chunks_[static_cast<std::size_t>(topology)].nodes);
  return parsed(path_, payload(*found), fmt::format("the shapes of topology {}", topology), [&](Cursor& c) {
    c.get<std::int64_t>();
    c.get<std::int32_t>();
    std::vector<ReplayShape> out(c.bounded(c.get<std::uint32_t>(), 14));
    for (ReplayShape& s : out) {
      s.name = c.string();
      s.values = c.floats();
      if (s.values.size() != all) damaged("a shape with a wrong length");
    }
    return out;
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
