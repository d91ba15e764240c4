#include <limber/io/gltf.hpp>

#include <limber/core/error.hpp>
#include <limber/io/byte_source.hpp>
#include <limber/io/key_frames.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <Eigen/Geometry>

#include <algorithm>
#include <cmath>
#include <map>

namespace limber::io {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kGlbMagic = 0x46546C67, kGlbJson = 0x4E4F534A, kGlbBinary = 0x004E4942;
constexpr std::size_t kMostNodes = 100000, kMostKeys = 1000000;
constexpr double kRigid = 1e-3;  // relative: how much a scale may vary
constexpr int kFloat = 5126;
// Integers that stand for numbers from -1 to 1 or 0 to 1: size, and what is 1.
const std::map<int, std::pair<std::size_t, double>> kNormalized{
    {5120, {1, 127.0}}, {5121, {1, 255.0}}, {5122, {2, 32767.0}}, {5123, {2, 65535.0}}};

class GltfReader {
 public:
  GltfReader(const std::string& name, std::string_view data,
             const std::function<std::string(const std::string&)>& open)
      : in_(name, data), open_(open) {
    out_.name = name;
    parse(data);
  }

  Gltf read() {
    read_nodes();
    for (const Json& animation : list(root_, "animations")) read_animation(animation);
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", out_.name, message));
  }

  // The text of the file, or the two parts of its binary form.
  void parse(std::string_view data) {
    std::string_view text = data;
    if (data.substr(0, 4) == "glTF") {
      in_.binary(true);
      (void)in_.read<std::uint32_t>("magic number");
      if (in_.read<std::uint32_t>("version") != 2) fail("expected version 2 of glTF");
      (void)in_.read<std::uint32_t>("length");
      text = {};
      while (in_.remaining() >= 8) {
        const auto size = in_.read<std::uint32_t>("length of a chunk");
        const auto type = in_.read<std::uint32_t>("type of a chunk");
        const std::string_view chunk = in_.bytes(size, "chunk");
        if (type == kGlbJson && text.empty()) text = chunk;
        if (type == kGlbBinary && binary_.empty()) binary_ = chunk;
      }
    }
    root_ = Json::parse(text, nullptr, false);
    if (!root_.is_object()) fail("this is no glTF file: expected an object (JSON)");
  }

  static const Json& list(const Json& of, const char* key) {
    static const Json none = Json::array();
    const auto found = of.find(key);
    return found != of.end() && found->is_array() ? *found : none;
  }

  std::size_t index(const Json& of, const char* key, std::size_t below, const char* what) const {
    const auto found = of.find(key);
    if (found == of.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() >= below)
      fail(fmt::format("\"{}\" of {} is missing, or names nothing in the file", key, what));
    return found->get<std::size_t>();
  }

  template <int N>
  Eigen::Matrix<double, N, 1> numbers(const Json& of, const char* key, Eigen::Matrix<double, N, 1> value,
                                      const std::string& whose) const {
    const auto found = of.find(key);
    if (found == of.end()) return value;
    if (!found->is_array() || found->size() != N)
      fail(fmt::format("{}: expected {} numbers in \"{}\"", whose, N, key));
    for (int k = 0; k < N; ++k) {
      const Json& number = (*found)[static_cast<std::size_t>(k)];
      if (!number.is_number()) fail(fmt::format("{}: expected {} numbers in \"{}\"", whose, N, key));
      value[k] = number.get<double>();
    }
    return value;
  }

