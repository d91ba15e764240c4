#include <limber/core/error.hpp>
#include <limber/io/replay_layout.hpp>

#include <fmt/format.h>
#include <zlib.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace limber::replay {

using nlohmann::json;

std::uint32_t checksum(const void* data, std::size_t size) {
  return static_cast<std::uint32_t>(crc32_z(0, static_cast<const Bytef*>(data), size));
}

void damaged(const std::string& what) { throw Error(ErrorKind::kIo, what); }

void put_string(std::string& out, const std::string& s) {
  put(out, static_cast<std::uint32_t>(s.size()));
  out += s;
}

namespace {

// All first bytes, then all second bytes, ...: the exponents of neighbouring numbers are alike, and deflate
// finds that only when they lie side by side.
std::string shuffled(const char* data, std::size_t count, std::size_t width) {
  std::string out(count * width, '\0');
  for (std::size_t b = 0; b < width; ++b)
    for (std::size_t i = 0; i < count; ++i) out[b * count + i] = data[i * width + b];
  return out;
}

}  // namespace

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

static void put_floats(std::string& out, const std::vector<float>& values, int level) {
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

// As 32-bit words, the upper halves of all numbers first: so they deflate best.
void put_doubles(std::string& out, const std::vector<double>& values, int level) {
  std::vector<std::uint32_t> words(2 * values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(values[i]);
    words[i] = static_cast<std::uint32_t>(bits >> 32);
    words[values.size() + i] = static_cast<std::uint32_t>(bits);
  }
  put_array(out, Type::kInt, reinterpret_cast<const char*>(words.data()), words.size(), level);
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

void put_surface(std::string& out, const ReplaySurface& r, int level) {
  const TexturedSurface& s = r.surface;
  const auto numbers = [&](const auto& points, int width) {
    std::vector<float> flat;
    for (const auto& p : points)
      for (int d = 0; d < width; ++d) flat.push_back(static_cast<float>(p[d]));
    put_array(out, Type::kFloat, reinterpret_cast<const char*>(flat.data()), flat.size(), level);
  };
  const auto indices = [&](const std::vector<Index>& values) {
    put_array(out, Type::kInt, reinterpret_cast<const char*>(values.data()), values.size(), level);
  };
  put_string(out, r.body);
  numbers(s.points, 3);
  numbers(s.uv, 2);
  for (const auto* list :
       {&s.face_begin, &s.corner_point, &s.corner_uv, &s.corner_normal, &s.face_material, &r.element})
    indices(*list);
  put_array(out, Type::kFloat, reinterpret_cast<const char*>(r.weight.data()), r.weight.size(), level);
  put(out, static_cast<std::uint32_t>(s.materials.size()));
  for (const SurfaceMaterial& m : s.materials) {
    put_string(out, m.name);
    for (int d = 0; d < 3; ++d) put(out, m.color[d]);
    put_string(out, m.image_name);
    put_string(out, m.image);
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

template <class T>
std::vector<T> Cursor::array() {
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

std::vector<float> Cursor::floats() { return array<float>(); }
std::vector<Index> Cursor::indices() { return array<Index>(); }
std::vector<double> Cursor::doubles() {
  const std::vector<Index> words = indices();
  if (words.size() % 2 != 0) damaged("numbers with a wrong length");
  std::vector<double> out(words.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(words[i])) << 32 |
                                   static_cast<std::uint32_t>(words[out.size() + i]));
  return out;
}

std::vector<ReplayField> Cursor::fields(std::size_t count) {
  std::vector<ReplayField> out(bounded(get<std::uint32_t>(), 14));
  for (ReplayField& f : out) {
    f.name = string();
    f.unit = string();
    f.components = get<std::int32_t>();
    f.values = floats();
    if (f.components < 1 || f.values.size() != static_cast<std::size_t>(f.components) * count)
      damaged("a field with a wrong length");
  }
  return out;
}

ReplaySurface Cursor::surface(const std::vector<Tet>& elements) {
  ReplaySurface out;
  TexturedSurface& s = out.surface;
  out.body = string();
  const std::vector<float> points = floats(), uv = floats();
  if (points.size() % 3 != 0 || uv.size() % 2 != 0) damaged("a surface with a wrong length");
  for (std::size_t i = 0; i < points.size(); i += 3)
    s.points.emplace_back(points[i], points[i + 1], points[i + 2]);
  for (std::size_t i = 0; i < uv.size(); i += 2) s.uv.emplace_back(uv[i], uv[i + 1]);
  for (auto* list :
       {&s.face_begin, &s.corner_point, &s.corner_uv, &s.corner_normal, &s.face_material, &out.element})
    *list = indices();
  out.weight = floats();
  s.materials.resize(bounded(get<std::uint32_t>(), 36));
  for (SurfaceMaterial& m : s.materials) {
    m.name = string();
    for (int d = 0; d < 3; ++d) m.color[d] = get<double>();
    m.image_name = string();
    m.image = string();
  }
  const auto inside = [](const std::vector<Index>& list, Index lowest, std::size_t limit) {
    for (const Index i : list)
      if (i < lowest || i >= static_cast<Index>(limit)) damaged("a surface with an index outside its range");
  };
  const std::size_t corners = s.corner_point.size();
  if (s.face_begin.empty() || s.face_begin.front() != 0 ||
      s.face_begin.back() != static_cast<Index>(corners) || s.corner_uv.size() != corners ||
      s.corner_normal.size() != corners || s.face_material.size() + 1 != s.face_begin.size() ||
      out.element.size() != s.points.size() || out.weight.size() != 4 * s.points.size())
    damaged("a surface with a wrong length");
  for (std::size_t f = 0; f + 1 < s.face_begin.size(); ++f)
    if (s.face_begin[f + 1] < s.face_begin[f] + 3) damaged("a surface with a wrong face");
  inside(s.corner_point, 0, s.points.size());
  inside(s.corner_uv, -1, s.uv.size());
  inside(s.face_material, -1, s.materials.size());
  inside(out.element, 0, elements.size());
  for (const Index e : out.element)
    if (elements[static_cast<std::size_t>(e)][3] < 0) damaged("a surface on an element that cannot carry it");
  return out;
}

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

std::string text_of(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

namespace {

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
          {"parameters", *h.parameters},
          {"facts", *h.facts},
          {"obstacles", std::move(obstacles)}};
}

}  // namespace

std::string header_payload(const ReplayHeader& header) { return text_of(to_json(header)); }

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
  *h.parameters = j.at("parameters");
  *h.facts = j.at("facts");
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

}  // namespace limber::replay

namespace limber {

std::vector<float> carried_points(const ReplaySurface& s, const ReplayTopology& t,
                                  const std::vector<float>& x) {
  std::vector<float> out(3 * s.element.size(), 0.0f);
  for (std::size_t i = 0; i < s.element.size(); ++i) {
    const Tet& nodes = t.elements[static_cast<std::size_t>(s.element[i])];
    for (std::size_t d = 0; d < 3; ++d) {
      double sum = 0;
      for (std::size_t c = 0; c < 4; ++c)
        sum += double(s.weight[4 * i + c]) * double(x[3 * static_cast<std::size_t>(nodes[c]) + d]);
      out[3 * i + d] = static_cast<float>(sum);
    }
  }
  return out;
}

}  // namespace limber
