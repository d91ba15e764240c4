// VTK XML unstructured grids: text, inline base64, appended raw and base64, with and without zlib.
#include <limber/io/byte_source.hpp>
#include <limber/io/vtk_cells.hpp>
#include <limber/io/xml.hpp>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>

namespace limber::io {
namespace {

// zlib cannot do better than about 1030 to 1, so that a block that claims more is a lie.
constexpr std::uint64_t kMaxRatio = 1040;

struct Array {
  std::string section, name, type, format;
  std::int64_t components = 1;
  std::uint64_t offset = 0;
  std::size_t begin = 0, end = 0;  // of the text
};

class VtuReader {
 public:
  VtuReader(const std::string& name, std::string_view data) : data_(data), in_(name, data) {}

  RawMesh read() {
    scan();
    points();
    cells();
    std::size_t fields = 0;
    for (const Array& a : arrays_) {
      if ((a.section != "PointData" && a.section != "CellData") || a.type == "String") continue;
      if (a.components > 1000 || ++fields > 1000) continue;  // not something to compute with
      const bool node = a.section == "PointData";
      std::vector<double> values =
          decode<double>(a, static_cast<std::uint64_t>(a.components) * (node ? n_points_ : n_cells_));
      if (node)
        add_field(mesh_, mesh_.node_fields, a.name, static_cast<int>(a.components), std::move(values));
      else
        collector_.add_cell_field(a.name, static_cast<int>(a.components), values);
    }
    collector_.finish();
    mesh_.format = "VTU";
    return std::move(mesh_);
  }

 private:
  std::int64_t number_attribute(const XmlTag& tag, const std::string& key, const char* otherwise) {
    const std::string text = tag.get(key, otherwise);
    if (text.empty()) in_.fail(fmt::format("<{}> has no attribute {}", tag.name, key));
    return to_integer(in_, text, key.c_str());
  }

  void scan() {
    XmlTag tag;
    std::string section;
    int pieces = 0;
    bool is_vtk = false;
    while (next_tag(in_, tag)) {
      if (tag.name == "VTKFile" && !tag.closing) {
        is_vtk = true;
        file_head(tag);
      } else if (!is_vtk) {
        in_.fail(fmt::format("found <{}>, expected <VTKFile>", tag.name));
      } else if (tag.name == "Piece" && !tag.closing) {
        if (++pieces > 1)
          in_.fail("the file has several pieces; merge them first (ParaView: filter Merge Blocks)");
        n_points_ = count_attribute(tag, "NumberOfPoints");
        n_cells_ = count_attribute(tag, "NumberOfCells");
      } else if (tag.name == "DataArray" && !tag.closing) {
        array(tag, section);
      } else if (tag.name == "AppendedData" && !tag.closing) {
        appended(tag);
        break;
      } else if (tag.name == "PointData" || tag.name == "CellData" || tag.name == "Points" ||
                 tag.name == "Cells" || tag.name == "FieldData") {
        section = tag.closing || tag.empty ? "" : tag.name;
      }
    }
    if (!is_vtk) in_.fail("expected an XML file with <VTKFile>");
    if (pieces == 0) in_.fail("the file has no <Piece>");
  }

  std::uint64_t count_attribute(const XmlTag& tag, const char* key) {
    const std::int64_t n = number_attribute(tag, key, "");
    if (n < 0 || n > std::numeric_limits<Index>::max())
      in_.fail(fmt::format("found {} as {}, expected 0 to {}", n, key, std::numeric_limits<Index>::max()));
    return static_cast<std::uint64_t>(n);
  }

