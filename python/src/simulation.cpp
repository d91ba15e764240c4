// Scenes and simulations.
#include "common.hpp"
#include "elements.hpp"

#include <limber/contact/body_contact.hpp>
#include <limber/io/file.hpp>
#include <limber/limber.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/scene/spec.hpp>
#include <limber/sim/advice.hpp>
#include <limber/sim/frame.hpp>

#include <pybind11/stl.h>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>

namespace limber::python {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using SceneRef = std::shared_ptr<Scene>;

// (scene or None, [(file, line, pointer, message)])
py::tuple loaded(LoadResult result) {
  py::list problems;
  for (const Problem& p : result.problems)
    problems.append(py::make_tuple(p.mark.file, p.mark.line, p.pointer, p.message));
  if (!result.problems.empty()) return py::make_tuple(py::none(), problems);
  return py::make_tuple(std::make_shared<Scene>(std::move(result.scene)), problems);
}

// A run folder while it is being written.
struct Recording {
  Recording(const Scene& scene, const RunFolderRequest& request) : folder(scene, request) {}
  RunFolder folder;
  std::optional<Recorder> recorder;
};

// One thread at a time: the second one is told so, instead of reading a state that is being written.
class Use {
 public:
  explicit Use(std::atomic<bool>& busy) : busy_(busy) {
    if (busy_.exchange(true))
      wrong_call(
          "another thread is using this simulation; a simulation is for one thread at a time, but threads "
          "may "
          "have one each");
  }
  ~Use() { busy_ = false; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  std::atomic<bool>& busy_;
};

class PySimulation {
 public:
  PySimulation(SceneRef scene, const std::string& cache, py::object progress) : scene_(std::move(scene)) {
    Preparation preparation;
    preparation.cache = cache;
    if (!progress.is_none())
      preparation.progress = [progress](std::string_view what, double share) {
        const py::gil_scoped_acquire gil;
        progress(py::str(what.data(), what.size()), share);
      };
    {
      const py::gil_scoped_release release;
      simulation_ = std::make_unique<Simulation>(scene_, preparation);
    }
  }

  void step() {
    const Use use(busy_);
    const py::gil_scoped_release release;
    advance();
  }

  // To step `target`. `each`: called after every step; what it returns ends the run if it is true. `tick`:
  // called about ten times a second. Ctrl-C is looked for about as often.
  bool run(std::int64_t target, const py::object& each, const py::object& tick) {
    auto last = Clock::now();
    while (steps() < target) {
      {
        const Use use(busy_);
        const py::gil_scoped_release release;
        do advance();
        while (each.is_none() && simulation_->steps_done() < target &&
               Clock::now() - last < std::chrono::milliseconds(50));
      }
      if (!each.is_none() && py::bool_(each())) return false;
      if (Clock::now() - last < std::chrono::milliseconds(50)) continue;
      last = Clock::now();
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!tick.is_none()) tick();
    }
    return true;
  }

  std::int64_t steps() const { return simulation_->steps_done(); }
  double time() const { return simulation_->time(); }
  std::int64_t total_steps() const { return simulation_->total_steps(); }
  std::int64_t epoch() const { return simulation_->epoch(); }
  Index nodes() const { return simulation_->model().nodes(); }

  // Snapshots: one copy for each step in which somebody looks.
  py::array x() {
    return snapshot(x_, [](const State& s) -> const VecX& { return s.x; });
  }
  py::array v() {
    return snapshot(v_, [](const State& s) -> const VecX& { return s.v; });
  }
  py::array q() const {
    return joints([](const State& s) -> const VecX& { return s.joint_q; });
  }
  py::array qdot() const {
    return joints([](const State& s) -> const VecX& { return s.joint_v; });
  }

  void set_motion(const std::optional<Doubles>& x, const std::optional<Doubles>& v) {
    const Use use(busy_);
    const State& state = simulation_->state();
    simulation_->set_motion(x ? node_vector(*x, nodes(), "x") : state.x,
                            v ? node_vector(*v, nodes(), "v") : state.v);
    ++version_;
  }

