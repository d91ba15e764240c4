// A simulation as Python sees it: one thread at a time, without the interpreter's lock while it computes,
// recorded.
#pragma once

#include "common.hpp"

#include <limber/io/file.hpp>
#include <limber/limber.hpp>
#include <limber/scene/spec.hpp>
#include <limber/sim/advice.hpp>
#include <limber/sim/frame.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>

namespace limber::python {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using SceneRef = std::shared_ptr<Scene>;

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
          "may have one each");
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

  // A recording that nobody has completed ends here.
  ~PySimulation() {
    if (!recording_) return;
    try {
      recording_->recorder->finish("interrupted");
    } catch (...) {  // there is nobody left to tell; what was recorded stays readable
    }
  }
  PySimulation(const PySimulation&) = delete;
  PySimulation& operator=(const PySimulation&) = delete;

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
    const Diagnostics d = simulation_->measured(input().activation);
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
    const py::gil_scoped_release release;
    Checkpoint c;
    c.state = simulation_->state();
    c.method = scene_->method;
    c.scene_hash = hash_scene(*scene_);
    *c.notes = nlohmann::json{{"limber", version()}};
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
    recording->recorder.emplace(recording->folder, *simulation_, target);
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
    const py::gil_scoped_release release;
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
    const py::gil_scoped_release release;
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
    for_each_file(*moved.resolved, [&](Json& value, const std::string&) {
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

}  // namespace limber::python
