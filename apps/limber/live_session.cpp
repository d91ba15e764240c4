#include "live_session.hpp"

#include "live_body.hpp"

#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/scene/hold_motion.hpp>
#include <limber/scene/load.hpp>
#include <limber/scene/spec.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/simulation.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace limber {
namespace {

using LiveClock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::size_t kMostRequests = 64, kMostGrips = 8, kMostDropped = 30;
constexpr double kHandSpeed = 20;           // of the scene's size, per simulated second: no hand is faster
constexpr double kLeastBetween = 1.0 / 60;  // frames [s]
constexpr double kMostBehind = 0.1;         // real time, before it is given up for slow motion [s]
constexpr double kLooked = 3;               // seconds for which somebody who asked counts as looking

double seconds_between(LiveClock::time_point a, LiveClock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

[[noreturn]] void refuse_request(const std::string& why) { throw Error(ErrorKind::kInput, why); }

const json& member_in(const json& request, const char* key) {
  if (!request.contains(key)) refuse_request(fmt::format("\"{}\" is missing", key));
  return request[key];
}

double number_in(const json& request, const char* key) {
  const json& value = member_in(request, key);
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    refuse_request(fmt::format("\"{}\": expected a number, found {}", key, value.dump().substr(0, 60)));
  return value.get<double>();
}

std::int64_t id_in(const json& request) {
  const double id = number_in(request, "id");
  if (id != std::floor(id) || std::abs(id) > 1e15)
    refuse_request(fmt::format("\"id\": expected a whole number, found {}", request["id"].dump()));
  return static_cast<std::int64_t>(id);
}

Vec3 vector_in(const json& request, const char* key) {
  const json& value = member_in(request, key);
  const bool fits =
      value.is_array() && value.size() == 3 && std::all_of(value.begin(), value.end(), [](const json& v) {
        return v.is_number() && std::abs(v.get<double>()) < 1e9;
      });
  if (!fits)
    refuse_request(fmt::format("\"{}\": expected three numbers, found {}", key, value.dump().substr(0, 60)));
  return Vec3(value[0], value[1], value[2]);
}

std::string text_in(const json& request, const char* key) {
  const json& value = member_in(request, key);
  if (!value.is_string()) refuse_request(fmt::format("\"{}\": expected a text", key));
  return value.get<std::string>();
}

json vector_json(const Vec3& v) { return {v.x(), v.y(), v.z()}; }

// What pages offer to change, with its value now.
json live_setting(const std::string& path, const std::string& label, const Entry& entry, const json& value) {
  json out{{"path", path}, {"label", label}, {"value", value}, {"text", entry.text}};
  if (!entry.unit.empty()) out["unit"] = entry.unit;
  if (entry.type == Type::kEnum) out["values"] = split_words(entry.values);
  out["whole"] = entry.type == Type::kInteger;
  if (std::isfinite(entry.range.min)) out["min"] = entry.range.min;
  if (std::isfinite(entry.range.max)) out["max"] = entry.range.max;
  out["open"] = entry.range.min_open;
  return out;
}

json settings_of(const Scene& scene) {
  json out = json::array();
  const json now = json(*scene.resolved);
  const std::string method_keys = fmt::format("/method[{}]/", scene.method);
  for (const Entry& entry : spec_entries()) {
    const std::string path(entry.path);
    const bool plain = entry.type == Type::kNumber || entry.type == Type::kInteger ||
                       entry.type == Type::kEnum || entry.type == Type::kBoolean;
    if (path == "/gravity" || path == "/damping/mass" || path == "/damping/stiffness")
      out.push_back(live_setting(path, path.substr(1), entry, now.at(json::json_pointer(path))));
    if (path.starts_with(method_keys) && plain && path.find('/', method_keys.size()) == std::string::npos) {
      const std::string key = path.substr(method_keys.size());
      if (now["method"].contains(key))
        out.push_back(live_setting("/method/" + key, key, entry, now["method"][key]));
    }
    for (const char* key : {"young", "poisson", "density"})
      if (path == fmt::format("/bodies/*/material/{}", key))
        for (std::size_t b = 0; b < std::min<std::size_t>(8, now["bodies"].size()); ++b)
          if (const json& value = now["bodies"][b]["material"][key]; value.is_number())
            out.push_back(
                live_setting(fmt::format("/bodies/{}/material/{}", b, key),
                             now["bodies"].size() > 1
                                 ? fmt::format("{} of {}", key, now["bodies"][b].value("name", std::string()))
                                 : std::string(key),
                             entry, value));
  }
  return out;
}

}  // namespace

class LiveSession::Worker {
 public:
  Worker(std::shared_ptr<const Scene> scene, Preparation preparation, LiveOptions options)
      : scene_(std::move(scene)), preparation_(std::move(preparation)), options_(std::move(options)) {
    begin();
    playing_ = options_.playing;
    thread_ = std::thread([this] { run(); });
  }

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  std::string act(const std::string& text_of_request) {
    const json request = json::parse(text_of_request, nullptr, false);
    if (!request.is_object()) refuse_request("expected a JSON object");
    const std::string what = text_in(request, "do");
    if (what == "move") return note_move(request);
    std::future<std::string> answer;
    {
      const std::lock_guard lock(mutex_);
      if (requests_.size() >= kMostRequests)
        throw Error(ErrorKind::kUsage, "too many requests wait; the simulation is busy");
      // Its hand may move before the simulation comes to it.
      if (what == "grab") wishes_.try_emplace(id_in(request));
      requests_.push_back({request, {}});
      answer = requests_.back().answer.get_future();
    }
    wake_.notify_all();
    return answer.get();
  }

