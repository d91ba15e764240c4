// The folder of a run: who may write into it, what it is called, the manifest run.json and the log.
// docs/run-folder.md describes the files.
#pragma once

#include <limber/scene/scene.hpp>
#include <limber/sim/checkpoint.hpp>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace limber {

struct RunFolderRequest {
  std::filesystem::path folder;
  bool overwrite = false;                           // replace whatever run is there
  bool resume = false;                              // go on from a checkpoint
  std::optional<std::filesystem::path> checkpoint;  // this one instead of the newest
};

class RunFolder {
 public:
  // Makes the folder ready for a run of `scene`. Refuses (Error kUsage) to write over a folder that is not a
  // run, over a run of another scene, or over an unfinished one, unless asked to; a finished or failed run of
  // the same scene is replaced. Only files that a run writes are ever removed. Error(kIo) when the folder
  // cannot be written or another limber is writing into it.
  RunFolder(const Scene& scene, const RunFolderRequest& request);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  // Where to go on from; empty: from the beginning.
  const std::optional<Checkpoint>& start() const { return start_; }
  std::uint64_t scene_hash() const { return scene_hash_; }
  // What a person should know (replaced a run, skipped a damaged checkpoint), one line each.
  const std::vector<std::string>& notices() const { return notices_; }

  // run.json. Change it, then write_manifest().
  BoxedOrderedJson manifest;
  void write_manifest();

  // A line in log.txt, with the time since the start.
  void log(std::string_view line);

  // Removes the files of the frame after this step, of a run that ended there and goes on.
  void clear_frame(std::int64_t step);

 private:
  void lock();
  void find_checkpoint(const RunFolderRequest& request);
  void clear();
  void clear_after(std::int64_t step);

  std::filesystem::path path_;
  std::optional<Checkpoint> start_;
  std::uint64_t scene_hash_ = 0;
  std::vector<std::string> notices_;
  struct Descriptor {
    int fd = -1;
    ~Descriptor();
  };
  Descriptor lock_, log_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Frame number and file name: frames/000012.vtu belongs to step 12.
std::string frame_name(std::int64_t step, const char* ending);

}  // namespace limber
