// glTF 2.0, binary. The motion of the surface is written as morph targets: with x_f the positions in frame f,
// x_f = x_0 + sum_k w_fk phi_k, where the phi_k are the principal components of x_f - x_0. A body that bends
// and swings needs a few dozen, where one target per frame would be as large as the recording.
#include <limber/core/error.hpp>
#include <limber/core/rotation.hpp>
#include <limber/io/file.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/view/carried_export.hpp>
#include <limber/view/carried_sheet.hpp>
#include <limber/view/export.hpp>
#include <limber/view/shapes.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <Eigen/Geometry>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>

namespace limber::view {

using nlohmann::json;

namespace {

using MatXf = Eigen::MatrixXf;

// Collects the binary part and its description.
class Builder {
 public:
  json root{{"asset", {{"version", "2.0"}, {"generator", std::string("limber ") + LIMBER_VERSION}}},
            {"scene", 0},
            {"scenes", json::array({{{"nodes", json::array()}}})},
            {"nodes", json::array()},
            {"meshes", json::array()},
            {"materials", json::array()},
            {"accessors", json::array()},
            {"bufferViews", json::array()}};

  // Numbers with `width` components each; `bounds` adds the smallest and largest per component.
  int floats(std::span<const float> values, const char* type, int width, bool bounds, int target = 0) {
    json a{{"bufferView", view(values.data(), values.size_bytes(), target)},
           {"componentType", 5126},
           {"count", values.size() / static_cast<std::size_t>(width)},
           {"type", type}};
    if (bounds) {
      std::vector<float> low(static_cast<std::size_t>(width), std::numeric_limits<float>::max()),
          high(low.size(), std::numeric_limits<float>::lowest());
      for (std::size_t i = 0; i < values.size(); ++i) {
        low[i % low.size()] = std::min(low[i % low.size()], values[i]);
        high[i % low.size()] = std::max(high[i % low.size()], values[i]);
      }
      a["min"] = low;
      a["max"] = high;
    }
    return push("accessors", std::move(a));
  }
  int indices(const std::vector<std::uint32_t>& values) {
    return push("accessors", {{"bufferView", view(values.data(), 4 * values.size(), 34963)},
                              {"componentType", 5125},
                              {"count", values.size()},
                              {"type", "SCALAR"}});
  }
  // An image (PNG or JPEG) as a texture.
  int texture(const std::string& image, const std::string& name) {
    const int source = push("images", {{"bufferView", view(image.data(), image.size(), 0)},
                                       {"mimeType", image_type(image)},
                                       {"name", name}});
    return push("textures", {{"source", source}});
  }
  int push(const char* list, json entry) {
    root[list].push_back(std::move(entry));
    return static_cast<int>(root[list].size()) - 1;
  }
  int node(json n, int parent) {
    const int id = push("nodes", std::move(n));
    if (parent < 0)
      root["scenes"][0]["nodes"].push_back(id);
    else
      root["nodes"][static_cast<std::size_t>(parent)]["children"].push_back(id);
    return id;
  }
  void animate(int node, const char* path, int input, int output, const char* interpolation) {
    samplers.push_back({{"input", input}, {"output", output}, {"interpolation", interpolation}});
    channels.push_back({{"sampler", samplers.size() - 1}, {"target", {{"node", node}, {"path", path}}}});
  }
  std::string finish() {
    if (!channels.empty())
      root["animations"] = json::array({{{"name", "run"}, {"samplers", samplers}, {"channels", channels}}});
    root["buffers"] = json::array({{{"byteLength", binary_.size()}}});
    std::string text = root.dump(-1, ' ', false, json::error_handler_t::replace);
    text.resize((text.size() + 3) / 4 * 4, ' ');
    binary_.resize((binary_.size() + 3) / 4 * 4, '\0');
    if (12 + 16 + text.size() + binary_.size() > 0xffffffffu)
      throw Error(ErrorKind::kIo, "glb: more than 4 GB; export fewer frames with --every, or one --body");
    std::string out;
    auto put = [&](std::uint32_t v) { out.append(reinterpret_cast<const char*>(&v), 4); };
    put(0x46546c67);  // "glTF"
    put(2);
    put(static_cast<std::uint32_t>(12 + 8 + text.size() + 8 + binary_.size()));
    put(static_cast<std::uint32_t>(text.size()));
    put(0x4e4f534a);  // "JSON"
    out += text;
    put(static_cast<std::uint32_t>(binary_.size()));
    put(0x004e4942);  // "BIN"
    return out + binary_;
  }

