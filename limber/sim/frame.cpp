#include <limber/core/parallel.hpp>
#include <limber/core/rotation.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/io/vtu.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/rigid/link_surfaces.hpp>
#include <limber/scene/hold_motion.hpp>
#include <limber/sim/contact_model.hpp>
#include <limber/sim/embedded_surface.hpp>
#include <limber/sim/frame.hpp>
#include <limber/sim/run_folder.hpp>

#include <nlohmann/json.hpp>

#include <Eigen/Geometry>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace limber {
namespace {

constexpr std::string_view kShape = "shape/";
constexpr double kBoneThickness = 0.5;  // of its radius: what is fixed to it shows around it

bool wanted(const Scene& scene, const std::string& field) {
  const auto& fields = scene.output.fields;
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

bool lossless(const Scene& scene) {
  const BoxedOrderedJson& said = scene.resolved;  // none where a program made the scene
  return said->contains("output") && said["output"].value("lossless", false);
}

Field field_of(const VecX& v) { return {3, std::vector<double>(v.data(), v.data() + v.size())}; }

// For each element the last set that it belongs to, counted from 1; 0: none.
std::vector<double> regions(const Model& model) {
  std::vector<double> region(model.mesh.elements.size(), 0.0);
  double number = 0;
  for (const auto& [name, ids] : model.element_sets) {
    ++number;
    for (const Index e : ids) region[static_cast<std::size_t>(e)] = number;
  }
  return region;
}

std::vector<float> to_float(const std::vector<double>& values) { return {values.begin(), values.end()}; }

using Units = std::map<std::string, std::string>;

ReplayField replay_field(const std::string& name, const Field& field, const Units& own = {}) {
  static const Units units{
      {"velocity", "m/s"},     {"energy_density", "J/m^3"}, {"force", "N"},      {"mass", "kg"},
      {"young", "Pa"},         {"density", "kg/m^3"},       {"von_mises", "Pa"}, {"principal_stress", "Pa"},
      {"cauchy_stress", "Pa"}, {"contact_force", "N"},      {"reaction", "N"}};
  const auto unit = units.find(name), method = own.find(name);
  return {name,
          unit != units.end()   ? unit->second
          : method != own.end() ? method->second
                                : "",
          field.components, to_float(field.values)};
}

// What is shown of the links follows the nodes and elements of the bodies. Everything below is empty where
// there are none.
struct ShownLinks {
  VecX x, v;
  std::vector<Tet> triangles;  // in node numbers of the whole

  explicit ShownLinks(const Simulation& simulation)
      : ShownLinks(simulation, simulation.state().joint_q, simulation.state().joint_v) {}
  ShownLinks(const Simulation& simulation, const VecX& q, const VecX& velocity) {
    const Model& model = simulation.model();
    if (!model.articulation) return;
    rigid::Motion motion;
    rigid::update_motion(model.articulation->mechanism, q, velocity, motion);
    rigid::place_surfaces(*model.link_surfaces, motion, x, v);
    const Index n = model.nodes();
    for (const Tri& t : model.link_surfaces->triangles)
      triangles.push_back({n + t[0], n + t[1], n + t[2], -1});
  }
};

// Bodies and links at rest: the links where they begin.
VecX shown_rest(const Simulation& simulation) {
  const Model& model = simulation.model();
  VecX x(3 * model.nodes());
  for (Index i = 0; i < model.nodes(); ++i) node(x, i) = model.mesh.rest[static_cast<std::size_t>(i)];
  if (!model.articulation) return x;
  const ShownLinks links(simulation, model.articulation->q, model.articulation->v);
  VecX all(x.size() + links.x.size());
  all << x, links.x;
  return all;
}

VecX joined(const VecX& a, const VecX& b) {
  if (b.size() == 0) return a;
  VecX out(a.size() + b.size());
  out << a, b;
  return out;
}

std::vector<Tet> shown_elements(const Simulation& simulation) {
  std::vector<Tet> out = simulation.model().mesh.elements;
  const std::vector<Tet> links = ShownLinks(simulation).triangles;
  out.insert(out.end(), links.begin(), links.end());
  return out;
}

// A cone or prism of six sides from a to b.
void draw_rod(const Vec3& a, const Vec3& b, double radius_a, double radius_b, std::vector<Vec3>& nodes,
              std::vector<Tri>& triangles) {
  const Mat3 R = turn_between<double>(Vec3::UnitZ(), (b - a).normalized()).toRotationMatrix();
  const auto first = static_cast<Index>(nodes.size());
  constexpr Index kSides = 6;
  for (Index k = 0; k < kSides; ++k) {
    const double angle = 2 * std::numbers::pi * k / kSides;
    const Vec3 side = R * Vec3(std::cos(angle), std::sin(angle), 0);
    nodes.push_back(a + radius_a * side);
    nodes.push_back(b + radius_b * side);
  }
  nodes.push_back(a);
  nodes.push_back(b);
  const Index end_a = first + 2 * kSides, end_b = end_a + 1;
  for (Index k = 0; k < kSides; ++k) {
    const Index p = first + 2 * k, q = first + 2 * ((k + 1) % kSides);
    triangles.insert(triangles.end(),
                     {Tri{p, q, q + 1}, Tri{p, q + 1, p + 1}, Tri{end_a, q, p}, Tri{end_b, p + 1, q + 1}});
  }
}

void draw_points(const Obstacle& o, double radius, std::vector<Vec3>& nodes, std::vector<Tri>& triangles) {
  for (std::size_t k = 0; k < o.points.size(); ++k) {
    if (o.shape == ObstacleShape::kPoints)
      draw_rod(o.points[k] - 12 * radius * o.axis, o.points[k], radius, 0.02 * radius, nodes, triangles);
    else if (k > 0)
      draw_rod(o.points[k - 1], o.points[k], radius, radius, nodes, triangles);
  }
}

}  // namespace

FrameFields frame_fields(const Simulation& simulation, const StepInput& input, MeasuredFields& measured) {
  const Model& model = simulation.model();
  const State& state = simulation.state();
  const Scene& scene = simulation.scene();
  const std::size_t n = static_cast<std::size_t>(model.nodes());
  FrameFields out;
  const ShownLinks links(simulation);
  out.x = joined(state.x, links.x);
  if (wanted(scene, "displacement")) out.node["displacement"] = field_of(out.x - shown_rest(simulation));
  if (wanted(scene, "velocity")) out.node["velocity"] = field_of(joined(state.v, links.v));
  const bool bodies = !model.bodies.empty();
  if (bodies)
    for (const char* name :
         {"force", "mass", "reaction", "contact_force", "energy_density", "volume_ratio", "von_mises",
          "principal_stress", "cauchy_stress", "strain", "principal_stretches"})
      if (wanted(scene, name))
        (MeasuredFields::of_elements(name) ? out.element : out.node)[name] = measured.get(name);
  Field pinned{1, std::vector<double>(n)};
  for (std::size_t i = 0; i < n; ++i) pinned.values[i] = input.fixed[3 * i] && input.fixed[3 * i + 1];
  if (bodies) out.node["pinned"] = std::move(pinned);

  if (bodies && wanted(scene, "material")) {
    Field young{1, {}}, poisson{1, {}}, density{1, {}};
    for (const ElementMaterial& m : model.mesh.material) {
      young.values.push_back(m.young);
      poisson.values.push_back(m.poisson);
      density.values.push_back(m.density);
    }
    out.element["young"] = std::move(young);
    out.element["poisson"] = std::move(poisson);
    out.element["density"] = std::move(density);
  }
  if (!input.activation.empty()) {
    Field activation{1, {}};
    for (const ElementMaterial& m : model.mesh.material)
      activation.values.push_back(m.fibre != FibreModel::kNone && m.activation_channel >= 0
                                      ? input.activation[static_cast<std::size_t>(m.activation_channel)]
                                      : 0.0);
    out.element["activation"] = std::move(activation);
  }
  MethodFields method = simulation.fields();
  out.units = std::move(method.units);
  out.constant = std::move(method.constant);
  for (auto& [name, values] : method.node)
    if (!name.starts_with(kShape)) out.node[name] = {1, std::move(values)};
  for (auto& [name, values] : method.element) out.element[name] = {1, std::move(values)};
  if (!model.articulation) return out;
  const rigid::LinkSurfaces& surfaces = *model.link_surfaces;
  for (auto& [name, values] : method.link) {
    Field field{1, std::vector<double>(n, 0.0)};
    for (const Index part : surfaces.part_of_node) {
      const Index joint = surfaces.parts[static_cast<std::size_t>(part)].joint;
      field.values.push_back(joint >= 0 ? values[static_cast<std::size_t>(joint)] : 0.0);
    }
    out.node[name] = std::move(field);
  }
  // Fields of the bodies are zero on the links.
  for (auto& [name, field] : out.node)
    field.values.resize(static_cast<std::size_t>(field.components) * (n + surfaces.x.size()), 0.0);
  for (auto& [name, field] : out.element)
    field.values.resize(
        static_cast<std::size_t>(field.components) * (model.mesh.elements.size() + surfaces.triangles.size()),
        0.0);
  return out;
}

FrameFields frame_fields(const Simulation& simulation, const StepInput& input) {
  MeasuredFields measured(simulation, input);
  return frame_fields(simulation, input, measured);
}

ReplayHeader replay_header(const Simulation& simulation, const std::vector<Obstacle>& obstacles) {
  const Scene& scene = simulation.scene();
  ReplayHeader out;
  out.scene = scene.name;
  out.description = scene.description;
  out.method = scene.method;
  out.h = scene.h;
  out.end = scene.end;
  out.gravity = scene.gravity;
  out.parameters = scene.method_options;
  const Model& model = simulation.model();
  *out.facts = {{"nodes", model.nodes()},
                {"elements", model.mesh.elements.size()},
                {"bodies", model.bodies.size()},
                {"threads", threads()}};
  if (model.articulation) {
    const rigid::Mechanism& m = model.articulation->mechanism;
    out.facts["links"] = m.links.size();
    out.facts["joints"] = m.joints.size();
    out.facts["joint velocities"] = m.velocities;
    out.facts["loops"] = m.loops.size();
    if (!m.gears.empty()) out.facts["gears"] = m.gears.size();
  }
  for (const Obstacle& o : obstacles) {
    // Shapes in their own frames (contact/obstacle.hpp).
    ReplayObstacle shown;
    shown.name = o.name;
    shown.radius = o.radius;
    switch (o.shape) {
      case ObstacleShape::kPlane:
        shown.shape = "plane";
        shown.normal = Vec3::UnitZ();
        break;
      case ObstacleShape::kSphere:
        shown.shape = "sphere";
        break;
      case ObstacleShape::kCapsule:
        shown.shape = "capsule";
        shown.point = Vec3(0, 0, -o.half_length);
        shown.end = Vec3(0, 0, o.half_length);
        break;
      case ObstacleShape::kBox:
        shown.shape = "box";
        shown.size = 2 * o.half_size;
        break;
      case ObstacleShape::kMesh:
        shown.shape = "mesh";
        shown.nodes = o.surface->mesh().nodes;
        shown.triangles = o.surface->mesh().triangles;
        break;
      case ObstacleShape::kWire:
      case ObstacleShape::kPoints:
        // Drawn with a thickness, that one can see them.
        shown.shape = "mesh";
        draw_points(o, 0.004 * model.size, shown.nodes, shown.triangles);
        break;
    }
    out.obstacles.push_back(std::move(shown));
  }
  // Bones are drawn as obstacles are: rigid things that move.
  for (const ConstraintSpec& spec : scene.constraints) {
    if (!spec.tail) continue;
    ReplayObstacle shown;
    shown.name = "bone " + spec.name;
    shown.shape = "capsule";
    shown.point = spec.nodes.a;
    shown.end = *spec.tail;
    shown.radius = kBoneThickness * spec.nodes.radius;
    out.obstacles.push_back(std::move(shown));
  }
  return out;
}

ReplayTopology replay_topology(const Simulation& simulation) {
  const Model& model = simulation.model();
  ReplayTopology out;
  out.step = simulation.state().step;
  const VecX rest = shown_rest(simulation);
  for (const double x : rest) out.rest.push_back(static_cast<float>(x));
  if (lossless(simulation.scene())) out.exact_rest.assign(rest.begin(), rest.end());
  out.elements = shown_elements(simulation);
  BoundarySurface surface = boundary_surface(model.mesh.elements);
  out.surface = std::move(surface.triangles);
  out.surface_element = std::move(surface.elements);
  for (const Body& body : model.bodies)
    out.bodies.push_back({body.name, body.elements.begin, body.elements.end});
  const MethodFields method = simulation.fields();
  const auto own = method.element.find("region");  // the method's regions, or else the scene's sets
  const auto first = static_cast<Index>(model.mesh.elements.size());
  for (auto e = static_cast<std::size_t>(first); e < out.elements.size(); ++e) {
    out.surface.push_back({out.elements[e][0], out.elements[e][1], out.elements[e][2]});
    out.surface_element.push_back(static_cast<Index>(e));
  }
  if (model.link_surfaces)
    for (const rigid::LinkPart& part : model.link_surfaces->parts)
      out.bodies.push_back({part.name, first + part.triangles_begin, first + part.triangles_end});
  // Of elements in no set: the body itself, if there is one only.
  out.regions.push_back(own == method.element.end() && model.bodies.size() == 1 ? model.bodies.front().name
                                                                                : "elsewhere");
  if (own != method.element.end())
    out.regions.insert(out.regions.end(), method.regions.begin(), method.regions.end());
  else
    for (const auto& set : model.element_sets) out.regions.push_back(set.first);
  Field young{1, {}}, poisson{1, {}}, density{1, {}}, fibre{3, {}};
  bool has_fibres = false;
  for (const ElementMaterial& m : model.mesh.material) {
    young.values.push_back(m.young);
    poisson.values.push_back(m.poisson);
    density.values.push_back(m.density);
    const bool here = m.fibre != FibreModel::kNone;
    has_fibres |= here;
    for (int k = 0; k < 3; ++k) fibre.values.push_back(here ? m.fibre_direction[k] : 0.0);
  }
  for (Field* field : {&young, &poisson, &density}) field->values.resize(out.elements.size(), 0.0);
  fibre.values.resize(3 * out.elements.size(), 0.0);
  const Scene& scene = simulation.scene();
  if (!model.bodies.empty()) {
    out.element_fields.push_back(replay_field("young", young));
    if (wanted(scene, "material")) {
      out.element_fields.push_back(replay_field("poisson", poisson));
      out.element_fields.push_back(replay_field("density", density));
    }
    if (wanted(scene, "mass")) {
      Field mass{1, {}};
      for (Index i = 0; i < model.nodes(); ++i) mass.values.push_back(model.mass[3 * i]);
      mass.values.resize(out.rest.size() / 3, 0.0);
      out.node_fields.push_back(replay_field("mass", mass));
    }
  }
  if (own != method.element.end() || !model.element_sets.empty()) {
    Field region{1, own != method.element.end() ? own->second : regions(model)};
    region.values.resize(out.elements.size(), 0.0);
    out.element_fields.push_back(replay_field("region", region));
  }
  if (has_fibres) out.element_fields.push_back(replay_field("fibre", fibre));
  const auto in_space = [](const Body& body) { return is_sheet(body.kind); };
  if (std::any_of(model.bodies.begin(), model.bodies.end(), in_space)) {
    Field cloth{1, {}};
    for (std::size_t e = 0; e < out.elements.size(); ++e)
      cloth.values.push_back(e < model.mesh.elements.size() && is_sheet(model.mesh.kind(e)) ? 1 : 0);
    out.element_fields.push_back(replay_field("cloth", cloth));
  }
  for (const std::string& name : method.constant) {
    const auto per_node = method.node.find(name);
    const bool of_nodes = per_node != method.node.end();
    Field field{1, of_nodes ? per_node->second : method.element.at(name)};
    field.values.resize(of_nodes ? out.rest.size() / 3 : out.elements.size(), 0.0);
    (of_nodes ? out.node_fields : out.element_fields).push_back(replay_field(name, field, method.units));
  }
  for (const auto& e : model.embedded) {
    ReplaySurface s{model.bodies[static_cast<std::size_t>(e->body)].name, *e->surface, e->element, {}};
    for (const auto& w : e->weight)
      for (const double v : w) s.weight.push_back(static_cast<float>(v));
    out.surfaces.push_back(std::move(s));
  }
  const MatX* basis = simulation.basis();
  if (basis && basis->rows() == static_cast<Eigen::Index>(out.rest.size() / 3) &&
      basis->cols() < basis->rows()) {
    out.functions = static_cast<Index>(basis->cols());
    out.basis.resize(static_cast<std::size_t>(basis->size()));
    Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
        out.basis.data(), basis->rows(), basis->cols()) = basis->cast<float>();
  }
  return out;
}

