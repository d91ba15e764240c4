#include "live_body.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/io/replay.hpp>
#include <limber/io/vtu.hpp>
#include <limber/sim/frame.hpp>
#include <limber/view/codec.hpp>
#include <limber/view/page_data.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

namespace limber {
namespace {

constexpr double kHand = 0.07;      // radius of a grip, of the scene's size
constexpr std::size_t kFewest = 4;  // nodes of a grip
constexpr std::size_t kMostGripped = 2000;

// A recording of one moment, on disk as long as it takes to make a page's data from it.
class MomentFile {
 public:
  MomentFile() {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() / fmt::format("limber-live-{}-{}.lmr", getpid(), ++count);
  }
  ~MomentFile() {
    std::error_code ec;
    std::filesystem::remove(path_, ec);
  }
  MomentFile(const MomentFile&) = delete;
  MomentFile& operator=(const MomentFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

LiveBody::LiveBody(const Simulation& simulation) : obstacles_(simulation.model().contact.obstacles) {
  const ReplayTopology topology = replay_topology(simulation);
  for (const Tri& t : topology.surface) nodes_.insert(nodes_.end(), t.begin(), t.end());
  for (const ReplaySurface& s : topology.surfaces)  // nodes inside may carry it
    for (const Index e : s.element)
      nodes_.insert(nodes_.end(), topology.elements[at(e)].begin(), topology.elements[at(e)].end());
  std::sort(nodes_.begin(), nodes_.end());
  nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
  const MatX* basis = simulation.basis();
  if (!basis || simulation.model().articulation) return;
  basis_.resize(static_cast<Eigen::Index>(nodes_.size()), basis->cols());
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    basis_.row(static_cast<Eigen::Index>(k)) = basis->row(nodes_[k]).cast<float>();
    for (std::size_t a = 0; a < 3; ++a) rest_.push_back(topology.rest[3 * at(nodes_[k]) + a]);
  }
}

std::string LiveBody::shape(const Simulation& simulation, std::uint64_t model) const {
  const MomentFile file;
  {
    ReplayTopology topology = replay_topology(simulation);
    topology.node_fields.clear();
    topology.basis.clear();
    topology.functions = 0;
    std::erase_if(topology.element_fields, [](const ReplayField& f) { return f.name == "fibre"; });
    ReplayFrame frame;
    frame.t = simulation.time();
    frame.step = simulation.steps_done();
    const VecX x = shown_positions(simulation);
    for (const double v : x) frame.x.push_back(static_cast<float>(v));
    frame.obstacles = obstacle_poses(simulation, obstacles_);
    ReplayWriter writer = ReplayWriter::create(file.path(), replay_header(simulation, obstacles_));
    writer.add_topology(topology);
    writer.add_frame(frame);
    writer.finish(nlohmann::json::object());
  }
  const ReplayReader reader(file.path());
  view::EncodeOptions options;
  options.inside = false;
  options.level = 1;
  const view::RunEncoder encoder(reader, options, "a");
  nlohmann::json blocks = nlohmann::json::array();
  for (const view::RunEncoder::Block& b : encoder.blocks()) {
    std::string coded;
    append_base64(coded, view::bytes_of(b.bytes));
    blocks.push_back({b.id, std::move(coded)});
  }
  return nlohmann::json{{"model", model}, {"run", encoder.manifest()}, {"blocks", std::move(blocks)}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void LiveBody::positions(const Simulation& simulation, float* out) const {
  const VecX* u = basis_.size() > 0 ? simulation.coordinates() : nullptr;
  if (u && u->size() == 3 * basis_.cols()) {
    const Eigen::Matrix<float, 3, Eigen::Dynamic> U =
        Eigen::Map<const Eigen::Matrix<double, 3, Eigen::Dynamic>>(u->data(), 3, basis_.cols()).cast<float>();
    parallel_ranges(static_cast<std::ptrdiff_t>(nodes_.size()), 1024,
                    [&](std::ptrdiff_t b, std::ptrdiff_t e) {
                      for (std::ptrdiff_t k = b; k < e; ++k) {
                        const Eigen::Vector3f d = U * basis_.row(k).transpose();
                        for (int a = 0; a < 3; ++a)
                          out[3 * k + a] = rest_[static_cast<std::size_t>(3 * k + a)] + d[a];
                      }
                    });
    return;
  }
  if (!simulation.model().articulation) {
    const VecX& x = simulation.state().x;
    for (const Index i : nodes_)
      for (int a = 0; a < 3; ++a) *out++ = static_cast<float>(x[3 * i + a]);
    return;
  }
  const VecX x = shown_positions(simulation);
  for (const Index i : nodes_)
    for (int a = 0; a < 3; ++a) *out++ = static_cast<float>(x[3 * static_cast<Eigen::Index>(i) + a]);
}

std::string LiveBody::frame(const Simulation& simulation, nlohmann::json head) const {
  nlohmann::json pose = nlohmann::json::array();
  for (const ReplayPose& p : obstacle_poses(simulation, obstacles_)) {
    for (const float v : p.translation) pose.push_back(v);
    for (const float v : p.rotation) pose.push_back(v);
    pose.push_back(p.scale);
  }
  head["pose"] = std::move(pose);
  std::string text = head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + 3) / 4 * 4, ' ');
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string out(4 + text.size() + nodes_.size() * 3 * sizeof(float), '\0');
  for (std::size_t k = 0; k < 4; ++k) out[k] = static_cast<char>(length >> (8 * k) & 0xff);
  std::memcpy(out.data() + 4, text.data(), text.size());
  std::vector<float> x(3 * nodes_.size());
  positions(simulation, x.data());
  std::memcpy(out.data() + 4 + text.size(), x.data(), x.size() * sizeof(float));
  return out;
}

Vec3 LiveBody::center(const Simulation& simulation, std::span<const Index> nodes) const {
  const Model& model = simulation.model();
  const VecX* u = basis_.size() > 0 ? simulation.coordinates() : nullptr;
  if (!u || u->size() != 3 * basis_.cols()) return patch_center(model, simulation.state().x, nodes);
  const Eigen::Map<const Eigen::Matrix<double, 3, Eigen::Dynamic>> U(u->data(), 3, basis_.cols());
  Vec3 sum = Vec3::Zero();
  double mass = 0;
  for (const Index i : nodes) {
    sum += model.mass[3 * i] * (model.mesh.rest[at(i)] + U * simulation.basis()->row(i).transpose());
    mass += model.mass[3 * i];
  }
  return sum / mass;
}

Vec3 patch_center(const Model& model, const VecX& x, std::span<const Index> nodes) {
  Vec3 sum = Vec3::Zero();
  double mass = 0;
  for (const Index i : nodes) {
    sum += model.mass[3 * i] * node(x, i);
    mass += model.mass[3 * i];
  }
  return sum / mass;
}

LivePatch patch_around(const Model& model, Index center) {
  const Index piece = model.piece_of_node[at(center)];
  const Vec3 middle = model.mesh.rest[at(center)];
  std::vector<std::pair<double, Index>> by_distance;
  for (const Index i : model.pieces[at(piece)].nodes)
    by_distance.emplace_back((model.mesh.rest[at(i)] - middle).norm(), i);
  std::sort(by_distance.begin(), by_distance.end());
  // Of the body, where that is smaller than the scene.
  const double radius = std::min(kHand * model.size, 0.35 * by_distance.back().first);
  LivePatch out;
  double mass = 0;
  for (const auto& [distance, i] : by_distance) {
    if ((distance > radius && out.nodes.size() >= kFewest) || out.nodes.size() == kMostGripped) break;
    out.nodes.push_back(i);
    mass += model.mass[3 * i];
  }
  const double reach = std::max(radius, by_distance[out.nodes.size() - 1].first);
  std::sort(out.nodes.begin(), out.nodes.end());
  const Index body = model.body_of_node[at(center)];
  out.body = model.bodies[at(body)].name;
  // The softest of what is gripped decides what it can take.
  double young = std::numeric_limits<double>::infinity(), thick = 0;
  const Body& of = model.bodies[at(body)];
  for (Index e = of.elements.begin; e < of.elements.end; ++e) {
    const Tet& tet = model.mesh.elements[at(e)];
    const bool gripped = std::any_of(tet.begin(), tet.end(), [&](Index i) {
      return i >= 0 && std::binary_search(out.nodes.begin(), out.nodes.end(), i);
    });
    if (!gripped) continue;
    young = std::min(young, model.mesh.material[at(e)].young);
    thick = std::max(thick, model.mesh.material[at(e)].thickness);
  }
  // A sheet is as stiff as it is thick.
  out.stiffness = 0.5 * young * (thick > 0 ? thick : reach);
  out.damping = 2 * std::sqrt(out.stiffness * mass);
  // As the scene numbers them: nodes of the body from 0 on, before any cut. Copies of a node count once.
  std::vector<Index> origins;
  for (Index i = 0; i < model.nodes(); ++i)
    if (model.body_of_node[at(i)] == body) origins.push_back(model.origin[at(i)]);
  std::sort(origins.begin(), origins.end());
  origins.erase(std::unique(origins.begin(), origins.end()), origins.end());
  for (const Index i : out.nodes)
    out.ids.push_back(static_cast<Index>(
        std::lower_bound(origins.begin(), origins.end(), model.origin[at(i)]) - origins.begin()));
  std::sort(out.ids.begin(), out.ids.end());
  out.ids.erase(std::unique(out.ids.begin(), out.ids.end()), out.ids.end());
  return out;
}

nlohmann::json dropped_body(const Simulation& simulation, const std::string& shape, double size,
                            const Vec3* above, const std::string& name) {
  const Model& model = simulation.model();
  const VecX& x = simulation.state().x;
  const Vec3 gravity = simulation.scene().gravity;
  const Vec3 up = gravity.norm() > 0 ? Vec3(-gravity.normalized()) : Vec3::UnitY();
  const double length = size * model.size, reach = 0.5 * length;
  Box box;
  for (Index i = 0; i < model.nodes(); ++i) box.add(node(x, i));
  const Vec3 at_point = above ? *above : Vec3(0.5 * (box.lo + box.hi));
  // Above the highest of what is in its way.
  double top = at_point.dot(up);
  for (Index i = 0; i < model.nodes(); ++i) {
    const Vec3 way = node(x, i) - at_point;
    if ((way - way.dot(up) * up).norm() < 1.2 * reach) top = std::max(top, node(x, i).dot(up));
  }
  Vec3 center = at_point + (top - at_point.dot(up) + reach + 0.15 * model.size) * up;
  nlohmann::json mesh;
  if (shape == "ball")
    mesh = {{"shape", "sphere"}, {"radius", reach}, {"edge", 0.45 * reach}};
  else if (shape == "ring")
    mesh = {
        {"shape", "torus"}, {"radius", 0.68 * reach}, {"tube_radius", 0.32 * reach}, {"edge", 0.3 * reach}};
  else if (shape == "box")
    mesh = {{"shape", "box"}, {"size", {length, length, length}}, {"nodes", {4, 4, 4}}};
  else
    throw Error(ErrorKind::kInput,
                fmt::format("\"shape\": expected \"ball\", \"box\" or \"ring\", found \"{}\"", shape));
  if (shape == "box") center -= Vec3::Constant(reach);  // its origin is a corner
  const auto softest = std::min_element(model.mesh.material.begin(), model.mesh.material.end(),
                                        [](const auto& a, const auto& b) { return a.young < b.young; });
  return {{"name", name},
          {"mesh", mesh},
          {"translation", {center.x(), center.y(), center.z()}},
          {"material",
           {{"young", softest->young}, {"poisson", softest->poisson}, {"density", softest->density}}}};
}

}  // namespace limber