  std::shared_ptr<const std::string> shape() const {
    const std::lock_guard lock(mutex_);
    return shape_;
  }

  std::shared_ptr<const Frame> frame_after(std::uint64_t after, double seconds) {
    std::unique_lock lock(mutex_);
    asked_ = LiveClock::now();
    const auto newer = [&] { return stop_ || (frame_ && frame_->number != after); };
    if (!newer()) {
      wanted_ = true;
      wake_.notify_all();
    }
    published_.wait_for(lock, std::chrono::duration<double>(seconds), newer);
    return frame_ && frame_->number != after ? frame_ : nullptr;
  }

 private:
  struct Request {
    json what;
    std::promise<std::string> answer;
  };
  // A hand that pulls.
  struct LiveGrip {
    std::size_t force = 0;       // of the scene
    std::vector<Index> nodes;    // of the model's first topology
    Vec3 start = Vec3::Zero();   // of the spring's far end [m]
    Vec3 target = Vec3::Zero();  // its far end now
    double stiffness = 0;        // [N/m]
    double pulled = -1;          // until when its spring has keys [s]
  };
  struct Wish {
    Vec3 by = Vec3::Zero();
    double mark = 0;
  };

  void begin() {
    simulation_.emplace(scene_, preparation_);
    body_.emplace(*simulation_);
    grips_.clear();
    forces_ = events_ = json::array();
    failure_.clear();
    dropped_ = 0;
    mark_ = 0;
    pace();
    auto shape = std::make_shared<const std::string>(body_->shape(*simulation_, ++model_));
    const std::lock_guard lock(mutex_);
    shape_ = std::move(shape);
    wishes_.clear();
  }

  // Real time counts from now on.
  void pace() {
    since_ = LiveClock::now();
    t_since_ = simulation_->time();
  }

  double ahead() const {  // [s] of real time
    return (simulation_->time() - t_since_) / options_.speed - seconds_between(since_, LiveClock::now());
  }