std::vector<ReplayShape> replay_shapes(const Simulation& simulation) {
  std::vector<ReplayShape> out;
  const MethodFields method = simulation.fields();
  for (const auto& [name, values] : method.node) {
    if (!name.starts_with(kShape)) continue;
    double longest = 0;
    for (std::size_t i = 0; i + 2 < values.size(); i += 3)
      longest = std::max(longest, Vec3(values[i], values[i + 1], values[i + 2]).norm());
    if (!(longest > 0)) continue;
    ReplayShape& shape = out.emplace_back();
    shape.name = name.substr(kShape.size());
    for (const double v : values) shape.values.push_back(static_cast<float>(v / longest));
    if (simulation.model().link_surfaces)  // links do not take part
      shape.values.resize(shape.values.size() + 3 * simulation.model().link_surfaces->x.size(), 0.0f);
  }
  return out;
}

ReplayFrame replay_frame(const Simulation& simulation, const FrameFields& fields,
                         const std::vector<Obstacle>& obstacles) {
  const State& state = simulation.state();
  ReplayFrame out;
  out.t = state.t;
  out.step = state.step;
  const auto floats = [](const VecX& v) {
    const Eigen::VectorXf single = v.cast<float>();
    return std::vector<float>(single.begin(), single.end());
  };
  const VecX *u = simulation.coordinates(), *v = simulation.velocity_coordinates();
  const MatX* basis = simulation.basis();
  const bool bodies_only = fields.x.size() == state.x.size() && basis && basis->cols() < basis->rows();
  if (u && bodies_only) {
    out.coordinates = floats(*u);
    if (v) out.velocity_coordinates = floats(*v);
  } else if (bodies_only && !u && state.v.isZero(0) && state.x == shown_rest(simulation)) {
    // Before the first step, at rest.
    out.coordinates.assign(3 * static_cast<std::size_t>(basis->cols()), 0.0f);
    out.velocity_coordinates = out.coordinates;
  } else {
    out.x = floats(fields.x);
  }
  // The page makes the displacement from the positions, and what is constant stands in the topology.
  for (const auto& [name, field] : fields.node)
    if (name != "displacement" && name != "mass" && !fields.constant.contains(name) &&
        !(name == "velocity" && !out.velocity_coordinates.empty()))
      out.node_fields.push_back(replay_field(name, field, fields.units));
  for (const auto& [name, field] : fields.element)
    if (name != "young" && name != "poisson" && name != "density" && name != "region" &&
        !fields.constant.contains(name))
      out.element_fields.push_back(replay_field(name, field, fields.units));
  out.obstacles = obstacle_poses(simulation, obstacles);
  if (lossless(simulation.scene())) {
    out.exact_x.assign(fields.x.begin(), fields.x.end());
    const VecX all = joined(state.v, ShownLinks(simulation).v);
    out.exact_v.assign(all.begin(), all.end());
  }
  return out;
}

