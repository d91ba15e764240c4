#include <limber/sim/model.hpp>

#include <limber/core/build_info.hpp>
#include <limber/core/error.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/refine.hpp>
#include <limber/rigid/link_surfaces.hpp>
#include <limber/scene/load.hpp>
#include <limber/scene/selection.hpp>
#include <limber/scene/varying.hpp>
#include <limber/sim/contact_model.hpp>
#include <limber/sim/embedded_surface.hpp>
#include <limber/sim/measured_fields.hpp>
#include <limber/sim/model_parts.hpp>
#include <limber/sim/read_mechanism.hpp>

#include <Eigen/Geometry>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <numbers>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace limber {
namespace {

constexpr double kFarOutside = 0.1;  // of a surface's size: then it hardly belongs to the mesh

// Errors of several independent parts of a scene, to be reported together.
class Problems {
 public:
  void collect(const std::function<void()>& part) {
    try {
      part();
    } catch (const Error& e) {
      kind_ = e.kind();
      text_ += (text_.empty() ? "" : "\n") + std::string(e.what());
    }
  }
  void raise() const {
    if (!text_.empty()) throw Error(kind_, text_);
  }

 private:
  ErrorKind kind_ = ErrorKind::kInput;
  std::string text_;
};

// Nodes of soft bodies that move with links, where they are at the start.
void attach_nodes(const Scene& scene, const Model& model, rigid::Articulation& articulation) {
  rigid::Motion motion;
  rigid::update_motion(articulation.mechanism, articulation.q, articulation.v, motion);
  std::map<Index, std::string> taken;
  const auto& list = scene.resolved->at("attachments");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("/attachments/{}", i), name = list[i].at("link");
    const Index link = articulation.mechanism.find_link(name);
    if (link < 0)
      throw Error(ErrorKind::kInput, fmt::format("{}/link: there is no link \"{}\"", where, name));
    const Selection nodes = read_selection(nlohmann::json(list[i].at("nodes")), where + "/nodes");
    for (const Index node : select_nodes(model, nodes, list[i].value("body", std::string()))) {
      if (const auto [at, free] = taken.emplace(node, name); !free)
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: node {} is attached to \"{}\" already", where, node, at->second));
      const rigid::Pose& pose = motion.links[static_cast<std::size_t>(link)].pose;
      articulation.attachments.push_back(
          {node, link, pose.inverse() * model.mesh.rest[static_cast<std::size_t>(node)]});
    }
  }
}

// Links, joints and what belongs to them. Null when the scene has none.
void add_links(const Scene& scene, Model& model) {
  // A scene that a program put together has no resolved text, and no links.
  if (!scene.resolved->contains("links")) return;
  if (scene.resolved->at("links").empty() && scene.resolved->at("robots").empty()) return;
  auto articulation = std::make_shared<rigid::Articulation>(read_articulation(*scene.resolved, scene.folder));
  model.notices.insert(model.notices.end(), articulation->notices.begin(), articulation->notices.end());
  attach_nodes(scene, model, *articulation);
  model.link_surfaces = std::make_shared<const rigid::LinkSurfaces>(rigid::link_surfaces(*articulation));
  model.articulation = std::move(articulation);
}

// A body's mesh on its own node numbers.
struct BodyMesh {
  std::vector<Vec3> nodes;
  std::vector<Tet> elements;
  IndexSets node_sets, element_sets;
  Fields node_fields, element_fields;
  ElementKind kind = ElementKind::kTetrahedron;
};

BodyMesh from_tets(TetMesh m) {
  return {std::move(m.nodes),        std::move(m.tets),        std::move(m.node_sets),
          std::move(m.element_sets), std::move(m.node_fields), std::move(m.element_fields),
          ElementKind::kTetrahedron};
}

