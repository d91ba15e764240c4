// glTF 2.0, binary. The motion of the surface is written as morph targets: with x_f the positions in frame f,
// x_f = x_0 + sum_k w_fk phi_k, where the phi_k are the principal components of x_f - x_0. A body that bends
// and swings needs a few dozen, where one target per frame would be as large as the recording.
#include <limber/core/error.hpp>
#include <limber/core/rotation.hpp>
#include <limber/io/file.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/view/export.hpp>
#include <limber/view/shapes.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <Eigen/Geometry>

#include <limits>

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

// The surface of one topology over its frames.
void add_epoch(Builder& b, int parent, int paint, const ReplayReader& reader, const ExportOptions& o,
               const GlbOptions& glb, Index topology, const std::vector<Index>& frames, double start,
               std::optional<double> until, bool from_start) {
  const ReplayTopology whole = reader.topology(topology);
  const Part part = part_of(whole, o.body, true);
  const auto n = static_cast<Eigen::Index>(part.nodes.size()),
             count = static_cast<Eigen::Index>(frames.size());
  if (n == 0) return;
  MatXf x(3 * n, count);
  std::vector<float> times;
  for (Eigen::Index f = 0; f < count; ++f) {
    const ReplayFrame frame = reader.frame(frames[static_cast<std::size_t>(f)]);
    for (Eigen::Index i = 0; i < n; ++i)
      for (Eigen::Index d = 0; d < 3; ++d)
        x(3 * i + d, f) = frame.x[3 * static_cast<std::size_t>(part.nodes[static_cast<std::size_t>(i)]) +
                                  static_cast<std::size_t>(d)];
    times.push_back(static_cast<float>(frame.t - start));
  }
  const float size = (Eigen::Map<const MatXf>(x.data(), 3, n).rowwise().maxCoeff() -
                      Eigen::Map<const MatXf>(x.data(), 3, n).rowwise().minCoeff())
                         .norm();
  const Modes modes = find_modes(x, glb.tolerance * static_cast<double>(size), glb.max_targets);
  const Eigen::Index targets = modes.shapes.cols();

  // A vertex per node and smooth group: sharp edges keep their two normals.
  const SmoothGroups groups = smooth_groups(part.topology.rest, part.topology.surface);
  const auto vertices = static_cast<Eigen::Index>(groups.count);
  std::vector<Index> node_of(static_cast<std::size_t>(vertices));
  std::vector<std::uint32_t> corners;
  for (std::size_t t = 0; t < part.topology.surface.size(); ++t)
    for (std::size_t c = 0; c < 3; ++c) {
      const Index g = groups.of_corner[3 * t + c];
      node_of[static_cast<std::size_t>(g)] = part.topology.surface[t][c];
      corners.push_back(static_cast<std::uint32_t>(g));
    }
  auto spread = [&](const Eigen::VectorXf& of_nodes) {
    std::vector<float> out;
    for (Index i : node_of)
      for (Eigen::Index d = 0; d < 3; ++d) out.push_back(of_nodes[3 * i + d]);
    return out;
  };
  auto normals = [&](const Eigen::VectorXf& at) {
    std::vector<Vec3f> p(static_cast<std::size_t>(n));
    for (Eigen::Index i = 0; i < n; ++i) p[static_cast<std::size_t>(i)] = at.segment<3>(3 * i);
    std::vector<Vec3f> g = group_normals(groups, part.topology.surface, p);
    Eigen::VectorXf out(3 * vertices);
    for (Eigen::Index i = 0; i < vertices; ++i) {
      Vec3f& v = g[static_cast<std::size_t>(i)];
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

  json primitive{
      {"attributes",
       {{"POSITION", b.floats(spread(modes.base), "VEC3", 3, true, 34962)},
        {"NORMAL", b.floats(std::span<const float>(normal0.data(), static_cast<std::size_t>(normal0.size())),
                            "VEC3", 3, false, 34962)}}},
      {"indices", b.indices(corners)},
      {"material", paint}};
  for (Eigen::Index k = 0; k < targets; ++k) {
    const Eigen::VectorXf turn = normal_shapes.col(k);
    primitive["targets"].push_back(
        {{"POSITION", b.floats(spread(modes.shapes.col(k)), "VEC3", 3, true, 34962)},
         {"NORMAL", b.floats(std::span<const float>(turn.data(), static_cast<std::size_t>(turn.size())),
                             "VEC3", 3, false, 34962)}});
  }
  const std::string name = o.body.empty() ? reader.header().scene : o.body;
  json mesh{{"name", name}, {"primitives", json::array({std::move(primitive)})}};
  for (Eigen::Index k = 0; k < targets; ++k) mesh["weights"].push_back(modes.weights(0, k));
  const int mesh_id = b.push("meshes", std::move(mesh));
  const int node = b.node(
      {{"name", topology == 0 ? name : fmt::format("{} after cut {}", name, topology)}, {"mesh", mesh_id}},
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
