#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/vtu.hpp>
#include <limber/mesh/element_kind.hpp>

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <bit>
#include <cstring>

namespace limber {
namespace {

static_assert(std::endian::native == std::endian::little, "the writers store numbers as they lie in memory");

constexpr std::size_t kBlock = 1 << 17;  // bytes per compressed block
constexpr std::uint8_t kVtkTriangle = 5, kVtkTet = 10;

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::span<const std::uint8_t> as_bytes(const void* data, std::size_t size) {
  return {static_cast<const std::uint8_t*>(data), size};
}

// Writes <DataArray> elements into one string.
class ArrayWriter {
 public:
  ArrayWriter(std::string& out, const VtuOptions& options) : out_(out), options_(options) {}

  template <class T>
  void add(const std::string& name, int components, std::span<const T> values, bool field_data = false) {
    if constexpr (std::is_same_v<T, double>) {
      if (options_.single) {
        floats_.assign(values.begin(), values.end());
        return add<float>(name, components, floats_, field_data);
      }
    }
    out_ += fmt::format("<DataArray type=\"{}\" Name=\"{}\" NumberOfComponents=\"{}\"", type_name<T>(),
                        escape(name), components);
    if (field_data) out_ += fmt::format(" NumberOfTuples=\"{}\"", values.size() / components);
    out_ += " format=\"binary\">";
    const auto bytes = as_bytes(values.data(), values.size_bytes());
    if (options_.compress)
      compressed(bytes);
    else
      plain(bytes);
    out_ += "</DataArray>\n";
  }

 private:
  template <class T>
  static const char* type_name() {
    if constexpr (std::is_same_v<T, double>) return "Float64";
    if constexpr (std::is_same_v<T, float>) return "Float32";
    if constexpr (std::is_same_v<T, std::int32_t>) return "Int32";
    if constexpr (std::is_same_v<T, std::int64_t>) return "Int64";
    if constexpr (std::is_same_v<T, std::uint8_t>) return "UInt8";
  }

  // Length and data are one base64 stream.
  void plain(std::span<const std::uint8_t> bytes) {
    const std::uint64_t size = bytes.size();
    buffer_.resize(sizeof size + bytes.size());
    std::memcpy(buffer_.data(), &size, sizeof size);
    if (!bytes.empty()) std::memcpy(buffer_.data() + sizeof size, bytes.data(), bytes.size());
    append_base64(out_, buffer_);
  }

  // Header [blocks, block size, size of the last block if partial, compressed sizes...], then the blocks; two
  // streams.
  void compressed(std::span<const std::uint8_t> bytes) {
    const std::size_t blocks = (bytes.size() + kBlock - 1) / kBlock;
    std::vector<std::uint64_t> header{blocks, kBlock, bytes.size() % kBlock};
    buffer_.clear();
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto block = bytes.subspan(b * kBlock, std::min(kBlock, bytes.size() - b * kBlock));
      uLongf size = compressBound(block.size());
      const std::size_t at = buffer_.size();
      buffer_.resize(at + size);
      // Level 1: on coordinates the higher levels gain a few per cent for several times the work.
      if (compress2(buffer_.data() + at, &size, block.data(), block.size(), 1) != Z_OK)
        throw Error(ErrorKind::kIo, "zlib could not compress a block");
      buffer_.resize(at + size);
      header.push_back(size);
    }
    append_base64(out_, as_bytes(header.data(), header.size() * sizeof(std::uint64_t)));
    append_base64(out_, buffer_);
  }

  std::string& out_;
  const VtuOptions& options_;
  std::vector<std::uint8_t> buffer_;
  std::vector<float> floats_;
};

void add_arrays(ArrayWriter& writer, std::string& out, const char* section,
                const std::vector<VtuArray>& arrays, std::size_t count, const std::string& path) {
  if (arrays.empty()) return;
  out += fmt::format("<{}>\n", section);
  const bool free_length = std::strcmp(section, "FieldData") == 0;
  for (const VtuArray& array : arrays)
    std::visit(
        [&](const auto& values) {
          const auto components = static_cast<std::size_t>(array.components);
          if (array.components < 1 ||
              (free_length ? values.size() % components != 0 : values.size() != count * components))
            throw Error(ErrorKind::kUsage,
                        fmt::format("{}: {} array \"{}\" has {} numbers, expected {} x {}", path, section,
                                    array.name, values.size(), array.components, count));
          writer.add(array.name, array.components, values, free_length);
        },
        array.values);
  out += fmt::format("</{}>\n", section);
}

std::vector<std::uint8_t> membership(const std::vector<Index>& set, std::size_t count) {
  std::vector<std::uint8_t> flags(count, 0);
  for (const Index i : set) flags[i] = 1;
  return flags;
}

template <class Mesh>
void write_any(const std::string& path, const Mesh& mesh, const std::vector<Tet>& cells,
               const VtuOptions& options) {
  VtuGrid grid;
  grid.points = {mesh.nodes.empty() ? nullptr : mesh.nodes[0].data(), 3 * mesh.nodes.size()};
  grid.cells = cells;
  std::vector<std::vector<std::uint8_t>> flags;
  flags.reserve(mesh.node_sets.size() + mesh.element_sets.size());  // spans into it must stay valid
  const auto add = [&](const Fields& fields, const IndexSets& sets, std::size_t count,
                       std::vector<VtuArray>& out) {
    for (const auto& [name, field] : fields)
      out.push_back({name, field.components, std::span<const double>(field.values)});
    for (const auto& [name, set] : sets) {
      flags.push_back(membership(set, count));
      out.push_back({"set:" + name, 1, std::span<const std::uint8_t>(flags.back())});
    }
  };
  add(mesh.node_fields, mesh.node_sets, mesh.nodes.size(), grid.point_data);
  add(mesh.element_fields, mesh.element_sets, cells.size(), grid.cell_data);
  write_vtu(path, grid, options);
}

}  // namespace