  void set_force(const std::optional<Doubles>& force) {
    const Use use(busy_);
    Guidance g = simulation_->guidance();
    g.force = force ? node_vector(*force, nodes(), "force") : VecX();
    simulation_->set_guidance(std::move(g));
  }
  py::object force() const {
    const Use use(busy_);
    if (simulation_->guidance().force.size() == 0) return py::none();
    return owned_rows(simulation_->guidance().force);
  }

  // velocity: one for all, or one for each of the nodes.
  void hold(const Indices& which, const Doubles& velocity, const std::string& axes) {
    const Use use(busy_);
    const std::vector<Index> list = node_list(which, nodes(), "nodes");
    const bool each = velocity.ndim() == 2;
    if (velocity.size() != (each ? 3 * static_cast<py::ssize_t>(list.size()) : 3))
      wrong_call(fmt::format("velocity has the shape {}, expected (3,) or ({}, 3)", shape_text(velocity),
                             list.size()));
    if (axes.empty() || axes.find_first_not_of("xyz") != std::string::npos)
      wrong_call(fmt::format("axes is \"{}\", expected some of \"xyz\"", axes));
    Guidance g = simulation_->guidance();
    g.fixed.resize(3 * static_cast<std::size_t>(nodes()), 0);
    if (g.fixed_velocity.size() == 0) g.fixed_velocity.setZero(3 * static_cast<Eigen::Index>(nodes()));
    for (std::size_t k = 0; k < list.size(); ++k)
      for (const char axis : axes) {
        const int a = axis - 'x';
        g.fixed[3 * static_cast<std::size_t>(list[k]) + static_cast<std::size_t>(a)] = 1;
        g.fixed_velocity[3 * list[k] + a] = velocity.data()[(each ? 3 * k : 0) + static_cast<std::size_t>(a)];
      }
    simulation_->set_guidance(std::move(g));
  }
  void release(const std::optional<Indices>& which) {
    const Use use(busy_);
    Guidance g = simulation_->guidance();
    if (g.fixed.empty()) return;
    if (which)
      for (const Index i : node_list(*which, nodes(), "nodes"))
        for (int a = 0; a < 3; ++a) {
          g.fixed[3 * static_cast<std::size_t>(i) + static_cast<std::size_t>(a)] = 0;
          g.fixed_velocity[3 * i + a] = 0;
        }
    else
      g.fixed.clear();
    simulation_->set_guidance(std::move(g));
  }

  // n x 3: what is held in this step or, before the first, will be.
  py::array held() const {
    const Use use(busy_);
    const std::vector<std::uint8_t>& fixed = input().fixed;
    std::vector<std::uint8_t> copy = fixed;
    return owned<std::uint8_t>(std::move(copy), {nodes(), 3}).view("bool");
  }

  std::string hash() const {
    const Use use(busy_);
    return to_hex(hash_state(simulation_->state()));
  }

  py::dict measure_state() const {
    const Use use(busy_);
    const Diagnostics d = measure(simulation_->model(), simulation_->state(), input().activation);
    py::dict out;
    out["kinetic"] = d.kinetic;
    out["elastic"] = d.elastic;
    out["gravity"] = d.gravity;
    out["contact"] = d.contact;
    out["total"] = d.total();
    out["momentum"] = owned_vector(d.momentum);
    out["angular_momentum"] = owned_vector(d.angular_momentum);
    out["center_of_mass"] = owned_vector(d.center_of_mass);
    out["max_displacement"] = d.max_displacement;
    out["max_speed"] = d.max_speed;
    return out;
  }

  py::dict report() const {
    const Use use(busy_);
    py::dict out, phases;
    for (const auto& [name, seconds] : report_.phases) phases[py::str(name)] = seconds;
    out["dofs"] = report_.dofs;
    out["iterations"] = report_.iterations;
    out["residual"] = report_.residual;
    out["contacts"] = report_.contacts;
    out["inverted"] = report_.inverted;
    out["analyses"] = report_.symbolic_analyses;
    out["seconds"] = seconds_;
    out["columns"] = dict_of(report_.extra);
    out["energy"] = dict_of(report_.energy);
    out["fallbacks"] = dict_of(report_.fallbacks);
    out["warnings"] = report_.warnings;
    out["phases"] = phases;
    return out;
  }