std::vector<ReplayPose> obstacle_poses(const Simulation& simulation, const std::vector<Obstacle>& obstacles) {
  std::vector<ReplayPose> out;
  const auto add_pose = [&](const Mat3& R, const Vec3& origin, double scale) {
    const Eigen::Quaternionf q(Eigen::Matrix3f(R.cast<float>()));
    ReplayPose pose;
    for (std::size_t k = 0; k < 3; ++k) pose.translation[k] = static_cast<float>(origin[static_cast<int>(k)]);
    pose.rotation = {q.x(), q.y(), q.z(), q.w()};
    pose.scale = static_cast<float>(scale);
    out.push_back(pose);
  };
  const double t = simulation.time();
  for (const Obstacle& o : obstacles) {
    const Placement at = placement_at(o, t);
    add_pose(at.R, at.origin, at.scale);
  }
  const Scene& scene = simulation.scene();
  for (std::size_t c = 0; c < scene.constraints.size(); ++c) {
    if (!scene.constraints[c].tail) continue;
    const KeyPose pose = hold_pose(scene, c, t);
    const Vec3& center = scene.constraints[c].center;
    add_pose(pose.R, center + pose.translation - pose.scale * (pose.R * center), pose.scale);
  }
  return out;
}

VecX shown_positions(const Simulation& simulation) {
  return joined(simulation.state().x, ShownLinks(simulation).x);
}

