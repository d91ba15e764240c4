// Legacy VTK files: unstructured grids and polygonal data, text and binary (which is big-endian).
#include <limber/io/vtk_cells.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace limber::io {
namespace {

class VtkReader {
 public:
  VtkReader(const std::string& name, std::string_view data) : in_(name, data) {}

  RawMesh read() {
    const std::string_view head = in_.line();
    if (!head.starts_with("# vtk DataFile Version"))
      in_.fail(fmt::format("found {}, expected \"# vtk DataFile Version\"", in_quotes(head)));
    in_.line();  // title
    const std::string_view encoding = in_.token("ASCII or BINARY");
    if (encoding != "ASCII" && encoding != "BINARY")
      in_.fail(fmt::format("found {}, expected ASCII or BINARY", in_quotes(encoding)));
    binary_ = encoding == "BINARY";
    in_.swap_bytes(true);
    in_.expect("DATASET");
    const std::string set(in_.token("the kind of data set"));
    if (set != "UNSTRUCTURED_GRID" && set != "POLYDATA")
      in_.fail(fmt::format("found data set {}, expected UNSTRUCTURED_GRID or POLYDATA", in_quotes(set)));
    while (in_.skip_space()) section(std::string(in_.token()));
    make_cells();
    mesh_.format = fmt::format("legacy VTK, {}", binary_ ? "binary" : "text");
    return std::move(mesh_);
  }

 private:
  struct CellList {
    std::vector<std::int64_t> offsets{0};
    std::vector<Index> nodes;
  };
  struct CellField {
    std::string name;
    int components;
    std::vector<double> values;
  };

  void section(const std::string& key) {
    if (key == "POINTS") {
      points();
    } else if (key == "CELLS") {
      grid_ = cell_list("cells");
    } else if (key == "CELL_TYPES") {
      const std::int64_t n = in_.integer("the number of cell types", 0);
      types_ = values("int", n, "cell types");
    } else if (key == "POLYGONS" || key == "TRIANGLE_STRIPS" || key == "LINES" || key == "VERTICES") {
      // In the file, and so in the cell data, they come as vertices, lines, polygons, strips.
      static const std::map<std::string, std::int64_t> kTypes{
          {"VERTICES", 2}, {"LINES", 4}, {"POLYGONS", 7}, {"TRIANGLE_STRIPS", 6}};
      const CellList list = cell_list("cells");
      const std::int64_t shift = static_cast<std::int64_t>(grid_.nodes.size());
      grid_.nodes.insert(grid_.nodes.end(), list.nodes.begin(), list.nodes.end());
      for (std::size_t i = 1; i < list.offsets.size(); ++i) {
        grid_.offsets.push_back(list.offsets[i] + shift);
        types_.push_back(static_cast<double>(kTypes.at(key)));
      }
    } else if (key == "POINT_DATA" || key == "CELL_DATA") {
      at_nodes_ = key == "POINT_DATA";
      items_ = in_.integer("the number of items", 0);
      const std::size_t expected = at_nodes_ ? mesh_.nodes.size() : grid_.offsets.size() - 1;
      if (items_ != static_cast<std::int64_t>(expected))
        in_.fail(fmt::format("found {} for {} items, expected {}", key, items_, expected));
    } else if (key == "FIELD") {
      field();
    } else if (key == "METADATA") {
      in_.line();
      while (!in_.at_end() && !in_.line().empty()) {
      }
    } else {
      attribute(key);
    }
  }

  void points() {
    const std::int64_t n = in_.integer("the number of points", 0);
    const std::string type(in_.token("a type"));
    if (!mesh_.nodes.empty()) in_.fail("found a second section POINTS");
    in_.count(n, 6, "points");
    const std::vector<double> x = values(type, 3 * n, "point coordinates");
    mesh_.nodes.reserve(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < x.size(); i += 3) {
      mesh_.nodes.emplace_back(x[i], x[i + 1], x[i + 2]);
      if (!mesh_.nodes.back().allFinite())
        in_.fail(fmt::format("point {} has a coordinate that is not finite", i / 3));
    }
  }

