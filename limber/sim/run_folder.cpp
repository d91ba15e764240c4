#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/run_folder.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace limber {
namespace {

namespace fs = std::filesystem;

// Everything that a run writes, and nothing else is ever removed.
constexpr const char* kFiles[] = {"run.json",    "scene.resolved.json", "log.txt",    "steps.csv",
                                  "run.pvd",     "replay.lmr",          "index.html", "failure.lmc",
                                  "failure.json"};
constexpr std::string_view kCheckpoint = ".lmc";
constexpr std::pair<const char*, std::string_view> kFolders[] = {
    {"frames", ".vtu"}, {"surface", ".ply"}, {"checkpoints", kCheckpoint}};
constexpr const char* kLock = ".lock";

void remove_file(const fs::path& path) {
  std::error_code ec;
  fs::remove(path, ec);
  if (ec) throw Error(ErrorKind::kIo, fmt::format("{}: cannot remove: {}", path.string(), ec.message()));
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) out.push_back(entry.path());
  return out;
}

void make_folder(const fs::path& path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  if (!ec && !fs::is_directory(path, ec)) ec = std::make_error_code(std::errc::not_a_directory);
  if (ec)
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot make the run folder: {}; choose another with -o",
                                            path.string(), ec.message()));
}

std::string absolute(const std::string& path) {
  std::error_code ec;
  const fs::path out = fs::weakly_canonical(path, ec);
  return ec ? path : out.string();
}

// The step in "000012.vtu" or "bunny_000012.ply"; -1 when there is none.
std::int64_t step_of(const fs::path& file) {
  const std::string stem = file.stem().string();
  std::size_t from = stem.size();
  while (from > 0 && stem[from - 1] >= '0' && stem[from - 1] <= '9') --from;
  std::int64_t step = -1;
  std::from_chars(stem.data() + from, stem.data() + stem.size(), step);
  return step;
}

// run.json, or an empty object when it is there but damaged; empty when there is no run.
std::optional<Json> read_manifest(const fs::path& folder) {
  std::error_code ec;
  if (!fs::exists(folder / "run.json", ec)) return std::nullopt;
  Json manifest;
  try {
    manifest = Json::parse(read_file((folder / "run.json").string()), nullptr, false);
  } catch (const Error&) {
  }
  if (!manifest.is_object()) manifest = Json::object();
  // The one list that a run adds to.
  if (manifest.contains("resumed") && !manifest["resumed"].is_array()) manifest.erase("resumed");
  return manifest;
}

// Values of a manifest that somebody may have edited: another type counts as absent.
std::string text_of(const Json& manifest, const char* key, const char* otherwise) {
  const auto found = manifest.find(key);
  return found != manifest.end() && found->is_string() ? found->get<std::string>() : otherwise;
}
std::string count_of(const Json& manifest, const char* key) {
  const auto found = manifest.find(key);
  return found != manifest.end() && found->is_number_integer() ? found->dump() : "an unknown number";
}

// Why no run of the scene may be written into this folder; empty when it may.
std::string why_not(const fs::path& folder, const std::optional<Json>& old, const Scene& scene,
                    const RunFolderRequest& request) {
  if (!old) {
    for (const fs::path& file : files_in(folder)) {
      const std::string name = file.filename().string();
      const bool ours =
          name == kLock || name.ends_with(".tmp") ||
          std::any_of(std::begin(kFiles), std::end(kFiles), [&](const char* f) { return name == f; }) ||
          std::any_of(std::begin(kFolders), std::end(kFolders),
                      [&](const auto& f) { return name == f.first; });
      if (!ours)
        return fmt::format("the folder is not empty and not a run (it has {}); choose another with -o", name);
    }
    return "";
  }
  if (request.resume || request.overwrite) return "";
  const std::string other = text_of(*old, "scene_file", "unknown");
  if (other != absolute(scene.file))
    return fmt::format(
        "holds a run of another scene ({}); choose another folder with -o, or replace it with --overwrite",
        other);
  const std::string status = text_of(*old, "status", "unknown");
  if (status != "finished" && status != "failed")
    return fmt::format(
        "holds an unfinished run, at step {} of {}; go on with --resume, or replace it with --overwrite",
        count_of(*old, "steps"), count_of(*old, "target_steps"));
  return "";
}

}  // namespace

std::string frame_name(std::int64_t step, const char* ending) { return fmt::format("{:06}{}", step, ending); }