BodyMesh from_triangles(TriMesh m, const BodySpec& spec) {
  const bool uv = spec.elements == "cloth-uv", cloth = uv || spec.elements == "cloth";
  if (uv) {
    const auto field = m.node_fields.find("uv");
    if (field == m.node_fields.end() || field->second.components != 2)
      throw Error(ErrorKind::kInput,
                  fmt::format("body \"{}\": \"elements\" is \"cloth-uv\", but its mesh has no texture "
                              "coordinates, or nodes with none or several of them (a seam); expected an OBJ "
                              "file with one \"vt\" for each node, in metres, or \"elements\": \"cloth\"",
                              spec.name));
    for (std::size_t i = 0; i < m.nodes.size(); ++i)
      m.nodes[i] = Vec3(field->second.values[2 * i], field->second.values[2 * i + 1], 0);
  }
  if (!cloth && guess_role(m) != TriRole::kPlane)
    throw Error(
        ErrorKind::kInput,
        fmt::format("body \"{}\": its mesh has triangles that do not lie in a plane z = constant; a body "
                    "needs tetrahedra, or triangles in the xy plane, or \"elements\": \"cloth\" "
                    "(`limber mesh tet` makes tetrahedra from a closed surface)",
                    spec.name));
  BodyMesh b{std::move(m.nodes),
             {},
             std::move(m.node_sets),
             std::move(m.element_sets),
             std::move(m.node_fields),
             std::move(m.element_fields),
             cloth ? ElementKind::kClothTriangle : ElementKind::kPlaneTriangle};
  for (const Tri& t : m.triangles) b.elements.push_back(as_element(t));
  return b;
}

std::variant<TetMesh, TriMesh> generate(const BodySpec& spec) {
  const GenerateSpec& g = *spec.generate;
  if (g.shape == "box" || g.shape == "bar") return make_box(g.size, g.nodes);
  if (g.shape == "sphere") return make_sphere(g.radius, g.edge);
  if (g.shape == "capsule") return make_capsule(g.radius, g.length, g.edge);
  if (g.shape == "cylinder") return make_cylinder(g.radius, g.length, g.edge);
  if (g.shape == "torus") return make_torus(g.radius, g.tube_radius, g.edge);
  if (g.shape == "rectangle")
    return make_rectangle(g.size.head<2>(), {g.nodes[0], g.nodes[1]},
                          g.pattern == "crossed"     ? RectanglePattern::kCrossed
                          : g.pattern == "irregular" ? RectanglePattern::kIrregular
                                                     : RectanglePattern::kRegular);
  throw Error(ErrorKind::kInput, fmt::format("body \"{}\": \"{}\" is not a shape", spec.name, g.shape));
}

std::string resolve(const Scene& scene, const std::string& file) {
  return (std::filesystem::path(scene.folder) / file).string();
}

// How many elements a shape will have, about.
double expected_elements(const GenerateSpec& g) {
  using std::numbers::pi;
  if (g.shape == "box" || g.shape == "bar")
    return 6.0 * (g.nodes[0] - 1.0) * (g.nodes[1] - 1.0) * (g.nodes[2] - 1.0);
  if (g.shape == "rectangle")
    return (g.pattern == "crossed" ? 4.0 : 2.0) * (g.nodes[0] - 1.0) * (g.nodes[1] - 1.0);
  double volume = 0;
  if (g.shape != "torus" && g.shape != "cylinder") volume += 4 * pi / 3 * std::pow(g.radius, 3);
  if (g.shape == "capsule" || g.shape == "cylinder") volume += pi * g.radius * g.radius * g.length;
  if (g.shape == "torus") volume += 2 * pi * pi * g.radius * g.tube_radius * g.tube_radius;
  return volume * 6 * std::numbers::sqrt2 / std::pow(g.edge, 3);  // regular tetrahedra
}

// Memory of a model and of one factorisation per element, a small one: enough to tell hours from a mistake.
constexpr double kBytesPerElement = 1000;
// Nodes, elements and matrix entries are counted with 32 bits.
constexpr double kMostElements = 1e8;

// Before anything large is made: `elements` are all of the scene so far.
void require_size(const Scene& scene, std::size_t body, const char* key, double elements) {
  const double bytes = kBytesPerElement * elements, memory = static_cast<double>(memory_bytes());
  if (elements <= kMostElements && (memory == 0 || bytes <= memory)) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: /bodies/{}/{}: the scene would have about {:.2g} elements, for which a run "
                          "needs at least {:.0f} "
                          "GB; expected at most {:.2g} on this machine",
                          scene.file, body, key, elements, std::ceil(bytes / 1e9),
                          memory == 0 ? kMostElements : std::min(kMostElements, memory / kBytesPerElement)));
}

