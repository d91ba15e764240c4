#include <limber/material/energy_formula.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/material/lame.hpp>
#include <limber/material/own_energy.hpp>
#include <limber/scene/load.hpp>
#include <limber/scene/read.hpp>
#include <limber/scene/spec.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>

namespace limber {
namespace {

// A value and where it stands. The checks have been made: get() does not fail on what passed them.
struct Node {
  const Json& value;
  std::string pointer;
  const Marks& marks;

  Node operator[](const std::string& key) const {
    return {value.at(key), pointer + "/" + escape_key(key), marks};
  }
  Node operator[](std::size_t i) const { return {value.at(i), fmt::format("{}/{}", pointer, i), marks}; }
  bool has(const char* key) const { return value.contains(key); }
  template <class T>
  T get(const char* key) const {
    return value.at(key).get<T>();
  }
  std::string where() const { return place(marks.find(pointer), pointer); }
  std::string text(const char* key) const { return has(key) ? get<std::string>(key) : ""; }
  double number(const char* key) const { return get<double>(key); }
  std::optional<double> maybe(const char* key) const {
    return has(key) ? std::optional<double>(number(key)) : std::nullopt;
  }
  Vec3 vec3(const char* key, const Vec3& fallback = Vec3::Zero()) const {
    return has(key) ? to_vec3(value.at(key)) : fallback;
  }
  static Vec3 to_vec3(const Json& v) {
    return Vec3(v.at(0), v.at(1), v.size() > 2 ? v.at(2).get<double>() : 0.0);
  }
};

template <class F>
void each(const Node& list, F&& f) {
  for (std::size_t i = 0; i < list.value.size(); ++i) f(list[i]);
}

// "if(y < b1, if(y < b0, v0, v1), v2)": halves, so that many layers do not nest deeply.
std::string layer_formula(const std::string& axis, const std::vector<double>& bounds,
                          const std::vector<double>& values, std::size_t first, std::size_t last) {
  if (first == last) return fmt::format("({})", values[first]);
  const std::size_t middle = (first + last) / 2;
  return fmt::format("if({} < {}, {}, {})", axis, bounds[middle],
                     layer_formula(axis, bounds, values, first, middle),
                     layer_formula(axis, bounds, values, middle + 1, last));
}

Varying read_varying(const Node& parent, const char* key, const char* spec_path) {
  const Node node = parent[key];
  Varying out;
  out.where = node.where();
  for (const Entry& entry : spec_entries())
    if (entry.path == spec_path) {
      out.range = entry.range;
      out.unit = entry.unit;
    }
  if (node.value.is_number()) {
    out.value = node.value.get<double>();
  } else if (node.value.is_string()) {
    out.formula = node.value.get<std::string>();
  } else if (node.has("layers")) {
    const Json& layers = node.value["layers"];
    const auto bounds = layers["bounds"].get<std::vector<double>>();
    const auto values = layers["values"].get<std::vector<double>>();
    out.formula = layer_formula(layers["axis"].get<std::string>(), bounds, values, 0, values.size() - 1);
  } else {
    out.formula = node.text("formula");
    out.file = node.text("file");
    out.field = node.text("field");
  }
  return out;
}

NodeVectors read_node_vectors(const Node& node) {
  NodeVectors out;
  out.where = node.where();
  if (node.value.is_object()) {
    out.file = node.text("file");
    out.field = node.text("field");
    if (node.has("values"))
      for (const Json& v : node.value["values"]) out.values.push_back(Node::to_vec3(v));
    return out;
  }
  if (std::all_of(node.value.begin(), node.value.end(), [](const Json& v) { return v.is_number(); })) {
    out.value = Node::to_vec3(node.value);
    return out;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& v = node.value[i];
    out.formula[i] = v.is_string() ? v.get<std::string>() : fmt::format("({})", v.get<double>());
  }
  return out;
}

template <class J>
Selection selection_from(const J& value, const std::string& where) {
  Selection out;
  out.where = where;
  if (!value.is_object()) return out;  // "all"
  const auto vec3 = [](const J& v) { return Vec3(v.at(0), v.at(1), v.at(2)); };
  std::vector<Selection> parts;
  for (const auto& [key, v] : value.items()) {
    Selection s;
    s.kind = key;
    s.where = where;
    if (key == "set" || key == "formula") {
      s.name = v.template get<std::string>();
    } else if (key == "ids") {
      s.ids = v.template get<std::vector<Index>>();
    } else if (key == "box") {
      s.a = vec3(v.at("min"));
      s.b = vec3(v.at("max"));
    } else if (key == "sphere") {
      s.a = vec3(v.at("center"));
      s.radius = v.at("radius").template get<double>();
    } else if (key == "capsule") {
      s.a = vec3(v.at("point"));
      s.b = vec3(v.at("end"));
      s.radius = v.at("radius").template get<double>();
    } else if (key == "plane") {
      s.a = vec3(v.at("point"));
      s.b = vec3(v.at("normal"));
    } else if (key == "nearest") {
      for (const J& p : v) s.points.push_back(vec3(p));
    } else if (key == "any" || key == "every") {
      for (const J& p : v) s.parts.push_back(selection_from(p, where));
    } else if (key == "not") {
      s.parts.push_back(selection_from(v, where));
    } else {
      continue;
    }
    parts.push_back(std::move(s));
  }
  if (parts.size() == 1) return parts[0];
  if (parts.empty()) return out;
  out.kind = "every";
  out.parts = std::move(parts);
  return out;
}

Selection read_selection(const Node& node) { return selection_from(node.value, node.where()); }

template <class T>
T named(const std::string& name, std::initializer_list<std::pair<const char*, T>> table) {
  for (const auto& [known, value] : table)
    if (name == known) return value;
  throw std::logic_error("a name of the spec table has no meaning: " + name);
}

FibreSpec read_fibre(const Node& node) {
  FibreSpec out;
  out.model = named<FibreModel>(node.text("model"), {{"st-venant-kirchhoff", FibreModel::kStVenantKirchhoff},
                                                     {"fung", FibreModel::kFung}});
  out.stiffness = read_varying(node, "stiffness", "#fibre/stiffness");
  const Node direction = node["direction"];
  out.where = direction.where();
  if (direction.value.is_object()) {
    out.field = direction.text("field");
    out.file = direction.text("file");
  } else if (direction.value[0].is_string()) {
    out.formula = direction.value.get<std::array<std::string, 3>>();
  } else {
    out.direction = Node::to_vec3(direction.value);
  }
  out.activation = node.text("activation");
  return out;
}

MotionKey read_key(const Node& node) {
  return {node.number("t"), node.vec3("translation"), node.vec3("rotation"), node.number("scale")};
}

BodySpec read_body(const Node& node) {
  BodySpec out;
  out.name = node.text("name");
  const Node mesh = node["mesh"];
  if (mesh.value.is_string()) {
    out.mesh_file = mesh.value.get<std::string>();
  } else {
    GenerateSpec g;
    g.shape = mesh.text("shape");
    g.size = mesh.vec3("size", g.size);
    if (mesh.has("nodes"))
      for (std::size_t i = 0; i < mesh.value["nodes"].size(); ++i)
        g.nodes[i] = mesh.value["nodes"][i].get<Index>();
    g.radius = mesh.value.value("radius", g.radius);
    g.tube_radius = mesh.value.value("tube_radius", g.tube_radius);
    g.length = mesh.value.value("length", g.length);
    g.edge = mesh.value.value("edge", g.edge);
    g.pattern = mesh.value.value("pattern", g.pattern);
    out.generate = g;
  }
  out.refine = static_cast<int>(node.number("refine"));
  out.fit = node.maybe("fit");
  out.scale = node.vec3("scale");
  out.rotation = node.vec3("rotation");
  out.translation = node.vec3("translation");
  const Node material = node["material"];
  if (const std::string energy = material.text("energy"); !energy.empty()) {
    out.material.model = MaterialModel::kInvariants;
    out.material.energy = material::parse_energy(energy);
  } else if (const material::OwnEnergy* own = material::find_own_energy(material.text("model"))) {
    out.material.model = MaterialModel::kInvariants;
    out.material.energy = {std::shared_ptr<void>(), own->energy};  // it lives as long as the program
  } else {
    out.material.model = material::parse_material_model(material.text("model").c_str());
  }
  out.material.young = read_varying(material, "young", "/bodies/*/material/young");
  const auto read_poisson = [&](const Node& parent, const char* spec_path) {
    Varying poisson = read_varying(parent, "poisson", spec_path);
    if (const double least = material::least_poisson(out.material.model); least > poisson.range.min) {
      poisson.range.min = least;
      poisson.range.min_open = false;
    }
    return poisson;
  };
  out.material.poisson = read_poisson(material, "/bodies/*/material/poisson");
  out.material.density = read_varying(material, "density", "/bodies/*/material/density");
  if (material.has("fibre")) out.material.fibre = read_fibre(material["fibre"]);
  each(node["regions"], [&](const Node& r) {
    RegionSpec region;
    region.name = r.text("name");
    region.elements = read_selection(r["elements"]);
    if (r.has("young")) region.young = read_varying(r, "young", "/bodies/*/regions/*/young");
    if (r.has("poisson")) region.poisson = read_poisson(r, "/bodies/*/regions/*/poisson");
    if (r.has("density")) region.density = read_varying(r, "density", "/bodies/*/regions/*/density");
    if (r.has("fibre")) region.fibre = read_fibre(r["fibre"]);
    out.regions.push_back(std::move(region));
  });
  for (const auto& [key, v] : node.value.at("node_sets").items())
    out.node_sets.emplace_back(key, read_selection(node["node_sets"][key]));
  for (const auto& [key, v] : node.value.at("element_sets").items())
    out.element_sets.emplace_back(key, read_selection(node["element_sets"][key]));
  out.elements = node.text("elements");
  out.thickness = node.number("thickness");
  out.bending = node.number("bending");
  out.area_density = node.maybe("area_density");
  out.velocity = read_node_vectors(node["velocity"]);
  out.angular_velocity = node.vec3("angular_velocity");
  out.embed_file = node.text("embed");
  out.initial_file = node.text("initial");
  return out;
}

ConstraintSpec read_constraint(const Node& node) {
  ConstraintSpec out;
  out.name = node.text("name");
  out.body = node.text("body");
  out.nodes = read_selection(node["nodes"]);
  out.axes = node.text("axes");
  out.from = node.number("from");
  out.until = node.maybe("until");
  each(node["motion"], [&](const Node& key) { out.motion.push_back(read_key(key)); });
  out.center = node.vec3("center");
  out.interpolation = node.text("interpolation");
  return out;
}

// A bone is a hold whose nodes are those near to it.
ConstraintSpec read_bone(const Node& node, const std::vector<ConstraintSpec>& before) {
  ConstraintSpec out;
  out.name = node.text("name");
  out.body = node.text("body");
  out.tail = node.vec3("tail");
  out.nodes.kind = "capsule";
  out.nodes.a = node.vec3("head");
  out.center = node.vec3("joint", out.nodes.a);
  out.nodes.b = *out.tail;
  out.nodes.radius = node.number("radius");
  out.nodes.where = node.where();
  each(node["motion"], [&](const Node& key) { out.motion.push_back(read_key(key)); });
  out.interpolation = node.text("interpolation");
  if (const std::string parent = node.text("parent"); !parent.empty())
    for (std::size_t c = 0; c < before.size(); ++c)
      if (before[c].tail && before[c].name == parent) out.parent = static_cast<Index>(c);
  return out;
}

ForceSpec read_force(const Node& node) {
  ForceSpec out;
  out.name = node.text("name");
  out.body = node.text("body");
  out.nodes = read_selection(node["nodes"]);
  out.force = node.vec3("force");
  out.acceleration = read_node_vectors(node["acceleration"]);
  out.force_per_node = read_node_vectors(node["force_per_node"]);
  out.from = node.number("from");
  out.until = node.maybe("until");
  out.ramp = node.number("ramp");
  if (node.has("spring")) {
    const Node spring = node["spring"];
    out.spring.emplace();
    out.spring->stiffness = spring.number("stiffness");
    out.spring->damping = spring.number("damping");
    each(spring["keys"],
         [&](const Node& key) { out.spring->keys.emplace_back(key.number("t"), key.vec3("position")); });
  }
  return out;
}

ProbeSpec read_probe(const Node& node) {
  ProbeSpec out;
  out.name = node.text("name");
  out.body = node.text("body");
  out.value = node.text("value");
  out.items.where = node.where();
  for (const char* items : {"nodes", "elements"})
    if (node.has(items)) out.items = read_selection(node[items]);
  out.reduce = node.text("reduce");
  if (out.reduce.empty())
    out.reduce = out.value.ends_with("force") || out.value == "reaction" ? "sum" : "mean";
  return out;
}

EventSpec read_event(const Node& node) {
  EventSpec out;
  out.type = node.text("type");
  out.name = node.text("name");
  out.time = node.number("time");
  out.body = node.text("body");
  out.point = node.vec3("point");
  out.normal = node.vec3("normal");
  out.face_set = node.text("face_set");
  if (out.type == "set") {
    out.path = node.text("path");
    out.value = node.value.at("value").dump();
  }
  return out;
}

ObstacleSpec read_obstacle(const Node& node) {
  ObstacleSpec out;
  out.name = node.text("name");
  out.shape = node.text("shape");
  out.point = node.vec3("point", out.point);
  if (node.has("points"))
    for (const auto& p : node.value.at("points")) out.points.emplace_back(p[0], p[1], p[2]);
  out.normal = node.vec3("normal", out.normal);
  out.size = node.vec3("size", out.size);
  out.end = node.vec3("end", out.end);
  out.radius = node.value.value("radius", out.radius);
  out.mesh_file = node.text("mesh");
  out.scale = node.vec3("scale", out.scale);
  out.rotation = node.vec3("rotation", out.rotation);
  out.translation = node.vec3("translation", out.translation);
  each(node["motion"], [&](const Node& key) { out.motion.push_back(read_key(key)); });
  out.interpolation = node.text("interpolation");
  out.friction = node.maybe("friction");
  return out;
}

}  // namespace

Selection read_selection(const nlohmann::json& value, const std::string& where) {
  return selection_from(value, where);
}

Scene read_resolved(const Json& resolved, const Marks& marks) {
  const Node root{resolved, "", marks};
  Scene scene;
  scene.name = root.text("name");
  scene.description = root.text("description");
  scene.h = root["time"].number("step");
  scene.end = root["time"].number("end");
  scene.gravity = root.vec3("gravity");
  scene.damping_mass = root["damping"].number("mass");
  scene.damping_stiffness = root["damping"].number("stiffness");
  scene.method = root["method"].text("type");
  *scene.method_options = nlohmann::json(resolved["method"]);
  scene.method_options->erase("type");
  scene.solver = root["solver"].text("backend");
  scene.ordering = root["solver"].text("ordering");
  each(root["bodies"], [&](const Node& n) { scene.bodies.push_back(read_body(n)); });
  each(root["constraints"], [&](const Node& n) { scene.constraints.push_back(read_constraint(n)); });
  each(root["bones"], [&](const Node& n) { scene.constraints.push_back(read_bone(n, scene.constraints)); });
  each(root["forces"], [&](const Node& n) { scene.forces.push_back(read_force(n)); });
  each(root["activations"], [&](const Node& n) {
    scene.activations.push_back({n.text("name"), n.get<std::vector<std::pair<double, double>>>("keys")});
  });
  each(root["events"], [&](const Node& n) { scene.events.push_back(read_event(n)); });
  each(root["obstacles"], [&](const Node& n) { scene.obstacles.push_back(read_obstacle(n)); });
  const Node contact = root["contact"];
  scene.contact = {contact.number("stiffness"), 0.0, contact.number("friction"), contact.text("rule")};
  // Under the filter alpha is no spring but a drag (docs/methods/contact.md).
  scene.contact.alpha = contact.maybe("alpha").value_or(scene.contact.rule == "filter" ? 0.0 : 0.1);
  each(root["probes"], [&](const Node& n) { scene.probes.push_back(read_probe(n)); });
  const Node output = root["output"];
  scene.output.every = output.get<Index>("every");
  scene.output.checkpoint_every = output.get<Index>("checkpoint_every");
  scene.output.vtu = output.get<bool>("vtu");
  scene.output.surface = output.get<bool>("surface");
  scene.output.fields = output.get<std::vector<std::string>>("fields");
  scene.output.bodies = output.get<std::vector<std::string>>("bodies");
  *scene.tests = nlohmann::json(resolved["tests"]);
  *scene.resolved = resolved;
  return scene;
}

}  // namespace limber
