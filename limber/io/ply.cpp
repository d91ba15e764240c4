// PLY, text and binary of either byte order. Elements other than vertex and face are read past.
#include <limber/io/raw_mesh.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace limber::io {
namespace {

enum class Type { kI8, kU8, kI16, kU16, kI32, kU32, kF32, kF64 };
constexpr std::size_t kSize[] = {1, 1, 2, 2, 4, 4, 4, 8};

Type to_type(const Cursor& in, std::string_view word) {
  static constexpr std::pair<std::string_view, Type> kNames[] = {
      {"char", Type::kI8},   {"int8", Type::kI8},     {"uchar", Type::kU8},   {"uint8", Type::kU8},
      {"short", Type::kI16}, {"int16", Type::kI16},   {"ushort", Type::kU16}, {"uint16", Type::kU16},
      {"int", Type::kI32},   {"int32", Type::kI32},   {"uint", Type::kU32},   {"uint32", Type::kU32},
      {"float", Type::kF32}, {"float32", Type::kF32}, {"double", Type::kF64}, {"float64", Type::kF64}};
  for (const auto& [n, t] : kNames)
    if (n == word) return t;
  in.fail(
      fmt::format("found {} as the type of a property, expected int, float, uchar, ...", in_quotes(word)));
}

struct Property {
  std::string name;
  Type type{};
  std::optional<Type> list;  // the type of its length
};

struct Element {
  std::string name;
  std::int64_t count = 0;
  std::vector<Property> properties;
};

class PlyReader {
 public:
  PlyReader(const std::string& name, std::string_view data) : in_(name, data) {}

  RawMesh read() {
    header();
    for (const Element& e : elements_) {
      if (e.properties.empty()) continue;  // nothing is stored for it
      if (e.name == "vertex")
        vertices(e);
      else if (e.name == "face")
        faces(e);
      else
        skip(e);
    }
    if (polygons_ > 0)
      mesh_.notices.push_back(
          fmt::format("cut {} polygons with more than three corners into triangles", polygons_));
    return std::move(mesh_);
  }

 private:
  void header() {
    in_.expect("ply");
    in_.line();
    for (;;) {
      const std::string_view key = in_.token("\"end_header\"");
      if (key == "comment" || key == "obj_info") {
        in_.line();
      } else if (key == "format") {
        const std::string_view f = in_.token("a format");
        if (f != "ascii" && f != "binary_little_endian" && f != "binary_big_endian")
          in_.fail(fmt::format("found format {}, expected ascii, binary_little_endian or binary_big_endian",
                               in_quotes(f)));
        binary_ = f != "ascii";
        in_.swap_bytes(f == "binary_big_endian");
        mesh_.format = fmt::format("PLY, {}", f);
        in_.line();
      } else if (key == "element") {
        Element e;
        e.name = in_.token("the name of an element");
        e.count = in_.integer("the number of elements", 0);
        elements_.push_back(std::move(e));
      } else if (key == "property") {
        if (elements_.empty()) in_.fail("found a property before the first element");
        Property p;
        const std::string_view type = in_.token("a type");
        if (type == "list") p.list = to_type(in_, in_.token("the type of a length"));
        p.type = to_type(in_, type == "list" ? in_.token("a type") : type);
        p.name = in_.token("the name of a property");
        elements_.back().properties.push_back(std::move(p));
      } else if (key == "end_header") {
        in_.line();
        break;
      } else {
        in_.fail(
            fmt::format("found {} in the header, expected element, property or end_header", in_quotes(key)));
      }
    }
    if (mesh_.format.empty()) in_.fail("the header has no format line");
    in_.binary(binary_);
  }

  // Fewest bytes that one element takes.
  std::size_t least_bytes(const Element& e) const {
    std::size_t n = 0;
    for (const Property& p : e.properties)
      n += !binary_ ? 2 : kSize[static_cast<int>(p.list ? *p.list : p.type)];
    return n;
  }

  double value(Type type, const char* what) {
    if (!binary_) return in_.number(what);
    switch (type) {
      case Type::kI8:
        return in_.read<std::int8_t>(what);
      case Type::kU8:
        return in_.read<std::uint8_t>(what);
      case Type::kI16:
        return in_.read<std::int16_t>(what);
      case Type::kU16:
        return in_.read<std::uint16_t>(what);
      case Type::kI32:
        return in_.read<std::int32_t>(what);
      case Type::kU32:
        return in_.read<std::uint32_t>(what);
      case Type::kF32:
        return in_.read<float>(what);
      case Type::kF64:
        return in_.read<double>(what);
    }
    return 0;
  }