// Of body number `body`; `before`: elements of the bodies that are there already.
BodyMesh load(const Scene& scene, std::size_t body, const BodySpec& spec, double before,
              std::vector<std::string>* notices) {
  std::variant<TetMesh, TriMesh> mesh;
  if (spec.generate) {
    require_size(scene, body, "mesh", before + expected_elements(*spec.generate));
    mesh = generate(spec);
  } else {
    const std::string path = resolve(scene, spec.mesh_file);
    MeshFile file = read_mesh(path);
    if (notices)
      for (const std::string& n : file.notices) notices->push_back(fmt::format("{}: {}", path, n));
    mesh = std::move(file.mesh);
  }
  const double elements = std::visit(
      [&](const auto& m) {
        if constexpr (std::is_same_v<std::decay_t<decltype(m)>, TetMesh>)
          return static_cast<double>(m.tets.size()) * std::pow(8.0, spec.refine);
        else
          return static_cast<double>(m.triangles.size()) * std::pow(4.0, spec.refine);
      },
      mesh);
  require_size(scene, body, spec.refine > 0 ? "refine" : "mesh", before + elements);
  for (int k = 0; k < spec.refine; ++k) std::visit([](auto& m) { m = refined(m); }, mesh);
  if (auto* tets = std::get_if<TetMesh>(&mesh)) {
    if (spec.elements != "auto")
      throw Error(
          ErrorKind::kInput,
          fmt::format("body \"{}\": \"elements\" is \"{}\", but its mesh has tetrahedra; leave it out, "
                      "or take a mesh of triangles",
                      spec.name, spec.elements));
    return from_tets(std::move(*tets));
  }
  return from_triangles(std::move(std::get<TriMesh>(mesh)), spec);
}

// fit, scale, rotation, translation, in this order. `fit`: by which the mesh is scaled to its wanted size.
double fit_of(const BodySpec& spec, const std::vector<Vec3>& nodes) {
  return spec.fit ? *spec.fit / bounding_box(nodes).size().maxCoeff() : 1.0;
}

void place(const BodySpec& spec, double fit, std::vector<Vec3>& nodes) {
  const Mat3 R = rotation_of(spec.rotation);
  for (Vec3& x : nodes) x = R * (fit * spec.scale.cwiseProduct(x)) + spec.translation;
}

void place(const BodySpec& spec, std::vector<Vec3>& nodes) { place(spec, fit_of(spec, nodes), nodes); }

// The surface that the body carries, placed as its mesh is.
std::shared_ptr<const TexturedSurface> load_embedded(const Scene& scene, const BodySpec& spec, double fit,
                                                     std::vector<std::string>& notices) {
  if (spec.embed_file.empty()) return nullptr;
  const std::string path = (std::filesystem::path(scene.folder) / spec.embed_file).string();
  auto surface = std::make_shared<TexturedSurface>(read_textured_surface(path, &notices));
  place(spec, fit, surface->points);
  return surface;
}

std::vector<Vec3> centroids(const BodyMesh& mesh) {
  std::vector<Vec3> c;
  c.reserve(mesh.elements.size());
  for (const Tet& e : mesh.elements) {
    const int k = corners(e);
    Vec3 sum = Vec3::Zero();
    for (int i = 0; i < k; ++i) sum += mesh.nodes[e[i]];
    c.push_back(sum / k);
  }
  return c;
}

Index channel(const Scene& scene, const FibreSpec& fibre) {
  if (fibre.activation.empty()) return -1;
  for (std::size_t c = 0; c < scene.activations.size(); ++c)
    if (scene.activations[c].name == fibre.activation) return static_cast<Index>(c);
  throw Error(ErrorKind::kInput, fmt::format("{}: no activation is called \"{}\"; add it to /activations",
                                             fibre.where, fibre.activation));
}

