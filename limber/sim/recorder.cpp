#include <limber/core/error.hpp>
#include <limber/io/vtu.hpp>
#include <limber/sim/describe_run.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/recorder.hpp>
#include <limber/view/page.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace limber {
namespace {

constexpr std::size_t kCheckpointsKept = 3;

constexpr const char* kOnTheWay = "on_the_way";

// Null where the run does not go on, or has nothing in that place that only an end has.
nlohmann::json replaced_row(const RunFolder& folder, std::int64_t end) {
  if (!folder.start() || end <= folder.start()->state.step || !folder.start()->notes->is_object()) return {};
  nlohmann::json row = folder.start()->notes->value(kOnTheWay, nlohmann::json());
  const auto pairs = [](const nlohmann::json& list, bool texts) {
    return list.is_array() && std::all_of(list.begin(), list.end(), [&](const nlohmann::json& p) {
             return p.is_array() && p.size() == 2 && p[0].is_string() &&
                    (texts ? p[1].is_string() : p[1].is_number() || p[1].is_null());
           });
  };
  const bool sound = row.is_object() && row.contains("cells") && row.contains("plotted") &&
                     pairs(row["cells"], true) && pairs(row["plotted"], false);
  return sound ? row : nlohmann::json();
}

StepTable open_table(const RunFolder& folder, std::int64_t end) {
  const std::filesystem::path path = folder.file("steps.csv");
  if (!folder.start()) return StepTable::create(path);
  return StepTable::resume(path, folder.start()->state.step - !replaced_row(folder, end).is_null());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Recorder::Recorder(RunFolder& folder, const Simulation& simulation, std::optional<std::int64_t> end)
    : folder_(folder),
      simulation_(simulation),
      end_(end.value_or(simulation.total_steps())),
      table_(open_table(folder, end_)),
      obstacles_(simulation.model().contact.obstacles) {
  const std::filesystem::path recording = folder.file("replay.lmr");
  if (folder.start()) {
    const State& state = folder.start()->state;
    const nlohmann::json& notes = *folder.start()->notes;
    if (notes.is_object() && notes.contains("wall") && notes["wall"].is_number())
      earlier_wall_ = notes["wall"];
    if (notes.is_object() && notes.contains("fallbacks") && notes["fallbacks"].is_object())
      for (const auto& [name, count] : notes["fallbacks"].items())
        if (count.is_number_integer()) fallbacks_[name] = count;
    if (notes.is_object() && notes.contains("follows") && notes["follows"].is_string())
      follows_ = notes["follows"];
    const std::string rows = folder.file("steps.csv").string();
    if (table_.damaged() > 0)
      notices_.push_back(fmt::format("{}: {} damaged row{} removed", rows, table_.damaged(),
                                     table_.damaged() == 1 ? " was" : "s were"));
    const nlohmann::json replaced = replaced_row(folder, end_);
    if (end_ <= state.step)
      *on_the_way_ = notes.is_object() ? notes.value(kOnTheWay, nlohmann::json()) : nullptr;
    const std::int64_t last = state.step - !replaced.is_null();  // whose row and frame are kept
    const auto complete = static_cast<std::size_t>(last) + 1;
    if (table_.kept().size() < complete)
      notices_.push_back(
          fmt::format("{}: {} rows before step {} are missing", rows, complete - table_.kept().size(), last));
    for (const auto& [step, t] : table_.kept()) {
      const std::string name = "frames/" + frame_name(step, ".vtu");
      std::error_code ec;
      if (std::filesystem::exists(folder.file(name), ec)) vtu_frames_.emplace_back(t, name);
    }
    try {
      const Index topologies = notes.value("topologies", Index{1});
      replay_ = ReplayWriter::resume(recording, last, topologies);
      if (replay_->topologies() >= std::max(topologies, Index{1}))
        shown_epoch_ = notes.value("shown_epoch", std::int64_t{-1});
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kIo && std::filesystem::exists(recording)) throw;
      notices_.push_back(fmt::format("{}; it begins again at step {}", e.what(), state.step));
    }
    if (!replaced.is_null()) {
      folder.clear_frame(state.step);
      Row row;
      for (const auto& cell : replaced["cells"]) row.cells.emplace_back(cell[0], cell[1]);
      row.plotted.step = state.step;
      row.plotted.t = state.t;
      for (const auto& value : replaced["plotted"])  // JSON has no NaN
        row.plotted.values.emplace_back(
            value[0], value[1].is_null() ? std::numeric_limits<double>::quiet_NaN() : value[1].get<double>());
      table_.add(row.cells);
      if (replay_) replay_->add_row(row.plotted);
    }
  }
  if (!replay_) replay_ = ReplayWriter::create(recording, replay_header(simulation, obstacles_));
}

double Recorder::wall() const { return earlier_wall_ + seconds_since(begin_); }

void Recorder::begin() {
  folder_.manifest["status"] = "running";
  if (folder_.start()) {
    write_collection();
    folder_.write_manifest();
    return;
  }
  StepInput input;
  script_input(simulation_.model(), simulation_.state(), simulation_.scene().h, input);
  MeasuredFields fields(simulation_, input);
  diagnostics_ = simulation_.measured(input.activation);
  table_.add(row_of(true, nullptr, 0, fields).cells);
  write_frame(input, fields);
  checkpoint();
  write_collection();
}

void Recorder::record(const StepReport& report, double seconds) {
  const auto start = Clock::now();
  const Scene& scene = simulation_.scene();
  const std::int64_t step = simulation_.steps_done();
  timings_.add("step", seconds);
  for (const auto& [name, count] : report.fallbacks) fallbacks_[name] += count;
  if (std::string follows = followed_text(simulation_.model(), report); !follows.empty())
    follows_ = std::move(follows);
  for (const auto& [phase, time] : report.phases) timings_.add("step/" + phase, time);
  MeasuredFields fields(simulation_, simulation_.input());
  const bool measured = measures(), last = step == end_;
  bool frame = step % scene.output.every == 0;
  if (measured || last) diagnostics_ = simulation_.measured(simulation_.input().activation);
  const Row row = row_of(measured || last, &report, seconds, fields);
  *on_the_way_ = nullptr;
  if (last && !(measured && frame)) {
    const Row usual = measured ? row : row_of(false, &report, seconds, fields);
    *on_the_way_ = {{"cells", nlohmann::json::array()}, {"plotted", nlohmann::json::array()}};
    for (const auto& [name, text] : usual.cells) (*on_the_way_)["cells"].push_back({name, text});
    for (const auto& [name, value] : usual.plotted.values) (*on_the_way_)["plotted"].push_back({name, value});
    frame = true;
  }
  write_row(row);
  for (const auto& [name, text] : row.cells)
    if (name == "fallbacks" && !text.empty()) folder_.log(fmt::format("step {}: fallbacks {}", step, text));
  if (frame) write_frame(simulation_.input(), fields);
  timings_.add("record", seconds_since(start));
  if (step % scene.output.checkpoint_every == 0) checkpoint();
  if (frame && seconds_since(last_collection_) > 2) write_collection();
}

bool Recorder::measures() const {
  const Scene& scene = simulation_.scene();
  // A scene that a program put together has no resolved text.
  Index every =
      scene.resolved->contains("output") ? scene.resolved["output"].value("measure_every", Index{0}) : 0;
  if (every == 0) every = simulation_.reduced() ? scene.output.every : 1;
  return simulation_.steps_done() % every == 0;
}

void Recorder::add_measured(bool measured, MeasuredFields& fields, StepTable::Cells& cells, ReplayRow& row) {
  const Model& model = simulation_.model();
  const std::vector<std::string>& wanted = simulation_.scene().output.fields;
  const auto asked = [&](const char* name) {
    return !model.bodies.empty() && std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  const bool reactions = asked("reaction"), contacts = asked("contact_force");
  if (!reactions && !contacts && model.probes.empty()) return;
  if (columns_model_ != simulation_.model_number()) {
    columns_model_ = simulation_.model_number();
    columns_.clear();
    if (reactions)
      for (std::string& name : reaction_columns(model)) columns_.push_back({name, name});
    if (contacts)
      for (std::string& name : contact_columns(model)) columns_.push_back({name, name});
    for (ProbeColumn& column : probe_columns(model)) columns_.push_back(std::move(column));
  }
  std::vector<double> values;
  if (measured) {
    const auto add = [&](const std::vector<double>& more) {
      values.insert(values.end(), more.begin(), more.end());
    };
    if (reactions) add(reaction_values(model, fields.forces()));
    if (contacts) add(contact_values(fields.forces()));
    add(probe_values(model, fields));
  }
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    const bool known = measured && std::isfinite(values[k]);
    cells.emplace_back(columns_[k].csv, known ? fmt::format("{}", values[k]) : "");
    if (known) row.values.emplace_back(columns_[k].plot, values[k]);
  }
}

Recorder::Row Recorder::row_of(bool measured, const StepReport* report, double seconds,
                               MeasuredFields& fields) {
  const Diagnostics& d = diagnostics_;
  const StepReport none;
  const StepReport& r = report ? *report : none;
  const auto number = [](auto v) { return fmt::format("{}", v); };
  // What is measured: by us, or between measurements by the method where it does.
  const auto energy = [&](const char* name, double value) -> std::string {
    if (measured) return number(value);
    const auto known = r.energy.find(name);
    return known == r.energy.end() ? "" : number(known->second);
  };
  const auto measured_number = [&](double value) { return measured ? number(value) : std::string(); };
  std::string fallbacks;
  for (const auto& [name, count] : r.fallbacks)
    fallbacks += fmt::format("{}{}:{}", fallbacks.empty() ? "" : ";", name, count);
  const double step_ms = 1e3 * seconds;

  Row out;
  StepTable::Cells& cells = out.cells;
  cells = {{"step", number(simulation_.steps_done())},
           {"t", number(simulation_.time())},
           {"dofs", number(r.dofs)},
           {"contacts", number(r.contacts)},
           {"iterations", number(report ? r.iterations : 0)},
           {"residual", number(r.residual)},
           {"inverted", number(r.inverted)},
           {"analyses", number(r.symbolic_analyses)},
           {"E_kin", energy("kinetic", d.kinetic)},
           {"E_el", energy("elastic", d.elastic)},
           {"E_grav", energy("gravity", d.gravity)}};
  const bool touches = !simulation_.model().contact.empty();
  if (touches) cells.emplace_back("E_contact", energy("contact", d.contact));
  const auto vector = [&](const char* name, const Vec3& v) {
    for (int k = 0; k < 3; ++k)
      cells.emplace_back(fmt::format("{}{}", name, "xyz"[k]), measured_number(v[k]));
  };
  vector("p", d.momentum);
  vector("L", d.angular_momentum);
  vector("c", d.center_of_mass);
  cells.emplace_back("max_displacement", measured_number(d.max_displacement));
  cells.emplace_back("max_speed", measured_number(d.max_speed));
  cells.emplace_back("epoch", number(simulation_.epoch()));
  cells.emplace_back("fallbacks", fallbacks);
  cells.emplace_back("hash", measured ? to_hex(hash_state(simulation_.state())) : "");
  cells.emplace_back("step_ms", number(step_ms));
  for (const auto& [name, value] : r.extra) cells.emplace_back(name, number(value));
  ReplayRow& row = out.plotted;
  add_measured(measured, fields, cells, row);
  for (const auto& [phase, time] : r.phases) cells.emplace_back(phase + "_ms", number(1e3 * time));

  row.step = simulation_.steps_done();
  row.t = simulation_.time();
  if (measured)
    row.values.insert(row.values.end(), {{"energy/kinetic", d.kinetic},
                                         {"energy/elastic", d.elastic},
                                         {"energy/gravity", d.gravity},
                                         {"energy/total", d.total()}});
  else
    for (const auto& [name, value] : r.energy) row.values.emplace_back("energy/" + name, value);
  row.values.insert(
      row.values.end(),
      {{"dofs", r.dofs}, {"contacts", r.contacts}, {"iterations", r.iterations}, {"residual", r.residual}});
  if (touches && measured) row.values.emplace_back("energy/contact", d.contact);
  for (const auto& [name, value] : r.extra) row.values.emplace_back(name, value);
  for (const auto& [phase, time] : r.phases) row.values.emplace_back("phase/" + phase, 1e3 * time);
  int count = 0;
  for (const auto& fallback : r.fallbacks) count += fallback.second;
  row.values.emplace_back("fallbacks", count);
  return out;
}

void Recorder::write_row(const Row& row) {
  table_.add(row.cells);
  replay_->add_row(row.plotted);
}

void Recorder::write_frame(const StepInput& input, MeasuredFields& measured) {
  const State& state = simulation_.state();
  const Scene& scene = simulation_.scene();
  if (replay_->topologies() == 0 || shown_epoch_ != simulation_.model_number()) {
    replay_->add_topology(replay_topology(simulation_));
    shown_epoch_ = simulation_.model_number();
  }
  if (!writer_ || writer_epoch_ != simulation_.model_number()) {
    writer_ = std::make_unique<FrameWriter>(simulation_);
    writer_epoch_ = simulation_.model_number();
  }
  const FrameFields fields = frame_fields(simulation_, input, measured);
  if (scene.output.vtu) {
    const std::string name = "frames/" + frame_name(state.step, ".vtu");
    writer_->write_vtu_frame(folder_.file(name), fields);
    vtu_frames_.emplace_back(state.t, name);
  }
  if (scene.output.surface) writer_->write_surfaces(folder_.file("surface"));
  replay_->add_frame(replay_frame(simulation_, fields, obstacles_));
  // A method knows its shapes when it has made a step with the model.
  if (state.step == 0 || shapes_epoch_ == simulation_.model_number()) return;
  shapes_epoch_ = simulation_.model_number();
  const std::vector<ReplayShape> shapes = replay_shapes(simulation_);
  if (!shapes.empty()) replay_->add_shapes(state.step, shapes);
}

void Recorder::write_collection() {
  if (simulation_.scene().output.vtu) write_pvd(folder_.file("run.pvd").string(), vtu_frames_);
  last_collection_ = Clock::now();
}

void Recorder::checkpoint() {
  const auto start = Clock::now();
  const State& state = simulation_.state();
  // What the checkpoint counts as done is on the disk before the checkpoint is.
  table_.sync();
  replay_->flush();
  write_collection();
  Checkpoint c;
  c.state = state;
  c.method = simulation_.scene().method;
  c.scene_hash = folder_.scene_hash();
  *c.notes = {{"wall", wall()},
              {"limber", LIMBER_VERSION},
              {"topologies", replay_->topologies()},
              {"shown_epoch", shown_epoch_}};
  if (!fallbacks_.empty()) c.notes["fallbacks"] = fallbacks_;
  if (!follows_.empty()) c.notes["follows"] = follows_;
  if (!on_the_way_->is_null()) c.notes[kOnTheWay] = *on_the_way_;
  write_checkpoint(folder_.file("checkpoints") / checkpoint_name(state.step), c);
  const std::vector<CheckpointFile> all = list_checkpoints(folder_.file("checkpoints"));
  std::error_code ec;
  for (std::size_t i = kCheckpointsKept; i < all.size(); ++i) std::filesystem::remove(all[i].path, ec);
  folder_.manifest["steps"] = state.step;
  folder_.manifest["t"] = state.t;
  folder_.manifest["frames"] = frames();
  folder_.manifest["wall_s"] = wall();
  folder_.write_manifest();
  timings_.add("checkpoint", seconds_since(start));
}

void Recorder::finish(const std::string& status, const std::string& why,
                      const std::function<void(double)>& progress) {
  const State& state = simulation_.state();
  if (status != "failed") checkpoint();
  const auto start = Clock::now();
  write_collection();
  nlohmann::json summary{{"status", status}, {"wall_s", wall()}, {"steps", state.step}};
  for (const Timings::Phase& phase : timings_.phases())
    if (phase.name == "step") summary["ms_per_step"] = 1e3 * phase.sum / static_cast<double>(phase.count);
  if (!follows_.empty()) summary["follows"] = follows_;
  if (status == "finished")
    replay_->finish(summary);
  else
    replay_->flush();
  try {
    view::PageOptions options;
    options.progress = progress;
    const view::PageReport page =
        view::write_page(folder_.file("replay.lmr"), folder_.file("index.html"), options);
    for (const std::string& notice : page.notices) notices_.push_back(notice);
  } catch (const Error& e) {
    if (status != "failed") throw;
    notices_.push_back(e.what());
  }
  timings_.add("page", seconds_since(start));
  folder_.manifest["status"] = status;
  if (!why.empty()) folder_.manifest["why"] = why;
  folder_.manifest["steps"] = state.step;
  folder_.manifest["t"] = state.t;
  folder_.manifest["frames"] = frames();
  folder_.manifest["wall_s"] = wall();
  folder_.manifest["fallbacks"] = Json::object();
  for (const auto& [name, count] : fallbacks_) folder_.manifest["fallbacks"][name] = count;
  if (!follows_.empty()) folder_.manifest["follows"] = follows_;
  folder_.manifest["timings"] = timings_.json();
  folder_.write_manifest();
  folder_.log(fmt::format("{} at step {}, t = {:.6g} s", status, state.step, state.t));
  for (const std::string& notice : notices_) folder_.log(notice);
}

}  // namespace limber