  void read_nodes() {
    const Json& nodes = list(root_, "nodes");
    if (nodes.empty() || nodes.size() > kMostNodes)
      fail(fmt::format("found {} nodes, expected from one to {}", nodes.size(), kMostNodes));
    out_.nodes.resize(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      GltfNode& node = out_.nodes[i];
      if (!nodes[i].is_object()) fail(fmt::format("node {} is no object", i));
      const auto name = nodes[i].find("name");
      node.name =
          name != nodes[i].end() && name->is_string() ? name->get<std::string>() : fmt::format("{}", i);
      const std::string whose = fmt::format("node \"{}\"", node.name);
      node.translation = numbers<3>(nodes[i], "translation", node.translation, whose);
      node.rotation = numbers<4>(nodes[i], "rotation", node.rotation, whose);
      node.scale = numbers<3>(nodes[i], "scale", node.scale, whose);
      if (nodes[i].contains("matrix")) take_matrix(nodes[i], node, whose);
      if (!(node.rotation.norm() > 0)) fail(whose + ": a rotation of length 0");
      node.rotation.normalize();
      if (!((node.scale.array() - node.scale[0]).abs().maxCoeff() <= kRigid * std::abs(node.scale[0])) ||
          !(node.scale[0] > 0))
        fail(whose +
             " is stretched unequally or mirrored; expected the same scale on all axes: bones are rigid");
    }
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const Json& child : list(nodes[i], "children")) {
        if (!child.is_number_unsigned() || child.get<std::uint64_t>() >= nodes.size())
          fail(fmt::format("a child of node \"{}\" is not in the file", out_.nodes[i].name));
        Index& parent = out_.nodes[child.get<std::size_t>()].parent;
        if (parent >= 0) fail(fmt::format("node {} has two parents", child.get<std::size_t>()));
        parent = static_cast<Index>(i);
      }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      std::size_t steps = 0;
      for (Index p = out_.nodes[i].parent; p >= 0; p = out_.nodes[at(p)].parent)
        if (++steps > nodes.size()) fail(fmt::format("node \"{}\" carries itself", out_.nodes[i].name));
    }
  }

  // Column by column; a uniform scale and a rotation.
  void take_matrix(const Json& json, GltfNode& node, const std::string& whose) const {
    const Eigen::Matrix<double, 16, 1> m =
        numbers<16>(json, "matrix", Eigen::Matrix<double, 16, 1>::Zero(), whose);
    Mat3 A;
    for (int c = 0; c < 3; ++c) {
      A.col(c) = m.segment<3>(4 * c);
      node.scale[c] = A.col(c).norm();
      if (!(node.scale[c] > 0)) fail(whose + ": a matrix without an inverse");
      A.col(c) /= node.scale[c];
    }
    if (!((A.transpose() * A - Mat3::Identity()).norm() < kRigid && A.determinant() > 0))
      fail(whose + ": a matrix that shears or mirrors; expected a rotation and one scale: bones are rigid");
    node.translation = m.segment<3>(12);
    node.rotation = Eigen::Quaterniond(A).coeffs();
  }

  const std::string& buffer(std::size_t k) {
    if (const auto known = buffers_.find(k); known != buffers_.end()) return known->second;
    const Json& buffer = list(root_, "buffers")[k];
    if (!buffer.is_object()) fail(fmt::format("buffer {} is no object", k));
    const auto uri = buffer.find("uri");
    std::string& out = buffers_[k];
    if (uri == buffer.end() || !uri->is_string()) {
      out = binary_;
      return out;
    }
    const auto& text = uri->get_ref<const std::string&>();
    if (text.rfind("data:", 0) != 0) return out = open_(text);
    const std::size_t comma = text.find(";base64,");
    if (comma == std::string::npos) fail(fmt::format("buffer {}: expected base64 data", k));
    const auto length = buffer.find("byteLength");
    if (length == buffer.end() || !length->is_number_unsigned())
      fail(fmt::format("buffer {} has no length (byteLength)", k));
    const std::string_view digits = std::string_view(text).substr(comma + 8);
    const std::vector<std::uint8_t> bytes = ByteSource(in_, digits, true).read(length->get<std::uint64_t>());
    out.assign(bytes.begin(), bytes.end());
    return out;
  }

  // The numbers of an accessor, `width` in each element.
  std::vector<double> accessor(std::size_t k, const char* type, std::size_t width) {
    const Json& a = list(root_, "accessors")[k];
    const std::string whose = fmt::format("accessor {}", k);
    if (!a.is_object() || a.value("type", "") != type) fail(fmt::format("{}: expected type {}", whose, type));
    if (a.contains("sparse")) fail(whose + " is sparse, which is not read");
    const int component = a.value("componentType", 0);
    const auto whole = kNormalized.find(component);
    if (component != kFloat && (whole == kNormalized.end() || !a.value("normalized", false)))
      fail(whose + ": expected floating-point or normalized numbers");
    const std::size_t size = component == kFloat ? 4 : whole->second.first;
    const std::size_t count = a.value("count", std::size_t{0});
    const Json& views = list(root_, "bufferViews");
    const Json& view = views[index(a, "bufferView", views.size(), whose.c_str())];
    if (!view.is_object()) fail(whose + ": a bufferView that is no object");
    const std::string& bytes = buffer(index(view, "buffer", list(root_, "buffers").size(), whose.c_str()));
    const std::size_t stride = view.value("byteStride", size * width);
    const std::size_t view_begin = view.value("byteOffset", std::size_t{0}),
                      begin = view_begin + a.value("byteOffset", std::size_t{0});
    if (count > kMostKeys || stride < size * width || begin < view_begin || begin > bytes.size() ||
        (count > 0 && (bytes.size() - begin < size * width ||
                       (count - 1) > (bytes.size() - begin - size * width) / stride)))
      fail(whose + " reaches beyond its buffer, or has too many numbers");
    std::vector<double> out;
    out.reserve(count * width);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t c = 0; c < width; ++c)
        out.push_back(number(bytes.data() + begin + i * stride + c * size, component));
    for (const double v : out)
      if (!std::isfinite(v)) fail(whose + " has numbers that are not finite");
    return out;
  }

  static double number(const char* at, int component) {
    const auto as = [&](auto value) {
      std::memcpy(&value, at, sizeof value);
      return static_cast<double>(value);
    };
    switch (component) {
      case kFloat:
        return as(float{});
      case 5120:
        return std::max(-1.0, as(std::int8_t{}) / 127.0);
      case 5121:
        return as(std::uint8_t{}) / 255.0;
      case 5122:
        return std::max(-1.0, as(std::int16_t{}) / 32767.0);
      default:
        return as(std::uint16_t{}) / 65535.0;
    }
  }

  void read_animation(const Json& json) {
    if (!json.is_object()) fail("an animation that is no object");
    GltfAnimation out;
    out.name = json.value("name", fmt::format("{}", out_.animations.size()));
    out.nodes.resize(out_.nodes.size());
    const Json& samplers = list(json, "samplers");
    bool any = false;
    for (const Json& channel : list(json, "channels")) {
      const auto target = channel.find("target");
      if (!channel.is_object() || target == channel.end() || !target->is_object())
        fail("a channel without a target");
      const std::string path = target->value("path", "");
      if (!target->contains("node") || path == "weights") continue;
      const std::size_t node = index(*target, "node", out_.nodes.size(), "a channel");
      const std::string whose =
          fmt::format("animation \"{}\" of node \"{}\"", out.name, out_.nodes[node].name);
      GltfTrack track = read_track(samplers, index(channel, "sampler", samplers.size(), "a channel"),
                                   path == "rotation" ? 4 : 3, whose);
      if (path == "scale") {
        require_rigid(track, out_.nodes[node].scale, whose);
        continue;
      }
      if (path != "rotation" && path != "translation")
        fail(fmt::format("{}: \"{}\" is no property of nodes", whose, path));
      out.first = any ? std::min(out.first, track.times.front()) : track.times.front();
      out.last = any ? std::max(out.last, track.times.back()) : track.times.back();
      any = true;
      (path == "rotation" ? out.nodes[node].rotation : out.nodes[node].translation) = std::move(track);
    }
    if (any) out_.animations.push_back(std::move(out));
  }

  GltfTrack read_track(const Json& samplers, std::size_t k, std::size_t width, const std::string& whose) {
    const Json& sampler = samplers[k];
    if (!sampler.is_object()) fail(whose + ": a sampler that is no object");
    const std::size_t accessors = list(root_, "accessors").size();
    GltfTrack out;
    const std::string how = sampler.value("interpolation", "LINEAR");
    if (how != "LINEAR" && how != "STEP" && how != "CUBICSPLINE")
      fail(fmt::format("{}: found interpolation {}, expected LINEAR, STEP or CUBICSPLINE", whose, how));
    out.interpolation = how == "STEP"     ? GltfInterpolation::kStep
                        : how == "LINEAR" ? GltfInterpolation::kLinear
                                          : GltfInterpolation::kCubicSpline;
    out.times = accessor(index(sampler, "input", accessors, "a sampler"), "SCALAR", 1);
    out.values =
        accessor(index(sampler, "output", accessors, "a sampler"), width == 4 ? "VEC4" : "VEC3", width);
    const std::size_t each = out.interpolation == GltfInterpolation::kCubicSpline ? 3 * width : width;
    if (out.times.empty() || out.values.size() != each * out.times.size())
      fail(whose + ": times and values differ in number");
    if (std::adjacent_find(out.times.begin(), out.times.end(), std::greater_equal<>()) != out.times.end() ||
        out.times.front() < 0)
      fail(whose + ": times do not go up");
    return out;
  }

  void require_rigid(const GltfTrack& track, const Vec3& rest, const std::string& whose) const {
    const std::size_t each = track.values.size() / track.times.size(), middle = each == 9 ? 3 : 0;
    for (std::size_t k = 0; k < track.times.size(); ++k)
      for (std::size_t c = 0; c < 3; ++c)
        if (std::abs(track.values[k * each + middle + c] - rest[static_cast<int>(c)]) > kRigid * rest[0])
          fail(whose + " changes its scale; expected rigid bones");
  }

  Gltf out_;
  Cursor in_;
  const std::function<std::string(const std::string&)>& open_;
  Json root_;
  std::string_view binary_;
  std::map<std::size_t, std::string> buffers_;
};