std::vector<ElementMaterial> materials(const Scene& scene, const BodySpec& spec, const BodyMesh& mesh) {
  const std::vector<Vec3> center = centroids(mesh);
  std::vector<ElementMaterial> out(center.size());
  std::vector<Index> all(center.size());
  for (std::size_t e = 0; e < all.size(); ++e) all[e] = static_cast<Index>(e);

  auto set = [&](const Varying& varying, const std::vector<Index>& where, double ElementMaterial::*member) {
    const std::vector<double> values = evaluate(varying, center, mesh.element_fields, scene.folder);
    for (Index e : where) out[e].*member = values[e];
  };
  auto set_fibre = [&](const FibreSpec& fibre, const std::vector<Index>& where) {
    const std::vector<double> stiffness =
        evaluate(fibre.stiffness, center, mesh.element_fields, scene.folder);
    const std::vector<Vec3> direction = fibre_directions(fibre, center, mesh.element_fields, scene.folder);
    const Index c = channel(scene, fibre);
    for (Index e : where) {
      out[e].fibre = fibre.model;
      out[e].fibre_stiffness = stiffness[e];
      out[e].fibre_direction = direction[e];
      out[e].activation_channel = c;
    }
  };

  for (ElementMaterial& m : out) {
    m.model = spec.material.model;
    m.energy = spec.material.energy;
    m.thickness = has_thickness(mesh.kind) ? spec.thickness : 0;
  }
  set(spec.material.young, all, &ElementMaterial::young);
  set(spec.material.poisson, all, &ElementMaterial::poisson);
  set(spec.material.density, all, &ElementMaterial::density);
  if (spec.area_density && has_thickness(mesh.kind))
    for (ElementMaterial& m : out) m.density = *spec.area_density / spec.thickness;
  if (spec.material.fibre) set_fibre(*spec.material.fibre, all);
  for (const RegionSpec& region : spec.regions) {
    const std::vector<Index> where = select(region.elements, center, mesh.element_sets);
    if (region.young) set(*region.young, where, &ElementMaterial::young);
    if (region.poisson) set(*region.poisson, where, &ElementMaterial::poisson);
    if (region.density) set(*region.density, where, &ElementMaterial::density);
    if (region.fibre) set_fibre(*region.fibre, where);
  }
  return out;
}

void add_named_sets(const BodySpec& spec, BodyMesh& mesh) {
  for (const auto& [name, selection] : spec.node_sets)
    mesh.node_sets[name] = select(selection, mesh.nodes, mesh.node_sets);
  const std::vector<Vec3> center = centroids(mesh);
  for (const auto& [name, selection] : spec.element_sets)
    mesh.element_sets[name] = select(selection, center, mesh.element_sets);
  for (const RegionSpec& region : spec.regions)
    if (!region.name.empty())
      mesh.element_sets[region.name] = select(region.elements, center, mesh.element_sets);
}

void append(Model& model, const Scene& scene, const BodySpec& spec, BodyMesh mesh) {
  const Index first_node = model.nodes();
  const auto first_element = static_cast<Index>(model.mesh.elements.size());
  std::vector<ElementMaterial> made_of = materials(scene, spec, mesh);
  model.bodies.push_back(
      {spec.name, {first_element, first_element + static_cast<Index>(mesh.elements.size())}, mesh.kind});
  model.body_of_node.insert(model.body_of_node.end(), mesh.nodes.size(),
                            static_cast<Index>(model.bodies.size()) - 1);
  model.mesh.rest.insert(model.mesh.rest.end(), mesh.nodes.begin(), mesh.nodes.end());
  for (Tet e : mesh.elements) {
    for (Index& i : e)
      if (i >= 0) i += first_node;
    model.mesh.elements.push_back(e);
  }
  model.mesh.material.insert(model.mesh.material.end(), made_of.begin(), made_of.end());
  model.mesh.kinds.insert(model.mesh.kinds.end(), mesh.elements.size(), mesh.kind);
  for (auto& [name, ids] : mesh.node_sets) {
    for (Index& i : ids) i += first_node;
    model.node_sets[spec.name + "/" + name] = std::move(ids);
  }
  for (auto& [name, ids] : mesh.element_sets) {
    for (Index& e : ids) e += first_element;
    model.element_sets[spec.name + "/" + name] = std::move(ids);
  }
}

}  // namespace