FrameWriter::FrameWriter(const Simulation& simulation) : simulation_(simulation) {
  const Model& model = simulation.model();
  const Scene& scene = simulation.scene();
  const auto& names = scene.output.bodies;
  const std::vector<Tet> elements = shown_elements(simulation);
  std::vector<Index> number(static_cast<std::size_t>(shown_rest(simulation).size() / 3), -1);
  for (const Body& body : model.bodies) {
    if (!names.empty() && std::find(names.begin(), names.end(), body.name) == names.end()) {
      all_ = false;
      continue;
    }
    for (Index e = body.elements.begin; e < body.elements.end; ++e) elements_.push_back(e);
  }
  for (auto e = static_cast<Index>(model.mesh.elements.size()); e < static_cast<Index>(elements.size()); ++e)
    elements_.push_back(e);
  for (const Index e : elements_)
    for (const Index i : elements[static_cast<std::size_t>(e)])
      if (i >= 0) number[static_cast<std::size_t>(i)] = 0;
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (number[i] < 0 && !all_) continue;
    number[i] = static_cast<Index>(nodes_.size());
    nodes_.push_back(static_cast<Index>(i));
  }
  for (const Index e : elements_) {
    Tet cell = elements[static_cast<std::size_t>(e)];
    for (Index& i : cell)
      if (i >= 0) i = number[static_cast<std::size_t>(i)];
    cells_.push_back(cell);
  }
  if (!scene.output.surface) return;
  for (const Body& body : model.bodies) {
    if (!names.empty() && std::find(names.begin(), names.end(), body.name) == names.end()) continue;
    const auto begin = model.mesh.elements.begin();
    const std::vector<Tet> own(begin + body.elements.begin, begin + body.elements.end);
    Surface surface{body.name, {}, boundary_surface(own).triangles};
    std::vector<Index> local(static_cast<std::size_t>(model.nodes()), -1);
    for (const Tri& t : surface.triangles)
      for (const Index i : t) local[static_cast<std::size_t>(i)] = 0;
    for (std::size_t i = 0; i < local.size(); ++i)
      if (local[i] == 0) {
        local[i] = static_cast<Index>(surface.nodes.size());
        surface.nodes.push_back(static_cast<Index>(i));
      }
    for (Tri& t : surface.triangles)
      for (Index& i : t) i = local[static_cast<std::size_t>(i)];
    surfaces_.push_back(std::move(surface));
  }
}

