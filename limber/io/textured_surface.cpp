#include <limber/io/textured_surface.hpp>

#include <limber/core/error.hpp>
#include <limber/io/cursor.hpp>
#include <limber/io/file.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/mesh/polygon.hpp>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

namespace limber {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostImageBytes = 64ull << 20;

void tell(std::vector<std::string>* notices, std::string line) {
  if (notices) notices->push_back(std::move(line));
}

// The text after a keyword; names may have blanks in them.
std::string name_in(std::string_view line) {
  std::string text(line);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r' || text.back() == '\t')) text.pop_back();
  text.erase(0, text.find_first_not_of(" \t"));
  std::replace(text.begin(), text.end(), '\\', '/');
  return text;
}

// What stands before the first blank; `text` keeps what comes after it.
std::string take_word(std::string& text) {
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  std::string word = text.substr(0, end);
  text.erase(0, text.find_first_not_of(" \t", end));
  return word;
}

bool is_number(const std::string& word) {
  char* end = nullptr;
  std::strtod(word.c_str(), &end);
  return !word.empty() && end == word.c_str() + word.size();
}

// The name after options: "-s 1 1 1 -clamp on old wood.png".
std::string image_name_in(std::string_view line) {
  std::string text = name_in(line);
  while (text.starts_with('-')) {
    const std::string before = text, option = take_word(text);
    if (option == "-o" || option == "-s" || option == "-t") {  // one to three numbers
      for (int k = 0; k < 3 && is_number(text.substr(0, text.find_first_of(" \t"))); ++k) take_word(text);
    } else if (option == "-mm") {
      take_word(text);
      take_word(text);
    } else if (option == "-blendu" || option == "-blendv" || option == "-boost" || option == "-bm" ||
               option == "-cc" || option == "-clamp" || option == "-imfchan" || option == "-texres" ||
               option == "-type") {
      take_word(text);
    } else {
      return before.substr(before.find_last_of(" \t") + 1);
    }
  }
  return text;
}

// One name with blanks in it where there is such a file, else several: each ends with ".mtl".
std::vector<std::string> library_names_in(const std::string& folder, std::string_view line) {
  std::string text = name_in(line);
  std::error_code error;
  if (fs::exists(fs::path(folder) / text, error)) return {text};
  std::vector<std::string> out;
  for (std::size_t from = 0; from < text.size();) {
    std::size_t end = text.size();
    for (const char* ending : {".mtl ", ".mtl\t", ".MTL ", ".MTL\t"})
      if (const std::size_t found = text.find(ending, from); found < end) end = found + 4;
    out.push_back(text.substr(from, end - from));
    from = std::min(text.find_first_not_of(" \t", end), text.size());
  }
  return out;
}

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t k = 0; k < 4; ++k) out = out << 8 | static_cast<unsigned char>(bytes[at + k]);
  return out;
}

// What is wrong with a PNG file, as far as its chunks tell; empty: nothing.
std::string png_damage(const std::string& bytes) {
  bool pixels = false;
  for (std::size_t from = 8; from < bytes.size();) {
    const std::size_t left = bytes.size() - from;
    const std::size_t length = left < 12 ? 0 : big_endian(bytes, from);
    if (left < 12 || length > left - 12) return fmt::format("ends in the middle of a part, at byte {}", from);
    const std::string type = bytes.substr(from + 4, 4);
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data()) + from + 4;
    if (::crc32(0, data, static_cast<uInt>(length + 4)) != big_endian(bytes, from + 8 + length))
      return fmt::format("has a damaged part, at byte {}", from);
    if ((from == 8) != (type == "IHDR") || (type == "IHDR" && length != 13)) return "has no header";
    pixels = pixels || type == "IDAT";
    if (type == "IEND") return pixels ? "" : "has no pixels";
    from += 12 + length;
  }
  return "has no end";
}

