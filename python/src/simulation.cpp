// Scenes and simulations.
#include "elements.hpp"
#include "py_simulation.hpp"

#include <limber/contact/body_contact.hpp>
#include <limber/rigid/articulation.hpp>

#include <pybind11/stl.h>

namespace limber::python {
namespace {

// (scene or None, [(file, line, pointer, message)])
py::tuple loaded(LoadResult result) {
  py::list problems;
  for (const Problem& p : result.problems)
    problems.append(py::make_tuple(p.mark.file, p.mark.line, p.pointer, p.message));
  if (!result.problems.empty()) return py::make_tuple(py::none(), problems);
  return py::make_tuple(std::make_shared<Scene>(std::move(result.scene)), problems);
}

py::dict model_of(const PySimulation& s) {
  const Use use(s.busy());
  const Model& model = s.model();
  VecX rest(3 * static_cast<Eigen::Index>(model.nodes())), mass(model.nodes());
  for (Index i = 0; i < model.nodes(); ++i) {
    node(rest, i) = model.mesh.rest[at(i)];
    mass[i] = model.mass[3 * i];
  }
  std::vector<std::int32_t> cells;
  for (const Tet& t : model.mesh.elements) cells.insert(cells.end(), t.begin(), t.end());
  const auto count = static_cast<py::ssize_t>(model.mesh.elements.size());
  std::vector<double> young, poisson, density;
  for (const ElementMaterial& m : model.mesh.material) {
    young.push_back(m.young);
    poisson.push_back(m.poisson);
    density.push_back(m.density);
  }
  py::dict out, node_sets, element_sets;
  for (const auto& [name, ids] : model.node_sets) node_sets[py::str(name)] = owned_list(ids);
  for (const auto& [name, ids] : model.element_sets) element_sets[py::str(name)] = owned_list(ids);
  py::list bodies;
  for (const Body& b : model.bodies)
    bodies.append(py::make_tuple(b.name, b.elements.begin, b.elements.end, name_of(b.kind)));
  out["rest"] = owned_rows(std::move(rest));
  out["mass"] = owned_vector(std::move(mass));
  out["cells"] = owned<std::int32_t>(std::move(cells), {count, 4});
  out["young"] = owned_list(std::move(young));
  out["poisson"] = owned_list(std::move(poisson));
  out["density"] = owned_list(std::move(density));
  out["node_sets"] = node_sets;
  out["element_sets"] = element_sets;
  out["bodies"] = bodies;
  out["body_of_node"] = owned_list(model.body_of_node);
  out["size"] = model.size;
  return out;
}

// Of each body of a scene: its nodes and the middles of its elements at rest, where the scene puts them.
py::list placed_bodies(SceneRef scene) {
  const Model model = build_model(std::move(scene));
  py::list out;
  for (std::size_t b = 0; b < model.bodies.size(); ++b) {
    std::vector<double> nodes, middles;
    for (Index i = 0; i < model.nodes(); ++i)
      if (model.body_of_node[at(i)] == static_cast<Index>(b))
        nodes.insert(nodes.end(), model.mesh.rest[at(i)].data(), model.mesh.rest[at(i)].data() + 3);
    for (Index e = model.bodies[b].elements.begin; e < model.bodies[b].elements.end; ++e) {
      const Tet& t = model.mesh.elements[at(e)];
      Vec3 middle = Vec3::Zero();
      for (int c = 0; c < corners(t); ++c)
        middle += model.mesh.rest[at(t[static_cast<std::size_t>(c)])] / corners(t);
      middles.insert(middles.end(), middle.data(), middle.data() + 3);
    }
    const auto n = static_cast<py::ssize_t>(nodes.size() / 3),
               m = static_cast<py::ssize_t>(middles.size() / 3);
    out.append(
        py::make_tuple(owned<double>(std::move(nodes), {n, 3}), owned<double>(std::move(middles), {m, 3})));
  }
  return out;
}

// (node, obstacle, point, normal, depth)
py::dict contact_arrays(const std::vector<Contact>& contacts) {
  std::vector<std::int32_t> nodes, obstacles;
  VecX points(3 * static_cast<Eigen::Index>(contacts.size())), normals(points.size());
  std::vector<double> depth;
  for (const Contact& c : contacts) {
    const auto k = static_cast<Index>(nodes.size());
    node(points, k) = c.x_s;
    node(normals, k) = c.n;
    nodes.push_back(c.node);
    obstacles.push_back(c.obstacle);
    depth.push_back(c.depth);
  }
  py::dict out;
  out["node"] = owned_list(std::move(nodes));
  out["obstacle"] = owned_list(std::move(obstacles));
  out["point"] = owned_rows(std::move(points));
  out["normal"] = owned_rows(std::move(normals));
  out["depth"] = owned_list(std::move(depth));
  return out;
}

py::dict touching_now(const PySimulation& s) {
  const Use use(s.busy());
  return contact_arrays(touching(s.model().contact, s.simulation().state().x, s.time()));
}
py::dict touching_next(const PySimulation& s) {
  const Use use(s.busy());
  const State& state = s.simulation().state();
  return contact_arrays(detect(s.model().contact, state.x, state.v, s.simulation().scene().h, state.t));
}
py::dict bodies_touching(const PySimulation& s) {
  const Use use(s.busy());
  BodyContact contact(s.model().mesh, {});
  const VecX& x = s.simulation().state().x;
  const std::vector<BodyContact::Pair> pairs = contact.detect(x);
  const std::vector<ContactRow> rows = contact.rows(pairs, x);
  std::vector<std::int32_t> nodes, faces;
  VecX normals(3 * static_cast<Eigen::Index>(rows.size())), weights(normals.size());
  std::vector<double> gaps;
  for (const ContactRow& r : rows) {
    const auto k = static_cast<Index>(nodes.size());
    node(normals, k) = r.n;
    for (int c = 0; c < 3; ++c) weights[3 * k + c] = r.weight[static_cast<std::size_t>(c)];
    nodes.push_back(r.node);
    faces.insert(faces.end(), r.face.begin(), r.face.end());
    gaps.push_back(r.gap);
  }
  const auto count = static_cast<py::ssize_t>(nodes.size());
  py::dict out;
  out["node"] = owned_list(std::move(nodes));
  out["face"] = owned<std::int32_t>(std::move(faces), {count, 3});
  out["weight"] = owned_rows(std::move(weights));
  out["normal"] = owned_rows(std::move(normals));
  out["gap"] = owned_list(std::move(gaps));
  return out;
}

}  // namespace

void add_simulation(py::module_& m) {
  py::class_<Scene, SceneRef>(m, "Scene")
      .def_readonly("name", &Scene::name)
      .def_readonly("file", &Scene::file)
      .def_readonly("folder", &Scene::folder)
      .def_readonly("method", &Scene::method)
      .def_readonly("step", &Scene::h)
      .def_readonly("end", &Scene::end)
      .def("resolved", [](const Scene& s) { return s.resolved->dump(); })
      .def("hash", [](const Scene& s) { return to_hex(hash_scene(s)); });
  m.def("load_scene", [](const std::string& path, const std::vector<std::string>& overrides) {
    return loaded(try_load_scene(path, overrides));
  });
  m.def("read_scene",
        [](const std::string& text, const std::string& path, const std::vector<std::string>& overrides) {
          return loaded(try_read_scene(text, path, overrides));
        });
  m.def("placed_bodies", &placed_bodies);
  m.def("methods", [] {
    py::dict out;
    for (const Method* method : methods())
      out[py::str(std::string(method->spec.name))] = std::string(method->spec.summary);
    return out;
  });

  py::class_<PySimulation>(m, "Simulation")
      .def(py::init<SceneRef, std::string, py::object>())
      .def("_step", &PySimulation::step)
      .def("_run", &PySimulation::run)
      .def_property_readonly("steps", &PySimulation::steps, "Steps done.")
      .def_property_readonly("t", &PySimulation::time, "Time [s].")
      .def_property_readonly("total_steps", &PySimulation::total_steps, "Steps to the end of the scene.")
      .def_property_readonly("epoch", &PySimulation::epoch, "Changes of the topology so far (cuts).")
      .def_property_readonly("nodes", &PySimulation::nodes, "How many nodes there are.")
      .def("_x", &PySimulation::x)
      .def("_v", &PySimulation::v)
      .def("_q", &PySimulation::q)
      .def("_qdot", &PySimulation::qdot)
      .def("_set_motion", &PySimulation::set_motion)
      .def("_set_force", &PySimulation::set_force)
      .def("_force", &PySimulation::force)
      .def("_hold", &PySimulation::hold)
      .def("_release", &PySimulation::release)
      .def("_held", &PySimulation::held)
      .def("_hash", &PySimulation::hash)
      .def("_measure", &PySimulation::measure_state)
      .def("_report", &PySimulation::report)
      .def("_field_arrays", &PySimulation::fields)
      .def("_notices", &PySimulation::take_notices)
      .def("_hints", &PySimulation::hints)
      .def("_save", &PySimulation::save)
      .def("_restore", &PySimulation::restore)
      .def("_record", &PySimulation::record)
      .def("_finish", &PySimulation::finish)
      .def("_recording", &PySimulation::recording)
      .def("_checkpoint", &PySimulation::checkpoint)
      .def("_still", &PySimulation::still)
      .def("_model", &model_of)
      .def("_touching", &touching_now)
      .def("_touching_next", &touching_next)
      .def("_bodies_touching", &bodies_touching)
      .def("_elements",
           [](const PySimulation& s) {
             const Use use(s.busy());
             return std::make_shared<PyElements>(s.model().elements, s.model().activations.size());
           })
      .def("_activation", [](const PySimulation& s) {
        const Use use(s.busy());
        return owned_list(s.input().activation);
      });
}

}  // namespace limber::python