std::vector<Index> select_nodes(const Model& model, const Selection& selection, const std::string& body) {
  std::vector<Index> ids;  // of the candidates
  IndexSets sets;
  if (body.empty() && model.bodies.size() > 1) {
    // All bodies together: sets go by "body/set".
    for (Index i = 0; i < model.nodes(); ++i) ids.push_back(i);
    sets = model.node_sets;
  } else {
    std::size_t b = 0;
    while (b < model.bodies.size() && !body.empty() && model.bodies[b].name != body) ++b;
    if (b == model.bodies.size())
      throw Error(ErrorKind::kInput, fmt::format("{}: no body is called \"{}\"", selection.where, body));
    std::vector<Index> local(static_cast<std::size_t>(model.nodes()), -1);
    for (Index i = 0; i < model.nodes(); ++i)
      if (model.body_of_node[i] == static_cast<Index>(b)) {
        local[i] = static_cast<Index>(ids.size());
        ids.push_back(i);
      }
    const std::string prefix = model.bodies[b].name + "/";
    for (const auto& [name, members] : model.node_sets) {
      if (name.compare(0, prefix.size(), prefix) != 0) continue;
      auto& set = sets[name.substr(prefix.size())];
      for (Index i : members) set.push_back(local[i]);
    }
  }
  std::vector<Vec3> points;
  points.reserve(ids.size());
  for (Index i : ids) points.push_back(model.mesh.rest[i]);
  std::vector<Index> chosen = select(selection, points, sets);
  for (Index& i : chosen) i = ids[i];
  return chosen;
}

std::vector<Index> select_elements(const Model& model, const Selection& selection, const std::string& body) {
  std::size_t b = 0;
  while (b < model.bodies.size() && !body.empty() && model.bodies[b].name != body) ++b;
  if (b == model.bodies.size())
    throw Error(ErrorKind::kInput, fmt::format("{}: no body is called \"{}\"", selection.where, body));
  const IndexRange range = model.bodies[b].elements;
  std::vector<Vec3> centers;
  for (Index e = range.begin; e < range.end; ++e) {
    const Tet& element = model.mesh.elements[e];
    Vec3 sum = Vec3::Zero();
    for (int k = 0; k < corners(element); ++k) sum += model.mesh.rest[element[k]];
    centers.push_back(sum / corners(element));
  }
  IndexSets sets;
  const std::string prefix = model.bodies[b].name + "/";
  for (const auto& [name, members] : model.element_sets)
    if (name.starts_with(prefix))
      for (const Index e : members) sets[name.substr(prefix.size())].push_back(e - range.begin);
  std::vector<Index> chosen = select(selection, centers, sets);
  for (Index& e : chosen) e += range.begin;
  return chosen;
}

void add_embedded(Index body, std::shared_ptr<const TexturedSurface> surface, Model& model) {
  const IndexRange range = model.bodies[body].elements;
  auto e = std::make_shared<EmbeddedSurface>(
      embed(std::move(surface), model.mesh.rest, model.mesh.elements, range.begin, range.end));
  e->body = body;
  if (!model.origin.empty())  // there has been a cut
    e->surface =
        without_torn_faces(*e, model.mesh.rest, model.mesh.elements, model.origin, range.begin, range.end);
  model.embedded.push_back(std::move(e));
}

void finish_model(Model& model) {
  const Index n = model.nodes();
  model.elements = fem::make_elements(model.mesh);
  model.pattern = fem::pattern(*model.elements);
  const VecX& lumped = fem::lumped_mass(*model.elements);
  model.mass.resize(3 * n);
  for (Index i = 0; i < n; ++i) model.mass.segment<3>(3 * i).setConstant(lumped[i]);

  Index count = 0;
  model.piece_of_node = connected_components(n, std::span<const Tet>(model.mesh.elements), &count);
  model.pieces.assign(static_cast<std::size_t>(count), {});
  for (Index i = 0; i < n; ++i) {
    Piece& piece = model.pieces[model.piece_of_node[i]];
    piece.nodes.push_back(i);
    piece.mass += lumped[i];
  }
  Box box = bounding_box(model.mesh.rest);
  if (model.articulation) {
    rigid::Motion motion;
    rigid::update_motion(model.articulation->mechanism, model.articulation->q, model.articulation->v, motion);
    VecX x, v;
    rigid::place_surfaces(*model.link_surfaces, motion, x, v);
    for (Index i = 0; i < x.size() / 3; ++i) box.add(node(x, i));
    for (const rigid::LinkMotion& l : motion.links) box.add(l.com);
  }
  model.size = box.size().norm();
  set_touching_nodes(model.scene->contact, model.mesh, model.contact, &model.notices);
  for (Load& load : model.loads) {
    load.mass = 0;
    for (Index i : load.nodes) load.mass += lumped[i];
  }
}