  // (of nodes, of elements, of links, units)
  py::tuple fields() const {
    const Use use(busy_);
    FrameFields frame = frame_fields(*simulation_, input());
    const MethodFields own = simulation_->fields();
    const auto arrays = [](std::map<std::string, Field>& fields) {
      py::dict out;
      for (auto& [name, field] : fields) {
        const auto count = static_cast<py::ssize_t>(field.values.size()) / std::max(1, field.components);
        out[py::str(name)] = field.components == 1 ? owned<double>(std::move(field.values), {count})
                                                   : owned<double>(std::move(field.values),
                                                                   {count, py::ssize_t{field.components}});
      }
      return out;
    };
    py::dict links;
    for (const auto& [name, values] : own.link) links[py::str(name)] = owned_list(values);
    return py::make_tuple(arrays(frame.node), arrays(frame.element), links, dict_of(own.units));
  }

  std::vector<std::string> take_notices() {
    const Use use(busy_);
    collect_notices();
    return std::exchange(notices_, {});
  }
  std::vector<std::string> hints() const { return advice(simulation_->model()); }

  void save(const std::string& path) const {
    const Use use(busy_);
    Checkpoint c;
    c.state = simulation_->state();
    c.method = scene_->method;
    c.scene_hash = hash_scene(*scene_);
    c.notes = {{"limber", version()}};
    write_checkpoint(path, c);
  }
  void restore(const std::string& path) {
    const Use use(busy_);
    const Checkpoint c = read_checkpoint(path);
    if (c.scene_hash != hash_scene(*scene_))
      wrong_call(
          fmt::format("{}: the checkpoint is of another scene, or one of its files has changed since", path));
    simulation_->restore(c.state);
    stepped_ = false;
    ++version_;
  }

  // Opens a run folder; every step from now on is recorded, as `limber run` records it. `inputs`: the folder
  // where files of the scene are that are not to stay there: they are copied into the run. Returns notices.
  std::vector<std::string> record(const std::string& folder, bool overwrite, bool resume,
                                  const std::string& checkpoint, std::int64_t target,
                                  const std::vector<std::string>& overrides, const std::string& inputs) {
    const Use use(busy_);
    if (recording_)
      wrong_call(
          fmt::format("this simulation is recorded into {} already", recording_->folder.path().string()));
    if (steps() > 0 && !resume)
      wrong_call(
          "a recording begins with the first step: call record() before step(), or resume a run with "
          "resume=True");
    RunFolderRequest request;
    request.folder = folder;
    request.overwrite = overwrite;
    request.resume = resume;
    if (!checkpoint.empty()) request.checkpoint = checkpoint;
    auto recording = std::make_unique<Recording>(*scene_, request);
    if (!inputs.empty()) keep_inputs(recording->folder, inputs);
    if (recording->folder.start()) {
      simulation_->restore(recording->folder.start()->state);
      stepped_ = false;
      ++version_;
    }
    describe_run(*simulation_, overrides, target, recording->folder);
    recording->folder.log(
        fmt::format("limber {} ({}), {} threads, {} (Python)", version(), commit(), threads(), scene_->file));
    for (const std::string& line : advice(simulation_->model())) recording->folder.log(line);
    recording->recorder.emplace(recording->folder, *simulation_);
    std::vector<std::string> notices = recording->folder.notices();
    for (const std::string& line : recording->recorder->notices()) notices.push_back(line);
    recording->recorder->begin();
    recording_ = std::move(recording);
    collect_notices();
    return notices;
  }
  std::vector<std::string> finish(const std::string& status, const std::string& why, bool dump) {
    const Use use(busy_);
    if (!recording_) return {};
    const std::unique_ptr<Recording> recording = std::move(recording_);
    if (!why.empty()) recording->folder.log(why);
    recording->recorder->finish(status, why);
    if (dump) dump_failure(recording->folder, *simulation_, why);
    return recording->recorder->notices();
  }
  py::object recording() const {
    return recording_ ? py::cast(recording_->folder.path().string()) : py::none();
  }
  void checkpoint() {
    const Use use(busy_);
    if (recording_) recording_->recorder->checkpoint();
  }