void read_image(const std::string& folder, const std::string& name, SurfaceMaterial& material,
                std::vector<std::string>* notices) {
  const fs::path path = fs::path(folder) / name;
  try {
    std::string bytes = read_file(path.string(), kMostImageBytes);
    if (image_type(bytes).empty())
      return tell(notices,
                  fmt::format("{}: is neither PNG nor JPEG; the material \"{}\" has its plain colour",
                              path.string(), material.name));
    if (const std::string wrong = image_type(bytes) == "image/png" ? png_damage(bytes) : ""; !wrong.empty())
      return tell(notices, fmt::format("{}: the image {}; the material \"{}\" has its plain colour",
                                       path.string(), wrong, material.name));
    material.image = std::move(bytes);
    material.image_name = path.filename().string();
  } catch (const Error& e) {
    tell(notices, fmt::format("{}; the material \"{}\" has its plain colour", e.what(), material.name));
  }
}

void read_mtl(const std::string& folder, const std::string& file, std::vector<SurfaceMaterial>& out,
              std::vector<std::string>* notices) {
  const std::string path = (fs::path(folder) / file).string();
  std::string data;
  try {
    data = read_file(path);
  } catch (const Error& e) {
    return tell(notices, fmt::format("{}; its materials have a plain colour", e.what()));
  }
  io::Cursor in(path, data);
  in.comments('#');
  const std::string images = fs::path(path).parent_path().string();
  while (in.skip_space()) {
    const std::string_view key = in.token();
    if (key == "newmtl") {
      in.more_in_line();
      out.push_back({name_in(in.line()), Vec3::Constant(0.8), {}, {}});
    } else if (out.empty()) {
      in.line();
    } else if (key == "Kd") {
      const Vec3 color = in.point("a colour");
      out.back().color = color.cwiseMax(0).cwiseMin(1);
      in.line();
    } else if (key == "map_Kd") {
      in.more_in_line();
      read_image(images.empty() ? "." : images, image_name_in(in.line()), out.back(), notices);
    } else {
      in.line();
    }
  }
}

// One corner of a face: "7", "7/3", "7//2", "7/3/2"; numbers from 1, negative ones from the end.
struct ObjCorner {
  std::int64_t point = 0, uv = 0, normal = 0;
};

ObjCorner parse_corner(const io::Cursor& in, std::string_view text) {
  ObjCorner out;
  std::int64_t* const part[3] = {&out.point, &out.uv, &out.normal};
  constexpr const char* kWhat[3] = {"a vertex of a face", "a texture coordinate of a face",
                                    "a normal of a face"};
  for (int k = 0; k < 3; ++k) {
    const std::size_t slash = text.find('/');
    const std::string_view number = text.substr(0, slash);
    if (k == 0 || !number.empty()) *part[k] = io::to_integer(in, number, kWhat[k]);
    if (slash == std::string_view::npos) break;
    text = text.substr(slash + 1);
  }
  return out;
}

}  // namespace

std::string image_type(const std::string& bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (bytes.starts_with("\xff\xd8\xff")) return "image/jpeg";
  return {};
}

std::vector<Tri> corner_triangles(const TexturedSurface& s) {
  std::vector<Tri> out;
  std::vector<Vec3> x;
  for (Index f = 0; f < s.faces(); ++f) {
    const Index first = s.face_begin[at(f)];
    x.clear();
    for (Index c = first; c < s.face_begin[at(f) + 1]; ++c) x.push_back(s.points[at(s.corner_point[at(c)])]);
    for (const Tri& t : cut_polygon(x)) out.push_back({first + t[0], first + t[1], first + t[2]});
  }
  return out;
}

