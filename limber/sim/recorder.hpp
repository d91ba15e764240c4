// Writes what a run leaves behind: rows, frames, the recording, checkpoints.
#pragma once

#include <limber/io/boxed_json.hpp>
#include <limber/io/replay.hpp>
#include <limber/sim/frame.hpp>
#include <limber/sim/probe.hpp>
#include <limber/sim/run_folder.hpp>
#include <limber/sim/simulation.hpp>
#include <limber/sim/step_table.hpp>
#include <limber/sim/timings.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace limber {

class Recorder {
 public:
  // Takes over the folder's files: new ones, or after the checkpoint from which the simulation has been
  // restored. `end`: the step after which the run ends, which is measured and recorded whatever
  // /output/every says; without it that of the scene's end time.
  Recorder(RunFolder& folder, const Simulation& simulation, std::optional<std::int64_t> end = {});

  // Row, frame and checkpoint of the state before the first step; nothing when the run goes on.
  void begin();
  // After every step: `seconds` is the step's wall time.
  void record(const StepReport& report, double seconds);
  // Saves everything now. Called by record() at the scene's interval.
  void checkpoint();
  // The last entry in the manifest: "finished", "interrupted" or "failed". Writes the page of the run.
  // `progress`: of writing it, 0 to 1.
  void finish(const std::string& status, const std::string& why = {},
              const std::function<void(double)>& progress = {});

  const Timings& timings() const { return timings_; }
  const Diagnostics& diagnostics() const { return diagnostics_; }  // of the last measured state
  // Of all steps of the run so far, those before a restart included: name -> count.
  const std::map<std::string, std::int64_t>& fallbacks() const { return fallbacks_; }
  // What the method follows and what it does not (followed_text()); empty: it does not say.
  const std::string& follows() const { return follows_; }
  double wall() const;                                              // [s], of all parts of the run so far
  Index frames() const { return replay_ ? replay_->frames() : 0; }  // in the recording
  // What went wrong on the side (the page could not be written), for the end of the run.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  struct Row {
    StepTable::Cells cells;
    ReplayRow plotted;
  };
  bool measures() const;  // whether energies and the like are measured in this step
  Row row_of(bool measured, const StepReport* report, double seconds, MeasuredFields& fields);
  void write_row(const Row& row);
  void write_frame(const StepInput& input, MeasuredFields& fields);
  // Sums of forces and probes, as columns and as plotted; empty cells where nothing is measured in this step.
  void add_measured(bool measured, MeasuredFields& fields, StepTable::Cells& cells, ReplayRow& row);
  void write_collection();

  using Clock = std::chrono::steady_clock;
  RunFolder& folder_;
  const Simulation& simulation_;
  std::int64_t end_;
  // The present step's row as it would be if the run did not end here, where that is another one or there
  // would be no frame: what a run that goes on has in its place. Null elsewhere.
  BoxedJson on_the_way_;
  StepTable table_;
  std::vector<Obstacle> obstacles_;
  std::optional<ReplayWriter> replay_;
  std::unique_ptr<FrameWriter> writer_;
  std::int64_t writer_epoch_ = -1;
  std::int64_t shown_epoch_ = -1;   // model_number() of the last topology in the recording
  std::int64_t shapes_epoch_ = -1;  // the same of the last one whose shapes have been asked for
  std::string follows_;
  std::vector<std::pair<double, std::string>> vtu_frames_;  // time, file: run.pvd
  Clock::time_point begin_ = Clock::now(), last_collection_ = begin_;
  double earlier_wall_ = 0;  // [s], of the parts before a restart
  Timings timings_;
  Diagnostics diagnostics_;
  std::map<std::string, std::int64_t> fallbacks_;
  std::vector<ProbeColumn> columns_;  // of reactions, contact forces and probes
  std::int64_t columns_model_ = -1;
  std::vector<std::string> notices_;
};

}  // namespace limber
