// Meshes, and what runs have left behind.
#include "common.hpp"

#include <limber/io/mesh_io.hpp>
#include <limber/io/replay.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/view/compare.hpp>
#include <limber/view/page.hpp>

#include <pybind11/stl.h>

#include <fmt/format.h>

namespace limber::python {
namespace {

py::dict sets_of(const IndexSets& sets) {
  py::dict out;
  for (const auto& [name, ids] : sets) out[py::str(name)] = owned_list(ids);
  return out;
}

py::dict fields_of(const Fields& fields) {
  py::dict out;
  for (const auto& [name, field] : fields) {
    const auto count = static_cast<py::ssize_t>(field.values.size()) / std::max(1, field.components);
    std::vector<double> copy = field.values;
    out[py::str(name)] = field.components == 1
                             ? owned<double>(std::move(copy), {count})
                             : owned<double>(std::move(copy), {count, py::ssize_t{field.components}});
  }
  return out;
}

template <class Mesh, class Cells>
py::dict mesh_arrays(const Mesh& mesh, const Cells& cells) {
  VecX vertices(3 * static_cast<Eigen::Index>(mesh.nodes.size()));
  for (std::size_t i = 0; i < mesh.nodes.size(); ++i) node(vertices, static_cast<Index>(i)) = mesh.nodes[i];
  std::vector<std::int32_t> flat;
  for (const auto& c : cells) flat.insert(flat.end(), c.begin(), c.end());
  const auto count = static_cast<py::ssize_t>(cells.size());
  const auto corners = static_cast<py::ssize_t>(std::tuple_size_v<typename Cells::value_type>);
  py::dict out;
  out["vertices"] = owned_rows(std::move(vertices));
  out["cells"] = owned<std::int32_t>(std::move(flat), {count, corners});
  out["node_sets"] = sets_of(mesh.node_sets);
  out["element_sets"] = sets_of(mesh.element_sets);
  out["element_fields"] = fields_of(mesh.element_fields);
  return out;
}
py::dict arrays_of(const TetMesh& mesh) { return mesh_arrays(mesh, mesh.tets); }
py::dict arrays_of(const TriMesh& mesh) { return mesh_arrays(mesh, mesh.triangles); }

IndexSets sets_from(const py::dict& sets, Index count) {
  IndexSets out;
  for (const auto& [name, ids] : sets) {
    std::vector<Index> list =
        node_list(Indices::ensure(ids), count, py::str(name).cast<std::string>().c_str());
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    out[py::str(name).cast<std::string>()] = std::move(list);
  }
  return out;
}

template <int corners, class Mesh>
Mesh mesh_from(const Doubles& vertices, const Indices& cells, const py::dict& node_sets,
               const py::dict& element_sets, std::vector<std::array<Index, corners>> Mesh::*list) {
  Mesh mesh;
  mesh.nodes = points_of(vertices, "vertices");
  const auto nodes = static_cast<Index>(mesh.nodes.size());
  const std::vector<Index> flat = node_list(Indices(cells.attr("ravel")()), nodes, "cells");
  for (std::size_t k = 0; k < flat.size(); k += corners) {
    std::array<Index, corners> cell;
    std::copy_n(flat.begin() + static_cast<std::ptrdiff_t>(k), corners, cell.begin());
    (mesh.*list).push_back(cell);
  }
  mesh.node_sets = sets_from(node_sets, nodes);
  mesh.element_sets = sets_from(element_sets, static_cast<Index>((mesh.*list).size()));
  return mesh;
}

void write_arrays(const std::string& path, const Doubles& vertices, const Indices& cells,
                  const py::dict& node_sets, const py::dict& element_sets) {
  MeshFile file;
  if (cells.shape(1) == 4)
    file.mesh = mesh_from<4, TetMesh>(vertices, cells, node_sets, element_sets, &TetMesh::tets);
  else
    file.mesh = mesh_from<3, TriMesh>(vertices, cells, node_sets, element_sets, &TriMesh::triangles);
  write_mesh(path, file);
}

// What is wrong with a mesh: (fatal, message).
py::list check_arrays(const Doubles& vertices, const Indices& cells) {
  MeshReport report;
  if (cells.shape(1) == 4) {
    report = check_mesh(mesh_from<4, TetMesh>(vertices, cells, {}, {}, &TetMesh::tets));
  } else {
    const auto mesh = mesh_from<3, TriMesh>(vertices, cells, {}, {}, &TriMesh::triangles);
    report = check_mesh(mesh, guess_role(mesh));
  }
  py::list out;
  for (const MeshProblem& p : report.problems)
    out.append(py::make_tuple(p.fatal || p.kind == MeshProblemKind::kUnusedNode, p.message));
  return out;
}

py::dict field_arrays(const std::vector<ReplayField>& fields) {
  py::dict out;
  for (const ReplayField& f : fields) {
    const auto count = static_cast<py::ssize_t>(f.values.size()) / std::max(1, f.components);
    std::vector<float> copy = f.values;
    out[py::str(f.name)] = f.components == 1
                               ? owned<float>(std::move(copy), {count})
                               : owned<float>(std::move(copy), {count, py::ssize_t{f.components}});
  }
  return out;
}

py::dict frame_of(const ReplayReader& reader, Index i) {
  ReplayFrame frame = reader.frame(i);
  const auto nodes = static_cast<py::ssize_t>(frame.x.size() / 3);
  py::dict out;
  out["t"] = frame.t;
  out["step"] = frame.step;
  out["topology"] = frame.topology;
  out["x"] = owned<float>(std::move(frame.x), {nodes, 3});
  out["node_fields"] = field_arrays(frame.node_fields);
  out["element_fields"] = field_arrays(frame.element_fields);
  return out;
}

py::dict topology_of(const ReplayReader& reader, Index i) {
  ReplayTopology t = reader.topology(i);
  std::vector<std::int32_t> cells, surface;
  for (const Tet& c : t.elements) cells.insert(cells.end(), c.begin(), c.end());
  for (const Tri& c : t.surface) surface.insert(surface.end(), c.begin(), c.end());
  const py::ssize_t nodes = t.node_count(), elements = t.element_count(),
                    triangles = static_cast<py::ssize_t>(t.surface.size());
  py::list bodies;
  for (const ReplayBody& b : t.bodies) bodies.append(py::make_tuple(b.name, b.element_begin, b.element_end));
  py::dict out;
  out["step"] = t.step;
  out["bodies"] = bodies;
  out["regions"] = t.regions;
  out["node_fields"] = field_arrays(t.node_fields);
  out["element_fields"] = field_arrays(t.element_fields);
  out["rest"] = owned<float>(std::move(t.rest), {nodes, 3});
  out["cells"] = owned<std::int32_t>(std::move(cells), {elements, 4});
  out["surface"] = owned<std::int32_t>(std::move(surface), {triangles, 3});
  return out;
}

py::dict page_report(const view::PageReport& r) {
  py::dict out;
  out["frames"] = r.frames;
  out["notices"] = r.notices;
  out["failure"] = r.failure;
  return out;
}

}  // namespace

void add_mesh_and_runs(py::module_& m) {
  m.def("make_box", [](const std::array<double, 3>& size, const std::array<Index, 3>& nodes) {
    return arrays_of(make_box(Vec3(size[0], size[1], size[2]), nodes));
  });
  m.def("make_rectangle", [](const std::array<double, 2>& size, const std::array<Index, 2>& nodes) {
    return arrays_of(make_rectangle(Vec2(size[0], size[1]), nodes));
  });
  m.def("make_sphere", [](double radius, double edge) { return arrays_of(make_sphere(radius, edge)); });
  m.def("make_capsule", [](double radius, double length, double edge) {
    return arrays_of(make_capsule(radius, length, edge));
  });
  m.def("make_cylinder", [](double radius, double length, double edge) {
    return arrays_of(make_cylinder(radius, length, edge));
  });
  m.def("make_torus",
        [](double radius, double tube, double edge) { return arrays_of(make_torus(radius, tube, edge)); });
  m.def("read_mesh", [](const std::string& path) {
    const MeshFile file = read_mesh(path);
    py::dict out = file.has_tets() ? arrays_of(file.tets()) : arrays_of(file.triangles());
    out["notices"] = file.notices;
    return out;
  });
  m.def("write_mesh", &write_arrays);
  m.def("check_mesh", &check_arrays);

  py::class_<ReplayReader>(m, "Replay")
      .def(py::init([](const std::string& folder) {
        return std::make_unique<ReplayReader>(view::find_recording(folder));
      }))
      .def("header",
           [](const ReplayReader& r) {
             py::dict out;
             out["scene"] = r.header().scene;
             out["description"] = r.header().description;
             out["method"] = r.header().method;
             out["version"] = r.header().version;
             out["step"] = r.header().h;
             out["end"] = r.header().end;
             return out;
           })
      .def("frames", &ReplayReader::frame_count)
      .def("topologies", &ReplayReader::topology_count)
      .def("frame", &frame_of)
      .def("topology", &topology_of)
      .def("times",
           [](const ReplayReader& r) {
             std::vector<double> out;
             for (Index i = 0; i < r.frame_count(); ++i) out.push_back(r.frame_time(i));
             return owned_list(std::move(out));
           })
      .def("frame_steps",
           [](const ReplayReader& r) {
             std::vector<std::int64_t> out;
             for (Index i = 0; i < r.frame_count(); ++i) out.push_back(r.frame_step(i));
             return owned_list(std::move(out));
           })
      .def("frame_topology", &ReplayReader::frame_topology)
      .def("finished", &ReplayReader::finished)
      .def("damage", &ReplayReader::damage);

  m.def("write_page", [](const std::string& folder, const std::string& html) {
    return page_report(view::write_page(view::find_recording(folder), html));
  });
  // (times, largest, root mean square distances, nodes) of each run from the first, and what they cost.
  m.def("compare", [](const std::vector<std::string>& folders, const std::vector<std::string>& labels,
                      const std::string& html) {
    std::vector<std::unique_ptr<ReplayReader>> readers;
    std::vector<const ReplayReader*> runs;
    for (const std::string& f : folders) {
      readers.push_back(std::make_unique<ReplayReader>(view::find_recording(f)));
      runs.push_back(readers.back().get());
    }
    view::Comparison c = view::compare_runs(runs, labels);
    if (!html.empty()) view::write_compare_page(runs, labels, c, html);
    py::list distance, costs;
    for (view::Distance& d : c.distance)
      distance.append(py::make_tuple(owned_list(std::move(d.t)), owned_list(std::move(d.max)),
                                     owned_list(std::move(d.rms)), owned_list(std::move(d.node))));
    for (const view::Cost& k : c.costs) {
      py::dict cost;
      cost["label"] = k.label;
      cost["method"] = k.method;
      cost["nodes"] = k.nodes;
      cost["steps"] = k.steps;
      cost["dofs"] = k.dofs;
      cost["ms_per_step"] = k.ms_per_step;
      cost["ms_p95"] = k.ms_p95;
      costs.append(cost);
    }
    return py::make_tuple(distance, costs);
  });
}

}  // namespace limber::python