TexturedSurface parse_textured_obj(const std::string& name, std::string_view data, const std::string& folder,
                                   std::vector<std::string>* notices) {
  TexturedSurface out;
  io::Cursor in(name, data);
  in.comments('#');
  std::int64_t normals = 0;
  std::map<std::string, Index> materials;
  Index material = -1;
  std::size_t lines = 0;
  const auto number_of = [&](std::int64_t i, std::int64_t count, const char* what) {
    if (i == 0 || i < -count || i > count)
      in.fail(fmt::format("found {} {}, but the numbers start at 1 and there are {} so far", what, i, count));
    return static_cast<Index>(i > 0 ? i - 1 : count + i);
  };
  while (in.skip_space()) {
    const std::string_view key = in.token();
    if (key == "v") {
      out.points.push_back(in.point("a vertex coordinate"));
      in.line();
    } else if (key == "vt") {
      const double u = in.number("a texture coordinate");
      out.uv.emplace_back(u, in.more_in_line() ? in.number("a texture coordinate") : 0);
      in.line();
    } else if (key == "vn") {
      in.point("a normal");
      ++normals;
      in.line();
    } else if (key == "f") {
      const std::size_t first = out.corner_point.size();
      while (in.more_in_line()) {
        const std::string_view text = in.token();
        if (text == "\\") {
          in.line();
          continue;
        }
        const ObjCorner c = parse_corner(in, text);
        out.corner_point.push_back(
            number_of(c.point, static_cast<std::int64_t>(out.points.size()), "vertex"));
        out.corner_uv.push_back(
            c.uv == 0 ? -1 : number_of(c.uv, static_cast<std::int64_t>(out.uv.size()), "texture coordinate"));
        out.corner_normal.push_back(c.normal == 0 ? -1 : number_of(c.normal, normals, "normal"));
      }
      if (out.corner_point.size() < first + 3)
        in.fail(fmt::format("found a face with {} vertices, expected at least 3",
                            out.corner_point.size() - first));
      out.face_begin.push_back(static_cast<Index>(out.corner_point.size()));
      out.face_material.push_back(material);
    } else if (key == "l" || key == "p") {
      ++lines;
      in.line();
    } else if (key == "mtllib") {
      in.more_in_line();
      const auto before = static_cast<Index>(out.materials.size());
      for (const std::string& file : library_names_in(folder, in.line()))
        read_mtl(folder, file, out.materials, notices);
      for (auto k = before; k < static_cast<Index>(out.materials.size()); ++k)
        materials.emplace(out.materials[at(k)].name, k);
    } else if (key == "usemtl") {
      in.more_in_line();
      const std::string wanted = name_in(in.line());
      const auto [known, fresh] = materials.emplace(wanted, static_cast<Index>(out.materials.size()));
      if (fresh) out.materials.push_back({wanted, Vec3::Constant(0.8), {}, {}});
      material = known->second;
    } else {
      in.line();
    }
  }
  if (out.faces() == 0)
    throw Error(ErrorKind::kInput, fmt::format("{}: has no faces, so there is nothing to show", name));
  if (lines > 0) tell(notices, fmt::format("{}: {} lines and points are left out", name, lines));
  return out;
}

TexturedSurface read_textured_surface(const std::string& path, std::vector<std::string>* notices) {
  std::string ending = fs::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (ending == ".obj") {
    const std::string folder = fs::path(path).parent_path().string();
    return parse_textured_obj(path, read_file(path), folder.empty() ? "." : folder, notices);
  }
  const TriMesh mesh = read_surface(path, notices);
  TexturedSurface out;
  out.points = mesh.nodes;
  for (const Tri& t : mesh.triangles) {
    out.corner_point.insert(out.corner_point.end(), t.begin(), t.end());
    out.face_begin.push_back(static_cast<Index>(out.corner_point.size()));
  }
  out.corner_uv.assign(out.corner_point.size(), -1);
  if (const auto uv = mesh.node_fields.find("uv");
      uv != mesh.node_fields.end() && uv->second.components == 2) {
    for (std::size_t k = 0; k + 1 < uv->second.values.size(); k += 2)
      out.uv.emplace_back(uv->second.values[k], uv->second.values[k + 1]);
    out.corner_uv = out.corner_point;
  }
  out.corner_normal.assign(out.corner_point.size(), -1);
  out.face_material.assign(mesh.triangles.size(), -1);
  if (out.faces() == 0)
    throw Error(ErrorKind::kInput, fmt::format("{}: has no faces, so there is nothing to show", path));
  return out;
}

}  // namespace limber
