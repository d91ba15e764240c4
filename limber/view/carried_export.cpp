#include <limber/view/carried_export.hpp>
#include <limber/view/carried_sheet.hpp>

#include <limber/core/error.hpp>
#include <limber/io/file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <set>

namespace limber::view {
namespace {

namespace fs = std::filesystem;

// The first of NAME, NAME_2, NAME_3, ... with its ending that is not taken. Some file systems take A for a.
std::string free_name(const std::string& wanted, const std::string& ending, bool of_file,
                      std::set<std::string>& taken) {
  for (int k = 1;; ++k) {
    std::string name = k == 1 ? wanted + ending : fmt::format("{}_{}{}", wanted, k, ending);
    std::string key = name;
    if (of_file)
      for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (taken.insert(key).second) return name;
  }
}

// What is written beside the .obj, under names that do not meet; for each surface one material more than it
// has, the last: of faces without one. An empty image: none.
struct CarriedNames {
  std::vector<std::vector<std::string>> materials, images;

  const std::string& material(std::size_t surface, Index m) const {
    return m < 0 ? materials[surface].back() : materials[surface][static_cast<std::size_t>(m)];
  }
};

CarriedNames carried_names(const std::vector<const ReplaySurface*>& chosen, const ReplayTopology& topology,
                           const std::string& file) {
  struct Image {
    std::string wanted, name;
    const std::string* bytes;
  };
  CarriedNames out;
  std::vector<Image> written;
  std::set<std::string> materials, files;
  free_name(file, "", true, files);
  for (const ReplaySurface* s : chosen) {
    auto& own_materials = out.materials.emplace_back();
    auto& own_images = out.images.emplace_back();
    const auto add_material = [&](std::string name) {
      if (chosen.size() > 1) name = fmt::format("{}_{}", s->body, name);
      for (char& c : name)
        if (std::isspace(static_cast<unsigned char>(c))) c = '_';
      own_materials.push_back(free_name(name, "", false, materials));
      own_images.emplace_back();
    };
    for (const SurfaceMaterial& m : s->surface.materials) {
      add_material(m.name);
      if (m.image.empty()) continue;
      const fs::path own = fs::path(m.image_name).filename();
      // Of the whole run: bodies that are written one by one share a folder.
      const std::string wanted =
          topology.surfaces.size() > 1 ? fmt::format("{}_{}", s->body, own.string()) : own.string();
      auto same = std::find_if(written.begin(), written.end(),
                               [&](const Image& w) { return w.wanted == wanted && *w.bytes == m.image; });
      if (same == written.end()) {
        const fs::path parts(wanted);
        same = written.insert(
            same,
            {wanted, free_name(parts.stem().string(), parts.extension().string(), true, files), &m.image});
      }
      own_images.back() = same->name;
    }
    add_material("plain");
  }
  return out;
}

void put_word(std::string& out, std::uint32_t word, bool big) {
  if (big) word = __builtin_bswap32(word);
  out.append(reinterpret_cast<const char*>(&word), 4);
}

}  // namespace

std::vector<const ReplaySurface*> chosen_surfaces(const ReplayTopology& topology, const std::string& body) {
  std::vector<const ReplaySurface*> out;
  for (const ReplaySurface& s : topology.surfaces)
    if (body.empty() || s.body == body) out.push_back(&s);
  return out;
}

void write_carried_obj(const fs::path& file, const std::string& materials,
                       const std::vector<const ReplaySurface*>& surfaces, const ReplayTopology& topology,
                       const std::vector<float>& x) {
  std::string out = fmt::format("mtllib {}\n", materials);
  const CarriedNames names = carried_names(surfaces, topology, materials);
  Index points = 0, uvs = 0, normals = 0;
  for (std::size_t k = 0; k < surfaces.size(); ++k) {
    const TexturedSurface& s = surfaces[k]->surface;
    out += fmt::format("o {}\n", surfaces[k]->body);
    const std::vector<float> at = carried_points(*surfaces[k], topology, x);
    std::vector<Vec3f> places;
    for (std::size_t i = 0; i < at.size(); i += 3) {
      out += fmt::format("v {} {} {}\n", at[i], at[i + 1], at[i + 2]);
      places.emplace_back(at[i], at[i + 1], at[i + 2]);
    }
    for (const Vec2& uv : s.uv) out += fmt::format("vt {:.7g} {:.7g}\n", uv.x(), uv.y());
    const CarriedSheet sheet = carried_sheet(s);
    for (const Vec3f& n : group_normals(sheet.groups, sheet.triangles, places))
      out += fmt::format("vn {:.4f} {:.4f} {:.4f}\n", n.x(), n.y(), n.z());
    std::vector<Index> normal(s.corner_point.size(), 0);
    for (std::size_t c = 0; c < sheet.groups.of_corner.size(); ++c)
      normal[static_cast<std::size_t>(sheet.corners[c / 3][c % 3])] = sheet.groups.of_corner[c];
    Index material = -2;
    for (Index f = 0; f < s.faces(); ++f) {
      const auto face = static_cast<std::size_t>(f);
      if (s.face_material[face] != material) {
        material = s.face_material[face];
        out += fmt::format("usemtl {}\n", names.material(k, material));
      }
      out += "f";
      for (Index c = s.face_begin[face]; c < s.face_begin[face + 1]; ++c) {
        const auto corner = static_cast<std::size_t>(c);
        out += fmt::format(" {}/", points + s.corner_point[corner] + 1);
        if (s.corner_uv[corner] >= 0) out += fmt::format("{}", uvs + s.corner_uv[corner] + 1);
        out += fmt::format("/{}", normals + normal[corner] + 1);
      }
      out += "\n";
    }
    points += static_cast<Index>(s.points.size());
    uvs += static_cast<Index>(s.uv.size());
    normals += sheet.groups.count;
  }
  write_file_atomic(file.string(), out);
}

void write_carried_materials(const fs::path& folder, const std::string& name,
                             const std::vector<const ReplaySurface*>& surfaces,
                             const ReplayTopology& topology) {
  const CarriedNames names = carried_names(surfaces, topology, name);
  std::string out;
  for (std::size_t k = 0; k < surfaces.size(); ++k)
    for (std::size_t m = 0; m < names.materials[k].size(); ++m) {
      const std::vector<SurfaceMaterial>& all = surfaces[k]->surface.materials;
      const SurfaceMaterial material = m < all.size() ? all[m] : SurfaceMaterial();
      out += fmt::format("newmtl {}\nKd {} {} {}\n", names.materials[k][m], material.color.x(),
                         material.color.y(), material.color.z());
      if (names.images[k][m].empty()) continue;
      out += fmt::format("map_Kd {}\n", names.images[k][m]);
      write_file_atomic((folder / names.images[k][m]).string(), material.image);
    }
  write_file_atomic((folder / name).string(), out);
}

// Faces as they are; texture coordinates per corner, as MeshLab reads them.
void write_carried_ply(const fs::path& file, const std::vector<const ReplaySurface*>& surfaces,
                       const ReplayTopology& topology, const ReplayFrame& frame) {
  std::size_t points = 0, faces = 0;
  bool textured = false;
  for (const ReplaySurface* s : surfaces) {
    points += s->surface.points.size();
    faces += static_cast<std::size_t>(s->surface.faces());
    textured = textured || !s->surface.uv.empty();
  }
  std::string out = fmt::format(
      "ply\nformat binary_little_endian 1.0\ncomment t {} s\nelement vertex {}\nproperty float x\nproperty "
      "float y\n"
      "property float z\nelement face {}\nproperty list uchar int vertex_indices\n{}end_header\n",
      frame.t, points, faces, textured ? "property list uchar float texcoord\n" : "");
  const auto put = [&](const auto& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const ReplaySurface* s : surfaces)
    for (const float v : carried_points(*s, topology, frame.x)) put(v);
  std::int32_t first = 0;
  for (const ReplaySurface* r : surfaces) {
    const TexturedSurface& s = r->surface;
    for (std::size_t f = 0; f + 1 < s.face_begin.size(); ++f) {
      const Index begin = s.face_begin[f], end = s.face_begin[f + 1];
      if (end - begin > 100)
        throw Error(ErrorKind::kInput,
                    fmt::format("body \"{}\": a face has {} corners; ply is written with at most 100",
                                r->body, end - begin));
      put(static_cast<std::uint8_t>(end - begin));
      for (Index c = begin; c < end; ++c) put(first + s.corner_point[static_cast<std::size_t>(c)]);
      if (!textured) continue;
      put(static_cast<std::uint8_t>(2 * (end - begin)));
      for (Index c = begin; c < end; ++c) {
        const Index t = s.corner_uv[static_cast<std::size_t>(c)];
        const Vec2 uv = t >= 0 ? s.uv[static_cast<std::size_t>(t)] : Vec2(0, 0);
        put(static_cast<float>(uv.x()));
        put(static_cast<float>(uv.y()));
      }
    }
    first += static_cast<std::int32_t>(s.points.size());
  }
  write_file_atomic(file.string(), out);
}

void write_point_cache(const ReplayReader& reader, const ExportOptions& o, const fs::path& file) {
  const std::vector<Index> frames = chosen_frames(reader, o);
  const bool big = o.format == "mdd";
  std::string out, times, positions;
  std::size_t count = 0;
  Index known = -1;
  ReplayTopology topology;
  std::vector<const ReplaySurface*> surfaces;
  Part part;
  for (std::size_t k = 0; k < frames.size(); ++k) {
    const ReplayFrame frame = reader.frame(frames[k]);
    if (frame.topology != known) {
      topology = reader.topology(frame.topology);
      surfaces = chosen_surfaces(topology, o.body);
      if (surfaces.empty() && known >= 0)
        throw Error(ErrorKind::kInput,
                    fmt::format("--format {}: the mesh changes during the run, and a point cache has the "
                                "same points in every frame; a surface that the body carries (\"embed\") has",
                                o.format));
      if (surfaces.empty()) part = part_of(topology, o.body, true);
      known = frame.topology;
    }
    std::vector<float> at;
    for (const ReplaySurface* s : surfaces) {
      const std::vector<float> own = carried_points(*s, topology, frame.x);
      at.insert(at.end(), own.begin(), own.end());
    }
    if (surfaces.empty())
      for (const Index i : part.nodes)
        for (std::size_t d = 0; d < 3; ++d) at.push_back(frame.x[3 * static_cast<std::size_t>(i) + d]);
    count = at.size() / 3;
    for (const float v : at) put_word(positions, std::bit_cast<std::uint32_t>(v), big);
    put_word(times, std::bit_cast<std::uint32_t>(static_cast<float>(frame.t)), big);
    if (o.progress) o.progress(static_cast<Index>(k + 1), static_cast<Index>(frames.size()));
  }
  if (big) {
    put_word(out, static_cast<std::uint32_t>(frames.size()), true);
    put_word(out, static_cast<std::uint32_t>(count), true);
    out += times;
  } else {
    out.append("POINTCACHE2\0", 12);
    put_word(out, 1, false);
    put_word(out, static_cast<std::uint32_t>(count), false);
    put_word(out, std::bit_cast<std::uint32_t>(0.0f), false);  // first frame
    put_word(out, std::bit_cast<std::uint32_t>(1.0f), false);  // frames between two samples
    put_word(out, static_cast<std::uint32_t>(frames.size()), false);
  }
  write_file_atomic(file.string(), out + positions);
}

}  // namespace limber::view