namespace {

// What a force says about each of its nodes. `fields`: node fields of the bodies' meshes.
void set_accelerations(const Scene& scene, const std::vector<Fields>& fields, Model& model, Load& load) {
  const ForceSpec& spec = scene.forces[load.force];
  const NodeVectors &acceleration = spec.acceleration, &force = spec.force_per_node;
  if (!acceleration.varies() && !force.varies() && force.value.isZero(0)) return;
  // Arrays have a vector for every node of the body, whatever is selected.
  Selection all;
  all.where = spec.nodes.where;
  const std::vector<Index> body = select_nodes(model, all, spec.body);
  const Index b = model.body_of_node[body.front()];
  const bool one_body = model.body_of_node[body.back()] == b;
  std::vector<Vec3> points;
  std::vector<Index> place(static_cast<std::size_t>(model.nodes()), -1);
  for (const Index i : body) {
    place[i] = static_cast<Index>(points.size());
    points.push_back(model.mesh.rest[i]);
  }
  const Fields none, &of_body = one_body ? fields[b] : none;
  const std::vector<Vec3> a = evaluate(acceleration, points, of_body, scene.folder),
                          f = evaluate(force, points, of_body, scene.folder);
  for (const Index i : load.nodes) load.acceleration.push_back(a[place[i]] + f[place[i]] / model.mass[3 * i]);
}

}  // namespace

Model build_model(std::shared_ptr<const Scene> scene_ptr) {
  const Scene& scene = *scene_ptr;
  Model model;
  model.scene = std::move(scene_ptr);
  Problems problems;
  std::vector<Fields> node_fields;
  std::vector<Vec3> velocity;
  std::vector<std::shared_ptr<const TexturedSurface>> skins;
  for (std::size_t b = 0; b < scene.bodies.size(); ++b)
    problems.collect([&] {
      const BodySpec& spec = scene.bodies[b];
      BodyMesh mesh = load(scene, b, spec, static_cast<double>(model.mesh.elements.size()), &model.notices);
      const double fit = fit_of(spec, mesh.nodes);
      if (spec.elements != "cloth-uv") place(spec, fit, mesh.nodes);
      skins.push_back(load_embedded(scene, spec, fit, model.notices));
      if (skins.back() && mesh.kind != ElementKind::kTetrahedron)
        throw Error(
            ErrorKind::kInput,
            fmt::format("body \"{}\": \"embed\" needs a body of tetrahedra to carry the surface", spec.name));
      add_named_sets(spec, mesh);
      const std::vector<Vec3> v = evaluate(spec.velocity, mesh.nodes, mesh.node_fields, scene.folder);
      velocity.insert(velocity.end(), v.begin(), v.end());
      node_fields.push_back(std::move(mesh.node_fields));
      append(model, scene, spec, std::move(mesh));
    });
  problems.raise();
  for (std::size_t b = 0; b < skins.size(); ++b)
    if (skins[b]) {
      add_embedded(static_cast<Index>(b), skins[b], model);
      const EmbeddedSurface& e = *model.embedded.back();
      if (e.farthest > kFarOutside * bounding_box(skins[b]->points).size().norm())
        model.notices.push_back(fmt::format(
            "body \"{}\": {} of {} points of \"{}\" lie outside the tetrahedra, up to {:.3g} "
            "m: does the surface belong to this mesh?",
            scene.bodies[b].name, e.outside, e.element.size(), scene.bodies[b].embed_file, e.farthest));
    }
  for (std::size_t c = 0; c < scene.constraints.size(); ++c)
    problems.collect([&] {
      model.holds.push_back({c, select_nodes(model, scene.constraints[c].nodes, scene.constraints[c].body)});
    });
  for (std::size_t f = 0; f < scene.forces.size(); ++f)
    problems.collect([&] {
      const std::string& on = scene.forces[f].body;
      if (!on.empty() && std::none_of(model.bodies.begin(), model.bodies.end(),
                                      [&](const Body& body) { return body.name == on; }))
        return;  // an event adds that body later
      model.loads.push_back({f, select_nodes(model, scene.forces[f].nodes, scene.forces[f].body), 0.0, {}});
    });
  for (std::size_t p = 0; p < scene.probes.size(); ++p)
    problems.collect([&] {
      const ProbeSpec& spec = scene.probes[p];
      model.probes.push_back({p, MeasuredFields::of_elements(spec.value)
                                     ? select_elements(model, spec.items, spec.body)
                                     : select_nodes(model, spec.items, spec.body)});
    });
  for (const ObstacleSpec& o : scene.obstacles)
    problems.collect(
        [&] { model.contact.obstacles.push_back(make_obstacle(o, scene.folder, scene.contact.friction)); });
  problems.collect([&] { add_links(scene, model); });
  for (const ActivationSpec& a : scene.activations) model.activations.push_back(a.name);
  problems.raise();

  model.origin.resize(static_cast<std::size_t>(model.nodes()));
  model.velocity.resize(3 * model.nodes());
  for (Index i = 0; i < model.nodes(); ++i) {
    model.origin[i] = i;
    node(model.velocity, i) = velocity[i];
  }
  finish_model(model);
  for (Load& load : model.loads)
    problems.collect([&] { set_accelerations(scene, node_fields, model, load); });
  problems.raise();
  return model;
}