// A track at time t: constant outside its times.
template <int N>
Eigen::Matrix<double, N, 1> value_at(const GltfTrack& track, const Eigen::Matrix<double, N, 1>& rest,
                                     double t) {
  using Value = Eigen::Matrix<double, N, 1>;
  if (track.times.empty()) return rest;
  const bool cubic = track.interpolation == GltfInterpolation::kCubicSpline;
  const auto key = [&](std::size_t k, std::size_t part) {
    const std::size_t each = cubic ? 3 * N : N;
    return Value(Eigen::Map<const Value>(track.values.data() + k * each + part * N));
  };
  const std::size_t own = cubic ? 1 : 0;
  if (t <= track.times.front()) return key(0, own);
  if (t >= track.times.back()) return key(track.times.size() - 1, own);
  const auto next = static_cast<std::size_t>(std::upper_bound(track.times.begin(), track.times.end(), t) -
                                             track.times.begin());
  const std::size_t k = next - 1;
  const double length = track.times[next] - track.times[k], s = (t - track.times[k]) / length;
  const Value a = key(k, own), b = key(next, own);
  switch (track.interpolation) {
    case GltfInterpolation::kStep:
      return a;
    case GltfInterpolation::kCubicSpline:
      return (2 * s * s * s - 3 * s * s + 1) * a + length * (s * s * s - 2 * s * s + s) * key(k, 2) +
             (-2 * s * s * s + 3 * s * s) * b + length * (s * s * s - s * s) * key(next, 0);
    case GltfInterpolation::kLinear:
      break;
  }
  if constexpr (N == 4) {
    const Eigen::Quaterniond p(a), q(b);
    return p.normalized().slerp(s, q.normalized()).coeffs();
  } else {
    return (1 - s) * a + s * b;
  }
}