  void run() {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        const auto due = [&] { return stop_ || !requests_.empty() || wanted_; };
        if (!playing_ && steps_wanted_ == 0)
          wake_.wait(lock, due);
        else if (const double wait = steps_wanted_ > 0 ? 0 : ahead(); wait > 0)
          wake_.wait_for(lock, std::chrono::duration<double>(wait), due);
        if (stop_) break;
      }
      answer_requests();
      if ((playing_ && ahead() <= 0) || steps_wanted_ > 0) take_step();
      publish();
    }
    const std::lock_guard lock(mutex_);
    for (Request& r : requests_)
      r.answer.set_exception(std::make_exception_ptr(Error(ErrorKind::kUsage, "the simulation has ended")));
    requests_.clear();
    published_.notify_all();
  }

  void answer_requests() {
    for (;;) {
      std::optional<Request> next;
      {
        const std::lock_guard lock(mutex_);
        if (requests_.empty()) return;
        next.emplace(std::move(requests_.front()));
        requests_.pop_front();
      }
      changed_ = true;
      try {
        next->answer.set_value(answer(next->what).dump(-1, ' ', false, json::error_handler_t::replace));
      } catch (...) {
        next->answer.set_exception(std::current_exception());
      }
    }
  }

  json answer(const json& request) {
    const std::string what = request["do"];
    if (what == "play" || what == "step") {
      if (!failure_.empty()) refuse_request("the simulation has failed; reset it");
      playing_ = what == "play";
      steps_wanted_ += what == "step";
      pace();
    } else if (what == "pause") {
      playing_ = false;
    } else if (what == "reset") {
      begin();
      steps_wanted_ = 0;
    } else if (what == "speed") {
      const double speed = number_in(request, "value");
      if (!(speed >= 0.001 && speed <= 100)) refuse_request("\"value\": expected a number from 0.001 to 100");
      options_.speed = speed;
      pace();
    } else if (what == "describe") {
      return describe();
    } else if (what == "grab") {
      try {
        return grab(request);
      } catch (...) {
        forget_moves(id_in(request));
        throw;
      }
    } else if (what == "release") {
      release(request);
    } else if (what == "set") {
      set(text_in(request, "path"), member_in(request, "value"));
    } else if (what == "drop") {
      return drop(request);
    } else if (what == "save") {
      return save(request);
    } else {
      refuse_request(fmt::format("\"do\": \"{}\" is unknown", what.substr(0, 40)));
    }
    return {{"ok", true}};
  }

  json describe() const {
    const Scene& scene = simulation_->scene();
    json methods = json::array();
    for (const Method* m : limber::methods()) methods.push_back(m->spec.name);
    return {{"name", scene.name},
            {"method", scene.method},
            {"methods", methods},
            {"settings", settings_of(scene)},
            {"h", scene.h},
            {"speed", options_.speed},
            {"nodes", simulation_->model().nodes()},
            {"playing", playing_}};
  }

  json grab(const json& request) {
    if (grips_.size() >= kMostGrips) refuse_request(fmt::format("at most {} hands", kMostGrips));
    const std::int64_t id = id_in(request);
    if (grips_.contains(id)) refuse_request(fmt::format("hand {} holds already", id));
    const double strength = request.contains("strength") ? number_in(request, "strength") : 1.0;
    if (!(strength > 0 && strength <= 1))
      refuse_request("\"strength\": expected a number above 0, at most 1");
    const Model& model = simulation_->model();
    // What is trained for the loads of a scene would be trained otherwise for one that has hands in it.
    if (simulation_->method().prepared_with_loads && !model.bodies.empty())
      refuse_request(fmt::format("\"{}\" is trained for the loads of its scene: hands cannot pull at it",
                                 simulation_->scene().method));
    const double node = number_in(request, "node");
    if (!(node >= 0 && node < model.nodes() && node == std::floor(node)))
      refuse_request(fmt::format("\"node\": {} is none; hands pull at soft bodies, which have {} nodes here",
                                 node, model.nodes()));
    const LivePatch patch = patch_around(model, static_cast<Index>(node));
    LiveGrip grip;
    grip.nodes = patch.nodes;
    grip.start = grip.target = patch_center(model, simulation_->state().x, patch.nodes);
    grip.stiffness = strength * patch.stiffness;
    ForceSpec force;
    force.name = fmt::format("hand {}", id);
    force.body = patch.body;
    force.nodes.kind = "ids";
    force.nodes.ids = patch.ids;
    force.from = simulation_->time();
    force.spring.emplace();
    force.spring->stiffness = grip.stiffness;
    force.spring->damping = strength * patch.damping;
    force.spring->keys = {{simulation_->time(), grip.start}};
    forces_.push_back({{"name", force.name},
                       {"body", force.body},
                       {"nodes", {{"ids", patch.ids}}},
                       {"from", force.from},
                       {"spring", {{"stiffness", grip.stiffness}, {"damping", force.spring->damping}}}});
    grip.force = simulation_->add_force(std::move(force));
    if (grip.force != first_force() + forces_.size() - 1) refuse_request("a force has come from elsewhere");
    grips_[id] = grip;
    const std::lock_guard lock(mutex_);
    wishes_.try_emplace(id);
    return {{"ok", true}, {"stiffness", grip.stiffness}, {"nodes", patch.nodes.size()}};
  }

  std::size_t first_force() const { return scene_->forces.size(); }

  void release(const json& request) {
    const std::int64_t id = id_in(request);
    const auto found = grips_.find(id);
    if (found == grips_.end()) refuse_request(fmt::format("hand {} holds nothing", id));
    simulation_->release(found->second.force);
    grips_.erase(found);
    forget_moves(id);
  }

  void forget_moves(std::int64_t id) {
    if (grips_.contains(id)) return;
    const std::lock_guard lock(mutex_);
    wishes_.erase(id);
  }

  void set(const std::string& path, const json& value) {
    EventSpec event;
    event.type = "set";
    event.time = simulation_->time();
    event.path = path;
    event.value = value.dump();
    simulation_->add_event(event);
    const json entry{{"type", "set"}, {"time", event.time}, {"path", path}, {"value", value}};
    events_.push_back(entry);
  }

  // A body that comes in, and contact between bodies where there was none.
  json drop(const json& request) {
    const Scene& scene = simulation_->scene();
    const double size = request.contains("size") ? number_in(request, "size") : 0.2;
    if (!(size >= 0.02 && size <= 2)) refuse_request("\"size\": expected a number from 0.02 to 2");
    std::optional<Vec3> above;
    if (request.contains("above")) above = vector_in(request, "above");
    if (!simulation_->method().spec.can.body_contact)
      refuse_request(fmt::format(
          "\"{}\" does not let bodies touch each other: what is dropped would fall through; take conjac, "
          "implicit or rigidify",
          scene.method));
    if (dropped_ == kMostDropped) refuse_request(fmt::format("at most {} things are dropped", kMostDropped));
    const json body = dropped_body(*simulation_, text_in(request, "shape"), size, above ? &*above : nullptr,
                                   fmt::format("dropped-{}", dropped_ + 1));
    if (!scene.method_options->value("body_contact", false)) set("/method/body_contact", true);
    set("/bodies/-", body);
    ++dropped_;
    return {{"ok", true}, {"body", body}};
  }

  // All that was done, as a scene.
  json save(const json& request) {
    if (simulation_->steps_done() == 0) refuse_request("nothing has happened yet");
    const std::filesystem::path folder(options_.folder);
    // A file that somebody else has written stays.
    const auto taken = [&](const std::string& name) {
      std::error_code error;
      return !saved_.contains(name) && exists(symlink_status(folder / name, error));
    };
    std::string name;
    if (request.contains("name")) {
      name = text_in(request, "name");
      if (!name.ends_with(".json") || !is_plain_name(name.substr(0, name.size() - 5)))
        refuse_request(
            "\"name\": expected letters, digits, '.', '_' and '-' (100 at most, not '.' first), then .json");
      if (taken(name))
        refuse_request(
            fmt::format("{} is there already, and not from here: choose another name, or move it away",
                        (folder / name).string()));
    } else {
      const std::string stem = scene_->name.substr(0, 80) + "-live";
      name = stem + ".json";
      for (int k = 2; taken(name); ++k) name = fmt::format("{}-{}.json", stem, k);
    }
    Json out = rebase_files(*scene_, options_.folder);
    out["name"] = name.substr(0, name.size() - 5);
    out["time"]["end"] = simulation_->time();
    for (std::size_t k = 0; k < forces_.size(); ++k) {
      const ForceSpec& spec = simulation_->scene().forces[first_force() + k];
      Json force = forces_[k];
      if (spec.until && *spec.until <= spec.from) continue;  // let go before the next step: it never pulled
      if (spec.until) force["until"] = *spec.until;
      for (const auto& [t, p] : spec.spring->keys)
        force["spring"]["keys"].push_back({{"t", t}, {"position", {p.x(), p.y(), p.z()}}});
      out["forces"].push_back(std::move(force));
    }
    for (const json& e : events_) out["events"].push_back(Json(e));
    const std::filesystem::path path = folder / name;
    write_file_atomic(path.string(), out.dump(1) + "\n");
    saved_.insert(name);
    return {{"ok", true},
            {"file", path.string()},
            {"steps", simulation_->steps_done()},
            {"hash", to_hex(hash_state(simulation_->state()))}};
  }

  std::string note_move(const json& request) {
    const std::int64_t id = id_in(request);
    const Wish wish{vector_in(request, "by"), request.contains("mark") ? number_in(request, "mark") : 0};
    const std::lock_guard lock(mutex_);
    // One that comes after its hand has let go is late, and nothing.
    if (const auto found = wishes_.find(id); found != wishes_.end()) found->second = wish;
    return "{\"ok\": true}";
  }

  // The springs' far ends at the end of the next step. One that has failed is tried again with the same.
  void move_hands() {
    const double end = simulation_->time() + simulation_->scene().h;  // as the script computes it
    const std::lock_guard lock(mutex_);
    for (auto& [id, grip] : grips_) {
      if (grip.pulled >= end) continue;
      if (const auto wish = wishes_.find(id); wish != wishes_.end()) {
        const Vec3 way = grip.start + wish->second.by - grip.target;
        const double most = kHandSpeed * simulation_->model().size * simulation_->scene().h;
        grip.target += std::min(1.0, most / std::max(way.norm(), 1e-300)) * way;
        mark_ = std::max(mark_, wish->second.mark);
      }
      simulation_->pull(grip.force, end, grip.target);
      grip.pulled = end;
    }
  }

  // Takes back the newest of the events that the next step begins with; false when there is none.
  bool withdraw_event() {
    const std::size_t events = simulation_->scene().events.size();
    if (events_.empty() || simulation_->withdraw_events(std::max(scene_->events.size(), events - 1)) == 0)
      return false;
    events_.erase(events_.size() - 1);
    return true;
  }

  // What the scene allows but the method does not is taken back, and the run goes on without it.
  void step_without_refused() {
    std::string refused;
    for (bool again = true; again;) {
      again = false;
      try {
        simulation_->step();
      } catch (const StepFailure& e) {
        return fail(e.what());
      } catch (const std::exception& e) {
        refused = e.what();
        simulation_->take_notices();  // of what has been taken back
        again = withdraw_event();
        if (!again) return fail(refused);
      }
    }
    for (const std::string& notice : simulation_->take_notices()) said_ = notice;
    if (!refused.empty()) said_ = refused;
  }

  void take_step() {
    if (steps_wanted_ > 0) --steps_wanted_;
    move_hands();
    const std::int64_t model = simulation_->model_number();
    const auto start = LiveClock::now();
    step_without_refused();
    step_seconds_ += 0.1 * (seconds_between(start, LiveClock::now()) - step_seconds_);
    if (simulation_->model_number() != model) {
      body_.emplace(*simulation_);
      auto shape = std::make_shared<const std::string>(body_->shape(*simulation_, ++model_));
      const std::lock_guard lock(mutex_);
      shape_ = std::move(shape);
    }
    changed_ = true;
    if (-ahead() > kMostBehind) pace();
    rate();
  }

  void fail(const std::string& why) {
    failure_ = why;
    playing_ = false;
    steps_wanted_ = 0;
  }

  // Simulated seconds per second, over the last half second or more.
  void rate() {
    const double passed = seconds_between(rate_since_, LiveClock::now());
    if (passed < 0.5) return;
    rate_ = passed < 2 ? (simulation_->time() - rate_t_) / passed : rate_;
    rate_since_ = LiveClock::now();
    rate_t_ = simulation_->time();
  }

  // Makes a frame of what is now, if it is news and somebody looks.
  void publish() {
    const auto now = LiveClock::now();
    {
      const std::lock_guard lock(mutex_);
      const bool first = !frame_;
      if (!changed_ && !first) {
        wanted_ = false;
        return;
      }
      if (!first && seconds_between(asked_, now) > kLooked) return;
      if (!first && playing_ && seconds_between(shown_, now) < kLeastBetween) {
        wanted_ = false;  // the next step shows itself
        return;
      }
    }
    changed_ = false;
    json head{{"number", number_ + 1},
              {"model", model_},
              {"t", simulation_->time()},
              {"step", simulation_->steps_done()},
              {"playing", playing_},
              {"speed", options_.speed},
              {"rate", playing_ ? rate_ : 0},
              {"step_ms", 1e3 * step_seconds_},
              {"mark", mark_},
              {"failure", failure_},
              {"said", said_}};
    head["grips"] = json::array();
    for (const auto& [id, grip] : grips_) {
      const Vec3 from = body_->center(*simulation_, grip.nodes);
      head["grips"].push_back({{"id", id},
                               {"from", vector_json(from)},
                               {"to", vector_json(grip.target)},
                               {"force", grip.stiffness * (grip.target - from).norm()},
                               {"stiffness", grip.stiffness}});
    }
    auto frame = std::make_shared<Frame>();
    frame->number = ++number_;
    frame->bytes = body_->frame(*simulation_, std::move(head));
    {
      const std::lock_guard lock(mutex_);
      frame_ = std::move(frame);
      shown_ = now;
      wanted_ = false;
    }
    published_.notify_all();
  }

  const std::shared_ptr<const Scene> scene_;
  const Preparation preparation_;
  LiveOptions options_;

  // Of the thread.
  std::optional<Simulation> simulation_;
  std::optional<LiveBody> body_;
  std::map<std::int64_t, LiveGrip> grips_;
  json forces_ = json::array(), events_ = json::array();  // what was done, as the scene has it
  std::set<std::string> saved_;                           // files
  std::string failure_, said_;
  bool playing_ = false, changed_ = true;
  int steps_wanted_ = 0;
  std::size_t dropped_ = 0;               // bodies
  std::uint64_t number_ = 0, model_ = 0;  // of the last frame and shape
  double mark_ = 0;                       // of the newest movement that has had an effect
  double step_seconds_ = 0, rate_ = 0, rate_t_ = 0, t_since_ = 0;
  LiveClock::time_point since_, rate_since_;

  // Shared.
  mutable std::mutex mutex_;
  std::condition_variable wake_, published_;
  std::deque<Request> requests_;
  std::map<std::int64_t, Wish> wishes_;  // of hands that hold or are about to
  std::shared_ptr<const std::string> shape_;
  std::shared_ptr<const Frame> frame_;
  LiveClock::time_point asked_ = LiveClock::now(), shown_;
  bool stop_ = false, wanted_ = false;
  std::thread thread_;
};

LiveSession::LiveSession(std::shared_ptr<const Scene> scene, Preparation preparation, LiveOptions options)
    : worker_(std::make_unique<Worker>(std::move(scene), std::move(preparation), std::move(options))) {}
LiveSession::~LiveSession() = default;
std::string LiveSession::act(const std::string& request) { return worker_->act(request); }
std::shared_ptr<const std::string> LiveSession::shape() const { return worker_->shape(); }
std::shared_ptr<const LiveSession::Frame> LiveSession::frame_after(std::uint64_t after, double seconds) {
  return worker_->frame_after(after, seconds);
}

}  // namespace limber