State initial_state(const Model& model) {
  const Scene& scene = *model.scene;
  const Index n = model.nodes();
  State state;
  state.x.resize(3 * n);
  state.v.setZero(3 * n);
  for (Index i = 0; i < n; ++i) node(state.x, i) = model.mesh.rest[i];
  if (model.articulation) {
    state.joint_q = model.articulation->q;
    state.joint_v = model.articulation->v;
  }
  std::vector<std::vector<Index>> nodes_of(model.bodies.size());
  for (Index i = 0; i < n; ++i) nodes_of[model.body_of_node[i]].push_back(i);
  for (std::size_t b = 0; b < model.bodies.size(); ++b) {
    const BodySpec& spec = scene.bodies[b];
    const std::vector<Index>& nodes = nodes_of[b];
    Vec3 center = Vec3::Zero();
    double mass = 0;
    if (!spec.initial_file.empty() || spec.elements == "cloth-uv") {
      BodySpec moved = spec;
      moved.generate.reset();
      if (!spec.initial_file.empty()) moved.mesh_file = spec.initial_file;
      if (spec.elements == "cloth-uv") moved.elements = "cloth";
      BodyMesh mesh = load(scene, b, moved, 0, nullptr);
      if (mesh.nodes.size() != nodes.size())
        throw Error(
            ErrorKind::kInput,
            fmt::format(
                "body \"{}\": the initial mesh \"{}\" has {} nodes, the rest mesh {}; they must be the "
                "same nodes in other places",
                spec.name, spec.initial_file, mesh.nodes.size(), nodes.size()));
      place(spec, mesh.nodes);
      for (std::size_t k = 0; k < nodes.size(); ++k) node(state.x, nodes[k]) = mesh.nodes[k];
    }
    for (Index i : nodes) {
      center += model.mass[3 * i] * node(state.x, i);
      mass += model.mass[3 * i];
    }
    center /= mass;
    for (Index i : nodes)
      node(state.v, i) =
          Vec3(node(model.velocity, i)) + spec.angular_velocity.cross(Vec3(node(state.x, i)) - center);
  }
  if (model.articulation) {
    // Attached nodes are where their links are, and move with them.
    rigid::Motion motion;
    rigid::update_motion(model.articulation->mechanism, state.joint_q, state.joint_v, motion);
    for (const rigid::Attachment& a : model.articulation->attachments) {
      const rigid::LinkMotion& l = motion.links[static_cast<std::size_t>(a.link)];
      node(state.x, a.node) = l.pose * a.x;
      node(state.v, a.node) = rigid::point_velocity(l.phi, l.pose * a.x - l.com);
    }
  }
  return state;
}

}  // namespace limber