void FrameWriter::write_vtu_frame(const std::filesystem::path& file, const FrameFields& fields) const {
  const State& state = simulation_.state();
  const Model& model = simulation_.model();
  std::vector<std::vector<double>> kept;  // parts of fields, while the grid points to them
  kept.reserve(fields.node.size() + fields.element.size() + 1);
  const auto part = [&](std::span<const double> values, int components,
                        const std::vector<Index>& items) -> std::span<const double> {
    if (all_) return values;
    std::vector<double> some;
    for (const Index i : items)
      for (int k = 0; k < components; ++k)
        some.push_back(values[static_cast<std::size_t>(i) * static_cast<std::size_t>(components) +
                              static_cast<std::size_t>(k)]);
    kept.push_back(std::move(some));
    return kept.back();
  };
  VtuGrid grid;
  grid.points = part({fields.x.data(), static_cast<std::size_t>(fields.x.size())}, 3, nodes_);
  grid.cells = cells_;
  for (const auto& [name, field] : fields.node)
    grid.point_data.push_back({name, field.components, part(field.values, field.components, nodes_)});
  for (const auto& [name, field] : fields.element)
    grid.cell_data.push_back({name, field.components, part(field.values, field.components, elements_)});
  std::vector<Index> body(elements_.size()), region(elements_.size());
  std::vector<double> all_regions = regions(model);
  if (model.link_surfaces)
    all_regions.resize(all_regions.size() + model.link_surfaces->triangles.size(), 0.0);
  for (std::size_t e = 0; e < elements_.size(); ++e) {
    const Index element = elements_[e];
    for (std::size_t b = 0; b < model.bodies.size(); ++b)
      if (element >= model.bodies[b].elements.begin && element < model.bodies[b].elements.end)
        body[e] = static_cast<Index>(b);
    if (const auto link = element - static_cast<Index>(model.mesh.elements.size()); link >= 0)
      for (std::size_t p = 0; p < model.link_surfaces->parts.size(); ++p)
        if (link >= model.link_surfaces->parts[p].triangles_begin &&
            link < model.link_surfaces->parts[p].triangles_end)
          body[e] = static_cast<Index>(model.bodies.size() + p);
    region[e] = static_cast<Index>(all_regions[static_cast<std::size_t>(element)]);
  }
  grid.cell_data.push_back({"body", 1, std::span<const Index>(body)});
  if (!model.element_sets.empty() && fields.element.count("region") == 0)
    grid.cell_data.push_back({"region", 1, std::span<const Index>(region)});
  grid.field_data.push_back({"TimeValue", 1, std::span<const double>(&state.t, 1)});
  VtuOptions options;
  options.single = true;
  write_vtu(file.string(), grid, options);
}

void FrameWriter::write_surfaces(const std::filesystem::path& folder) const {
  const State& state = simulation_.state();
  for (const Surface& s : surfaces_)
    write_ply((folder / (s.body + "_" + frame_name(state.step, ".ply"))).string(),
              {state.x.data(), static_cast<std::size_t>(state.x.size())}, s.nodes, s.triangles);
}

}  // namespace limber