  void file_head(const XmlTag& tag) {
    if (tag.get("type") != "UnstructuredGrid")
      in_.fail(
          fmt::format("found a VTK file of type {}, expected UnstructuredGrid", in_quotes(tag.get("type"))));
    const std::string order = tag.get("byte_order", "LittleEndian"),
                      header = tag.get("header_type", "UInt32");
    if (order != "LittleEndian" && order != "BigEndian")
      in_.fail(fmt::format("found byte_order {}, expected LittleEndian or BigEndian", in_quotes(order)));
    swap_ = order == "BigEndian";
    if (header != "UInt32" && header != "UInt64")
      in_.fail(fmt::format("found header_type {}, expected UInt32 or UInt64", in_quotes(header)));
    header_bytes_ = header == "UInt32" ? 4 : 8;
    const std::string compressor = tag.get("compressor");
    if (!compressor.empty() && compressor != "vtkZLibDataCompressor")
      in_.fail(
          fmt::format("the data are compressed with {}, expected vtkZLibDataCompressor or none", compressor));
    compressed_ = !compressor.empty();
  }

  void array(const XmlTag& tag, const std::string& section) {
    Array a;
    a.section = section;
    a.name = tag.get("Name");
    a.type = tag.get("type");
    a.format = tag.get("format", "ascii");
    a.components = number_attribute(tag, "NumberOfComponents", "1");
    if (a.components < 1 || a.components > 1000000)
      in_.fail(fmt::format("array {} has {} components", in_quotes(a.name), a.components));
    if (a.format == "appended") {
      const std::int64_t offset = number_attribute(tag, "offset", "");
      if (offset < 0) in_.fail(fmt::format("found {} as an offset, expected 0 or more", offset));
      a.offset = static_cast<std::uint64_t>(offset);
    } else if (a.format != "ascii" && a.format != "binary") {
      in_.fail(fmt::format("found format {}, expected ascii, binary or appended", in_quotes(a.format)));
    }
    a.begin = a.end = tag.end;
    if (!tag.empty) {
      const std::size_t close = in_.rest().find('<');
      if (close == std::string_view::npos) in_.fail(fmt::format("array {} has no end", in_quotes(a.name)));
      a.end = a.begin + close;
    }
    arrays_.push_back(std::move(a));
  }

  void appended(const XmlTag& tag) {
    const std::string encoding = tag.get("encoding", "base64");
    if (encoding != "raw" && encoding != "base64")
      in_.fail(fmt::format("found encoding {}, expected raw or base64", in_quotes(encoding)));
    appended_base64_ = encoding == "base64";
    in_.skip_space();
    if (in_.at_end() || in_.rest()[0] != '_') in_.fail("expected \"_\" before the appended data");
    appended_ = in_.rest().substr(1);
    if (appended_base64_) appended_ = appended_.substr(0, appended_.find('<'));
  }

  const Array* find(const char* section, const std::string& name) const {
    for (const Array& a : arrays_)
      if (a.section == section && (name.empty() || a.name == name)) return &a;
    return nullptr;
  }

  const Array& need(const char* section, const std::string& name) const {
    const Array* a = find(section, name);
    if (!a)
      in_.fail(
          fmt::format("<{}> has no array {}", section, name.empty() ? "of coordinates" : in_quotes(name)));
    return *a;
  }

  template <class T, class S>
  void convert(const std::vector<std::uint8_t>& bytes, std::vector<T>& out) const {
    out.reserve(bytes.size() / sizeof(S));
    for (std::size_t i = 0; i + sizeof(S) <= bytes.size(); i += sizeof(S)) {
      std::uint8_t raw[sizeof(S)];
      for (std::size_t k = 0; k < sizeof(S); ++k) raw[k] = bytes[i + (swap_ ? sizeof(S) - 1 - k : k)];
      S value;
      std::memcpy(&value, raw, sizeof value);
      out.push_back(static_cast<T>(value));
    }
  }