  // SCALARS, VECTORS and so on, after POINT_DATA or CELL_DATA.
  void attribute(const std::string& key) {
    static const std::map<std::string, int> kFixed{
        {"VECTORS", 3}, {"NORMALS", 3}, {"TENSORS", 9}, {"GLOBAL_IDS", 1}, {"PEDIGREE_IDS", 1}};
    if (key == "LOOKUP_TABLE") {
      in_.token("a name");
      const std::int64_t n = in_.integer("the size of a lookup table", 0);
      in_.count(n, 4, "lookup table entries");
      values(binary_ ? "unsigned_char" : "float", 4 * n, "lookup table entries");
      return;
    }
    if (key != "SCALARS" && key != "COLOR_SCALARS" && key != "TEXTURE_COORDINATES" && !kFixed.count(key))
      in_.fail(fmt::format(
          "found {}, expected a keyword like CELLS or SCALARS (are there more numbers than announced?)",
          in_quotes(key)));
    if (items_ < 0) in_.fail(fmt::format("found {} before POINT_DATA or CELL_DATA", key));
    const std::string name(in_.token("a name"));
    std::int64_t components = 1;
    std::string type;
    if (key == "COLOR_SCALARS") {
      components = in_.integer("the number of components", 1, 1000);
      type = binary_ ? "unsigned_char" : "float";
    } else if (key == "TEXTURE_COORDINATES") {
      components = in_.integer("the dimension", 1, 3);
      type = in_.token("a type");
    } else if (key == "SCALARS") {
      type = in_.token("a type");
      if (in_.more_in_line()) components = in_.integer("the number of components", 1, 1000);
      in_.expect("LOOKUP_TABLE");
      in_.token("a name");
    } else {
      components = kFixed.at(key);
      type = in_.token("a type");
    }
    store(name, static_cast<int>(components), values(type, components * items_, "attribute values"));
  }

  void field() {
    in_.token("a name");
    const std::size_t arrays = in_.count(in_.integer("the number of arrays", 0), 8, "arrays");
    for (std::size_t i = 0; i < arrays; ++i) {
      std::string name(in_.token("the name of an array"));
      if (name == "METADATA") {
        section(name);
        name = in_.token("the name of an array");
      }
      const std::int64_t components = in_.integer("the number of components", 0, 1000);
      const std::int64_t tuples = in_.integer("the number of tuples", 0, std::numeric_limits<Index>::max());
      const std::string type(in_.token("a type"));
      if (type == "string") {
        in_.line();
        for (std::int64_t k = 0; k < components * tuples && !in_.at_end(); ++k) in_.line();
        continue;
      }
      std::vector<double> v = values(type, components * tuples, "field values");
      if (tuples == items_ && components > 0) store(name, static_cast<int>(components), std::move(v));
    }
  }

  void store(const std::string& name, int components, std::vector<double> v) {
    if (at_nodes_)
      add_field(mesh_, mesh_.node_fields, name, components, std::move(v));
    else
      cell_fields_.push_back({name, components, std::move(v)});
  }

  static std::size_t type_size(const std::string& type) {
    static const std::map<std::string, std::size_t> kSizes{
        {"char", 1},   {"unsigned_char", 1}, {"short", 2},        {"unsigned_short", 2}, {"int", 4},
        {"float", 4},  {"unsigned_int", 4},  {"vtkIdType", 4},    {"long", 8},           {"unsigned_long", 8},
        {"double", 8}, {"vtktypeint64", 8},  {"vtktypeuint64", 8}};
    const auto it = kSizes.find(type);
    return it == kSizes.end() ? 0 : it->second;
  }

  double binary_value(const std::string& type, const char* what) {
    if (type == "double" || type == "float") {
      // Read as bits, so that what is not a number can be judged by who uses it.
      if (type == "float") {
        const auto bits = in_.read<std::uint32_t>(what);
        float v;
        std::memcpy(&v, &bits, sizeof v);
        return v;
      }
      const auto bits = in_.read<std::uint64_t>(what);
      double v;
      std::memcpy(&v, &bits, sizeof v);
      return v;
    }
    if (type == "int" || type == "vtkIdType") return in_.read<std::int32_t>(what);
    if (type == "unsigned_int") return in_.read<std::uint32_t>(what);
    if (type == "char") return in_.read<std::int8_t>(what);
    if (type == "unsigned_char") return in_.read<std::uint8_t>(what);
    if (type == "short") return in_.read<std::int16_t>(what);
    if (type == "unsigned_short") return in_.read<std::uint16_t>(what);
    if (type == "unsigned_long" || type == "vtktypeuint64")
      return static_cast<double>(in_.read<std::uint64_t>(what));
    return static_cast<double>(in_.read<std::int64_t>(what));
  }