// Where a node is in the file's space.
struct Place {
  Mat3 R = Mat3::Identity();
  Vec3 x = Vec3::Zero();
  double scale = 1;
};

Place place_of(const Gltf& file, const GltfAnimation* animation, Index node, double t) {
  Place out;
  for (Index i = node; i >= 0; i = file.nodes[at(i)].parent) {
    const GltfNode& n = file.nodes[at(i)];
    Eigen::Vector4d turn = n.rotation;
    Vec3 x = n.translation;
    if (animation) {
      turn = value_at<4>(animation->nodes[at(i)].rotation, turn, t);
      x = value_at<3>(animation->nodes[at(i)].translation, x, t);
    }
    const Mat3 R = Eigen::Quaterniond(turn).normalized().toRotationMatrix();
    out.x = x + n.scale[0] * (R * out.x);
    out.R = R * out.R;
    out.scale *= n.scale[0];
  }
  return out;
}

Index node_named(const Gltf& file, const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < file.nodes.size(); ++i) {
    if (file.nodes[i].name == name) return static_cast<Index>(i);
    if (i < 100) names += (i == 0 ? "" : ", ") + file.nodes[i].name;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{} has no node \"{}\"; expected one of {}", file.name, name, names));
}

const GltfAnimation& animation_named(const Gltf& file, const std::string& name) {
  if (file.animations.empty())
    throw Error(ErrorKind::kInput, fmt::format("{} has no animation that moves nodes", file.name));
  if (name.empty()) return file.animations.front();
  std::string names;
  for (const GltfAnimation& a : file.animations) {
    if (a.name == name) return a;
    names += (names.empty() ? "" : ", ") + a.name;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{} has no animation \"{}\"; expected one of {}", file.name, name, names));
}

}  // namespace