RunFolder::RunFolder(const Scene& scene, const RunFolderRequest& request)
    : path_(request.folder), scene_hash_(hash_scene(scene)) {
  make_folder(path_);
  const std::string shown = path_.string();
  const auto refuse = [&](const std::string& why) {
    if (!why.empty()) throw Error(ErrorKind::kUsage, fmt::format("{}: {}", shown, why));
  };
  // A folder that is refused stays as it was: no lock is put into it. One that has a lock is looked at behind
  // it, since somebody may be writing.
  std::error_code ec;
  if (!fs::exists(path_ / kLock, ec)) refuse(why_not(path_, read_manifest(path_), scene, request));
  lock();
  const std::optional<Json> old = read_manifest(path_);
  refuse(why_not(path_, old, scene, request));
  if (!old) {
    if (request.resume)
      notices_.push_back(fmt::format("{}: no run to go on with; starting from the beginning", shown));
    clear();
  } else if (request.resume) {
    find_checkpoint(request);
    if (start_)
      clear_after(start_->state.step);
    else
      clear();
  } else if (request.overwrite) {
    notices_.push_back(fmt::format("{}: replacing the run that was there", shown));
    clear();
  } else {
    notices_.push_back(
        fmt::format("{}: replacing the {} run of the same scene", shown, text_of(*old, "status", "unknown")));
    clear();
  }
  for (const auto& folder : kFolders) make_folder(path_ / folder.first);
  if (!scene.output.surface && fs::is_empty(path_ / "surface", ec)) remove_file(path_ / "surface");
  if (!scene.output.vtu && fs::is_empty(path_ / "frames", ec)) remove_file(path_ / "frames");

  log_.fd = ::open((path_ / "log.txt").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (log_.fd < 0)
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot write: {}", (path_ / "log.txt").string(), std::strerror(errno)));
  if (start_ && old) *manifest = *old;
  manifest["scene"] = scene.name;
  manifest["scene_file"] = absolute(scene.file);
  manifest["scene_hash"] = to_hex(scene_hash_);
  write_file_atomic((path_ / "scene.resolved.json").string(), rebase_files(scene, shown).dump(2) + "\n");
  for (const std::string& notice : notices_) log(notice);
}

RunFolder::Descriptor::~Descriptor() {
  if (fd >= 0) ::close(fd);
}

void RunFolder::lock() {
  // The system drops the lock when the process ends, however it ends.
  lock_.fd = ::open((path_ / kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_.fd < 0)
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot write into the run folder: {}; choose another with -o",
                            path_.string(), std::strerror(errno)));
  if (::flock(lock_.fd, LOCK_EX | LOCK_NB) != 0) {
    throw Error(
        ErrorKind::kIo,
        fmt::format("{}: another limber is writing into this folder; wait for it, or choose another with -o",
                    path_.string()));
  }
}

void RunFolder::find_checkpoint(const RunFolderRequest& request) {
  std::vector<fs::path> candidates;
  if (request.checkpoint)
    candidates.push_back(*request.checkpoint);
  else
    for (const CheckpointFile& file : list_checkpoints(path_ / "checkpoints"))
      candidates.push_back(file.path);
  for (const fs::path& file : candidates) {
    try {
      Checkpoint checkpoint = read_checkpoint(file);
      if (checkpoint.scene_hash != scene_hash_)
        throw Error(
            ErrorKind::kUsage,
            fmt::format("{}: the scene or one of its meshes has changed since this checkpoint was written; a "
                        "changed scene cannot be resumed, start again with --overwrite",
                        file.string()));
      notices_.push_back(fmt::format("going on from step {}, t = {:.6g} s ({})", checkpoint.state.step,
                                     checkpoint.state.t, file.string()));
      start_ = std::move(checkpoint);
      return;
    } catch (const Error& e) {
      if (request.checkpoint || e.kind() == ErrorKind::kUsage) throw;
      notices_.push_back(fmt::format("{}; trying the one before", e.what()));
    }
  }
  notices_.push_back(fmt::format("{}: no usable checkpoint; starting from the beginning", path_.string()));
}

void RunFolder::clear() {
  for (const char* name : kFiles) {
    remove_file(path_ / name);
    remove_file(path_ / (std::string(name) + ".tmp"));
  }
  for (const auto& [folder, ending] : kFolders)
    for (const fs::path& file : files_in(path_ / folder))
      if (file.extension() == ending || file.extension() == ".tmp") remove_file(file);
}

void RunFolder::clear_frame(std::int64_t step) {
  for (const auto& [folder, ending] : kFolders)
    if (ending != kCheckpoint)
      for (const fs::path& file : files_in(path_ / folder))
        if (file.extension() == ending && step_of(file) == step) remove_file(file);
}

void RunFolder::clear_after(std::int64_t step) {
  for (const auto& [folder, ending] : kFolders)
    for (const fs::path& file : files_in(path_ / folder))
      if (file.extension() == ".tmp" || (file.extension() == ending && step_of(file) > step))
        remove_file(file);
  for (const char* name : {"failure.lmc", "failure.json", "index.html"}) remove_file(path_ / name);
}

void RunFolder::write_manifest() {
  write_file_atomic((path_ / "run.json").string(), manifest->dump(2) + "\n", true);
}

void RunFolder::log(std::string_view line) {
  const double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const std::string text = fmt::format("{:10.3f}  {}\n", t, line);
  // The log is a help, not a result: a full disk is noticed by what matters.
  if (::write(log_.fd, text.data(), text.size()) < 0) return;
}

}  // namespace limber