  // `n` numbers of a type. Integers beyond 2^53 lose digits, which no index may have anyway.
  std::vector<double> values(const std::string& type, std::int64_t n, const char* what) {
    const std::size_t size = type_size(type);
    if (size == 0) in_.fail(fmt::format("found type {}, expected float, double, int, ...", in_quotes(type)));
    if (binary_) in_.line();
    in_.binary(binary_);
    if (n < 0 || static_cast<std::uint64_t>(n) > in_.remaining() / (binary_ ? size : 2) + 1)
      in_.fail(
          fmt::format("expected {} {}, but only {} bytes are left: a wrong count, or the file is cut off", n,
                      what, in_.remaining()));
    std::vector<double> out;
    out.reserve(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) out.push_back(binary_ ? binary_value(type, what) : text_value(what));
    in_.binary(false);
    return out;
  }

  double text_value(const char* what) {
    const std::string_view t = in_.token(what);
    const char c = t[0] == '-' && t.size() > 1 ? t[1] : t[0];
    if (c == 'n' || c == 'N' || c == 'i' || c == 'I') return std::numeric_limits<double>::quiet_NaN();
    return to_number(in_, t, what);
  }

  Index to_node(double v) {
    if (!(v >= 0 && v < static_cast<double>(mesh_.nodes.size())) || v != std::floor(v))
      in_.fail(fmt::format("a cell names node {}, expected 0 to {}", v,
                           static_cast<double>(mesh_.nodes.size()) - 1));
    return static_cast<Index>(v);
  }

  CellList cell_list(const char* what) {
    const std::int64_t first = in_.integer("the number of cells", 0, std::numeric_limits<Index>::max());
    const std::int64_t second =
        in_.integer("the size of the cell list", 0, std::numeric_limits<Index>::max());
    CellList list;
    const std::size_t before = in_.position();
    if (in_.token() == "OFFSETS") {  // since version 5.1: offsets and nodes apart
      const std::string offset_type(in_.token("a type"));
      const std::vector<double> offsets = values(offset_type, first, what);
      in_.expect("CONNECTIVITY");
      const std::string node_type(in_.token("a type"));
      const std::vector<double> nodes = values(node_type, second, what);
      for (const double v : nodes) list.nodes.push_back(to_node(v));
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        const double least = i == 0 ? 0 : offsets[i - 1],
                     most = i == 0 ? 0 : static_cast<double>(nodes.size());
        if (!(offsets[i] >= least && offsets[i] <= most) || offsets[i] != std::floor(offsets[i]))
          in_.fail(fmt::format("found {} as offset {}, expected {} to {}", offsets[i], i, least, most));
        if (i > 0) list.offsets.push_back(static_cast<std::int64_t>(offsets[i]));
      }
      if (!offsets.empty() && offsets.back() != static_cast<double>(nodes.size()))
        in_.fail(fmt::format("the last offset is {}, expected {}", offsets.back(), nodes.size()));
      return list;
    }
    in_.seek(before);
    const std::vector<double> flat = values("int", second, what);
    std::size_t at = 0;
    for (std::int64_t c = 0; c < first; ++c) {
      const double n = at < flat.size() ? flat[at] : -1;
      if (!(n >= 0 && n <= static_cast<double>(flat.size() - at - 1)) || n != std::floor(n))
        in_.fail(fmt::format("cell {} has {} nodes, which does not fit the announced size {}", c, n, second));
      ++at;
      for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k) list.nodes.push_back(to_node(flat[at++]));
      list.offsets.push_back(static_cast<std::int64_t>(list.nodes.size()));
    }
    if (at != flat.size())
      in_.fail(fmt::format("{} cells take {} numbers, expected {} as announced", first, at, flat.size()));
    return list;
  }

  void make_cells() {
    const std::size_t n = grid_.offsets.size() - 1;
    if (types_.size() != n) in_.fail(fmt::format("found {} cell types for {} cells", types_.size(), n));
    VtkCells cells(mesh_, in_);
    for (std::size_t i = 0; i < n; ++i) {
      const double type = types_[i];
      cells.add(type >= 0 && type < 1000 ? static_cast<std::int64_t>(type) : -1,
                std::span<const Index>(grid_.nodes)
                    .subspan(static_cast<std::size_t>(grid_.offsets[i]),
                             static_cast<std::size_t>(grid_.offsets[i + 1] - grid_.offsets[i])));
    }
    for (const CellField& f : cell_fields_) cells.add_cell_field(f.name, f.components, f.values);
    cells.finish();
  }

  Cursor in_;
  RawMesh mesh_;
  bool binary_ = false, at_nodes_ = true;
  std::int64_t items_ = -1;
  CellList grid_;
  std::vector<double> types_;
  std::vector<CellField> cell_fields_;
};

}  // namespace

RawMesh read_vtk(const std::string& name, std::string_view data) { return VtkReader(name, data).read(); }

}  // namespace limber::io