Gltf read_gltf(const std::string& name, std::string_view data,
               const std::function<std::string(const std::string& uri)>& open) {
  try {
    return GltfReader(name, data, open).read();
  } catch (const Json::exception& e) {  // a value of another type than the format says
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", name, e.what()));
  }
}

std::vector<MotionKey> gltf_keys(const Gltf& file, const GltfMotion& motion) {
  const GltfAnimation& animation = animation_named(file, motion.animation);
  const Index node = node_named(file, motion.node);
  const Index carrier = !motion.carrier.empty() ? node_named(file, motion.carrier)
                        : motion.own_parent     ? file.nodes[at(node)].parent
                                                : Index{-1};
  const auto at_rest = [&](Index i) { return i < 0 ? Place{} : place_of(file, nullptr, i, 0); };
  const auto at_time = [&](Index i, double t) { return i < 0 ? Place{} : place_of(file, &animation, i, t); };
  const Place rest = at_rest(node), carrier_rest = at_rest(carrier);
  const double duration = animation.last - animation.first;
  const auto steps = static_cast<std::size_t>(std::ceil(duration * motion.rate - 1e-9));
  if (!(duration * motion.rate < kMostKeys))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {:g} s of animation are too many keys", file.name, duration));
  std::vector<KeyFrame> frames;
  for (std::size_t k = 0; k <= steps; ++k) {
    const double s = std::min(duration, static_cast<double>(k) / motion.rate);
    const Place now = at_time(node, animation.first + s), carried = at_time(carrier, animation.first + s);
    // Turns since the rest shape, D and D_c; the node's own against its carrier: D_c^T D.
    const Mat3 back = carrier_rest.R * carried.R.transpose();
    const Vec3 place = carrier_rest.x + (carrier_rest.scale / carried.scale) * (back * (now.x - carried.x));
    frames.push_back({motion.start + s, back * now.R * rest.R.transpose(), motion.scale * (place - rest.x)});
  }
  return keys_of_frames(frames, fmt::format("{} turns node \"{}\"", file.name, motion.node));
}

}  // namespace limber::io