  // The present state alone as a run folder, to be shown.
  void still(const std::string& folder) const {
    const Use use(busy_);
    RunFolderRequest request;
    request.folder = folder;
    Recording recording(*scene_, request);
    describe_run(*simulation_, {}, simulation_->steps_done(), recording.folder);
    recording.recorder.emplace(recording.folder, *simulation_);
    recording.recorder->begin();
    recording.recorder->finish("finished");
  }

  const Model& model() const { return simulation_->model(); }
  const Simulation& simulation() const { return *simulation_; }
  std::atomic<bool>& busy() const { return busy_; }

  // What the script says about this state: of the last step, or before one has been taken.
  const StepInput& input() const {
    if (stepped_) return simulation_->input();
    script_input(simulation_->model(), simulation_->state(), scene_->h, before_);
    return before_;
  }

 private:
  // One step, without the interpreter's lock.
  void advance() {
    const auto start = Clock::now();
    report_ = simulation_->step();
    seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
    stepped_ = true;
    ++version_;
    collect_notices();
    if (recording_) recording_->recorder->record(report_, seconds_);
  }
  // For whoever asks, and for the log of the run.
  void collect_notices() {
    for (std::string& notice : simulation_->take_notices()) {
      if (recording_) recording_->folder.log(notice);
      notices_.push_back(std::move(notice));
    }
  }

  struct Snapshot {
    std::int64_t version = -1;
    py::array array;
  };
  template <class Member>
  py::array snapshot(Snapshot& kept, Member&& member) {
    const Use use(busy_);
    if (kept.version != version_) {
      kept.array = owned_rows(VecX(member(simulation_->state())));
      freeze(kept.array);
      kept.version = version_;
    }
    return kept.array;
  }
  template <class Member>
  py::array joints(Member&& member) const {
    const Use use(busy_);
    return owned_vector(VecX(member(simulation_->state())));
  }

  // Files of the scene that lie in `inputs` are copied to RUN/inputs, and scene.resolved.json names them
  // there.
  void keep_inputs(const RunFolder& folder, const std::string& inputs) const {
    Scene moved = *scene_;
    bool any = false;
    std::error_code ec;
    for_each_file(moved.resolved, [&](Json& value, const std::string&) {
      const fs::path file = fs::path(moved.folder) / value.get<std::string>();
      if (!fs::equivalent(file.parent_path(), inputs, ec)) return;
      const fs::path kept = fs::absolute(folder.file("inputs")) / file.filename();
      fs::create_directories(kept.parent_path(), ec);
      fs::copy_file(file, kept, fs::copy_options::overwrite_existing, ec);
      if (ec)
        throw Error(ErrorKind::kIo,
                    fmt::format("{}: cannot copy it to {}: {}", file.string(), kept.string(), ec.message()));
      value = kept.lexically_relative(fs::absolute(moved.folder, ec).lexically_normal()).string();
      any = true;
    });
    if (any)
      write_file_atomic(folder.file("scene.resolved.json").string(),
                        rebase_files(moved, folder.path().string()).dump(2) + "\n");
  }

  SceneRef scene_;
  std::unique_ptr<Simulation> simulation_;
  StepReport report_;
  double seconds_ = 0;
  bool stepped_ = false;  // since the simulation was made or restored
  mutable StepInput before_;
  std::unique_ptr<Recording> recording_;
  mutable std::atomic<bool> busy_ = false;
  std::vector<std::string> notices_;
  std::int64_t version_ = 0;
  Snapshot x_, v_;
};

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
      .def("resolved", [](const Scene& s) { return s.resolved.dump(); })
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
      .def_property_readonly("steps", &PySimulation::steps)
      .def_property_readonly("t", &PySimulation::time)
      .def_property_readonly("total_steps", &PySimulation::total_steps)
      .def_property_readonly("epoch", &PySimulation::epoch)
      .def_property_readonly("nodes", &PySimulation::nodes)
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
      .def("_fields", &PySimulation::fields)
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