  // The numbers of an array; `count` of them are expected.
  template <class T>
  std::vector<T> decode(const Array& a, std::uint64_t count) const {
    static constexpr std::pair<std::string_view, int> kTypes[] = {
        {"Int8", 1},   {"UInt8", 1}, {"Int16", 2},  {"UInt16", 2},  {"Int32", 4},
        {"UInt32", 4}, {"Int64", 8}, {"UInt64", 8}, {"Float32", 4}, {"Float64", 8}};
    int size = 0;
    for (const auto& [type, bytes] : kTypes)
      if (type == a.type) size = bytes;
    if (size == 0)
      in_.fail(fmt::format("array {} has type {}, expected Float64, Int32, ...", in_quotes(a.name),
                           in_quotes(a.type)));
    const bool real = a.type.starts_with("Float");
    if (std::is_integral_v<T> && real)
      in_.fail(fmt::format("array {} has type {}, expected integers", in_quotes(a.name), a.type));
    if (count == 0) return {};
    if (a.format == "ascii") return decode_text<T>(a, count);
    const std::vector<std::uint8_t> bytes = decode_bytes(a, count * size);
    std::vector<T> out;
    if (a.type == "Float64") convert<T, double>(bytes, out);
    if (a.type == "Float32") convert<T, float>(bytes, out);
    if (a.type == "Int8") convert<T, std::int8_t>(bytes, out);
    if (a.type == "UInt8") convert<T, std::uint8_t>(bytes, out);
    if (a.type == "Int16") convert<T, std::int16_t>(bytes, out);
    if (a.type == "UInt16") convert<T, std::uint16_t>(bytes, out);
    if (a.type == "Int32") convert<T, std::int32_t>(bytes, out);
    if (a.type == "UInt32") convert<T, std::uint32_t>(bytes, out);
    if (a.type == "Int64") convert<T, std::int64_t>(bytes, out);
    if (a.type == "UInt64") convert<T, std::uint64_t>(bytes, out);
    return out;
  }

  template <class T>
  std::vector<T> decode_text(const Array& a, std::uint64_t count) const {
    Cursor in(in_.name(), data_.substr(0, a.end));
    in.seek(a.begin);
    if (count > in.remaining() / 2 + 1)
      in.fail(fmt::format("array {} has {} bytes of text, too few for {} numbers", in_quotes(a.name),
                          in.remaining(), count));
    std::vector<T> out;
    out.reserve(count);
    while (in.skip_space()) {
      if (out.size() == count)
        in.fail(fmt::format("array {} has more than the expected {} numbers", in_quotes(a.name), count));
      if constexpr (std::is_integral_v<T>)
        out.push_back(in.integer("an entry of an array"));
      else
        out.push_back(text_value(in));
    }
    if (out.size() != count)
      in.fail(fmt::format("array {} has {} numbers, expected {}", in_quotes(a.name), out.size(), count));
    return out;
  }

  // nan and inf are let through here: coordinates are checked afterwards, and a field may be left out.
  static double text_value(Cursor& in) {
    const std::string_view rest = in.rest();
    const char c = rest[0] == '-' && rest.size() > 1 ? rest[1] : rest[0];
    if (c == 'n' || c == 'N' || c == 'i' || c == 'I') {
      in.token();
      return std::numeric_limits<double>::quiet_NaN();
    }
    return in.number("an entry of an array");
  }

  std::uint64_t header_value(const std::vector<std::uint8_t>& bytes, std::size_t k) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < header_bytes_; ++i)
      value |= std::uint64_t{bytes[k * header_bytes_ + (swap_ ? header_bytes_ - 1 - i : i)]} << (8 * i);
    return value;
  }