 private:
  int view(const void* data, std::size_t size, int target) {
    binary_.resize((binary_.size() + 3) / 4 * 4, '\0');
    json v{{"buffer", 0}, {"byteOffset", binary_.size()}, {"byteLength", size}};
    if (target != 0) v["target"] = target;  // only for vertex data and indices
    binary_.append(static_cast<const char*>(data), size);
    return push("bufferViews", std::move(v));
  }
  std::string binary_;
  json samplers = json::array(), channels = json::array();
};

int material(Builder& b, const char* name, const Rgb& color, float roughness) {
  const Rgb c = to_linear(color);
  return b.push("materials", {{"name", name},
                              {"doubleSided", true},
                              {"pbrMetallicRoughness",
                               {{"baseColorFactor", {c[0], c[1], c[2], 1.0}},
                                {"metallicFactor", 0.0},
                                {"roughnessFactor", roughness}}}});
}

// A motion as base + shapes * weights: weights (frames x targets) from 0 to 1, shapes (3n x targets).
struct Modes {
  Eigen::VectorXf base;
  MatXf weights, shapes;
};

// Principal components of the motion relative to its first frame, as few as reach the tolerance [m].
Modes find_modes(const MatXf& x, double tolerance, int limit) {
  const Eigen::Index frames = x.cols();
  MatXf d = x.colwise() - x.col(0);
  Modes out;
  out.base = x.col(0);
  out.weights.resize(frames, 0);
  out.shapes.resize(x.rows(), 0);
  if (frames < 2 || d.cwiseAbs().maxCoeff() <= tolerance) return out;
  const DenseEigen eigen = symmetric_eigen(MatX((d.transpose() * d).cast<double>()));
  const Eigen::Index most = std::min<Eigen::Index>(limit, frames - 1);
  std::vector<Eigen::VectorXf> weights, shapes;
  MatXf rest = d;
  for (Eigen::Index k = 0; k < most && rest.cwiseAbs().maxCoeff() > tolerance; ++k) {
    const Eigen::VectorXf u = eigen.vectors.col(frames - 1 - k).cast<float>();
    const Eigen::VectorXf shape = rest * u;  // already scaled: u has unit length
    rest -= shape * u.transpose();
    // Sliders of modelling programs run from 0 to 1, and Blender cuts off what lies outside.
    const float low = u.minCoeff(), high = u.maxCoeff();
    weights.push_back((u.array() - low) / (high - low));
    shapes.push_back(shape * (high - low));
    out.base += shape * low;
  }
  const auto count = static_cast<Eigen::Index>(weights.size());
  out.weights.resize(frames, count);
  out.shapes.resize(x.rows(), count);
  for (Eigen::Index k = 0; k < count; ++k) {
    out.weights.col(k) = weights[static_cast<std::size_t>(k)];
    out.shapes.col(k) = shapes[static_cast<std::size_t>(k)];
  }
  return out;
}

// What is written of one body: triangles of points that move, in parts of one paint each.
struct Sheet {
  std::string name;
  std::vector<Tri> triangles;        // of points
  SmoothGroups groups;               // of their corners
  std::vector<Index> corner_vertex;  // of every corner
  std::vector<Index> vertex_point, vertex_group;
  std::vector<float> uv;  // two a vertex, (0, 0) at the upper left as glTF has it; empty: none
  struct Piece {
    std::size_t first, last;  // triangles
    int paint;
  };
  std::vector<Piece> pieces;
};

// The boundary of the elements: a vertex per node and smooth group, so that sharp edges keep their two
// normals.
Sheet boundary_sheet(const Part& part, std::string name, int paint) {
  Sheet out;
  out.name = std::move(name);
  out.triangles = part.topology.surface;
  out.groups = smooth_groups(part.topology.rest, out.triangles);
  out.corner_vertex = out.groups.of_corner;
  out.vertex_point.resize(static_cast<std::size_t>(out.groups.count));
  for (std::size_t c = 0; c < out.corner_vertex.size(); ++c)
    out.vertex_point[static_cast<std::size_t>(out.corner_vertex[c])] = out.triangles[c / 3][c % 3];
  for (Index v = 0; v < out.groups.count; ++v) out.vertex_group.push_back(v);
  out.pieces.push_back({0, out.triangles.size(), paint});
  return out;
}

int textured_material(Builder& b, const SurfaceMaterial& m, const std::string& name) {
  const auto byte = [](double v) { return static_cast<int>(std::lround(255 * v)); };
  const bool image = !m.image.empty();
  const Rgb color =
      from_hex(static_cast<unsigned>(byte(m.color.x()) << 16 | byte(m.color.y()) << 8 | byte(m.color.z())));
  const int id = material(b, name.c_str(), image ? from_hex(0xffffff) : color, 0.6f);
  if (image)
    b.root["materials"][static_cast<std::size_t>(id)]["pbrMetallicRoughness"]["baseColorTexture"] = {
        {"index", b.texture(m.image, m.image_name)}};
  return id;
}

// A carried surface: a vertex per point, texture coordinate and normal of the file.
Sheet painted_sheet(Builder& b, const ReplaySurface& r, int plain) {
  const TexturedSurface& s = r.surface;
  CarriedSheet carried = carried_sheet(s);
  Sheet out;
  out.name = r.body;
  out.triangles = std::move(carried.triangles);
  out.groups = std::move(carried.groups);
  std::vector<int> paint;
  for (const SurfaceMaterial& m : s.materials) paint.push_back(textured_material(b, m, m.name));
  for (const CarriedSheet::Piece& p : carried.pieces)
    out.pieces.push_back(
        {p.first, p.last, p.material < 0 ? plain : paint[static_cast<std::size_t>(p.material)]});
  std::map<std::pair<Index, Index>, Index> vertex;  // group and texture coordinate
  for (std::size_t c = 0; c < out.groups.of_corner.size(); ++c) {
    const Index uv = s.corner_uv[static_cast<std::size_t>(carried.corners[c / 3][c % 3])];
    const auto [known, fresh] =
        vertex.emplace(std::pair(out.groups.of_corner[c], uv), static_cast<Index>(out.vertex_point.size()));
    if (fresh) {
      out.vertex_point.push_back(out.triangles[c / 3][c % 3]);
      out.vertex_group.push_back(out.groups.of_corner[c]);
      const Vec2 place = uv < 0 ? Vec2(0, 0) : s.uv[static_cast<std::size_t>(uv)];
      out.uv.insert(out.uv.end(), {static_cast<float>(place.x()), static_cast<float>(1 - place.y())});
    }
    out.corner_vertex.push_back(known->second);
  }
  if (s.uv.empty()) out.uv.clear();
  return out;
}

// A sheet whose points are at x (3n, a column a frame) at the times.
void add_sheet(Builder& b, int parent, const Sheet& sheet, const MatXf& x, const std::vector<float>& times,
               const GlbOptions& glb, Index topology, double start, std::optional<double> until,
               bool from_start) {
  const auto n = x.rows() / 3, count = x.cols();
  if (n == 0 || sheet.triangles.empty()) return;
  const float size = (Eigen::Map<const MatXf>(x.data(), 3, n).rowwise().maxCoeff() -
                      Eigen::Map<const MatXf>(x.data(), 3, n).rowwise().minCoeff())
                         .norm();
  const Modes modes = find_modes(x, glb.tolerance * static_cast<double>(size), glb.max_targets);
  const Eigen::Index targets = modes.shapes.cols();
  const auto vertices = static_cast<Eigen::Index>(sheet.vertex_point.size());
  auto spread = [&](const Eigen::VectorXf& of_points) {
    std::vector<float> out;
    for (Index i : sheet.vertex_point)
      for (Eigen::Index d = 0; d < 3; ++d) out.push_back(of_points[3 * i + d]);
    return out;
  };
  auto normals = [&](const Eigen::VectorXf& at) {
    std::vector<Vec3f> p(static_cast<std::size_t>(n));
    for (Eigen::Index i = 0; i < n; ++i) p[static_cast<std::size_t>(i)] = at.segment<3>(3 * i);
    std::vector<Vec3f> g = group_normals(sheet.groups, sheet.triangles, p);
    Eigen::VectorXf out(3 * vertices);
    for (Eigen::Index i = 0; i < vertices; ++i) {
      Vec3f& v = g[static_cast<std::size_t>(sheet.vertex_group[static_cast<std::size_t>(i)])];
      if (v.squaredNorm() < 0.5f) v = Vec3f::UnitY();  // a triangle without area
      out.segment<3>(3 * i) = v;
    }
    return out;
  };
  const Eigen::VectorXf normal0 = normals(modes.base);
  MatXf normal_shapes;
  if (targets > 0) {  // the turn of the normals, fitted to the same weights
    MatXf dn(3 * vertices, count);
    for (Eigen::Index f = 0; f < count; ++f) dn.col(f) = normals(x.col(f)) - normal0;
    const MatX W = modes.weights.cast<double>();
    const MatX inverse =
        solve_semidefinite(W.transpose() * W + 1e-9 * MatX::Identity(targets, targets), MatX(W.transpose()));
    normal_shapes = dn * inverse.transpose().cast<float>();
  }

  json attributes{
      {"POSITION", b.floats(spread(modes.base), "VEC3", 3, true, 34962)},
      {"NORMAL", b.floats(std::span<const float>(normal0.data(), static_cast<std::size_t>(normal0.size())),
                          "VEC3", 3, false, 34962)}};
  if (!sheet.uv.empty()) attributes["TEXCOORD_0"] = b.floats(sheet.uv, "VEC2", 2, false, 34962);
  json shapes = json::array();
  for (Eigen::Index k = 0; k < targets; ++k) {
    const Eigen::VectorXf turn = normal_shapes.col(k);
    shapes.push_back(
        {{"POSITION", b.floats(spread(modes.shapes.col(k)), "VEC3", 3, true, 34962)},
         {"NORMAL", b.floats(std::span<const float>(turn.data(), static_cast<std::size_t>(turn.size())),
                             "VEC3", 3, false, 34962)}});
  }
  json mesh{{"name", sheet.name}, {"primitives", json::array()}};
  for (const Sheet::Piece& piece : sheet.pieces) {
    std::vector<std::uint32_t> corners;
    for (std::size_t c = 3 * piece.first; c < 3 * piece.last; ++c)
      corners.push_back(static_cast<std::uint32_t>(sheet.corner_vertex[c]));
    json primitive{{"attributes", attributes}, {"indices", b.indices(corners)}, {"material", piece.paint}};
    if (targets > 0) primitive["targets"] = shapes;
    mesh["primitives"].push_back(std::move(primitive));
  }
  for (Eigen::Index k = 0; k < targets; ++k) mesh["weights"].push_back(modes.weights(0, k));
  const int mesh_id = b.push("meshes", std::move(mesh));
  const int node =
      b.node({{"name", topology == 0 ? sheet.name : fmt::format("{} after cut {}", sheet.name, topology)},
              {"mesh", mesh_id}},
             parent);

  if (targets > 0) {
    std::vector<float> w;
    for (Eigen::Index f = 0; f < count; ++f)
      for (Eigen::Index k = 0; k < targets; ++k) w.push_back(modes.weights(f, k));
    b.animate(node, "weights", b.floats(times, "SCALAR", 1, true), b.floats(w, "SCALAR", 1, false), "LINEAR");
  }
  // Only one topology is there at a time; the others are shrunk to nothing.
  if (!from_start || until) {
    std::vector<float> t, s;
    auto key = [&](double at, float size_now) {
      t.push_back(static_cast<float>(at));
      s.insert(s.end(), 3, size_now);
    };
    if (!from_start) key(0, 0);
    key(from_start ? 0.0 : static_cast<double>(times.front()), 1);
    if (until) key(*until - start, 0);
    b.animate(node, "scale", b.floats(t, "SCALAR", 1, true), b.floats(s, "VEC3", 3, false), "STEP");
  }
}

// The surfaces of one topology over its frames: carried ones, and the boundary of bodies that carry none.
void add_epoch(Builder& b, int parent, int paint, const ReplayReader& reader, const ExportOptions& o,
               const GlbOptions& glb, Index topology, const std::vector<Index>& frames, double start,
               std::optional<double> until, bool from_start) {
  const ReplayTopology whole = reader.topology(topology);
  struct Shown {
    Sheet sheet;
    std::function<std::vector<float>(const ReplayFrame&)> points;
    MatXf x;
  };
  std::vector<Shown> all;
  const auto add_boundary = [&](const std::string& body, const std::string& name) {
    auto part = std::make_shared<const Part>(part_of(whole, body, true));
    all.push_back({boundary_sheet(*part, name, paint),
                   [part](const ReplayFrame& f) {
                     std::vector<float> out;
                     for (const Index i : part->nodes)
                       for (std::size_t d = 0; d < 3; ++d)
                         out.push_back(f.x[3 * static_cast<std::size_t>(i) + d]);
                     return out;
                   },
                   {}});
  };
  const std::vector<const ReplaySurface*> carried = chosen_surfaces(whole, o.body);
  for (const ReplaySurface* s : carried)
    all.push_back({painted_sheet(b, *s, paint),
                   [s, &whole](const ReplayFrame& f) { return carried_points(*s, whole, f.x); },
                   {}});
  if (carried.empty()) {
    add_boundary(o.body, o.body.empty() ? reader.header().scene : o.body);
  } else if (o.body.empty()) {
    for (const ReplayBody& body : whole.bodies)
      if (std::none_of(carried.begin(), carried.end(),
                       [&](const ReplaySurface* s) { return s->body == body.name; }))
        add_boundary(body.name, body.name);
  }
  std::vector<float> times;
  for (std::size_t f = 0; f < frames.size(); ++f) {
    const ReplayFrame frame = reader.frame(frames[f]);
    times.push_back(static_cast<float>(frame.t - start));
    for (Shown& shown : all) {
      const std::vector<float> points = shown.points(frame);
      if (f == 0)
        shown.x.resize(static_cast<Eigen::Index>(points.size()), static_cast<Eigen::Index>(frames.size()));
      shown.x.col(static_cast<Eigen::Index>(f)) =
          Eigen::Map<const Eigen::VectorXf>(points.data(), static_cast<Eigen::Index>(points.size()));
    }
  }
  for (const Shown& shown : all)
    add_sheet(b, parent, shown.sheet, shown.x, times, glb, topology, start, until, from_start);
}

void add_obstacles(Builder& b, int parent, int paint, const ReplayReader& reader,
                   const std::vector<Index>& frames, double start) {
  const std::vector<ReplayObstacle>& list = reader.header().obstacles;
  std::vector<std::vector<ReplayPose>> poses(list.size());
  std::vector<float> times;
  for (Index f : frames) {
    const ReplayFrame frame = reader.frame(f);
    times.push_back(static_cast<float>(frame.t - start));
    for (std::size_t k = 0; k < list.size(); ++k) poses[k].push_back(frame.obstacles[k]);
  }
  for (std::size_t k = 0; k < list.size(); ++k) {
    if (list[k].shape == "plane") continue;  // without an end, there is nothing to export
    Triangles local;
    add_obstacle(
        local, list[k], {}, [](const Vec3f& p) { return p; }, 0);
    std::vector<float> p, n;
    std::vector<std::uint32_t> corners;
    for (std::size_t t = 0; t < local.size(); ++t) {
      const Vec3f* corner = &local.position[3 * t];
      // Poles of a sphere give triangles without area.
      if ((corner[1] - corner[0]).cross(corner[2] - corner[0]).norm() < 1e-12f) continue;
      for (std::size_t c = 0; c < 3; ++c) {
        corners.push_back(static_cast<std::uint32_t>(p.size() / 3));
        p.insert(p.end(), corner[c].data(), corner[c].data() + 3);
        n.insert(n.end(), local.normal[3 * t + c].data(), local.normal[3 * t + c].data() + 3);
      }
    }
    if (corners.empty()) continue;
    const int mesh =
        b.push("meshes", {{"name", list[k].name},
                          {"primitives", json::array({{{"attributes",
                                                        {{"POSITION", b.floats(p, "VEC3", 3, true, 34962)},
                                                         {"NORMAL", b.floats(n, "VEC3", 3, false, 34962)}}},
                                                       {"indices", b.indices(corners)},
                                                       {"material", paint}}})}});
    const ReplayPose& first = poses[k].front();
    const int node = b.node({{"name", list[k].name},
                             {"mesh", mesh},
                             {"translation", first.translation},
                             {"rotation", first.rotation},
                             {"scale", {first.scale, first.scale, first.scale}}},
                            parent);
    std::vector<float> move, turn, grow;
    bool moves = false, turns = false, grows = false;
    for (const ReplayPose& q : poses[k]) {
      move.insert(move.end(), q.translation.begin(), q.translation.end());
      turn.insert(turn.end(), q.rotation.begin(), q.rotation.end());
      grow.insert(grow.end(), 3, q.scale);
      moves = moves || q.translation != first.translation;
      turns = turns || q.rotation != first.rotation;
      grows = grows || q.scale != first.scale;
    }
    if (moves)
      b.animate(node, "translation", b.floats(times, "SCALAR", 1, true), b.floats(move, "VEC3", 3, false),
                "LINEAR");
    if (turns)
      b.animate(node, "rotation", b.floats(times, "SCALAR", 1, true), b.floats(turn, "VEC4", 4, false),
                "LINEAR");
    if (grows)
      b.animate(node, "scale", b.floats(times, "SCALAR", 1, true), b.floats(grow, "VEC3", 3, false),
                "LINEAR");
  }
}

}  // namespace

void write_glb(const ReplayReader& reader, const ExportOptions& o, const std::filesystem::path& path,
               const GlbOptions& glb) {
  const std::vector<Index> frames = chosen_frames(reader, o);
  constexpr int kMostMeshes = 64;
  int meshes = 0;
  for (std::size_t k = 0; k < frames.size(); ++k)
    meshes += k == 0 || reader.frame_topology(frames[k]) != reader.frame_topology(frames[k - 1]);
  if (meshes > kMostMeshes)
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "glb: the mesh changes {} times, and the file would have one for each; expected at most {}: "
            "export obj or ply, which have a file per frame, or fewer frames (--every)",
            meshes - 1, kMostMeshes - 1));
  const double start = reader.frame_time(frames.front());
  Builder b;
  // glTF's up is +y.
  Vec3f up = -reader.header().gravity.cast<float>();
  if (up.norm() == 0) up = Vec3f::UnitY();
  const Eigen::Quaternionf turn = turn_between<float>(up, Vec3f::UnitY());
  json root{{"name", "run"}};
  if (turn.angularDistance(Eigen::Quaternionf::Identity()) > 1e-6f)
    root["rotation"] = {turn.x(), turn.y(), turn.z(), turn.w()};
  const int parent = b.node(std::move(root), -1);
  const int paint = material(b, "body", from_hex(0xd2bfa7), 0.55f);
  for (std::size_t k = 0; k < frames.size();) {
    std::size_t end = k;
    const Index topology = reader.frame_topology(frames[k]);
    std::vector<Index> own;
    while (end < frames.size() && reader.frame_topology(frames[end]) == topology)
      own.push_back(frames[end++]);
    std::optional<double> until;
    if (end < frames.size()) until = reader.frame_time(frames[end]);
    add_epoch(b, parent, paint, reader, o, glb, topology, own, start, until, k == 0);
    if (o.progress) o.progress(static_cast<Index>(end), static_cast<Index>(frames.size()));
    k = end;
  }
  bool solid = false;
  for (const ReplayObstacle& obstacle : reader.header().obstacles) solid = solid || obstacle.shape != "plane";
  if (solid)
    add_obstacles(b, parent, material(b, "obstacle", from_hex(0x9aa2aa), 0.8f), reader, frames, start);
  write_file_atomic(path.string(), b.finish());
}

}  // namespace limber::view