  std::size_t list_length(const Property& p) {
    const double n = value(*p.list, "the length of a list");
    if (!(n >= 0 && n <= 1e9) || n != static_cast<double>(static_cast<std::int64_t>(n)))
      in_.fail(fmt::format("found {} as the length of a list, expected a whole number", n));
    return in_.count(static_cast<std::int64_t>(n), binary_ ? kSize[static_cast<int>(p.type)] : 2,
                     "list entries");
  }

  // Reads past a property that nobody asked for; its numbers may be anything.
  void skip(const Property& p) {
    const std::size_t n = p.list ? list_length(p) : 1;
    if (binary_)
      in_.bytes(n * kSize[static_cast<int>(p.type)], p.name.c_str());
    else
      for (std::size_t i = 0; i < n; ++i) in_.token("a number");
  }

  void skip(const Element& e) {
    const std::size_t n = in_.count(e.count, least_bytes(e), e.name.c_str());
    for (std::size_t i = 0; i < n; ++i)
      for (const Property& p : e.properties) skip(p);
  }

  // The names of the texture coordinates of a vertex; empty: it has none.
  static std::pair<std::string, std::string> texture_of(const Element& e) {
    const auto has = [&](const char* name) {
      return std::any_of(e.properties.begin(), e.properties.end(),
                         [&](const Property& p) { return !p.list && p.name == name; });
    };
    for (const auto& [u, v] : {std::pair("s", "t"), std::pair("texture_u", "texture_v")})
      if (has(u) && has(v)) return {u, v};
    // With w they are the components of something else.
    return has("u") && has("v") && !has("w") ? std::pair<std::string, std::string>("u", "v")
                                             : std::pair<std::string, std::string>();
  }

  void vertices(const Element& e) {
    int axis_count = 0;
    for (const Property& p : e.properties)
      axis_count += !p.list && (p.name == "x" || p.name == "y" || p.name == "z");
    if (axis_count != 3 || !mesh_.nodes.empty())
      in_.fail("expected one vertex element with properties x, y and z");
    const std::size_t n = in_.count(e.count, least_bytes(e), "vertices");
    mesh_.nodes.reserve(n);
    const auto [u, v] = texture_of(e);
    Field* uv = nullptr;
    if (!u.empty()) {
      uv = &mesh_.node_fields["uv"];
      uv->components = 2;
      uv->values.reserve(2 * n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      Vec3 x = Vec3::Zero();
      std::array<double, 2> texture{};
      for (const Property& p : e.properties) {
        if (!p.list && p.name.size() == 1 && p.name[0] >= 'x' && p.name[0] <= 'z')
          x[p.name[0] - 'x'] = value(p.type, "a vertex coordinate");
        else if (uv && !p.list && (p.name == u || p.name == v))
          texture[p.name == v] = value(p.type, "a texture coordinate");
        else
          skip(p);
      }
      if (uv) uv->values.insert(uv->values.end(), texture.begin(), texture.end());
      mesh_.nodes.push_back(x);
    }
  }

  void faces(const Element& e) {
    const auto indices = [](const Property& p) {
      return p.list && (p.name == "vertex_indices" || p.name == "vertex_index");
    };
    if (std::none_of(e.properties.begin(), e.properties.end(), indices))
      in_.fail("the face element has no list vertex_indices (or vertex_index)");
    const auto nodes = static_cast<double>(mesh_.nodes.size());
    const std::size_t n = in_.count(e.count, least_bytes(e), "faces");
    mesh_.triangles.reserve(n);
    std::vector<Index> corners;
    for (std::size_t i = 0; i < n; ++i)
      for (const Property& p : e.properties) {
        if (!indices(p)) {
          skip(p);
          continue;
        }
        const std::size_t k = list_length(p);
        corners.clear();
        for (std::size_t c = 0; c < k; ++c) {
          const double v = value(p.type, "a vertex of a face");
          if (!(v >= 0 && v < nodes) || v != static_cast<double>(static_cast<Index>(v)))
            in_.fail(fmt::format("found {} as a vertex of face {}, expected 0 to {}", v, i, nodes - 1));
          corners.push_back(static_cast<Index>(v));
        }
        if (k < 3) in_.fail(fmt::format("face {} has {} vertices, expected at least 3", i, k));
        polygons_ += k > 3;
        mesh_.add_polygon(corners);
      }
  }

  Cursor in_;
  RawMesh mesh_;
  std::vector<Element> elements_;
  bool binary_ = false;
  std::size_t polygons_ = 0;
};

}  // namespace

RawMesh read_ply(const std::string& name, std::string_view data) { return PlyReader(name, data).read(); }

}  // namespace limber::io