  std::vector<std::uint8_t> decode_bytes(const Array& a, std::uint64_t expected) const {
    const bool inline_data = a.format == "binary";
    if (!inline_data && a.offset > appended_.size())
      in_.fail(fmt::format("array {} starts at offset {}, but the appended data have {} bytes",
                           in_quotes(a.name), a.offset, appended_.size()));
    ByteSource source(in_, inline_data ? data_.substr(a.begin, a.end - a.begin) : appended_.substr(a.offset),
                      inline_data || appended_base64_);
    if (!compressed_) {
      const std::uint64_t size = header_value(source.read(header_bytes_), 0);
      if (size != expected)
        in_.fail(fmt::format("array {} has {} bytes, expected {}", in_quotes(a.name), size, expected));
      return source.read(size);
    }
    const std::vector<std::uint8_t> head = source.read(3 * header_bytes_);
    const std::uint64_t blocks = header_value(head, 0), block = header_value(head, 1),
                        last = header_value(head, 2);
    if (blocks > source.remaining() / header_bytes_ || block > (std::uint64_t{1} << 40) || last > block)
      in_.fail(fmt::format("array {} has an impossible compression header", in_quotes(a.name)));
    const std::vector<std::uint8_t> sizes = source.read(blocks * header_bytes_);
    const std::uint64_t total = blocks == 0 ? 0 : last == 0 ? blocks * block : (blocks - 1) * block + last;
    if (total != expected)
      in_.fail(fmt::format("array {} has {} bytes before compression, expected {}", in_quotes(a.name), total,
                           expected));
    std::vector<std::uint8_t> out;
    for (std::uint64_t b = 0; b < blocks; ++b) {
      const std::uint64_t packed = header_value(sizes, b);
      const std::uint64_t plain = b + 1 == blocks && last != 0 ? last : block;
      if (packed > source.remaining() || plain > packed * kMaxRatio + 64)
        in_.fail(fmt::format("block {} of array {} has an impossible size", b, in_quotes(a.name)));
      const std::vector<std::uint8_t> bytes = source.read(packed);
      const std::size_t at = out.size();
      out.resize(at + plain);
      uLongf size = plain;
      if (uncompress(out.data() + at, &size, bytes.data(), bytes.size()) != Z_OK || size != plain)
        in_.fail(fmt::format("block {} of array {} does not decompress", b, in_quotes(a.name)));
    }
    return out;
  }

  void points() {
    const Array& a = need("Points", "");
    if (a.components != 3) in_.fail(fmt::format("points have {} components, expected 3", a.components));
    const std::vector<double> x = decode<double>(a, 3 * n_points_);
    mesh_.nodes.resize(n_points_);
    for (std::size_t i = 0; i < n_points_; ++i) {
      mesh_.nodes[i] = Vec3(x[3 * i], x[3 * i + 1], x[3 * i + 2]);
      if (!mesh_.nodes[i].allFinite())
        in_.fail(fmt::format("node {} has a coordinate that is not finite", i));
    }
  }

  void cells() {
    const std::vector<std::int64_t> offsets = decode<std::int64_t>(need("Cells", "offsets"), n_cells_);
    const std::vector<std::int64_t> types = decode<std::int64_t>(need("Cells", "types"), n_cells_);
    std::int64_t previous = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] < previous)
        in_.fail(fmt::format("the offset of cell {} is {}, expected at least {}", i, offsets[i], previous));
      previous = offsets[i];
    }
    const auto nodes = static_cast<std::int64_t>(n_points_);
    if (previous > std::numeric_limits<Index>::max())
      in_.fail(fmt::format("found {} as the last offset, which is more than can be read", previous));
    const std::vector<std::int64_t> connectivity =
        decode<std::int64_t>(need("Cells", "connectivity"), static_cast<std::uint64_t>(previous));
    std::vector<Index> corners;
    for (std::size_t i = 0, at = 0; i < offsets.size(); ++i) {
      corners.clear();
      for (; at < static_cast<std::size_t>(offsets[i]); ++at) {
        const std::int64_t v = connectivity[at];
        if (v < 0 || v >= nodes)
          in_.fail(fmt::format("cell {} names node {}, expected 0 to {}", i, v, nodes - 1));
        corners.push_back(static_cast<Index>(v));
      }
      collector_.add(types[i], corners);
    }
  }

  std::string_view data_;
  Cursor in_;
  RawMesh mesh_;
  VtkCells collector_{mesh_, in_};
  std::vector<Array> arrays_;
  std::uint64_t n_points_ = 0, n_cells_ = 0;
  std::size_t header_bytes_ = 4;
  bool swap_ = false, compressed_ = false, appended_base64_ = false;
  std::string_view appended_;
};

}  // namespace

RawMesh read_vtu(const std::string& name, std::string_view data) { return VtuReader(name, data).read(); }

}  // namespace limber::io