void append_base64(std::string& out, std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  // Two digits for every 12 bits at once.
  static const auto kPairs = [] {
    std::array<std::array<char, 2>, 4096> pairs;
    for (int i = 0; i < 4096; ++i) pairs[i] = {kDigits[i >> 6], kDigits[i & 63]};
    return pairs;
  }();
  const std::size_t at = out.size(), n = bytes.size();
  out.resize(at + (n + 2) / 3 * 4);
  char* to = out.data() + at;
  std::size_t i = 0;
  for (; i + 3 <= n; i += 3, to += 4) {
    const std::uint32_t v = std::uint32_t{bytes[i]} << 16 | std::uint32_t{bytes[i + 1]} << 8 | bytes[i + 2];
    std::memcpy(to, kPairs[v >> 12].data(), 2);
    std::memcpy(to + 2, kPairs[v & 4095].data(), 2);
  }
  if (i < n) {
    const std::uint32_t v =
        std::uint32_t{bytes[i]} << 16 | (i + 1 < n ? std::uint32_t{bytes[i + 1]} << 8 : 0);
    to[0] = kDigits[v >> 18];
    to[1] = kDigits[v >> 12 & 63];
    to[2] = i + 1 < n ? kDigits[v >> 6 & 63] : '=';
    to[3] = '=';
  }
}

void write_vtu(const std::string& path, const VtuGrid& grid, const VtuOptions& options) {
  if (grid.points.size() % 3 != 0)
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: {} coordinates, expected three per node", path, grid.points.size()));
  const std::size_t nodes = grid.points.size() / 3;
  std::vector<Index> connectivity;
  std::vector<std::int64_t> offsets;
  std::vector<std::uint8_t> types;
  connectivity.reserve(4 * grid.cells.size());
  offsets.reserve(grid.cells.size());
  types.reserve(grid.cells.size());
  for (const Tet& t : grid.cells) {
    const bool triangle = corners(t) == 3;
    connectivity.insert(connectivity.end(), t.begin(), t.begin() + (triangle ? 3 : 4));
    offsets.push_back(static_cast<std::int64_t>(connectivity.size()));
    types.push_back(triangle ? kVtkTriangle : kVtkTet);
  }

  std::string out;
  std::size_t numbers = grid.points.size();
  for (const auto* arrays : {&grid.point_data, &grid.cell_data, &grid.field_data})
    for (const VtuArray& a : *arrays) numbers += std::visit([](const auto& v) { return v.size(); }, a.values);
  out.reserve(numbers * 11 + grid.cells.size() * 34 + 4096);
  out += fmt::format(
      "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" "
      "byte_order=\"LittleEndian\" "
      "header_type=\"UInt64\"{}>\n<UnstructuredGrid>\n",
      options.compress ? " compressor=\"vtkZLibDataCompressor\"" : "");
  ArrayWriter writer(out, options);
  add_arrays(writer, out, "FieldData", grid.field_data, 0, path);
  out += fmt::format("<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{}\">\n", nodes, grid.cells.size());
  add_arrays(writer, out, "PointData", grid.point_data, nodes, path);
  add_arrays(writer, out, "CellData", grid.cell_data, grid.cells.size(), path);
  out += "<Points>\n";
  writer.add<double>("Points", 3, grid.points);
  out += "</Points>\n<Cells>\n";
  writer.add<Index>("connectivity", 1, connectivity);
  writer.add<std::int64_t>("offsets", 1, offsets);
  writer.add<std::uint8_t>("types", 1, types);
  out += "</Cells>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>\n";
  write_file_atomic(path, out);
}

void write_vtu(const std::string& path, const TetMesh& mesh, const VtuOptions& options) {
  write_any(path, mesh, mesh.tets, options);
}

void write_vtu(const std::string& path, const TriMesh& mesh, const VtuOptions& options) {
  std::vector<Tet> cells;
  cells.reserve(mesh.triangles.size());
  for (const Tri& t : mesh.triangles) cells.push_back({t[0], t[1], t[2], -1});
  write_any(path, mesh, cells, options);
}

void write_pvd(const std::string& path, std::span<const std::pair<double, std::string>> frames) {
  std::string out =
      "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\">\n"
      "<Collection>\n";
  for (const auto& [time, file] : frames)
    out += fmt::format("<DataSet timestep=\"{}\" part=\"0\" file=\"{}\"/>\n", time, escape(file));
  out += "</Collection>\n</VTKFile>\n";
  write_file_atomic(path, out);
}

}  // namespace limber
